"""cordon mcp: both eras of the protocol, as lines of JSON. What the official clients make of it is tested by make test-agents."""
import base64
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import PATIENCE, descendants, is_running
from lab import lack, rows, wait_until
from mcp_client import MODERN, any_client, client  # noqa: F401


def test_tools_are_listed_in_a_fixed_order_with_schemas(any_client):
    result = any_client.call("tools/list")["result"]
    assert [tool["name"] for tool in result["tools"]] == [tool["name"] for tool in any_client.call("tools/list")["result"]["tools"]]
    assert [tool["name"] for tool in result["tools"]] == [
        "shell", "exec", "job_start", "job_list", "job_poll", "job_wait", "job_kill", "read_file", "write_file", "edit_file",
        "list_directory", "find_files", "grep", "request_capability", "preflight"]
    for tool in result["tools"]:
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert set(tool["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert ("ttlMs" in result) == (any_client.era == "modern") == ("resultType" in result)


def test_a_command_runs_in_a_session_that_ends_with_the_server(cordon, any_client):
    result = any_client.tool("shell", command="echo out; echo err >&2; echo $CORDON_SESSION_ID; exit 3")
    content = result["structuredContent"]
    assert (content["exit_code"], content["stderr"], result["isError"]) == (3, "err\n", True)
    assert content["stdout"].startswith("out\nmcp-")
    assert json.loads(result["content"][0]["text"]) == content
    assert any(row["row"] == "result" and row["id"] == content["audit_id"] for row in rows(cordon))
    assert json.loads(cordon("session", "list", "--json").stdout)["sessions"]
    assert any_client.close() == (0, b"")
    assert json.loads(cordon("session", "list", "--json").stdout)["sessions"] == []


def test_a_sandbox_that_nothing_needs_is_lowered(cordon, client):
    """The server stays, and looks by itself; `session show` of another process says whose sandbox a job shares until then."""
    if lack("mount-namespace"):
        pytest.skip(lack("mount-namespace"))
    server = client()
    name = server.tool("shell", command="echo $CORDON_SESSION_ID")["structuredContent"]["stdout"].strip()

    def processes():
        return [pid for pid in descendants(server.process.pid) if is_running(pid) and pathlib.Path(f"/proc/{pid}/comm").read_text() == "cordon-init\n"]
    assert processes()
    server.tool("job_start", command="sleep 7571")
    shown = json.loads(cordon("session", "show", name, "--json").stdout)
    assert shown["sandbox"] is None and [(job["shares"], job["process"]) for job in shown["jobs"]] == [(True, server.process.pid)], shown
    text = cordon("session", "show", name).stdout
    assert "another process may have one" in text and f"in the sandbox that process {server.process.pid} has: " in text, text
    assert cordon("session", "end", name).returncode == 0
    assert wait_until(lambda: not processes()) and server.process.poll() is None


def test_where_nothing_is_mounted(client, tmp_path):
    """A driver whose sandbox does not stay and shows no directory in the place of another, as macOS's."""
    if lack("landlock"):
        pytest.skip(lack("landlock"))
    config = tmp_path / "config.toml"
    config.write_text('[sandbox]\ndriver = "landlock"\n')
    server = client("--config", str(config))
    first = server.tool("shell", command="echo kept > $TMPDIR/file; echo one > ~/file; echo line > text; echo x > /tmp/no")["structuredContent"]
    assert first["exit_code"] == 1 and "ermission denied" in first["stderr"], first
    assert server.tool("shell", command="cat $TMPDIR/file ~/file")["structuredContent"]["stdout"] == "kept\none\n"
    edited = server.tool("edit_file", path="text", old_text="line", new_text="other")
    assert not edited["isError"], edited
    job = server.tool("job_start", command="cat text; exit 5")["structuredContent"]["id"]
    assert server.tool("job_wait", id=job)["structuredContent"]["exit_code"] == 5
    assert server.tool("job_poll", id=job)["structuredContent"]["stdout"]["data"] == "other\n"
    assert server.close() == (0, b"")


def test_exec_takes_arguments_input_and_environment(any_client):
    content = any_client.tool("exec", argv=["sh", "-c", "cat; echo $A"], stdin="given ", env=["A=b"])["structuredContent"]
    assert content["stdout"] == "given b\n"


def test_what_is_not_allowed_is_an_error_of_the_tool(any_client):
    result = any_client.tool("exec", argv=["true"], cwd="/etc")
    assert result["isError"] and "structuredContent" not in result
    assert json.loads(result["content"][0]["text"])["error"]["class"] == "capability_denied"


def test_a_refusal_is_in_words_that_a_model_can_use(cordon, client, tmp_path):
    unasked = client(elicitation=False)
    (tmp_path / "data").mkdir()
    error = json.loads(unasked.tool("exec", argv=["true"], cwd=str(tmp_path / "data"))["content"][0]["text"])["error"]
    assert error["request_capability"] == {"fs_read": [str(tmp_path / "data")]} and "grant" not in error
    assert error["remediation"] == "ask for it with the tool request_capability"
    denials = unasked.tool("shell", command="cat /srv/none")["structuredContent"]["denials"]
    assert [each["request_capability"] for each in denials] == [{"fs_read": ["/srv/none"]}]
    assert not any("grant" in each for each in denials)
    # What was asked for already is not to be asked for again.
    error = json.loads(unasked.tool("request_capability", fs_read=[str(tmp_path / "data")])["content"][0]["text"])["error"]
    assert "request_capability" not in error and "cordon session" not in error["remediation"] and "--" not in error["remediation"]


@pytest.mark.parametrize("arguments", [{}, {"command": 1}, {"command": "true", "unknown": 1}, {"command": "true", "env": [1]}])
def test_bad_arguments(any_client, arguments):
    result = any_client.tool("shell", **arguments)
    assert result["isError"] and json.loads(result["content"][0]["text"])["error"]["class"] == "invalid_request"


def test_an_unknown_tool_and_an_unknown_method(any_client):
    assert any_client.call("tools/call", name="nothing", arguments={})["error"]["code"] == -32602
    assert any_client.call("tools/call", name="shell", arguments=[])["error"]["code"] == -32602
    assert any_client.call("nothing/at-all")["error"]["code"] == -32601


def test_ids_that_the_client_sends_are_in_the_ledger(cordon, any_client):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    meta = {"claudecode/toolUseId": "toolu_1", "callId": "call_2", "x-codex-turn-metadata": {"session_id": "s", "model": "m"},
            "traceparent": trace, "unknown": "left out"}
    for tool, arguments in (("shell", {"command": "true"}), ("read_file", {"path": "none"})):
        any_client.call("tools/call", name=tool, arguments=arguments, _meta=meta)
    known = {name: meta[name] for name in list(meta)[:4]}
    asked = [row for row in rows(cordon) if row["row"] in ("intent", "denial")]
    assert len(asked) >= 2 and all(json.loads(row["client_ref"]) == known for row in asked)


@pytest.mark.parametrize("meta", [{"callId": "a\nb"}, {"callId": "x" * 1024}, {"callId": ["a"]}, {"callId": {"a": {"b": "c"}}}, {"callId": "\x7f"}])
def test_an_id_that_is_none_is_left_out(cordon, client, meta):
    legacy = client()
    result = legacy.call("tools/call", name="shell", arguments={"command": "true"}, _meta={**meta, "traceparent": "00-1"})["result"]
    assert not result["isError"]
    assert {row.get("client_ref") for row in rows(cordon) if row["row"] == "intent"} == {'{"traceparent":"00-1"}'}


def test_an_id_is_searched_for_secrets(cordon, client):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    client().call("tools/call", name="shell", arguments={"command": "true"}, _meta={"callId": key})
    found = [row["client_ref"] for row in rows(cordon) if row["row"] == "intent"]
    assert found and key not in found[0]


def test_output_comes_as_progress(any_client):
    number = any_client.send("tools/call", name="shell", arguments={"command": "echo first; sleep 0.5; echo last"},
                             _meta={"progressToken": "t"})
    seen = any_client.wait(lambda message: message.get("method") == "notifications/progress")
    assert seen["params"]["progressToken"] == "t" and seen["params"]["message"] == "first\n"
    assert any_client.answer(number)["result"]["structuredContent"]["stdout"] == "first\nlast\n"
    later = [message["params"]["progress"] for message in any_client.kept if message.get("method") == "notifications/progress"]
    assert later == sorted(later) and all(value > seen["params"]["progress"] for value in later)


def progress_of(client):
    return client.wait(lambda message: message.get("method") == "notifications/progress")["params"]


def test_progress_does_not_wait_for_more_output(client):
    """The second word comes too soon after the first to be sent at once, and the command is silent after it."""
    legacy = client()
    number = legacy.send("tools/call", name="shell", arguments={"command": "echo first; sleep 0.02; echo second; sleep 600"},
                         _meta={"progressToken": 1})
    seen = ""
    while "second" not in seen:
        seen += progress_of(legacy)["message"]
    assert seen == "first\nsecond\n"
    legacy.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})


