"""The program's first code: `cordon run` in a session speaks to a daemon before there is a libc. Here the daemon is a script, so
that each frame is seen and each can be odd; what comes of it with a real one is for test_serve.py."""
import ctypes
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess

import pytest

from conftest import PATIENCE, PROGRAM, state, wait_until
from lab import IS_ROOT, missing

pytestmark = missing("unsanitized")  # whose program is libc's from its first instruction

HELLO, STDIN, SIGNAL, ANSWER = 0x81, 0x82, 0x83, 0x84
DECLINE, MORE, STDOUT, STDERR, ASK, SETTLED, SAY_OUT, SAY_ERR, END = range(0xc1, 0xca)
OVER, UNSTARTED = 1, 2
NO_STDIN, OUT_TERMINAL, ERR_TERMINAL, CAN_ASK, FAST = 1, 2, 4, 8, 16


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
        version, self.flags, words, variables = struct.unpack("=IIII", body[:16])
        *strings, rest = body[16:].split(b"\0")
        assert version == 1 and rest == b"" and len(strings) == words + variables + 1
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
    assert talk.flags == FAST | NO_STDIN
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


# ---- what is left to the whole program -------------------------------------------------------------------------------

LEFT = [
    ["run", "-c", "exit 6"], ["run", "--", "sh", "-c", "exit 6", "--session", "s"],
    ["run", "--session", "s", "--help"], ["run", "--session", "s", "-h"], ["run", "--session", "--", "true"],
    ["run", "--session", "s", "--nonsense", "true"], ["run", "--session", "s", "--json=1", "true"], ["run", "", "--session=s", "x"],
    ["--session", "s", "run"], ["run"], ["help", "run"], ["RUN", "--session", "s", "true"], ["run ", "--session", "s", "true"], [""],
    ["version"], [],
]


@pytest.mark.parametrize("words", LEFT, ids=" ".join)
def test_words_that_are_not_for_a_daemon(cordon, daemon, words):
    cordon(*words)
    assert not daemon.is_called()


def without_fast(cordon, daemon, *words, **options):
    """The status of what runs here, whoever else it asks: no fast client does."""
    process = cordon.popen(*words, **options)
    daemon.socket.settimeout(0.05)
    while process.poll() is None:
        try:
            connection = Talk(daemon.socket.accept()[0])
        except TimeoutError:
            continue
        head = connection.take(16)  # of a HELLO up to its flags; or nothing, where it turned out to be too long
        if head:
            assert not head[12] & FAST
            connection.say(DECLINE)
    return finish(process)


def test_a_terminal_or_another_configuration_is_for_the_program(cordon, daemon, tmp_path):
    (tmp_path / "own.toml").write_text("")
    (tmp_path / "own.toml").chmod(0o600)
    for option in ("--tty", f"--config={tmp_path}/own.toml"):
        assert without_fast(cordon, daemon, "run", option, "--session=s", "-c", "exit 6")[0] == 6


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_for_the_program(cordon, daemon, closed):
    process = subprocess.Popen(["bash", "-c", f'"$@" {closed}', "bash", *cordon.argv("run", "--session=s", "-c", "exit 6")],
                               env=cordon.env, cwd=cordon.workspace, start_new_session=True, stdin=subprocess.DEVNULL)
    cordon.popen = lambda *words, **options: process
    assert without_fast(cordon, daemon)[0] == 6


def test_too_many_words_are_for_the_program(cordon, daemon):
    assert without_fast(cordon, daemon, "run", "--session=s", "--", "sh", "-c", 'exit $(($# == 90000 ? 6 : 1))', "sh",
                        *["a"] * 90000)[0] == 6
    assert without_fast(cordon, daemon, "run", "--session=s", "-c", "exit 6",
                        env={**cordon.env, "X": "x" * 100_000, "Y": "y" * 100_000})[0] == 6


@pytest.mark.parametrize("home", ["relative", "{data}/../data", ""])
def test_a_doubtful_place_is_for_the_program(cordon, daemon, home):
    cordon.env["XDG_DATA_HOME"], cordon.env["HOME"] = home.format(data=cordon.data), str(cordon.data.parent / "elsewhere")
    (cordon.data.parent / "elsewhere").mkdir()
    assert without_fast(cordon, daemon, "run", "--session=s", "-c", "exit 6")[0] == 6


