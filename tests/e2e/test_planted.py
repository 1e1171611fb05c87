"""What commands leave behind to run later: by a second name, through another command's walls, by the ways git has to a
configuration, or in such numbers that nobody could tell. And git itself goes on working."""
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from lab import IS_ROOT, drivers, needs, result, rows_of
from conftest import wait_until

EVIL = "[core]\\n\\tfsmonitor = /evil\\n"
GIT = {"GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always",
       "GIT_CONFIG_KEY_1": "user.name", "GIT_CONFIG_VALUE_1": "x", "GIT_CONFIG_KEY_2": "user.email",
       "GIT_CONFIG_VALUE_2": "x@example.org"}
GIT_OPTIONS = [word for key, value in GIT.items() for word in ("--env", f"{key}={value}")]


def git(cordon, line, driver="namespaces"):
    told = result(cordon, "--driver", driver, *GIT_OPTIONS, "-c", line)
    assert told["exit_code"] == 0, (line, told["stderr"], told["denials"])
    return told


def noted(cordon, told):
    return {os.path.relpath(denial["what"], cordon.workspace): denial["note"] for denial in told["denials"]}


def moved(cordon, told):
    return sorted(name for name, note in noted(cordon, told).items() if note.endswith("moved to quarantine"))


# ---- what was there before -------------------------------------------------------------------------------------------

@needs("mount-namespace")
def test_a_second_name_for_what_is_new(cordon):
    told = result(cordon, "-c", "git init -q r && ln r/.git/config c && echo x > r/.git/hooks/pre-commit && "
                  "ln r/.git/hooks/pre-commit h")
    assert moved(cordon, told) == ["r/.git/config", "r/.git/hooks/pre-commit"]


@drivers()
def test_a_second_name_for_what_is_old(cordon, driver):
    """Not of a command's making, but a command can write by it."""
    subprocess.run(["git", "init", "-q", cordon.workspace / "r"], check=True)
    os.link(cordon.workspace / "r/.git/config", cordon.workspace / "c")
    assert noted(cordon, result(cordon, "--driver", driver, "-c", "true")) == {}
    told = result(cordon, "--driver", driver, "-c", f"printf '{EVIL}' >> c")
    # Nothing but namespaces holds where probes hold: a driver that judges nothing says so.
    if told["isolation"].get("protected_names") != "none":
        assert moved(cordon, told) == ["r/.git/config"]
        assert not (cordon.workspace / "r/.git/config").exists()


@drivers()
@pytest.mark.parametrize("deny", ["**", "**/.git", "hooks"])
def test_what_a_project_masks_is_judged_all_the_same(cordon, driver, deny):
    """A project's file can only narrow: it must not hide from the check what a command plants."""
    (cordon.workspace / ".cordon.toml").write_text(f'[capabilities]\ndeny = ["{deny}"]\n')
    # Made executable, since root's commands under landlock change no mode.
    make = "import os; os.open('r/.git/hooks/pre-commit', os.O_CREAT | os.O_WRONLY, 0o755)"
    told = result(cordon, "--driver", driver, "-c", f'git init -q r; /usr/bin/python3 -c "{make}"')
    if told["isolation"].get("protected_names") != "none":
        assert moved(cordon, told) == ["r/.git/hooks/pre-commit"], told["denials"]
    # What was there before is not of a command's making.
    own = cordon.workspace / "own/.git/hooks/pre-commit"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    told = result(cordon, "--driver", driver, "-c", "mkdir -p new/.git/hooks; true")
    assert moved(cordon, told) == [] and own.exists(), told["denials"]


@needs("mount-namespace")
def test_walls_that_another_command_took_away(cordon):
    """A mount point that is renamed over in one namespace is gone from all of them."""
    there = cordon.workspace.joinpath
    first = cordon.popen("run", "-c", "git init -q r; touch ready; while [ ! -e up ]; do sleep .02; done; "
                         "cp r/.git/config c; mv c r/.git/config; touch swapped")
    assert wait_until(there("ready").exists)
    told = result(cordon, "-c", "touch up; while [ ! -e swapped ]; do sleep .02; done; sleep .5; "
                  f"printf '{EVIL}' >> r/.git/config && echo written")
    assert first.wait(10) == 0
    assert told["stdout"] == "written\n" and moved(cordon, told) == ["r/.git/config"], told


