"""The ledger by `cordon audit`: read, searched, followed, exported, verified; tampered with, removed, and written by
many."""
import hashlib
import json
import random
import shutil
import signal
import subprocess
import time

import pytest

from conftest import wait_until
from lab import ledger_files, needs, result, rows


def ledger(cordon):
    return cordon.data / "cordon/ledger"


def lines(cordon):
    return [line for path in ledger_files(cordon) for line in path.read_text().splitlines()]


def audit(cordon, *words, status=0):
    done = cordon("audit", *words)
    assert done.returncode == status and (status or done.stderr == ""), done
    return done.stdout


def verify(cordon):
    """What is wrong, as (what, file, line); the two forms must agree."""
    human = cordon("audit", "verify")
    machine = cordon("audit", "verify", "--json")
    report = json.loads(machine.stdout)
    assert machine.stdout.count("\n") == 1 and human.stderr == machine.stderr == ""
    assert human.returncode == machine.returncode == (0 if report["intact"] else 1)
    assert human.stdout.startswith("intact:" if report["intact"] else "NOT intact:"), human.stdout
    for problem in report["problems"]:
        place = problem["file"] + (f":{problem['line']}" if problem["line"] else "") + (": " if problem["file"] else "")
        assert f"  {place}{problem['reason']}\n" in human.stdout
    return [(problem["what"], problem["file"], problem["line"]) for problem in report["problems"]]


@pytest.fixture
def used(cordon):
    """A ledger with a few commands in it: begin, then three that ran and one that was refused."""
    cordon.ids = [result(cordon, "--session", "one", "-c", f"exit {n}")["audit_id"] for n in range(3)]
    cordon("run", "--session", "two", "--read", "/no/such", "--", "/bin/true")
    return cordon


# ---- reading ---------------------------------------------------------------------------------------------------------

def test_rows_as_they_are(used):
    every = lines(used)
    kinds = [json.loads(line)["row"] for line in every]
    assert kinds[0] == "begin" and kinds.count("intent") == kinds.count("result") == 3 and kinds[-1] == "denial"
    assert audit(used, "tail", "--json", "-n", "1000").splitlines() == every
    assert audit(used, "tail", "--json").splitlines() == every[-10:]
    assert audit(used, "tail", "--json", "-n", "2").splitlines() == every[-2:]
    assert audit(used, "query", "--json").splitlines() == every
    assert audit(used, "export").splitlines() == every
    assert audit(used, "show", used.ids[1], "--json").splitlines() == \
        [line for line in every if json.loads(line)["id"] == used.ids[1]]


@pytest.mark.parametrize("words, matches", [
    (["--session", "one"], lambda row: row.get("session") == "one"),
    (["--program", "sh"], lambda row: row.get("program") == "/bin/sh"),
    (["--program", "/bin/true"], lambda row: row.get("program") == "/bin/true"),
    (["--decision", "denied"], lambda row: row["row"] == "denial"),
    (["--decision", "allowed", "--session", "two"], lambda row: False),
    (["--decision", "result", "--last", "2"], lambda row: row["row"] == "result" and row["exit_code"]),
    (["--since", "1h"], lambda row: True),
    (["--since", "2999-01-01"], lambda row: False),
    (["--until", "1h"], lambda row: False),
])
def test_query(used, words, matches):
    expected = [line for line in lines(used) if matches(json.loads(line))]
    assert audit(used, "query", "--json", *words).splitlines() == expected
    assert len(audit(used, "query", *words).splitlines()) == len(expected)
    assert len(audit(used, "export", "--format", "ocsf", *words).splitlines()) == len(expected)


