"""Names that are masked or protected in a workspace, however large it is and whatever happened to it between
commands."""
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess

import pytest

from lab import IS_ROOT, drivers, leftovers, needs, refused, result  # noqa: F401

DIRECTORIES, FILES_EACH = 1000, 100
# Of a processor: 2 ms for the search before the start, and 3 us a directory for the check at the end.
BOUND_MS, BOUND_WAITS = 2.0 + 0.003 * DIRECTORIES, 3


@pytest.fixture
def shown(cordon):
    """shown(path...) is what a command reads there: the text, or None where it cannot."""
    def read(*paths):
        done = cordon("run", "-c", 'for path; do if text=$(cat "$path" 2>/dev/null) && [ -n "$text" ]; then echo "=$text"; '
                      'else echo none; fi; done', "sh", *paths)
        assert done.returncode == 0, done.stderr
        found = [line[1:] if line.startswith("=") else None for line in done.stdout.splitlines()]
        return found[0] if len(paths) == 1 else found
    return read


# ---- masks -----------------------------------------------------------------------------------------------------------

SECRETS = [".env", ".env.local", "key.pem", "id_rsa", "id_rsa.pub", "id_ed25519", ".netrc", ".ssh/config",
           ".aws/credentials", ".gnupg/secring", "deep/er/.env", "deep/.ssh/id", "deep/er/and/er/server.pem"]
PLAIN = ["env", ".environment", "pem", "key.pem.txt", "ssh/config", ".awsome", "README", "deep/er/file"]


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_secrets_in_the_workspace_are_masked(cordon, shown):
    for name in SECRETS:
        write(cordon.workspace, name, "secret")
    for name in PLAIN:
        write(cordon.workspace, name, "plain")
    for _ in range(2):
        assert shown(*SECRETS) == [None] * len(SECRETS)
        assert shown(*PLAIN) == ["plain"] * len(PLAIN)
    assert (cordon.workspace / ".env").read_text() == "secret", "outside it is as it was"


def test_secrets_in_a_granted_directory_are_masked(cordon, tmp_path):
    for name in SECRETS + PLAIN:
        write(tmp_path / "granted", name, "text")
    for option in ("--read", "--write"):
        done = cordon("run", option, tmp_path / "granted", "--", "grep", "-rs", "text", tmp_path / "granted")
        assert sorted(line.split(":")[0] for line in done.stdout.splitlines()) == \
            sorted(str(tmp_path / "granted" / name) for name in PLAIN)


def test_a_mask_cannot_be_taken_off(cordon):
    write(cordon.workspace, "sub/.env", "secret")
    done = cordon("run", "-c", "rm -f sub/.env; mv sub/.env moved; mv sub away; chmod 777 sub/.env; ln sub/.env hard; "
                               "cp sub/.env copy; cat sub/.env away/.env moved hard copy; echo overwritten > sub/.env")
    assert "secret" not in done.stdout
    assert (cordon.workspace / "sub/.env").read_text() == "secret"


@drivers("namespaces", "bwrap")
def test_a_secret_that_is_granted_by_its_own_name_is_shown(cordon, driver):
    secret, other = cordon.workspace / "sub/.env", cordon.workspace / ".env"
    for name in ("sub/.env", ".env", ".ssh/config", ".ssh/id_rsa"):
        write(cordon.workspace, name, "secret\n")
    line = "cat sub/.env .env; cat .ssh/config .ssh/id_rsa; echo more >> sub/.env"
    read = result(cordon, "--driver", driver, "--read", secret, "-c", line)
    assert (read["stdout"], secret.read_text()) == ("secret\n", "secret\n")
    assert [denial["what"] for denial in read["denials"]] == [str(other)], "it failed, so what was hidden is said"
    written = result(cordon, "--driver", driver, "--write", secret, "--read", cordon.workspace / ".ssh", "-c", line)
    assert (written["stdout"], written["denials"]) == ("secret\n" * 2,
                                                       []), "in a directory so granted what has such a name is hidden"
    assert secret.read_text() == "secret\nmore\n" and other.read_text() == "secret\n"
    planned = json.loads(cordon("profile", "--json", "--driver", driver, "--read", secret, "--", "true").stdout)
    masks = [each["target"] for each in planned["mounts"] if each["kind"] == "mask"]
    assert str(secret) not in masks and str(other) in masks


