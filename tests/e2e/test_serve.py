"""The daemon: cordon run by it and without it are the same to whoever calls; what becomes of commands when a client or
the daemon goes away; JSON-RPC; and what nobody well-meaning sends. Frames by themselves are tested with the C program
tests/unit/test-wire-read.c, JSON-RPC as text with test-rpc.c."""
import base64
import hashlib
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

from conftest import PATIENCE, descendants, state
from lab import leased, leftovers, missing, needs, rows, rows_of, running, wait_until  # noqa: F401

HELLO, STDIN, SIGNAL, DECLINE, END = 0x81, 0x82, 0x83, 0xc1, 0xc9


class Daemon:
    def __init__(self, cordon):
        self.cordon, self.process = cordon, None
        self.path = cordon.data / "cordon/daemon.sock"

    def start(self, *words, limit=None, wrapper=(), **options):
        """`limit`: of descriptors. `wrapper`: words before the program's own."""
        if limit is not None:
            options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        self.process = self.cordon.popen("serve", *words, text=True, wrapper=wrapper, **options)
        line = self.process.stdout.readline()
        assert line == f"cordon: listening at {self.path}\n", (line, self.process.stderr.read())
        return self

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE)
        status, self.process = self.process.returncode, None
        return status, err

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.path))  # waits for its turn, which with a time limit Python does not
        connection.settimeout(PATIENCE)
        return connection

    def rpc(self):
        return Rpc(self.connect())

    def status(self):
        with self.rpc() as rpc:
            return rpc.call("status")["result"]


