"""Limits: each is seen to be exceeded without it and to hold with it, and the result, the ledger and what is left
behind say so. Where control groups can be had (here: as root) they hold them for the whole tree of processes; elsewhere
rlimits hold what they can, and that is said. Nothing here would hurt the machine if a limit did not hold."""
import concurrent.futures
import glob
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import PATIENCE, descendants
from lab import (IS_ROOT, ROOT, drivers, lack, leaves, leftovers, members, needs, own_group, refused,
                 refused_unwalked,  # noqa: F401
                 result, rows, rows_of, running, wait_until)

UNWALLED = os.environ.get("CORDON_UNWALLED") or str(ROOT / "build/cordon-unwalled")
PYTHON = "/usr/bin/python3"
GROUPED = not lack("cgroup")
MB = 1 << 20  # a limit on memory may be exceeded by a page or two, for what the kernel cannot do without

HOG = """
import fcntl, mmap, os, socket, sys, time
kind, size = sys.argv[1], int(sys.argv[2]) << 20
chunk = b"x" * (1 << 20)
if kind == "anonymous":
    kept = [bytearray(chunk) for _ in range(size >> 20)]
elif kind == "shared":
    kept = mmap.mmap(-1, size)
    for _ in range(size >> 20):
        kept.write(chunk)
elif kind == "processes":
    for _ in range(8):
        if os.fork() == 0:
            kept = [bytearray(chunk) for _ in range(size >> 23)]
            time.sleep(0.5)
            os._exit(0)
    sys.exit(any(os.wait()[1] for _ in range(8)))
elif kind in ("pipes", "unix", "tcp"):
    # What the kernel keeps until somebody reads it.
    kept, had = [], 0
    listener = socket.create_server(("127.0.0.1", 0))
    while had < size and len(kept) < 900:
        if kind == "pipes":
            ours, theirs = map(os.fdopen, os.pipe(), ("rb", "wb"))
            fcntl.fcntl(theirs, 1031, 1 << 20)
        elif kind == "unix":
            ours, theirs = socket.socketpair()
        else:
            theirs = socket.create_connection(listener.getsockname())
            ours, _ = listener.accept()
        kept += [ours, theirs]
        os.set_blocking(theirs.fileno(), False)
        try:
            while had < size:
                had += os.write(theirs.fileno(), chunk[:65536])
        except BlockingIOError:
            pass
    if had < size:
        sys.exit(f"had {had}")
else:
    fd = os.memfd_create("hog") if kind == "memfd" else os.open(kind, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(size >> 20):
        os.write(fd, chunk)
print("had it")
sys.stdout.flush()
time.sleep(float(sys.argv[3]))
"""
# What the kernel lets an ordinary user have in pipes is 64 MiB.
KINDS = {"anonymous": (64, 96), "shared": (64, 96), "processes": (64, 96), "memfd": (64, 96), "/tmp/hog": (64, 96),
         "/dev/shm/hog": (64, 96), "unix": (32, 48), "pipes": (32, 48)}


def groups(pid="*"):
    """Groups of cordon's making, whoever made them; `pid`: by that process."""
    return sorted(glob.glob(f"/sys/fs/cgroup/**/cordon-{pid}-*", recursive=True))


@pytest.fixture
def unwalled(cordon):
    """The result with a wall left out."""
    def run(wall, *words):
        done = subprocess.run([UNWALLED, "run", "--json", *words], env={**cordon.env, "CORDON_UNWALL": wall},
                              cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)
        return json.loads(done.stdout)
    return run


# ---- memory ----------------------------------------------------------------------------------------------------------

def hog(kind, size=96, seconds=0):
    return [PYTHON, "-c", HOG, kind, str(size), str(seconds)]


WATCHED = [kind for kind in KINDS if kind not in ("unix", "pipes")]


@drivers()
@pytest.mark.parametrize("kind", WATCHED)
def test_memory_that_is_watched(cordon, configured, kind, driver):
    """Without a control group: ended within a while, whatever way it took."""
    if kind.startswith("/") and driver not in ("namespaces", "bwrap"):
        return  # no /tmp in memory
    allowed, size = KINDS[kind]
    options = [*configured('limits.cgroup = "none"'), "--driver", driver]
    if kind == "processes":
        assert result(cordon, *options, "--memory", "512M", "--", *hog(kind, size))["exit_code"] == 0
    told = result(cordon, *options, "--memory", f"{allowed}M", "--", *hog(kind, size, 50))
    assert told["isolation"]["limit_memory"] == "watched every 50 ms"
    assert told["signal"] == signal.SIGKILL and told["oom_killed"] and told["limit_hit"] == "memory", told
    limit = told["limit"]
    assert limit["unit"] == "bytes" and limit["allowed"] == allowed * MB < limit["used"] < (size + 64) * MB
    assert told["duration_ms"] < 40_000
    kinds = {row["row"]: row for row in rows_of(cordon, told["audit_id"])}
    assert list(kinds) == ["intent", "limit", "result"] and kinds["limit"]["limit"] == "memory"


