"""Plain `cordon run` between other programs: nothing is kept, cut, reordered or read that the command did not read."""
import hashlib
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import PATIENCE, PROGRAM, descendants, is_running, wait_until
from lab import needs

MiB = 1 << 20


def script(cordon, text, **options):
    """A line of shell that can call $CORDON."""
    return subprocess.run(["bash", "-c", text], cwd=cordon.workspace, env={**cordon.env, "CORDON": PROGRAM},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, start_new_session=True,
                          **options)


@pytest.fixture
def served(cordon):
    """A daemon for the sessions of this test."""
    process = cordon.popen("serve")
    assert wait_until((cordon.data / "cordon/daemon.sock").exists)
    yield cordon
    process.terminate()
    process.communicate(timeout=PATIENCE)


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


# ---- output ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("way", ["| cat", "> ../out; cat ../out"], ids=["pipe", "file"])
def test_all_of_it_arrives(cordon, way):
    data = os.urandom(5 * MiB)
    (cordon.workspace / "data").write_bytes(data)
    done = script(cordon, f'"$CORDON" run -- cat data {way}')
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest() and done.stderr == b""


def test_standard_error_arrives_too(cordon):
    done = cordon("run", "-c", "seq 200000 >&2")
    assert done.stderr == "".join(f"{number}\n" for number in range(1, 200_001)) and done.stdout == ""


def test_a_log_grows(cordon, tmp_path):
    """Past what would be kept of a captured result, while the command still runs."""
    log = tmp_path / "log"
    with open(log, "wb") as out:
        process = cordon.popen("run", "-c", "head -c 3000000 /dev/zero; until test -e go; do sleep 0.02; done; echo end", stdout=out)
    assert wait_until(lambda: log.stat().st_size == 3_000_000)
    (cordon.workspace / "go").touch()
    assert process.wait(PATIENCE) == 0 and log.stat().st_size == 3_000_004
    process.stderr.close()


@needs("unsanitized")
def test_what_nobody_reads_blocks_the_command(cordon):
    """10 GiB for a reader that reads nothing: the command waits, cordon's memory is bounded, and signals still
    arrive."""
    process = cordon.popen("run", "-c", "echo ready >&2; exec head -c 10G /dev/zero")
    assert process.stderr.readline() == b"ready\n"

    def written():
        inside = [pid for pid in descendants(process.pid) if pathlib.Path(f"/proc/{pid}/comm").read_text() == "head\n"]
        lines = pathlib.Path(f"/proc/{inside[0]}/io").read_text().splitlines() if inside else []
        return next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), 0)
    last = -1
    for _ in range(600):
        now = written()
        if now and now == last:
            break
        last = now
        signal.sigtimedwait([], 0.1)
    assert 64 * 1024 <= last < 4 * MiB
    assert resident_bytes(process.pid) < 16 * MiB
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    assert process.wait(PATIENCE) == 143
    process.stdout.close()
    process.stderr.close()


def test_a_slow_reader_gets_everything(cordon):
    done = script(cordon, '"$CORDON" run -c "head -c 3000000 /dev/zero" | (sleep 1; wc -c)')
    assert done.stdout.strip() == b"3000000"


LINES = "for i in $(seq 200); do echo out$i; echo err$i >&2; done"
ORDERED = "".join(f"out{number}\nerr{number}\n" for number in range(1, 201)).encode()


@pytest.mark.parametrize("way", ["2>&1", "> ../log 2>&1; cat ../log", ">> ../log 2>> ../log; cat ../log"],
                         ids=["pipe", "file", "append"])
def test_one_file_keeps_the_order(cordon, way):
    assert script(cordon, f"\"$CORDON\" run -c '{LINES}' {way}").stdout == ORDERED


def test_one_file_keeps_the_order_in_a_session(served):
    assert script(served, f"\"$CORDON\" run --session order -c '{LINES}' 2>&1").stdout == ORDERED


@pytest.mark.parametrize("command, status", [("yes", 141), ("sh -c \"trap '' PIPE; yes 2>/dev/null; exit 7\"", 7)],
                         ids=["dies", "ignores"])
def test_a_reader_that_leaves(cordon, command, status):
    """The status is the same as outside, and so is what the command makes of it."""
    line = 'set -o pipefail; {} | head -1'
    outside = script(cordon, line.format(command))
    inside = script(cordon, line.format('"$CORDON" run -- ' + command))
    assert (inside.returncode, inside.stdout) == (outside.returncode, outside.stdout) == (inside.returncode, b"y\n")
    assert inside.returncode == status and inside.stderr == outside.stderr