def test_progress_says_what_it_leaves_out(client):
    legacy = client()
    number = legacy.send("tools/call", name="shell", arguments={"command": "head -c 100000 /dev/zero | tr '\\0' x"}, _meta={"progressToken": 1})
    assert len(legacy.answer(number)["result"]["structuredContent"]["stdout"]) == 100000
    messages = [each["params"]["message"] for each in legacy.kept if each.get("method") == "notifications/progress"]
    said = [int(number) for text in messages for number in re.findall(r"\[(\d+) more bytes are in the result\]", text)]
    assert sum(text.count("x") for text in messages) + sum(said) == 100000 and said


def test_a_cancelled_call_is_ended_and_not_answered(cordon, any_client, tmp_path):
    mark = f"4{os.getpid()}"
    number = any_client.send("tools/call", name="shell", arguments={"command": f"echo on; setsid sleep {mark} & sleep {mark}"},
                             _meta={"progressToken": 1})
    any_client.wait(lambda message: message.get("method") == "notifications/progress")
    any_client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert wait_until(lambda: subprocess.run(["pgrep", "-f", f"sleep {mark}"], stdout=subprocess.DEVNULL).returncode == 1)
    assert any_client.tool("shell", command="echo after")["structuredContent"]["stdout"] == "after\n"
    assert not any(message.get("id") == number for message in any_client.kept)
    any_client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert any_client.tool("shell", command="true")["structuredContent"]["exit_code"] == 0


