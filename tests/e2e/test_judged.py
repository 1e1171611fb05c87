"""What a command leaves behind is found when it has ended, whatever became of the cordon that ran it: killed, out of
time or out of space, beside other commands, or among so much else that a search gives up."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import pytest

from conftest import Cordon, wait_until
from lab import drivers, missing, needs, result

EVIL = "[core]\\n\\tfsmonitor = /evil\\n"
# Not by chmod, which is root's to do nowhere under `landlock`.
HOOK = "mkdir -p {0}/.git/hooks && cp /bin/true {0}/.git/hooks/post-checkout"
PLANT = HOOK.format("new") + f"; printf '{EVIL}' > new/.git/config"
PLANTED = ["new/.git/config", "new/.git/hooks/post-checkout"]
# One-offs in a directory that is named, commands of a session, and such as have walls of their own in one.
WAYS = {"one-off": [], "session": ["--session", "s"], "fresh": ["--session", "s", "--fresh"]}


def notes(cordon, told):
    return {os.path.relpath(denial["what"], cordon.workspace): denial["note"] for denial in told["denials"]}


def found(cordon, told):
    return sorted(name for name, note in notes(cordon, told).items() if "quarantine" in note)


def open_session(cordon):
    assert cordon("session", "new", "s", "--workspace", cordon.workspace).returncode == 0


def owners_hook(cordon):
    """What its owner had set up is nobody's business."""
    hook = cordon.workspace / "own/.git/hooks/pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    return hook


# ---- a cordon that died ----------------------------------------------------------------------------------------------

@drivers()
@pytest.mark.parametrize("way", WAYS)
def test_what_a_killed_cordon_did_not_judge(cordon, tmp_path, driver, way):
    own = owners_hook(cordon)
    config = tmp_path / "config.toml"
    config.write_text(f'sandbox.driver = "{driver}"\n')
    if way != "one-off":
        open_session(cordon)
    words = ["--config", config, *WAYS[way]]
    assert result(cordon, *words, "--", "true")["denials"] == []
    killed = cordon.popen("run", *words, "-c", PLANT + "; touch planted; sleep 600")
    wait_until(lambda: (cordon.workspace / "planted").exists())
    killed.kill()
    killed.communicate()
    told = result(cordon, *words, "--", "true")
    assert found(cordon, told) == PLANTED, told["denials"]
    assert all(note.startswith("left by an earlier command: ")
               for note in notes(cordon, told).values()), told["denials"]
    assert not any((cordon.workspace / name).exists() for name in PLANTED)
    assert own.exists() and result(cordon, *words, "--", "true")["denials"] == []


def test_the_owners_changes_after_a_command_are_the_owners(cordon):
    assert result(cordon, "--", "true")["denials"] == []
    own = owners_hook(cordon)
    assert result(cordon, "--", "true")["denials"] == [] and own.exists()


def test_a_refused_command_leaves_nothing_to_judge(cordon):
    """Between two commands, one of which was refused, the owner sets up a hook."""
    assert result(cordon, "--", "true")["denials"] == []
    assert cordon("run", "--", "no-such-program").returncode == 127
    own = owners_hook(cordon)
    assert result(cordon, "--", "true")["denials"] == [] and own.exists()


# ---- side by side ----------------------------------------------------------------------------------------------------

@drivers("namespaces", "bwrap", "landlock")
def test_beside_a_command_that_goes_on(cordon, driver):
    """What one that goes on plants is not taken for the owner's by those that come and go meanwhile, and is found when
    the first of them ends; what is harmless is named once."""
    own = owners_hook(cordon)
    words = ["--driver", driver]
    with cordon.popen("run", *words, "-c", PLANT + "; touch planted; while [ ! -e end ]; do sleep 0.1; done") as other:
        wait_until(lambda: (cordon.workspace / "planted").exists())
        told = result(cordon, *words, "-c", "mkdir -p kept/.git; echo '[core]' > kept/.git/config")
        assert found(cordon, told) == PLANTED, told["denials"]
        assert "kept/.git/config" in notes(cordon, told)
        # Older than the time within which a change may bear the same time stamp.
        wait_until(lambda: os.stat(cordon.workspace / "kept/.git/config").st_mtime < time.time() - 0.1)
        for _ in range(2):
            again = result(cordon, *words, "--", "true")
        assert again["denials"] == [], again["denials"]
        (cordon.workspace / "end").touch()
        assert other.wait(60) == 0
    assert own.exists()
    assert result(cordon, *words, "--", "true")["denials"] == []