@needs("mount-namespace")
def test_another_command_takes_a_masked_directory_away(cordon):
    """And the mask with it: what is made there anew is judged."""
    first = cordon.popen("run", "-c", "mkdir .env.d; touch ready; while [ ! -e up ]; do sleep .02; done; rmdir .env.d; touch away")
    assert wait_until((cordon.workspace / "ready").exists)
    hook = ".env.d/r/.git/hooks/post-checkout"
    found = result(cordon, "-c", f"touch up; while [ ! -e away ]; do sleep .02; done; mkdir -p .env.d/r/.git/hooks; "
                                 f"echo '#!/bin/sh' > {hook}; chmod +x {hook}")
    assert first.wait(60) == 0 and found["exit_code"] == 0
    # On a machine too busy to copy it in time, its whole directory goes.
    [denial] = found["denials"]
    assert denial["what"] in (str(cordon.workspace / hook), str((cordon.workspace / hook).parent))
    assert not (cordon.workspace / hook).exists()


SWAP = """
import ctypes, os, sys
call, (a, b) = ctypes.CDLL(None).syscall, map(os.fsencode, sys.argv[1:])
print("begun", flush=True)
while True: call(%d, -100, a, -100, b, 2)
""" % {"x86_64": 316, "aarch64": 276}[os.uname().machine]


@needs("mount-namespace")
def test_a_grant_that_is_swapped(cordon, tmp_path):
    """Where names are looked for is what was mounted, or nothing runs."""
    for name in ("a/tree", "b/tree"):
        (tmp_path / name).mkdir(parents=True)
    swapper = subprocess.Popen([sys.executable, "-c", SWAP, tmp_path / "a", tmp_path / "b"], stdout=subprocess.PIPE)
    try:
        assert swapper.stdout.readline()
        for _ in range(30):
            done = cordon("run", "--json", "--write", tmp_path / "a/tree", "-c", f"cd {tmp_path}/a/tree && "
                          "mkdir -p r/.git/hooks && cp /bin/true r/.git/hooks/pre-commit")
            told = json.loads(done.stdout)
            assert told.get("exit_code") != 0 or "pre-commit" in str(told["denials"]), told
            swapper.send_signal(signal.SIGSTOP)
            for name in ("a/tree/r", "b/tree/r"):
                shutil.rmtree(tmp_path / name, ignore_errors=True)
            swapper.send_signal(signal.SIGCONT)
    finally:
        swapper.kill()
        swapper.wait()


# ---- git's ways to a configuration -----------------------------------------------------------------------------------

WAYS = [
    ("commondir", "echo ../../evil > .git/commondir", [".git/commondir"]),
    ("config.worktree", f"printf '{EVIL}' > .git/config.worktree", [".git/config.worktree"]),
    ("a file", "mkdir g; echo 'gitdir: ../evil' > g/.git", ["g/.git"]),
    ("a link", "mkdir g; ln -s ../evil g/.git", ["g/.git"]),
    ("a module", f"git init -q --bare .git/modules/a/m; printf '{EVIL}' >> .git/modules/a/m/config; mkdir m; "
     "echo 'gitdir: ../.git/modules/a/m' > m/.git", [".git/modules/a/m/config", "m/.git"]),
    ("a module that is a link", "mkdir -p .git/modules m; ln -s ../../evil .git/modules/m; "
     "echo 'gitdir: ../.git/modules/m' > m/.git", [".git/modules/m", "m/.git"]),
    ("modules that are elsewhere", "mkdir all; cp -r evil all/m; ln -s ../all .git/modules",
     [".git/modules", "all/m/config"]),
    ("a module in a masked directory",
     f"git init -q --bare .git/modules/.env; printf '{EVIL}' >> .git/modules/.env/config; "
     "mkdir m; echo 'gitdir: ../.git/modules/.env' > m/.git", [".git/modules/.env/config", "m/.git"]),
    ("a module that is called as branches are", f"git init -q --bare .git/modules/refs/heads/m; printf '{EVIL}' >> "
     ".git/modules/refs/heads/m/config; echo > .git/modules/refs/heads/m/hooks/update; chmod +x "
     ".git/modules/refs/heads/m/hooks/update",
     [".git/modules/refs/heads/m/config", ".git/modules/refs/heads/m/hooks/update"]),
    ("a module whose tree is a link", "git init -q --bare .git/modules/m; ln -s /tmp esc; mkdir m; "
     "git -C .git/modules/m config core.bare false; git -C .git/modules/m config core.worktree ../../../esc; "
     "echo 'gitdir: ../.git/modules/m' > m/.git", [".git/modules/m/config", "m/.git"]),
    ("the directory above", "rm .git/HEAD; cp -r .git/objects .git/refs .; echo 'ref: refs/heads/main' > HEAD; "
     f"printf '{EVIL}' > config", ["config"]),
    ("a working tree", "mkdir -p .git/worktrees/w w; echo ../../../evil > .git/worktrees/w/commondir; "
     "echo 'gitdir: ../.git/worktrees/w' > w/.git", [".git/worktrees/w/commondir", "w/.git"]),
    ("a link that git writes to",
     "mkdir -p .git/logs; ln -s /etc/motd .git/COMMIT_EDITMSG; ln -s ../../HEAD .git/logs/HEAD",
     [".git/COMMIT_EDITMSG", ".git/logs/HEAD"]),
]


