"""cordon mcp: both eras of the protocol, as lines of JSON. What the official clients make of it is tested by make test-agents."""
import base64
import contextlib
import json
import os
import queue
import subprocess
import threading

import pytest

from conftest import PATIENCE
from lab import rows, wait_until

MODERN = "2026-07-28"


class Client:
    """One server, and what it says: answers by id, everything else in order."""
    def __init__(self, cordon, *options, era="legacy", elicitation=True):
        self.process = cordon.popen("mcp", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.era, self.number = era, 0
        self.capabilities = {"elicitation": {}} if elicitation else {}
        self.messages, self.kept = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()
        if era == "legacy":
            self.opened = self.call("initialize", protocolVersion="2025-11-25", capabilities=self.capabilities,
                                    clientInfo={"name": "te/st", "version": "1"})
            self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method, **params):
        self.number += 1
        if self.era == "modern":
            meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": self.capabilities}
            params["_meta"] = {**meta, **params.get("_meta", {})}
        self.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def wait(self, wanted):
        """The first message of which wanted() is true; the others are kept."""
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        while True:
            message = self.messages.get(timeout=PATIENCE)
            assert message is not None, self.process.stderr.read()
            if wanted(message):
                return message
            self.kept.append(message)

    def answer(self, number):
        return self.wait(lambda message: message.get("id") == number and "method" not in message)

    def call(self, method, **params):
        return self.answer(self.send(method, **params))

    def tool(self, name, **arguments):
        return self.call("tools/call", name=name, arguments=arguments)["result"]

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        return status, self.process.stderr.read()


@pytest.fixture
def client(cordon):
    made = []

    def start(*options, **settings):
        made.append(Client(cordon, *options, **settings))
        return made[-1]
    yield start
    for each in made:
        each.process.kill()
        each.process.wait()
        for pipe in (each.process.stdin, each.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture(params=["legacy", "modern"])
def any_client(client, request):
    return client(era=request.param)


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


def test_exec_takes_arguments_input_and_environment(any_client):
    content = any_client.tool("exec", argv=["sh", "-c", "cat; echo $A"], stdin="given ", env=["A=b"])["structuredContent"]
    assert content["stdout"] == "given b\n"


def test_what_is_not_allowed_is_an_error_of_the_tool(any_client):
    result = any_client.tool("exec", argv=["true"], cwd="/etc")
    assert result["isError"] and "structuredContent" not in result
    assert json.loads(result["content"][0]["text"])["error"]["class"] == "capability_denied"


@pytest.mark.parametrize("arguments", [{}, {"command": 1}, {"command": "true", "unknown": 1}, {"command": "true", "env": [1]}])
def test_bad_arguments(any_client, arguments):
    result = any_client.tool("shell", **arguments)
    assert result["isError"] and json.loads(result["content"][0]["text"])["error"]["class"] == "invalid_request"


def test_an_unknown_tool_and_an_unknown_method(any_client):
    assert any_client.call("tools/call", name="nothing", arguments={})["error"]["code"] == -32602
    assert any_client.call("tools/call", name="shell", arguments=[])["error"]["code"] == -32602
    assert any_client.call("nothing/at-all")["error"]["code"] == -32601


def test_output_comes_as_progress(any_client):
    number = any_client.send("tools/call", name="shell", arguments={"command": "echo first; sleep 0.5; echo last"},
                             _meta={"progressToken": "t"})
    seen = any_client.wait(lambda message: message.get("method") == "notifications/progress")
    assert seen["params"]["progressToken"] == "t" and seen["params"]["message"] == "first\n"
    assert any_client.answer(number)["result"]["structuredContent"]["stdout"] == "first\nlast\n"
    later = [message["params"]["progress"] for message in any_client.kept if message.get("method") == "notifications/progress"]
    assert later == sorted(later) and all(value > seen["params"]["progress"] for value in later)


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
    assert "src/a.c" in json.dumps(any_client.tool("find_files", globs=["*.c"])["structuredContent"])
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
        return client.answer(number)["result"], question["params"]
    question = client.answer(number)["result"]
    assert question["resultType"] == "input_required"
    number = client.send("tools/call", name="request_capability", arguments={"fs_read": [str(path)]},
                         inputResponses={"approval": answer}, requestState=question["requestState"])
    return client.answer(number)["result"], question["inputRequests"]["approval"]["params"]


def test_the_human_behind_the_client_is_asked(any_client, tmp_path):
    (tmp_path / "data").mkdir()
    result, question = ask(any_client, tmp_path / "data", "session")
    assert str(tmp_path / "data") in question["message"]
    assert result["structuredContent"] == {"granted": True}


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
    legacy = client("--processes", "1000")
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


def test_a_named_session_stays(client, cordon):
    cordon("session", "new", "mine")
    legacy = client("--session", "mine")
    assert legacy.tool("shell", command="echo $CORDON_SESSION_ID")["structuredContent"]["stdout"] == "mine\n"
    assert legacy.close()[0] == 0
    assert [each["id"] for each in json.loads(cordon("session", "list", "--json").stdout)["sessions"]] == ["mine"]


@pytest.mark.parametrize("options", [["--approver", "nobody"], ["--session", "s", "--read", "/usr"], ["extra"]])
def test_bad_options(cordon, options):
    done = cordon("mcp", *options, input="")
    assert done.returncode != 0 and done.stdout == "" and done.stderr