def test_lines_for_people(used):
    printed = audit(used, "query").splitlines()
    assert len({line.index("/bin/") for line in printed if "/bin/" in line}) == 1, "columns are aligned"
    assert any("exit 2, " in line for line in printed) and "no/such" not in printed[-1]
    assert "invalid_request: " in printed[-1]
    # Names that would reorder or hide the line come out escaped.
    used("run", "--", "./\u202eevil\u200b")
    shown = audit(used, "tail", "-n", "1")
    assert "\u202e" not in shown and "\\u{202e}" in shown
    whole = audit(used, "show", json.loads(lines(used)[-1])["id"])
    assert "\u202e" not in whole and '"row": "denial"' in whole


def test_no_rows(cordon):
    for action in ("tail", "query", "export"):
        assert audit(cordon, action) == ""
    assert not cordon.data.exists(), "reading makes nothing"
    human, machine = cordon("audit", "show", "nothing"), cordon("audit", "show", "--json", "nothing")
    assert human.returncode == machine.returncode == 1 and human.stdout == machine.stderr == ""
    assert human.stderr.startswith("cordon: there is no row of this id (nothing)\n")
    error = json.loads(machine.stdout)["error"]
    assert (error["class"], error["subject"]) == ("invalid_request", "nothing")
    assert verify(cordon) == [("ledger_missing", "", 0)]
    assert not cordon.data.exists()


@pytest.mark.parametrize("words, hint", [
    ([], "missing"), (["tial"], "tail"), (["show"], "id is missing"), (["show", "a", "b"], "no such argument"),
    (["verify", "--since", "1h"], "no such option"), (["tail", "--format", "ocsf"], "no such option"),
    (["--bogus"], "unknown"),
])
def test_words_that_are_wrong(cordon, words, hint):
    done = cordon("audit", *words)
    assert done.returncode == 2 and hint in done.stderr and done.stdout == "", done


@pytest.mark.parametrize("words, hint", [
    (["query", "--since", "soon"], "2026-01-31"), (["query", "--since", "yesterday"], "90m for so long ago"),
    (["query", "--until", "2026-02-30"], "2026-01-31"), (["query", "--decision", "denyed"], "denied"),
    (["tail", "-n", "0"], "from 1"), (["tail", "-n", "x"], "from 1"), (["export", "--format", "xml"], "ocsf"),
])
def test_values_that_are_wrong(cordon, words, hint):
    done = cordon("audit", *words)
    assert done.returncode == 125 and hint in done.stderr and done.stdout == "", done
    error = json.loads(cordon("audit", *words, "--json").stdout)["error"]
    assert error["class"] == "invalid_request"


def test_what_the_caller_knows_a_command_by(cordon):
    (cordon.workspace / "f").write_text("text")
    for words in (("run", "--client-ref", "call 7", "--", "true"),
                  ("run", "--client-ref", "call 7", "--cwd", "/etc", "--", "true"),
                  ("file", "read", "--client-ref", "call 7", "f")):
        cordon(*words)
    asked = [row["row"] for row in rows(cordon) if row.get("client_ref") == "call 7"]
    assert asked == ["intent", "denial", "intent"]
    shown = cordon("audit", "show", next(row["id"] for row in rows(cordon))).stdout
    assert "client_ref" in shown and "call 7" in shown


@pytest.mark.parametrize("text", ["", "a\tb", "\x7f", "x" * 1025])
def test_what_no_caller_knows_a_command_by(cordon, text):
    assert "client-ref" in cordon.refused("--client-ref", text, "--", "true")["reason"]


def test_following(cordon):
    follower = cordon.popen("audit", "tail", "-f", "--json")
    try:
        for code in range(2):
            told = result(cordon, "-c", f"exit {code}")
            kinds = ["begin", "intent", "result"] if not code else ["intent", "result"]
            for kind in kinds:
                row = json.loads(follower.stdout.readline())
                assert row["row"] == kind and (kind == "begin" or row["id"] == told["audit_id"])
    finally:
        follower.terminate()
        follower.communicate()


def test_following_ends_with_its_reader(cordon):
    follower = cordon.popen("audit", "tail", "-f")
    result(cordon, "--", "true")
    assert follower.stdout.readline()
    follower.stdout.close()
    assert follower.wait(10) in (0, 128 + signal.SIGPIPE, -signal.SIGPIPE)
    follower.stderr.close()