class Rpc:
    def __init__(self, connection):
        self.connection, self.file, self.count, self.notices = connection, connection.makefile("rb"), 0, []

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.file.close()
        self.connection.close()

    def send(self, method, number=None, **params):
        call = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
        self.connection.sendall(json.dumps(call).encode() + b"\n")

    def read(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def answer(self, number):
        """The answer to that call; what is told meanwhile is kept."""
        for said in self.notices:
            if said.get("id", self) == number:
                self.notices.remove(said)
                return said
        while True:
            said = self.read()
            assert said is not None, f"no answer to {number}"
            if said.get("id", self) == number:
                return said
            self.notices.append(said)

    def call(self, method, **params):
        self.count += 1
        self.send(method, self.count, **params)
        return self.answer(self.count)

    def start(self, *argv, settings=None, feeds=False, **params):
        """The id of a process; `feeds`: its input comes by process.write."""
        settings = {"session": "s"} if settings is None else settings
        answer = self.call("process.start", argv=argv, settings={**settings, **({"stdin": "stream"} if feeds else {})},
                           **params)
        assert "result" in answer, answer
        return answer["result"]["id"]

    def event(self, process, *kinds):
        """The next event of these kinds; what else is told of the process is left out, what is told of others kept."""
        looked = 0
        while True:
            if looked == len(self.notices):
                said = self.read()
                assert said, "the connection ended"
                self.notices.append(said)
            said = self.notices[looked]
            if said.get("method") != "process.event" or said["params"]["process"] != process:
                looked += 1
                continue
            self.notices.pop(looked)
            if said["params"]["event"]["event"] in kinds:
                return said["params"]["event"]

    def feed(self, process, data=b"", ends=True):
        while data:
            taken = self.call("process.write", id=process,
                              data_base64=base64.b64encode(data[:1 << 20]).decode())["result"]["taken"]
            data = data[taken:]
            if data and not taken:
                self.event(process, "room")
        if ends:
            assert self.call("process.close_stdin", id=process)["result"] == {}

    def end(self, process):
        """Its result, or the error that it was refused with, as an answer to one call would have it."""
        told = self.call("process.wait", id=process)
        if "error" in told or told["result"]["result"] is not None:
            return {"error": told["error"]} if "error" in told else {"result": told["result"]["result"]}
        error = told["result"]["error"]
        return {"error": {"code": -32000, "message": error["reason"], "data": error}}

    def run(self, *argv, session="s", settings=None, **params):
        """Starts a process and waits for its end."""
        settings = {"session": session} if settings is None else settings
        answer = self.call("process.start", argv=argv, settings=settings, events=False, **params)
        return answer if "error" in answer else self.end(answer["result"]["id"])


@pytest.fixture
def daemon(cordon):
    served = Daemon(cordon)
    yield served
    if served.process:
        status, err = served.end()
        assert status == 0 and err == "", (status, err)


def own(word):
    """One that no other run of these tests has, so that processes can be looked for by it; of digits, it is a time to
    sleep."""
    return f"{word}.{os.getpid()}"


def asleep(marker):
    return running(f"sleep\0{marker}")


def frame(kind, body=b"", length=None):
    return struct.pack("<BBHI", kind, 0, 0, len(body) if length is None else length) + body


def hello(cordon, *words, flags=1):
    env = [f"{key}={value}" for key, value in cordon.env.items()]
    strings = ["run", *map(str, words), *env, str(cordon.workspace)]
    return frame(HELLO, struct.pack("<IIIII", 2, flags, len(words) + 1, len(env),
                                    0o22) + b"".join(s.encode() + b"\0" for s in strings))


# ---- the same with and without ---------------------------------------------------------------------------------------

LINES = [
    # words after `run --session s`, then what stdin has: None is nothing at all
    (["--", "echo", "hello"], None),
    (["-c", "echo out; echo err >&2; exit 3"], None),
    (["-c", "echo $0 $1", "zero", "one"], None),
    (["-c", "kill -9 $$"], None),
    (["-c", "printf 'a\\0b\\377'"], None),
    (["-c", "seq 1 300000"], None),
    (["--max-output", "1K", "-c", "seq 1 9999; seq 1 9999 >&2"], None),
    (["--max-output", "unlimited", "-c", "seq 1 300000"], None),
    (["--", "cat"], b"through"),
    (["--", "wc", "-c"], b"x" * 1000000),
    (["--", "true"], b"x" * 1000000),
    (["-c", "head -c 5"], b"y" * 300000),
    (["--timeout", "200ms", "-c", "echo begun; sleep 60"], None),
    (["--quiet", "--timeout", "200ms", "--", "sleep", "60"], None),
    (["--json", "-c", "echo out; echo err >&2; exit 4"], None),
    (["--json", "--max-output", "100", "-c", "seq 1 1000"], b"in"),
    (["--json", "--", "no-such-program"], None),
    (["--json", "--timeout", "soon", "--", "true"], None),
    (["--", "no-such-program"], None),
    (["--", "./not-executable"], None),
    (["--read", "/no/such/path", "--", "true"], None),
    (["--write", "/var", "--", "true"], None),
    (["--no-ask", "--write", "/var", "--", "true"], None),
    (["--cwd", "sub", "--", "pwd"], None),
    (["--cwd", "/", "--", "pwd"], None),
    (["--env", "A=1", "--pass-env", "OF_CLIENT", "-c", "echo $A $OF_CLIENT $HOME $PATH"], None),
    (["--env", "LD_PRELOAD=x", "--", "true"], None),
    (["--workspace", ".", "-c", "ls"], None),
    (["--workspace", "elsewhere", "--", "true"], None),
    (["--manifest", "relative.toml", "--", "true"], None),
    (["--driver", "local", "--", "true"], None),
    (["--processes", "20", "--memory", "100M", "-c", "ulimit -n; umask; cat /proc/self/cgroup | wc -l"], None),
    (["-c", "echo x > /etc/passwd"], None),
    (["--net", "none", "-c", "cat < /dev/tcp/127.0.0.1/1"], None),
    (["--no-such-option", "--", "true"], None),
    (["--timeout"], None),
    ([], None),
    (["--help"], None),
    (["-c", "kill -s USR1 $$"], None),
    (["--", "/etc/passwd"], None),
    (["-c", "head -c 3000000 /dev/zero"], None),
    (["--quiet", "--max-output", "10", "-c", "seq 1000; seq 1000 >&2"], None),
    (["--cwd", "..", "--", "true"], None),
    (["--json", "--max-output", "nothing", "--", "true"], None),
    (["--net", "all", "--no-ask", "--", "true"], None),
    (["--", "sh", "-c", 'echo "$#" "$1" "$3"', "sh", "", " ", "\udcff"], None),
]
VOLATILE = {"audit_id", "duration_ms", "cpu_ms", "max_rss_kb", "memory_peak_kb", "process_peak", "read_bytes",
            "written_bytes"}


def steady(done, words):
    """What must be equal of two runs of the same."""
    out, err = done.stdout, re.sub(rb"after \d+\.\d s", b"after T s", done.stderr)
    if "--json" in words:
        value = json.loads(out)
        out = {key: value for key, value in (value.get("error") or value).items() if key not in VOLATILE}
        out.pop("limit", None)
        # That processes outlive their command in the daemon's sandbox is the one difference, and is said.
        if "isolation" in out:
            assert out["isolation"].pop("processes") in ("pid namespace", "pid namespace of the session")
    return done.returncode, out, err


def run_lines(cordon, lines, **options):
    return [cordon("run", "--session", "s", *words, input=given, text=False, **options) for words, given in lines]


def test_same_as_without(cordon, daemon, workspace):
    cordon.env["OF_CLIENT"] = "of the daemon"
    (workspace / "sub").mkdir()
    (workspace / "not-executable").write_text("#!/bin/sh\n")
    assert cordon("session", "new", "s", "--workspace", workspace).returncode == 0
    alone = run_lines(cordon, LINES, env={**cordon.env, "OF_CLIENT": "of the client"})
    daemon.start()
    served = run_lines(cordon, LINES, env={**cordon.env, "OF_CLIENT": "of the client"})
    for (words, given), one, other in zip(LINES, alone, served):
        assert steady(one, words) == steady(other, words), words
    assert alone[0].stdout == b"hello\n" and b"of the client" in alone[25].stdout
    assert daemon.status()["served"] >= len(LINES) - 4  # all but those that their own process refuses
    # What is recorded is the same, too.
    every = [(row["row"], row.get("argv")) for row in rows(cordon) if row["row"] in ("intent", "result", "denial")]
    assert every[:len(every) // 2] == every[len(every) // 2:]


def test_output_is_cut_as_the_session_says(cordon, daemon):
    assert cordon("session", "new", "s", "--max-output", "1K").returncode == 0
    words = ["run", "--session", "s", "--quiet", "-c", "seq 100000; seq 100000 >&2"]
    alone = cordon(*words)
    assert len(alone.stdout) == len(alone.stderr) < 1100 and alone.stdout.endswith("\n100000\n")
    daemon.start()
    served, kept = cordon(*words), json.loads(cordon(*words[:3], "--json", *words[4:]).stdout)
    assert (served.stdout, served.stderr) == (alone.stdout, alone.stderr) == (kept["stdout"], kept["stderr"])
    assert daemon.status()["served"] == 2


def test_that_it_is_the_daemon(cordon, daemon, tmp_path):
    # Where memory is watched, for want of a control group, a command soon gets another oom_score_adj than its caller's.
    config = pathlib.Path(cordon.env.get("XDG_CONFIG_HOME")
                          or pathlib.Path(cordon.env["HOME"]) / ".config") / "cordon/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('limits.memory = "none"\n')
    daemon.start()
    (tmp_path / "own.toml").touch()
    before = daemon.status()["served"]
    for extra, by_daemon in [([], True), (["--no-daemon"], False), (["--config", tmp_path / "own.toml"], False),
                             (["--json"], True)]:
        assert cordon("run", "--session", "s", *extra, "--", "true").returncode == 0
        now = daemon.status()["served"]
        assert now - before == by_daemon, extra
        before = now
    assert cordon("run", "--", "true").returncode == 0
    assert cordon("run", "--session", "s", "--", "true",
                  env={**cordon.env, "XDG_CONFIG_HOME": "/elsewhere"}).returncode == 0
    # It was asked, and would not. Nor where a command would have something of its caller that the daemon has not.
    assert daemon.status()["served"] == before + 1
    for wrapper, line, expected in [(["nice", "-n", "5"], "nice", f"{os.nice(0) + 5}\n"),
                                    (["taskset", "-c", str(min(os.sched_getaffinity(0)))], "nproc", "1\n"),
                                    (["bash", "-c", 'ulimit -t 100 && exec "$@"', "bash"], "ulimit -t", "100\n"),
                                    (["chrt", "-b", "0"], "cut -d' ' -f41 /proc/self/stat", "3\n"),
                                    (["ionice", "-c3"], "ionice", "idle\n"),
                                    (["bash", "-c", 'echo 700 >/proc/self/oom_score_adj && exec "$@"', "bash"],
                                     "cat /proc/self/oom_score_adj", "700\n")]:
        done = subprocess.run([*wrapper, *cordon.argv("run", "--session", "s", "-c", line)], stdin=subprocess.DEVNULL,
                              cwd=cordon.workspace, env=cordon.env, capture_output=True, text=True,
                              start_new_session=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, ""), wrapper


def test_declined_before_anything_runs(cordon, daemon):
    """Where a client is not like the daemon, nothing of its command runs there and nothing is recorded by the daemon:
    the client's own is all there is."""
    daemon.start()
    words, others = [["run", "--session", name, "--workspace", cordon.workspace, "--"] for name in "so"]
    assert cordon(*words, "/bin/true").returncode == cordon(*others, "/bin/true").returncode == 0
    before = len(rows(cordon))

    def processes():
        """Of the places that wait, once nothing is done about them."""
        seen = []
        while len(seen) < 2 or seen[-1] != seen[-2]:
            seen.append(set(descendants(daemon.process.pid)))
            time.sleep(0.2)
        return seen[-1]

    for words, command, out in (words, ["/bin/mkdir", "once"], ""), (others, ["/usr/bin/nice"], f"{os.nice(0) + 5}\n"):
        made = processes()
        done = subprocess.run(["nice", "-n", "5", *cordon.argv(*words, *command)], stdin=subprocess.DEVNULL,
                              cwd=cordon.workspace, env=cordon.env, capture_output=True, text=True,
                              start_new_session=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, out, "")
        # The places are there for those who are alike.
        assert processes() == made
    (cordon.workspace / "once").rmdir()
    assert [row["row"] for row in rows(cordon)][before:] == ["intent", "result"] * 2
    assert cordon(*words, "/bin/true").returncode == 0


@pytest.mark.parametrize("way", ["signal", "client", "daemon"])
def test_the_end_comes_before_the_program_is_there(cordon, daemon, way):
    daemon.start()
    program = cordon.workspace / "program"
    shutil.copy("/bin/true", program)
    words = ["run", "--session", "s", "--workspace", cordon.workspace, "--", program]
    for _ in range(2):  # in a place that is made for it, and in one that waited
        with leased(program) as is_awaited:
            process = cordon.popen(*words)
            assert wait_until(is_awaited)
            whom, number = {"signal": (process, signal.SIGTERM), "client": (process, signal.SIGKILL),
                            "daemon": (daemon.process, signal.SIGTERM)}[way]
            whom.send_signal(number)
            process.communicate(timeout=20)
            if way == "daemon":
                assert daemon.process.wait(20) == 0
                daemon.start()
            assert wait_until(lambda: daemon.status()["running"] == 0, 20)


def test_streams_that_are_closed(cordon, daemon):
    line = [*cordon.argv("run", "--session", "s", "-c", "cat; echo out; echo err >&2; exit 5")]
    for redirection, status, out, err in [("<&-", 5, "out\n", "err\n"), (">&-", 125, "", "err\n"),
                                          ("2>&-", 5, "out\n", "")]:
        for started in (False, True):
            if started and not daemon.process:
                daemon.start()
            done = subprocess.run(["bash", "-c", f'"$@" {redirection}', "bash", *line], stdin=subprocess.DEVNULL,
                                  cwd=cordon.workspace, env=cordon.env, capture_output=True, text=True,
                                  start_new_session=True, timeout=PATIENCE)
            said = done.stderr.partition("cordon: the output could not be written")
            assert (done.returncode, done.stdout, said[0]) == (status, out, err), (redirection, started)
            assert bool(said[1]) == (status == 125)


def test_an_input_that_cannot_be_read(cordon, daemon):
    daemon.start()
    fd = os.open(cordon.workspace, os.O_RDONLY)
    done = cordon("run", "--session", "s", "--json", "--", "cat", stdin=fd)
    os.close(fd)
    result = json.loads(done.stdout)
    assert (result["exit_code"],
            result["note"]) == (0, "standard input could not be read to its end: Is a directory"), result
    assert daemon.status()["served"] == 1


def test_a_daemon_whose_greeting_nobody_can_read(cordon):
    done = subprocess.run(["bash", "-c", '"$@" >&-', "bash", *cordon.argv("serve", "--idle", "1ms")],
                          stdin=subprocess.DEVNULL, env=cordon.env, cwd=cordon.workspace, stderr=subprocess.PIPE,
                          timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")


def begun(cordon, line, **options):
    """A command that runs and has said so."""
    process = cordon.popen("run", "--session", "s", "-c", line, text=True, **options)
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_signals(cordon, daemon, number):
    daemon.start()
    name = number.name[3:]
    process = begun(cordon, f"trap 'echo got {name}; exit 7' {name}; echo begun; while :; do sleep 0.01; done")
    process.send_signal(number)
    assert process.communicate(timeout=PATIENCE)[0] == f"got {name}\n" and process.returncode == 7
    process = begun(cordon, "echo begun; exec sleep 60")
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number


def test_stop_and_continue(cordon, daemon):
    daemon.start()
    marker = own("61")
    process = begun(cordon, f"echo begun; exec sleep {marker}")
    assert wait_until(lambda: asleep(marker))
    process.send_signal(signal.SIGTSTP)
    assert wait_until(lambda: [state(pid) for pid in (process.pid, *asleep(marker))] == ["T", "T"])
    process.send_signal(signal.SIGCONT)
    assert wait_until(lambda: [state(pid) for pid in asleep(marker)] == ["S"])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM


def test_in_the_background_what_is_typed_is_the_shells(cordon, daemon, terminal):
    """And when it is in the foreground again, its own."""
    daemon.start()
    session = terminal.shell()
    session.type('"$CORDON" run --session s --workspace . -- sh -c "echo ready; while sleep 0.05; do test -e go && break; done; echo went; cat"\n')
    session.expect("ready\r\n")
    session.type("\x1a")
    session.expect("Stopped")
    session.expect("outer> ")
    session.type("bg\n")
    session.expect("outer> ")
    session.type("sleep 0.2\necho ty''ped; touch go\n")  # of which the second waits to be read
    session.expect("typed\r\n")
    session.expect("went\r\n")
    session.type("fg\n")
    session.expect("cat\"?\r\n")
    session.type("line\n")
    session.expect("line\r\nline\r\n")
    session.type("\x03")
    session.expect("outer> ")


def takes_signals(process):
    """It has sent its HELLO, or is about to."""
    blocked = re.search(r"SigBlk:\t(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]
    return int(blocked, 16) >> signal.SIGTERM - 1 & 1


def test_a_daemon_that_is_stopped(cordon, daemon):
    """Clients end by a signal, or run the command themselves, and the daemon does not when it wakes."""
    daemon.start()
    run = begun(cordon, "echo begun; exec sleep 300")
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        assert wait_until(lambda: {state(int(thread))
                                   for thread in os.listdir(f"/proc/{daemon.process.pid}/task")} == {"T"})
        run.send_signal(signal.SIGINT)
        given_up = cordon.popen("run", "--session", "s", "-c",
                                "echo ran >> ran; echo hi; until [ -e seen ]; do sleep 0.01; done", text=True)
        for number in (signal.SIGTERM, signal.SIGHUP):
            ended = cordon.popen("run", "--session", "s", "-c", "echo ran >> ran")
            assert wait_until(lambda: takes_signals(ended))
            ended.send_signal(number)
            ended.communicate(timeout=PATIENCE)
            assert ended.returncode == -number
        assert given_up.stdout.readline() == "hi\n"
        assert run.poll() is None
        run.send_signal(signal.SIGINT)  # a second time: the first was not heard
        run.communicate(timeout=PATIENCE)
        assert run.returncode == -signal.SIGINT
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    assert cordon("run", "--session", "s", "--", "touch", "seen").returncode == 0
    given_up.communicate(timeout=PATIENCE)
    assert given_up.returncode == 0
    assert cordon("run", "--session", "s", "--", "cat", "ran").stdout == "ran\n" and daemon.status()["served"] == 3


def test_a_daemon_that_dies_before_it_has_read(cordon, daemon):
    """What it was not told it does not run: the client does, once."""
    daemon.start()
    daemon.process.send_signal(signal.SIGSTOP)
    assert wait_until(lambda: {state(int(thread))
                               for thread in os.listdir(f"/proc/{daemon.process.pid}/task")} == {"T"})
    run = cordon.popen("run", "--session", "s", "-c", "echo ran >> ran", text=True)
    assert wait_until(lambda: takes_signals(run))
    daemon.process.kill()
    daemon.process.communicate()
    daemon.process = None
    assert run.communicate(timeout=PATIENCE) == ("", "") and run.returncode == 0
    assert cordon("run", "--session", "s", "--", "cat", "ran").stdout == "ran\n"


def test_broken_pipe(cordon, daemon):
    daemon.start()
    process = cordon.popen("run", "--session", "s", "--quiet", "--timeout", "30s", "--", "yes", own("broken-pipe"))
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(PATIENCE) == 128 + signal.SIGPIPE and process.stderr.read() == b""
    process.stderr.close()
    assert wait_until(lambda: not running(own("broken-pipe")))


def test_input_is_left_where_nothing_runs(cordon, daemon, tmp_path):
    """A command that is refused has read nothing, and one that ends leaves what it has not asked for."""
    daemon.start()
    (tmp_path / "input").write_text("first\nsecond\n")
    for words, rest in [(["--read", "/no/such/path"], "first\nsecond\n"), (["--no-such-option"], "first\nsecond\n")]:
        with open(tmp_path / "input") as source:
            assert cordon("run", "--session", "s", *words, "--", "cat", stdin=source).returncode == 125
            assert os.read(source.fileno(), 100).decode() == rest


# ---- who goes away ---------------------------------------------------------------------------------------------------

def test_client_killed(cordon, daemon, leftovers):
    daemon.start()
    process = begun(cordon, "trap 'echo hup > hung-up; exit 1' HUP; echo begun; while :; do sleep 0.01; done")
    other = begun(cordon, f"trap '' HUP; echo begun; exec sleep {own('62')}")
    for each in (process, other):
        each.kill()
        each.communicate()
    assert wait_until(lambda: not asleep(own("62")) and daemon.status()["running"] == 0)
    session = json.loads(cordon("session", "show", "s", "--json").stdout)
    assert os.path.exists(os.path.join(session["workspace"], "hung-up"))
    ended = [row for row in rows(cordon) if row["row"] == "result"]
    assert sorted((row["exit_code"], row["signal"]) for row in ended) == [(-1, 9), (1, 0)]
    daemon.end()


def test_daemon_killed(cordon, daemon, leftovers):
    daemon.start()
    process = begun(cordon, f"echo begun; exec sleep {own('63')}")
    daemon.process.kill()
    daemon.process.communicate()
    daemon.process = None
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 125 and "the daemon went away, and the command with it" in err, (out, err)
    assert wait_until(lambda: not asleep(own("63")))
    assert cordon("audit", "verify").returncode == 0
    # Without it, and with a new one in place of the old one's socket.
    assert daemon.path.exists()
    assert cordon("run", "--session", "s", "--", "echo", "alone").stdout == "alone\n"
    daemon.start()
    assert cordon("run", "--session", "s", "--", "echo", "again").stdout == "again\n"
    assert daemon.status()["served"] == 1
    assert [row["id"] for row in json.loads(cordon("session", "list", "--json").stdout)["sessions"]] == ["s"]
    assert daemon.end() == (0, "") and not daemon.path.exists()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stop"])
def test_daemon_told_to_end(cordon, daemon, how, leftovers):
    daemon.start()
    process = begun(cordon, "trap 'echo cleaned; exit 7' TERM; echo begun; while :; do sleep 0.01; done")
    if how == "stop":
        with daemon.rpc() as rpc:
            assert rpc.call("stop")["result"] == {}
        daemon.process.wait(PATIENCE)
    else:
        daemon.process.send_signal(signal.Signals[how])
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode,
            out) == (7, "cleaned\n") and err.endswith("cordon: the daemon is ending, and it ended the command\n")
    assert daemon.process.wait(PATIENCE) == 0 and daemon.process.communicate() == ("", "")
    daemon.process = None
    assert not daemon.path.exists()
    ended = [row for row in rows(cordon) if row["row"] == "result"]
    assert [row["exit_code"] for row in ended] == [7] and cordon("audit", "verify").returncode == 0


@pytest.mark.parametrize("stopped", [False, True])
def test_what_the_end_of_the_daemon_has_ended_is_told(cordon, daemon, stopped):
    """How it ended, and what it wrote until then, also of one that stands still: nothing invites to do twice what is
    half done."""
    daemon.start()
    with daemon.rpc() as rpc:
        process = rpc.start("sh", "-c", f"echo partly; exec sleep {own('60')}")
        assert rpc.event(process, "started") and rpc.event(process, "output")["data"] == "partly\n"
        if stopped:
            assert rpc.call("process.signal", id=process, signal="STOP")["result"] == {}
        rpc.send("process.wait", "end", id=process)
        assert rpc.call("stop")["result"] == {}
        result = rpc.answer("end")["result"]["result"]
    assert daemon.process.wait(PATIENCE) == 0 and daemon.process.communicate() == ("", "")
    daemon.process = None
    assert (result["exit_code"], result["signal"], result["stdout"]) == (-1, signal.SIGTERM, "partly\n")
    assert result["ended_by"] == "daemon"
    assert rows_of(cordon, result["audit_id"])[-1]["signal"] == signal.SIGTERM


def test_daemon_told_twice(cordon, daemon, leftovers):
    """Then whoever does not end is killed. Whoever is in a hurry does not cost the record its rows, nor callers the
    result."""
    daemon.start()
    processes = [begun(cordon, "trap '' TERM HUP INT; echo begun; while :; do sleep 0.01; done") for _ in range(6)]
    for number in (signal.SIGTERM, signal.SIGINT):  # two of a kind that wait would be one
        daemon.process.send_signal(number)
    for process in processes:
        assert process.communicate(timeout=PATIENCE)[0] == "" and process.returncode == 128 + signal.SIGKILL
    assert daemon.process.wait(PATIENCE) == 0
    daemon.process.communicate()
    daemon.process = None
    kinds = [row["row"] for row in rows(cordon)]
    assert kinds.count("result") == kinds.count("intent") == 6, kinds


def test_one_at_a_time(cordon, daemon):
    daemon.start()
    second = cordon("serve", "--json")
    error = json.loads(second.stdout)["error"]
    assert second.returncode == 125 and error["class"] == "session_busy" and error["remediation"]
    assert error["reason"] == "a daemon is running here already" and error["remediation"].endswith(f": kill {daemon.status()['pid']}")
    assert cordon("run", "--session", "s", "--", "true").returncode == 0 and daemon.status()["served"] == 1
    assert os.stat(daemon.path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("taken", [["daemon.sock"], ["daemon.lock", "daemon.sock"]])
def test_a_socket_that_is_taken_away_is_made_anew(cordon, daemon, taken):
    daemon.start()
    pid = daemon.status()["pid"]
    for name in taken:
        (daemon.path.parent / name).unlink()

    def is_reached():
        try:
            return daemon.status()["pid"] == pid
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    assert wait_until(is_reached) and os.stat(daemon.path).st_mode & 0o777 == 0o600
    assert (daemon.path.parent / "daemon.lock").read_text() == f"{pid}\n"


def test_a_daemon_that_another_has_replaced_ends(cordon, daemon):
    daemon.start()
    (daemon.path.parent / "daemon.lock").unlink()
    other = Daemon(cordon).start()
    assert daemon.process.wait(PATIENCE) == 0
    daemon.process.communicate()
    daemon.process = None
    assert other.status()["pid"] == other.process.pid and other.end() == (0, "")


def test_a_daemon_whose_directory_is_gone_ends(cordon, daemon):
    daemon.start()
    daemon.path.parent.rename(cordon.data / "elsewhere")
    (cordon.data / "elsewhere" / daemon.path.name).unlink()
    assert daemon.process.wait(PATIENCE) == 0
    daemon.process.communicate()
    daemon.process = None


@needs("user")
def test_a_daemon_that_can_start_no_thread_says_so(cordon):
    # To look for leaks takes one, too.
    cordon.env["ASAN_OPTIONS"] = cordon.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    done = cordon("serve", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
    assert (done.returncode, done.stdout) == (125, "") and "no thread can be started" in done.stderr, done
    assert not (cordon.data / "cordon/daemon.sock").exists()


def test_idle(cordon, daemon):
    daemon.start("--idle", "200ms")
    with daemon.rpc() as rpc:
        assert rpc.run("sleep", "0.5")["result"]["exit_code"] == 0
    assert daemon.process.wait(PATIENCE) == 0
    daemon.process.communicate()
    daemon.process = None
    assert cordon("serve", "--idle", "soon").returncode == 125


# ---- asking ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def out(tmp_path):
    path = tmp_path / "out"
    path.mkdir()
    return path


@pytest.mark.parametrize("typed, status", [("o", 0), ("d", 125)])
def test_asked_at_the_terminal(cordon, daemon, terminal, out, typed, status):
    daemon.start()
    asked = terminal("run", "--session", "s", "--write", out, "--", "touch", out / "made")
    asked.expect(re.escape(str(out)))
    asked.expect(r"Allow\? .*: ")
    asked.type(f"{typed}\n")
    assert asked.end() == status and (out / "made").exists() == (status == 0), asked.output
    assert (b"denied by a human" in asked.output) == (status == 125)
    assert daemon.status()["served"] == 1
    [row] = [row for row in rows(cordon) if row["row"] == "approval"]
    assert row["outcome"] == ("approved" if status == 0 else "denied")
    assert row["by"]["pid"] == asked.pid and row["by"]["terminal"].startswith("pts/")  # who was asked, not who asked for them


def test_interrupted_while_asked(cordon, daemon, terminal, out):
    daemon.start()
    asked = terminal("run", "--session", "s", "--write", out, "--", "touch", out / "made")
    asked.expect(r"Allow\? .*: ")
    os.kill(asked.pid, signal.SIGTERM)
    assert asked.end() == 128 + signal.SIGTERM and not (out / "made").exists()
    assert [row["outcome"] for row in rows(cordon) if row["row"] == "approval"] == ["cancelled"]


def test_client_gone_while_asked(cordon, daemon, terminal, out):
    daemon.start()
    asked = terminal("run", "--session", "s", "--write", out, "--", "touch", out / "made")
    asked.expect(r"Allow\? .*: ")
    os.kill(asked.pid, signal.SIGKILL)
    asked.end()
    assert wait_until(lambda: [row["outcome"] for row in rows(cordon) if row["row"] == "approval"] == ["cancelled"])
    assert not (out / "made").exists()


def test_asked_elsewhere(cordon, daemon, terminal, out):
    """While many wait for an answer, others run, and the answer gets through."""
    daemon.start()
    asked = terminal("run", "--session", "s", "--write", out, "--", "touch", out / "made")
    asked.expect(r"Allow\? .*: ")
    with daemon.rpc() as rpc:
        asking = [rpc.start("touch", str(out / f"n{i}"), settings={"session": f"a{i}", "write": str(out), "ask": True})
                  for i in range(9)]
        cards = {process: rpc.event(process, "asks", "ended") for process in asking}
        assert all(card["event"] == "asks" for card in cards.values()), cards
        assert cordon("run", "--session", "other", "--", "echo", "meanwhile").stdout == "meanwhile\n"
        waiting = rpc.call("approvals.list")["result"]["approvals"]
        assert len(waiting) == 10
        mine = next(card for card in waiting if card["session"] == "s")
        assert rpc.call("approvals.answer", card=mine["id"], hash=mine["hash"], answer="once")["result"] == {}
        assert asked.end() == 0 and (out / "made").exists() and b"Answered elsewhere" in asked.output
        for name, card in cards.items():
            rpc.send("approvals.answer", f"to {name}", card=card["card"], answer="deny", reason="no")
        refusals = [rpc.event(process, "ended")["error"] for process in asking]
        assert {error["class"] for error in refusals} == {"capability_denied"}


# ---- JSON-RPC --------------------------------------------------------------------------------------------------------

def test_nothing_is_left_of_a_command_without_a_session_and_a_workspace(cordon, daemon, out):
    """Whatever it left there, and where it is refused."""
    (out / "kept").write_text("")
    daemon.start()
    with daemon.rpc() as rpc:
        done = rpc.run("sh", "-c", f"mkdir -p a/b; echo > a/b/c; ln -s {out} a/b/link; chmod 0 a/b; chmod 0 a; pwd",
                       settings={})
        place = cordon.data / "cordon/workspaces"
        assert done["result"]["stdout"].startswith(f"{place}/"), done
        assert "error" in rpc.run("/nowhere/to/be/found",
                                  settings={}) and "error" in rpc.run("true", settings={"cwd": "/nowhere"})
        assert "error" in rpc.call("job.start", argv=["true"])
    assert wait_until(lambda: list(place.iterdir()) == []) and (out / "kept").exists()


def test_rpc_run(cordon, daemon):
    daemon.start()
    with daemon.rpc() as rpc:
        binary = bytes(range(256))
        process = rpc.start("cat", feeds=True)
        rpc.feed(process, binary)
        said = b""
        while (told := rpc.event(process, "output", "ended"))["event"] == "output":
            said += base64.b64decode(told["data_base64"]) if "data_base64" in told else told["data"].encode()
            assert told["stream"] == "stdout"
        assert said == binary and told["result"]["exit_code"] == 0 and told["result"]["stdout_bytes"] == 256
        done = rpc.run("sh", "-c", "echo $A; echo err >&2; exit 3", environment=["PATH=/usr/bin:/bin"])["result"]
        assert (done["exit_code"], done["stdout"], done["stderr"]) == (3, "\n", "err\n")
        done = rpc.run("sh", "-c", "echo $A$B",
                       settings={"session": "s", "env": ["A=1", "B=2"], "no-spawn": False, "timeout": 60})
        assert done["result"]["stdout"] == "12\n"
        # A stream, and signals.
        long = rpc.start("sh", "-c", "read line; echo got $line; exec sleep 60", feeds=True)
        rpc.feed(long, b"a line\n")
        assert rpc.event(long, "output")["data"] == "got a line\n"
        refused = rpc.call("process.write", id=long, data="x")["error"]["data"]
        assert (refused["class"], refused["subject"]) == ("invalid_request", "stdin"), "its input was closed"
        assert rpc.call("process.signal", id=long, signal="TERM")["result"] == {}
        assert rpc.end(long)["result"]["signal"] == signal.SIGTERM
        for method, params in (("process.signal", {"signal": "TERM"}), ("process.cancel", {})):
            assert rpc.call(method, id=long, **params)["error"]["data"]["class"] == "not_found", "it has ended"


LOOK = ["bash", "-c",
        "grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; ulimit -Sn; echo $OF_DAEMON,$LC_ALL,$TZ,${PATH##*:}"]


def ill_begun():
    """As a script may start it, and worse: signals ignored and blocked, another umask."""
    for number in set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGALRM])
    os.umask(0o077)


def test_nothing_of_the_daemons_own_reaches_a_command(cordon, daemon, workspace):
    before = cordon("run", "--session", "s", "--", *LOOK).stdout
    (workspace / "relative.toml").touch()
    own = {"OF_DAEMON": "daemon", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "PATH": cordon.env["PATH"] + ":/daemon"}
    daemon.start(env={**cordon.env, **own}, preexec_fn=ill_begun, restore_signals=False)
    for _ in range(3):  # in walls that were made for it, and in some that were there
        assert cordon("run", "--session", "s", "--", *LOOK).stdout == before
    clean = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0022\n"
    assert before.startswith(clean)
    with daemon.rpc() as rpc:
        for settings in ({"session": "s"}, {"session": "s"}, {}, {"driver": "local"}):
            told = rpc.run(*LOOK, settings={**settings, "pass-env": ["OF_DAEMON", "LC_ALL"]})["result"]["stdout"]
            assert told.startswith(clean) and told.endswith("\n,,,/bin\n"), (settings, told)
        error = rpc.run("true", settings={"session": "s", "manifest": "relative.toml"})["error"]["data"]
        assert (error["class"], error["reason"]) == ("invalid_request",
                                                     "the parameter manifest must be an absolute path")
        # A signal that the daemon ignores ends its command all the same.
        sleeper = rpc.start("sleep", "1000")
        assert rpc.event(sleeper, "started")
        assert rpc.call("process.signal", id=sleeper, signal="INT")["result"] == {}
        assert rpc.end(sleeper)["result"]["signal"] == signal.SIGINT


def test_rpc_of_one_breath(cordon, daemon):
    """Whoever has said everything still gets the answers; whoever is gone altogether ends what runs."""
    daemon.start()
    with daemon.rpc() as rpc:
        rpc.send("process.start", 1, argv=["sh", "-c", "sleep 0.2; echo done"], settings={"session": "s"})
        rpc.connection.shutdown(socket.SHUT_WR)
        process = rpc.answer(1)["result"]["id"]
        assert rpc.event(process, "output")["data"] == "done\n" and rpc.event(process, "ended") and rpc.read() is None
    rpc = daemon.rpc()
    assert rpc.event(rpc.start("sleep", own("64")), "started")
    rpc.connection.shutdown(socket.SHUT_WR)
    rpc.__exit__()
    assert wait_until(lambda: not asleep(own("64")))


def test_rpc_last_line_without_an_end(cordon, daemon):
    daemon.start()
    with daemon.rpc() as rpc:
        rpc.connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status"}')
        rpc.connection.shutdown(socket.SHUT_WR)
        assert rpc.answer(1)["result"]["clients"] == 1 and rpc.read() is None


def test_rpc_notifications_are_not_answered(cordon, daemon, workspace):
    daemon.start()
    with daemon.rpc() as rpc:
        rpc.send("process.signal", id="gone", signal="TERM")
        rpc.send("process.signal", id="gone")
        rpc.send("process.write", id="gone", data="x")
        rpc.send("nothing")
        assert rpc.call("status")["result"]["running"] == 0 and rpc.notices == []
        process = rpc.start("wc", "-c", feeds=True, events=False)
        for _ in range(2):
            rpc.send("process.write", id=process, data="x" * 10)
        rpc.feed(process)
        assert rpc.end(process)["result"]["stdout"] == "20\n" and rpc.notices == []


def test_rpc_terminal(cordon, daemon):
    daemon.start()
    with daemon.rpc() as rpc:
        process = rpc.start("sh", "-c", "read x; stty size", settings={"session": "s", "tty": "10x20"}, feeds=True,
                            events=False)
        for rows, columns in ((0, 40), (30, 0), (0, 0), (10000, 40)):
            assert rpc.call("process.resize", id=process, rows=rows,
                            columns=columns)["error"]["data"]["class"] == "invalid_request"
        assert rpc.call("process.resize", id=process, rows=30, columns=40)["result"] == {}
        assert rpc.call("process.write", id=process, data="\n")["result"] == {"taken": 1}
        assert "30 40" in rpc.end(process)["result"]["stdout"]
        without = rpc.start("sleep", "600", events=False)
        error = rpc.call("process.resize", id=without, rows=30, columns=40)["error"]["data"]
        assert error["class"] == "invalid_request" and "terminal" in error["reason"]


def test_rpc_sessions(cordon, daemon, workspace):
    daemon.start()
    with daemon.rpc() as rpc:
        made = rpc.call("session.new", id="one", settings={"workspace": str(workspace)})["result"]
        assert made["id"] == "one" and made["workspace"] == str(workspace)
        assert [each["id"] for each in rpc.call("session.list")["result"]["sessions"]] == ["one"]
        assert rpc.call("session.pause", id="one", why="a look")["result"] == {}
        error = rpc.run("true", session="one")["error"]
        assert error["code"] == -32000 and error["data"]["class"] == "session_paused" and "a look" in error["message"]
        assert rows_of(cordon, error["data"]["audit_id"])[-1]["row"] == "denial"
        assert rpc.call("session.resume", id="one")["result"] == {}
        assert rpc.run("true", session="one")["result"]["exit_code"] == 0
        assert rpc.call("session.end", id="one")["result"] == {}
        assert rpc.call("session.show", id="one")["result"]["state"] == "ended"
        assert rpc.call("session.remove", id="one")["result"] == {}
        assert rpc.call("session.show", id="one")["error"]["data"]["class"] == "not_found"
        assert rpc.call("session.show")["error"]["data"]["subject"] == "id"


BAD_CALLS = [
    (b"not json", -32700), (b"[]", -32600), (b"{}", -32600), (b'{"jsonrpc":"2.0","id":1}', -32600), (b'"x"', -32700),
    (b'{"jsonrpc":"1.0","id":1,"method":"status"}', -32600), (b'{"jsonrpc":"2.0","id":[1],"method":"status"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"no.such"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"status","params":[]}', -32600),
    (b'{"jsonrpc":"2.0","method":"status"}', -32600), (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"status"}', -32600),
    (b"[" * 100000, -32700), (b'{"a":' * 17 + b"1" + b"}" * 17, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"process.start"}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"process.start","params":{"argv":["true"],"settings":{"no":"such"}}}', -32000),
    (b'{"jsonrpc":"2.0","id":1,"method":"process.start","params":{"argv":["true"],"settings":{"timeout":{}}}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"process.start","params":{"argv":["true",1]}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"process.write","params":{"id":"x","data_base64":"=="}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"run","params":{"argv":["true"]}}', -32601),
]


def test_bad_calls(cordon, daemon):
    daemon.start()
    with daemon.rpc() as rpc:
        for line, code in BAD_CALLS:
            rpc.connection.sendall(line + b"\n")
            assert rpc.read()["error"]["code"] == code, line
        assert rpc.call("status")["result"]["running"] == 0


BAD_PARAMS = [
    ("approvals.answer", "hash", {"card": "x", "answer": "once", "hash": 5}),
    ("approvals.answer", "card", {"answer": "once"}),
    ("approvals.answer", "hash", {"card": "x", "answer": "once", "hash": None}),
    ("approvals.list", "session", {"session": "s"}), ("job.kill", "signal", {"id": "x", "signal": True}),
    ("job.list", "session", {"session": 5}), ("job.poll", "stdout_from", {"id": "x", "stdout_from": "3"}),
    ("job.poll", "stderr_from", {"id": "x", "stderr_from": -1}),
    ("job.start", "stdin", {"argv": ["true"], "stdin": {"text": ""}}),
    ("process.resize", "rows", {"id": "x", "rows": "3", "columns": 3}),
    ("job.start", "ask", {"argv": ["true"], "ask": True}),
    ("process.start", "settings", {"argv": ["true"], "settings": []}),
    ("process.start", "environment", {"argv": ["true"], "environment": "A=1"}),
    ("process.start", "events", {"argv": ["true"], "events": 1}),
    ("process.start", "detached", {"argv": ["true"], "detached": "true"}),
    ("process.start", "stdout", {"argv": ["true"], "stdout": 1}),
    ("process.start", "timeout", {"argv": ["true"], "settings": {"timeout": None}}),
    ("session.new", "setting", {"id": "x", "setting": {}}),
    ("session.end", "remove_workspace", {"id": "x", "remove_workspace": "true"}),
    ("session.pause", "why", {"id": "x", "why": 5}), ("session.show", "id", {"id": 5}),
    ("process.signal", "signal", {"id": "x", "signal": 15}), ("status", "x" * 300, {"x" * 300: 1}),
    ("process.write", "data", {"id": "x", "data": 5}), ("stop", "soon", {"soon": True}),
    ("stop", "drain_ms", {"drain_ms": -1}),
]


def test_parameters_that_are_wrong_are_not_passed_over(cordon, daemon):
    daemon.start()
    with daemon.rpc() as rpc:
        for method, name, params in BAD_PARAMS:
            error = rpc.call(method, **params)["error"]
            assert error["code"] == -32602 and error["data"]["subject"] == name and name in error["message"], (method, error)
        fed = rpc.start("cat", feeds=True)
        assert rpc.call("process.write", id=fed, data_base64="=")["error"]["code"] == -32602
        assert rpc.call("process.write", id=fed, data="", data_base64="")["error"]["code"] == -32602
        rpc.feed(fed, b"all")
        assert rpc.end(fed)["result"]["stdout"] == "all"


# ---- many, and what nobody well-meaning sends ------------------------------------------------------------------------

def test_hundreds_in_flight(cordon, daemon):
    daemon.start()
    each, connections = 50, [daemon.rpc() for _ in range(4)]
    processes = [[rpc.start("cat", settings={"session": f"many{number}"}, feeds=True) for _ in range(each)]
                 for number, rpc in enumerate(connections)]
    for rpc, own_processes in zip(connections, processes):
        for process in own_processes:
            assert rpc.event(process, "started", "ended")["event"] == "started"
    # All of them run now; one more does as well.
    assert daemon.status()["running"] == each * len(connections)
    assert cordon("run", "--session", "s", "--", "echo", "one more").stdout == "one more\n"
    for number, rpc in enumerate(connections):
        for i, process in enumerate(processes[number]):
            rpc.send("process.wait", process, id=process)
            rpc.feed(process, f"{number} {i}".encode())
    for number, rpc in enumerate(connections):
        answers = [rpc.answer(process) for process in processes[number]]
        assert all("result" in answer.get("result", {})
                   for answer in answers), [answer for answer in answers if "result" not in answer.get("result", {})]
        done = [answer["result"]["result"]["stdout"] for answer in answers]
        assert done == [f"{number} {i}" for i in range(each)]
        rpc.__exit__()
    assert wait_until(lambda: daemon.status()["running"] == 0)


def resident(process):
    """In bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) << 10


@needs("unsanitized")
def test_memory_of_clients_that_left_is_given_back(cordon, daemon):
    """Without that a daemon keeps 70 MiB or more after these, as free memory of the C library's."""
    daemon.start()
    clients = [daemon.rpc() for _ in range(700)]
    for rpc in clients:
        rpc.send("process.start", 1, argv=["cat"], settings={"session": "s", "stdin": "stream"}, events=False)
    begun_by = [rpc for rpc in clients if "result" in (answer := rpc.answer(1))
                and setattr(rpc, "process", answer["result"]["id"]) is None]
    assert len(begun_by) > 100
    for rpc in begun_by:
        rpc.send("process.wait", "end", id=rpc.process)
        rpc.feed(rpc.process, b"x" * 100000)
    # Where too much input waits at once, a call is refused.
    results = [rpc.answer("end").get("result") or {} for rpc in begun_by]
    ended = [(result.get("result") or {}).get("stdout_bytes") for result in results]
    assert ended.count(100000) > 100, ended
    most = resident(daemon.process)
    for rpc in clients:
        rpc.__exit__()
    assert wait_until(lambda: resident(daemon.process) < 30 << 20, 20), (most, resident(daemon.process))


def is_closed(connection):
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def test_garbage(cordon, daemon):
    daemon.start()
    good = hello(cordon, "--session", "s", "--", "true")
    bad = [
        b"\xff" * 100, frame(STDIN, b"x"), frame(SIGNAL, b"1234"), frame(DECLINE), good + good, frame(HELLO, b""),
        frame(HELLO, length=0xffffffff), frame(HELLO, length=(128 << 10) + 1),
        good + frame(STDIN, length=(64 << 10) + 1), good + frame(STDIN, b"not asked for"),
    ]
    for sent in bad:
        with daemon.connect() as connection:
            try:
                connection.sendall(sent)
            except ConnectionError:
                continue
            assert is_closed(connection), sent[:20]
    # A HELLO of another version, or that is none, is declined; half of one waits and disturbs nobody.
    halves = []
    for cut in (1, 7, 8, 20, len(good) - 1):
        halves.append(daemon.connect())
        halves[-1].sendall(good[:cut])
    with daemon.connect() as connection:
        connection.sendall(frame(HELLO, struct.pack("<IIIII", 99, 1, 0, 0, 0) + b"\0"))
        assert connection.recv(8) == frame(DECLINE)
    for half in halves:
        half.close()
    with daemon.connect() as connection:
        connection.sendall(good)
        assert connection.recv(100)[0] == END
    assert wait_until(lambda: daemon.status()["clients"] == 1)


def test_flood(cordon, daemon):
    """More than a client may have under way is refused, call by call; others are served meanwhile."""
    daemon.start()
    with daemon.rpc() as rpc:
        process = rpc.start("cat", feeds=True, events=False)
        for i in range(100):
            rpc.send("process.wait", i, id=process)
        refused = []
        while len(refused) < 36:
            said = rpc.read()
            refused += [said["id"]] if "error" in said else []
        assert refused == list(range(64, 100))
        assert cordon("run", "--session", "other", "--", "echo", "served").stdout == "served\n"
    assert wait_until(lambda: daemon.status()["running"] == 0)


def test_more_clients_than_there_is_room_for(cordon, daemon):
    """They are told so, and run their commands by themselves; nobody waits for a descriptor that the daemon does not
    have."""
    daemon.start(limit=200)
    idle = [daemon.connect() for _ in range(300)]
    try:
        done = cordon("run", "--session", "s", "--", "echo", "served")
        assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")
    finally:
        for connection in idle:
            connection.close()
    assert wait_until(lambda: daemon.status()["clients"] == 1)
    assert daemon.status()["served"] == 0


def test_a_thousand_clients(cordon, daemon):
    """As many as there may be are served; the one beyond is told so, and there is room again when one leaves."""
    daemon.start(limit=5000)
    with daemon.rpc() as first:
        most = first.call("hello")["result"]["limits"]["clients"]
        clients = [daemon.rpc() for _ in range(most - 1)]
        for rpc in clients:
            rpc.send("status", 1)
        assert [rpc.answer(1)["result"]["pid"] for rpc in clients] == [daemon.process.pid] * (most - 1)
        assert first.call("status")["result"]["clients"] == most >= 1000
        beyond = daemon.connect()
        assert closing_words(beyond) == frame(DECLINE), "it has said nothing yet, and is taken for cordon run"
        beyond.close()
        assert first.run("echo", "served")["result"]["stdout"] == "served\n"
        clients.pop().__exit__()
        assert wait_until(lambda: first.call("status")["result"]["clients"] == most - 1)
        with daemon.rpc() as rpc:
            assert "result" in rpc.call("status")
        for rpc in clients:
            rpc.__exit__()


def test_more_commands_than_there_are_descriptors_for(cordon, daemon):
    """They are turned away before anything of them ran, and none fails for want of one."""
    daemon.start(limit=200)
    with daemon.rpc() as rpc:
        for i in range(30):
            rpc.send("process.start", i, argv=["cat"], settings={"session": f"s{i}", "stdin": "stream"}, events=False)
        said = [answer for i in range(30) if "error" in (answer := rpc.answer(i))]
        assert len(said) == 24 and {each["error"]["message"] for each in said} == {"too many processes run; try later"}
        assert wait_until(lambda: len([row for row in rows(cordon) if row["row"] in ("intent", "denial")]) == 6)
        assert all(row["row"] != "denial" for row in rows(cordon))


def closing_words(connection):
    """What is said before the end of the connection."""
    said = b""
    try:
        while part := connection.recv(65536):
            said += part
    except ConnectionError:
        pass
    return said


@needs("unsanitized")
def test_the_input_of_all_clients_is_bounded(cordon, daemon):
    """Lines that never end, of many clients, each within what one may have."""
    daemon.start()
    before, clients, refused = resident(daemon.process), [daemon.connect() for _ in range(40)], 0
    for connection in clients:
        connection.sendall(b"x" * (3 << 20))
    for connection in clients:  # one that is refused is told at once, and stays connected
        if select.select([connection], [], [], 0.1)[0]:
            refused += 1
            assert json.loads(connection.recv(65536))["error"]["code"] == -32001
    assert 15 < refused < 35
    assert resident(daemon.process) - before < 80 << 20
    assert cordon("run", "--session", "s", "--", "echo", "served").stdout == "served\n"
    for connection in clients:
        connection.close()
    assert wait_until(lambda: daemon.status()["clients"] == 1)
    with daemon.rpc() as rpc:  # what they had is free again
        process = rpc.start("wc", "-c", feeds=True, events=False)
        rpc.send("process.write", 1, id=process, data="x" * (3 << 20))
        taken = rpc.answer(1)["result"]["taken"]
        rpc.feed(process)
        assert taken > 0 and rpc.end(process)["result"]["stdout"] == f"{taken}\n"


def test_a_line_that_is_too_long_costs_no_connection(cordon, daemon):
    """It is told once, passed over up to its end, and what runs goes on."""
    daemon.start()
    with daemon.rpc() as rpc:
        process = rpc.start("sleep", "600", events=False)
        most = rpc.call("hello")["result"]["limits"]["line"]
        for _ in range(2):
            for _ in range(0, most + (8 << 20), 1 << 20):
                rpc.connection.sendall(b"x" * (1 << 20))
            assert rpc.read()["error"] == {"code": -32600, "message": "the line is too long"}
            rpc.connection.sendall(b"{}\n")
            assert rpc.call("process.stat", id=process)["result"]["state"] != "ended"


def test_contents_of_the_most_that_a_method_takes(cordon, daemon):
    """As the table says: 32 MiB, in base64; what an export gives can be imported again."""
    daemon.start()
    with daemon.rpc() as rpc, daemon.rpc() as other:
        content = os.urandom(32 << 20)
        written = rpc.call("fs.write", path="large", data_base64=base64.b64encode(content).decode(),
                           settings={"session": "s"})
        assert written["result"]["size"] == len(content), written
        [told] = [rpc.run("sha256sum", "large")["result"]["stdout"]]
        assert told.split()[0] == hashlib.sha256(content).hexdigest()
        assert "result" in other.call("status")
        rpc.run("sh", "-c", "rm large; mkdir a b; head -c 20000000 /dev/urandom >a/file")
        archive = rpc.call("fs.export", path="a", settings={"session": "s"})["result"]
        assert rpc.call("fs.import", path="b", data_base64=archive["data_base64"],
                        settings={"session": "s"})["result"]["files"] == 1
        assert rpc.run("cmp", "a/file", "b/file")["result"]["exit_code"] == 0


@pytest.mark.parametrize("length, answered", [(60 << 10, True), (70 << 10, False)])
def test_a_long_line_that_does_not_end_is_no_call(cordon, daemon, length, answered):
    daemon.start()
    with daemon.rpc() as rpc:
        rpc.send("status", 1)
        line = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "status", "params": {}}).encode()
        rpc.connection.sendall(b" " * (length - len(line)) + line)
        rpc.connection.shutdown(socket.SHUT_WR)
        assert "result" in rpc.answer(1)
        last = rpc.read()
        assert (last is not None and last["id"] == 2) == answered


