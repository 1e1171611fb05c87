"""Disk space: what a workspace may hold, or a named directory may gain, is seen to be passed without the limit and to
be held with it. Nothing here takes more than some dozens of megabytes, whether the limit holds or not."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

import pytest

from lab import IS_ROOT, ROOT, drivers, leftovers, refused_unwalked, result, rows_of, wait_until  # noqa: F401

UNWALLED = os.environ.get("CORDON_UNWALLED") or str(ROOT / "build/cordon-unwalled")
PYTHON = "/usr/bin/python3"
MB = 1 << 20
MOST = 4 * MB

# Each takes 24 MB in a second or so, 1 MB at a time.
TAKE = """
import ctypes, mmap, os, struct, sys, threading, time
kind, size = sys.argv[1], int(sys.argv[2] if len(sys.argv) > 2 else 24)
chunk = b"x" * (1 << 20)
os.makedirs("a/b", exist_ok=True)

def pace():
    time.sleep(0.04)

if kind == "file":
    with open("file", "wb", 0) as file:
        for _ in range(size):
            file.write(chunk), pace()
elif kind == "old":
    with open("old", "ab", 0) as file:
        for _ in range(size):
            file.write(chunk), pace()
elif kind == "files":
    for number in range(size):
        open(f"a/b/{number}", "wb", 0).write(chunk), pace()
elif kind == "small":
    for number in range(size << 8):
        open(f"a/{number}", "wb").close()
        number % 256 or pace()
elif kind == "allocated":
    with open("file", "wb", 0) as file:
        for number in range(size):
            os.posix_fallocate(file.fileno(), number << 20, 1 << 20), pace()
elif kind == "removed":
    with open("file", "wb", 0) as file:
        os.unlink("file")
        for _ in range(size):
            file.write(chunk), pace()
elif kind == "children":
    for number in range(size):
        if os.fork() == 0:
            open(f"{number}", "wb", 0).write(chunk)
            os._exit(0)
        os.wait(), pace()
elif kind == "mapped":
    fd = os.open("file", os.O_RDWR | os.O_CREAT)
    os.unlink("file")
    os.ftruncate(fd, size << 20)
    mapped = mmap.mmap(fd, size << 20)
    os.close(fd)
    for _ in range(size):
        mapped.write(chunk), pace()
elif kind == "closed":
    with open("a/b/file", "wb", 0) as file:
        pass
    for number in range(size):
        os.chmod("a", 0o700)
        with open("a/b/file", "ab", 0) as file:
            os.chmod("a", 0)
            file.write(chunk), pace()
elif kind == "moved":
    for number in range(size):
        open("new", "wb", 0).write(chunk)
        os.rename("new", f"a/{number}")
        os.link(f"a/{number}", f"a/b/{number}-{time.time()}")
        os.unlink(f"a/{number}"), pace()
elif kind == "dodging":
    # Two directories that take long to read, and the file in the one of the other two where the count is not.
    libc = ctypes.CDLL(None)
    for name in "pqrs":
        os.mkdir(name)
    first, before, second, behind = [name for name in os.listdir(".") if name in "pqrs"]
    open("one", "w").close()
    for number in range(8000):
        os.link("one", f"{first}/{number}"), os.link("one", f"{second}/{number}")
    notices = libc.inotify_init()
    first = libc.inotify_add_watch(notices, first.encode(), 0x20)
    libc.inotify_add_watch(notices, second.encode(), 0x20)
    def dodge():
        while True:
            number, = struct.unpack("i", os.read(notices, 4096)[:4])
            try:
                os.rename(*([f"{before}/file", f"{behind}/file"] if number == first else [f"{behind}/file", f"{before}/file"]))
            except OSError:
                pass
    with open(f"{behind}/file", "wb", 0) as file:
        threading.Thread(target=dodge, daemon=True).start()
        for _ in range(size):
            file.write(chunk), pace()