def test_events_of_the_open_schema(used):
    events = [json.loads(line) for line in audit(used, "export", "--format", "ocsf").splitlines()]
    for event, line in zip(events, lines(used), strict=True):
        assert event["unmapped"] == json.loads(line)
        assert event["type_uid"] == 100 * event["class_uid"] + event["activity_id"]
        assert event["metadata"]["version"] == "1.3.0" and event["metadata"]["product"]["name"] == "cordon"
        assert abs(event["time"] / 1000 - time.time()) < 600
    refused = events[-1]
    assert (refused["class_uid"], refused["status_id"], refused["action_id"]) == (1007, 2, 2)
    assert refused["status_code"] == "invalid_request" and refused["actor"]["session"]["uid"] == "two"


# ---- verifying -------------------------------------------------------------------------------------------------------

def test_the_chain_can_be_checked_by_anyone(used):
    """With nothing but SHA-256."""
    prev = "0" * 64
    for line in lines(used):
        assert json.loads(line)["prev"] == prev
        prev = hashlib.sha256(line.encode()).hexdigest()
    assert json.loads((ledger(used) / "head").read_text())["hash"] == prev
    assert verify(used) == []
    # Verifying is a good time to sign.
    signed = json.loads((ledger(used) / "signed").read_text())
    assert signed["hash"] == prev and signed["key"] == (ledger(used) / "key.pub").read_text().strip()
    for path in ledger(used).iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path


def edit(change):
    def tamper(used):
        [file] = ledger_files(used)
        text = file.read_text().splitlines(keepends=True)
        change(text)
        file.write_text("".join(text))
    return tamper


def swap(text):
    text[2], text[3] = text[3], text[2]