MAPPED = """
import mmap, os, subprocess, time
subprocess.run(["git", "init", "-q", "r"], check=True)
good = open("r/.git/config").read()
bad = good + '[core]\\n\\tfsmonitor = /evil\\n'
good += "#" * (len(bad) - len(good))
open("r/.git/config", "w").write(good)
file = os.open("r/.git/config", os.O_RDWR)
text = mmap.mmap(file, len(bad))
text[0:1] = text[0:1]
time.sleep(0.2)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
text[:] = bad.encode()
"""


@drivers("namespaces", "bwrap", "landlock")
@needs("git")
def test_a_write_that_changes_no_time(cordon, driver):
    """Through a mapping, after another command's end found the file harmless."""
    if driver == "landlock" and os.geteuid() == 0:
        pytest.skip("cannot: user: git needs chmod, which root has not under landlock")
    with cordon.popen("run", "--json", "--driver", driver, "--", "python3", "-c", MAPPED, text=True) as other:
        wait_until(lambda: (cordon.workspace / "ready").exists() or other.poll() is not None)
        assert result(cordon, "--driver", driver, "--", "true")["exit_code"] == 0
        (cordon.workspace / "go").touch()
        told = json.loads(other.communicate(timeout=60)[0])
    assert told["exit_code"] == 0 and found(cordon, told) == ["r/.git/config"], told


def test_what_is_judged_beside_a_command_is_judged_again(cordon):
    """A hook that becomes executable after another command's end saw it."""
    line = "mkdir -p r/.git/hooks; cp /bin/true r/hook; chmod 644 r/hook; mv r/hook r/.git/hooks/update; sleep 0.2; touch ready; " \
           "while [ ! -e go ]; do sleep 0.02; done; chmod 755 r/.git/hooks/update"
    with cordon.popen("run", "--json", "-c", line, text=True) as other:
        wait_until(lambda: (cordon.workspace / "ready").exists())
        result(cordon, "--", "true")
        (cordon.workspace / "go").touch()
        told = json.loads(other.communicate(timeout=60)[0])
    assert found(cordon, told) == ["r/.git/hooks/update"], told


# ---- what is the owner's ---------------------------------------------------------------------------------------------

def test_the_owners_repositories_in_a_large_tree(cordon):
    """Made between two commands, where the search before the second does not come."""
    for number in range(6000):
        (cordon.workspace / f"d{number // 100}/e{number}").mkdir(parents=True)
    for _ in range(2):
        assert result(cordon, "--", "true")["exit_code"] == 0
    places = [f"d{number}/e{number * 100 + 33}" for number in range(0, 60, 6)]
    for place in places:
        subprocess.run(["git", "init", "-q", place], cwd=cordon.workspace, check=True)
        subprocess.run(["git", "config", "core.editor", "vim"], cwd=cordon.workspace / place, check=True)
    time.sleep(0.1)
    told = result(cordon, "-c", HOOK.format("d3/e399/new"))
    assert found(cordon, told) == ["d3/e399/new/.git/hooks/post-checkout"], told["denials"]
    assert all("vim" in (cordon.workspace / place / ".git/config").read_text() for place in places)


def test_an_old_directory_that_a_command_moves_is_no_owners(cordon):
    """Its files are older than the command; that it lies there is not."""
    for number in range(6000):
        (cordon.workspace / f"d{number // 100}/e{number}").mkdir(parents=True)
    told = result(cordon, "-c", "mkdir -p d7/e733/prep/sub/git/hooks && cp /bin/true d7/e733/prep/sub/git/hooks/update")
    assert found(cordon, told) == [], told
    result(cordon, "--", "true")
    told = result(cordon, "-c", "mv d7/e733/prep/sub/git d7/e733/prep/sub/.git && mv d7/e733/prep d9/e933/there")
    assert found(cordon, told) == ["d9/e933/there/sub/.git/hooks/update"], told["denials"]