def test_no_other_grant_shows_a_secret(cordon, tmp_path):
    """Nor what the project's file names, which the command can write; nor a link in the workspace. It is said."""
    data, config = tmp_path / "data dir", tmp_path / "config/cordon/config.toml"
    for name in (".env", ".ssh/known_hosts"):
        write(data, name, "secret")
    write(cordon.workspace, "key/id_rsa", "secret")
    (cordon.workspace / ".env").symlink_to("key/id_rsa")
    write(config.parent, config.name, f'[capabilities]\nfs_read = ["{data}"]\n')
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    link, key = cordon.workspace / ".env", cordon.workspace / "key/id_rsa"
    for words, what, grant in [([link], key, key),
                               ([data / ".ssh/known_hosts"], data / ".ssh/known_hosts", data / ".ssh")]:
        done = result(cordon, *(word for each in words for word in ("--read", each)), "--", "cat", what)
        assert (done["exit_code"], done["stdout"]) == (1, "")
        assert [(each["what"], each["wall"], each["grant"]) for each in done["denials"]] == [
            (str(what), "masked_names", f"--read {grant}")]
    write(cordon.workspace, ".cordon.toml", f'[capabilities]\nfs_read = ["{data}/.env", "{data}"]\n')
    assert cordon("run", "--", "cat", data / ".env").returncode == 1
    (cordon.workspace / ".cordon.toml").write_text(f'[capabilities]\nfs_read = ["{data}/.env", "{data}/.ssh"]\n')
    assert cordon("run", "--read", data, "--", "cat", data / ".env").returncode == 1
    assert cordon("run", "--read", data / ".env", "--", "cat", data / ".env").stdout == "secret"


def test_what_a_session_was_made_with_shows_a_secret(cordon, shown):
    for name in (".env", "sub/.env"):
        write(cordon.workspace, name, "secret")
    cordon("session", "new", "s", "--workspace", cordon.workspace, "--read", cordon.workspace / ".env")
    assert cordon("run", "--session", "s", "-c", "cat .env sub/.env").stdout == "secret"
    assert shown(".env") is None


def test_a_protected_name_is_not_granted_to_be_written(cordon, tmp_path):
    write(cordon.workspace, ".cordon.toml", "")
    for root in (cordon.workspace, tmp_path / "elsewhere"):
        write(root, ".git/config", "[core]\n")
        write(root, ".git/hooks/pre-commit", "#!/bin/sh\n")
    (cordon.workspace / "link").symlink_to(".git/config")
    for name in (".cordon.toml", ".git/config", ".git/hooks", ".git/hooks/pre-commit", "link",
                 tmp_path / "elsewhere/.git/config"):
        error = refused(cordon, "--write", cordon.workspace / name, "--", "true")
        assert (error["class"], error["boundary"], error["step"]) == ("capability_denied", "protected_names",
                                                                      "capability")
        assert error["remediation"]
    done = cordon("run", "--read", cordon.workspace / ".git/config", "--write", tmp_path / "elsewhere/.git", "-c",
                  "cat .git/config")
    assert done.stdout == "[core]\n"


def test_in_a_workspace_of_cordons_own_making_the_sessions_own_secrets_are_its_own(cordon, tmp_path):
    """Also where a directory around it is granted; what is protected is, and what is named elsewhere is masked as
    ever."""
    write(tmp_path, "xdg/other/.env", "secret")
    cordon.env["XDG_DATA_HOME"] = str(tmp_path / "xdg")
    cordon("session", "new", "s", "--read", tmp_path / "xdg")
    first = result(cordon, "--session", "s", "-c",
                   "mkdir -p ~/.ssh && echo mine > ~/.ssh/id_rsa && echo mine > .env && git init -q .")
    assert first["exit_code"] == 0, first
    again = cordon("run", "--session", "s", "-c",
                   f"cat ~/.ssh/id_rsa .env; rm -r ~/.ssh .env || echo stuck; cat {tmp_path}/xdg/other/.env || echo masked; "
                   "echo >> .git/config || echo kept")
    assert again.stdout == "mine\nmine\nmasked\nkept\n", again
    workspace, = (tmp_path / "xdg/cordon/workspaces").iterdir()
    write(workspace, ".cordon.toml", '[capabilities]\ndeny = ["**/mine"]\n')
    write(workspace, "mine", "secret")
    assert cordon("run", "--session", "s", "--", "cat", "mine").returncode == 1


