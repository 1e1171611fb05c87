"""What the tests of whole behaviours share: the ledger as rows, what a command left behind, and the drivers that run
here."""
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(os.environ.get("CORDON_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "tests/support"))
from runner.groups import leaves, members, own_group  # noqa: E402, F401
from runner.orphans import adopt_orphans, living_children  # noqa: E402

PROBE = ROOT / "tests/support/probe"
IS_ROOT = os.geteuid() == 0
DRIVERS = ["namespaces", "landlock", "bwrap", "local"]


@functools.lru_cache(None)
def lack(name):
    """Why this machine cannot, or None. In the form that the runner checks again."""
    done = subprocess.run([PROBE, name], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode != 2, f"no probe {name}"
    return f"cannot: {name}: {done.stdout.strip()}" if done.returncode else None


def missing(*names):
    return [pytest.mark.skip(reason=lack(name)) for name in names if lack(name)]


def needs(*names):
    """Skips the test where the machine lacks one of these."""
    return lambda test: functools.reduce(lambda wrapped, mark: mark(wrapped), missing(*names), test)


def drivers(*names):
    """One case for each of these drivers, or for all; those that need what is not here are skipped."""
    probes = {"namespaces": ["mount-namespace"], "landlock": ["landlock"], "bwrap": ["bwrap"], "local": []}
    return pytest.mark.parametrize("driver", [pytest.param(name, marks=missing(*probes[name]))
                                              for name in names or DRIVERS])


# ---- the ledger ------------------------------------------------------------------------------------------------------

def ledger_files(cordon):
    return sorted((cordon.data / "cordon/ledger").glob("*.jsonl"))


def rows(cordon):
    """Every row, oldest first, but the one that every ledger begins with; each line must stand alone."""
    every = [json.loads(line) for path in ledger_files(cordon) for line in path.read_text().splitlines()]
    return [row for row in every if row["row"] != "begin"]


def rows_of(cordon, audit_id):
    return [row for row in rows(cordon) if row["id"] == audit_id]


def refused(cordon, *words, status=125, **options):
    """The error of a run that the walk refuses; its row is in the ledger, and it holds the very same error."""
    before = len(rows(cordon))
    error = cordon.refused(*words, status=status, **options)
    found = rows_of(cordon, error["audit_id"])
    # A command that could not be started was announced before.
    assert [row["row"] for row in found] in (["denial"], ["intent", "denial"]), found
    recorded = found[-1]["error"]
    assert {**recorded, "audit_id": error["audit_id"]} == error, (recorded, error)
    new = rows(cordon)[before:]
    assert sum(row["row"] == "denial" for row in new) == 2 and not any(row["row"] == "result" for row in new), new
    return error


def refused_unwalked(cordon, *words, status=125, **options):
    """The error of a request that is malformed, so that there is nothing to walk with and no row."""
    error = cordon.refused(*words, status=status, **options)
    assert error["audit_id"] == "" and rows(cordon) == [], error
    return error


def result(cordon, *words, **options):
    """The result object of a run that must not be refused."""
    done = cordon("run", "--json", *words, **options)
    value = json.loads(done.stdout)
    assert "error" not in value, value
    return value


# ---- programs that embed the library ---------------------------------------------------------------------------------

def embed(source, place, kind="static"):
    """The program made from `source` with the public header and the library alone."""
    build = pathlib.Path(os.environ.get("CORDON_BUILD") or ROOT / "build")
    program = pathlib.Path(place) / f"{source.stem}-{kind}"
    link = [build / "libcordon.a", "-ljansson", "-lsodium", "-lcares"] if kind == "static" else \
           ["-L", build, f"-Wl,-rpath,{build}", "-l:libcordon.so.0"]
    subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I",
                    ROOT / "include", source, "-o", program, *link], check=True)
    return program


# ---- what cannot be had ----------------------------------------------------------------------------------------------

@contextlib.contextmanager
def leased(path):
    """Whoever opens it waits, the kernel for him, until the lease is given back. Gives whether somebody does."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield lambda: fcntl.fcntl(file, fcntl.F_GETLEASE) != fcntl.F_WRLCK
    finally:
        os.close(file)
        signal.signal(signal.SIGIO, before)


# ---- what was left behind --------------------------------------------------------------------------------------------

def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


def running(marker):
    """The pids of processes that carry `marker` in their command line, whoever's child they are; not our own."""
    found = []
    for path in [pathlib.Path("/proc") / name / "cmdline" for name in os.listdir("/proc") if name.isdigit()]:
        try:
            if marker.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                state = (path.parent / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def mounts(around):
    """Mounts that cordon could have made: in the test's own directory, above it, or where it mounts inside. Others live
    on this machine too."""
    points = [line.split()[4] for line in open("/proc/self/mountinfo")]
    return sorted(point for point in points if pathlib.Path(around).is_relative_to(point) or
                  pathlib.Path(point).is_relative_to(around) or
                  point.split("/")[1] in ("usr", "bin", "lib", "proc", "dev", "etc", "home"))


class Leftovers:
    """Nothing of what ran meanwhile is there any more. Orphans become ours, so that none goes unseen."""
    def __init__(self, cordon):
        adopt_orphans()
        self.cordon, self.around, self.children = cordon, cordon.data.parent, set(living_children())
        self.mounts = mounts(self.around)

    def check(self, seconds=30):
        def new():
            return {pid: command for pid, command in living_children().items() if pid not in self.children}
        gone = wait_until(lambda: not new(), seconds)
        left = new()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert gone, f"left running: {left}"
        assert mounts(self.around) == self.mounts
        scratch = self.cordon.data / "cordon/scratch"
        assert not scratch.exists() or not list(scratch.iterdir()), list(scratch.iterdir())


@pytest.fixture
def leftovers(cordon):
    watch = Leftovers(cordon)
    yield watch
    watch.check()


def holds(pid, value):
    """Is `value` in the memory of this process? None where the kernel lets nobody look."""
    try:
        with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(f"/proc/{pid}/maps") as maps:
            for line in maps:
                place, rights, *_ = line.split()
                if "r" not in rights or "[v" in line:
                    continue
                first, last = (int(each, 16) for each in place.split("-"))
                if last - first > 1 << 32:  # what a sanitizer keeps of its own, for all addresses
                    continue
                memory.seek(first)
                try:
                    if value in memory.read(last - first):
                        return True
                except OSError:
                    pass
    except OSError:
        return None
    return False