@needs("bwrap")
def test_an_old_file_that_becomes_a_hook(cordon):
    """In a directory that the search before the command does not come to, and whose own times tell nothing."""
    for number in range(6000):
        (cordon.workspace / f"d{number // 100}/e{number}").mkdir(parents=True)
    for _ in range(2):
        result(cordon, "--", "true")
    hooks = [cordon.workspace / f"d{number}/e{number * 100 + 55}/.git/hooks" for number in range(0, 60, 6)]
    for place in hooks:
        place.mkdir(parents=True)
        (place / "update").write_text("#!/bin/sh\n")
        (place / "own").write_text("#!/bin/sh\n")
        (place / "own").chmod(0o755)
    time.sleep(0.1)
    told = result(cordon, "--driver", "bwrap", "-c", "chmod 755 d*/e*/.git/hooks/update")
    assert told["exit_code"] == 0 and len(found(cordon, told)) == len(hooks), told["denials"]
    assert all((place / "own").exists() and not (place / "update").exists() for place in hooks)


def test_a_path_that_is_too_long_leaves_nothing_pending(cordon):
    deep = "import os\nfor _ in range(20):\n    os.mkdir('n' * 240)\n    os.chdir('n' * 240)"
    told = result(cordon, "--", "python3", "-c", deep)
    assert told["exit_code"] == 0 and "searched in part only" in str(told["denials"]), told
    own = owners_hook(cordon)
    for _ in range(2):
        told = result(cordon, "--", "true")
        assert own.exists() and found(cordon, told) == [], told["denials"]


def test_much_among_hooks_hides_none(cordon):
    filler = "mkdir -p a/.git/hooks; (cd a/.git/hooks; seq 3000 | xargs touch); mkdir -p z/objects z/refs z/hooks; " \
             "echo 'ref: refs/heads/main' > z/HEAD; echo > z/hooks/pre-receive"
    assert found(cordon, result(cordon, "-c", filler)) == []
    told = result(cordon, "-c", "chmod 755 z/hooks/pre-receive")
    assert found(cordon, told) == ["z/hooks/pre-receive"], told["denials"]


@needs("git")
def test_the_owners_files_stay_when_time_runs_out(cordon):
    """So many large configurations that they take longer than there is time."""
    for words in (["init", "-q", "inner"], ["-C", "inner", "commit", "-q", "--allow-empty", "-m", "x"],
                  ["init", "-q", "."], ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./inner",
                                        "sub"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words], cwd=cordon.workspace,
                       check=True)
    many = """
import os
for number in range(60):
    os.makedirs(f"y/{number}/.git")
    open(f"y/{number}/.git/config", "w").write('[remote "a"]\\n' + ' url=x\\n' * 140000)
"""
    told = result(cordon, "--", "python3", "-c", many, timeout=120)
    assert told["exit_code"] == 0, told
    assert (cordon.workspace / "sub/.git").exists(), told["denials"][:3]


# ---- crowds ----------------------------------------------------------------------------------------------------------

def test_a_crowd_of_harmless_names_hides_nothing(cordon):
    """More policies than a table of names once held, and a hook behind them."""
    crowd = """
import os
for number in range(34000):
    os.mkdir(f"a{number}"); open(f"a{number}/.cordon.toml", "w").close()
os.makedirs("z/.git/hooks"); open("z/.git/hooks/post-checkout", "w").write("#!/bin/sh\\n"); os.chmod("z/.git/hooks/post-checkout", 0o755)
"""
    told = result(cordon, "--disk", "4G", "--", "python3", "-c", crowd, timeout=120)
    assert told["exit_code"] == 0, told
    hook = cordon.workspace / "z/.git/hooks/post-checkout"
    for _ in range(5):
        if not hook.exists():
            break
        told = result(cordon, "--", "true", timeout=120)
    assert not hook.exists(), told["denials"][:3]


@drivers("namespaces", "bwrap", "landlock")
def test_the_check_at_the_end_comes_before_the_result(cordon, driver):
    """In a tree of many directories, each time."""
    for number in range(1500):
        (cordon.workspace / f"d{number // 40}/e{number}").mkdir(parents=True)
    result(cordon, "--driver", driver, "--", "true")
    for number in range(10):
        place = f"d{number * 3}/e{number * 120 + 7}/r"
        told = result(cordon, "--driver", driver, "-c", HOOK.format(place))
        assert found(cordon, told) == [f"{place}/.git/hooks/post-checkout"], told["denials"]


