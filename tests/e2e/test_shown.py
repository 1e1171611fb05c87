"""Names that a default `deny` glob means and that are shown all the same: git works, and no secret is shown for it."""
import hashlib
import json
import os
import shutil
import struct
import subprocess
import time

import pytest

KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFake\n-----END PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n" + "MIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn+dNuaTAKBggqhkjOPQQDAjASMRAw\n" * 12 + "-----END CERTIFICATE-----\n"
IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.com"}


def git(cordon, *words):
    done = subprocess.run(["git", *words], cwd=cordon.workspace,
                          env={**cordon.env, **IDENTITY, "GIT_CONFIG_GLOBAL": "/dev/null"}, capture_output=True,
                          text=True)
    assert done.returncode == 0, done
    return done.stdout


def write(cordon, name, text):
    path = cordon.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def inside(cordon, line):
    return cordon("run", *(word for name, value in IDENTITY.items() for word in ("--env", f"{name}={value}")), "-c",
                  line)


def seen(cordon, name):
    """What a command reads there; None: nothing is to be seen."""
    done = json.loads(cordon("run", "--json", "--secrets", "report", "--", "cat", name).stdout)
    return done["stdout"] if done["exit_code"] == 0 and done["stdout"] else None


@pytest.fixture
def repository(cordon):
    git(cordon, "init", "-q", "-b", "main")
    for name, text in {".env.test": "KEY=test\n", "fixtures/server.pem": KEY, "fixtures/ca.pem": CERTIFICATE,
                       "app/id_rsa_fixture": KEY, "plain": "1\n"}.items():
        write(cordon, name, text)
    git(cordon, "add", "-Af")
    git(cordon, "commit", "-qm", "first")
    write(cordon, ".env", "KEY=secret\n")
    return cordon


def test_git_works_with_committed_names(repository):
    cordon = repository
    for line in ("git status --porcelain", "git add -A :/plain && git status --porcelain -uno",
                 "echo 2 > plain && git commit -qam second",
                 "echo 3 > plain && git stash -q && git stash pop -q && git checkout -q plain",
                 "git checkout -qb side HEAD~1 && echo x > new && git add new && git commit -qm side && git rebase -q main", "echo KEY=other > .env.test && git reset -q --hard && cat .env.test"):
        done = inside(cordon, line)
        assert done.returncode == 0, (line, done)
        assert ".env.test" not in done.stdout.replace("KEY=test", "") and "fixtures" not in done.stdout, (line, done)
    assert done.stdout == "KEY=test\n"
    assert git(cordon, "status", "--porcelain", "-uno") == ""
    assert seen(cordon, ".env") is None and seen(cordon, "app/id_rsa_fixture") == KEY


def test_git_works_in_a_linked_worktree(repository, tmp_path):
    cordon, tree = repository, tmp_path / "tree"
    git(cordon, "worktree", "add", "-q", str(tree), "-b", "other")
    (tree / ".env").write_text("KEY=secret\n")
    done = cordon("run", "-c", "cat .env.test fixtures/server.pem; git status --porcelain", cwd=tree)
    assert done.returncode == 0 and done.stdout == f"KEY=test\n{KEY}?? .env\n", done
    assert "secret" not in cordon("run", "--", "cat", ".env", cwd=tree).stdout
    # A worktree that its repository does not know has no index.
    back = cordon.workspace / ".git/worktrees/tree/gitdir"
    back.write_text(f"{tmp_path}/elsewhere/.git\n")
    assert "KEY=test" not in cordon("run", "--", "cat", ".env.test", cwd=tree).stdout


