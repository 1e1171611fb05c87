"""The client's end of src/door/wire/wire.h: `cordon run` in a session speaks to a daemon. Here the daemon is a script,
so that each frame is seen and each can be odd; test_serve.py tests the same with a real daemon."""
import ctypes
import os
import pathlib
import signal
import socket
import struct
import subprocess

import pytest

from conftest import PATIENCE, state, wait_until
from lab import IS_ROOT

HELLO, STDIN, SIGNAL, ANSWER = 0x81, 0x82, 0x83, 0x84
DECLINE, MORE, STDOUT, STDERR, ASK, SETTLED, SAY_OUT, SAY_ERR, END = range(0xc1, 0xca)
OVER, UNSTARTED = 1, 2
NO_STDIN, OUT_TERMINAL, ERR_TERMINAL, CAN_ASK, ONE_STREAM = 1, 2, 4, 8, 16


class Talk:
    """One connection, from the daemon's side."""
    def __init__(self, connection):
        self.connection = connection
        connection.settimeout(PATIENCE)

    def take(self, length):
        taken = b""
        while len(taken) < length:
            more = self.connection.recv(length - len(taken))
            if not more:
                return None
            taken += more
        return taken

    def frame(self):
        """(kind, body), or None at the end."""
        head = self.take(8)
        if head is None:
            return None
        kind, flags, zero, length = struct.unpack("=BBHI", head)
        assert flags == zero == 0
        return kind, self.take(length)

    def hello(self):
        kind, body = self.frame()
        assert kind == HELLO
        version, self.flags, words, variables, self.umask = struct.unpack("=IIIII", body[:20])
        *strings, rest = body[20:].split(b"\0")
        assert version == 2 and rest == b"" and len(strings) == words + variables + 1
        self.words, self.environment, self.cwd = strings[:words], strings[words:-1], strings[-1]
        return self

    def say(self, kind, body=b"", flags=0):
        self.connection.sendall(struct.pack("=BBHI", kind, flags, 0, len(body)) + body)

    def number(self, kind, number, flags=0):
        self.say(kind, struct.pack("=I", number), flags)

    def signal(self):
        kind, body = self.frame()
        assert kind == SIGNAL
        return struct.unpack("=I", body)[0]

    def end(self, status=0):
        self.number(END, status, OVER)
        self.connection.close()


class Daemon:
    def __init__(self, cordon):
        (cordon.data / "cordon").mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.fspath(cordon.data / "cordon/daemon.sock"))
        self.socket.listen(8)
        self.socket.settimeout(PATIENCE)

    def talk(self):
        return Talk(self.socket.accept()[0]).hello()

    def is_called(self):
        """Did anybody connect who has not been talked to?"""
        self.socket.settimeout(0)
        try:
            self.socket.accept()
            return True
        except BlockingIOError:
            return False


@pytest.fixture
def daemon(cordon):
    made = Daemon(cordon)
    yield made
    made.socket.close()


@pytest.fixture
def started(cordon, daemon):
    """started(words…) is a process and the talk with it."""
    processes = []

    def start(*words, **options):
        processes.append(cordon.popen("run", "--session", "s", *words, **options))
        return processes[-1], daemon.talk()
    yield start
    for process in processes:
        process.kill()
        process.communicate()


def finish(process):
    output, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, output, errors


# ---- what is said ----------------------------------------------------------------------------------------------------

def test_everything_is_said(cordon, started):
    process, talk = started("--json", "--", "prog", "", "x y", "\udcff")
    assert talk.flags == NO_STDIN
    assert talk.words == [b"run", b"--session", b"s", b"--json", b"--", b"prog", b"", b"x y", b"\xff"]
    assert talk.environment == [os.fsencode(f"{name}={value}") for name, value in cordon.env.items()]
    assert talk.cwd == os.fsencode(cordon.workspace)
    talk.end(42)
    assert finish(process) == (42, b"", b"")


def test_output_and_status(started):
    process, talk = started("x")
    talk.say(STDOUT, b"out")
    talk.say(STDERR, b"err")
    talk.say(STDOUT, b"")
    talk.say(STDOUT, b"put\n", OVER)
    talk.say(SAY_ERR, b"ors\n", OVER)
    talk.say(SAY_OUT, b"said\n", OVER)
    talk.end(3)
    assert finish(process) == (3, b"output\nsaid\n", b"errors\n")