@drivers("namespaces", "bwrap", "landlock")
def test_repositories_under_other_names(cordon, driver):
    """git takes a directory for a repository by what lies in it."""
    line = "mkdir -p a/b/store/objects a/b/store/refs a/b/store/hooks && echo 'ref: refs/heads/main' > a/b/store/HEAD && " \
           f"printf '{EVIL}' >> a/b/store/config && cp /bin/true a/b/store/hooks/update"
    told = result(cordon, "--driver", driver, "-c", line)
    assert found(cordon, told) == ["a/b/store/config", "a/b/store/hooks/update"], told
    line = "mkdir -p plain/objects plain/refs plain/hooks && echo 'ref: refs/heads/main' > plain/HEAD && echo '[core]' > plain/config"
    told = result(cordon, "--driver", driver, "-c", line)
    assert told["exit_code"] == 0 and told["denials"] == [], told


@drivers("namespaces", "bwrap", "landlock")
def test_other_version_control(cordon, driver):
    line = "mkdir -p a/.hg a/.jj/repo b/.hg && printf '[hooks]\\nupdate = evil\\n' > a/.hg/hgrc && " \
           "printf '[ui]\\npager = \"evil\"\\n' > a/.jj/repo/config.toml && printf '[paths]\\ndefault = x\\n' > b/.hg/hgrc"
    told = result(cordon, "--driver", driver, "-c", line)
    assert found(cordon, told) == ["a/.hg/hgrc", "a/.jj/repo/config.toml"], told["denials"]
    assert (cordon.workspace / "b/.hg/hgrc").exists()


# ---- a filesystem that is full ---------------------------------------------------------------------------------------

FILL = "dd if=/dev/zero of={0}/fill bs=64k 2>/dev/null; for n in $(seq 64); do echo x > {0}/fill$n; done; true"


@contextlib.contextmanager
def small(kind, size_mb=24):
    """A small filesystem that holds cordon's data and the workspace."""
    with tempfile.TemporaryDirectory(prefix="cordon-small-") as place:
        os.chmod(place, 0o755)
        root = pathlib.Path(place) / "root"
        root.mkdir()
        if kind == "tmpfs":
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=1777", "none", root], check=True)
        else:
            image = pathlib.Path(place) / "image"
            with open(image, "wb") as file:
                file.truncate(size_mb << 20)
            subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
            subprocess.run(["mount", "-o", "loop", image, root], check=True)
            os.chmod(root, 0o1777)
        try:
            yield root
        finally:
            subprocess.run(["umount", "-l", root], check=True)


@needs("root")
@pytest.mark.parametrize("kind", ["tmpfs", pytest.param("ext4", marks=missing("loop-ext4"))])
@pytest.mark.parametrize("user", [0, 61234])
@pytest.mark.parametrize("way", ["one-off", "session"])
def test_a_full_filesystem_keeps_nothing_from_being_judged(kind, user, way):
    with small(kind) as root:
        cordon = Cordon(root / "workspace", root / "data")
        for place in (cordon.workspace, cordon.data):
            place.mkdir()
            os.chown(place, user, user)
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        cordon.argv = lambda *words: [*become, *Cordon.argv(cordon, *words)]
        if way == "session":
            open_session(cordon)
        assert result(cordon, *WAYS[way], "--", "true")["denials"] == []
        told = result(cordon, *WAYS[way], "-c", PLANT + "; " + FILL.format("."))
        assert told["exit_code"] == 0 and os.statvfs(root).f_bavail == 0, told
        assert found(cordon, told) == PLANTED, told["denials"]
        assert not any((cordon.workspace / name).exists() for name in PLANTED)
        for path in cordon.workspace.glob("fill*"):
            path.unlink()
        assert result(cordon, *WAYS[way], "--", "true")["denials"] == []


# ---- quarantine ------------------------------------------------------------------------------------------------------

def test_quarantine_is_bounded_in_number(cordon):
    result(cordon, "-c", PLANT)
    place = cordon.data / "cordon/quarantine"
    for number in range(130):
        (place / f"0100000000000000000000{number:04d}").mkdir()
    told = result(cordon, "-c", PLANT)
    assert any("the oldest of what it held was removed" in denial["note"]
               for denial in told["denials"]), told["denials"]
    assert len(list(place.iterdir())) <= 131


def test_quarantine_is_bounded_in_size(cordon):
    told = result(cordon, "-c", PLANT + "; head -c 20000000 /dev/zero >> new/.git/hooks/post-checkout")
    assert notes(cordon, told)["new/.git/hooks/post-checkout"].endswith("removed: quarantine had no room for all of it")
    assert not (cordon.workspace / "new/.git/hooks/post-checkout").exists()
