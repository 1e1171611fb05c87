"""A session that is paused: what runs in a control group of version 2 is frozen, whoever runs it, and does nothing
before it is resumed or killed, whatever it prepared for; what ends a command ends it then, too. Without such a group it
goes on, and `session show` says so. An ordinary user's groups are tested in tests/vm."""
import glob
import json
import os
import pathlib
import signal
import time

import pytest

from conftest import PATIENCE, Terminal, descendants
from lab import drivers, lack, leftovers, needs, own_group, rows, running, wait_until  # noqa: F401
from test_serve import Daemon

PYTHON = "/usr/bin/python3"
COUNT = "while :; do echo x >>count; sleep 0.01; done"
A_WHILE = 0.5  # longer than it takes until a pause is noticed

# Told to go on by clocks that it has set, in every way there is.
CONTINUED = """
import ctypes, os, signal, time
def on(*_):
    os.write(file, b"x")
    os.kill(-1, signal.SIGCONT)
file = os.open("count", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.fork()
libc = ctypes.CDLL(None)
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_char * 48)]
for number in (signal.SIGCONT, signal.SIGRTMIN):
    signal.signal(number, on)
    timer, often = ctypes.c_void_p(), (ctypes.c_long * 4)(0, 10_000_000, 0, 10_000_000)
    assert libc.timer_create(1, ctypes.byref(Event(signal=number)), ctypes.byref(timer)) == 0
    assert libc.timer_settime(timer, 0, ctypes.byref(often), None) == 0
signal.signal(signal.SIGALRM, on)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
while True:
    time.sleep(1)
"""
# As many as can be, each at work.
BOMB = """
import os
file = os.open("count", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    try:
        os.fork()
    except OSError:
        pass
    os.write(file, b"x")
"""
# Each has gone when it is looked for, and another is there.
RUNNERS = """
import os, time
file = os.open("count", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for _ in range(4):
    if os.fork() == 0:
        while True:
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                pass
            os.write(file, b"x")
time.sleep(600)
"""


class Settings:
    """The configuration of everything that a test starts."""
    def __init__(self, cordon):
        self.path, self.lines = pathlib.Path(cordon.env["XDG_CONFIG_HOME"]) / "cordon/config.toml", {}

    def set(self, key, value):
        self.lines[key] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(f'{key} = "{value}"\n' for key, value in self.lines.items()))


@pytest.fixture
def settings(cordon):
    return Settings(cordon)


@pytest.fixture
def grouped(settings):
    """Commands get a group in a directory of version 2 of our own, without controllers."""
    for name in ("root", "cgroup2"):
        if lack(name):
            pytest.skip(lack(name))
    with own_group() as path:
        settings.set("limits.cgroup", path)
        yield


@pytest.fixture
def daemon(cordon, grouped):
    served = Daemon(cordon).start()
    yield served
    if served.process:
        served.end()


def start(cordon, *words, session="s"):
    return cordon.popen("run", "--json", "--session", session, "--workspace", cordon.workspace, *words, text=True)


def start_job(cordon, *words):
    done = cordon("job", "start", "--session", "s", "--workspace", cordon.workspace, *words)
    assert done.returncode == 0, done
    return done.stdout.strip()


def job(cordon, number, action="poll"):
    done = cordon("job", action, "--json", number)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def end(process):
    output, errors = process.communicate(timeout=PATIENCE)
    assert errors == "", errors
    return json.loads(output)


def session(cordon, *words):
    done = cordon("session", *words)
    assert done.returncode == 0, done


def count(cordon):
    path = cordon.workspace / "count"
    return path.stat().st_size if path.exists() else 0


def grows(cordon):
    before = count(cordon)
    return wait_until(lambda: count(cordon) > before + 3)


def stands_still(cordon):
    """Soon, and then for a while."""
    seen, since = count(cordon), time.monotonic()
    until = since + 20
    while since + A_WHILE > (now := time.monotonic()) and now < until:
        time.sleep(0.02)
        if count(cordon) != seen:
            seen, since = count(cordon), time.monotonic()
    return since + A_WHILE <= time.monotonic() and count(cordon) == seen


def pause(cordon, *words):
    """What was counted by then."""
    assert grows(cordon)
    session(cordon, "pause", "s", *words)
    assert stands_still(cordon)
    return count(cordon)


def left(process):
    return glob.glob(f"/sys/fs/cgroup/**/cordon-{process.pid}-*", recursive=True)


# ---- standing still, and going on ------------------------------------------------------------------------------------