def test_a_client_by_json_rpc_beyond_the_last_is_told_so(cordon, daemon):
    daemon.start(limit=200)
    idle = [daemon.connect() for _ in range(60)]  # of which it has room for a quarter of its descriptors
    daemon.process.send_signal(signal.SIGSTOP)  # so that it finds the line with the connection
    try:
        beyond = daemon.connect()
        beyond.sendall(call("status"))
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    assert json.loads(closing_words(beyond))["error"]["code"] == -32001
    for connection in (*idle, beyond):
        connection.close()


def test_slow_reader(cordon, daemon):
    """A client that does not read gets no more, its command waits, and its timeout holds."""
    daemon.start()
    with daemon.connect() as connection:
        connection.sendall(hello(cordon, "--session", "s", "--timeout", "2s", "--", "yes", "x" * 99, flags=7))
        assert wait_until(lambda: any(row["row"] == "result" for row in rows(cordon)))
        row = next(row for row in rows(cordon) if row["row"] == "result")
        assert row["timed_out"] is True and row["stdout"]["bytes"] < 8 << 20, row
        assert cordon("run", "--session", "other", "--", "echo", "served").stdout == "served\n"
        received = b""
        while len(received) < 16 or received[-12] != END:
            part = connection.recv(1 << 20)
            assert part
            received = received[-16:] + part
        assert received[-4:] == struct.pack("<I", 124)