@needs("mount-namespace")
@pytest.mark.parametrize("line, names", [pytest.param(line, names, id=way) for way, line, names in WAYS])
def test_ways_to_a_configuration(cordon, line, names):
    subprocess.run(["git", "init", "-q", cordon.workspace], check=True)
    told = result(cordon, "-c", f"git init -q --bare evil; printf '{EVIL}' >> evil/config; " + line)
    assert moved(cordon, told) == sorted([*names, "evil/config"]), told["denials"]
    again = result(cordon, "-c", "true")
    assert again["exit_code"] == 0 and again["denials"] == []


@drivers()
def test_a_grant_that_is_a_repository(cordon, driver, tmp_path):
    """As a working tree that lies elsewhere needs it: what is protected in a `.git` is so by its whole path."""
    main, tree = tmp_path / "main", cordon.workspace / "tree"
    for line in (["init", "-q", main], ["-C", main, "commit", "-q", "--allow-empty", "-m", "a"],
                 ["-C", main, "worktree", "add", "-q", tree]):
        subprocess.run(["git", *line], env={**os.environ, **GIT}, check=True)
    own = (main / ".git/config").read_text()
    grant = ["--driver", driver, "--write", main / ".git", *GIT_OPTIONS]
    told = result(cordon, *grant, "-c", "cd tree && git commit -q --allow-empty -m b && git branch side")
    assert told["exit_code"] == 0 and told["denials"] == [], (told["stderr"], told["denials"])
    told = result(cordon, *grant, "-c", f"cd {main}/.git; mkdir -p modules/x; printf '{EVIL}' > modules/x/config; "
                  f"printf '{EVIL}' > worktrees/tree/config.worktree; ln -s /etc/motd FETCH_HEAD; git config pull.ff only")
    if told["isolation"].get("protected_names") == "none":
        return
    gone = ["FETCH_HEAD", "modules/x/config", "worktrees/tree/config.worktree"]
    taken = [os.path.relpath(denial["what"], main / ".git") for denial in told["denials"]
             if "quarantine" in denial["note"]]
    assert sorted(taken) == gone, told["denials"]
    assert driver != "namespaces" or (main / ".git/config").read_text() == own + "[pull]\n\tff = only\n"  # which is harmless
    told = result(cordon, *grant, "-c",
                  f"cd {main}/.git; rm -f worktrees/tree/commondir; echo ../../st > worktrees/tree/commondir")
    assert driver == "namespaces" or "commondir" in str(told["denials"])
    assert driver != "namespaces" or (main / ".git/worktrees/tree/commondir").read_text() == "../..\n"


