"""Approval: a session asks for what it was not given; who answers, how, and what is remembered. The gate by itself is
tested with the C programs tests/unit/test-gate.c and test-approvals.c, the prompt with test-prompt.c."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from lab import refused, rows, rows_of, wait_until

HOSTILE = "\x1b[2J\u202egpj\u2066\u200b\ntool 'x' \x7f"


@pytest.fixture
def out(tmp_path):
    path = tmp_path / "out"
    path.mkdir()
    return path


@pytest.fixture
def queue(cordon, tmp_path):
    """Lets `cordon approvals` count; queue(key="value") sets more."""
    config = tmp_path / "config/cordon/config.toml"
    config.parent.mkdir(parents=True)
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")

    def write(**settings):
        lines = [f"{key} = {json.dumps(value)}" for key, value in {"queue": True, "timeout": "60s", **settings}.items()]
        config.write_text("[approval]\n" + "\n".join(lines) + "\n")
    write()
    return write


def ask(cordon, out, *words, session="s", **options):
    """A command that wants to write to `out`, running."""
    words = words or ("touch", out / "made")
    return cordon.popen("run", "--session", session, "--write", out, "--", *words, text=True, **options)


def listed(cordon):
    done = cordon("approvals", "list", "--json")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1, done
    return json.loads(done.stdout)["approvals"]


def card_of(cordon, count=1):
    assert wait_until(lambda: len(listed(cordon)) == count), listed(cordon)
    return listed(cordon)[-1]


def answer(cordon, *words):
    done = cordon("approvals", words[0], "--json", *words[1:])
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)


def unanswerable(cordon, *words, status=125, names_a_card=True):
    """The error of an answer that does not count; the ledger has it, if it was one at all and for a card."""
    before = len(rows(cordon))
    human = cordon("approvals", *words)
    assert human.returncode == status and human.stderr.startswith("cordon: "), human
    machine = cordon("approvals", *words, "--json")
    assert machine.returncode == status and machine.stderr == "", machine
    error = json.loads(machine.stdout)["error"]
    # Who asked may be writing of its own end meanwhile.
    new = [row for row in rows(cordon)[before:] if row["row"] == "denial"
           and row.get("action", "").startswith("approvals ")]
    assert len(new) == (2 if status == 125 and names_a_card else 0), new
    if new:
        assert new[-1]["action"] == f"approvals {words[0]}" and new[-1]["id"] == error["audit_id"] and new[-1]["error"] == error
    return error


def end(process):
    output, errors = process.communicate(timeout=60)
    return process.returncode, errors


def approvals(cordon):
    return [row for row in rows(cordon) if row["row"] == "approval"]


def grants(cordon, session="s"):
    return json.loads(cordon("session", "show", session, "--json").stdout)["grants"]


# ---- nobody, somebody ------------------------------------------------------------------------------------------------

def test_without_anybody_it_is_denied_at_once(cordon, out):
    error = refused(cordon, "--session", "s", "--write", out, "--", "true")
    assert error["class"] == "capability_denied" and error["step"] == "capability" and error["boundary"] == "approval"
    assert "no approver is available" in error["reason"] and error["subject"] == str(out)
    assert [(row["outcome"], row["by"]["door"]) for row in approvals(cordon)] == [("denied", "nobody")] * 2


def test_approved_once(cordon, out, queue):
    process = ask(cordon, out)
    card = card_of(cordon)
    said = answer(cordon, "approve", card["id"])
    assert said == {"card": card["id"], "answer": "once", "hash": card["hash"]}
    assert end(process)[0] == 0 and (out / "made").exists()
    row, = approvals(cordon)
    assert (row["id"], row["outcome"], row["scope"], row["hash"]) == (card["id"], "approved", "once", card["hash"])
    assert row["by"]["uid"] == os.getuid() and row["by"]["door"] == "queue" and row["asks_for"]["fs_write"] == [str(out)]
    assert [each["row"] for each in rows_of(cordon, row["audit_id"])] == ["intent", "result"]
    assert listed(cordon) == [] and grants(cordon) == []
    # Once is once.
    again = ask(cordon, out)
    assert answer(cordon, "deny", card_of(cordon)["id"], "--reason", "once is once")["answer"] == "denied"
    status, errors = end(again)
    assert status == 125 and "denied by a human: once is once" in errors


def test_nothing_is_raised_while_somebody_is_asked(cordon, out, queue):
    """No process of the command is there meanwhile."""
    process = ask(cordon, out)
    card = card_of(cordon)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children == [], [pathlib.Path(f"/proc/{child}/cmdline").read_text() for child in children]
    answer(cordon, "approve", card["id"])
    assert end(process)[0] == 0 and (out / "made").exists()


def test_approved_for_the_session(cordon, out, queue):
    process = ask(cordon, out)
    card = card_of(cordon)
    answer(cordon, "approve", card["id"].lower()[:-2], "--for-session")
    assert end(process)[0] == 0
    # A new process, the same session: it has been granted, and beneath it too; another session has nothing.
    (out / "deeper").mkdir()
    done = cordon("run", "--session", "s", "--write", out / "deeper", "--no-ask", "--", "touch", out / "deeper/more")
    assert done.returncode == 0 and (out / "deeper/more").exists(), done
    assert len(grants(cordon)) == 1
    queue(queue=False)
    assert refused(cordon, "--session", "other", "--write", out, "--", "true")["class"] == "capability_denied"


def test_a_secret_is_asked_about_by_its_own_name(cordon, out, queue):
    """Though the directory around it was given: that has no word for it, and neither has who approved only that."""
    (out / ".env").write_text("secret\n")
    show = ["--session", "s", "--read", out / ".env", "--", "cat", out / ".env"]
    cordon("session", "new", "s", "--workspace", cordon.workspace, "--read", out)
    process = cordon.popen("run", *show, text=True)
    card = card_of(cordon)
    assert card["content"]["asks_for"]["fs_read"] == [str(out / ".env")]
    answer(cordon, "approve", card["id"], "--for-session")
    assert process.communicate(timeout=60)[0] == "secret\n"
    queue(queue=False)
    assert cordon("run", *show).stdout == "secret\n"
    assert cordon("run", "--session", "s", "--", "cat", out / ".env").returncode == 1, "it is for who names it"
    (out / ".env").rename(out / "old")
    (out / ".env").write_text("another\n")
    assert refused(cordon, *show)["class"] == "capability_denied"


def test_what_was_approved_for_the_session_is_there_for_its_later_commands(cordon, out, queue):
    """Without being asked for again; but not what was put in its place, and not in another session."""
    (out / "file").write_text("there\n")
    process = ask(cordon, out)
    answer(cordon, "approve", card_of(cordon)["id"], "--for-session")
    assert end(process)[0] == 0
    queue(queue=False)
    look = ["--", "sh", "-c", f"cat {out}/file && touch {out}/second"]
    assert cordon("run", "--session", "s", *look).stdout == "there\n" and (out / "second").exists()
    assert cordon("run", "--session", "other", *look).returncode != 0
    assert str(out) in json.dumps(json.loads(cordon("profile", "--session", "s", "--", "true").stdout))
    out.rename(out.with_name("old"))
    out.mkdir()
    (out / "file").write_text("another\n")
    assert cordon("run", "--session", "s", *look).stdout == ""


def test_what_was_approved_once_is_gone(cordon, out, queue):
    (out / "file").write_text("there\n")
    process = ask(cordon, out)
    answer(cordon, "approve", card_of(cordon)["id"])
    assert end(process)[0] == 0
    queue(queue=False)
    assert cordon("run", "--session", "s", "--", "cat", out / "file").returncode == 1


def test_a_grant_is_for_what_was_approved(cordon, out, queue):
    """Not for what is put in its place."""
    process = ask(cordon, out)
    answer(cordon, "approve", card_of(cordon)["id"], "--for-session")
    assert end(process)[0] == 0
    out.rename(out.with_name("old"))
    out.mkdir()
    queue(queue=False)
    assert "no approver is available" in refused(cordon, "--session", "s", "--write", out, "--", "true")["reason"]


def test_denied_and_remembered(cordon, out, queue):
    process = ask(cordon, out)
    answer(cordon, "deny", card_of(cordon)["id"])
    assert end(process)[0] == 125
    error = refused(cordon, "--session", "s", "--write", out, "--", "touch", out / "made")
    assert error["class"] == "capability_denied" and "denied in this session before" in error["reason"]
    assert [row["by"]["door"] for row in approvals(cordon)] == ["queue", "memory", "memory"]
    # A human lifts it.
    assert cordon("session", "pause", "s").returncode == 0 and cordon("session", "resume", "s").returncode == 0
    process = ask(cordon, out)
    answer(cordon, "approve", card_of(cordon)["id"])
    assert end(process)[0] == 0


def test_three_denials_pause(cordon, out, queue):
    for number in range(3):
        process = ask(cordon, out, "echo", str(number))
        answer(cordon, "deny", card_of(cordon)["id"])
        status, errors = end(process)
        assert status == 125
    assert "the session is paused after 3 denials in a row" in errors
    assert refused(cordon, "--session", "s", "--", "true")["class"] == "session_paused"
    assert [row["change"] for row in rows(cordon) if row["row"] == "session"] == ["made", "paused"]
    assert cordon("session", "resume", "s").returncode == 0
    assert cordon("run", "--session", "s", "--", "true").returncode == 0


def test_timeout(cordon, out, queue):
    queue(timeout="300ms")
    error = refused(cordon, "--session", "s", "--write", out, "--", "true")
    assert error["class"] == "approval_timeout" and error["retriable"]
    assert [row["outcome"] for row in approvals(cordon)] == ["timeout"] * 2
    late = unanswerable(cordon, "approve", approvals(cordon)[0]["id"])
    assert late["class"] == "approval_timeout" and "too late" in late["reason"]


# ---- answers that do not count ---------------------------------------------------------------------------------------

def test_bad_answers(cordon, out, queue):
    process = ask(cordon, out)
    card = card_of(cordon)
    other = "0" * 64
    assert unanswerable(cordon, "approve", card["id"], "--hash", other)["class"] == "capability_denied"
    assert unanswerable(cordon, "approve", "01AAAAAAAAAAAAAAAAAAAAAAAA")["class"] == "not_found"
    assert unanswerable(cordon, "deny", card["id"], "--reason", "x" * 300)["class"] == "invalid_request"
    for words in (["approve"], ["approve", card["id"], "more"], ["deny", card["id"], "--for-session"],
                  ["list", "--once"], ["allow"]):
        assert unanswerable(cordon, *words, status=2)["class"] == "invalid_request"
    # A card that somebody changed is not what asks.
    path = cordon.data / "cordon/approvals" / card["id"] / "card.json"
    text = path.read_text()
    path.write_text(text.replace("made", "maid"))
    assert unanswerable(cordon, "approve", card["id"])["class"] == "capability_denied"
    path.write_text(text)
    assert answer(cordon, "deny", card["id"], "--hash", card["hash"])["answer"] == "denied"
    twice = unanswerable(cordon, "approve", card["id"])
    assert twice["class"] == "invalid_request" and "answered already: denied" in twice["reason"]
    assert end(process)[0] == 125 and not (out / "made").exists()


def test_a_session_that_ends_takes_its_questions_along(cordon, out, queue):
    process = ask(cordon, out)
    card = card_of(cordon)
    assert cordon("session", "end", "s").returncode == 0
    late = unanswerable(cordon, "approve", card["id"], "--for-session")
    assert late["class"] == "session_ended" and listed(cordon) == [] and grants(cordon) == []
    status, errors = end(process)
    assert status == 125 and "the session was ended while the question was open" in errors
    assert [(row["outcome"], row["by"]["door"]) for row in approvals(cordon)] == [("cancelled", "session")]


def test_ambiguous(cordon, out, queue):
    processes = [ask(cordon, out, "echo", str(number)) for number in range(2)]
    card = card_of(cordon, 2)
    assert "more than one" in unanswerable(cordon, "approve", card["id"][:1], names_a_card=False)["reason"]
    for each in listed(cordon):
        answer(cordon, "approve", each["id"])
    assert [end(process)[0] for process in processes] == [0, 0]


def test_a_short_beginning_is_no_answer(cordon, out, queue):
    """Ids begin with the time: what was shown may be gone, and another ask whose id begins like that."""
    process = ask(cordon, out)
    card = card_of(cordon)
    refused = unanswerable(cordon, "approve", card["id"][:15], names_a_card=False)
    assert "another" in refused["reason"] and "16" in refused["remediation"] and listed(cordon)
    assert cordon("approvals", "deny", card["id"][:8], "--hash", card["hash"]).returncode == 0
    assert end(process)[0] == 125
    process = ask(cordon, out, "echo", "more")
    assert cordon("approvals", "approve", card_of(cordon)["id"][:16].lower()).returncode == 0
    assert end(process)[0] == 0


# ---- those who die ---------------------------------------------------------------------------------------------------

def test_dead_askers(cordon, out, queue):
    process = ask(cordon, out)
    card = card_of(cordon)
    process.kill()
    process.wait()
    process.communicate()
    assert listed(cordon) == []
    assert "is gone" in unanswerable(cordon, "approve", card["id"], "--for-session")["reason"]
    row, = approvals(cordon)
    assert (row["id"], row["outcome"], row["recovered"]) == (card["id"], "abandoned", True)
    assert grants(cordon) == []


def test_an_answer_outlives_the_asker(cordon, out, queue):
    """Given for the session while the asker was stopped, which then dies: whoever comes next does what is left to
    do."""
    process = ask(cordon, out)
    card = card_of(cordon)
    os.kill(process.pid, signal.SIGSTOP)
    answer(cordon, "approve", card["id"], "--for-session")
    process.kill()
    process.wait()
    process.communicate()
    done = cordon("run", "--session", "s", "--write", out, "--", "touch", out / "made")
    assert done.returncode == 0 and (out / "made").exists(), done
    assert [grant["approval"] for grant in grants(cordon)] == [card["id"]]
    row, = approvals(cordon)
    assert (row["outcome"], row["scope"], row["recovered"]) == ("approved", "session", True)


def test_the_caller_gives_up(cordon, out, queue):
    process = ask(cordon, out)
    card_of(cordon)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and listed(cordon) == []
    assert [row["outcome"] for row in approvals(cordon)] == ["cancelled"]


# ---- what is shown ---------------------------------------------------------------------------------------------------

def test_a_card_shows_only_what_stands_by_itself_from_left_to_right(cordon, out, queue):
    """Letters from right to left, marks of other scripts and quotes that are none are spelt; letters of other scripts
    are not."""
    words = ["a/\u05d0\u05d1/1", "\u0627\u0644", "\u0915\u094d\u0937", "\u0e01\u0e34", "x\u2019 --net all \u2018y",
             "\u212a", "\uff41", "\u0414\u043e\u043a", "\u65e5\u672c"]
    spelt = r"$'a/\u05d0\u05d1/1' $'\u0627\u0644' $'\u0915\u094d\u0937' $'\u0e01\u0e34' $'x\u2019 --net all \u2018y' $'\u212a' $'\uff41'"
    process = ask(cordon, out, "echo", *words)
    card = card_of(cordon)
    shown = cordon("approvals", "list").stdout
    assert f"  command    echo {spelt} '\u0414\u043e\u043a' '\u65e5\u672c'\n" in shown, shown
    assert card["content"]["argv"] == ["echo", *words]
    assert cordon("approvals", "deny", card["id"]).returncode == 0
    process.communicate(timeout=60)


def test_the_card(cordon, out, queue):
    process = ask(cordon, out, "echo", "two words", HOSTILE, "secret-argument", session="a\u202eb")
    card = card_of(cordon)
    shown = cordon("approvals", "list").stdout
    assert f"  asks for   write {out}\n" in shown and card["hash"] in shown and card["id"] in shown
    assert "echo 'two words' $'\\x1b[2J\\u202egpj\\u2066\\u200b\\ntool \\'x\\' \\x7f' secret-argument\n" in shown
    assert "  session    $'a\\u202eb'\n" in shown
    assert not any(character in shown for character in "\x1b\u202e\u2066\u200b\x7f")
    assert card["content"]["argv"] == ["echo", "two words", HOSTILE, "secret-argument"]
    assert "\u202e" not in cordon("approvals", "list", "--json").stdout
    pending = cordon.data / "cordon/approvals" / card["id"] / "card.json"
    assert pending.stat().st_mode & 0o777 == 0o600
    done = cordon("approvals", "approve", card["id"])
    assert "two words" in done.stdout and done.stdout.endswith("Approved, once.\n")
    assert end(process)[0] == 0
    # No argument is kept.
    kept = [path for name in ("approvals", "ledger", "sessions") for path in (cordon.data / "cordon" / name).rglob("*")
            if path.is_file() and b"secret-argument" in path.read_bytes()]
    assert not pending.exists() and kept == []


def test_what_is_too_long_is_not_asked(cordon, out, queue):
    error = refused(cordon, "--session", "s", "--write", out, "--", "echo", "x" * 70_000)
    assert error["class"] == "capability_denied" and "too long" in error["reason"]


# ---- on the terminal -------------------------------------------------------------------------------------------------

QUESTION = r"deny with a \[r\]eason: "


def test_on_the_terminal(cordon, out, terminal):
    session = terminal("run", "--session", "s", "--write", out, "-c", f"touch {out}/made; echo done")
    session.expect(f"asks for   write {out}\r\n")
    session.expect(QUESTION)
    session.type("\n")
    session.expect(QUESTION)
    session.type("s\n")
    session.expect("done\r\n")
    assert session.end() == 0 and len(grants(cordon)) == 1
    row, = approvals(cordon)
    assert row["by"]["door"] == "callback" and row["by"]["terminal"].startswith("pts/")


def test_on_the_terminal_while_the_streams_are_the_commands(cordon, out, terminal):
    """Standard input, output and error are pipes and files; what was typed before the question does not answer it."""
    script = f'printf input | "$CORDON" run --session s --write {out} -- cat > {out}/output 2> {out}/errors; echo status $?'
    session = terminal.shell()
    session.type(script + "\no\no\ns\n")
    session.expect(QUESTION)
    session.type("o\n")
    session.expect("status 0\r\n")
    assert (out / "output").read_text() == "input" and (out / "errors").read_text() == ""
    assert [(row["outcome"], row["scope"]) for row in approvals(cordon)] == [("approved", "once")]


def test_denied_with_ctrl_c(cordon, out, terminal):
    session = terminal("run", "--session", "s", "--write", out, "--", "touch", str(out / "made"))
    session.expect(QUESTION)
    session.type("\x03")
    session.expect("denied by a human")
    assert session.end() == 125 and not (out / "made").exists()


def test_answered_in_another_terminal(cordon, out, terminal):
    session = terminal("run", "--session", "s", "--write", out, "--", "touch", str(out / "made"))
    session.expect(QUESTION)
    answer(cordon, "approve", card_of(cordon)["id"])
    session.expect("Answered elsewhere")
    assert session.end() == 0 and (out / "made").exists()


@pytest.mark.parametrize("how", ["--no-ask", "background"])
def test_no_prompt(cordon, out, terminal, how):
    session = terminal.shell()
    option, suffix = ("--no-ask", "") if how == "--no-ask" else ("", " & wait $!")
    session.type(f'"$CORDON" run {option} --session s --write {out} -- true{suffix}; echo status $?\n')
    session.expect("no approver is available")
    session.expect("status 125\r\n")


# ---- what was shown is what starts -----------------------------------------------------------------------------------

@pytest.mark.parametrize("replacement", ["link", "file"])
def test_a_program_that_is_replaced_while_it_is_asked_about(cordon, out, queue, replacement):
    """Commands of the session own the workspace: none of them can put another program in the place of the one on the
    card."""
    place = cordon.workspace
    (place / "evil").write_text("#!/bin/sh\necho evil\n")
    (place / "evil").chmod(0o755)
    if replacement == "link":
        (place / "tool").symlink_to("/usr/bin/true")
    else:
        (place / "tool").write_text("#!/bin/sh\n")
        (place / "tool").chmod(0o755)
    process = cordon.popen("run", "--session", "s", "--workspace", place, "--write", out, "--", "./tool", text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    card = card_of(cordon)
    assert card["content"]["program"] == ("/usr/bin/true" if replacement == "link" else str(place / "tool"))
    line = "ln -sfn evil tool" if replacement == "link" else "mv evil tool"
    assert cordon("run", "--session", "s", "-c", line).returncode == 0
    answer(cordon, "approve", card["id"])
    output, errors = process.communicate(timeout=60)
    assert output == ""
    if replacement == "link":
        assert process.returncode == 0, errors
    else:
        assert process.returncode == 125 and "not the file that was judged" in errors


def test_variables_are_on_the_card_and_no_other_ones_are_approved_with_it(cordon, out, queue, tmp_path):
    """They lead a program elsewhere as well as arguments do."""
    (tmp_path / "config/cordon/config.toml").write_text(
        '[approval]\nqueue = true\n[[policy.rules]]\ntool = "run"\nmatch = "/**/true"\ndecision = "ask"\n')
    process = cordon.popen("run", "--session", "s", "--", "true", text=True)
    answer(cordon, "approve", card_of(cordon)["id"], "--for-session")
    assert end(process)[0] == 0
    assert cordon("run", "--session", "s", "--", "true").returncode == 0
    cordon.env["TOKEN"] = "hidden"
    process = cordon.popen("run", "--session", "s", "--env", "A=b \x1b[2J", "--pass-env", "TOKEN", "--", "true",
                           text=True)
    card = card_of(cordon)
    assert card["content"]["env"] == ["A=b \x1b[2J"] and card["content"]["env_pass"] == ["TOKEN"]
    assert "  with       $'A=b \\x1b[2J'\n  passes on  TOKEN\n" in card["content"]["text"]
    assert "hidden" not in json.dumps(card)
    answer(cordon, "deny", card["id"])
    assert end(process)[0] == 125
    assert "A=b" not in json.dumps(rows(cordon))