def test_names_that_appear_between_commands(cordon, shown):
    for n in range(20):
        write(cordon.workspace, f"dir{n}/file", "plain")
    assert shown("dir3/file") == "plain"
    write(cordon.workspace, "dir3/.env", "secret")
    write(cordon.workspace, "new/er/.env", "secret")
    assert shown("dir3/.env", "new/er/.env") == [None, None]
    (cordon.workspace / "dir4/file").rename(cordon.workspace / "dir4/.env")
    (cordon.workspace / "dir5").rename(cordon.workspace / ".ssh")
    assert shown("dir4/.env", ".ssh/file") == [None, None]
    (cordon.workspace / "dir4/.env").rename(cordon.workspace / "dir4/file")
    (cordon.workspace / ".ssh").rename(cordon.workspace / "dir5")
    assert shown("dir4/file", "dir5/file") == ["plain", "plain"], "nor masked for longer than it has the name"


def test_a_command_makes_names_for_the_next(cordon, shown):
    cordon("run", "-c", "mkdir -p made/by && echo mine > made/by/.env")
    assert shown("made/by/.env") is None


def test_forged_times(cordon, shown):
    """What a directory says about its last change is anybody's to set."""
    place = cordon.workspace / "dir"
    write(cordon.workspace, "dir/file", "plain")
    assert shown("dir/file") == "plain"
    before = place.stat()
    write(cordon.workspace, "dir/.env", "secret")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shown("dir/.env") is None
    # The command itself forges.
    cordon("run", "-c", "mkdir sub; touch -d '2001-01-01' sub; true")
    assert shown("dir/.env") is None
    cordon("run", "-c", "echo hidden > sub/.env; touch -d '2001-01-01' sub; touch -d '2001-01-01' .")
    assert shown("sub/.env") is None


def test_a_cache_that_is_spoilt_is_not_believed(cordon, shown):
    for n in range(600):
        (cordon.workspace / f"many/dir{n}").mkdir(parents=True)
    write(cordon.workspace, "sub/.env", "secret")
    assert shown("sub/.env") is None
    caches = [path for path in (cordon.data / "cordon/names").rglob("*") if path.is_file()]
    assert caches, "there is one"
    for spoil in (b"", b"garbage", caches[0].read_bytes()[:-3], bytes(100_000)):
        for cache in caches:
            cache.chmod(0o600)
            cache.write_bytes(spoil)
        assert shown("sub/.env") is None


def test_links_to_secrets(cordon, shown, tmp_path):
    write(cordon.workspace, "real/credentials", "secret")
    (cordon.workspace / "real/.env").symlink_to("credentials")
    (cordon.workspace / "link").symlink_to("real")
    write(tmp_path, "outside/.env", "secret")
    (cordon.workspace / "out").symlink_to(tmp_path / "outside")
    assert shown("real/.env", "link/.env", "out/.env", "real/credentials") == [None] * 4


@drivers("namespaces", "bwrap")
def test_links_to_secrets_by_whole_paths(cordon, driver, tmp_path):
    """However a link says it: what it leads to is covered by its own name too, in whichever tree that is."""
    there, granted = cordon.workspace, tmp_path / "granted"
    (tmp_path / "aside").symlink_to(there)
    plain = ["plain", "config/plain"]
    links = {".env": there / "config/a", ".env.out": f"../{there.name}/config/b", ".ssh": there / "keys",
             "x.pem": "middle", "y.pem": tmp_path / "aside/config/e", ".netrc": granted / "f", ".aws": granted / "g",
             "z.pem": "keys/../config/h"}
    for path in ["config/a", "config/b", "keys/c", "config/d", "config/e", "config/h", *plain]:
        write(there, path, "text")
    for path in ("f", "g/credentials", "plain"):
        write(granted, path, "text")
    for name, target in {**links, "middle": "second", "second": there / "config/d"}.items():
        (there / name).symlink_to(target)
    (granted / "back.pem").symlink_to(there / "middle")
    for option in ("--read", "--write"):
        done = cordon("run", "--driver", driver, option, granted, "--", "grep", "-rs", "text", there, granted)
        assert sorted(line.split(":")[0] for line in done.stdout.splitlines()) == \
            sorted([str(there / name) for name in plain] + [str(granted / "plain")]), done