@drivers("namespaces", "bwrap", *([] if IS_ROOT else ["landlock"]))
def test_a_working_tree_in_another_grant(cordon, driver, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    if IS_ROOT:
        other.chmod(0o777)
    told = result(cordon, "--driver", driver, "--write", other, *GIT_OPTIONS, "-c",
                  f"git init -q r && git -C r commit -q --allow-empty -m a && git -C r worktree add -q {other}/one && "
                  f"git init -q {other}/s && git -C {other}/s commit -q --allow-empty -m a && "
                  f"git -C {other}/s worktree add -q $PWD/two && mkdir {other}/bad && echo 'gitdir: {other}/r' > {other}/bad/.git")
    assert told["exit_code"] == 0, told["stderr"]
    assert [denial["what"] for denial in told["denials"]
            if "quarantine" in denial["note"]] == [f"{other}/bad/.git"], told["denials"]
    told = result(cordon, "--driver", driver, "--write", other, *GIT_OPTIONS, "-c",
                  f"git -C {other}/one commit -q --allow-empty -m b && git -C two commit -q --allow-empty -m b")
    assert told["exit_code"] == 0 and "quarantine" not in str(told["denials"]), told


@needs("mount-namespace")
@pytest.mark.parametrize("inner", [False, True])
def test_a_grant_within_another(cordon, inner):
    """What lies in both is judged once."""
    outer, sub = cordon.workspace, cordon.workspace / "sub"
    sub.mkdir()
    if IS_ROOT:
        sub.chmod(0o777)
    grants = ["--workspace", sub, "--write", outer] if inner else ["--write", sub]
    told = result(cordon, *grants, *GIT_OPTIONS, "-c",
                  f"cd {outer}; git init -q; git commit -q --allow-empty -m a; git worktree add -q "
                  f"sub/wt; mkdir -p sub/p/.git/hooks; printf '{EVIL}' > sub/p/.git/config; ln -s /x sub/p/.git/index; "
                  "cp /bin/true sub/p/.git/hooks/update")
    assert told["exit_code"] == 0, told["stderr"]
    whats = [os.path.relpath(denial["what"], outer) for denial in told["denials"]]
    assert len(set(whats)) == len(whats), told["denials"]
    assert moved(cordon, told) == ["sub/p/.git/config", "sub/p/.git/hooks/update", "sub/p/.git/index"]


# For root, Landlock alone refuses chmod(), which git needs.
@drivers("namespaces", "bwrap", *([] if IS_ROOT else ["landlock"]))
def test_git_goes_on_working(cordon, driver):
    told = git(cordon, "set -e; git init -q lib; cd lib; echo 1 > a; git add a; git commit -qm a; git branch config; cd ..; "
               "git init -q top; cd top; for at in sub/lib config src/hooks; do git submodule --quiet add $PWD/../lib $at; "
               "done; git commit -qm b; git worktree add -q ../tree; "
               "git -C ../tree submodule --quiet update --init sub/lib; cd ..; git clone -q lib copy", driver)
    assert moved(cordon, told) == []
    for place in ("top", "top/sub/lib", "top/config", "top/src/hooks", "tree", "copy"):
        told = git(cordon, f"cd {place} && echo 2 > new && git add new && git commit -qm new", driver)
        assert moved(cordon, told) == []
    # A branch may bear such a name, and change.
    told = git(cordon, "cd top/sub/lib && git branch -f hooks HEAD && git update-ref refs/heads/config HEAD && "
               "git update-ref refs/heads/config HEAD~", driver)
    assert moved(cordon, told) == []
    told = git(cordon, "cd top && git worktree add -q ../second && git -C ../second log --oneline", driver)
    assert moved(cordon, told) == []
    told = git(cordon, "git clone -q --recurse-submodules top whole && git -C whole/sub/lib status -s", driver)
    assert moved(cordon, told) == [] and told["stdout"] == ""
    told = git(cordon, "set -e; git init -q day; cd day; commit() { echo $1 > $1; git add $1; git commit -qm $1; }; commit a; "
               "git checkout -qb side; commit b; git checkout -q -; commit c; git rebase -q HEAD side; git checkout -q -; "
               "git merge -q --no-ff -m m side; echo d > a; git stash -q; git stash pop -q; git commit -qam d; "
               "git submodule --quiet add $PWD/../lib s; git commit -qm s; git submodule --quiet deinit s; "
               "git submodule --quiet update --init s; git worktree add -q ../gone; git worktree remove ../gone; git gc -q", driver)
    assert moved(cordon, told) == []


# ---- numbers ---------------------------------------------------------------------------------------------------------

@needs("mount-namespace")
def test_quarantine_has_room_for_a_little(cordon):
    """One file with many names, or with holes, is copied for each of them, which no limit of the command's counts."""
    make = "import os; os.makedirs('p/.git/hooks'); os.truncate(os.open('big', os.O_CREAT | os.O_RDWR, 0o755), 1 << 40); " \
        "[os.link('big', f'p/.git/hooks/hook{n}') for n in range(8)]"
    told = result(cordon, "--", "python3", "-c", make)
    assert len(told["denials"]) == 8 and not list((cordon.workspace / "p/.git/hooks").iterdir()), told
    assert any("no room" in denial["note"] for denial in told["denials"])
    kept = sum(path.stat().st_blocks * 512 for path in (cordon.data / "cordon/quarantine").rglob("*"))
    assert kept <= 17 << 20


def test_denials_without_number(cordon):
    """They are counted, the harmful ones come first, and the row is in the ledger."""
    plant = f"""
import os
for i in range(3000):
    place = "d%d%s/.git" % (i, "\\x01" * 200)
    os.makedirs(place)
    open(place + "/config", "w").write("{EVIL}" if i == 2999 else "[core]\\n")
"""
    # The most that a child ever held is inherited by the next one, so it is asked of a small parent.
    measure = "import resource, subprocess, sys; subprocess.run(sys.argv[1:]); " \
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", measure, *cordon.argv("run", "--json", "--", "python3", "-c", plant)],
                          cwd=cordon.workspace, env=cordon.env, capture_output=True, text=True, timeout=60)
    told, most = done.stdout.splitlines()
    told = json.loads(told)
    assert told["exit_code"] == 0, (line, told["stderr"], told["denials"])
    assert len(told["denials"]) == 256
    assert told["denials"][0]["note"].endswith("moved to quarantine")
    assert (told["denials"][-1]["what"], told["denials"][-1]["note"]) == ("and more", "2745 that are not listed")
    assert [row["row"] for row in rows_of(cordon, told["audit_id"])] == ["intent", "result"]
    assert int(most) < 100 * 1024, f"{most} KiB"


