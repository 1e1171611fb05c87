"""Settings of git and operations in progress that a command leaves: what is not known to be harmless is moved to
quarantine and named, and everyday git leaves nothing that is."""
import os
import subprocess

import pytest

from lab import IS_ROOT, drivers, needs, result

OPTIONS = {"GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always",
           "GIT_CONFIG_KEY_1": "user.name", "GIT_CONFIG_VALUE_1": "x", "GIT_CONFIG_KEY_2": "user.email",
           "GIT_CONFIG_VALUE_2": "x@example.org", "GIT_EDITOR": "true"}
# For root, Landlock alone refuses chmod(), which git needs.
DRIVERS = ["namespaces", "bwrap", *([] if IS_ROOT else ["landlock"])]
BRANCHES = "set -e; git init -q -b main r; cd r; c() { echo $1 > $2; git add $2; git commit -qm \"$1\"; }; c 1 a; " \
    "git checkout -qb side; c 2 a; c 3 b; c 4 d; git checkout -q main; c 9 a; "


def run(cordon, line, driver="namespaces"):
    words = [word for key, value in OPTIONS.items() for word in ("--env", f"{key}={value}")]
    told = result(cordon, "--driver", driver, *words, "-c", line)
    assert told["exit_code"] == 0, (line, told["stderr"], told["denials"])
    return told


def outside(cordon, *words, cwd="r", **more):
    """As the user does it later, outside."""
    return subprocess.run(["git", *words], cwd=cordon.workspace / cwd, capture_output=True, text=True,
                          env={**os.environ, **OPTIONS, **more})


def moved(cordon, told):
    return {os.path.relpath(denial["what"], cordon.workspace): denial["note"] for denial in told["denials"]
            if denial["note"].endswith("moved to quarantine")}


# ---- settings --------------------------------------------------------------------------------------------------------

SETTINGS = [
    ("http.cookieFile", "/tmp/x", "would make git overwrite a file"),
    ("http.https://example.org.saveCookies", "true", "would make git overwrite a file"),
    ("diff.tool", "../../../../tmp/x", "would run a file as the settings of a tool"),
    ("merge.tool", "../x", "would run a file as the settings of a tool"),
    ("diff.guitool", "../x", "would run a file as the settings of a tool"),
    ("merge.guitool", "../x", "would run a file as the settings of a tool"),
    ("pull.twohead", "evil", "could run a program as a merge strategy"),
    ("branch.main.mergeOptions", "-s evil", "could run a program as a merge strategy"),
    ("format.outputDirectory", "/tmp", "is not a setting that is known to be harmless"),
    ("a.setting-of-the-future", "x", "is not a setting that is known to be harmless"),
    ("remote.origin.url", "foo::x", "would run a program"),
    ("remote.origin.url", "foo://x", "would run a program"),
    ("branch.main.remote", "ext::sh -c x", "is not a setting that is known to be harmless"),
    ("core.fsmonitor", "08", "would run a program"),
]


@drivers(*DRIVERS)
@pytest.mark.parametrize("key, value, why", SETTINGS)
def test_settings_of_a_new_repository(cordon, driver, key, value, why):
    told = run(cordon, f"git init -q r; git -C r config '{key}' '{value}'", driver)
    found = moved(cordon, told)
    assert list(found) == ["r/.git/config"], told["denials"]
    assert why in found["r/.git/config"]
    assert not (cordon.workspace / "r/.git/config").exists()


REDIRECTIONS = [
    ("remote set-url origin https://example.org/evil", "remote.origin.url would make git use another repository"),
    ("remote set-url --add origin https://example.org/evil", "remote.origin.url would make git use another repository"),
    ("remote set-url --push origin https://example.org/evil", "remote.origin.pushurl would make git push elsewhere"),
    ("config branch.main.remote evil", "branch.main.remote would make git use another remote"),
    ("config branch.main.pushRemote evil", "branch.main.pushremote would make git push elsewhere"),
    ("config remote.pushDefault evil", "remote.pushdefault would make git push elsewhere"),
    ("config url.https://example.org/evil.insteadOf https://", "insteadof would make git use another repository"),
    ("config core.worktree /tmp", "core.worktree would make git write elsewhere"),
    ("config remote.fork.url https://example.org/fork", None),
    ("branch --quiet --track other origin/main", None),
    ("config user.name x", None),
]


@drivers(*[driver for driver in DRIVERS if driver != "namespaces"])
@pytest.mark.parametrize("line, why", REDIRECTIONS)
def test_settings_of_a_repository_that_was_there(cordon, driver, line, why):
    """By a second name, since the configuration itself is read-only where a driver can do that."""
    for words in (["init", "-q", "-b", "main", "origin"], ["-C", "origin", "commit", "-q", "--allow-empty", "-m", "a"],
                  ["clone", "-q", "origin", "r"]):
        assert outside(cordon, *words, cwd=".").returncode == 0
    own = (cordon.workspace / "r/.git/config").read_text()
    os.link(cordon.workspace / "r/.git/config", cordon.workspace / "c")
    told = run(cordon, f"cp -r r copy; git -C copy {line}; cat copy/.git/config > c; rm -rf copy", driver)
    assert (cordon.workspace / "c").read_text() != own
    if why is None:
        assert moved(cordon, told) == {}, told["denials"]
    else:
        assert why in moved(cordon, told).get("r/.git/config", ""), told["denials"]