def test_jobs(any_client):
    job = any_client.tool("job_start", command="echo begun; sleep 0.3; echo over")["structuredContent"]
    assert [each["id"] for each in any_client.tool("job_list")["structuredContent"]["jobs"]] == [job["id"]]
    assert any_client.tool("job_wait", id=job["id"])["structuredContent"]["state"] == "ended"
    assert any_client.tool("job_poll", id=job["id"])["structuredContent"]["stdout"]["data"] == "begun\nover\n"
    job = any_client.tool("job_start", command="sleep 600")["structuredContent"]
    assert any_client.tool("job_kill", id=job["id"])["structuredContent"] == {"ended": True}
    assert any_client.tool("job_poll", id=job["id"])["structuredContent"]["state"] == "ended"


def test_a_job_of_another_session_is_none(cordon, any_client):
    other = cordon("job", "start", "--session", "other", "--", "sleep", "600").stdout.strip()
    for tool in ("job_poll", "job_wait", "job_kill"):
        result = any_client.tool(tool, id=other)
        assert result["isError"] and "no such job" in result["content"][0]["text"]
    cordon("job", "kill", other)


def test_preflight_runs_nothing(any_client, cordon, tmp_path):
    assert any_client.tool("preflight", command="touch made")["structuredContent"]["allowed"] is True
    assert not list(cordon.workspace.glob("made"))
    assert any_client.tool("preflight", command="true", cwd="/etc")["structuredContent"]["allowed"] is False
    for path in ("/etc/shadow", os.path.expanduser("~/.ssh/id_rsa"), "/etc/no-such-file"):
        told = any_client.tool("preflight", command="true", fs_read=[path])["structuredContent"]
        assert told["allowed"] is False and told["asks"]["fs_read"] == [path] and "human" in told["reason"], told
    told = any_client.tool("preflight", command="true", fs_read=[str(cordon.data / "cordon/ledger")])["structuredContent"]
    assert told["allowed"] is False and "own data" in told["reason"]


# ---- files -------------------------------------------------------------------------------------------------------------

