"""cordon in a terminal: --tty, window size, job control, and that the caller's terminal stays the caller's."""
import json
import os
import pathlib
import signal
import termios

import pytest

from conftest import descendants, is_running, state, wait_until

WINDOW = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done"
# Types a line into the terminal, where it still can; and prints how many ways were open.
INJECT = """
import fcntl, os, termios
done = 0
for path in ("/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/dev/console", "/dev/tty1"):
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        for byte in b"touch injected\\n":
            fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte]))
        done += 1
    except OSError:
        pass
print("ways", done)
"""


def is_raw(terminal):
    return not termios.tcgetattr(terminal.slave)[3] & termios.ICANON


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return ""


def test_tty_gives_a_terminal(terminal):
    session = terminal("run", "--tty", "-c", "tty; test -t 0 && test -t 1 && test -t 2 && echo all; exit 6")
    assert session.end() == 6
    assert b"/dev/" in session.output and b"all\r\n" in session.output and b"not a tty" not in session.output


def test_at_a_terminal_there_is_one(terminal):
    session = terminal("run", "-c", "test -t 0 && test -t 1 && test -t 2 && echo all; stty size", rows=33, columns=101)
    assert session.end() == 0 and session.output == b"all\r\n33 101\r\n"


@pytest.mark.parametrize("option", [["--no-tty"], ["-n"], ["--session", "no-terminal"]], ids=lambda words: words[0])
def test_without_tty_there_is_none(terminal, option):
    session = terminal("run", *option, "-c",
                       "tty; test -t 1 || echo no stdout; (: < /dev/tty) 2>/dev/null || echo no tty")
    assert session.end() == 0
    assert session.output.replace(b"\r\n", b"\n") == b"not a tty\nno stdout\nno tty\n"


def test_one_that_controls_nobody_is_read_all_the_same(terminal):
    """As under `docker exec -t`, or where a program opens one for another; and what reads it ends when it is hung up."""
    session = terminal("run", "--tty", "--", "sh", controls=False)
    session.type("echo $((6 * 7))\n")
    session.expect("42")
    session.hang_up()
    wait_until(lambda: os.waitpid(session.pid, os.WNOHANG)[0])
    session.status = 0


def test_the_size_is_the_callers(terminal):
    session = terminal("run", "--tty", "-c", "sleep 0.2; stty size", rows=33, columns=101)
    assert session.end() == 0 and session.output == b"33 101\r\n"


def test_the_size_is_right_from_the_start(terminal):
    for _ in range(5):
        session = terminal("run", "--tty", "--", "stty", "size", rows=33, columns=101)
        assert session.end() == 0 and session.output == b"33 101\r\n"


def test_the_size_follows(terminal):
    session = terminal("run", "--tty", "-c", WINDOW, rows=30, columns=90)
    session.expect("30 90")
    session.resize(41, 123)
    session.expect("41 123")
    session.type("\x03")
    assert session.end() == 130


def test_tty_without_a_terminal(cordon):
    done = cordon("run", "--tty", "-c", "test -t 0 && stty size")
    assert done.returncode == 0 and done.stdout == "24 80\n"
    done = cordon("run", "--tty", "--json", "-c", "test -t 1 && echo yes")
    assert json.loads(done.stdout)["stdout"] == "yes\r\n"


def test_tty_with_piped_input(cordon):
    done = cordon("run", "--tty", "-c", "read line; echo got $line", input="hello\n")
    assert done.returncode == 0 and "got hello" in done.stdout


def test_the_terminal_is_restored(terminal):
    wait = "echo ready; exec sleep 30"
    for words, key, status in ((["-c", "echo ready; exit 3"], None, 3), (["-c", wait], "\x03", 130),
                               (["--timeout", "500ms", "-c", wait], None, 124)):
        session = terminal("run", "--tty", *words)
        session.expect("ready")
        if key:
            assert wait_until(lambda: is_raw(session))
            session.type(key)
        assert session.end() == status
        assert termios.tcgetattr(session.slave) == session.settings


def test_the_terminal_is_restored_after_a_signal(terminal):
    session = terminal("run", "--tty", "-c", "echo ready; exec sleep 30")
    session.expect("ready")
    assert wait_until(lambda: is_raw(session))
    os.kill(session.pid, signal.SIGTERM)
    assert session.end() == 143 and termios.tcgetattr(session.slave) == session.settings


