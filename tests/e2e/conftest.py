"""What the end-to-end tests share: the program under test, a workspace, a place for cordon's data, and a terminal.

The program is named by CORDON_BIN or CORDON; otherwise it is build/cordon beside the sources. The tests pass as root
and as an ordinary user."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

ROOT = pathlib.Path(os.environ.get("CORDON_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
PROGRAM = os.environ.get("CORDON_BIN") or os.environ.get("CORDON") or str(ROOT / "build/cordon")
ERROR_KEYS = {"class", "boundary", "step", "reason", "subject", "remediation", "grant", "setting", "platform",
              "retriable", "audit_id"}


# However pytest was started: in the background of a script, a shell ignores SIGINT and SIGQUIT; nohup, SIGHUP. What a
# test starts would inherit that. The default of SIGINT in Python is an exception.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL),
                        (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

PATIENCE = 60  # seconds for what must happen, however busy the machine is; a test that passes never waits for so long


def wait_until(condition, seconds=PATIENCE):
    """True as soon as the condition holds, False if it never did."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def descendants(pid):
    """The living processes below one."""
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    except OSError:
        pass
    return found


def state(pid):
    """One letter, as the kernel has it; X where there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_running(pid):
    return state(pid) not in "ZX"


class Cordon:
    def __init__(self, workspace, data):
        self.workspace, self.data = workspace, data
        # Not the configuration of whoever runs the tests.
        self.env = {**os.environ, "XDG_DATA_HOME": str(data), "XDG_CONFIG_HOME": str(data.parent / "no-configuration")}

    def argv(self, *words):
        return [PROGRAM, *(os.fspath(word) for word in words)]

    def popen(self, *words, wrapper=(), **options):
        # A session of its own: whoever runs the tests from a terminal is not asked for approval there.
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "start_new_session": True, "cwd": self.workspace, "env": self.env, **options}
        return subprocess.Popen([*wrapper, *self.argv(*words)], **options)

    def __call__(self, *words, input=None, timeout=PATIENCE, text=True, **options):
        """The finished process, with .returncode, .stdout and .stderr."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.popen(*words, text=text, **options)
        try:
            output, errors = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            pytest.fail(f"no end after {timeout} s; output {output!r}, errors {errors!r}")
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def refused(self, *words, status=125, **options):
        """The error value of `cordon run --json` that must fail; checks that both forms of it are proper."""
        human = self("run", *words, **options)
        assert human.returncode == status, (human.stdout, human.stderr)
        assert human.stderr.startswith("cordon: ") and human.stdout == "", human
        machine = self("run", "--json", *words, **options)
        assert machine.returncode == status and machine.stderr == "", machine
        assert machine.stdout.count("\n") == 1 and machine.stdout.endswith("\n")
        error = json.loads(machine.stdout)["error"]
        assert set(error) == ERROR_KEYS
        assert error["reason"] and error["platform"] == "linux" and isinstance(error["retriable"], bool)
        return error


class Terminal:
    """A process in the foreground of a terminal of its own, as a person would have it."""
    def __init__(self, argv, cwd, env, rows=24, columns=80, controls=True):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.settings = termios.tcgetattr(self.slave)
        self.output, self.status = b"", None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                if controls:
                    fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                for fd in range(3):
                    os.dup2(self.slave, fd)
                os.closerange(3, 256)
                os.chdir(cwd)
                os.execvpe(argv[0], argv, {"TERM": "dumb", **env})
            finally:
                os._exit(99)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.output += os.read(self.master, 65536)
            except OSError:
                pass

    def expect(self, pattern, seconds=PATIENCE):
        """Waits for output that matches, and takes it away up to there."""
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(pattern.encode(), self.output)
            if found:
                self.output = self.output[found.end():]
                return found
            if time.monotonic() > deadline:
                pytest.fail(f"waited for {pattern!r}, got {self.output!r}")
            self.read(0.05)

    def end(self, seconds=PATIENCE):
        """The exit status as a shell gives it. All output has been read into .output."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                pytest.fail(f"no end after {seconds} s, got {self.output!r}")
        while select.select([self.master], [], [], 0.05)[0]:
            self.read(0)
        return self.status if self.status >= 0 else 128 - self.status

    def hang_up(self):
        for fd in (self.master, self.slave):
            os.close(fd)
        self.master = self.slave = -1

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def workspace(tmp_path):
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def cordon(tmp_path, workspace):
    return Cordon(workspace, tmp_path / "data")


@pytest.fixture
def terminal(cordon):
    """terminal(words...) starts cordon in a terminal; terminal.shell() a shell that can call it as $CORDON."""
    opened = []

    def start(*words, argv=None, **size):
        opened.append(Terminal(argv or cordon.argv(*words), cordon.workspace, cordon.env, **size))
        return opened[-1]

    def shell():
        cordon.env.update(PS1="outer> ", CORDON=PROGRAM)
        opened.append(Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"], cordon.workspace, cordon.env))
        opened[-1].expect("outer> ")
        return opened[-1]
    start.shell = shell
    yield start
    for each in opened:
        each.close()