def test_files_are_written_read_edited_and_found(cordon, any_client):
    written = any_client.tool("write_file", path="src/a.c", content="one\ntwo\n")
    assert written["isError"], "its directory is not there"
    assert not any_client.tool("shell", command="mkdir src")["isError"]
    assert not any_client.tool("write_file", path="src/a.c", content="one\ntwo\n")["isError"]
    assert (cordon.workspace / "src/a.c").read_text() == "one\ntwo\n"
    read = any_client.tool("read_file", path="src/a.c", offset=2, limit=1)["structuredContent"]
    assert read["content"] == "two\n"
    assert not any_client.tool("edit_file", path="src/a.c", old_text="two", new_text="2", if_version=read["version"])["isError"]
    assert any_client.tool("edit_file", path="src/a.c", old_text="2", new_text="3", if_version=read["version"])["isError"]
    assert any_client.tool("edit_file", path="src/a.c", old_text="absent", new_text="3")["isError"]
    assert (cordon.workspace / "src/a.c").read_text() == "one\n2\n"
    assert [each["name"] for each in any_client.tool("list_directory")["structuredContent"]["entries"]] == ["src"]
    assert [each["path"] for each in any_client.tool("find_files", globs=["*.c"])["structuredContent"]["entries"]] == ["src/a.c"]
    found = any_client.tool("grep", pattern="^o.e", globs=["*.c"])["structuredContent"]["matches"]
    assert [(each["path"], each["line"]) for each in found] == [("src/a.c", 1)]


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "link", ".env", ".git/hooks/pre-commit"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_file_tool_does_not_leave_the_workspace_and_keeps_hidden_and_protected_names(cordon, client, path, era):
    unasked = client(era=era, elicitation=False)
    (cordon.workspace / ".env").write_text("KEY=1\n")
    (cordon.workspace / ".git/hooks").mkdir(parents=True)
    (cordon.workspace / "link").symlink_to("/etc/passwd")
    for tool, more in (("read_file", {}), ("write_file", {"content": "x"}), ("edit_file", {"old_text": "root", "new_text": "x"})):
        result = unasked.tool(tool, path=path, **more)
        assert result["isError"] and "structuredContent" not in result, (tool, result)
        assert "error" in json.loads(result["content"][0]["text"])
    assert (cordon.workspace / ".env").read_text() == "KEY=1\n" and not (cordon.workspace / ".git/hooks/pre-commit").exists()


# ---- approval ----------------------------------------------------------------------------------------------------------

