"""Jobs: commands of a session that nobody waits for. They outlive whoever started them, end with their session, and any
process follows them by what is on disk."""
import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from conftest import ERROR_KEYS, PATIENCE, wait_until
from lab import leftovers, rows, rows_of, running  # noqa: F401

ENDED_KEYS = {"exit_code", "signal", "timed_out", "oom_killed", "killed", "limit_hit", "note", "duration_ms", "ended"}


@pytest.fixture(autouse=True)
def nothing_stays(leftovers, cordon):  # noqa: F811
    """Whatever a test leaves is ended, and then nothing of it is there."""
    yield
    for job in jobs(cordon):
        if job["state"] == "running":
            cordon("job", "kill", "--signal", "KILL", job["id"])


def say(cordon, *words, **options):
    """What an action that must succeed tells a program."""
    done = cordon("job", words[0], "--json", *words[1:], **options)
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)


def start(cordon, *words, session="s", **options):
    done = cordon("job", "start", "--session", session, *words, **options)
    assert done.returncode == 0 and done.stderr == "" and len(done.stdout) == 27, done
    return done.stdout.strip()


def jobs(cordon, *words):
    return say(cordon, "list", *words)["jobs"]


def state(cordon, job):
    return say(cordon, "poll", job)["state"]


def refused(cordon, *words, status=125):
    human = cordon("job", *words)
    assert human.returncode == status and human.stdout == "" and human.stderr.startswith("cordon: "), human
    machine = cordon("job", words[0], "--json", *words[1:])
    assert machine.returncode == status and machine.stderr == "", machine
    error = json.loads(machine.stdout)["error"]
    assert set(error) == ERROR_KEYS and error["reason"]
    return error


def directories(cordon):
    return [path for path in (cordon.data / "cordon/jobs").glob("*/*") if path.is_dir()]