def test_frames_in_pieces_and_many_at_once(started):
    process, talk = started("x")
    body = bytes(range(256)) * 200
    frames = b"".join(struct.pack("=BBHI", kind, 0, 0, len(part)) + part
                      for kind, part in ((STDOUT, b"one\n"), (MORE, struct.pack("=I", 5)), (STDERR, b"two\n")))
    for byte in frames:
        talk.connection.sendall(bytes([byte]))
    talk.connection.sendall(frames * 500 + struct.pack("=BBHI", STDOUT, 0, 0, len(body)) + body)
    talk.end()
    assert finish(process) == (0, b"one\n" * 501 + body, b"two\n" * 501)


def test_input_only_as_it_is_wanted(started):
    process, talk = started("x", stdin=subprocess.PIPE)
    assert not talk.flags & NO_STDIN
    process.stdin.write(b"0123456789")
    process.stdin.flush()
    talk.number(MORE, 4)
    assert talk.frame() == (STDIN, b"0123")
    talk.number(MORE, 3)
    assert talk.frame() == (STDIN, b"456")
    talk.number(MORE, 100)
    assert talk.frame() == (STDIN, b"789")
    process.stdin.close()
    process.stdin = None
    assert talk.frame() == (STDIN, b"")
    talk.end()
    assert finish(process)[0] == 0


def test_much_input(started, tmp_path):
    content = os.urandom(300_000)
    (tmp_path / "input").write_bytes(content)
    with open(tmp_path / "input", "rb") as file:
        process, talk = started("x", stdin=file)
    talk.number(MORE, 0xffffffff)
    talk.number(MORE, 0xffffffff)
    got = b""
    while (part := talk.frame()[1]):
        got += part
    talk.end()
    assert got == content and finish(process)[0] == 0


def test_input_that_is_not_wanted_stays(started):
    reader, writer = os.pipe()
    os.write(writer, b"kept")
    process, talk = started("x", stdin=reader)
    talk.end()
    assert finish(process)[0] == 0
    assert os.read(reader, 10) == b"kept"
    os.close(reader)
    os.close(writer)


# ---- signals ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_go_to_the_command(started, number):
    process, talk = started("x")
    talk.number(MORE, 1)
    process.send_signal(getattr(signal, f"SIG{number}"))
    assert talk.signal() == getattr(signal, f"SIG{number}")
    talk.end(7)
    assert finish(process)[0] == 7


def test_stopping_and_going_on(started):
    process, talk = started("x")
    talk.number(MORE, 1)
    process.send_signal(signal.SIGTSTP)
    assert talk.signal() == signal.SIGSTOP
    assert wait_until(lambda: state(process.pid) == "T")
    process.send_signal(signal.SIGCONT)
    assert talk.signal() == signal.SIGCONT
    talk.end()
    assert finish(process)[0] == 0


def fill(talk, flags=0):
    """Says more than a pipe and the socket take together, as far as that goes."""
    talk.connection.settimeout(0)
    try:
        for _ in range(1000):
            talk.say(STDOUT, b"x" * 4096, flags)
        assert False, "nobody stalls"
    except BlockingIOError:
        talk.connection.settimeout(PATIENCE)


def test_signals_while_the_output_stalls(started):
    reader, writer = os.pipe()
    process, talk = started("x", stdout=writer)
    os.close(writer)
    fill(talk)
    process.send_signal(signal.SIGINT)
    assert talk.signal() == signal.SIGINT
    talk.connection.close()
    os.close(reader)
    process.wait(timeout=PATIENCE)


def test_after_the_end_a_signal_is_for_us(started):
    reader, writer = os.pipe()
    process, talk = started("x", stdout=writer)
    os.close(writer)
    fill(talk, OVER)
    assert wait_until(lambda: "SigBlk:\t0000000000000000\n" in pathlib.Path(f"/proc/{process.pid}/status").read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) == -signal.SIGTERM
    os.close(reader)


# ---- output that has nowhere to go -----------------------------------------------------------------------------------