def test_links_that_cover_nothing(cordon, tmp_path):
    """To a directory that they lie in, to themselves, to what would make one wait, and out of what is granted."""
    write(cordon.workspace, "sub/plain", "text")
    write(tmp_path, "granted/plain", "text")
    os.mkfifo(cordon.workspace / "pipe")
    links = {".env": cordon.workspace, "sub/.ssh": cordon.workspace / "sub", "sub/.aws": tmp_path,
             "a.pem": cordon.workspace / "b.pem", "b.pem": "a.pem", ".netrc": cordon.workspace / "pipe",
             "c.pem": "/dev/null", "d.pem": "/proc/self/cwd/sub/plain", "e.pem": "/", "f.pem": "/nowhere/at/all",
             "g.pem": tmp_path / "plain"}
    for name, target in links.items():
        (cordon.workspace / name).symlink_to(target)
    write(tmp_path, "plain", "text")
    (tmp_path / "granted/.ssh").symlink_to(cordon.workspace)
    done = cordon("run", "--read", tmp_path / "granted", "--read", tmp_path / "plain", "--", "cat", "sub/plain",
                  tmp_path / "granted/plain", tmp_path / "plain")
    assert (done.stdout, done.stderr) == ("texttexttext", "")


@needs("mount-namespace")
def test_a_link_to_a_secret_cannot_be_taken_away(cordon, tmp_path):
    """Nor anything by which it leads there: the next command would not know what is a secret."""
    there, granted = cordon.workspace, tmp_path / "granted"
    for path in ("config/a", "config/b", "config/c", "config/d", "config/e", "side/plain"):
        write(there, path, "secret")
    links = {".env": "config/a", "sub/deep/.env": "../../config/b", "x.pem": "middle", "middle": there / "second",
             "second": "config/c", "y.pem": "side/../config/d", "z.pem": granted / "far"}
    (there / "sub/deep").mkdir(parents=True)
    granted.mkdir()
    for name, target in links.items():
        (there / name).symlink_to(target)
    (granted / "far").symlink_to(there / "config/e")
    names = [*links, "sub", "sub/deep", "side", "config", granted / "far"]
    line = ('for name; do rm -rf "$name"; mv "$name" moved; mv -T new "$name"; ln -sfn nowhere "$name"; done; '
            "cat .env x.pem middle; true")
    secrets = " ".join(f"config/{name}" for name in "abcde")
    for _ in range(2):
        assert result(cordon, "--write", granted, "--", "true")["denials"] == []
        done = cordon("run", "--write", granted, "-c", f"echo new > new; cat {secrets}; {line}", "sh", *names)
        assert done.stdout == "" and (granted / "far").is_symlink(), done
        assert {name: (there / name).readlink() for name in links} == {name: pathlib.Path(target)
                                                                       for name, target in links.items()}
    assert cordon("run", "-c", "echo x > sub/deep/file; rm sub/deep/file; mkdir side/new").returncode == 0
    (there / ".env").unlink()
    assert cordon("run", "--", "cat", "config/a").stdout == "secret", "its owner can"


@drivers("bwrap")
def test_a_link_to_a_secret_that_was_taken_away_is_told(cordon, driver):
    write(cordon.workspace, "config/a", "secret")
    (cordon.workspace / ".env").symlink_to("config/a")
    assert result(cordon, "--driver", driver, "--", "true")["denials"] == []
    told = result(cordon, "--driver", driver, "-c", "rm .env")
    assert [(denial["wall"], denial["what"])
            for denial in told["denials"]] == [("masked_names", str(cordon.workspace / ".env"))]


def test_a_link_that_keeps_busy(cordon):
    (cordon.workspace / "a").mkdir()
    (cordon.workspace / "x.pem").symlink_to("a/../" * 600)
    done = cordon("run", "--", "true")
    assert done.returncode == 125 and "take too long" in done.stderr, done


@needs("mount-namespace")
def test_links_to_what_is_protected(cordon, tmp_path):
    there, granted = cordon.workspace, tmp_path / "granted"
    links = {there / ".git/hooks": there / "myhooks", there / "sub/.git/hooks": "../../middle",
             there / "middle": there / "yourhooks", there / "sub/.cordon.toml": granted / "policy",
             granted / ".git/config": f"../../{there.name}/config"}
    for path in (there / "myhooks/pre-commit", there / "yourhooks/pre-commit", there / "config", granted / "policy"):
        write(path.parent, path.name, "")
    for link, target in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    line = 'for path; do echo evil >> "$path"; rm -f "$path"; done; true'
    files = [there / "myhooks/pre-commit", there / "yourhooks/pre-commit", granted / "policy"]
    assert cordon("run", "--write", granted, "-c", line, "sh", *files, there / "config").returncode == 0
    assert [path.read_text() for path in [*files, there / "config"]] == [""] * 4
    assert cordon("run", "-c", 'rm -f "$@"; mv .git/hooks x; mv middle x; true', "sh", there / "middle",
                  there / ".git/hooks").returncode == 0
    assert (there / ".git/hooks").is_symlink() and (there / "middle").is_symlink()
    assert cordon("run", "--read", granted, "-c", line, "sh", there / "config").returncode == 0
    assert (there / "config").read_text() == "", "nor by way of what can only be read"