@drivers()
def test_a_command(cordon, leftovers, grouped, settings, driver):  # noqa: F811
    settings.set("sandbox.driver", driver)
    process = start(cordon, "-c", f"({COUNT}) & {COUNT}")
    for _ in range(2):
        pause(cordon)
        session(cordon, "resume", "s")
    assert grows(cordon)
    process.send_signal(signal.SIGTERM)
    told = end(process)
    assert told["signal"] == signal.SIGTERM and 2 * A_WHILE * 1000 < told["paused_ms"] < told["duration_ms"], told
    assert [row["paused_ms"] for row in rows(cordon) if row["row"] == "result"] == [told["paused_ms"]]
    assert wait_until(lambda: not left(process)), left(process)


def test_a_terminal(cordon, leftovers, grouped):  # noqa: F811
    words = ["run", "--tty", "--session", "s", "--workspace", cordon.workspace, "-c", COUNT]
    terminal = Terminal(cordon.argv(*words), cordon.workspace, cordon.env)
    pause(cordon)
    session(cordon, "resume", "s")
    assert grows(cordon)
    terminal.type("\x03")
    assert terminal.end() == 130
    terminal.close()


def test_a_job(cordon, leftovers, grouped):  # noqa: F811
    number = start_job(cordon, "-c", COUNT)
    pause(cordon)
    assert job(cordon, number)["state"] == "running"
    session(cordon, "resume", "s")
    before = pause(cordon)
    began = time.monotonic()
    assert cordon("job", "kill", number).returncode == 0
    assert time.monotonic() - began < 3, "it was asked to end, which it cannot hear"
    assert (job(cordon, number)["signal"], count(cordon)) == (signal.SIGKILL, before)


def test_by_the_daemon(cordon, leftovers, daemon):  # noqa: F811
    """In walls that were raised for it, and in such as were up; others go on meanwhile."""
    for _ in range(3):
        assert cordon("run", "--session", "s", "--workspace", cordon.workspace, "--", "true").returncode == 0
        process = start(cordon, "-c", COUNT)
        number = start_job(cordon, "-c", f"cd {cordon.workspace}; {COUNT}")
        before = pause(cordon)
        assert cordon("run", "--session", "other", "--", "echo", "hello").stdout == "hello\n"
        process.kill()
        process.communicate()
        assert cordon("job", "kill", number).returncode == 0 and count(cordon) == before
        session(cordon, "resume", "s")
    assert daemon.status()["pid"] == daemon.process.pid


def test_one_that_starts_meanwhile(cordon, leftovers, grouped):  # noqa: F811
    """Between the look at the session and the start there is time to pause it."""
    paused = 0
    for delay in (0, 0.004, 0.01, 0.03):
        process = start(cordon, "-c", COUNT)
        time.sleep(delay)
        done = cordon("session", "pause", "s")
        if done.returncode == 0:
            paused += 1
            assert stands_still(cordon)
            session(cordon, "resume", "s")
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert paused >= 3, "only the first may have come before there was a session"


@needs("cgroup2-memory")
def test_paused_for_want_of_memory(cordon, leftovers, grouped):  # noqa: F811
    number = start_job(cordon, "-c", COUNT)
    assert grows(cordon)
    hog = start(cordon, "--memory", "32M", "--", PYTHON, "-c", "print(len(b'x' * (64 << 20)))")
    assert end(hog)["oom_killed"] and stands_still(cordon)
    session(cordon, "resume", "s")
    assert grows(cordon) and cordon("job", "kill", number).returncode == 0


@pytest.mark.parametrize("how", ["continued", "bomb", "runners"])
def test_whoever_would_not(cordon, leftovers, grouped, how):  # noqa: F811
    script = {"continued": CONTINUED, "bomb": BOMB, "runners": RUNNERS}[how]
    process = start(cordon, "--processes", "48", "--", PYTHON, "-c", script)
    pause(cordon)
    session(cordon, "resume", "s")
    before = pause(cordon)
    session(cordon, "end", "s")
    told = end(process)
    assert (told["signal"], count(cordon)) == (signal.SIGKILL, before), told


# ---- the end meanwhile -----------------------------------------------------------------------------------------------

@drivers()
def test_the_end_of_the_session(cordon, leftovers, grouped, settings, driver):  # noqa: F811
    """Nothing goes on for even a moment."""
    settings.set("sandbox.driver", driver)
    number = start_job(cordon, "-c", f"trap 'echo asked >>count' TERM; {COUNT}")
    process = start(cordon, "-c", f"({COUNT}) & ({COUNT}) & {COUNT}")
    before = pause(cordon)
    session(cordon, "end", "s")
    told = end(process)
    assert (told["signal"], told["timed_out"]) == (signal.SIGKILL, False) and told["paused_ms"] > 0, told
    assert job(cordon, number)["signal"] == signal.SIGKILL and count(cordon) == before
    assert wait_until(lambda: not left(process)), left(process)