def test_an_error_leaves_the_terminal_alone(terminal):
    session = terminal("run", "--tty", "--", "no-such-program-anywhere")
    assert session.end() == 127 and termios.tcgetattr(session.slave) == session.settings


def test_keys_act_inside(terminal):
    """Ctrl-Z and Ctrl-C inside are the inner shell's, whose job control works."""
    shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    session = terminal("run", "--tty", "--env", "PS1=inner> ", "--", *shell)
    session.expect("inner> ")

    def inner_state():
        return next((state(pid) for pid in descendants(session.pid) if command_line(pid) == "sleep 100"), None)
    session.type("sleep 100\r")
    assert wait_until(lambda: inner_state() == "S")
    session.type("\x1a")
    session.expect("Stopped")
    session.expect("inner> ")
    session.type("jobs\r")
    session.expect("Stopped +sleep 100")
    session.type("fg\r")
    assert wait_until(lambda: inner_state() == "S")
    session.type("\x03")
    session.expect("inner> ")
    session.type("echo status $?\r")
    session.expect("status 130")
    session.type("exit 4\r")
    assert session.end() == 4


def test_end_of_input_inside(terminal):
    session = terminal("run", "--tty", "--", "cat")
    session.type("hello\r")
    session.expect("hello\r\nhello")
    session.type("\x04")
    assert session.end() == 0


def test_nothing_can_be_typed_into_the_callers_terminal(terminal, cordon):
    for words in (["run"], ["run", "--tty"]):
        session = terminal.shell()
        session.type(f'"$CORDON" {" ".join(words)} -- python3 -c \'{INJECT}\'; echo after\n')
        session.expect("ways [0-9]")
        session.expect("after\r\n")
        session.expect("outer> ")
        session.type("exit\n")
        assert session.end() == 0 and not (cordon.workspace / "injected").exists()


def test_output_comes_at_once_and_whole(terminal, cordon):
    session = terminal("run", "--max-output", "1000", "-c",
                       "echo first; until test -e go; do sleep 0.02; done; seq 2000; sleep 0.1; echo last")
    session.expect("first")
    (cordon.workspace / "go").touch()
    assert session.end() == 0
    text = session.output.replace(b"\r\n", b"\n")
    assert b"".join(b"%d\n" % number for number in range(1, 2001)) in text and text.endswith(b"last\n")


def test_a_terminal_that_is_held_does_not_hold_up_the_timeout(terminal):
    """As after Ctrl-S: nothing takes the output, and there is no end of it."""
    session = terminal("run", "--timeout", "1s", "--", "yes")
    assert wait_until(lambda: any(map(is_running, descendants(session.pid))))
    assert wait_until(lambda: not any(map(is_running, descendants(session.pid))))
    assert session.end() == 124


def test_input_from_the_keyboard(terminal):
    session = terminal("run", "--", "cat")
    session.type("hello\n")
    session.expect("hello\r\nhello\r\n")
    session.type("\x04")
    assert session.end() == 0


def test_interrupt_from_the_keyboard(terminal):
    session = terminal("run", "-c", "echo ready; exec sleep 30")
    session.expect("ready")
    session.type("\x03")
    assert session.end() == 130


def test_stopped_from_the_keyboard(terminal):
    session = terminal.shell()
    session.type('"$CORDON" run -c "echo ready; sleep 1; echo woke"\n')
    session.expect("ready\r\n")
    session.type("\x1a")
    session.expect("Stopped")
    session.expect("outer> ")
    session.type("fg\n")
    session.expect("woke\r\n")
    session.expect("outer> ")
    session.type("echo status $?\n")
    session.expect("status 0")


def test_in_the_background_it_is_not_stopped_for_reading(terminal):
    session = terminal.shell()
    session.type('"$CORDON" run -- cat & wait $!; echo status $?\n')
    session.expect("status 0\r\n")


def test_a_terminal_that_hangs_up_ends_it(terminal):
    session = terminal("run", "-c", "echo ready; exec sleep 30")
    session.expect("ready")
    os.kill(session.pid, signal.SIGHUP)
    assert session.end() == 129