# ---- bounds ----------------------------------------------------------------------------------------------------------

CROWD = 32 * 1024 + 1


def make_crowd(directory, ending):
    """So many names of one file, some in each of a few directories."""
    for part in range(33):
        (directory / f"{part}").mkdir(parents=True)
        (directory / f"{part}/first").write_text("")
        for number in range(1000):
            os.link(directory / f"{part}/first", directory / f"{part}/f{number}{ending}")


def test_a_project_masks_more(cordon, shown):
    """A directory of its own that has masked names in it, and single files, beside those that are masked anyway."""
    for name in (".env", "own/.env", "own/deep/key.pem", "sub/a.js", "sub/.env", "sub/b.txt"):
        write(cordon.workspace, name, "text")
    (cordon.workspace / ".cordon.toml").write_text('[capabilities]\ndeny = ["own", "**/*.js", "**/.env"]\nprotect = ["b.txt"]\n')
    for _ in range(2):
        assert shown(".env", "own/.env", "own/deep/key.pem", "sub/a.js", "sub/.env",
                     "sub/b.txt") == [None] * 5 + ["text"]
    assert "Read-only" in cordon("run", "-c", "echo x > sub/b.txt").stderr


def test_a_project_cannot_have_names_overlooked(cordon, tmp_path):
    """By having so many others found that the bounds are reached before."""
    make_crowd(tmp_path / "granted", "")
    write(tmp_path / "granted", "z/y/x/.env", "secret")
    words = ("--read", tmp_path / "granted", "--", "cat", tmp_path / "granted/z/y/x/.env")
    assert cordon("run", *words).returncode == 1
    (cordon.workspace / ".cordon.toml").write_text('[capabilities]\ndeny = ["**/f*"]\n')
    done = cordon("run", *words)
    assert done.returncode == 125 and "more names" in done.stderr and "secret" not in done.stdout, done


def test_a_project_has_few_globs(cordon):
    globs = ", ".join(f'"**/x{number}"' for number in range(257))
    (cordon.workspace / ".cordon.toml").write_text(f"[capabilities]\ndeny = [{globs}]\n")
    done = cordon("run", "--", "true")
    assert done.returncode == 125 and "a project can add 256" in done.stderr, done


def test_more_than_can_be_masked_is_refused(cordon):
    (cordon.workspace / "crowd").mkdir()
    (cordon.workspace / "crowd/.env.0").touch()
    for number in range(1, CROWD):
        os.link(cordon.workspace / "crowd/.env.0", cordon.workspace / f"crowd/.env.{number}")
    done = cordon("run", "--", "true")
    assert done.returncode == 125 and "more names" in done.stderr, done


def test_a_crowd_of_names_locks_no_workspace(cordon, shown):
    """A command that makes more than can be masked has neither what it planted overlooked, nor later commands refused,
    nor the owner's secrets shown."""
    (cordon.workspace / ".env").write_text("SECRET")
    make = f"""
import os
os.makedirs("p/.git/hooks"); os.mkdir("crowd"); open("crowd/.env.0", "w").close()
for number in range(1, {CROWD}): os.link("crowd/.env.0", f"crowd/.env.{{number}}")
open("p/.git/hooks/post-checkout", "w").write("#!/bin/sh\\n"); os.chmod("p/.git/hooks/post-checkout", 0o755)
"""
    told = result(cordon, "--", "python3", "-c", make)
    assert told["exit_code"] == 0, told
    assert any(denial["what"].endswith("post-checkout") and "quarantine" in denial["note"]
               for denial in told["denials"]), told["denials"]
    (cordon.workspace / ".env.local").write_text("SECRET")
    for _ in range(2):
        told = result(cordon, "-c", "cat .env .env.local; true")
        assert told["exit_code"] == 0 and "SECRET" not in told["stdout"], told
        assert any("too many" in denial["note"] for denial in told["denials"]), told["denials"]
    # What the owner puts in the place of a name that a command made is the owner's.
    assert result(cordon, "-c", ": > .env.own")["exit_code"] == 0
    (cordon.workspace / "saved").write_text("SECRET")
    os.replace(cordon.workspace / "saved", cordon.workspace / ".env.own")
    assert "SECRET" not in result(cordon, "-c", "cat .env.own; true")["stdout"]
    shutil.rmtree(cordon.workspace / "crowd")
    assert result(cordon, "-c", "true")["denials"] == []