@needs("mount-namespace")
def test_what_could_not_be_looked_at_is_said(cordon):
    told = result(cordon, "-c", "mkdir -p " + "d/" * 600)
    [denial] = told["denials"]
    assert (denial["what"], denial["wall"]) == (str(cordon.workspace), "protected_names")
    assert denial["note"].startswith("1 directories searched in part only") and ", such as d/d/d/" in denial["note"]


@needs("mount-namespace")
def test_links_to_directories(cordon):
    """What they lead to is covered as what it is; but not the directory they lie in."""
    cordon.workspace.joinpath("src").mkdir()
    cordon.workspace.joinpath("src/file").write_text("here")
    assert result(cordon, "-c",
                  "ln -s src a.pem; ln -s . b.pem; mkdir k; ln -s ../src k/.env; ln -s .. k/c.pem")["exit_code"] == 0
    told = result(cordon, "-c", "ls; touch new; ls src || true")
    assert told["exit_code"] == 0 and "k" in told["stdout"].split() and "file" not in told["stdout"].split(), told


# ---- what is hidden from the check -----------------------------------------------------------------------------------

PLANT = "mkdir -p {0}/.git/hooks && printf '#!/bin/sh\\n' > {0}/.git/hooks/post-checkout && " \
        "chmod 755 {0}/.git/hooks/post-checkout"


@needs("mount-namespace")
def test_a_link_that_was_masked_covered_nothing(cordon):
    """Neither its name nor what another link leads to is out of a command's reach."""
    assert noted(cordon, result(cordon, "-c", "ln -s nowhere x.pem; ln -s nowhere y.pem")) == {}
    told = result(cordon, "-c", "rm x.pem; " + PLANT.format("x.pem/proj") + "; mkdir x.pem/a; "
                  + PLANT.format("x.pem/a/proj") +
                  "; chmod 311 x.pem/a x.pem")
    assert moved(cordon, told) == ["x.pem/a/proj/.git/hooks/post-checkout", "x.pem/proj/.git/hooks/post-checkout"]


@needs("mount-namespace")
def test_much_behind_a_mask(cordon):
    """What is too deep there is said, and what was found beside it counts."""
    told = result(cordon, "-c", "mkdir -p b.pem/" + "d/" * 600 + "; " + PLANT.format("b.pem/p"))
    assert moved(cordon, told) == ["b.pem/p/.git/hooks/post-checkout"]
    assert noted(cordon, told)["."].startswith("1 directories searched in part only: ")


@needs("mount-namespace")
@pytest.mark.parametrize("mode", ["311", "000", "600"])
def test_directories_that_a_command_closed(cordon, mode):
    place = "/".join("abcdefghijkl")
    told = result(cordon, "-c", PLANT.format(place) + f"; find a -depth -type d -exec chmod {mode} {{}} ';'")
    assert moved(cordon, told) == [f"{place}/.git/hooks/post-checkout"]


@needs("mount-namespace")
def test_a_root_that_a_command_closed(cordon, tmp_path):
    """Its command ran, which the ledger has, and every tree is judged."""
    other = tmp_path / "other"
    other.mkdir()
    for name, closed in (("p", cordon.workspace), ("q", other)):
        plant = PLANT.format(name)
        told = result(cordon, "--write", other, "-c", f"{plant}; cd {other}; {plant}; chmod 311 {closed}")
        assert moved(cordon, told) == sorted(os.path.relpath(place / name / ".git/hooks/post-checkout",
                                                             cordon.workspace)
                                             for place in (cordon.workspace, other))
        assert [row["row"] for row in rows_of(cordon, told["audit_id"])] == ["intent", "result"]