@needs("root")
def test_another_user(cordon, daemon, tmp_path):
    daemon.start()
    os.chmod(daemon.path, 0o777)
    for directory in (daemon.path.parent, *daemon.path.parent.parents):
        if directory.is_relative_to(tmp_path) or directory == tmp_path:
            os.chmod(directory, 0o755)
    code = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            "try:\n s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\\n'); print(s.recv(100))\nexcept ConnectionError: print(b'')")
    place = subprocess.run(["/usr/bin/python3", "-c", "import os,sys; os.chdir(sys.argv[1])", daemon.path.parent],
                           user=65534)
    if place.returncode:
        for directory in (tmp_path.parent, tmp_path.parent.parent):
            if directory.stat().st_mode & 0o005 != 0o005:  # /tmp itself may be one of them
                os.chmod(directory, 0o755)
    said = subprocess.run(["/usr/bin/python3", "-c", code, daemon.path], user=65534, group=65534, extra_groups=[],
                          cwd="/", capture_output=True, text=True)
    assert said.stdout == "b''\n", said
    assert daemon.status()["clients"] == 1


CONFINED = """
import ctypes, os, socket, sys
how, path, sent = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
if how == "seccomp mode":  # a filter that lets everything pass
    allow = ctypes.create_string_buffer(b"\\6\\0\\0\\0\\0\\0\\xff\\x7f")
    program = ctypes.create_string_buffer((1).to_bytes(8, "little") + ctypes.addressof(allow).to_bytes(8, "little"))
    assert libc.prctl(22, 2, program, 0, 0) == 0
if how == "no_new_privs":
    assert libc.prctl(38, 1, 0, 0, 0) == 0
s = socket.socket(socket.AF_UNIX)
s.connect(path)
if how == "root directory":
    os.chroot("/usr")
s.sendall(sent)
print(s.recv(4096).hex())
"""