# ---- sockets ---------------------------------------------------------------------------------------------------------

CONNECT = """
import socket, sys
try:
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    print(client.recv(100).decode())
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture
def listener(cordon):
    """A server of the host's, whose socket is in the workspace; bound by a short name, since addresses are short."""
    server = socket.socket(socket.AF_UNIX)
    here = os.open(".", os.O_PATH)
    os.chdir(cordon.workspace)
    try:
        server.bind("service.sock")
    finally:
        os.fchdir(here)
        os.close(here)
    os.chmod(cordon.workspace / "service.sock", 0o777)
    server.listen(8)
    server.settimeout(5)
    yield server
    server.close()


def test_a_socket_in_the_workspace_is_masked(cordon, listener):
    words = ["--", "/usr/bin/python3", "-c", CONNECT, "service.sock"]
    for _ in range(2):
        assert cordon("run", *words).stdout != "served\n"
    listener.settimeout(0)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_socket_that_was_granted(cordon, listener):
    if IS_ROOT:
        os.chmod(cordon.workspace / "service.sock", 0o777)
    process = cordon.popen("run", "--socket", cordon.workspace / "service.sock", "--", "/usr/bin/python3", "-c",
                           CONNECT, "service.sock", text=True)
    connection = None
    try:
        connection, _ = listener.accept()
        connection.send(b"served")
    except TimeoutError:
        pass
    finally:
        if connection:
            connection.close()
    assert process.communicate(timeout=60)[0] == "served\n"


def test_a_socket_outside_is_hidden(cordon, tmp_path):
    place = tmp_path / "s"
    place.mkdir()
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(place)
    try:
        server.bind("x")
    finally:
        os.chdir(here)
    server.listen()
    done = cordon("run", "--read", place, "--cwd", place, "--", "/usr/bin/python3", "-c", CONNECT, "x")
    server.close()
    assert done.stdout.strip() in ("ConnectionRefusedError", "PermissionError", "FileNotFoundError",
                                   "NotADirectoryError"), done


# ---- protected names -------------------------------------------------------------------------------------------------

def test_protected_names_stay_as_they_are(cordon):
    write(cordon.workspace, ".git/config", "[core]\n")
    write(cordon.workspace, ".git/hooks/pre-commit", "#!/bin/sh\n")
    write(cordon.workspace, "sub/.git/config", "[core]\n")
    write(cordon.workspace, ".cordon.toml", "[limits]\nprocesses = 60\n")
    before = {path: path.read_bytes() for path in cordon.workspace.rglob("*") if path.is_file()}
    line = ("for file in .git/config .git/hooks/pre-commit .cordon.toml sub/.git/config; do echo evil >> $file; rm -f $file; "
            "mv $file x; ln -sf /bin/sh $file; done; rm -rf .git/hooks; mv .git git; mv sub bus; mv sub/.git sub/git; "
            "echo evil > .git/hooks/new; rm -f x")
    for _ in range(2):
        assert cordon("run", "-c", line).returncode == 0
    assert {path: path.read_bytes() for path in cordon.workspace.rglob("*") if path.is_file()} == before
    # What is not protected is the command's.
    assert cordon("run", "-c", "echo x > .git/index && echo y > sub/file").returncode == 0


def test_no_litter_for_names_that_are_not_there(cordon):
    assert cordon("run", "-c", "ls -A; mkdir plain").stdout == ""
    assert [path.name for path in cordon.workspace.iterdir()] == ["plain"]


