"""Walls that stay up, and the processes that hold them: whichever of these is killed, the next command runs, and nothing is
left. What is within reach of a command cannot end them."""
import contextlib
import fcntl
import glob
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conftest import descendants, is_running
from lab import leased, leftovers, missing, mounts, needs, wait_until  # noqa: F401
from warm_lab import BUILD, Warm, called, kill, parts

pytestmark = missing("mount-namespace")
WAYS = {"warm": {}, "parked": {"fresh": "true"}}


def groups(process):
    return glob.glob(f"/sys/fs/cgroup/**/cordon-{process.pid}-*", recursive=True)


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def warm(cordon, leftovers):  # noqa: F811
    process = Warm(cordon)
    process.session("s")
    yield process
    process.close()
    assert wait_until(lambda: not groups(process.process)), groups(process.process)


def works(warm, **settings):
    """The next commands run, whatever became of their walls: in places that waited, as many as there are; then in new ones."""
    for _ in range(2):
        for command in (["/bin/sh", "-c", "echo fine"], ["/bin/echo", "fine"]):
            done = warm.run(*command, **settings)
            assert done.get("stdout") == "fine\n", done
    warm.ready(**settings)
    done = warm.run("/bin/echo", "fine", **settings)
    assert done["stdout"] == "fine\n" and done["place"] == "taken", done
    warm.await_place()


def descriptors(warm):
    """Those that are not of a control group: what is left of those is closed with a later command."""
    place, links = f"/proc/{warm.process.pid}/fd", []
    for number in os.listdir(place):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"{place}/{number}"))
    return sum("cgroup" not in link for link in links)


def settled(warm):
    """Descriptors and processes, once nothing changes any more."""
    seen = []

    def same():
        found = parts(warm)
        seen.append((descriptors(warm), len(found["keepers"]), len(found["inits"]), len(found["commands"])))
        return len(seen) > 10 and len(set(seen[-10:])) == 1
    assert wait_until(same), seen[-10:]
    return seen[-1]


VICTIMS = {
    "the keeper": lambda found: found["keepers"],
    "the inits that wait": lambda found: found["inits"],
    "those that wait to be commands": lambda found: found["commands"],
    "all of them": lambda found: found["keepers"] + found["inits"] + found["commands"],
}
TIMES_KILLED = 12  # more than the descriptors of one that is kept for the next command, or not, and of those that are not gone yet


@pytest.mark.parametrize("victim", VICTIMS)
def test_what_waits_is_killed(warm, way, victim):
    works(warm, **way)
    before = settled(warm)
    for _ in range(TIMES_KILLED):
        pids = VICTIMS[victim](parts(warm))
        assert pids
        kill(pids)
        began = time.monotonic()
        works(warm, **way)
        assert time.monotonic() - began < 9  # nobody waits for what a dead one was to say
    after = settled(warm)
    # One that was ended may not be gone yet; what leaks does so each time.
    assert after[0] < before[0] + TIMES_KILLED and all(now <= was + 1 for now, was in zip(after[1:], before[1:])), (before, after)


def test_the_init_of_a_running_command_is_killed(warm, way):
    warm.ready(**way)
    name = warm.start("/bin/sleep", "1000", **way)

    def sleeping():
        return [pid for pid in parts(warm)["commands"] if called(pid) == "sleep"]
    assert wait_until(sleeping)
    command = sleeping()[0]
    init = int(open(f"/proc/{command}/stat").read().rpartition(")")[2].split()[1])
    kill([init])
    ended = warm.wait(name)
    assert ended.get("signal") == signal.SIGKILL or "error" in ended, ended
    assert not is_running(command)
    works(warm, **way)


def test_the_keeper_of_a_running_command_is_killed(warm, way):
    """It goes on, and ends as it would have."""
    warm.ready(**way)
    name = warm.start("/bin/sh", "-c", "echo here; read line; echo $line; exit 3", **way)
    warm.wait_said(name, "here")
    kill(parts(warm)["keepers"])
    works(warm, **way)
    warm.ask("forget", name=name)
    works(warm, **way)


