"""Streams and signals of `cordon run`: what passes through, what a reader that goes away does, what is forwarded."""
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import descendants, is_running, state, wait_until

LOOP = "echo ready; while :; do sleep 0.05; done"


def read_line(stream):
    line = stream.readline()
    assert line, "the stream ended"
    return line


def until_there(path, seconds=60):
    """Without a pause: what comes after follows within microseconds."""
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        pass
    return path.exists()


def finish(process, seconds=60):
    """(status, output, errors) of what must end by itself."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, output, errors


def test_standard_input_passes_through(cordon):
    data = bytes(range(256)) * 2000
    assert cordon("run", "--max-output", "2M", "--", "cat", input=data, text=False).stdout == data


def test_input_that_nobody_reads(cordon):
    assert cordon("run", "--", "true", input="x" * 1_000_000).returncode == 0


def test_input_that_never_ends_does_not_hold_it_up(cordon):
    reader, writer = os.pipe()
    try:
        assert cordon("run", "--", "true", stdin=reader).returncode == 0
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_closed_descriptors(cordon, closed):
    """The command still finds three open streams, and writes to none of cordon's own files."""
    redirections = " ".join({0: "<&-", 1: ">&-", 2: "2>&-"}[fd] for fd in closed)
    inner = "cat > got; echo out; echo err >&2; ls /proc/self/fd | wc -l >> got; exit 5"
    line = f'"$@" {redirections}'
    done = subprocess.run(["bash", "-c", line, "bash", *cordon.argv("run", "-c", inner)], cwd=cordon.workspace,
                          env=cordon.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == (125 if 1 in closed else 5), done
    assert done.stdout == ("" if 1 in closed else "out\n")
    said = "" if 2 in closed else "err\n"
    assert done.stderr.startswith(said) and (done.stderr == said
                                             or (1 in closed and "could not be written" in done.stderr))
    assert (cordon.workspace / "got").read_text() == "4\n"


def test_both_streams_stay_apart(cordon):
    done = cordon("run", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_the_head_comes_at_once(cordon):
    process = cordon.popen("run", "-c", "echo first; until test -e go; do sleep 0.02; done; echo second")
    assert read_line(process.stdout) == b"first\n"
    (cordon.workspace / "go").touch()
    assert finish(process)[:2] == (0, b"second\n")


@pytest.mark.parametrize("stream, redirection", [("stdout", ""), ("stderr", " >&2")])
@pytest.mark.parametrize("cap", [64, 1000, 100_000])
def test_output_is_cut_in_the_middle(cordon, stream, redirection, cap):
    """The same bytes as the library keeps: a head, the marker, a tail, of an output of 12 characters a line."""
    line = f"seq -f '%011.0f' 100000{redirection}"
    done = cordon("run", "--max-output", str(cap), "-c", line)
    whole = "".join(f"{number:011}\n" for number in range(1, 100_001))
    head, marker, rest = getattr(done, stream).partition("\n[cordon: ")
    omitted, _, tail = rest.partition(" bytes omitted]\n")
    tail = tail.partition("cordon: ")[0]  # our own remark, on standard error
    assert marker and whole.startswith(head) and whole.endswith(tail)
    assert len(head) + int(omitted) + len(tail) == len(whole)
    assert len(head) <= 0.4 * cap + 1 and len(head) + len(tail) <= cap + 1
    assert "cut" in done.stderr


@pytest.mark.parametrize("where, text", [("project", "[limits]\nstdout = '1K'\nstderr = '2K'"),
                                         ("project", "[sandbox]\nmax_output = '1K'"),
                                         ("user", "[limits]\nstdout = '4M'\nstderr = '2M'"),
                                         ("user", "[sandbox]\nmax_output = '1K'")])
def test_output_is_cut_as_the_configuration_says(cordon, tmp_path, where, text):
    """Of a session: what is written is what the library keeps, whoever set the limit."""
    file = {"project": cordon.workspace / ".cordon.toml", "user": tmp_path / "home/cordon/config.toml"}[where]
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "home")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    words = ["-c", "seq 200000; seq 200000 >&2"]
    words = ["--session", "cut", "--workspace", str(cordon.workspace), *words]
    kept, done = json.loads(cordon("run", "--json", *words).stdout), cordon("run", "--quiet", *words)
    assert (done.stdout, done.stderr) == (kept["stdout"], kept["stderr"])
    assert ("bytes omitted]" in done.stdout) == ("4M" not in text) and done.stdout.endswith("\n200000\n")


def test_a_flood_is_bounded(cordon):
    done = cordon("run", "--session", "flood", "--timeout", "20s", "-c", "head -c 100000000 /dev/zero", text=False)
    assert done.returncode == 0 and len(done.stdout) < 1_100_000 and b"bytes omitted" in done.stdout


@pytest.mark.parametrize("line, status", [("yes", 141), ("trap '' PIPE; yes 2>/dev/null || exit 7", 7)],
                         ids=["obeys", "ignores"])
def test_a_broken_pipe_ends_the_command(cordon, line, status):
    """As outside: by SIGPIPE, or by EPIPE where it ignores that."""
    process = cordon.popen("run", "-c", line)
    assert process.stdout.read(2) == b"y\n"
    inside = descendants(process.pid)
    process.stdout.close()
    assert process.wait(60) == status
    process.stderr.close()
    assert wait_until(lambda: not any(map(is_running, inside)))


def test_a_broken_pipe_at_the_end(cordon):
    go = cordon.workspace / "go"
    for words in (["--json", "-c", ":"], ["-c", "echo x"]):
        process = cordon.popen("run", *words[:-1], f"until test -e go; do sleep 0.02; done; {words[-1]}")
        process.stdout.close()
        go.touch()
        assert process.wait(60) == 141 and process.stderr.read() == b""
        process.stderr.close()
        go.unlink()


def test_a_reader_that_stalls_does_not_hold_up_the_timeout(cordon):
    process = cordon.popen("run", "--timeout", "1s", "--", "yes")
    assert wait_until(lambda: any(map(is_running, descendants(process.pid))))
    assert wait_until(lambda: not any(map(is_running, descendants(process.pid))))
    status, output, _ = finish(process)
    assert status == 124 and output.startswith(b"y\ny\n")


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_reach_the_command(cordon, name):
    process = cordon.popen("run", "-c", f"trap 'echo got {name}; exit 7' {name}; {LOOP}")
    read_line(process.stdout)
    process.send_signal(getattr(signal, f"SIG{name}"))
    assert finish(process)[:2] == (7, f"got {name}\n".encode())


def test_a_signal_that_nobody_handles_is_the_status(cordon):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = cordon.popen("run", "-c", LOOP)
        read_line(process.stdout)
        process.send_signal(number)
        assert finish(process)[0] == 128 + number


def test_a_signal_may_be_ignored_and_sent_again(cordon):
    process = cordon.popen("run", "-c", f"n=0; trap 'n=$((n+1)); echo $n; [ $n -lt 2 ] || exit 9' INT; {LOOP}")
    read_line(process.stdout)
    for count in (b"1\n", b"2\n"):
        process.send_signal(signal.SIGINT)
        assert read_line(process.stdout) == count
    assert finish(process)[0] == 9


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["plain", "json"])
def test_a_signal_that_comes_too_late_changes_nothing(cordon, words):
    """Between the command's end and cordon's own: whenever it comes, the status is the command's."""
    for attempt in range(100):
        path = cordon.workspace / f"ends-{attempt}"
        process = cordon.popen("run", *words, "-c", f"trap '' TERM; : > {path.name}; exit 7")
        assert until_there(path)
        time.sleep(attempt * 20e-6)
        process.send_signal(signal.SIGTERM)
        assert finish(process)[0] == 7, f"attempt {attempt}"