def test_what_was_planted_is_found_at_any_depth(cordon):
    told = result(cordon, "-c", "for place in . a a/b/c; do mkdir -p $place/.git/hooks; "
                  "printf '#!/bin/sh\\n' > $place/.git/hooks/post-checkout; chmod 755 $place/.git/hooks/post-checkout; done; "
                  "mkdir -p d/.GIT/Hooks; cp .git/hooks/post-checkout d/.GIT/Hooks/pre-push; chmod 111 a/b")
    found = sorted(os.path.relpath(denial["what"], cordon.workspace) for denial in told["denials"])
    assert [name for name in found if name.endswith(("post-checkout", "pre-push"))] == \
        [".git/hooks/post-checkout", "a/.git/hooks/post-checkout", "a/b/c/.git/hooks/post-checkout",
         "d/.GIT/Hooks/pre-push"]
    subprocess.run(["chmod", "-R", "u+rwX", cordon.workspace], check=True)
    assert not [path for path in cordon.workspace.rglob("*") if path.name in ("post-checkout", "pre-push")]


# ---- a hundred thousand files ----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def large(tmp_path_factory):
    root = tmp_path_factory.mktemp("large") / "workspace"
    root.mkdir()
    contents = [root / f"content{n}" for n in range(DIRECTORIES * FILES_EACH // 50_000)]
    for path in contents:
        path.touch()
    for n in range(DIRECTORIES):
        place = root / f"group{n // 50}/dir{n}"
        place.mkdir(parents=True)
        here = os.open(place, os.O_PATH)
        for m in range(FILES_EACH):  # names count, not what is in them; an ext4 file may have 65,000
            os.link(contents[n % len(contents)], f"file{m}", dst_dir_fd=here)
        os.close(here)
    (root / "group7/dir350/.env").write_text("secret")
    return root


def cost(cordon, workspace):
    """Milliseconds of a processor, and how often it waited: neither is more because others are at work on this
    machine."""
    process = subprocess.Popen(cordon.argv("run", "--workspace", workspace, "--", "/bin/true"), env=cordon.env)
    _, process.returncode, used = os.wait4(process.pid, 0)
    assert process.returncode == 0
    return (used.ru_utime + used.ru_stime) * 1000, used.ru_nvcsw


@needs("unsanitized")
def test_a_large_workspace_costs_little(cordon, large):
    """Interleaved medians, the best of a few turns."""
    for workspace in (cordon.workspace, large):
        cost(cordon, workspace)
    extra = []
    for _ in range(12):
        small, much = zip(*[(cost(cordon, cordon.workspace), cost(cordon, large)) for _ in range(25)])
        extra.append([statistics.median(b) - statistics.median(a) for a, b in zip(zip(*small), zip(*much))])
        if extra[-1][0] <= BOUND_MS and extra[-1][1] <= BOUND_WAITS:
            return
    pytest.fail(f"milliseconds and waits: {extra}")


def test_a_large_workspace_is_masked_all_the_same(cordon, large):
    def read(*names):
        done = cordon("run", "--workspace", large, "--json", "-c", "cat " + " ".join(names), timeout=60)
        return json.loads(done.stdout)
    for _ in range(2):
        assert "secret" not in read("group7/dir350/.env")["stdout"]
    (large / "group19/dir999/.env").write_text("secret")
    (large / "group3/dir150/fresh").mkdir()
    (large / "group3/dir150/fresh/.env").write_text("secret")
    # Each command looks at a part of what it knows; within a few, all of it has been looked at again.
    last = None
    for _ in range(150):
        last = read("group19/dir999/.env", "group3/dir150/fresh/.env", "group7/dir350/.env")
        if "secret" not in last["stdout"]:
            break
        assert "unseen" in last["isolation"]["masked_names"], "what the bound left out is said"
    for _ in range(10):
        assert "secret" not in last["stdout"], "what was found once is not forgotten"
        last = read("group19/dir999/.env", "group3/dir150/fresh/.env", "group7/dir350/.env")


@needs("mount-namespace")
def test_the_check_at_the_end_is_complete(cordon, large):
    def moved(line):
        told = json.loads(cordon("run", "--workspace", large, "--json", "-c", line, timeout=60).stdout)
        return [os.path.relpath(denial["what"], large) for denial in told["denials"]
                if "moved to quarantine" in denial["note"]]
    moved("true")
    hooks = [f"group{n}/dir{n * 50 + 23}/.git/hooks" for n in range(20)]
    found = moved(f"for hooks in {' '.join(hooks)}; do mkdir -p $hooks; touch $hooks/update; chmod 755 $hooks/update; done")
    assert sorted(found) == sorted(f"{place}/update" for place in hooks)
