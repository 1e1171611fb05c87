"""Nothing of a command outlives it, its timeout, or its caller; floods, forks and crowds stay within bounds."""
import concurrent.futures
import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import descendants
from lab import IS_ROOT, drivers, leased, leftovers, needs, result, rows, rows_of, running, wait_until  # noqa: F401

# Four ways to be forgotten, each asleep for longer than any test, in a process that carries the marker.
CLINGERS = """
import os, signal, sys, time
heard, said = os.pipe()
def say(name):
    print(name, flush=True)
    os.write(said, b".")
def settle(name):
    say(name)
    time.sleep(600)
def double_fork():
    if os.fork() == 0:
        if os.fork() == 0:
            settle("orphan")
        os._exit(0)
def resession():
    if os.fork() == 0:
        os.setsid()
        settle("session")
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            say("daemon")
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            time.sleep(600)
        os._exit(0)
def deaf():
    if os.fork() == 0:
        for number in set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
        settle("deaf")
def stopped():
    pid = os.fork()
    if pid == 0:
        settle("stopped")
    os.read(heard, 1)
    os.kill(pid, signal.SIGSTOP)
for make in (double_fork, resession, daemon, deaf):
    make()
    os.read(heard, 1)
stopped()
print("all", flush=True)
if sys.argv[1] == "stay":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
"""
NAMES = {"orphan", "session", "daemon", "deaf", "stopped", "all"}


@pytest.fixture
def clingers(cordon):
    """The command, the name by which its processes are found, and where it is."""
    path = cordon.workspace / f"clingers-{os.getpid()}-{time.monotonic_ns()}.py"
    path.write_text(CLINGERS)
    return ["/usr/bin/python3", path.name]


def gone(marker, seconds=30):
    return wait_until(lambda: not running(marker), seconds)


# ---- the end of the command and its timeout --------------------------------------------------------------------------

def with_timeout(run, seen):
    """(timeout in ms, what run(timeout) gave), with the shortest timeout before which all was seen that must be: on a
    busy machine programs start late."""
    for seconds in (1, 4, 16):
        done = run(f"{seconds}s")
        if seen(done):
            break
    return seconds * 1000, done


@drivers()
def test_a_timeout_ends_the_whole_tree(cordon, clingers, leftovers, driver):
    def run(timeout):
        told = result(cordon, "--driver", driver, "--timeout", timeout, "--", *clingers, "stay")
        assert running(clingers[1]) == [], "still there when cordon returned"
        return told
    timeout, told = with_timeout(run, lambda told: set(told["stdout"].split()) == NAMES)
    assert told["timed_out"] and told["limit_hit"] == "time" and told["signal"] == signal.SIGKILL
    assert set(told["stdout"].split()) == NAMES, "the partial output is kept"
    assert timeout - 100 <= told["duration_ms"] < timeout + 20_000
    [intent, limit, ended] = rows_of(cordon, told["audit_id"])
    assert ended["timed_out"] and (intent["row"], limit["row"], limit["limit"]) == ("intent", "limit", "time")


@drivers()
def test_the_time_is_over_before_the_program_is_there(cordon, leftovers, driver):
    program = cordon.workspace / "program"
    shutil.copy("/bin/true", program)
    with leased(program) as is_awaited:
        told = result(cordon, "--driver", driver, "--timeout", "300ms", "--", "./program")
        assert is_awaited() and told["timed_out"] and 300 <= told["duration_ms"] < 20_000, told
        leftovers.check(10)


@drivers()
def test_a_signal_comes_before_the_program_is_there(cordon, leftovers, driver):
    """As it would end any process then: nobody is there yet who could do anything about it."""
    program = cordon.workspace / "program"
    shutil.copy("/bin/true", program)
    with leased(program) as is_awaited:
        process = cordon.popen("run", "--driver", driver, "--", "./program")
        assert wait_until(is_awaited)
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode in (128 + signal.SIGKILL, 128 + signal.SIGTERM)
        leftovers.check(10)


@drivers()
def test_a_timeout_is_status_124(cordon, clingers, leftovers, driver):
    _, done = with_timeout(lambda timeout: cordon("run", "--driver", driver, "--timeout", timeout, "--", *clingers,
                                                  "stay"),
                           lambda done: set(done.stdout.split()) == NAMES)
    assert done.returncode == 124 and set(done.stdout.split()) == NAMES and "timed out" in done.stderr