def asleep(marker):
    """The commands themselves, not who runs them and is about to end."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words and words[0].endswith(b"sleep"):
            found.append(path.parent.name)
    return found


def runner(cordon, job):
    return say(cordon, "poll", job)["pid"]


# ---- a life ----------------------------------------------------------------------------------------------------------

def test_the_life_of_a_job(cordon):
    line = "echo out; echo err >&2; cat; read -r _ || echo no input; until [ -e go ]; do sleep 0.02; done; exit 7"
    job = start(cordon, "-c", line)
    assert wait_until(lambda: "no input" in say(cordon, "poll", job)["stdout"]["data"])
    told = say(cordon, "poll", job)
    assert told["state"] == "running" and told["session"] == "s" and told["command"] == ["/bin/sh", "-c", line]
    assert told["timeout_ms"] == 3600 * 1000 and told["ended"] is told["exit_code"] is None and not told["killed"]
    assert told["stdout"] == {"bytes": 13, "from": 0, "missed": 0, "next": 13, "data": "out\nno input\n"}
    assert told["stderr"] == {"bytes": 4, "from": 0, "missed": 0, "next": 4, "data": "err\n"}
    again = say(cordon, "poll", "--from", "4", "--stderr-from", "99", job)
    assert again["stdout"]["data"] == "no input\n" and again["stdout"]["from"] == 4
    assert again["stderr"] == {"bytes": 4, "from": 4, "missed": 0, "next": 4, "data": ""}
    assert [each["id"] for each in jobs(cordon)] == [job] == [each["id"] for each in jobs(cordon, "--session", "s")]
    assert jobs(cordon, "--session", "another") == []
    # It does not hold back other commands of the session, which have the same workspace.
    unended = cordon("job", "wait", "--timeout", "1ms", job)
    assert unended.returncode == 125 and "not ended" in unended.stderr and "cordon job kill" in unended.stderr
    assert cordon("run", "--session", "s", "--", "touch", "go").returncode == 0
    waited = cordon("job", "wait", job)
    assert (waited.returncode, waited.stdout, waited.stderr) == (7, "", "")
    ended = say(cordon, "poll", job)
    assert ENDED_KEYS <= set(ended) and (ended["state"], ended["exit_code"], ended["signal"]) == ("ended", 7, 0)
    assert ended["stdout"]["data"] == "out\nno input\n" and ended["duration_ms"] > 0 and ended["ended"] > ended["started"]
    # The ledger has what it has of every command, under the job's own id.
    found = rows_of(cordon, job)
    assert [(row["row"], row["job"]) for row in found] == [("intent", "started"), ("result", "ended")]
    assert found[1]["exit_code"] == 7 and "job ended" in cordon("audit", "show", job).stdout
    assert not any("job" in row for row in rows(cordon) if row["id"] != job)


def test_what_people_are_shown(cordon):
    assert cordon("job", "list").stdout == "no jobs\n"
    job = start(cordon, "-c", r"printf 'a\033]0;title\007\nb\n'; printf '\xff' >&2; exit 3", session="mine")
    assert cordon("job", "wait", job).returncode == 3
    listed = cordon("job", "list").stdout.splitlines()
    assert len(listed) == 2 and listed[1].startswith(job) and "exit 3" in listed[1] and " mine " in listed[1]
    shown = cordon("job", "poll", job).stdout
    assert "state     exit 3\n" in shown and "  a\\x1b]0;title\\x07\n  b\n" in shown and "\033" not in shown


def test_what_it_planted_is_told(cordon):
    job = start(cordon, "-c",
                "for at in p q; do mkdir -p $at/.git/hooks; echo x >$at/.git/hooks/post-checkout; chmod +x $at/.git/hooks/*; done")
    cordon("job", "wait", job)
    note = say(cordon, "poll", job)["note"]
    assert "/.git/hooks/post-checkout: " in note and "moved to quarantine" in note and f"cordon audit show {job}" in note
    assert "moved to quarantine" in cordon("job", "poll", job).stdout


def test_what_it_planted_is_told_in_short(cordon):
    """There is room for its end on a full disk, however long a path is and whatever bytes are in it."""
    deep = "/".join([r"\001" * 200] * 5)
    job = start(cordon, "-c",
                f"p=$(printf '{deep}'); mkdir -p $p/.git/hooks; echo x >$p/.git/hooks/post-checkout; chmod +x $p/.git/hooks/*")
    assert cordon("job", "wait", job).returncode == 0
    note = say(cordon, "poll", job)["note"]
    assert "...: " in note and "moved to quarantine" in note and len(json.dumps(note)) < 4096


def test_a_job_waits_for_nobody(cordon):
    """What the client prints can be read to its end while the job runs, whatever descriptors it had."""
    read_end, write_end = os.pipe()
    done = cordon("job", "start", "--session", "s", "--", "sleep", "600", pass_fds=[write_end])
    os.close(write_end)
    assert os.read(read_end, 1) == b""
    os.close(read_end)
    job = done.stdout.strip()
    held = {os.readlink(path) for path in pathlib.Path(f"/proc/{runner(cordon, job)}/fd").iterdir()}
    assert {os.readlink(f"/proc/{runner(cordon, job)}/fd/{fd}") for fd in range(3)} == {"/dev/null"}, held
    assert os.readlink(f"/proc/{runner(cordon, job)}/cwd") == "/"
    assert os.getsid(runner(cordon, job)) == runner(cordon, job)


def test_it_outlives_its_client(cordon, workspace):
    """The client is killed while the walk waits for a human, and the job starts all the same."""
    cordon.env["XDG_CONFIG_HOME"] = str(workspace.parent / "config")
    (workspace.parent / "config/cordon").mkdir(parents=True)
    (workspace.parent / "config/cordon/config.toml").write_text("[approval]\nqueue = true\n")
    client = cordon.popen("job", "start", "--session", "s", "--timeout", "2h", "-c", "echo begun; sleep 600")
    cards = lambda: json.loads(cordon("approvals", "list", "--json").stdout)["approvals"]
    assert wait_until(cards)
    assert jobs(cordon) == []
    client.kill()
    client.communicate()
    assert cordon("approvals", "approve", cards()[0]["id"]).returncode == 0
    assert wait_until(lambda: jobs(cordon))
    job = jobs(cordon)[0]
    assert job["timeout_ms"] == 2 * 3600 * 1000 and job["state"] == "running"
    assert wait_until(lambda: say(cordon, "poll", job["id"])["stdout"]["data"] == "begun\n")
    assert cordon("job", "kill", job["id"]).returncode == 0


def test_a_terminal_is_asked_and_then_left(cordon, terminal):
    client = terminal("job", "start", "--session", "s", "--timeout", "2h", "--", "sleep", "600")
    client.expect("Allow")
    client.type("once\n")
    job = client.expect(r"\n([0-9A-Z]{26})\r?\n")[1].decode()
    assert client.end() == 0
    assert say(cordon, "poll", job)["timeout_ms"] == 2 * 3600 * 1000 and state(cordon, job) == "running"


# ---- the end ---------------------------------------------------------------------------------------------------------

def test_kill_ends_all_of_it(cordon):
    marker = f"600.{os.getpid()}1"
    job = start(cordon, "-c", f"trap 'echo asked; exit 9' TERM; setsid sleep {marker} & echo ready; wait")
    assert wait_until(lambda: "ready" in say(cordon, "poll", job)["stdout"]["data"])
    assert say(cordon, "kill", job)["state"] == "ended"
    assert not asleep(marker)
    told = say(cordon, "poll", job)
    assert (told["killed"], told["exit_code"], told["stdout"]["data"]) == (True, 9, "ready\nasked\n")
    assert rows_of(cordon, job)[-1]["job"] == "killed"
    # Once more is once.
    assert cordon("job", "kill", job).returncode == 0
    assert "ended" in refused(cordon, "kill", "--signal", "HUP", job)["reason"]


@pytest.mark.parametrize("spelled", ["USR1", "SIGUSR1", "10"])
def test_a_signal_is_only_that(cordon, spelled):
    job = start(cordon, "-c", "trap 'echo heard; exit 4' USR1; echo ready; while :; do sleep 0.02; done")
    assert wait_until(lambda: "ready" in say(cordon, "poll", job)["stdout"]["data"])
    assert cordon("job", "kill", "--signal", spelled, job).returncode == 0
    assert cordon("job", "wait", job).returncode == 4
    assert not say(cordon, "poll", job)["killed"] and rows_of(cordon, job)[-1]["job"] == "ended"


def test_limits_of_its_own(cordon):
    late = start(cordon, "--timeout", "100ms", "--", "sleep", "600")
    assert cordon("job", "wait", late).returncode == 124
    told = say(cordon, "poll", late)
    assert told["timed_out"] and told["limit_hit"] == "time" and told["timeout_ms"] == 100 and not told["killed"]
    full = start(cordon, "--processes", "2", "-c", "sleep 0 & sleep 0 & sleep 0 & wait; echo $?")
    cordon("job", "wait", full)
    assert "fork" in say(cordon, "poll", full)["stderr"]["data"].lower()
    (cordon.workspace / "c.toml").write_text('[sandbox]\njob_timeout = "90s"\n')
    configured = start(cordon, "--config", cordon.workspace / "c.toml", "--", "true")
    assert say(cordon, "wait", configured)["timeout_ms"] == 90000


def test_the_session_ends_and_its_jobs_with_it(cordon):
    """By another process; also one that does not listen, and one that is stopped."""
    marker = f"600.{os.getpid()}2"
    deaf = start(cordon, "-c", f"trap '' TERM; echo ready; sleep {marker} & while :; do wait; done")
    polite = start(cordon, "--", "sleep", marker)
    other = start(cordon, "--", "sleep", marker, session="other")
    assert wait_until(lambda: "ready" in say(cordon, "poll", deaf)["stdout"]["data"])
    assert cordon("job", "kill", "--signal", "STOP", polite).returncode == 0
    paused = cordon("session", "pause", "s")
    assert paused.returncode == 0 and state(cordon, deaf) == state(cordon, polite) == "running"
    assert refused(cordon, "start", "--session", "s", "--", "true")["class"] == "session_paused"
    assert cordon("session", "rm", "s").returncode == 125 and state(cordon, deaf) == "running"
    assert cordon("session", "end", "s").returncode == 0
    assert [(each["state"], each["killed"]) for each in jobs(cordon, "--session", "s")] == [("ended", True)] * 2
    assert say(cordon, "poll", deaf)["signal"] == 9 and state(cordon, other) == "running"
    assert refused(cordon, "start", "--session", "s", "--", "true")["class"] == "session_ended"
    assert cordon("session", "rm", "s").returncode == 0
    assert [each["id"] for each in jobs(cordon)] == [other]
    assert cordon("session", "end", "--remove-workspace", "other").returncode == 0
    assert state(cordon, other) == "ended" and not asleep(marker)
    assert cordon("session", "rm", "other").returncode == 0 and directories(cordon) == []


def test_a_start_that_waits_ends_with_its_session(cordon, workspace):
    (workspace / "c.toml").write_text("[approval]\nqueue = true\n")
    client = cordon.popen("job", "start", "--json", "--session", "s", "--config", workspace / "c.toml", "--timeout",
                          "2h", "--", "true")
    assert wait_until(lambda: json.loads(cordon("approvals", "list", "--json").stdout)["approvals"])
    assert cordon("session", "end", "s").returncode == 0
    error = json.loads(client.communicate(timeout=PATIENCE)[0])["error"]
    assert error["class"] in ("approval_timeout", "session_ended") and directories(cordon) == []


def test_a_runner_that_is_killed(cordon):
    marker = f"600.{os.getpid()}3"
    job = start(cordon, "-c", f"echo begun; sleep {marker}")
    assert wait_until(lambda: running(marker) and say(cordon, "poll", job)["stdout"]["data"])
    follower = cordon.popen("job", "tail", "-f", job)
    waiter = cordon.popen("job", "wait", job)
    os.kill(runner(cordon, job), signal.SIGKILL)
    assert follower.communicate(timeout=PATIENCE)[0] == b"begun\n" and follower.returncode == 0
    assert b"lost" in waiter.communicate(timeout=PATIENCE)[1] and waiter.returncode == 125
    assert wait_until(lambda: not running(marker))
    told = say(cordon, "poll", job)
    assert (told["state"], told["exit_code"], told["stdout"]["data"]) == ("lost", None, "begun\n")
    assert cordon("job", "kill", job).returncode == 0 and " lost " in cordon("job", "list").stdout
    assert [row["row"] for row in rows_of(cordon, job)] == ["intent"]
    assert cordon("job", "wait", start(cordon, "--", "true")).returncode == 0
    assert cordon("session", "end", "s").returncode == 0 and cordon("session", "rm", "s").returncode == 0


def test_a_runner_that_is_told_to_end(cordon):
    job = start(cordon, "--", "sleep", "600")
    os.kill(runner(cordon, job), signal.SIGTERM)
    assert cordon("job", "wait", job).returncode == 128 + signal.SIGTERM
    assert say(cordon, "poll", job)["killed"]


# ---- how many --------------------------------------------------------------------------------------------------------

def test_eight_at_a_time_and_no_more(cordon):
    """Of twelve that race, eight; one that ends makes room for one."""
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        done = list(pool.map(lambda _: cordon("job", "start", "--json", "--session", "s", "--", "sleep", "600"),
                             range(12)))
    assert sorted(each.returncode for each in done) == [0] * 8 + [125] * 4
    errors = [json.loads(each.stdout)["error"] for each in done if each.returncode]
    assert {error["class"] for error in errors} == {"session_busy"} and "8 jobs" in errors[0]["reason"]
    assert all([row["row"] for row in rows_of(cordon, error["audit_id"])] == ["denial"] for error in errors)
    assert {row["job"] for row in rows(cordon) if row["row"] == "denial"} == {"refused"}
    assert len(jobs(cordon)) == 8 == len(directories(cordon))
    other = start(cordon, "--", "true", session="other")
    assert cordon("job", "wait", other).returncode == 0
    assert cordon("job", "kill", "--signal", "KILL", jobs(cordon)[0]["id"]).returncode == 0
    assert cordon("job", "wait", jobs(cordon)[0]["id"]).returncode == 128 + 9
    start(cordon, "--", "sleep", "600")
    assert refused(cordon, "start", "--session", "s", "--", "true")["class"] == "session_busy"


@pytest.mark.parametrize("words, status, kind", [
    (["--", "no-such-program"], 127, "program_not_found"),
    (["--read", "/nowhere/at/all", "--", "true"], 125, None),
    (["--memory", "lots", "--", "true"], 125, "invalid_request"),
    (["--tty", "--", "true"], 125, "invalid_request"),
    (["--from", "3", "--", "true"], 125, "invalid_request"),
    ([], 125, "invalid_request"),
])
def test_a_refused_start_leaves_nothing(cordon, words, status, kind):
    error = refused(cordon, "start", "--session", "s", *words, status=status)
    assert kind in (None, error["class"]) and jobs(cordon) == [] and directories(cordon) == []


def test_a_job_has_a_session(cordon):
    error = refused(cordon, "start", "--", "true")
    assert error["class"] == "invalid_request" and "session" in error["reason"] and "--session" in error["remediation"]


def test_ids_that_are_none(cordon):
    for action, word in [("poll", "x"), ("poll", ""), ("poll", "../../sessions"), ("tail", "0" * 26), ("kill", "-"),
                         ("wait", "01M7G957QRWYAEB8YCAYG2QA76")]:
        error = refused(cordon, action, "--", word)
        # tail has no JSON, which is asked for here.
        assert error["class"] == ("invalid_request" if action == "tail" else "not_found") and "job" in error["reason"]
    assert cordon("job", "poll").returncode == 2 == cordon("job", "frobnicate").returncode
    assert "comes before" in cordon("job", "--session", "s", "start", "--", "true").stderr
    job = start(cordon, "--", "true")
    cordon("job", "wait", job)
    for words in (["poll", "--from", "-1"], ["tail", "-n", "x"], ["wait", "--timeout", "soon"],
                  ["kill", "--signal", "LOUD"]):
        assert refused(cordon, *words, job)["class"] == "invalid_request"
    assert "poll --json" in cordon("job", "tail", "--json", job).stdout


# ---- what it writes --------------------------------------------------------------------------------------------------

def test_the_ring_goes_around(cordon):
    """What is kept is the end, byte by byte, and what is lost is counted."""
    whole = b"".join(b"%07d\n" % number for number in range(20000))
    job = start(cordon, "--max-output", "64K", "-c", "seq -f %07.0f 0 19999; seq -f %07.0f 0 9 >&2")
    assert cordon("job", "wait", job).returncode == 0
    told = say(cordon, "poll", job)["stdout"]
    kept = 64 << 10
    assert told == {"bytes": len(whole), "from": len(whole) - kept, "missed": len(whole) - kept, "next": len(whole),
                    "data": whole[-kept:].decode()}
    middle = say(cordon, "poll", "--from", str(len(whole) - 100), job)["stdout"]
    assert (middle["missed"], middle["data"]) == (0, whole[-100:].decode())
    assert cordon("job", "tail", "-n", "5", job).stdout == whole[-40:].decode()
    assert cordon("job", "tail", "-n", "999999", job, text=False).stdout == whole[-kept:]
    assert cordon("job", "tail", "--stderr", "-n", "2", job).stdout == "0000008\n0000009\n"
    # Whoever reads one stream is told of the other, and of no other.
    assert cordon("job", "tail",
                  job).stderr == f"cordon: the job also wrote to standard error: cordon job tail --stderr {job}\n"
    assert cordon("job", "tail", "--stderr", job).stderr == ""
    files = [path for path in directories(cordon)[0].iterdir() if path.name in ("stdout", "stderr")]
    assert max(path.stat().st_size for path in files) <= kept + 64


def test_two_follow_at_once(cordon):
    """From the first byte to the last, without a gap, whatever comes when."""
    line = "until [ -e go ]; do sleep 0.02; done; for i in $(seq 200); do echo $i; done; sleep 0.05; printf end"
    job = start(cordon, "-c", line)
    followers = [cordon.popen("job", "tail", "-f", "-n", "9999", job) for _ in range(2)]
    assert cordon("run", "--session", "s", "--", "touch", "go").returncode == 0
    collected, place = "", 0
    while state(cordon, job) == "running" or place < say(cordon, "poll", job)["stdout"]["bytes"]:
        part = say(cordon, "poll", "--from", str(place), job)["stdout"]
        assert (part["from"], part["missed"]) == (place, 0)
        collected, place = collected + part["data"], part["next"]
    expected = "".join(f"{number}\n" for number in range(1, 201)) + "end"
    assert collected == expected
    for follower in followers:
        assert follower.communicate(timeout=PATIENCE)[0].decode() == expected and follower.returncode == 0


def test_bytes_are_bytes(cordon):
    job = start(cordon, "-c", r"printf '\000\001\377\303\251\033[31m'")
    cordon("job", "wait", job)
    assert cordon("job", "tail", job, text=False).stdout == b"\000\001\377\303\251\033[31m"
    assert say(cordon, "poll", job)["stdout"]["data"] == "\0\1\ufffdé\033[31m"


def test_a_terminal_obeys_nothing(cordon, terminal):
    job = start(cordon, "-c", r"printf 'plain\ttab \033]0;x\007\033[2J\302\233é \377\r\n'")
    cordon("job", "wait", job)
    shown = terminal("job", "tail", job)
    shown.expect(r"plain\s+tab \\x1b\]0;x\\x07\\x1b\[2J\\u\{9b\}é \\xff\\x0d\r\n")


def test_tail_ends_when_nobody_reads(cordon):
    job = start(cordon, "-c", "yes")
    follower = cordon.popen("job", "tail", "-f", job)
    assert follower.stdout.read(4) == b"y\ny\n"
    follower.stdout.close()
    assert follower.wait(PATIENCE) == -signal.SIGPIPE
    follower.stderr.close()


# ---- what lies on the disk -------------------------------------------------------------------------------------------

def test_records_that_were_damaged(cordon):
    job = start(cordon, "--", "true")
    cordon("job", "wait", job)
    place = directories(cordon)[0]
    good = (place / "job.json").read_text()
    assert place.stat().st_mode & 0o777 == 0o700 and (place / "job.json").stat().st_mode & 0o777 == 0o600
    for text in ("", "{}", good[:-5], good.replace('"ended"', '"sleeping"'), good.replace('"version":1', '"version":0'),
                 "x" * (2 << 20)):
        (place / "job.json").write_text(text)
        assert refused(cordon, "poll", job)["class"] == "internal"
        assert jobs(cordon) == []
    (place / "job.json").unlink()
    os.symlink("/etc/passwd", place / "job.json")
    assert refused(cordon, "poll", job)["class"] == "internal"
    (place / "job.json").unlink()
    (place / "job.json").write_text(good)
    os.truncate(place / "stdout", 7)
    assert say(cordon, "poll", job)["stdout"]["bytes"] == 0
    assert "cannot be read" in cordon("job", "tail", job).stderr


# ---- by a daemon -----------------------------------------------------------------------------------------------------

@pytest.fixture
def daemon(nothing_stays, cordon):
    """`cordon serve`, told to end with the test."""
    process = cordon.popen("serve", text=True)
    assert "listening" in process.stdout.readline()
    yield process
    process.terminate()
    assert process.wait(PATIENCE) == 0
    process.communicate()


def test_a_daemon_runs_it(cordon, daemon):
    """It outlives its client, and goes with the daemon."""
    job = start(cordon, "--", "sh", "-c", "echo ready; exec sleep 600")
    told = say(cordon, "poll", job)
    assert told["pid"] == daemon.pid and told["state"] == "running"
    assert wait_until(lambda: say(cordon, "poll", job)["stdout"]["data"] == "ready\n")
    own = start(cordon, "--no-daemon", "--", "sleep", "600")
    assert runner(cordon, own) != daemon.pid
    daemon.terminate()
    assert daemon.wait(PATIENCE) == 0
    assert cordon("job", "wait", job).returncode == 128 + 9
    assert say(cordon, "poll", job)["killed"] and state(cordon, own) == "running"


def test_a_daemon_refuses_as_the_program_does(cordon, daemon):
    assert refused(cordon, "start", "--session", "s", "--", "no-such-program",
                   status=127)["class"] == "program_not_found"
    assert refused(cordon, "start", "--session", "s", "--timeout", "2h", "--", "true")["class"] == "capability_denied"
    assert directories(cordon) == []
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda _: cordon("job", "start", "--json", "--session", "s", "--", "sleep", "600"),
                             range(10)))
    assert sorted(each.returncode for each in done) == [0] * 8 + [125] * 2
    assert {json.loads(each.stdout)["pid"] for each in done if not each.returncode} == {daemon.pid}
    assert cordon("session", "end", "s").returncode == 0
    assert {each["state"] for each in jobs(cordon)} == {"ended"}


def test_a_daemon_asks_on_the_terminal(cordon, daemon, terminal):
    client = terminal("job", "start", "--session", "s", "--timeout", "2h", "--", "sleep", "600")
    client.expect("Allow")
    client.type("once\n")
    job = client.expect(r"\n([0-9A-Z]{26})\r?\n")[1].decode()
    assert client.end() == 0
    assert say(cordon, "poll", job)["timeout_ms"] == 2 * 3600 * 1000 and runner(cordon, job) == daemon.pid


def test_jobs_by_remote_calls(cordon, daemon):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(cordon.data / "cordon/daemon.sock"))
        lines = connection.makefile("rw")

        def call(method, **params):
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=lines, flush=True)
            return json.loads(lines.readline())
        job = call("job.start", argv=["sh", "-c", "echo out; echo err >&2; sleep 600"],
                   settings={"session": "s"})["result"]
        assert job["state"] == "running"
        assert wait_until(lambda: call("job.poll", id=job["id"])["result"]["stderr"]["bytes"] == 4)
        assert call("job.poll", id=job["id"], stdout_from=2)["result"]["stdout"]["data"] == "t\n"
        assert [each["id"] for each in call("job.list", session="s")["result"]["jobs"]] == [job["id"]]
        assert "error" in call("job.kill", id=job["id"],
                               signal="LOUD") and "error" in call("job.kill", id=job["id"], signal=0)
        assert "error" in call("job.list", session=5) and "error" in call("job.kill", id=job["id"], signal=[])
        assert "error" in call("job.kill", id=job["id"],
                               signal=int(signal.SIGCONT)), "signals have names: their numbers differ by system"
        assert call("job.kill", id=job["id"], signal="CONT")["result"] == {}
        assert call("job.kill", id=job["id"])["result"] == {}
        assert call("job.poll", id=job["id"])["result"]["killed"]
        assert call("job.start", argv=["true"])["error"]["data"]["class"] == "invalid_request"
        assert call("job.poll", id="x")["error"]["data"]["class"] == "not_found"
        assert "error" in call("job.start", settings={"session": "s"}) and "error" in call("job.poll")


def test_jobs_that_wait_for_a_human_keep_nobody_else_waiting(cordon, workspace):
    """Neither the answer, nor other sessions, nor the daemon's end."""
    cordon.env["XDG_CONFIG_HOME"] = str(workspace.parent / "config")
    (workspace.parent / "config/cordon").mkdir(parents=True)
    (workspace.parent / "config/cordon/config.toml").write_text("[approval]\nqueue = true\ntimeout = \"1h\"\n")
    daemon = cordon.popen("serve", text=True)
    assert "listening" in daemon.stdout.readline()
    waiting, other = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    with waiting, other:
        for connection in waiting, other:
            connection.settimeout(PATIENCE)
            connection.connect(str(cordon.data / "cordon/daemon.sock"))
        answers, lines = waiting.makefile("r"), other.makefile("rw")

        def call(method, **params):
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=lines, flush=True)
            return json.loads(lines.readline())
        for number in range(12):
            params = {"argv": ["sleep", "600"], "settings": {"session": f"s{number}", "timeout": "2h"}}
            waiting.sendall(json.dumps({"jsonrpc": "2.0", "id": number, "method": "job.start",
                                        "params": params}).encode() + b"\n")
        assert wait_until(lambda: len(call("approvals.list")["result"]["approvals"]) == 12)
        card = call("approvals.list")["result"]["approvals"][0]
        assert call("approvals.answer", card=card["id"], answer="once")["result"] == {}
        assert json.loads(answers.readline())["result"]["state"] == "running"
        assert cordon("run", "--session", "another", "--", "true").returncode == 0
        daemon.terminate()
        assert daemon.wait(PATIENCE) == 0
        daemon.communicate()


def test_a_daemon_is_not_idle_while_a_job_runs(cordon):
    daemon = cordon.popen("serve", "--idle", "100ms", text=True)
    assert "listening" in daemon.stdout.readline()
    job = start(cordon, "-c", "until [ -e go ]; do sleep 0.02; done")
    assert runner(cordon, job) == daemon.pid
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.wait(0.5)
    assert cordon("run", "--no-daemon", "--session", "s", "--", "touch", "go").returncode == 0
    assert cordon("job", "wait", job).returncode == 0 and daemon.wait(PATIENCE) == 0
    daemon.communicate()