def test_idle_sessions_have_no_process(warm):
    """One keeper is for all of them; each has a network of its own all the same, the same one for all its commands."""
    names = ["s", "t", "u"]
    for name in names[1:]:
        warm.session(name)
    looks = [warm.shell("readlink /proc/self/ns/net", session=name) for name in names * 2]
    networks = [look["stdout"] for look in looks]
    assert all(look["place"] != "cold" for look in looks), looks
    assert networks[:3] == networks[3:] and len({*networks, os.readlink("/proc/self/ns/net") + "\n"}) == 4, networks
    assert wait_until(lambda: len(parts(warm)["keepers"]) == 1), parts(warm)
    for name in names:
        warm.ask("end", id=name)
    assert wait_until(lambda: not any(map(is_running, descendants(warm.process.pid))))


@pytest.mark.parametrize("line", ["kill -9 -1", "kill -9 1", "for i in $(seq 300); do kill -9 $i; done 2> /dev/null; kill -9 $PPID",
                                  "kill -STOP -1; kill -STOP 1", "ulimit -n 3; ulimit -u 1; ulimit -v 1000; ulimit -t 1; exec true"])
def test_a_command_ends_what_it_can_reach(warm, way, line):
    warm.ready(**way)
    beside = warm.start("/bin/sh", "-c", "echo here; sleep 0.2; echo still", **way)
    warm.wait_said(beside, "here")
    attack = warm.shell(line, timeout="2s", **way)
    assert "error" not in attack, attack
    assert warm.wait(beside)["stdout"] == "here\nstill\n"
    works(warm, **way)


def test_whoever_keeps_them_is_killed(cordon, leftovers):  # noqa: F811
    warm = Warm(cordon)
    warm.session("s")
    before = mounts(cordon.data.parent)
    warm.ready()
    warm.ready(fresh="true")
    name = warm.start("/bin/sh", "-c", "echo here; (setsid sleep 1000 &) ; exec sleep 1000")
    warm.wait_said(name, "here")
    pids = descendants(warm.process.pid)
    assert len(pids) > 6
    warm.process.kill()
    warm.process.wait()
    assert wait_until(lambda: not any(map(is_running, pids))), [pid for pid in pids if is_running(pid)]
    assert mounts(cordon.data.parent) == before
    warm.close()
    # The groups that nobody could remove any more are found by the next who makes some.
    assert cordon("run", "--", "/bin/true").returncode == 0
    assert wait_until(lambda: not groups(warm.process)), groups(warm.process)


@pytest.mark.parametrize("fresh", [False, True])
def test_whoever_keeps_them_is_killed_while_a_program_cannot_be_loaded(cordon, leftovers, fresh):  # noqa: F811
    """Somebody has a lease of its file, which whoever opens it waits for, the kernel for him, and may not give it back."""
    program, more = cordon.workspace / "program", {"fresh": "true"} if fresh else {}
    shutil.copy("/bin/true", program)
    # Whoever else makes groups on this machine ends what is in those of the dead.
    config = cordon.data.parent / "no-groups.toml"
    config.write_text('limits.cgroup = "none"\n')
    warm = Warm(cordon, config)
    warm.session("s")
    warm.ready(**more)
    with leased(program) as is_awaited:
        warm.start(program, **more)
        assert wait_until(is_awaited)
        pids = descendants(warm.process.pid)
        warm.process.kill()
        warm.process.wait()
        assert wait_until(lambda: not any(map(is_running, pids)), 10), [pid for pid in pids if is_running(pid)]
    warm.close()