# ---- operations in progress ------------------------------------------------------------------------------------------

EVIL = "mkdir -p git-merge-x evil; printf '#!/bin/sh\\ntouch ran\\n' > evil/x; chmod +x evil/x; "
PICK = BRANCHES + EVIL + "git cherry-pick main..side > /dev/null 2>&1 || :; "
REBASE = BRANCHES + EVIL + "git rebase -q main side > /dev/null 2>&1 || :; "
OPERATIONS = {
    "sequencer": (PICK + "printf '[options]\\n\\tstrategy = x/../evil/x\\n' > .git/sequencer/opts", "sequencer/opts",
                  ["cherry-pick", "--continue"]),
    "strategy": (REBASE + "echo x/../evil/x > .git/rebase-merge/strategy", "rebase-merge/strategy",
                 ["rebase", "--continue"]),
    "exec": (REBASE + "echo 'exec evil/x' >> .git/rebase-merge/git-rebase-todo", "rebase-merge/git-rebase-todo",
             ["rebase", "--continue"]),
    "apply": (BRANCHES + "git rebase -q --apply main side > /dev/null 2>&1 || :; echo \"'--build-fake-ancestor=$PWD/ran'\" > "
              ".git/rebase-apply/apply-opt; echo new > a", "rebase-apply/apply-opt", ["rebase", "--continue"]),
}


@needs("mount-namespace")
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_in_progress(cordon, name):
    line, file, go_on = OPERATIONS[name]
    told = run(cordon, line)
    assert list(moved(cordon, told)) == [f"r/.git/{file}"], told["denials"]
    outside(cordon, "add", "a")
    outside(cordon, *go_on)
    assert not (cordon.workspace / "r/ran").exists()


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_would_run_it(cordon, name):
    """What the check is for: with no cordon around it, the same file does its work."""
    line, _, go_on = OPERATIONS[name]
    subprocess.run(["sh", "-c", line], cwd=cordon.workspace, env={**os.environ, **OPTIONS}, check=True)
    outside(cordon, "add", "a")
    outside(cordon, *go_on)
    assert (cordon.workspace / "r/ran").exists()


@needs("mount-namespace")
def test_operations_of_the_user(cordon):
    """What was in progress before, `exec` and all, and is not changed, stays."""
    subprocess.run(["sh", "-c", REBASE + "echo 'exec make' >> .git/rebase-merge/git-rebase-todo"], cwd=cordon.workspace,
                   env={**os.environ, **OPTIONS}, check=True)
    if IS_ROOT:
        subprocess.run(["chmod", "-R", "a+rwX", cordon.workspace / "r"], check=True)
    todo = cordon.workspace / "r/.git/rebase-merge/git-rebase-todo"
    assert moved(cordon, run(cordon, "cat r/.git/rebase-merge/git-rebase-todo > /dev/null")) == {}
    assert "exec make" in todo.read_text()
    assert list(moved(cordon, run(cordon, "echo 'exec evil' >> r/.git/rebase-merge/git-rebase-todo"))) == \
        ["r/.git/rebase-merge/git-rebase-todo"]


# ---- everyday git ----------------------------------------------------------------------------------------------------

EVERYDAY = [
    "git init -q new; git init -q --bare bare; git init -q -b trunk --object-format=sha256 other",
    "git clone -q r copy; git clone -q --depth 1 file://$PWD/r shallow; git clone -q --mirror r mirror; "
    "git clone -q --filter=blob:none --no-checkout file://$PWD/r partial; git clone -q --reference r r borrowed",
    "git init -q b; cd b; git remote add origin ../r; git remote add --mirror=push m https://example.org/x; "
    "git remote add -t main --no-tags t git@example.org:x; git fetch -q origin; git branch -q --track main origin/main; "
    "git checkout -q --track origin/side; git config branch.main.description x; git remote rename t u",
    "git init -q top; cd top; git submodule --quiet add $PWD/../r sub; git commit -qm a; git submodule --quiet update --init; "
    "git config submodule.recurse true; cd ..; git clone -q --recurse-submodules top whole",
    "git init -q c; cd c; for key in user.name author.email core.autocrlf pull.rebase push.default commit.gpgSign gc.auto "
    "init.defaultBranch advice.detachedHead rerere.enabled fetch.prune merge.conflictStyle core.quotePath; do "
    "git config $key false; done; git config core.fsmonitor true; git config credential.helper ''; git config merge.tool meld",
    "git clone -q r s; cd s; git sparse-checkout set --cone x; git sparse-checkout disable; "
    "git worktree add -q ../w -b w; cd ../w; git sparse-checkout set y; git config --worktree user.name x",
    "git clone -q r f; cd f; git maintenance run --quiet; git push -q -u origin HEAD:refs/heads/fresh",
    "git clone -q r o; cd o; git fetch -q origin side:side; git rebase -q main side > /dev/null 2>&1 || :; git status > /dev/null",
]


@drivers(*DRIVERS)
@pytest.mark.parametrize("line", EVERYDAY, ids=["init", "clone", "remote", "submodule", "config", "sparse", "push",
                                                "rebase"])
def test_everyday_git(cordon, driver, line):
    told = run(cordon, BRANCHES + "cd ..; " + line, driver)
    assert moved(cordon, told) == {}, told["denials"]