def test_stopping_stops_both(cordon):
    process = cordon.popen("run", "-c", "while :; do echo tick; sleep 0.05; done")
    read_line(process.stdout)
    process.send_signal(signal.SIGTSTP)
    os.set_blocking(process.stdout.fileno(), False)
    assert wait_until(lambda: state(process.pid) == "T")
    while process.stdout.read():
        pass
    time.sleep(0.4)
    assert not process.stdout.read(), "the command went on"
    process.send_signal(signal.SIGCONT)
    assert wait_until(lambda: process.stdout.read())
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143


def test_the_command_starts_with_ordinary_signals(cordon):
    """cordon blocks and ignores signals for its own sake; none of that is handed on."""
    def ignore():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    done = cordon("run", "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", preexec_fn=ignore)
    masks = dict(line.split(":\t") for line in done.stdout.splitlines())
    assert set(masks) == {"SigBlk", "SigIgn"} and all(int(mask, 16) == 0 for mask in masks.values()), done.stdout


def test_a_caller_that_is_killed_takes_the_command_along(cordon):
    process = cordon.popen("run", "-c", "(setsid sleep 77 &) ; trap '' TERM HUP; echo ready; sleep 78")
    read_line(process.stdout)
    inside = descendants(process.pid)
    assert inside
    process.kill()
    assert finish(process)[0] == -signal.SIGKILL
    assert wait_until(lambda: not any(map(is_running, inside)))