def test_a_reader_that_goes_away(started):
    reader, writer = os.pipe()
    process, talk = started("x", stdout=writer)
    os.close(writer)
    os.close(reader)
    talk.say(STDOUT, b"lost")
    assert talk.signal() == signal.SIGPIPE
    assert talk.signal() == signal.SIGKILL
    talk.say(STDERR, b"remark\n", OVER)
    talk.end(9)
    assert finish(process) == (141, None, b"remark\n")


def test_a_full_disk(started):
    with open("/dev/full", "wb") as full:
        process, talk = started("x", stdout=full)
    talk.say(STDOUT, b"lost")
    talk.end(0)
    assert finish(process) == (125, None, b"cordon: the output could not be written: No space left on device\n")


# ---- what does not go through the daemon -----------------------------------------------------------------------------

LEFT = [
    ["run", "-c", "exit 6"], ["run", "--", "sh", "-c", "exit 6", "--session", "s"],
    ["run", "--session", "s", "--help"], ["run", "--session", "s", "-h"], ["run", "--session", "--", "true"],
    ["run", "--session", "s", "--nonsense", "true"], ["run", "--session", "s", "--json=1", "true"],
    ["run", "", "--session=s", "x"], ["--session", "s", "run"], ["run"], ["help", "run"],
    ["RUN", "--session", "s", "true"], ["run ", "--session", "s", "true"], [""], ["version"], [],
]


@pytest.mark.parametrize("words", LEFT, ids=" ".join)
def test_words_that_are_not_for_a_daemon(cordon, daemon, words):
    cordon(*words)
    assert not daemon.is_called()


def test_a_terminal_or_another_configuration_needs_no_daemon(cordon, daemon, tmp_path):
    (tmp_path / "own.toml").write_text("")
    (tmp_path / "own.toml").chmod(0o600)
    for option in ("--tty", f"--config={tmp_path}/own.toml"):
        assert cordon("run", option, "--session=s", "-c", "exit 6").returncode == 6
    assert not daemon.is_called()


def test_more_words_than_a_hello_holds_are_not_sent(cordon, daemon):
    process = cordon.popen("run", "--session=s", "--", "sh", "-c", 'exit $(($# == 90000 ? 6 : 1))', "sh",
                           *["a"] * 90000)
    assert Talk(daemon.socket.accept()[0]).frame() is None
    assert finish(process)[0] == 6
    process = cordon.popen("run", "--session=s", "-c", "exit 6",
                           env={**cordon.env, "X": "x" * 100_000, "Y": "y" * 100_000})
    assert Talk(daemon.socket.accept()[0]).frame() is None
    assert finish(process)[0] == 6


@pytest.mark.parametrize("home", ["relative", ""])
def test_a_data_directory_that_is_not_absolute_counts_as_none(cordon, daemon, home):
    cordon.env["XDG_DATA_HOME"], cordon.env["HOME"] = home, str(cordon.data.parent / "elsewhere")
    (cordon.data.parent / "elsewhere").mkdir()
    assert cordon("run", "--session=s", "-c", "exit 6").returncode == 6
    assert not daemon.is_called()


def test_no_daemon_no_difference(cordon):
    assert cordon("run", "--session", "s", "-c", "exit 6").returncode == 6
    (cordon.data / "cordon/daemon.sock").write_text("not a socket")
    assert cordon("run", "--session", "s", "-c", "exit 6").returncode == 6


def test_declined(cordon, daemon):
    process = cordon.popen("run", "--session=s", "-c", "echo here; exit 6")
    talk = daemon.talk()
    talk.say(DECLINE)
    assert finish(process) == (6, b"here\n", b"") and not daemon.is_called()


def test_declined_with_a_signal_waiting(started):
    process, talk = started("x")
    process.send_signal(signal.SIGTERM)
    assert talk.signal() == signal.SIGTERM
    talk.say(DECLINE)
    assert finish(process)[0] == -signal.SIGTERM


def test_a_signal_for_what_never_began(started):
    process, talk = started("x")
    process.send_signal(signal.SIGINT)
    assert talk.signal() == signal.SIGINT
    talk.say(SAY_ERR, b"cordon: nobody answered\n", OVER | UNSTARTED)
    assert finish(process) == (-signal.SIGINT, b"", b"")