def test_git_works_in_trees_whose_repository_is_elsewhere(repository, tmp_path):
    """A worktree that lies in the workspace, as agents make them, and a submodule, as a part and as the workspace
    itself."""
    cordon, library = repository, tmp_path / "library"
    shutil.copytree(cordon.workspace, library)
    git(cordon, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")
    git(cordon, "commit", "-qm", "library")
    git(cordon, "worktree", "add", "-q", ".trees/one", "-b", "one")
    for tree in (cordon.workspace / ".trees/one", cordon.workspace / "library"):
        (tree / ".env").write_text("KEY=secret\n")
        name = tree.relative_to(cordon.workspace)
        for cwd, line in ((cordon.workspace, f"cd {name} && "), (tree, "")):
            done = cordon("run", "-c", f"{line} git status --porcelain -uno && cat .env.test fixtures/server.pem && ! grep . .env", cwd=cwd)
            assert done.returncode == 0 and done.stdout == f"KEY=test\n{KEY}", (name, cwd, done)
        (tree / ".env.test").write_text("KEY=real\n")
        assert seen(cordon, f"{name}/.env.test") is None, "changed outside"
    # One that names the repository of another has no index.
    other = cordon.workspace / "other"
    other.mkdir()
    (other / ".env.test").write_text("KEY=test\n")
    (other / ".git").write_text("gitdir: ../.git/modules/library\n")
    assert seen(cordon, "other/.env.test") is None


def test_what_was_changed_is_hidden(repository):
    cordon = repository
    assert seen(cordon, ".env.test") == "KEY=test\n" and seen(cordon, "fixtures/server.pem") == KEY
    write(cordon, ".env.test", "KEY=real\n")
    write(cordon, "fixtures/server.pem", KEY.replace("Fake", "Real"))
    assert seen(cordon, ".env.test") is None and seen(cordon, "fixtures/server.pem") is None
    write(cordon, ".env.test", "KEY=test\n")
    assert seen(cordon, ".env.test") == "KEY=test\n"
    with open(cordon.workspace / "large.pem", "w") as large:
        large.write(KEY + "x" * (1 << 20))
    git(cordon, "add", "-f", "large.pem")
    assert seen(cordon, "large.pem") is None, "too large to be judged"


@pytest.mark.parametrize("count,size", ((2000, len(KEY)), (20, 900_000)))
def test_many_committed_keys(cordon, count, size):
    """More than there is time for at one start: what was read is not read again, so that later starts judge the
    rest."""
    git(cordon, "init", "-q", "-b", "main")
    for i in range(count):
        write(cordon, f"keys/{i % 40}/{i}.pem", (f"{i}\n" + KEY).ljust(size, "x"))
    git(cordon, "add", "-Af")
    git(cordon, "commit", "-qm", "first")
    words = ("run", "--json", "--workspace", cordon.workspace, "--", "git", "status", "--porcelain", "-uno")
    for _ in range(12):  # two on a machine that is not busy
        done = json.loads(cordon(*words).stdout)
        late = [denial["note"] for denial in done["denials"] if "not judged in time" in denial["note"]]
        assert bool(late) == bool(done["stdout"]), done
        if not late:
            break
    assert done["stdout"] == "" and not late
    one = cordon.workspace / "keys/7/7.pem"
    assert seen(cordon, one) == one.read_text()
    one.write_text(one.read_text().replace("Fake", "Real"))
    assert seen(cordon, one) is None, "changed, of the same size"
    one.write_text(one.read_text().replace("Real", "Fake"))
    assert seen(cordon, one) == one.read_text()


def test_what_was_read_is_not_read_again(repository):
    """Its inode, size and change time are compared: of another file with the same name nothing is known. What is kept
    of a file is not believed once the file that keeps it is damaged."""
    cordon = repository
    time.sleep(0.1)
    assert seen(cordon, ".env.test") == "KEY=test\n"
    kept = next((cordon.data / "cordon/names").glob("contents-*"))
    before = kept.stat().st_mtime_ns
    assert seen(cordon, ".env.test") == "KEY=test\n" and kept.stat().st_mtime_ns == before, "nothing was read, so nothing is written"
    path = cordon.workspace / ".env.test"
    inode = path.stat()
    (cordon.workspace / "new").write_text("KEY=real\n")
    (cordon.workspace / "new").rename(path)
    os.utime(path, ns=(inode.st_atime_ns, inode.st_mtime_ns))
    assert seen(cordon, ".env.test") is None
    time.sleep(0.1)
    assert seen(cordon, ".env.test") is None and kept.stat().st_mtime_ns > before
    good, real = (hashlib.sha256(b"blob 9\0" + text).digest() for text in (b"KEY=test\n", b"KEY=real\n"))
    assert real in kept.read_bytes()
    kept.write_bytes(kept.read_bytes().replace(real, good))
    assert seen(cordon, ".env.test") is None


def test_a_bundle_of_certificates_may_be_large(cordon):
    write(cordon, "ca.pem", CERTIFICATE * 3000)
    write(cordon, "mixed.pem", CERTIFICATE * 3000 + KEY)
    write(cordon, "huge.pem", CERTIFICATE * 20500)
    assert (cordon.workspace / "ca.pem").stat().st_size > 1 << 20 and (cordon.workspace / "huge.pem").stat().st_size > 16 << 20
    done = cordon("run", "-c", "grep -c BEGIN *.pem")
    assert done.stdout == "ca.pem:3000\n", "with a key, or too large to be searched"


def test_what_a_session_changes_stays_shown_to_it(repository):
    cordon = repository
    words = ("run", "--json", "--session", "s", "--workspace", cordon.workspace)
    run = lambda line: json.loads(cordon(*words, "-c", line).stdout)
    changed = run("echo KEY=mine > .env.test")
    assert [denial["what"]
            for denial in changed["denials"]] == [str(cordon.workspace / ".env.test")], changed["denials"]
    again = run("cat .env.test && echo more >> .env.test && cat .env")
    assert again["stdout"] == "KEY=mine\n" and again["exit_code"], again
    third = run("cat .env.test")
    assert third["stdout"] == "KEY=mine\nmore\n" and third["denials"] == [], "it is said once"
    assert seen(cordon, ".env.test") is None, "to others it is not what git has"
    write(cordon, ".env.test", "KEY=real\n")
    assert run("cat .env.test")["stdout"] == "", "it changed while no command ran"


@pytest.mark.parametrize("version", [2, 4])
def test_an_index_that_lies(repository, version):
    """It names the file, with another hash; with that of another file; or is no index at all."""
    cordon = repository
    git(cordon, "update-index", "--index-version", str(version))
    assert seen(cordon, ".env.test") == "KEY=test\n"
    blob = subprocess.run(["git", "hash-object", "-w", "--stdin"], input="guess\n", cwd=cordon.workspace,
                          env=cordon.env, capture_output=True, text=True, check=True).stdout.strip()
    git(cordon, "update-index", "--add", "--cacheinfo", f"100644,{blob},.env")
    assert seen(cordon, ".env") is None
    index = cordon.workspace / ".git/index"
    good = index.read_bytes()
    for bad in (b"", b"DIRC", good[:40], good[:-30], b"DIRC" + struct.pack(">II", 2, 1 << 31) + good[12:],
                os.urandom(4096), good.replace(b".env", b"../x")):
        index.write_bytes(bad)
        assert seen(cordon, ".env") is None, bad[:20]
    index.unlink()
    os.mkfifo(index)
    assert seen(cordon, ".env") is None


def test_examples_by_their_name_unless_links(cordon):
    write(cordon, ".env", "KEY=secret\n")
    for ending in ("example", "sample", "template", "dist", "defaults", "schema"):
        write(cordon, f"sub/.env.{ending}", "KEY=\n")
        assert seen(cordon, f"sub/.env.{ending}") == "KEY=\n"
    (cordon.workspace / ".env.example").symlink_to(".env")
    os.link(cordon.workspace / ".env", cordon.workspace / ".env.sample")
    write(cordon, ".env.example.local", "KEY=secret\n")
    for name in (".env.example", ".env.sample", ".env.example.local", ".env"):
        assert seen(cordon, name) is None, name
    config = cordon.data.parent / "own.toml"
    config.write_text('[capabilities]\ndeny = ["**/.env.dist"]\n')
    hidden = json.loads(cordon("run", "--json", "--config", config, "--", "cat", "sub/.env.dist",
                               "sub/.env.example").stdout)
    assert hidden["stdout"] == "KEY=\n", "a glob of one's own hides whatever is in it"


def test_keys_and_certificates(cordon):
    shown = {"venv/certifi/cacert.pem": CERTIFICATE * 200,
             "public.pem": CERTIFICATE.replace("CERTIFICATE", "PUBLIC KEY")}
    hidden = {"words.key": "title = Words that may be a key or not\n" * 40,
              "jwk.key": '{"kty":"RSA","d":"' + "A" * 600 + '"}\n',
              "vpn.key": CERTIFICATE.replace("CERTIFICATE", "OpenVPN Static key V1"), "bare.key": "QUJD" * 300 + "\n",
              "key.pem": KEY, "both.pem": CERTIFICATE + KEY, "rsa.key": KEY.replace("PRIVATE", "RSA PRIVATE"),
              "wireguard.key": "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n",
              "putty.key": "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n" + "A" * 600,
              "age.key": "# made\n" * 100 + "AGE-SECRET-KEY-1QQ\n"}
    for name, text in {**shown, **hidden}.items():
        write(cordon, name, text)
    (cordon.workspace / "der.key").write_bytes(b"\x30\x82\x04\xa3\x02\x01\x00" + b"\x01" * 600)
    for name, text in shown.items():
        assert seen(cordon, name) == text, name
    for name in [*hidden, "der.key"]:
        assert seen(cordon, name) is None, name


def test_a_failure_names_what_was_hidden(cordon):
    for i in range(200):
        write(cordon, f"d{i}/.env", "KEY=secret\n")
    failed = json.loads(cordon("run", "--json", "-c", "echo Permission denied >&2; exit 1").stdout)
    told = [denial for denial in failed["denials"] if denial["wall"] == "masked_names"]
    assert len(told) == 1 and "199 more" in told[0]["note"] and told[0]["grant"] == f"--read {told[0]['what']}", failed["denials"]
    assert json.loads(cordon("run", "--json", "--", "true").stdout)["denials"] == []


def test_file_tools_show_the_same(repository):
    cordon = repository
    write(cordon, ".env.example", "KEY=\n")
    assert cordon("file", "read", ".env.test").stdout == "KEY=test\n"
    assert cordon("file", "read", ".env.example").stdout == "KEY=\n"
    assert cordon("file", "write", "--content", "KEY=\n", "sub.env.example").returncode == 0
    assert cordon("file", "write", "--content", "KEY=\n", "fixtures/.env.sample").returncode == 0
    assert cordon("file", "read", ".env").returncode == 125
    assert "secret" not in cordon("file", "grep", "--all", "KEY").stdout
    assert ".env.test" in cordon("file", "grep", "KEY").stdout
