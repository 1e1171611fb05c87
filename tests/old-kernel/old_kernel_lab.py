"""What these tests share: a machine that lacks something, put around the program under test; a workspace with something
to lose; and the two outcomes that are allowed: the right result with the right `isolation`, or the right refusal.

The program is named by CORDON_BIN or CORDON; otherwise it is build/cordon beside the sources. The tests pass as root
and as an ordinary user."""
import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ.get("CORDON_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "tests/support"))
from runner.groups import members, own_group  # noqa: E402, F401

PROGRAM = os.environ.get("CORDON_BIN") or os.environ.get("CORDON") or str(ROOT / "build/cordon")
HERE = pathlib.Path(__file__).resolve().parent
IS_ROOT = os.geteuid() == 0
ERROR_KEYS = {"class", "boundary", "step", "reason", "subject", "remediation", "grant", "setting", "platform",
              "retriable", "audit_id"}
MOUNT_API = ["fsopen", "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr"]
NO_MOUNT_API = ",".join(f"{call}:ENOSYS" for call in MOUNT_API)

# Each tries something that a wall forbids and says its name if it got away with it; the last line is what must work.
FUNCTIONS = """
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
seen() { name=$1; shift; if "$@" 2>/dev/null | grep -q secret; then echo "$name"; fi; }
"""
# These touch nothing but the lab, so they may be seen to succeed without walls.
IN_THE_LAB = """
try read-only-grant sh -c 'echo x >"$1/planted"' - "$GIVEN"
try read-only-grant-file sh -c 'echo x >>"$1/kept"' - "$GIVEN"
try outside-seen ls "$OUTSIDE"
try outside-above ls "/..$OUTSIDE"
seen masked-file cat .env
seen masked-deep cat src/deep/.env
seen masked-link cat src/linked
seen masked-directory cat .ssh/id_rsa
seen masked-grant cat "$GIVEN/.env"
try masked-removed rm src/deep/.env
seen masked-parent sh -c 'mv src/deep src/moved; cat src/moved/.env'
try masked-moved mv .env moved
try protected-config sh -c 'echo x >>.git/config'
try protected-hook sh -c 'echo x >.git/hooks/post-commit'
try protected-removed rm -r .git/hooks
try protected-parent mv .git moved-git
"""
# These would change the machine if there were no wall. They are never run without.
ON_THE_MACHINE = """
try base-file sh -c ': >/usr/cordon-planted'
try base-root mkdir /cordon-planted
try base-etc sh -c ': >/etc/cordon-planted'
try proc-setting sh -c 'read same </proc/sys/vm/swappiness && echo $same >/proc/sys/vm/swappiness'
try proc-keys grep -q . /proc/keys
try remounted mount -o remount,rw,bind "$GIVEN"
try mounted mount -t tmpfs tmpfs src
try uncovered umount .env
"""
WORKS = "echo written >made && cat src/plain made"


@functools.lru_cache(None)
def lack(name):
    """Why this machine cannot, or None; in the form that the runner asks the probe about again."""
    done = subprocess.run([ROOT / "tests/support/probe", name], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    assert done.returncode != 2, f"no probe {name}"
    return f"cannot: {name}: {done.stdout.strip()}" if done.returncode else None


def needs(*names):
    for name in names:
        if lack(name):
            pytest.skip(lack(name))


@pytest.fixture(scope="session")
def without(tmp_path_factory):
    """without("clone3:ENOSYS") is what comes before a command that is to have no clone3."""
    needs("seccomp", "gcc")
    path = tmp_path_factory.mktemp("without") / "without"
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", path, HERE / "without.c"],
                   check=True)
    return lambda rules: [str(path), rules, "--"]


class Lab:
    """A workspace with secrets and protected names, a directory that is granted read-only, one that is not granted."""
    def __init__(self, place):
        self.workspace, self.given, self.outside = place / "workspace", place / "given", place / "outside"
        self.data = place / "data"
        for path, text in [("src/plain", "plain\n"), (".env", "secret\n"), ("src/deep/.env", "secret\n"),
                           (".ssh/id_rsa", "secret\n"), ("kept/key", "secret\n"), (".git/config", "[core]\n"),
                           (".git/hooks/post-commit", "#!/bin/sh\n"), ("../given/kept", "kept\n"),
                           ("../given/.env", "secret\n"), ("../outside/file", "secret\n")]:
            (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / path).write_text(text)
        (self.workspace / ".env.link").symlink_to("kept/key")  # a denied name that leads to another place in the tree
        (self.workspace / "src/linked").symlink_to("../kept/key")
        self.env = {**os.environ, "XDG_DATA_HOME": str(self.data)}

    def run(self, before, *words, **options):
        argv = [*before, PROGRAM, *(os.fspath(word) for word in words)]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              cwd=self.workspace, env=self.env, **options)

    def rows(self):
        files = sorted((self.data / "cordon/ledger").glob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]

    def result(self, before, *words):
        """The result of a command that must have run; its row in the ledger says the same of the walls."""
        done = self.run(before, "run", "--json", *words)
        document = json.loads(done.stdout)
        assert "error" not in document, document
        assert done.returncode == document["exit_code"], done
        row = self.rows()[-1]
        assert (row["row"], row["id"]) == ("result", document["audit_id"]) and row["driver"] == document["driver"]
        assert row["isolation"] == document["isolation"]
        return document

    def attempts(self, before, *words, script=IN_THE_LAB + ON_THE_MACHINE):
        """(what got through, the result) of the attempts above."""
        settings = ["--env", f"GIVEN={self.given}", "--env", f"OUTSIDE={self.outside}", "--read", self.given]
        document = self.result(before, *settings, *words, "-c", FUNCTIONS + script + WORKS)
        lines = document["stdout"].splitlines()
        assert lines[-2:] == ["plain", "written"], document
        return lines[:-2], document

    def refused(self, before, *words, status=125):
        """The error of a run that must not have happened: for people, as JSON, and in the ledger."""
        human = self.run(before, "run", *words)
        assert (human.returncode, human.stdout) == (status, ""), human
        done = self.run(before, "run", "--json", *words)
        assert (done.returncode, done.stderr) == (status, ""), done
        error = json.loads(done.stdout)["error"]
        assert set(error) == ERROR_KEYS
        assert error["reason"] in human.stderr and error["remediation"] in human.stderr
        rows = self.rows()
        assert (rows[-1]["row"], rows[-1]["id"]) == ("denial", error["audit_id"])
        assert rows[-1]["error"]["reason"] == error["reason"] and rows[-1]["error"]["class"] == error["class"]
        assert not any(row["row"] == "result" for row in rows if row["id"] == error["audit_id"])
        return error

    def unavailable(self, before, *words, boundary, names, fix):
        """The refusal that says: this machine cannot, for want of this, and here is the way out."""
        error = self.refused(before, *words, "--", "sh", "-c", "echo ran; echo x >ran")
        assert error["class"] == "spawn_sandbox_unavailable", error
        assert error["boundary"] == boundary, error
        assert names in f"{error['subject']}: {error['reason']}", error
        assert fix in error["remediation"], error
        assert not (self.workspace / "ran").exists()
        return error


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


@pytest.fixture(scope="session")
def usual(tmp_path_factory):
    """`isolation` on the machine as it is."""
    needs("mount-namespace")
    return Lab(tmp_path_factory.mktemp("usual")).result([], "--", "true")["isolation"]