def test_no_daemon_no_difference(cordon):
    assert cordon("run", "--session", "s", "-c", "exit 6").returncode == 6
    (cordon.data / "cordon/daemon.sock").write_text("not a socket")
    assert cordon("run", "--session", "s", "-c", "exit 6").returncode == 6


def test_declined(cordon, daemon):
    process = cordon.popen("run", "--session=s", "-c", "echo here; exit 6")
    talk = daemon.talk()
    assert talk.flags & FAST
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


def test_a_question_is_for_the_whole_program(cordon, daemon, terminal):
    """The prompt at the terminal; and before and after it the same conversation, without a byte lost."""
    shell = terminal("run", "--session", "s", "x")
    talk = daemon.talk()
    assert talk.flags == FAST | CAN_ASK | OUT_TERMINAL | ERR_TERMINAL
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
                                         "print(len(s.accept()[0].recv(9)), len(s.accept()[0].recv(9)), flush=True)")
    other.wait()
    assert cordon("run", "--session", "s", "-c", "exit 6").returncode == 6
    assert other.stdout.readline() == "0 0\n"  # the first code, and the whole program
    other.communicate()


@pytest.mark.parametrize("said", [b"", b"\xc3", struct.pack("=BBHI", STDOUT, 0, 0, 9) + b"part", struct.pack("=BBHI", 0x01, 0, 0, 0),
                                  struct.pack("=BBHI", STDOUT, 0, 0, 65537), struct.pack("=BBHI", STDOUT, 0, 7, 0),
                                  struct.pack("=BBHI", END, 0, 0, 3) + b"123", struct.pack("=BBHI", MORE, 0, 0, 4) + b"123",
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


# ---- a real daemon ---------------------------------------------------------------------------------------------------

def without_entry(place):
    """The same program, which starts where libc would have it."""
    symbols = subprocess.run(["nm", PROGRAM], capture_output=True, text=True, check=True).stdout
    start = int(re.search("^([0-9a-f]+) [Tt] _start$", symbols, re.M)[1], 16)
    image = bytearray(pathlib.Path(PROGRAM).read_bytes())
    struct.pack_into("=Q", image, 24, start)
    (place / "cordon").write_bytes(image)
    (place / "cordon").chmod(0o755)
    return str(place / "cordon")


class Served:
    """`cordon serve`, and three ways to run a command of a session: by it from the first code, by it from the whole program,
    and without it."""
    def __init__(self, cordon, place):
        self.ways = {"fast": (PROGRAM, []), "whole": (without_entry(place), []), "alone": (PROGRAM, ["--no-daemon"])}
        self.cordon, self.process = cordon, cordon.popen("serve", text=True)
        assert "listening" in self.process.stdout.readline()

    def run(self, way, *words, input=None):
        program, own = self.ways[way]
        given = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        done = subprocess.run([program, "run", "--session", "s", *own, *words], env=self.cordon.env, cwd=self.cordon.workspace,
                              capture_output=True, timeout=PATIENCE, start_new_session=True, **given)
        return done.returncode, done.stdout, done.stderr

    def count(self):
        """How many commands there were, and how many of them from the first code."""
        with socket.socket(socket.AF_UNIX) as talk:
            talk.settimeout(PATIENCE)
            talk.connect(os.fspath(self.cordon.data / "cordon/daemon.sock"))
            talk.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status"}\n')
            result = json.loads(talk.makefile().readline())["result"]
        return result["served"], result["fast"]


@pytest.fixture
def served(cordon, tmp_path):
    made = Served(cordon, tmp_path)
    yield made
    made.process.terminate()
    made.process.communicate(timeout=PATIENCE)


SAME = [
    (["--", "sh", "-c", "echo out; echo err >&2; exit 7"], {}), (["-c", "kill -9 $$"], {}), (["-c", "kill -s USR1 $$"], {}),
    (["--", "/nonexistent/program"], {}), (["--", "/etc/passwd"], {}), (["--", "program-that-is-not-there"], {}), ([], {}),
    (["--timeout", "soon", "--", "true"], {}), (["--timeout", "100ms", "--", "sleep", "30"], {}),
    (["-c", "head -c 3000000 /dev/zero"], {}), (["--quiet", "--max-output", "10", "-c", "seq 1000; seq 1000 >&2"], {}),
    (["--", "cat"], {"input": b"x" * 500_000}), (["--", "true"], {"input": b"x" * 500_000}), (["--", "wc", "-c"], {}),
    (["--pass-env", "COLOUR", "-c", "echo $COLOUR $PATH $LANG; pwd"], {}), (["--cwd", "..", "--", "true"], {}),
    (["--json", "--", "/nonexistent/program"], {}), (["--json", "--max-output", "nothing", "--", "true"], {}),
    (["--net", "all", "--no-ask", "--", "true"], {}), (["--", "sh", "-c", 'echo "$#" "$1" "$3"', "sh", "", " ", "\udcff"], {}),
]


def test_three_ways_one_result(served):
    served.cordon.env["COLOUR"] = "blue"
    hide = re.compile(rb"[0-9A-HJKMNP-TV-Z]{26}|after [0-9.]+ s")  # ids, and how long exactly it took
    for count, (words, options) in enumerate(SAME, 1):
        seen = {way: [hide.sub(b"", part) if isinstance(part, bytes) else part for part in served.run(way, *words, **options)]
                for way in served.ways}
        assert seen["fast"] == seen["whole"] == seen["alone"], words
        assert served.count() == (2 * count, count), words


def test_a_signal_by_the_first_code(served):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        process = served.cordon.popen("run", "--session", "s", "-c", "echo ready; exec sleep 300")
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert finish(process)[0] == 128 + number
    assert served.count() == (3, 3)


def takes_signals(process):
    """It has said what is to be run, or is about to."""
    blocked = re.search(r"SigBlk:\t(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]
    return int(blocked, 16) >> signal.SIGTERM - 1 & 1


def test_a_daemon_that_is_stopped(served):
    """Clients end by a signal, or run the command themselves, and the daemon does not when it wakes."""
    def begin(way, line):
        return subprocess.Popen([served.ways[way][0], "run", "--session", "s", "-c", line], env=served.cordon.env,
                                cwd=served.cordon.workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    run = [begin(way, "echo begun; exec sleep 300") for way in ("fast", "whole")]
    assert [each.stdout.readline() for each in run] == [b"begun\n"] * 2
    served.process.send_signal(signal.SIGSTOP)
    try:
        assert wait_until(lambda: {state(int(thread)) for thread in os.listdir(f"/proc/{served.process.pid}/task")} == {"T"})
        for each in run:
            each.send_signal(signal.SIGINT)
        given_up = [begin(way, "echo ran >> ran; echo hi; until [ -e seen ]; do sleep 0.01; done") for way in ("fast", "whole")]
        for way, number in (("fast", signal.SIGTERM), ("fast", signal.SIGHUP), ("whole", signal.SIGTERM)):
            ended = begin(way, "echo ran >> ran")
            assert wait_until(lambda: takes_signals(ended))
            ended.send_signal(number)
            assert finish(ended)[0] == -number
        assert [each.stdout.readline() for each in given_up] == [b"hi\n"] * 2
        for each in run:  # a second time: the first was not heard
            assert each.poll() is None
            each.send_signal(signal.SIGINT)
            assert finish(each)[0] == -signal.SIGINT
    finally:
        served.process.send_signal(signal.SIGCONT)
    assert served.run("fast", "--", "touch", "seen")[0] == 0
    assert [finish(each)[0] for each in given_up] == [0] * 2
    assert served.run("fast", "--", "cat", "ran")[:2] == (0, b"ran\n" * 2) and served.count() == (4, 3)


def test_stopping_what_runs_in_the_daemon(served, tmp_path):
    loop = f"while :; do echo {tmp_path}; sleep 0.01; done"
    process = served.cordon.popen("run", "--session", "s", "-c", loop)
    try:
        process.stdout.readline()
        process.send_signal(signal.SIGTSTP)
        def inside():
            """Now: the shell is twice there for a moment, until what it starts is a program of its own."""
            return {state(int(pid)) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != process.pid
                    and loop.encode() in command_line(pid)}
        # A shell that was stopped between vfork() and execve() of its child waits for that.
        assert wait_until(lambda: state(process.pid) == "T" and inside() in ({"T"}, {"T", "D"}))
        process.send_signal(signal.SIGCONT)
        assert wait_until(lambda: inside() and "T" not in inside())
        process.stdout.close()
        assert process.wait(timeout=PATIENCE) == 141
    finally:
        process.kill()
        process.communicate()


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