@drivers()
def test_a_timeout(cordon, leftovers, grouped, settings, driver):  # noqa: F811
    settings.set("sandbox.driver", driver)
    process = start(cordon, "--timeout", "2s", "-c", f"({COUNT}) & {COUNT}")
    before = pause(cordon)
    told = end(process)
    assert told["timed_out"] and told["limit_hit"] == "time" and 1900 <= told["duration_ms"] < 30_000, told
    assert told["paused_ms"] > 0
    assert count(cordon) == before and not descendants(process.pid)


@drivers()
def test_a_caller_that_is_killed(cordon, leftovers, grouped, settings, driver):  # noqa: F811
    settings.set("sandbox.driver", driver)
    marker = f"sleep 600.{os.getpid()}"
    process = start(cordon, "-c", f"{marker} & {COUNT}")
    before = pause(cordon)
    assert running(marker.replace(" ", "\0"))
    process.kill()
    process.communicate()
    assert wait_until(lambda: not running(marker.replace(" ", "\0"))), "something stands there for good"
    assert count(cordon) == before
    # The next one removes what is left.
    session(cordon, "resume", "s")
    assert wait_until(lambda: cordon("run", "--session", "s", "--", "true").returncode == 0
                      and not left(process)), left(process)


def test_a_daemon_that_is_killed(cordon, leftovers, daemon):  # noqa: F811
    process = start(cordon, "-c", COUNT)
    pid = daemon.process.pid
    before = pause(cordon)
    daemon.process.kill()
    daemon.process.communicate()
    daemon.process = None
    process.communicate(timeout=PATIENCE)
    leftovers.check()
    assert count(cordon) == before
    session(cordon, "resume", "s")
    assert wait_until(lambda: cordon("run", "--session", "s", "--", "true").returncode == 0 and
                      not glob.glob(f"/sys/fs/cgroup/**/cordon-{pid}-*", recursive=True))


def test_nobody_is_left_to_let_it_go(cordon, leftovers, grouped):  # noqa: F811
    """With its supervisor and its init gone at once, the next command does it."""
    process = start(cordon, "-c", COUNT)
    before = pause(cordon)
    init = descendants(process.pid)[0]
    process.send_signal(signal.SIGSTOP)
    os.kill(init, signal.SIGKILL)
    process.kill()
    process.communicate()
    session(cordon, "resume", "s")
    assert wait_until(lambda: cordon("run", "--session", "s", "--", "true").returncode == 0
                      and not left(process)), left(process)
    assert count(cordon) == before


def test_nobody_is_left_to_end_it(cordon, leftovers, grouped):  # noqa: F811
    """Nor does another command come."""
    marker = f"sleep 600.{os.getpid()}"
    process = start(cordon, "-c", f"{marker} & {COUNT}")
    pause(cordon)
    init = descendants(process.pid)[0]
    process.send_signal(signal.SIGSTOP)
    os.kill(init, signal.SIGKILL)
    process.kill()
    process.communicate()
    session(cordon, "end", "s")
    assert wait_until(lambda: not running(marker.replace(" ", "\0")), 5), "something stands there for good"
    assert wait_until(lambda: cordon("run", "--", "true").returncode == 0 and not left(process)), left(process)


# ---- what becomes of it is said --------------------------------------------------------------------------------------

def said(cordon):
    """What `session show` says of commands that run: as JSON, and for people."""
    document = json.loads(cordon("session", "show", "--json", "s").stdout)
    lines = [line for line in cordon("session", "show", "s").stdout.splitlines() if line.startswith("running ")]
    return document["running_commands"], lines


@pytest.mark.parametrize("group", ["as it is", "none", "version 2"])
def test_session_show_says_whether_it_goes_on(cordon, leftovers, settings, request, group):  # noqa: F811
    if group == "version 2":
        request.getfixturevalue("grouped")
    elif group == "none":
        settings.set("limits.cgroup", "none")
    freezes = json.loads(cordon("doctor", "--json").stdout)["limits"]["mechanism"] == "cgroup v2"
    process = start(cordon, "-c", COUNT)
    assert grows(cordon) and said(cordon) == (None, [])
    session(cordon, "pause", "s")
    if freezes:
        assert stands_still(cordon)
        assert said(cordon) == ("frozen", ["running     commands that run are frozen"])
    else:
        time.sleep(A_WHILE)
        assert grows(cordon)
        assert said(cordon) == ("go on", ["running     commands that run go on: there is no control group of version 2 to freeze them"])
        assert cordon("run", "--session", "s", "--", "true").returncode == 125, "no other begins"
    session(cordon, "resume", "s")
    assert grows(cordon) and said(cordon) == (None, [])
    process.terminate()
    assert ("paused_ms" in end(process)) == freezes