@drivers()
def test_nothing_outlives_the_command(cordon, clingers, leftovers, driver):
    done = cordon("run", "--driver", driver, "--", *clingers, "leave")
    assert running(clingers[1]) == [], "still there when cordon returned"
    assert done.returncode == 0 and set(done.stdout.split()) == NAMES


# Init's own children, of which all but one are dead and stay so, since that one traces them: it is the last in the list
# of them. With `stop`, one who has its parent trace it instead; with `busy`, as many who sleep, and some who do that
# again and again.
HIDER = """
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>
#define DEAD 900
static pid_t brothers[DEAD];
static pid_t brother(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		alarm(30);
	return pid;
}
static void stop(void)
{
	ptrace(PTRACE_TRACEME);
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	puts("went on");
}
static void keep_busy(void)
{
	for (int i = 0; i < DEAD; i++)
		if (!brother())
			for (;;)
				pause();
	signal(SIGUSR1, SIG_IGN);
	for (int i = 0; i < 80; i++)
		if (!brother())
			for (;;) {
				ptrace(PTRACE_TRACEME);
				raise(SIGUSR1);
			}
	alarm(30);
	puts("busy");
	for (fflush(stdout);; usleep(3000))
		if (!brother())
			_exit(0);
}
static void hide(void)
{
	for (int i = 0; i < DEAD; i++)
		ptrace(PTRACE_SEIZE, brothers[i], 0, 0);
	for (int i = 0; i < DEAD; i++)
		kill(brothers[i], SIGKILL);
	puts("hidden");
	fflush(stdout);
	for (;;)
		pause();
}
int main(int argc, char **argv)
{
	if (argc > 2) {
		strcmp(argv[2], "stop") ? keep_busy() : stop();
		return 7;
	}
	for (int i = 0; i < DEAD; i++)
		if (!(brothers[i] = brother()))
			for (prctl(PR_SET_PTRACER, -1);;)
				pause();
	if (!brother())
		hide();
	for (;;)
		pause();
}
"""


@pytest.fixture
def hider(cordon, tmp_path):
    """With no control group that would know them all."""
    (tmp_path / "config.toml").write_text('limits.cgroup = "none"')
    (tmp_path / "hider.c").write_text(HIDER)
    subprocess.run(["cc", "-O1", "-o", cordon.workspace / "hider", tmp_path / "hider.c"], check=True)
    return ["run", "--config", tmp_path / "config.toml", "--processes", "2000"], ["./hider", f"hider-{os.getpid()}"]


@needs("gcc")
@drivers()
def test_who_stays_dead_hides_nobody(cordon, leftovers, hider, driver):
    options, command = hider
    _, done = with_timeout(lambda timeout: cordon(*options, "--driver", driver, "--timeout", timeout, "--", *command),
                           lambda done: "hidden" in done.stdout)
    assert running(command[1]) == [], "still there when cordon returned"
    assert done.returncode == 124 and done.stdout == "hidden\n"


@needs("gcc")
@drivers("namespaces", "landlock", "local")
def test_who_is_stopped_has_not_ended(cordon, leftovers, hider, driver):
    """Also where it is init that is to trace it. (bubblewrap's own pid 1 takes it for its end.)"""
    options, command = hider
    done = cordon(*options, "--driver", driver, "--", *command, "stop")
    assert (done.returncode, done.stdout) == (7, "went on\n"), done


@drivers()
def test_a_background_child_does_not_hold_it_up(cordon, leftovers, driver):
    done = cordon("run", "--driver", driver, "-c", "sleep 300 & nohup sleep 301 > /dev/null 2>&1 & echo started")
    assert done.stdout == "started\n" and done.returncode == 0


@drivers()
def test_a_caller_that_ignores_and_blocks_every_signal(cordon, leftovers, driver):
    """As daemons do. init must still hear of the command's end, and the command of its children's."""
    def deaf():
        for number in set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
    done = cordon("run", "--quiet", "--driver", driver, "-c", "(exit 3); sleep 300 & kill $!; wait $!; echo $?; exit 5",
                  preexec_fn=deaf)
    assert (done.returncode, done.stdout) == (5, "143\n"), done


