"""Limits and a network of listed hosts: the second command of a session in a daemon is held to the same as the first,
and as one without a daemon."""
import subprocess

import pytest

from conftest import PATIENCE, wait_until
from lab import lack, leftovers, result, rows_of  # noqa: F401
from test_limits import BOMB, CROWD, GROUPED, MB, PYTHON, hog



@pytest.fixture
def session(cordon, leftovers):  # noqa: F811
    """A daemon, and a session in which a command ran."""
    daemon = cordon.popen("serve", stdout=subprocess.DEVNULL)
    try:
        assert wait_until((cordon.data / "cordon/daemon.sock").exists)
        assert result(cordon, "--session", "s", "--", "/bin/true")["exit_code"] == 0
        yield ["--session", "s"]
        assert daemon.poll() is None, daemon.stderr.read()
    finally:
        daemon.terminate()
        daemon.wait(PATIENCE)


def run_twice(cordon, *words):
    result(cordon, *words, "--", "/bin/true")
    return lambda *command: result(cordon, *words, "--", *command)


@pytest.mark.parametrize("kind", ["anonymous", "/dev/shm/hog", "processes"])
def test_memory(cordon, session, kind):
    if not GROUPED:  # then it is watched: test_limits.py
        pytest.skip(lack("cgroup"))
    told = run_twice(cordon, *session, "--memory", "64M")(*hog(kind))
    assert told["exit_code"] != 0 and "had it" not in told["stdout"], told
    assert told["oom_killed"] and told["limit_hit"] == "memory" and told["limit"]["allowed"] == 64 * MB
    assert [row["row"] for row in rows_of(cordon, told["audit_id"])] == ["intent", "limit", "result"]
    assert cordon.refused(*session, "--", "/bin/true")["class"] == "session_paused"
    assert cordon("session", "resume", "s").returncode == 0
    assert result(cordon, *session, "--", "/bin/true")["exit_code"] == 0


def test_processes(cordon, session):
    run = run_twice(cordon, *session, "--processes", "20")
    for _ in range(2):
        assert run(PYTHON, "-c", CROWD)["stdout"] == "19\n", "itself, and nineteen more, whatever ran before"


def test_a_fork_bomb(cordon, session):
    run = run_twice(cordon, *session, "--processes", "24", "--timeout", "1s")
    told = run(PYTHON, "-c", BOMB)
    assert told["timed_out"] and told["limit_hit"] == "time"
    assert run("/bin/true")["exit_code"] == 0


def test_what_is_used_is_each_ones_own(cordon, session):
    run = run_twice(cordon, *session)
    large = run(PYTHON, "-c", "kept = bytearray(64 << 20); [kept.__setitem__(i, 1) for i in range(0, len(kept), 4096)]")
    small = run("/bin/true")
    assert large["max_rss_kb"] > 64 << 10 > (small["max_rss_kb"] or 0)  # small: no more than who started it
    if GROUPED:
        assert large["memory_peak_kb"] > 64 << 10 > small["memory_peak_kb"] and small["process_peak"] == 1


@pytest.mark.parametrize("words, told", [
    (("--timeout", "300ms"), {"timed_out": True, "limit_hit": "time"}),
    (("--max-output", "1000"), {"truncated": True}),
])
def test_what_the_supervisor_holds(cordon, session, words, told):
    done = run_twice(cordon, *session, *words)("/bin/sh", "-c", "head -c 5000 /dev/zero; exec sleep 1")
    assert {key: done[key] for key in told} == told


def test_listed_hosts(cordon, session):
    """They answer to each command of the session: its sandbox has listeners and a proxy, which each command has the use
    of."""
    assert cordon("session", "new", "n", "--net", "listed.example:443").returncode == 0
    line = "getent hosts listed.example >/dev/null && ! getent hosts other.example && ! getent hosts listed.example.other"
    for _ in range(3):
        told = result(cordon, "--session", "n", "--", "/bin/sh", "-c", line)
        assert told["exit_code"] == 0 and told["network"] is not None, told
        assert told["isolation"]["network"] == "network namespace, proxy"
    assert cordon("audit", "verify").returncode == 0