DAY = "the day"
TAMPERING = {
    "changed": (edit(lambda text: text.__setitem__(3, text[3].replace("one", "0ne"))), "row_changed", DAY, 4),
    "removed": (edit(lambda text: text.pop(3)), "row_out_of_place", DAY, 4),
    "inserted": (edit(lambda text: text.insert(3, '{"row":"intent"}\n')), "row_foreign", DAY, 4),
    "twice": (edit(lambda text: text.insert(3, text[3])), "row_out_of_place", DAY, 5),
    "swapped": (edit(swap), "row_out_of_place", DAY, 3),
    "last removed": (edit(lambda text: text.pop()), "rows_missing", "head", 0),
    "cut in the last": (edit(lambda text: text.__setitem__(-1, text[-1][:50])), "rows_missing", "head", 0),
    "first removed": (edit(lambda text: text.pop(0)), "beginning_missing", DAY, 1),
    "day removed": (lambda used: ledger_files(used)[0].unlink(), "rows_missing", "head", 0),
    "head removed": (lambda used: (ledger(used) / "head").unlink(), "head_missing", "head", 0),
    "key removed": (lambda used: (ledger(used) / "key").unlink(), "key_missing", "key", 0),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_tampering(used, name):
    tamper, what, file, line = TAMPERING[name]
    day = ledger_files(used)[0].name
    assert verify(used) == []
    tamper(used)
    assert verify(used)[0] == (what, day if file == DAY else file, line)
    # Commands still run, and it stays found.
    assert used("run", "--", "true").returncode == 0
    assert verify(used) != []


def test_a_ledger_removed_while_a_command_runs(used):
    process = used.popen("run", "--session", "one", "-c", "echo up; read line; exit 4", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    shutil.rmtree(ledger(used))
    process.communicate(b"\n")
    assert process.returncode == 4
    begin, ended = map(json.loads, lines(used))
    assert (begin["row"], ended["row"]) == ("begin", "result") and begin["lost"]["rows"] > 6 and ended["exit_code"] == 4
    assert [what for what, _, _ in verify(used)] == ["rows_missing"]


def unwritable(cordon):
    """Whoever writes a row finds that it cannot; gives back what ends that."""
    head = ledger(cordon) / "head"
    head.rename(head.with_name("aside"))
    head.mkdir()
    return lambda: (head.rmdir(), head.with_name("aside").rename(head))


@pytest.mark.parametrize("served", [False, True])
def test_a_command_that_ran_does_not_look_refused(used, served):
    """Its result cannot be recorded. Nobody is to run it again for that, and its intent is in the ledger."""
    daemon = used.popen("serve") if served else None
    assert not served or daemon.stdout.readline()
    process = used.popen("run", "--session", "one", "--json", "-c", "read line; exit 3", stdin=subprocess.PIPE)
    assert wait_until(lambda: rows(used)[-1]["row"] == "intent")
    mend = unwritable(used)
    error = json.loads(process.communicate(b"\n")[0])["error"]
    mend()
    if served:
        daemon.terminate()
        daemon.communicate()
    assert process.returncode == 125 and error["class"] == "audit_unavailable" and error["step"] == "audit", error
    assert error["reason"].startswith("the command ran (exit status 3)") and error["retriable"] is False, error
    assert rows(used)[-1]["row"] == "intent" and error["audit_id"] == rows(used)[-1]["id"]
    assert error["boundary"] == "ledger" and error["subject"].endswith("head")


def test_a_job_that_ran_is_known_without_its_row(used):
    job = used("job", "start", "--session", "j", "--workspace", used.workspace,
               "-c", "until [ -e go ]; do sleep 0.01; done; exit 4").stdout.strip()
    mend = unwritable(used)
    (used.workspace / "go").touch()
    told = json.loads(used("job", "wait", "--json", job).stdout)
    mend()
    assert (told["state"], told["exit_code"]) == ("ended", 4) and "ran (exit status 4)" in told["note"], told


def test_a_torn_line_is_no_tampering(used):
    [file] = ledger_files(used)
    with open(file, "a") as out:
        out.write('{"row":"intent","id":"to')
    assert verify(used) == [] and "not noted yet" in audit(used, "verify")
    assert json.loads(audit(used, "tail", "--json", "-n", "1"))["row"] == "damaged"
    assert used("run", "--", "true").returncode == 0
    assert verify(used) == [] and "1 torn" in audit(used, "verify")


def test_a_key_that_others_may_read(used):
    (ledger(used) / "key").chmod(0o644)
    error = used.refused("--", "true")
    assert error["class"] == "audit_unavailable" and error["subject"] == str(ledger(used) / "key")
    (ledger(used) / "key").chmod(0o600)
    assert used("run", "--", "true").returncode == 0 and verify(used) == []


@needs("user")
def test_verifying_what_may_not_be_written(used):
    for path in ledger(used).iterdir():
        path.chmod(0o400)
    ledger(used).chmod(0o500)
    try:
        assert verify(used) == []
    finally:
        ledger(used).chmod(0o700)


# ---- many, and killed ------------------------------------------------------------------------------------------------

def test_commands_killed_at_random(cordon):
    dice = random.Random(5)
    for _ in range(10):
        processes = [cordon.popen("run", "--driver", "local", "--", "true", stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) for _ in range(4)]
        for process in processes:
            deadline = time.perf_counter() + dice.uniform(0, 0.006)
            while time.perf_counter() < deadline:
                pass
            process.kill()
        for process in processes:
            process.wait(10)
    assert cordon("run", "--", "true").returncode == 0
    assert verify(cordon) == []


def test_verifying_and_reading_while_many_write(cordon):
    assert cordon("run", "--", "true").returncode == 0
    writers = [cordon.popen("run", "--driver", "local", "--", "true", stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL) for _ in range(24)]
    while any(writer.poll() is None for writer in writers):
        assert verify(cordon) == []
        assert '"damaged"' not in audit(cordon, "export")
    assert all(writer.returncode == 0 for writer in writers)
    assert verify(cordon) == [] and len(rows(cordon)) == 50