print("had it")
"""
KINDS = ["file", "old", "files", "small", "allocated", "removed", "children", "moved"]
# What cannot be looked into is known only as missing from the filesystem, where others may give back as much.
HIDDEN = ["mapped", "dodging"] + ([] if IS_ROOT else ["closed"])


def take(kind, *words):
    return [PYTHON, "-c", TAKE, kind, *map(str, words)]


def holds(path):
    """What is in it by the rule: blocks, 4 KiB at least, several names once."""
    seen = {}
    for top, directories, files in os.walk(path):
        for name in [".", *files]:
            info = os.lstat(os.path.join(top, name))
            seen[info.st_dev, info.st_ino] = max(info.st_blocks * 512, 4096)
    return sum(seen.values())


def about(cordon, told):
    """All that may tell why it was ended, or not: the result, when it was, and what there is with its dates."""
    listing = subprocess.run(["find", cordon.workspace, cordon.data / "cordon/workspaces", "-printf",
                              r"%p: %k K, %n names, born %B@, changed %C@\n"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    lines = listing.splitlines()
    return "\n".join([json.dumps(told), json.dumps(rows_of(cordon, told["audit_id"])), *lines[:100],
                      f"{len(lines)} files; it is {time.time()}"])


def fine(cordon, told):
    """It was left alone to its end."""
    assert told["stdout"].endswith("fine\n") and told["limit"] is None and told["denials"] == [], about(cordon, told)


def passed(cordon, told, over=24):
    """It was ended by the limit, and all say so."""
    assert told["limit_hit"] == "disk" and told["signal"] == 9 and "had it" not in told["stdout"], about(cordon, told)
    limit = told["limit"]
    assert limit["name"] == "disk" and limit["unit"] == "bytes" and limit["allowed"] == MOST
    assert MOST < limit["used"] <= MOST + over * MB
    kinds = {row["row"]: row for row in rows_of(cordon, told["audit_id"])}
    assert list(kinds) == ["intent", "limit", "result"]
    assert (kinds["limit"]["limit"], kinds["limit"]["used"], kinds["limit"]["allowed"]) == ("disk", limit["used"], MOST)
    assert kinds["result"]["limit_hit"] == "disk" and not told["timed_out"] and not told["oom_killed"]
    return limit


@pytest.fixture
def quiet(cordon):
    """The same with its data where hardly anybody else writes."""
    with tempfile.TemporaryDirectory(prefix="cordon-test-", dir="/dev/shm") as place:
        yield type(cordon)(cordon.workspace, pathlib.Path(place) / "data")


@pytest.mark.parametrize("kind", KINDS)
def test_taking(cordon, kind, leftovers):
    (cordon.workspace / "old").write_bytes(b"x" * MB)
    told = result(cordon, "--disk", "4M", "--", *take(kind, 10 if kind == "small" else 24))
    assert told["isolation"]["limit_disk"] == "watched every 100 ms"
    passed(cordon, told)


@pytest.mark.parametrize("kind", HIDDEN)
def test_hiding(quiet, kind, leftovers):
    # Where it may take several counts, on a busy machine, there is time for them.
    size = 72 if kind == "dodging" else 24
    told = result(quiet, "--session", "s", "--disk", "4M", "--", *take(kind, size))
    if kind == "closed":
        os.chmod(next((quiet.data / "cordon/workspaces").iterdir()) / "a", 0o700)
    passed(quiet, told, over=size)


@pytest.mark.parametrize("kind", ["file", "small", "removed", "moved"])
def test_without_the_limit(cordon, kind):
    """The same where it is large enough, and where it is left out."""
    words = take(kind, 5 if kind == "small" else 8)
    told = result(cordon, "--disk", "40M", "--", *words)
    assert told["stdout"] == "had it\n" and told["limit"] is None and told["denials"] == [], told
    done = subprocess.run([UNWALLED, "run", "--json", "--disk", "4M", "--", *words], cwd=cordon.workspace, timeout=60,
                          env={**cordon.env, "CORDON_UNWALL": "limit_disk"}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["stdout"] == "had it\n" and told["limit"] is None and "limit_disk" not in told["isolation"], told


@drivers()
def test_every_driver(cordon, driver, leftovers):
    passed(cordon, result(cordon, "--driver", driver, "--disk", "4M", "--", *take("files")))
    human = cordon("run", "--driver", driver, "--disk", "4M", "--", *take("removed"))
    assert human.returncode == 137 and "cordon: ran out of disk space and was ended: " in human.stderr and "4M allowed (--disk)" in human.stderr


def test_full_speed(cordon, leftovers):
    """As fast as it can be written, 96 MB: it is ended, however long it would go on."""
    told = result(cordon, "--disk", "4M", "-c",
                  "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=file$i bs=64k count=256; done; sleep 600")
    passed(cordon, told, over=100)
    print(f"ended after {told['duration_ms']} ms")
    assert told["duration_ms"] < 300_000


def test_what_is_no_more_than_allowed(cordon):
    """Holes, several names of one file, what is removed again, and what is in memory."""
    line = """truncate -s 1T sparse; head -c 2M /dev/zero > file; for i in $(seq 64); do ln file link$i; done;
        for i in $(seq 8); do head -c 1M /dev/zero > again; sleep 0.05; rm again; done; head -c 8M /dev/zero > /tmp/file; sleep 0.3; echo fine"""
    fine(cordon, result(cordon, "--disk", "4M", "-c", line))


def test_a_project_that_is_larger(cordon):
    """Of a directory that was named only what is added counts, however little before the start the rest was made."""
    for number in range(12):
        (cordon.workspace / f"file{number}").write_bytes(b"x" * MB)
    line = "cat file1 > new1; sleep 0.2; echo x >> file1; sleep 0.2; cat file1 >> file1.more; sleep 0.2; echo fine"
    fine(cordon, result(cordon, "--disk", "4M", "-c", line))
    passed(cordon, result(cordon, "--disk", "4M", "--", *take("files")))


def test_what_is_removed_makes_room(cordon):
    """How much that was is known by the filesystem's figures: others may take some 40 MB meanwhile."""
    for number in range(8):
        with open(cordon.workspace / f"file{number}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 16 * MB)
    line = "for i in 2 3 4 5 6 7; do rm file$i; done; for i in 1 2 3 4 5 6 7; do fallocate -l 16M another$i; sleep 0.05; done; sleep 0.2; echo fine"
    fine(cordon, result(cordon, "--disk", "64M", "-c", line))


def test_a_workspace_of_its_own(cordon, leftovers):
    """All that it holds counts, whoever of its session's commands put it there."""
    def run(*words):
        return result(cordon, "--session", "s", "--disk", "4M", *words)
    [told] = [run("--", *take("files", 2))]
    assert told["stdout"] == "had it\n"
    passed(cordon, run("--", *take("file", 8)))
    place = next((cordon.data / "cordon/workspaces").iterdir())
    assert MOST < holds(place)
    # It may be used as it is, but not grow; what is removed makes room again.
    fine(cordon, run("-c", "ls -R; sleep 0.2; echo fine"))
    passed(cordon, run("--", *take("old", 8)))
    fine(cordon, run("-c", "rm file old; sleep 0.1; head -c 512k /dev/zero > small; sleep 0.2; echo fine"))
    assert holds(place) < MOST


def test_the_home_of_a_session_counts(cordon):
    told = result(cordon, "--session", "s", "--workspace", cordon.workspace, "--disk", "4M", "-c",
                  f"cd && {PYTHON} -c '{TAKE}' files")
    passed(cordon, told)
    assert holds(cordon.workspace) < MB


@drivers("landlock")
def test_temporary_files_count_where_they_are_on_a_disk(cordon, driver, leftovers):
    passed(cordon, result(cordon, "--driver", driver, "--disk", "4M", "-c",
                          f'cd "$TMPDIR" && {PYTHON} -c \'{TAKE}\' files'))
    assert holds(cordon.workspace) < MB


def test_other_granted_places_do_not(cordon, tmp_path):
    place = tmp_path / "granted"
    place.mkdir()
    told = result(cordon, "--write", place, "--disk", "4M", "-c", f"cd {place} && {PYTHON} -c '{TAKE}' files 8")
    assert told["stdout"] == "had it\n" and told["limit"] is None and holds(place) > 8 * MB, told


def test_what_ends_first_is_told(quiet):
    """Mostly too short to be seen at it."""
    def take_at_once(size):
        return result(quiet, "--session", "s", "--disk", "4M", "--", "/usr/bin/fallocate", "-l", size, size)
    assert take_at_once("2M")["denials"] == []
    told = take_at_once("8M")
    if told["limit_hit"] and told["signal"]:
        passed(quiet, told)
        return
    if told["limit_hit"]:  # seen while it was on its way out by itself
        assert told["limit_hit"] == "disk" and told["limit"]["used"] > told["limit"]["allowed"] and told["exit_code"] == 0
        return
    [denial] = told["denials"]
    [place] = (quiet.data / "cordon/workspaces").iterdir()
    assert denial["wall"] == "limit_disk" and denial["what"] == str(place), denial
    assert "it held 10" in denial["note"] and denial["grant"] == "--disk, more than 4M" and told["exit_code"] == 0, denial


def test_where_it_is_required(cordon, tmp_path):
    """It holds where the filesystem tells at once; where not, nothing is run."""
    config = tmp_path / "required.toml"
    config.write_text('limits.required = ["disk"]\n')
    passed(cordon, result(cordon, "--config", config, "--disk", "4M", "--", *take("files")))
    if not IS_ROOT:
        return
    words = [str(word) for word in cordon.argv("run", "--json", "--driver", "local", "--disk", "4M")]
    script = 'mount -t ramfs none "$1" && cd "$1" && shift && exec "$@"'

    def late(*more):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "-", cordon.workspace, *words, *more],
                              env=cordon.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)
    error = late("--config", str(config), "--", "true")["error"]
    assert error["class"] == "spawn_sandbox_unavailable" and error["boundary"] == "limit_disk" and "late" in error["reason"], error
    told = late("--", *take("files"))
    assert told["isolation"]["limit_disk"] == "counted when it writes"
    passed(cordon, told)