def ask(client, path, decision, **content):
    """Asks for `path`, and answers as the human behind the client would: (the tool's result, the question)."""
    number = client.send("tools/call", name="request_capability", arguments={"fs_read": [str(path)]})
    answer = {"action": "accept", "content": {"decision": decision, **content}}
    if client.era == "legacy":
        question = client.wait(lambda message: message.get("method") == "elicitation/create")
        client.write({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        return client.checked("request_capability", client.answer(number)["result"]), question["params"]
    question = client.answer(number)["result"]
    assert question["resultType"] == "input_required"
    number = client.send("tools/call", name="request_capability", arguments={"fs_read": [str(path)]},
                         inputResponses={"approval": answer}, requestState=question["requestState"])
    return client.checked("request_capability", client.answer(number)["result"]), question["inputRequests"]["approval"]["params"]


def test_the_human_behind_the_client_is_asked(any_client, tmp_path):
    (tmp_path / "data").mkdir()
    result, question = ask(any_client, tmp_path / "data", "session")
    assert str(tmp_path / "data") in question["message"] and "request_capability" in question["message"]
    assert "bash" not in question["message"] and question["requestedSchema"]["properties"]["decision"]["enum"] == ["session", "deny"]
    assert result["structuredContent"] == {"granted": True}
    (tmp_path / "data/given").write_text("text")
    assert any_client.tool("read_file", path=str(tmp_path / "data/given"))["structuredContent"]["content"] == "text"
    assert any_client.tool("shell", command=f"cat {tmp_path}/data/given")["structuredContent"]["stdout"] == "text"


def test_once_grants_nothing_where_nothing_runs(cordon, any_client, tmp_path):
    (tmp_path / "data").mkdir()
    result, _ = ask(any_client, tmp_path / "data", "once")
    assert result["isError"] and json.loads(result["content"][0]["text"])["error"]["class"] == "capability_denied"
    assert any_client.tool("shell", command=f"cd {tmp_path}/data")["isError"]


def test_nothing_is_no_question(any_client):
    for nothing in ({}, {"fs_read": []}):
        result = any_client.tool("request_capability", **nothing)
        assert result["isError"] and "nothing is asked for" in result["content"][0]["text"]


def test_a_denial_is_told_with_its_reason(any_client, tmp_path):
    (tmp_path / "data").mkdir()
    result, _ = ask(any_client, tmp_path / "data", "deny", reason="not this one")
    assert result["isError"] and "not this one" in result["content"][0]["text"]


@pytest.mark.parametrize("answer", [{"action": "decline"}, {"action": "accept", "content": {"decision": "always"}}, {"action": "accept"}, {}])
def test_anything_but_a_clear_yes_is_a_no(client, tmp_path, answer):
    (tmp_path / "data").mkdir()
    legacy = client()
    number = legacy.send("tools/call", name="request_capability", arguments={"fs_read": [str(tmp_path / "data")]})
    question = legacy.wait(lambda message: message.get("method") == "elicitation/create")
    legacy.write({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    legacy.write({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"decision": "session"}}})
    assert "denied" in legacy.answer(number)["result"]["content"][0]["text"]


def test_state_that_was_changed_replayed_or_is_for_other_arguments(client, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    modern = client(era="modern")
    wanted = {"fs_read": [str(tmp_path / "one")]}
    state = modern.call("tools/call", name="request_capability", arguments=wanted)["result"]["requestState"]
    yes = {"approval": {"action": "accept", "content": {"decision": "session"}}}

    def repeat(state, arguments=wanted):
        return modern.call("tools/call", name="request_capability", arguments=arguments, inputResponses=yes, requestState=state)
    raw = bytearray(base64.urlsafe_b64decode(state))
    raw[3] ^= 1
    for forged in (base64.urlsafe_b64encode(raw).decode(), "", "AAAA", state[:-8], "%%"):
        assert repeat(forged)["error"]["code"] == -32602
    assert repeat(state, {"fs_read": [str(tmp_path / "two")]})["error"]["code"] == -32602
    assert repeat(state)["result"]["structuredContent"] == {"granted": True}
    assert repeat(state)["error"]["code"] == -32602


def test_a_call_that_is_cancelled_while_a_human_is_asked_does_not_run(cordon, any_client, tmp_path):
    (tmp_path / "given").mkdir()
    number = any_client.send("tools/call", name="request_capability", arguments={"fs_write": [str(tmp_path / "given")]})
    state = None
    if any_client.era == "legacy":
        question = any_client.wait(lambda message: message.get("method") == "elicitation/create")
    else:
        state = any_client.answer(number)["result"]["requestState"]
    any_client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert wait_until(lambda: json.loads(cordon("approvals", "list", "--json").stdout)["approvals"] == [])
    yes = {"action": "accept", "content": {"decision": "session"}}
    if state:
        late = any_client.call("tools/call", name="request_capability", arguments={"fs_write": [str(tmp_path / "given")]},
                               inputResponses={"approval": yes}, requestState=state)
        assert late["error"]["code"] == -32602
    else:
        any_client.write({"jsonrpc": "2.0", "id": question["id"], "result": yes})
    assert any_client.tool("shell", command=f"touch {tmp_path}/given/made")["isError"]
    assert any_client.close()[0] == 0 and not list((tmp_path / "given").iterdir())


def test_the_end_of_input_while_a_human_is_asked(any_client, tmp_path):
    (tmp_path / "given").mkdir()
    any_client.send("tools/call", name="request_capability", arguments={"fs_write": [str(tmp_path / "given")]})
    any_client.wait(lambda message: "elicitation/create" in json.dumps(message))
    assert any_client.close()[0] == 0


@pytest.fixture
def impatient(cordon, client, tmp_path):
    """A client whose human has a second to answer, and the path that is asked for."""
    config = tmp_path / "config.toml"
    config.write_text('[approval]\ntimeout = "1s"\n')
    (tmp_path / "data").mkdir()
    return lambda era: client("--config", config, era=era)


def waiting(cordon):
    return json.loads(cordon("approvals", "list", "--json").stdout)["approvals"]


YES = {"action": "accept", "content": {"decision": "session"}}


@pytest.mark.parametrize("answer", [None, {"action": "cancel"}], ids=["silent", "dismissed"])
def test_a_question_ends_with_its_time(cordon, impatient, tmp_path, answer):
    legacy = impatient("legacy")
    wanted = {"fs_read": [str(tmp_path / "data")]}
    number = legacy.send("tools/call", name="request_capability", arguments=wanted)
    question = legacy.wait(lambda message: message.get("method") == "elicitation/create")
    if answer:
        legacy.write({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    result = legacy.answer(number)["result"]
    assert result["isError"] and json.loads(result["content"][0]["text"])["error"]["class"] == "approval_timeout"
    withdrawn = [each["params"]["requestId"] for each in legacy.kept if each.get("method") == "notifications/cancelled"]
    assert withdrawn == ([] if answer else [question["id"]]) and waiting(cordon) == []
    legacy.write({"jsonrpc": "2.0", "id": question["id"], "result": YES})
    assert legacy.tool("read_file", path=str(tmp_path / "data/none"))["isError"]
    # Nobody has denied it: it can be asked for again.
    result, _ = ask(legacy, tmp_path / "data", "session")
    assert result["structuredContent"] == {"granted": True}


def test_a_state_expires(cordon, impatient, tmp_path):
    modern = impatient("modern")
    wanted = {"fs_read": [str(tmp_path / "data")]}
    state = modern.call("tools/call", name="request_capability", arguments=wanted)["result"]["requestState"]
    assert wait_until(lambda: [row["outcome"] for row in rows(cordon) if row["row"] == "approval"][-1:] == ["timeout"])
    assert waiting(cordon) == []
    late = modern.call("tools/call", name="request_capability", arguments=wanted, inputResponses={"approval": YES}, requestState=state)
    assert late["error"]["code"] == -32602 and "expired" in late["error"]["message"]
    result, _ = ask(modern, tmp_path / "data", "session")
    assert result["structuredContent"] == {"granted": True}


def test_calls_that_are_never_repeated_are_dropped(impatient, tmp_path):
    modern = impatient("modern")
    wanted = {"fs_read": [str(tmp_path / "data")]}
    for number in [modern.send("tools/call", name="request_capability", arguments=wanted) for _ in range(256)]:
        assert "requestState" in modern.answer(number)["result"]

    def runs():
        answer = modern.call("tools/call", name="shell", arguments={"command": "true"})
        return "result" in answer or "too many" not in answer["error"]["message"]
    assert wait_until(runs)


def test_what_is_answered_elsewhere_is_not_asked_any_more(cordon, any_client, tmp_path):
    (tmp_path / "data").mkdir()
    wanted = {"fs_read": [str(tmp_path / "data")]}
    number = any_client.send("tools/call", name="request_capability", arguments=wanted)
    question = any_client.wait(lambda message: "elicitation/create" in json.dumps(message))
    assert wait_until(lambda: waiting(cordon))
    cordon("approvals", "approve", waiting(cordon)[0]["id"], "--for-session")
    if any_client.era == "legacy":
        assert any_client.wait(lambda each: each.get("method") == "notifications/cancelled")["params"]["requestId"] == question["id"]
    else:
        number = any_client.send("tools/call", name="request_capability", arguments=wanted, inputResponses={"approval": {"action": "cancel"}},
                                 requestState=question["result"]["requestState"])
    assert any_client.answer(number)["result"]["structuredContent"] == {"granted": True}


def test_a_client_that_cannot_ask_is_not_asked(client, cordon, tmp_path):
    (tmp_path / "data").mkdir()
    for options, settings in (([], {"elicitation": False}), (["--approver", "cordon"], {})):
        for era in ("legacy", "modern"):
            each = client(*options, era=era, **settings)
            result = each.tool("request_capability", fs_read=[str(tmp_path / "data")])
            assert result["isError"] and json.loads(result["content"][0]["text"])["error"]["class"] == "capability_denied"
            assert not any("method" in message for message in each.kept)


# ---- the protocol ------------------------------------------------------------------------------------------------------

def test_discover_and_versions(client):
    modern = client(era="modern")
    found = modern.call("server/discover")["result"]
    assert MODERN in found["supportedVersions"] and found["resultType"] == "complete"
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "cordon"
    wrong = modern.call("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "1999-01-01"})["error"]
    assert wrong["code"] == -32022 and wrong["data"] == {"supported": [MODERN], "requested": "1999-01-01"}
    modern.era = "neither"
    assert modern.call("tools/list")["error"]["code"] == -32602
    legacy = client()
    assert legacy.opened["result"]["protocolVersion"] == "2025-11-25"
    assert legacy.call("ping")["result"] == {}
    for wanted, told in (("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-11-25"), ("2024-11-05", "2025-11-25"), ("2099-01-01", "2025-11-25")):
        opened = legacy.call("initialize", protocolVersion=wanted, capabilities={}, clientInfo={"name": "t", "version": "1"})
        assert opened["result"]["protocolVersion"] == told


@pytest.mark.parametrize("line", [b"{", b"[]", b"1", b"null", b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b"\xff\xfe", b"[" * 100000,
                                  b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"id":7,"result":{}}', b'{"jsonrpc":"2.0","id":"x","error":1}'])
def test_garbage_ends_nothing(client, line):
    legacy = client()
    legacy.process.stdin.write(line + b"\n")
    legacy.process.stdin.flush()
    assert legacy.call("ping")["result"] == {}


def test_a_line_without_end_is_bounded(client):
    legacy = client()
    with pytest.raises(BrokenPipeError):
        for _ in range(64):
            legacy.process.stdin.write(b"x" * (1 << 20))
            legacy.process.stdin.flush()
    assert legacy.process.wait(PATIENCE) == 0


def test_two_hundred_calls_at_once(client):
    """With as few descriptors as a login gives: the server may have more, and its commands have a limit of their own."""
    legacy = client("--processes", "1000", wrapper=("prlimit", "--nofile=1024:"))
    assert legacy.tool("shell", command="ulimit -n")["structuredContent"]["stdout"] == "1024\n"
    numbers = [legacy.send("tools/call", name="exec", arguments={"argv": ["true"]}) for _ in range(200)]
    for number in numbers:
        assert legacy.answer(number)["result"]["structuredContent"]["exit_code"] == 0


def test_the_end_of_input_ends_what_runs(client, cordon):
    mark = f"5{os.getpid()}"
    legacy = client()
    legacy.send("tools/call", name="shell", arguments={"command": f"echo on; sleep {mark}"}, _meta={"progressToken": 1})
    legacy.wait(lambda message: message.get("method") == "notifications/progress")
    legacy.tool("job_start", command=f"sleep {mark}")
    assert legacy.close()[0] == 0
    assert wait_until(lambda: subprocess.run(["pgrep", "-f", f"sleep {mark}"], stdout=subprocess.DEVNULL).returncode == 1)


def sessions(cordon):
    return [each["id"] for each in json.loads(cordon("session", "list", "--json").stdout)["sessions"]]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_what_runs_and_the_session(client, cordon, number):
    mark = f"6{os.getpid()}{int(number)}"
    legacy = client()
    legacy.send("tools/call", name="shell", arguments={"command": f"echo on; sleep {mark}"}, _meta={"progressToken": 1})
    legacy.wait(lambda message: message.get("method") == "notifications/progress")
    assert len(sessions(cordon)) == 1
    legacy.process.send_signal(number)
    assert legacy.process.wait(PATIENCE) == 0
    assert sessions(cordon) == [] and list((cordon.data / "cordon/mcp").iterdir()) == []
    assert wait_until(lambda: subprocess.run(["pgrep", "-f", f"sleep {mark}"], stdout=subprocess.DEVNULL).returncode == 1)


def test_the_session_of_a_killed_server_is_ended_by_the_next(client, cordon):
    killed, living = client(), client()
    mine = [each.tool("shell", command="echo $CORDON_SESSION_ID")["structuredContent"]["stdout"].strip() for each in (killed, living)]
    cordon("session", "new", "mcp-of-a-person")
    killed.process.kill()
    killed.process.wait()
    assert set(sessions(cordon)) == {*mine, "mcp-of-a-person"}
    third = client()
    third.tool("shell", command="true")
    assert mine[0] not in sessions(cordon) and {mine[1], "mcp-of-a-person"} < set(sessions(cordon))
    assert living.tool("shell", command="echo on")["structuredContent"]["stdout"] == "on\n"


def test_a_named_session_stays(client, cordon):
    cordon("session", "new", "mine")
    legacy = client("--session", "mine")
    assert legacy.tool("shell", command="echo $CORDON_SESSION_ID")["structuredContent"]["stdout"] == "mine\n"
    assert legacy.close()[0] == 0
    assert [each["id"] for each in json.loads(cordon("session", "list", "--json").stdout)["sessions"]] == ["mine"]


def test_a_long_name_is_no_other_session(client, cordon, workspace):
    other = "s" * 127
    cordon("session", "new", other)
    cordon("session", "new", other + "more", "--workspace", workspace)
    assert client("--session", other + "more").tool("shell", command="echo ${#CORDON_SESSION_ID}; pwd")["structuredContent"]["stdout"] == \
        f"131\n{workspace}\n"


@pytest.mark.parametrize("options", [["--approver", "nobody"], ["--session", "s", "--read", "/usr"], ["extra"]])
def test_bad_options(cordon, options):
    done = cordon("mcp", *options, input="")
    assert done.returncode != 0 and done.stdout == "" and done.stderr