def ask_about(text):
    return struct.pack("=40s80sBB6xQ", b"card", b"hash", 1, 0, 60000) + text + b"\0"


def test_a_question_at_the_terminal(cordon, daemon, terminal):
    """Before and after it the same conversation goes on, without a byte lost."""
    shell = terminal("run", "--session", "s", "x")
    talk = daemon.talk()
    assert talk.flags == CAN_ASK | OUT_TERMINAL | ERR_TERMINAL | ONE_STREAM
    talk.say(STDOUT, b"before\n")
    head = struct.pack("=BBHI", ASK, 0, 0, len(ask_about(b"May it?")))
    talk.connection.sendall(head + ask_about(b"May it?")[:50])
    shell.expect("before")
    talk.connection.sendall(ask_about(b"May it?")[50:])
    shell.expect("May it")
    shell.expect("]eason: ")
    shell.type("o\n")
    kind, body = talk.frame()
    assert kind == ANSWER and body[:4] == b"card" and struct.unpack("=I", body[120:124])[0] == 1
    talk.number(MORE, 100)
    shell.type("typed\n")
    assert talk.frame() == (STDIN, b"typed\n")
    talk.say(STDOUT, b"after\n")
    shell.expect("after")
    talk.end(17)
    assert shell.end() == 17


def in_its_place(cordon, daemon, line):
    """Another process has the daemon's socket, `s`; it has said that it is ready."""
    daemon.socket.close()
    os.unlink(cordon.data / "cordon/daemon.sock")
    line = "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); " + line
    other = subprocess.Popen(["/usr/bin/python3", "-c", line, cordon.data / "cordon/daemon.sock"], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    return other


def test_a_socket_that_outlives_its_daemon(cordon, daemon):
    """Whoever called listen() is dead; that a child of it still has the socket makes no daemon."""
    other = in_its_place(cordon, daemon, "s.listen(); os.fork() and os._exit(0); print(flush=True); "
                                         "print(len(s.accept()[0].recv(9)), flush=True)")
    other.wait()
    assert cordon("run", "--session", "s", "-c", "exit 6").returncode == 6
    assert other.stdout.readline() == "0\n"
    other.communicate()


@pytest.mark.parametrize("said", [b"", b"\xc3", struct.pack("=BBHI", STDOUT, 0, 0, 9) + b"part",
                                  struct.pack("=BBHI", 0x01, 0, 0, 0), struct.pack("=BBHI", STDOUT, 0, 0, 65537),
                                  struct.pack("=BBHI", STDOUT, 0, 7, 0), struct.pack("=BBHI", END, 0, 0, 3) + b"123",
                                  struct.pack("=BBHI", MORE, 0, 0, 4) + b"123",
                                  struct.pack("=BBHI", HELLO, 0, 0, 16) + b"x" * 16, b"{}\n" * 10], ids=repr)
def test_a_daemon_that_goes_away_or_talks_nonsense(started, said):
    process, talk = started("x")
    talk.connection.sendall(said)
    talk.connection.shutdown(socket.SHUT_WR)
    status, output, errors = finish(process)
    assert status == 125 and errors.startswith(b"cordon: ") and output in (b"", b"part")


def test_no_words_at_all(cordon, daemon):
    """execve() with an empty argv, which shells cannot do."""
    libc, pid = ctypes.CDLL(None), os.fork()
    if not pid:
        os.dup2(os.open("/dev/null", os.O_RDWR), 2)
        libc.execve(os.fsencode(cordon.argv()[0]), (ctypes.c_char_p * 1)(None), (ctypes.c_char_p * 1)(None))
        os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2 and not daemon.is_called()


if IS_ROOT:
    def test_another_users_daemon_is_told_nothing(cordon, daemon):
        # Whose it is counts from listen() on.
        other = in_its_place(cordon, daemon, "os.setresuid(*[61234] * 3); s.listen(); print(flush=True); "
                                             "print(len(s.accept()[0].recv(9)))")
        assert cordon("run", "--session", "s", "-c", "exit 6").returncode == 6
        assert other.communicate(timeout=PATIENCE)[0] == "0\n"