def test_a_keeper_ends_with_the_last_of_what_it_keeps():
    """Its socket is closed: what runs goes on."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    keeper = subprocess.Popen(["bash", "-c", 'exec 3<&$1; sleep 600 & exec "$2" k 0', "bash", str(theirs.fileno()),
                               BUILD / "cordon-init"], pass_fds=[theirs.fileno()])
    theirs.close()
    assert wait_until(lambda: called(keeper.pid) == "cordon-keeper" and descendants(keeper.pid))
    ours.close()
    time.sleep(0.3)
    left = descendants(keeper.pid)
    assert left
    kill(left)
    assert keeper.wait(10) == 0 and not descendants(keeper.pid)


def test_the_time_is_over_before_the_program_is_there(warm, way):
    program = warm.cordon.workspace / "program"
    shutil.copy("/bin/true", program)
    warm.ready(**way)
    with leased(program) as is_awaited:
        done = warm.run(program, timeout="300ms", **way)
        assert is_awaited() and done["timed_out"] and 300 <= done["duration_ms"] < 20_000, done
        assert wait_until(lambda: not any(called(pid) == "program" for pid in descendants(warm.process.pid)))
    works(warm, **way)


def test_a_session_ends_while_its_walls_are_up(warm):
    warm.session("other")
    for action in ("end", "pause"):
        name = {"end": "s", "pause": "other"}[action]
        warm.ready(session=name)
        keepers = parts(warm)["keepers"]
        warm.ask(action, id=name)
        assert wait_until(lambda: not any(map(is_running, keepers))), action
        refused = warm.shell("true", session=name)
        assert refused["error"]["class"] == {"end": "session_ended", "pause": "session_paused"}[action], refused
    warm.ask("resume", id="other")
    works(warm, session="other")


def test_a_session_ends_while_its_command_runs(warm):
    warm.ready()
    name = warm.start("/bin/sh", "-c", "echo here; read line; exit 3")
    warm.wait_said(name, "here")
    warm.ask("end", id="s")
    ended = warm.wait(name)
    assert ended["exit_code"] == 3 or ended["exit_code"] == 1, ended


def test_there_are_few_descriptors(cordon, leftovers, way):  # noqa: F811
    """They are the process's own: what stays up leaves most of them to it, and its commands run."""
    warm = Warm(cordon, prefix=["prlimit", "--nofile=256"])
    try:
        places = set()
        for i in range(40):
            done = warm.run("/bin/true", session=f"s{i}", **way)
            assert done.get("exit_code") == 0, done
            places.add(done["place"])
        assert "cold" not in places and warm.ask("descriptors")["count"] < 200, places
    finally:
        warm.close()


def in_turn(warm, *sessions, **patience):
    """One command in each; those of them for whose next one a place waits after that."""
    found = []
    for session in sessions:
        time.sleep(0.15)  # so soon after each other two would be kept for it
        assert warm.run("/bin/true", session=session).get("exit_code") == 0
        found += session if warm.ask("await", **patience)["done"] else ""
    return found


def test_with_more_sessions_than_places_some_keep_theirs(cordon, leftovers):  # noqa: F811
    """One goes for another session's that is wanted more often than that was used; not each in its turn, before it was of use."""
    warm = Warm(cordon, prefix=["prlimit", "--nofile=256"])  # three
    try:
        assert in_turn(warm, *"abc") == list("abc")
        time.sleep(1.2)  # a first command counts as one in a second
        assert in_turn(warm, *"d") == ["d"] and wait_until(lambda: len(parts(warm)["inits"]) == 3)
        # The one that went was used longest ago. What is not to come is waited for less long than it was not used: then it would.
        for _ in range(2):
            assert in_turn(warm, *"bcd") == list("bcd") and in_turn(warm, "a", ms=300) == []
    finally:
        warm.close()


def test_the_library_is_closed_while_places_wait(warm, way):
    for _ in range(3):
        warm.ready(**way)
        pids = descendants(warm.process.pid)
        warm.ask("close")
        assert wait_until(lambda: not any(map(is_running, pids)))
        assert not groups(warm.process)
        warm.open()


def test_told_what_to_run_it_waits_for_the_row(cordon, warm, way):
    """A place has its orders before the intent row is written, and does nothing until it is."""
    warm.ready(**way)
    with open(cordon.data / "cordon/ledger/head") as head:
        fcntl.flock(head, fcntl.LOCK_EX)
        name = warm.start("/usr/bin/touch", "made", **way)
        time.sleep(0.3)  # a hundred times what it would take
        assert not (cordon.workspace / "made").exists()
    done = warm.wait(name)
    assert done.get("exit_code") == 0 and done["place"] == "taken" and (cordon.workspace / "made").exists(), done


def never_runs(cordon, warm, way):
    """What is asked for while no row can be written."""
    head = cordon.data / "cordon/ledger/head"
    head.rename(head.with_name("kept"))
    head.mkdir()
    refused = warm.run("/usr/bin/touch", "made", **way)
    assert refused["error"]["class"] == "audit_unavailable", refused
    assert wait_until(lambda: not any(called(pid) == "touch" for pid in parts(warm)["commands"]))
    assert not (cordon.workspace / "made").exists()
    head.rmdir()
    head.with_name("kept").rename(head)
    works(warm, **way)