def in_shell(line):
    return ["bash", "-c", line + ' && exec "$@"', "bash"]


def said_by(daemon, how, wrapper, sent):
    """What the daemon says to such a client."""
    done = subprocess.run([*wrapper, "/usr/bin/python3", "-c", CONFINED, how, daemon.path, sent.hex()],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return bytes.fromhex(done.stdout)


def call(method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


# What a process has less of than the daemon: as the daemon names it, and how a process comes to it.
CONFINEMENTS = [
    ("no_new_privs", []), ("mount namespace", ["unshare", "--user", "--map-current-user", "--mount"]),
    ("user namespace", ["unshare", "--user", "--map-current-user"]), ("resource limits", in_shell("ulimit -t 100")),
    ("resource limits", in_shell("ulimit -S -f 100000")), ("priority", ["nice", "-n", "5"]),
    ("scheduling policy", ["chrt", "-i", "0"]), ("oom_score_adj", in_shell("echo 700 >/proc/self/oom_score_adj")),
    pytest.param("processors", ["taskset", "-c", str(min(os.sched_getaffinity(0)))], marks=missing("processors")),
    *(pytest.param(how, wrapper, marks=missing("root")) for how, wrapper in [
        ("seccomp mode", []), ("root directory", []), ("capabilities", ["setpriv", "--bounding-set=-sys_boot"]),
        ("groups", ["setpriv", "--clear-groups", "--regid=65534"]),
        ("process namespace", ["unshare", "--pid", "--fork"]),
        ("process namespace of its children", ["unshare", "--pid"]), ("network namespace", ["unshare", "--net"]),
        ("ipc namespace", ["unshare", "--ipc"]), ("uts namespace", ["unshare", "--uts"]),
        ("cgroup namespace", ["unshare", "--cgroup"]), ("time namespace", ["unshare", "--time", "--fork"])])]


@pytest.mark.parametrize("how, wrapper", CONFINEMENTS)
def test_a_client_that_is_confined(cordon, daemon, how, wrapper):
    """Nothing is done for one that could not do it itself: it is to run its commands with what it has."""
    daemon.start()
    assert said_by(daemon, how, wrapper, hello(cordon, "--session", "s", "--", "true")) == frame(DECLINE)
    for method in ("status", "session.list", "process.signal", "process.start"):
        error = json.loads(said_by(daemon, how, wrapper, call(method, argv=["true"])))["error"]
        assert error["data"]["class"] == "capability_denied" and error["data"]["subject"] == how, error
    assert len(rows(cordon)) == 0


@pytest.mark.parametrize("sent", [b"{", b"[" * 30000, b"x" * 30000 + b"\n", call("status").strip()],
                         ids=["part", "nested", "garbage", "call"])
def test_of_a_client_that_is_confined_nothing_is_parsed(daemon, sent):
    daemon.start()
    error = json.loads(said_by(daemon, "", ["nice", "-n", "5"], sent))["error"]
    assert error["data"]["class"] == "capability_denied" and error["data"]["subject"] == "priority", error
    assert wait_until(lambda: daemon.status()["clients"] == 1)


def test_a_client_that_is_not_confined(cordon, daemon):
    """The control of the test above."""
    daemon.start()
    assert said_by(daemon, "", [], hello(cordon, "--session", "s", "--", "true")) != frame(DECLINE)
    assert "result" in json.loads(said_by(daemon, "", [], call("status")))
    assert len(rows(cordon)) == 3


def test_a_client_that_has_more(cordon, daemon):
    """By cordon run a command is as its client would start it. By JSON-RPC it has the client's resource limits, and the
    daemon's priority where that is lower."""
    daemon.start(wrapper=["nice", "-n", "5", *in_shell("ulimit -S -t 100; ulimit -S -f 1000")])
    assert said_by(daemon, "", [], hello(cordon, "--session", "s", "--", "true")) == frame(DECLINE)
    look = ["bash", "-c", "nice; ulimit -St; ulimit -Sf"]
    with daemon.rpc() as rpc:
        assert rpc.run(*look)["result"]["stdout"] == f"{os.nice(0) + 5}\nunlimited\nunlimited\n"
        # what the call names itself comes before, in whatever form
        for given in ("cpu=7:9", ["cpu=8", "cpu=7"]):
            assert rpc.run(*look, settings={"ulimit": given})["result"]["stdout"].endswith("\n7\nunlimited\n")
        assert "ulimit" in rpc.call("process.start", argv=look, settings={"ulimit": {}})["error"]["data"]["reason"]
        assert "settings" in rpc.call("process.start", argv=look, settings=[])["error"]["data"]["reason"]


def test_a_client_that_has_more_than_the_daemon_can_have(daemon):
    daemon.start(wrapper=in_shell("ulimit -t 100; ulimit -c 0"))
    with daemon.rpc() as rpc:
        for method in ("process.start", "job.start"):
            error = rpc.call(method, argv=["true"])["error"]["data"]
            assert error["subject"] == "cpu" and "cordon run" in error["remediation"], error
        assert "result" in rpc.call("status")


@needs("root")
def test_a_network_that_the_client_has_not(cordon, daemon):
    """A process that was put into a network of its own does not get the host's by asking the daemon."""
    daemon.start()
    look = call("process.start", argv=["readlink", "/proc/self/ns/net"], settings={"net": "all"})
    hosts = os.readlink("/proc/self/ns/net")
    with daemon.rpc() as rpc:  # not confined, it gets what it asks for
        assert rpc.run("readlink", "/proc/self/ns/net", settings={"net": "all"})["result"]["stdout"] == hosts + "\n"
    answer = said_by(daemon, "", ["unshare", "--net"], look)
    assert json.loads(answer)["error"]["data"]["subject"] == "network namespace", answer


@pytest.mark.parametrize("wrapper", [
    pytest.param(["unshare", "--mount"], marks=missing("root")), ["unshare", "--user", "--map-current-user", "--mount"],
    pytest.param(["unshare", "--pid", "--mount-proc", "--fork"], marks=missing("root"))], ids=" ".join)
def test_from_another_mount_namespace_a_command_runs_by_itself(cordon, daemon, wrapper):
    """As without a daemon, whatever comes of it there."""
    def run(*words):
        process = cordon.popen("run", "--session", "s", *words, "--", "echo", "served", wrapper=wrapper, text=True)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err
    daemon.start()
    alone = run("--no-daemon")
    assert run() == alone, alone
    assert "user" in " ".join(wrapper) or alone == (0, "served\n", "")


def test_not_from_inside(cordon, daemon, tmp_path):
    """A process in another mount namespace gets nothing, even where it finds the socket."""
    daemon.start()
    wrapper = ["unshare", "--user", "--map-current-user", "--mount"]
    answer = json.loads(said_by(daemon, "", wrapper, call("status")))
    assert "result" not in answer and answer["error"]["data"]["subject"] == "mount namespace", answer
    inside = cordon("run", "--socket", daemon.path, "--", "true")
    assert inside.returncode == 125 and "cordon's own data cannot be granted" in inside.stderr


def test_a_daemon_elsewhere(cordon, daemon, tmp_path):
    """--host names it by its socket; sessions, jobs, questions and the ledger are its own. Whoever is not there is not
    replaced."""
    daemon.start()
    elsewhere = {"env": {**cordon.env, "XDG_DATA_HOME": str(tmp_path / "elsewhere")}}
    done = cordon("--host", daemon.path, "run", "--session", "s", "--", "sh", "-c", "echo served; echo >made",
                  **elsewhere)
    assert (done.returncode, done.stdout) == (0, "served\n"), done
    assert daemon.status()["served"] == 1
    for words in (["--host", daemon.path, "session", "list", "--json"],
                  ["session", "list", "--json", f"--host={daemon.path}"],
                  [f"--host={daemon.path}", "session", "list", "--json"]):
        assert [each["id"] for each in json.loads(cordon(*words, **elsewhere).stdout)["sessions"]] == ["s"], words
    assert cordon("--host", daemon.path, "session", "show", "s", **elsewhere).returncode == 0
    started = cordon("--host", daemon.path, "job", "start", "--session", "s", "--", "echo", "of a job", **elsewhere)
    assert started.returncode == 0, started
    job = started.stdout.strip()
    assert cordon("--host", daemon.path, "job", "wait", job, **elsewhere).returncode == 0
    assert "of a job" in cordon("--host", daemon.path, "job", "poll", job, **elsewhere).stdout
    assert "made" in cordon("--host", daemon.path, "file", "list", "--session", "s", **elsewhere).stdout
    assert cordon("--host", daemon.path, "approvals", "list", **elsewhere).returncode == 0
    assert "echo" in cordon("--host", daemon.path, "audit", "query", "--session", "s", **elsewhere).stdout
    assert json.loads(cordon("session", "list", "--json", **elsewhere).stdout)["sessions"] == []
    for words in (["run", "--session", "s", "--", "true"], ["session", "list"], ["audit", "query"]):
        refused = cordon("--host", tmp_path / "nowhere.sock", *words, **elsewhere)
        assert refused.returncode == 125 and "no daemon" in refused.stderr, refused
    assert cordon("--host", daemon.path, "doctor", **elsewhere).returncode == 2