def test_a_stopped_command_still_times_out(cordon, leftovers):
    _, done = with_timeout(lambda timeout: cordon("run", "--timeout", timeout, "-c",
                                                  "echo before; kill -STOP $$; echo after"),
                           lambda done: done.stdout)
    assert done.returncode == 124 and done.stdout == "before\n"


@needs("gcc")
def test_a_thread_group_without_its_leader_is_ended(cordon, leftovers):
    (cordon.workspace / "t.c").write_text(
        "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "static void *run(void *x) { puts(\"thread\"); fflush(stdout); for (;;) pause(); return x; }\n"
        "int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_exit(0); }\n")
    subprocess.run(["gcc", "-pthread", "-o", "t", "t.c"], cwd=cordon.workspace, check=True)
    _, done = with_timeout(lambda timeout: cordon("run", "--timeout", timeout, "--", "./t"), lambda done: done.stdout)
    assert done.returncode == 124 and done.stdout == "thread\n"


# ---- the end of cordon itself ----------------------------------------------------------------------------------------

@drivers()
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_cordon_ended_at_random_moments(cordon, leftovers, driver, number):
    """Also while it has hardly begun: within its first milliseconds."""
    dice, name = random.Random(number), f"300.{os.getpid()}{number:02}"
    moments = [0, 0.0005, 0.001, 0.0015, 0.002, 0.003] + [dice.uniform(0, 0.03) for _ in range(10)]
    for moment in moments:
        process = cordon.popen("run", "--driver", driver, "--", "sleep", name, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        deadline = time.perf_counter() + moment
        while time.perf_counter() < deadline:
            pass
        process.send_signal(number)
        # A signal that came before cordon could pass it on ends cordon, one that came after ends the command.
        assert process.wait(60) in (-number, 128 + number), moment
    assert gone(name)
    # What a killed cordon could not clear away, the next one does.
    assert cordon("run", "--driver", driver, "--quiet", "--", "true").returncode == 0
    leftovers.check()
    for row in rows(cordon):
        assert row["row"] in ("intent", "result", "denial", "repair")
    assert list(cordon.workspace.iterdir()) == []


@drivers()
def test_cordon_killed_takes_clingers_along(cordon, clingers, leftovers, driver):
    process = cordon.popen("run", "--driver", driver, "--", *clingers, "stay")
    seen = set()
    while seen != NAMES:
        seen.add(process.stdout.readline().decode().strip())
    assert len(running(clingers[1])) >= 6
    process.kill()
    process.communicate()
    assert gone(clingers[1])
    assert cordon("run", "--driver", driver, "--quiet", "--", "true").returncode == 0


@needs("gcc")
@drivers("namespaces", "landlock", "local")
def test_cordon_killed_is_heard_by_an_init_that_has_much_to_do(cordon, leftovers, hider, driver):
    options, command = hider
    process = cordon.popen(*options, "--driver", driver, "--", *command, "busy")
    assert process.stdout.readline() == b"busy\n"
    time.sleep(0.3)
    process.kill()
    process.communicate()
    assert gone(command[1], 15)
    assert cordon("run", "--driver", driver, "--quiet", "--", "true").returncode == 0


def test_a_killed_session_is_killed_with_its_terminal(terminal, leftovers):
    name = f"301.{os.getpid()}"
    session = terminal("run", "--tty", "-c", f"trap '' HUP TERM; echo going; sleep {name}")
    session.expect("going")
    assert running(name)
    os.kill(session.pid, signal.SIGKILL)
    session.end()
    assert gone(name)


def test_the_intent_of_a_killed_run_stays(cordon, leftovers):
    process = cordon.popen("run", "-c", "echo up; sleep 60")
    assert process.stdout.readline() == b"up\n"
    process.kill()
    process.communicate()
    [row] = rows(cordon)
    assert row["row"] == "intent"
    assert cordon("run", "--", "true").returncode == 0
    assert [row["row"] for row in rows(cordon)] == ["intent", "intent", "result"]


# ---- bounds ----------------------------------------------------------------------------------------------------------

def peak_kb(argv, **options):
    """(finished process, the most memory that cordon itself had). The command's own is not in it: init reaps that."""
    code = ("import os, resource, subprocess, sys\n"
            "done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)\n"
            "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run([sys.executable, "-I", "-c", code, *argv], capture_output=True, text=True, timeout=120,
                          **options)
    status, peak = map(int, done.stdout.split())
    return status, peak


@needs("unsanitized")
@pytest.mark.parametrize("shape", [(), ("--json",)], ids=["plain", "json"])
def test_a_flood_of_200_megabytes(cordon, shape):
    status, peak = peak_kb(cordon.argv("run", *shape, "-c", "head -c 200000000 /dev/zero | tr '\\0' x"),
                           cwd=cordon.workspace, env=cordon.env)
    assert status == 0 and peak < 40_000, f"{peak} kB"
    [_, ended] = rows(cordon)
    assert ended["stdout"]["bytes"] == 200_000_000 and ended["stdout"]["truncated"] == bool(shape)


def test_a_flood_on_both_streams_until_the_timeout(cordon, leftovers):
    _, told = with_timeout(lambda timeout: result(cordon, "--timeout", timeout, "-c", "yes out & yes err >&2"),
                           lambda told: told["stdout_bytes"] > 2 << 20 and told["stderr_bytes"] > 1 << 20)
    assert told["timed_out"] and told["truncated"]
    assert told["stdout_bytes"] > 2 << 20 and told["stderr_bytes"] > 1 << 20
    assert len(told["stdout"]) < (1 << 20) + 100 and len(told["stderr"]) < (256 << 10) + 100
    assert "bytes omitted]\n" in told["stdout"] and "bytes omitted]\n" in told["stderr"]


BOMB = """
import errno, os, time
made, why = 0, None
try:
    while made < 5000:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError as error:
    why = errno.errorcode[error.errno]
print(made, why)
"""


def test_processes_are_limited(cordon, leftovers):
    for limit in (5, 20):
        done = cordon("run", "--processes", str(limit), "--", "/usr/bin/python3", "-c", BOMB)
        made, why = done.stdout.split()
        assert why == "EAGAIN" and limit - 2 <= int(made) < limit, done.stdout


def test_a_fork_bomb_burns_out(cordon, leftovers):
    name = f"bomb{os.getpid()}"
    done = cordon("run", "--processes", "30", "--timeout", "1s", "-c", f": {name}; b() {{ b | b & }}; b; sleep 60")
    assert done.returncode in (2, 124, 254), done
    assert gone(name)
    assert cordon("run", "--", "echo", "fine").stdout == "fine\n"


def test_one_limit_is_not_shared_between_runs(cordon):
    """Each run has its own count, whoever else runs as the same user."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(cordon, "run", "--processes", "12", "-c",
                            "for n in 1 2 3 4 5 6 7 8; do sleep 0.5 & done; wait; echo ok")
                for _ in range(4)]
        assert [run.result().stdout for run in runs] == ["ok\n"] * 4


def test_a_crowd(cordon, leftovers):
    """32 at once, five times over: each gets its own output, and the ledger has every row whole."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        for turn in range(5):
            runs = {n: pool.submit(cordon, "run", "--session", f"s{n % 4}", "-c", f"echo {turn}-{n}; echo $$ > file{n}")
                    for n in range(32)}
            for n, run in runs.items():
                done = run.result()
                assert (done.returncode, done.stdout, done.stderr) == (0, f"{turn}-{n}\n", ""), done
    kinds = {}
    for row in rows(cordon):
        if row["row"] != "session":
            kinds.setdefault(row["id"], []).append(row["row"])
    assert len(kinds) == 160 and all(seen == ["intent", "result"] for seen in kinds.values())


@drivers()
@pytest.mark.parametrize("busy", [False, True])
def test_it_may_run_wherever_the_caller_may(cordon, driver, busy):
    """Its processes are sent apart or kept together while its walls are raised, by whether a processor is free: not for
    longer."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in os.sched_getaffinity(0)] if busy else []
    try:
        done = [cordon("run", "--driver", driver, "--", "/bin/grep", "Cpus_allowed:", "/proc/self/status")
                for _ in range(3)]
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    allowed = [line for line in pathlib.Path("/proc/self/status").read_text().splitlines()
               if line.startswith("Cpus_allowed:")]
    assert [one.stdout.splitlines() for one in done] == [allowed] * 3, done


# ---- signals ---------------------------------------------------------------------------------------------------------

@drivers("landlock", "local")
def test_signals_reach_the_command_on_every_driver(cordon, leftovers, driver):
    process = cordon.popen("run", "--quiet", "--driver", driver, "-c",
                           "trap 'echo got; exit 7' TERM; echo up; while :; do sleep 0.05; done")
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    assert process.communicate(timeout=60)[0] == b"got\n" and process.returncode == 7


@drivers("bwrap")
def test_a_signal_ends_bubblewrap_and_all_in_it(cordon, leftovers, driver):
    """bubblewrap is in the way: it does not pass signals on, so the command cannot handle them."""
    name = f"302.{os.getpid()}"
    process = cordon.popen("run", "--quiet", "--driver", driver, "-c", f"trap '' TERM; echo up; sleep {name}")
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and gone(name)


def test_a_signal_reaches_the_whole_group(cordon, leftovers):
    # Each trap is set before "up" is said.
    process = cordon.popen("run", "-c", "trap 'echo parent; wait; exit 3' USR1; trap 'exit 4' TERM; "
                                        "sh -c 'trap \"echo child\" USR1; echo up; while :; do sleep 0.05; done' & wait; sleep 5")
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGUSR1)
    assert {process.stdout.readline(), process.stdout.readline()} == {b"child\n", b"parent\n"}
    process.kill()
    process.communicate()


def test_nothing_is_begun_before_the_row(cordon, leftovers):
    """While the intent row cannot be written there is no process but the caller's."""
    assert cordon("run", "--", "/bin/true").returncode == 0
    with open(cordon.data / "cordon/ledger/head") as head:
        fcntl.flock(head, fcntl.LOCK_EX)
        process = cordon.popen("run", "-c", "echo up")
        assert not wait_until(lambda: descendants(process.pid), 0.5)
    assert process.communicate(timeout=60)[0] == b"up\n" and process.returncode == 0


@needs("strace", "mount-namespace", "unsanitized")
def test_a_program_does_not_begin_with_the_hosts_tree_in_its_namespace(cordon, tmp_path):
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-qq", "-o", trace, "-e", "trace=umount2,execve", "-e",
                           "inject=umount2:delay_exit=200000", *cordon.argv("run", "--", "/bin/true")],
                          cwd=cordon.workspace, env=cordon.env, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)
    assert done.returncode == 0, done
    text = trace.read_text()
    unmounted, begins = re.search(r"umount2.*= 0\b", text), re.search(r'execve\("/bin/true"', text)
    assert unmounted and begins and unmounted.end() < begins.start(), text


@needs("strace", "mount-namespace", "unsanitized")
def test_a_table_of_descriptors_has_grown_before_it_is_shared(cordon, tmp_path):
    """While two processes share one it grows only when every processor has let go of the old one, which takes
    milliseconds: what raises the walls has had a descriptor beyond all that come while it does."""
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-qq", "-o", trace, "-e", "trace=%desc,clone,unshare",
                           *cordon.argv("run", "--", "/bin/true")],
                          cwd=cordon.workspace, env=cordon.env, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)
    assert done.returncode == 0, done
    text = trace.read_text()
    shared = re.search(r"^(\d+) +clone\(.*CLONE_FILES.*SIGCHLD", text, re.MULTILINE)
    alone = re.search(rf"^{shared.group(1)} +unshare\(CLONE_FILES", text, re.MULTILINE)
    opens = rf"^{shared.group(1)} +(?:open|fs|fcntl\(\d+, F_DUPFD|<\.\.\. (?:open|fs|fcntl)).*= (\d+)$"
    before = [int(fd) for fd in re.findall(opens, text[:shared.start()], re.MULTILINE)]
    meanwhile = [int(fd) for fd in re.findall(opens, text[shared.start():alone.start()], re.MULTILINE)]
    assert meanwhile and max(before, default=0) > max(meanwhile), (before, meanwhile)


def test_a_killed_command_keeps_its_output(cordon):
    told = result(cordon, "-c", "echo partial; kill -KILL $$")
    assert (told["exit_code"], told["signal"], told["stdout"]) == (-1, signal.SIGKILL, "partial\n")
    assert not told["timed_out"] and told["limit_hit"] is None