def test_address_space_is_no_memory(cordon, configured):
    """Sanitizers and runtimes reserve terabytes that they never touch."""
    code = "import mmap; m = mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); m[0] = 1; print('had it')"
    for options in ([], configured('limits.cgroup = "none"')):
        assert result(cordon, *options, "--memory", "256M", "--", PYTHON, "-c", code)["stdout"] == "had it\n"


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_sanitizers_run_inside(cordon, configured, tmp_path, sanitizer):
    """They find what they are for, and abort for nothing else."""
    source, program = tmp_path / "bug.c", cordon.workspace / "bug"
    source.write_text("""#include <pthread.h>
#include <stdlib.h>
static int shared;
static void *add(void *arg) { for (int i = 0; i < 1000; i++) shared++; return arg; }
int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) { char *p = malloc(8); free(p); return p[argc]; }
	pthread_t thread;
	pthread_create(&thread, NULL, add, NULL);
	pthread_join(thread, NULL);
	return shared != 1000;
}
""")
    built = subprocess.run(["cc", f"-fsanitize={sanitizer}", "-g", "-pthread", "-o", program, source],
                           capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    outside = subprocess.run([program], capture_output=True, text=True)
    for options in ([], configured('limits.cgroup = "none"')):
        told = result(cordon, *options, "--", "./bug")
        assert told["exit_code"] == outside.returncode == 0, (told, outside)
        told = result(cordon, *options, "--", "./bug", "x")
        assert told["exit_code"] and "use-after-free" in told["stderr"], told


def test_the_hosts_killer_takes_it_first(cordon, configured):
    line = "for i in $(seq 100); do grep -qx 1000 /proc/self/oom_score_adj && exit 0; sleep 0.1; done; exit 1"
    assert result(cordon, *configured('limits.cgroup = "none"'), "-c", line)["exit_code"] == 0


@needs("cgroup")
@pytest.mark.parametrize("kind", KINDS)
def test_memory(cordon, unwalled, kind):
    allowed, size = KINDS[kind]
    words = ["--memory", f"{allowed}M", "--", *hog(kind, size)]
    assert unwalled("limit_memory", *words)["exit_code"] == 0
    told = result(cordon, *words)
    assert told["exit_code"] != 0 and "had it" not in told["stdout"], told
    assert told["isolation"]["limit_memory"].startswith("cgroup v")
    assert told["oom_killed"] and told["limit_hit"] == "memory"
    limit = told["limit"]
    assert limit["name"] == "memory" and limit["unit"] == "bytes" and limit["allowed"] == allowed * MB
    assert (allowed - 4) * MB <= limit["used"] <= (allowed + 1) * MB and told["memory_peak_kb"] == limit["used"] // 1024
    kinds = {row["row"]: row for row in rows_of(cordon, told["audit_id"])}
    assert list(kinds) == ["intent", "limit", "result"]
    assert (kinds["limit"]["limit"], kinds["limit"]["used"],
            kinds["limit"]["allowed"]) == ("memory", limit["used"], allowed * MB)
    assert kinds["result"]["oom_killed"] and kinds["result"]["limit_hit"] == "memory"


@needs("cgroup")
def test_memory_that_sockets_hold(cordon, unwalled):
    """Senders are held back rather than ended."""
    words = ["--memory", "64M", "--", *hog("tcp")]
    assert unwalled("limit_memory", *words)["stdout"] == "had it\n"
    told = result(cordon, *words)
    assert "had it" not in told["stdout"] and told["exit_code"] != 0, told


@needs("cgroup")
@drivers()
def test_memory_on_every_driver(cordon, driver):
    told = result(cordon, "--driver", driver, "--memory", "64M", "--", *hog("anonymous"))
    assert told["oom_killed"] and told["limit_hit"] == "memory" and told["exit_code"] != 0, told
    assert told["isolation"]["limit_memory"] == told["isolation"]["limit_processes"] == told["isolation"]["limit_cpu"]
    assert ("unguarded" in told["isolation"]["limit_memory"]) == (driver == "local")


@needs("cgroup")
def test_page_cache_is_no_reason_to_end_it(cordon):
    told = result(cordon, "--memory", "48M", "-c",
                  "dd if=/dev/zero of=file bs=1M count=96 && cat file file >/dev/null && echo fine")
    assert told["stdout"] == "fine\n" and not told["oom_killed"] and told["limit"] is None, told
    assert told["memory_peak_kb"] <= 49 * 1024


def test_being_killed_is_not_being_out_of_memory(cordon):
    told = result(cordon, "-c", "kill -9 $$")
    assert told["signal"] == signal.SIGKILL and not told["oom_killed"] and told["limit_hit"] is None


@needs("cgroup")
def test_what_is_left_of_a_command_goes_on(cordon):
    told = result(cordon, "--memory", "64M", "-c", f"{PYTHON} -c '{HOG}' anonymous 96; echo went on")
    assert told["stdout"] == "went on\n" and told["exit_code"] == 0
    assert told["oom_killed"] and told["limit_hit"] == "memory"
    human = cordon("run", "--memory", "64M", "--", *hog("anonymous"))
    assert human.returncode == 137 and "--memory" in human.stderr


@needs("cgroup")
def test_very_little_memory(cordon, leftovers):
    """Too little to start in is an error or an end, never a hang or a crash of cordon's own."""
    done = cordon("run", "--json", "--memory", "1M", "--", *hog("anonymous", 8))
    value = json.loads(done.stdout)
    assert value.get("oom_killed") or value["error"]["class"] in ("spawn_sandbox_unavailable", "internal"), value


@needs("cgroup")
@drivers("namespaces", "landlock", "local")
def test_less_memory_than_starting_takes(cordon, leftovers, driver):
    """The kernel copies a program's words while its process is still in the caller's memory: cordon would be killed
    with it."""
    words = ["--driver", driver, "--memory", "1M", "--", "true", *["x" * 100000] * 12]
    error = refused(cordon, *words)
    assert error["class"] == "invalid_request" and error["boundary"] == "limit_memory" and "--memory" in error["remediation"]
    assert result(cordon, *words[:3], "4M", *words[4:])["exit_code"] == 0


# ---- processes -------------------------------------------------------------------------------------------------------

CROWD = """
import os, signal, sys
made = []
try:
    for _ in range(100):
        made.append(os.fork())
        if made[-1] == 0:
            signal.pause()
except OSError:
    pass
print(len(made))
for pid in made:
    os.kill(pid, signal.SIGKILL)
"""
# Two more from each, seven times: 255 at most.
BOMB = """
import os, time
left = 7
while left:
    try:
        left -= 1
        if os.fork() and os.fork():
            break
    except OSError:
        break
time.sleep(30)
"""


@drivers()
def test_processes(cordon, unwalled, driver):
    told = result(cordon, "--driver", driver, "--processes", "20", "--", PYTHON, "-c", CROWD)
    if told["isolation"]["limit_processes"] == "none":
        assert not GROUPED and driver != "namespaces" and told["stdout"] == "100\n"
        return
    assert told["stdout"] == "19\n", "itself, and nineteen more"
    assert unwalled("limit_processes", "--processes", "20", "--", PYTHON, "-c", CROWD)["stdout"] == "100\n"
    if GROUPED:
        [denial] = told["denials"]
        assert (denial["what"], denial["wall"]) == ("processes", "limit_processes") and "--processes" in denial["grant"]
        assert told["process_peak"] == 20
    else:
        assert told["denials"] == [] and told["process_peak"] is None
    assert told["limit_hit"] is None, "a limit on processes ends nothing"


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


@needs("cgroup")
@drivers()
def test_every_process_of_a_command_is_in_its_groups(cordon, leftovers, driver):
    """But for init, where that need not be."""
    process = cordon.popen("run", "--driver", driver, "-c", "(setsid sleep 60 &); sleep 60 & echo up; wait")
    assert process.stdout.readline().strip() == b"up"
    everybody, deadline = {}, time.monotonic() + PATIENCE
    # The shell that started the one in the background has ended, and both are what they are to be.
    while sorted(everybody.values()).count("sleep") < 2 or list(everybody.values()).count("sh") > 1:
        assert time.monotonic() < deadline, everybody
        everybody = {pid: name for pid in descendants(process.pid) if (name := comm(pid))}
    found = [{int(pid) for pid in pathlib.Path(path, "cgroup.procs").read_text().split()}
             for path in groups(process.pid)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert len(everybody) >= 4 and found and not groups(process.pid)
    assert all(members <= set(everybody) and {everybody[pid] for pid in set(everybody) - members} <= {"cordon-init"}
               for members in found)


@drivers()
def test_one_process(cordon, driver):
    assert result(cordon, "--driver", driver, "--processes", "1", "--", "/bin/true")["exit_code"] == 0


@drivers()
def test_a_fork_bomb(cordon, leftovers, driver):
    if driver != "namespaces" and not GROUPED:
        pytest.skip(lack("cgroup"))
    told = result(cordon, "--driver", driver, "--processes", "24", "--timeout", "1s", "--", PYTHON, "-c", BOMB)
    assert told["timed_out"] and told["limit_hit"] == "time" and told["duration_ms"] < 20_000
    assert told["limit"]["used"] >= told["limit"]["allowed"] == 1000 and told["limit"]["unit"] == "ms"
    if GROUPED:
        assert told["process_peak"] == 24 and told["denials"]


# ---- the processor ---------------------------------------------------------------------------------------------------

BUSY = """
import os, sys, time
others = [os.fork() for _ in range(int(sys.argv[1]) - 1)]
while time.process_time() < 0.05:
    pass
if all(others):
    for _ in others:
        os.wait()
"""


def share(told):
    """Of one processor, over the time it took."""
    return told["cpu_ms"] / told["duration_ms"]


@needs("cgroup")
@pytest.mark.parametrize("processes", [1, 2])
def test_cpu(cordon, unwalled, processes):
    words = ["--cpu", "5", "--", PYTHON, "-c", BUSY, str(processes)]
    held = result(cordon, *words)
    assert held["isolation"]["limit_cpu"].startswith("cgroup v") and held["exit_code"] == 0
    assert share(held) <= 0.08, held
    # Others may be at work on this machine, and leave it little more than that.
    shares = []
    while not any(value > 0.09 for value in shares):
        shares.append(share(unwalled("limit_cpu", *words)))
        assert len(shares) < 20, shares


def weights(pid):
    """What the command of this process counts for where processors are short, by its group."""
    found = [pathlib.Path(path, name) for path in groups(pid) for name in ("cpu.shares", "cpu.weight")]
    return {path.name: int(path.read_text()) for path in found if path.exists()}


@needs("cgroup")
@pytest.mark.parametrize("way", ["plain", "terminal"])
def test_what_runs_for_long_gives_way(cordon, leftovers, way):
    """It is ended at its time all the same. What has a terminal counts for as much as at first."""
    before = time.monotonic()
    process = cordon.popen("run", *(["--tty"] if way == "terminal" else []), "--timeout", "3s", "-c",
                           "echo up; exec sleep 60")
    assert process.stdout.readline().strip() == b"up"
    assert weights(process.pid)
    gave_way = [{"cpu.shares": 128}, {"cpu.weight": 12}]
    assert wait_until(lambda: weights(process.pid) in gave_way,
                      seconds=1.5 if way == "terminal" else 60) == (way == "plain")
    process.communicate(timeout=60)
    assert process.returncode == 124 and 3 <= time.monotonic() - before < 20


def test_cpu_is_not_said_to_be_held_where_it_is_not(cordon):
    told = result(cordon, "--cpu", "40", "--", "/bin/true")
    assert (told["isolation"]["limit_cpu"] == "none") == (not GROUPED)
    assert "limit_cpu" not in cordon("run", "--cpu", "40", "--", "/bin/true").stderr


# ---- getting out -----------------------------------------------------------------------------------------------------

LEAVE = """
import glob, os
print(open("/proc/self/cgroup").read(), end="")
for path in glob.glob("/sys/fs/cgroup/**", recursive=True) + glob.glob("/proc/*/root/sys/fs/cgroup/*"):
    for name in ("cgroup.procs", "tasks", "memory.max", "memory.limit_in_bytes", "pids.max"):
        try:
            with open(os.path.join(path, name), "w") as file:
                file.write("0")
            print("wrote", path, name)
        except OSError:
            pass
"""


@pytest.mark.parametrize("view", ["system", "host-readonly"])
@drivers("namespaces", "landlock", "bwrap")
def test_a_command_cannot_leave_its_group(cordon, driver, view):
    if driver == "landlock" and view == "host-readonly":
        assert cordon.refused("--driver", driver, "--view", view, "--", "true")["class"] == "spawn_sandbox_unavailable"
        return
    told = result(cordon, "--driver", driver, "--view", view, "--", PYTHON, "-c", LEAVE)
    assert told["exit_code"] == 0 and "wrote" not in told["stdout"], told
    if driver == "namespaces":
        assert all(line.endswith(":/") for line in told["stdout"].splitlines()), "nor does it see where it is"


@pytest.mark.parametrize("option", ["--read", "--write"])
@pytest.mark.parametrize("path", ["/sys/fs", "/sys/fs/cgroup", *sorted(glob.glob("/sys/fs/cgroup/*/"))[:1]])
def test_groups_cannot_be_granted(cordon, option, path):
    error = refused(cordon, option, path.rstrip("/"), "--", "true")
    assert (error["class"], error["boundary"]) == ("capability_denied", "cgroup_view")


@needs("root")
@pytest.mark.parametrize("kind", ["cgroup2", "proc", "sysfs"])
@pytest.mark.parametrize("words", [["--read", "."], ["--write", "."], ["--write", "deep/groups here"],
                                   ["--workspace", "."]])
def test_what_steers_the_kernel_is_not_granted_along(cordon, tmp_path, words, kind):
    """What is mounted beneath a directory comes along with it, and root's command has root's owner there."""
    tree = tmp_path / "tree"
    groups = tree / "deep/groups here"
    groups.mkdir(parents=True)
    words = [words[0], tree / words[1]]
    mounted = ["unshare", "-m", "sh", "-c", f'mount -t {kind} none "$1" && shift && exec "$@"', "sh", groups]
    done = subprocess.run([*mounted, *cordon.argv("run", "--json", *words, "--", "ls", groups)], env=cordon.env,
                          cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    error = json.loads(done.stdout)["error"]
    assert (error["class"], error["boundary"]) == ("capability_denied",
                                                   "cgroup_view" if kind == "cgroup2" else "kernel_surface"), done
    # Only as long as it is mounted.
    assert result(cordon, *words, "--", "true")["exit_code"] == 0


# ---- a session stops where its memory did ----------------------------------------------------------------------------

@needs("cgroup")
def test_out_of_memory_pauses_the_session(cordon):
    words = ["--session", "hungry", "--memory", "64M", "--"]
    assert result(cordon, *words, "/bin/sh", "-c", "echo kept >file")["exit_code"] == 0
    assert result(cordon, *words, *hog("anonymous"))["oom_killed"]
    [row] = [row for row in rows(cordon) if row["row"] == "session" and row["change"] == "paused"]
    assert (row["session"], row["why"]) == ("hungry", "oom")
    error = cordon.refused(*words, "/bin/true")
    assert error["class"] == "session_paused" and "oom" in error["reason"] and "resume" in error["remediation"]
    assert cordon("session", "resume", "hungry").returncode == 0
    assert result(cordon, *words, "/bin/cat", "file")["stdout"] == "kept\n"


# ---- what the configuration says -------------------------------------------------------------------------------------

@pytest.fixture
def configured(cordon, tmp_path):
    """configured("TOML") are options that make it the configuration."""
    def write(text):
        (tmp_path / "config.toml").write_text(text)
        return ["--config", tmp_path / "config.toml"]
    return write


@pytest.mark.parametrize("limit", ["memory", "processes", "cpu"])
def test_a_required_limit(cordon, configured, limit):
    held = configured(f'limits.required = ["{limit}"]')
    if GROUPED:
        assert result(cordon, *held, "--", "/bin/true")["exit_code"] == 0
    for options in [configured(f'limits.required = ["{limit}"]\nlimits.cgroup = "none"')] + [held] * (not GROUPED):
        error = refused(cordon, *options, "--", "/bin/true")
        assert (error["class"], error["boundary"]) == ("spawn_sandbox_unavailable", f"limit_{limit}")
        assert "doctor" in error["remediation"]


def test_without_groups(cordon, configured):
    told = result(cordon, *configured('limits.cgroup = "none"'), "--", "/bin/true")["isolation"]
    assert (told["limit_memory"], told["limit_cpu"]) == ("watched every 50 ms", "none")


@pytest.mark.parametrize("directory", ["/tmp", "/missing"])
def test_a_directory_that_is_no_group(cordon, configured, directory):
    """Nothing is made in it; where the limit is required, the reason is told."""
    text = f'limits.cgroup = "{directory}"\n'
    assert result(cordon, *configured(text), "--", "/bin/true")["isolation"]["limit_cpu"] == "none"
    error = refused(cordon, *configured(text + 'limits.required = ["cpu"]'), "--", "/bin/true")
    assert directory in error["reason"]


@pytest.fixture
def named(configured):
    """A directory of version 2 of our own, and options that name it. Its controllers may all be elsewhere."""
    for name in ("root", "cgroup2"):
        if lack(name):
            pytest.skip(lack(name))
    with own_group() as path:
        yield path, configured(f'limits.cgroup = "{path}"')


@drivers()
def test_a_named_directory(cordon, leftovers, named, driver):
    path, options = named
    process = cordon.popen("run", *options, "--driver", driver, "-c",
                           "cat /proc/self/cgroup; setsid sleep 60 & sleep 60")
    # Init, the shell and what they started: all of it, and nobody else.
    inside = wait_until(lambda: len(members(path)) >= 4 and set(descendants(process.pid)) == set(members(path)))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert inside and process.returncode == 128 + signal.SIGTERM and not leaves(path)
    if driver == "namespaces":
        assert output.decode().splitlines()[-1] == "0::/"


@drivers()
def test_nobody_inside_holds_a_way_to_groups(cordon, leftovers, named, driver):
    path, options = named
    process = cordon.popen("run", *options, "--driver", driver, "-c", "sleep 60 & exec sleep 60")
    assert wait_until(lambda: len(members(path)) >= 3)
    # Until the first process has become init it is in the caller's memory, with the caller's descriptors.
    def target(fd):
        try:
            return os.readlink(fd)
        except OSError:  # it was closed, or its process is gone
            return ""

    def held():
        return [target(fd) for pid in members(path) for fd in glob.glob(f"/proc/{pid}/fd/*")]
    assert wait_until(lambda: not [name for name in held() if "/sys/fs/cgroup" in name]), held()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


def test_a_group_that_is_taken_away(cordon, leftovers, named):
    """By who may: then there are no limits, and the command ends as it would have."""
    path, options = named
    process = cordon.popen("run", *options, "-c", "echo up; read line; echo went on", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    # Init, the shell; and what became another user may be on its way out.
    wait_until(lambda: len(members(path)) == 2)
    [leaf] = leaves(path)
    for pid in members(path):
        with open(f"{os.path.dirname(path)}/cgroup.procs", "w") as file:
            file.write(str(pid))
    os.rmdir(leaf)
    os.rmdir(path)
    output, _ = process.communicate(b"\n", timeout=60)
    assert (process.returncode, output) == (0, b"went on\n")
    # And the next makes do without, or is refused where it may not.
    assert result(cordon, *options, "--", "/bin/true")["isolation"]["limit_cpu"] == "none"
    os.mkdir(path)


@pytest.mark.parametrize("where", ["found", "named", "none"])
def test_what_init_can_no_longer_end_is_ended(cordon, leftovers, configured, request, where):
    """The driver without walls lets a command kill its init; only the group still knows who belongs to it."""
    if where == "found" and not GROUPED:
        pytest.skip(lack("cgroup"))
    options = request.getfixturevalue("named")[1] if where == "named" else configured(
        'limits.cgroup = "none"' if where == "none" else "")
    mark = f"60.{os.getpid()}"
    told = result(cordon, *options, "--driver", "local", "-c",
                  f"setsid sleep {mark} & kill -9 $PPID; exec sleep {mark}")
    assert told["signal"] == signal.SIGKILL
    if where == "none":
        assert len(running(mark)) == 2, "then it stays"
        for pid in running(mark):
            os.kill(pid, signal.SIGKILL)
    else:
        assert wait_until(lambda: not running(mark))


FAST = """
import os, signal, sys
init, count = os.getppid(), 0
if os.fork():
    signal.pause()
while True:
    count += 1
    if count == 50:
        os.kill(init, signal.SIGKILL)
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        pass
"""


@pytest.mark.parametrize("where", ["found", "named"])
def test_who_is_never_there_for_long_is_ended_too(cordon, leftovers, configured, request, where):
    """One process that goes on as its own child, faster than any list of processes is read."""
    if where == "found" and not GROUPED:
        pytest.skip(lack("cgroup"))
    options = request.getfixturevalue("named")[1] if where == "named" else []
    mark = f"fast-{os.getpid()}"
    told = result(cordon, *options, "--driver", "local", "--", PYTHON, "-c", FAST, mark)
    assert told["signal"] == signal.SIGKILL, told
    assert wait_until(lambda: not running(mark))


# ---- what is asked for -----------------------------------------------------------------------------------------------

RANGES = {"memory": "1M to 1024T", "cpu": "1 to 1000000", "processes": "1 to 1048576", "disk": "1M to 1024T",
          "timeout": "1ms to 8784h", "max-output": "1 to 1024T", "open-files": "16 to 1048576", "tmp": "4K to 1024T"}


@pytest.mark.parametrize("option", RANGES)
@pytest.mark.parametrize("value", ["0", "-1", "-5M", "", "much", "99999999999999999999999", "1e3", "0x10"])
def test_limits_that_are_no_limits(cordon, option, value):
    """The range is in the error."""
    error = refused_unwalked(cordon, f"--{option}={value}", "--", "true")
    assert error["class"] == "invalid_request" and f"{option}: must be" in error["reason"] and "or none" in error["reason"], error
    assert RANGES[option] in error["reason"]


@pytest.mark.parametrize("option, value, key, number", [
    ("memory", "512m", "memory_bytes", 512 * MB), ("memory", "2G", "memory_bytes", 2048 * MB),
    ("cpu", "150%", "cpu_percent", 150), ("cpu", "150", "cpu_percent", 150), ("timeout", "90s", "wall_ms", 90_000),
    ("timeout", "5m", "wall_ms", 300_000), ("tmp", "8k", "tmp_bytes", 8192), ("open-files", "20", "open_files", 20),
    ("disk", "2g", "disk_bytes", 2048 * MB)])
def test_units(cordon, option, value, key, number):
    assert json.loads(cordon("profile", f"--{option}", value, "--", "true").stdout)["limits"][key] == number


@pytest.mark.parametrize("option, key, wall", [
    ("memory", "memory_bytes", "limit_memory"), ("cpu", "cpu_percent", "limit_cpu"),
    ("processes", "processes", "limit_processes"), ("disk", "disk_bytes", "limit_disk"),
    ("timeout", "wall_ms", "limit_time"), ("max-output", "stdout_bytes", "limit_output"),
    ("open-files", "open_files", "limit_files"), ("tmp", "tmp_bytes", None)])
def test_none(cordon, configured, option, key, wall):
    """By option and by configuration: the limit is gone, and so is its wall."""
    name = {"timeout": "time", "max-output": "stdout", "open-files": "open_files"}.get(option, option)
    text = f'limits.{name} = "none"' + ('\nlimits.stderr = "none"' if name == "stdout" else "")
    for words in ([f"--{option}", "none"], configured(text)):
        assert json.loads(cordon("profile", *words, "--", "true").stdout)["limits"][key] == 0
        told = result(cordon, *words, "--", "/bin/true")
        assert told["exit_code"] == 0 and (wall is None or wall not in told["isolation"])


def test_what_is_out_of_range_in_a_file(cordon, configured):
    for text, range_ in (('limits.memory = "1k"', "1M to 1024T"), ("limits.cpu = 0", "1 to 1000000"),
                         ('limits.cpu = "0%"', "1 to 1000000")):
        error = refused(cordon, *configured(text), "--", "true")
        assert error["class"] == "config_invalid" and range_ in error["reason"] and "none" in error["reason"], error


# ---- the two sets of defaults ----------------------------------------------------------------------------------------

def limits_of(cordon, *words):
    return json.loads(cordon("profile", *words, "--", "true").stdout)["limits"]


def test_limits_of_what_is_captured(cordon):
    assert "limit_time" in result(cordon, "--", "true")["isolation"]
    assert limits_of(cordon, "--session", "s") == {
        "memory_bytes": 2048 * MB, "cpu_percent": 100, "processes": 64, "disk_bytes": 1024 * MB, "wall_ms": 60_000,
        "stdout_bytes": MB, "stderr_bytes": MB // 4, "open_files": 1024, "tmp_bytes": 256 * MB}


def test_limits_of_a_plain_run(cordon, configured):
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    limits = limits_of(cordon)
    assert limits["processes"] == 4096 and abs(limits["memory_bytes"] - total * 3 // 4) < 4 * MB
    assert abs(limits["tmp_bytes"] - total // 4) < 4 * MB
    free = os.statvfs(cordon.workspace)
    assert limits["disk_bytes"] < free.f_bavail * free.f_frsize
    assert not any(limits[name] for name in ("cpu_percent", "wall_ms", "stdout_bytes", "stderr_bytes"))
    # What a file sets counts, and what an option says counts more.
    limits = limits_of(cordon, *configured('limits.memory = "1G"\nlimits.time = "30s"'))
    assert (limits["memory_bytes"], limits["wall_ms"], limits["processes"]) == (1024 * MB, 30_000, 4096)
    limits = limits_of(cordon, *configured('limits.memory = "1G"\nsandbox.default_timeout = "30s"'), "--memory", "512m")
    assert (limits["memory_bytes"], limits["wall_ms"]) == (512 * MB, 30_000)


# ---- resource limits ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("session", [[], ["--session", "s"]], ids=["alone", "session"])
@pytest.mark.parametrize("driver", ["namespaces", "bwrap", "landlock", "local"])
def test_resource_limits(cordon, configured, driver, session):
    """Each is what was asked for; what cordon holds itself is the lower of both, and a core file's limit is
    cordon's."""
    look = ["--", "bash", "-c",
            "ulimit -Ss; ulimit -Hs; ulimit -St; ulimit -Sn; ulimit -Hn; grep 'core file' /proc/self/limits"]
    words = ["--ulimit", "stack=1048576:2097152", "--ulimit", "cpu=unlimited", "--ulimit", "nofile=20:5000", "--ulimit",
             "core=unlimited"]
    chosen = configured(f'sandbox.driver = "{driver}"') if session else ["--driver", driver]
    done = cordon("run", *chosen, *session, *words, *look)
    *numbers, core = done.stdout.split("\n", 5)
    assert numbers == ["1024", "2048", "unlimited", "20", "1024"] and core.split()[4:6] == ["1", "1"], done
    later = cordon("run", *chosen, *session, *look).stdout.split("\n")
    assert later[0] != "1024" and later[3] == "1024" and later[5].split()[4:6] == ["1", "1"], later


def test_no_more_than_the_caller_may_have(cordon):
    done = cordon("run", "--no-daemon", "--ulimit", "cpu=200", "--", "true",
                  wrapper=["bash", "-c", 'ulimit -t 100 && exec "$@"', "bash"])
    assert done.returncode != 0 and "hard limit, 100 (cpu)" in done.stderr, done
    done = cordon("run", "--ulimit", "cpus=200", "--", "true")
    assert done.returncode != 0 and "cpus=200" in done.stderr and "rttime" in done.stderr, done


# ---- what was met is named -------------------------------------------------------------------------------------------

MET = [
    (["--processes", "20"], "import os\nfor _ in range(40):\n    if not os.fork(): os.read(0, 1) or os.pause()",
     "limit_processes", "--processes"),
    (["--open-files", "32"], "files = [open('/dev/null') for _ in range(64)]", "limit_files", "--open-files"),
    (["--tmp", "1m"], "open('/tmp/x', 'wb').write(b'x' * (4 << 20))", "limit_disk", "--tmp"),
    (["--tmp", "1m"],
     "import os\nname = os.path.expanduser('~/x')\ntry: open(name, 'wb').write(b'x' * (4 << 20))\nexcept OSError as e: exit(f'{name}: {e}')", "limit_disk", "--tmp"),
    (["--memory", "256m"], "kept = bytearray(200 << 20)\nraise MemoryError('Cannot allocate memory')", "limit_memory",
     "--memory"),
]


MET_IDS = ["processes", "files", "tmp", "home", "memory"]
MET_CASES = [pytest.param(*row, grouped, id=f"{name}-{'group' if grouped else 'no-group'}")
             for row, name in zip(MET, MET_IDS)
             for grouped in (True, False)]


@pytest.mark.parametrize("words, code, wall, grant, grouped", MET_CASES)
def test_a_limit_that_was_met_is_named(cordon, configured, words, code, wall, grant, grouped):
    """Where the command failed of it."""
    options = [] if grouped else configured('limits.cgroup = "none"')
    code = code.replace(" or os.pause()", " or __import__('signal').pause()")
    told = result(cordon, *options, *words, "--", PYTHON, "-c", code)
    assert told["exit_code"] == 1, told
    [denial] = told["denials"]
    assert denial["wall"] == wall and grant in denial["grant"], denial
    if "~/x" in code:
        assert denial["what"] == os.path.expanduser("~") and "home" in denial["note"], denial
    done = cordon("run", *options, *words, "--", PYTHON, "-c", code)
    [remark] = [line for line in done.stderr.splitlines() if line.startswith("cordon: ")]
    assert grant in remark


def test_who_may_not_spawn_has_met_no_number(cordon):
    """No option that raises the limit on processes would help."""
    [denial] = result(cordon, "--no-spawn", "--", "sh", "-c", "ls; true")["denials"]
    assert (denial["wall"], denial["grant"]) == ("spawn", "--spawn"), denial
    done = cordon("run", "--no-spawn", "--", "sh", "-c", "ls; true")
    [remark] = [line for line in done.stderr.splitlines() if line.startswith("cordon: ")]
    assert "(spawn)" in remark and "--spawn" in remark and "--processes" not in remark, done


def test_a_limit_that_was_met_and_survived_is_not(cordon, configured):
    code = "try: files = [open('/dev/null') for _ in range(64)]\nexcept OSError as e: print(e)"
    assert result(cordon, "--open-files", "32", "--", PYTHON, "-c", code)["denials"] == []


@needs("cgroup")
@pytest.mark.parametrize("words", [["--memory", "1024T", "--cpu", "1000000", "--processes", "1048576"],
                                   ["--cpu", "1", "--processes", "1"]])
def test_the_most_and_the_least_are_held(cordon, words):
    told = result(cordon, *words, "--", "/bin/true")
    assert told["exit_code"] == 0
    assert all(told["isolation"][f"limit_{name}"].startswith("cgroup v") for name in ("memory", "cpu", "processes"))


# ---- what is left ----------------------------------------------------------------------------------------------------

@needs("cgroup")
def test_nothing_is_left_behind(cordon, leftovers):
    """Others may be at work on this machine, so only what these made is looked for."""
    def run(number):
        words = [["true"], ["false"], ["/missing"], ["sleep", "9"]][3 if number % 25 == 0 else number % 3]
        process = cordon.popen("run", *(["--timeout", "200ms"] if len(words) > 1 else []), "--", *words)
        process.communicate(timeout=60)
        return process.returncode, process.pid
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(run, range(500)))
    assert {status for status, _ in ended} == {0, 1, 127, 124}
    pids = {pid for _, pid in ended}
    assert len(pids) == 500 and not [path for path in groups() if int(path.split("cordon-")[-1].split("-")[0]) in pids]


def test_many_at_once(cordon, leftovers):
    """Each has its own limits, whoever else is there; and no more is left of two hundred than of one."""
    before = set(groups())  # of a cordon that was killed, perhaps, whose number is now another's
    processes = [cordon.popen("run", "--quiet", "--timeout", "300s", "-c", "echo up; exec sleep 300")
                 for _ in range(200)]
    try:
        said = [process.stdout.readline() for process in processes]
        assert said == [b"up\n"] * len(processes), [process.communicate(timeout=60)
                                                    for process, line in zip(processes, said) if line != b"up\n"]
        if GROUPED:
            made = {process.pid: set() for process in processes}

            def each_has_one():
                """A list of a tree in which others make and remove groups may lack some."""
                for path in set(groups()) - before:
                    pid = int(path.split("cordon-")[-1].split("-")[0])
                    if pid in made:
                        made[pid].add(os.path.basename(path))
                return all(len(names) == 1 for names in made.values())
            assert wait_until(each_has_one), {pid: names for pid, names in made.items() if len(names) != 1}
    finally:
        for process in processes:
            process.terminate()
        statuses = [process.communicate(timeout=60) and process.returncode for process in processes]
    assert set(statuses) == {128 + signal.SIGTERM}
    if GROUPED:
        assert not [path for path in set(groups()) - before if int(path.split("cordon-")[-1].split("-")[0]) in made]


@needs("cgroup")
def test_what_a_killed_cordon_left_is_swept(cordon, leftovers):
    process = cordon.popen("run", "--", "sleep", "60")
    assert wait_until(lambda: len(descendants(process.pid)) >= 2)
    assert groups(process.pid)
    process.kill()
    process.communicate()
    assert cordon("run", "--", "true").returncode == 0
    # What was in it may have been on its way out.
    assert wait_until(lambda: cordon("run", "--", "true").returncode == 0 and not groups(process.pid))


@needs("cgroup")
def test_one_that_lives_is_not_swept(cordon, leftovers):
    process = cordon.popen("run", "--", "sleep", "60")
    assert wait_until(lambda: len(descendants(process.pid)) >= 2)
    mine = groups(process.pid)
    assert cordon("run", "--", "true").returncode == 0
    assert mine and groups(process.pid) == mine
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert groups(process.pid) == []


WILD = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
HOGS = {"processes": ["--processes", "32", "--", PYTHON, "-c", WILD],
        "memory": ["--memory", "64M", "-c", "while :; do dd if=/dev/zero of=/dev/null bs=96M count=1; done"],
        "disk": ["--disk", "96M", "-c", "while :; do dd if=/dev/zero of=file bs=1M count=64; done"]}


def test_others_go_on_beside_hogs(cordon, leftovers):
    """How much slower is for bench/usable to say; here, that nobody starves, and that the hogs are held as long as they
    are there."""
    # A session each: the end of one that was short of memory pauses its session, and who stands still does not hear a
    # signal.
    hogs = {name: cordon.popen("run", "--json", "--session", name, *words) for name, words in HOGS.items()}
    try:
        assert wait_until(lambda: len(descendants(hogs["processes"].pid)) > 32), "init, and as many as there may be"
        for _ in range(30):
            assert cordon("run", "--session", "small", "--", "true").returncode == 0
        # A control group ends the process that takes too much; a watch ends the command.
        if not GROUPED:
            assert wait_until(lambda: hogs["memory"].poll() is not None)
        assert all(hog.poll() is None for name, hog in hogs.items() if GROUPED or name != "memory")
    finally:
        for hog in hogs.values():
            hog.terminate()
        told = {name: json.loads(hog.communicate(timeout=60)[0]) for name, hog in hogs.items()}
    if not GROUPED:
        memory = told.pop("memory")
        assert memory["signal"] == signal.SIGKILL and memory["limit_hit"] == "memory", memory
    assert all(one["signal"] == signal.SIGTERM for one in told.values()), told
    if GROUPED:
        assert [denial["wall"] for denial in told["processes"]["denials"]] == ["limit_processes"]
        assert told["memory"]["memory_peak_kb"] <= 65 * 1024


def test_what_is_used_is_told(cordon):
    told = result(cordon, "-c",
                  "dd if=/dev/zero of=file bs=1M count=4 conv=fsync 2>/dev/null; sleep 0.05 & sleep 0.05 & wait")
    kind = subprocess.run(["stat", "-f", "-c", "%T", cordon.workspace], capture_output=True, text=True).stdout.strip()
    if kind != "tmpfs":
        assert told["written_bytes"] >= 4 * MB, kind
    if GROUPED:
        assert told["process_peak"] >= 3 and 0 < told["memory_peak_kb"]


# ---- the doctor ------------------------------------------------------------------------------------------------------

def test_doctor_tells_who_holds_limits(cordon):
    report = json.loads(cordon("doctor", "--json").stdout)["limits"]
    human = cordon("doctor").stdout
    if GROUPED:
        assert report["mechanism"].startswith("cgroup v") and os.path.isdir(report["place"]) and report["fix"] == ""
        assert "limit_memory" in report["holds"] and report["place"] in human
    else:
        assert report["mechanism"] == "rlimits, watched" and report["place"] is None and report["holds"] == []
        assert "systemd-run --user --scope" in report["fix"]
        # In lines that fit, and what is to be typed in one of them.
        assert f"for more: {report['fix']}" in " ".join(human.split()) and max(map(len, human.splitlines())) <= 120
        assert any("`systemd-run --user --scope -p Delegate=yes cordon ...`" in line for line in human.splitlines())