def test_it_is_traced_by_nobody(warm, way):
    """Nor what it starts; no signal is blocked, and it may run on every processor."""
    for _ in range(2):
        warm.ready(**way)
        done = warm.run("/bin/grep", "-h", "-e", "TracerPid", "-e", "SigBlk", "-e", "SigPnd", "-e", "ShdPnd", "-e", "Cpus_allowed:",
                        "/proc/self/status", **way)
        own = pathlib.Path("/proc/self/status").read_text()
        allowed = [line for line in own.splitlines() if line.startswith("Cpus_allowed:")]
        assert done["stdout"].splitlines() == ["TracerPid:\t0", "SigPnd:\t0000000000000000", "ShdPnd:\t0000000000000000",
                                               "SigBlk:\t0000000000000000", *allowed], done
    done = warm.run("/usr/bin/env", "/bin/grep", "TracerPid", "/proc/self/status", **way)
    assert done["stdout"] == "TracerPid:\t0\n", done


def test_each_command_has_what_it_asked_for(cordon, warm, way):
    """Whatever differs from the commands before; and a program that is not there is told as ever."""
    (cordon.workspace / "below").mkdir()
    for settings, argv, wanted in (
            ({"env": "WORD=other"}, ["/usr/bin/env"], "WORD=other\n"),
            ({"cwd": str(cordon.workspace / "below")}, ["/bin/pwd"], "/below\n"),
            ({}, ["/bin/echo", "as before"], "as before\n")):
        warm.ready(**way)
        done = warm.run(*argv, **settings, **way)
        assert done.get("exit_code") == 0 and wanted in done["stdout"], done
    for _ in range(3):
        warm.ready(**way)
        refused = warm.run("/nowhere/program", **way)
        assert refused["error"]["class"] == "program_not_found", refused
        refused = warm.run("/etc/passwd", **way)
        assert refused["error"]["class"] == "program_not_allowed", refused
    works(warm, **way)


def rows(cordon):
    return sum(path.read_bytes().count(b"\n") for path in (cordon.data / "cordon/ledger").glob("*.jsonl"))


def script(cordon, name, interpreter, mode=0o755):
    path = cordon.workspace / name
    path.write_text(f"#!{interpreter}\n")
    path.chmod(mode)


@pytest.mark.parametrize("program", ["/etc/passwd", "./directory", "./script", "./nested", "./unreadable"])
def test_what_may_not_be_executed_is_told_as_ever(cordon, warm, way, program):
    """In one attempt."""
    (cordon.workspace / "directory").mkdir()
    script(cordon, "script", " /etc/passwd -x")
    script(cordon, "nested", cordon.workspace / "script")
    script(cordon, "unreadable", "/etc/passwd", 0o111)
    warm.ready(**way)
    before = rows(cordon)
    refused = warm.run(program, **way)["error"]
    assert refused["class"] == "program_not_allowed" and refused["subject"] == program and not refused["retriable"], refused
    assert rows(cordon) - before <= 2
    works(warm, **way)


@pytest.mark.parametrize("argv, settings", [
    (["/usr/bin/env"], {"env": "WORD=other"}), (["/bin/true", "x" * 45000], {}), (["/bin/true", "x" * 70000], {}),
    (["/nowhere/program"], {}), (["/etc/passwd"], {})], ids=["other", "long", "longer", "missing", "forbidden"])
def test_a_command_leaves_no_pipes(warm, way, argv, settings):
    """However far it came."""
    seen = []
    for _ in range(6):
        warm.ready(**way)
        warm.run(*argv, **settings, **way)
        warm.run("/bin/true", **way)
        warm.await_place()
        seen.append(settled(warm)[0])
    assert seen[-1] < seen[0] + 8, seen


def test_without_a_row_it_never_runs(cordon, warm, way):
    warm.ready(**way)
    never_runs(cordon, warm, way)


@needs("strace", "mount-namespace", "unsanitized")
def test_a_program_does_not_begin_with_the_hosts_tree_in_its_namespace(cordon, leftovers, tmp_path, way):  # noqa: F811
    """Of each place the host's tree has left before its program begins, however long that takes."""
    trace = tmp_path / "trace"
    warm = Warm(cordon, prefix=["strace", "-f", "-qq", "-o", trace, "-e", "trace=umount2,execve", "-e",
                                "inject=umount2:delay_enter=200000"])
    try:
        warm.session("s")
        assert warm.run("/bin/true", **way).get("exit_code") == 0
    finally:
        warm.close()
    text = trace.read_text()
    # The words of who cannot be traced are addresses.
    unmounted, begins = re.search(r"umount2.*= 0\b", text), re.search(r'execve\((?!".*/warm-lab")', text)
    assert unmounted and begins and unmounted.end() < begins.start(), text