@pytest.mark.parametrize("value", ["0", "-1", "-5M", "", "much", "99999999999999999999999", "1e3", "1K"])
def test_limits_that_are_none(cordon, value):
    error = refused_unwalked(cordon, f"--disk={value}", "--", "true")
    assert error["class"] == "invalid_request" and "disk" in error["reason"], error


def spent(pid):
    """Seconds of a processor."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


@pytest.mark.parametrize("kind", ["named", "own"])
def test_it_costs_next_to_nothing(quiet, kind):
    """A large workspace in which nothing grows, while the command works. What it costs where others write, as they may
    here in one that is named, is in tests/unit/test-disk-cost.c."""
    words = ["--disk", "1T"] if kind == "named" else ["--session", "s"]
    assert quiet("run", *words, "--", "true").returncode == 0
    place = quiet.workspace if kind == "named" else next((quiet.data / "cordon/workspaces").iterdir())
    (place / "file").touch()
    for number in range(100):
        (place / f"{number}").mkdir()
        for name in range(200):
            os.link(place / "file", place / f"{number}/{name}")
    process = quiet.popen("run", *words, "--timeout", "60s", "-c", "echo > working; while :; do :; done")
    try:
        assert wait_until((place / "working").exists, 30)
        before, began = spent(process.pid), time.monotonic()
        time.sleep(3)
        used, passed = spent(process.pid) - before, time.monotonic() - began
        assert used < passed / 100, (used, passed)
    finally:
        process.terminate()
        process.communicate(timeout=20)