def test_output_that_was_lost_shows_in_the_status(cordon):
    """Also where the command itself ended well; the child of it got SIGPIPE as outside."""
    done = script(cordon, """set -o pipefail; "$CORDON" run -- sh -c 'yes; echo $? >&2' | head -1""")
    assert (done.returncode, done.stdout, done.stderr) == (141, b"y\n", b"141\n")


def test_a_reader_that_leaves_early(cordon):
    """A command that writes nothing is not ended by that."""
    done = script(cordon, '"$CORDON" run -c "echo x; until test -e go; do sleep 0.02; done; touch done" | (read x; exec <&-; touch go; sleep 0.1); '
                          'until test -e done; do sleep 0.02; done; echo ended')
    assert done.stdout == b"ended\n"


def test_a_disk_that_is_full_ends_the_command(cordon):
    done = script(cordon, '"$CORDON" run -- yes > /dev/full')
    assert done.returncode == 125 and b"could not be written" in done.stderr


# ---- input -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("session", ["", "--session input"], ids=["plain", "session"])
def test_a_loop_over_a_file(cordon, tmp_path, session):
    (tmp_path / "list").write_text("a\nb\nc\nd\n")
    done = script(cordon, f'while read -r i; do "$CORDON" run {session} -- echo "got $i"; done < ../list')
    assert done.stdout == b"got a\ngot b\ngot c\ngot d\n", done.stderr


def test_a_loop_over_a_file_by_the_daemon(served, tmp_path):
    (tmp_path / "list").write_text("a\nb\nc\nd\n")
    done = script(served, 'while read -r i; do "$CORDON" run --session loop -- head -c 2; done < ../list')
    assert done.stdout == b"b\nd\n", done.stderr


def test_a_file_is_left_where_the_command_stopped(cordon, tmp_path):
    """Also where all of it fits the pipe, and where much of it does not."""
    data = b"".join(b"%07d\n" % number for number in range(100_000))
    (tmp_path / "numbers").write_bytes(data)
    for taken in (0, 8, 4096, 300_000, len(data)):
        done = script(cordon, f'("$CORDON" run -- dd bs={max(taken, 1)} count={1 if taken else 0} iflag=fullblock status=none; cat) < ../numbers | sha256sum')
        assert done.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest(), (taken, done.stderr)
        done = script(cordon, f'("$CORDON" run -- dd of=/dev/null bs={max(taken, 1)} count={1 if taken else 0} iflag=fullblock status=none; '
                              f'wc -c) < ../numbers')
        assert int(done.stdout) == len(data) - taken


def test_an_offset_that_was_moved_is_left_alone(cordon, tmp_path):
    (tmp_path / "numbers").write_text("0123456789")
    with open(tmp_path / "numbers", "rb") as data:
        process = cordon.popen("run", "-c", "head -c 2; until test -e go; do sleep 0.02; done", stdin=data.fileno())
        assert process.stdout.read(2) == b"01"
        os.lseek(data.fileno(), 7, os.SEEK_SET)
        (cordon.workspace / "go").touch()
        assert process.wait(PATIENCE) == 0
        assert os.lseek(data.fileno(), 0, os.SEEK_CUR) == 7
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("session", [[], ["--session", "none"]], ids=["plain", "session"])
def test_no_input(cordon, session):
    assert cordon("run", "-n", *session, "-c", "cat; echo end", input="text").stdout == "end\n"


def test_an_empty_input_leaves_a_pipe_alone(cordon):
    done = script(cordon, 'seq 3 | ("$CORDON" run -n -- cat; cat)')
    assert done.stdout == b"1\n2\n3\n"


# ---- umask -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("session", ["", "--session mask"], ids=["plain", "session"])
@pytest.mark.parametrize("mask", ["0002", "0027", "0077"])
def test_the_umask_is_passed_on(cordon, mask, session):
    assert script(cordon, f'umask {mask}; "$CORDON" run {session} -c umask').stdout.decode().strip() == mask


def test_the_umask_is_the_clients_not_the_daemons(served):
    assert script(served, 'umask 0077; "$CORDON" run --session mask -c umask').stdout == b"0077\n"
