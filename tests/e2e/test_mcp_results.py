"""cordon mcp: what its tools return. Every result is compared with the tool's outputSchema by the client
(mcp_client.py)."""
import json
import os
import pathlib
import re

import pytest

from lab import rows, wait_until
from mcp_client import any_client, client  # noqa: F401
from test_audit import unwritable

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def configured(client, tmp_path):
    """A client of a server with this configuration."""
    def start(text, *options, **settings):
        (tmp_path / "config.toml").write_text(text)
        return client("--config", tmp_path / "config.toml", *options, **settings)
    return start


def error_of(result):
    assert result["isError"] and "structuredContent" not in result, result
    return json.loads(result["content"][0]["text"])["error"]


def schemas(schema, at="result"):
    """Every object's schema in this one."""
    yield at, schema
    for name, each in schema.get("properties", {}).items():
        yield from schemas(each, f"{at}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from schemas(schema[inner], f"{at}[]")


def test_nothing_is_left_to_guess(client):
    """Every object says what it may have in it, every list of what it is."""
    for tool in client().call("tools/list")["result"]["tools"]:
        for at, schema in schemas(tool["outputSchema"], tool["name"]):
            if schema["type"] == "object":
                assert "additionalProperties" in schema or at == "preflight.asks", at
            if schema["type"] == "array":
                assert "items" in schema, at
            assert set(schema.get("required", [])) <= set(schema.get("properties", {})), at


def test_a_result_says_how_it_ended_and_what_held(any_client):
    content = any_client.tool("shell", command="printf abc; printf de >&2")["structuredContent"]
    assert (content["ended_by"], content["oom_killed"], content["stdout_bytes"],
            content["stderr_bytes"]) == ("exit", False, 3, 2)
    assert content["isolation"]["filesystem"] != "none" and content["driver"] != "local" and "error" not in content
    ended = any_client.tool("shell", command="sleep 600", timeout_ms=200)["structuredContent"]
    assert ended["ended_by"] == "time" and ended["timed_out"] and ended["limit_hit"] == "time"
    killed = any_client.tool("shell", command="kill -KILL $$")["structuredContent"]
    assert (killed["ended_by"], killed["signal"], killed["exit_code"]) == ("signal", 9, -1)


def test_the_whole_output_is_counted(configured):
    content = configured("[limits]\nstdout = \"1K\"\n").tool("shell", command="head -c 5000 /dev/zero | tr '\\0' x")["structuredContent"]
    assert content["stdout_bytes"] == 5000 and content["truncated"] and len(content["stdout"]) < 1200


def test_walls_that_are_missing_are_said(configured, any_client):
    local = configured('[sandbox]\ndriver = "local"\n')
    result = local.tool("shell", command="true")
    assert result["structuredContent"]["driver"] == "local" and result["structuredContent"]["isolation"]["filesystem"] == "none"
    assert re.search(r"cordon: the driver local did not hold: .*\bfilesystem\b",
                     result["content"][1]["text"]), result["content"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert len(any_client.tool("shell", command="true")["content"]) == 1


def test_what_else_there_is_to_know(cordon, client):
    """A configuration file that became invalid: the last good one holds, and the result says so."""
    config = pathlib.Path(cordon.env["XDG_CONFIG_HOME"]) / "cordon/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[limits]\nprocesses = 100\n")
    server = client()
    assert "note" not in server.tool("shell", command="true")["structuredContent"]
    config.write_text("nonsense = 1\n")
    result = server.tool("shell", command="true")
    assert "nonsense" in result["structuredContent"]["note"] and "nonsense" in result["content"][1]["text"]


def test_an_error_that_comes_with_a_result_is_given(configured):
    server = configured('[secrets]\noutput = "block"\n')
    result = server.tool("shell", command=f"echo before; printf '%s%s\\n' ghp_ {KEY[4:]}; echo after")
    content = result["structuredContent"]
    assert result["isError"] and content["exit_code"] == 0 and content["error"]["class"] == "leak_blocked", result
    assert "before" in content["stdout"] and "after" not in content["stdout"] and KEY not in json.dumps(result)
    assert "leak_blocked" in result["content"][1]["text"] and "cordon audit" not in content["error"]["remediation"]


def test_a_result_that_could_not_be_recorded_says_so(cordon, client, workspace):
    server = client("--workspace", workspace)
    number = server.send("tools/call", name="shell",
                         arguments={"command": "while [ ! -e go ]; do sleep 0.02; done; echo ran"})
    assert wait_until(lambda: [row["row"] for row in rows(cordon)][-1:] == ["intent"])
    mend = unwritable(cordon)
    (workspace / "go").touch()
    result = server.checked("shell", server.answer(number)["result"])
    mend()
    content = result["structuredContent"]
    assert result["isError"] and content["stdout"] == "ran\n" and content["error"]["class"] == "audit_unavailable", result


@pytest.mark.parametrize("progress", [False, True])
def test_the_first_part_of_a_secret_is_nowhere(any_client, progress):
    """It is written so slowly that output which is passed on as it comes would not have waited for the rest."""
    script = f"printf before; printf {KEY[:16]}; sleep 0.4; printf {KEY[16:]}; echo"
    meta = {"_meta": {"progressToken": 1}} if progress else {}
    number = any_client.send("tools/call", name="shell", arguments={"command": script}, **meta)
    result = any_client.answer(number)["result"]
    assert result["structuredContent"]["stdout"] == "before[REDACTED:github-token]\n", result
    told = "".join(each["params"]["message"] for each in any_client.kept
                   if each.get("method") == "notifications/progress")
    assert KEY[:16] not in told and (not progress or told == "before[REDACTED:github-token]\n")


# ---- refusals --------------------------------------------------------------------------------------------------------

def test_what_was_not_granted_can_be_asked_for_by_file_tools_too(cordon, client, workspace):
    """Nobody can be asked, and so nobody has said no: the model is told the smallest grant."""
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "given").write_text("text\n")
    unasked = client(elicitation=False)
    for tool, more, wanted in (("read_file", {}, "fs_read"), ("grep", {"pattern": "x"}, "fs_read"),
                               ("write_file", {"content": "x"}, "fs_write"),
                               ("edit_file", {"old_text": "a", "new_text": "b"}, "fs_write")):
        error = error_of(unasked.tool(tool, path=str(outside / "given"), **more))
        assert error["class"] == "capability_denied" and error["request_capability"] == {wanted: [str(outside / "given")]}, (tool, error)
        assert error["remediation"] == "ask for it with the tool request_capability" and "grant" not in error
        assert any(row["row"] == "denial" and row["id"] == error["audit_id"] for row in rows(cordon))


def test_a_secret_in_a_file_is_told_in_words_for_a_model(any_client, cordon):
    (cordon.workspace / "file").write_text(f"a {KEY} b\n")
    content = any_client.tool("read_file", path="file")["structuredContent"]
    assert content["content"] == "a [REDACTED:github-token] b\n" and [each["kind"] for each in content["secrets"]] == ["github-token"]
    (denial,) = content["denials"]
    assert denial["wall"] == "secrets" and "--" not in json.dumps(denial), denial
    found = any_client.tool("grep", pattern="a")["structuredContent"]
    assert found["matches"][0]["text"] == "a [REDACTED:github-token] b" and found["denials"] == [denial]


def test_what_a_human_denied_is_not_asked_for_again(client, tmp_path):
    (tmp_path / "data").mkdir()
    legacy = client()
    wanted = {"fs_read": [str(tmp_path / "data")]}
    number = legacy.send("tools/call", name="request_capability", arguments=wanted)
    question = legacy.wait(lambda message: message.get("method") == "elicitation/create")
    legacy.write({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert "request_capability" not in error_of(legacy.answer(number)["result"])
    assert "request_capability" not in error_of(legacy.tool("request_capability", **wanted))


@pytest.mark.parametrize("tool,arguments",
                         [("read_file", {"path": "no-such-file"}), ("job_poll", {"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
                                            ("shell", {"command": "true", "cwd": "no-such-directory"}),
                          ("exec", {"argv": ["no-such-program"]}),
                                            ("grep", {"pattern": "("})])
def test_a_mistake_is_no_refusal(any_client, tool, arguments):
    error = error_of(any_client.tool(tool, **arguments))
    assert "refuses" not in error["remediation"] and "--" not in error["remediation"] and "cordon " not in error["remediation"], error


def test_a_host_is_asked_for_by_the_tool(any_client):
    script = "echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6"
    hint = any_client.tool("shell", command=script)["structuredContent"]["network_hint"]
    assert '{"hosts":["' in hint and "request_capability" in hint and "--" not in hint, hint


def test_preflight_names_what_to_ask_for(any_client, workspace):
    (workspace.parent / "outside").mkdir()
    told = any_client.tool("preflight", command="true", cwd=str(workspace.parent / "outside"))["structuredContent"]
    assert told["allowed"] is False and "--" not in told["remediation"], told


# ---- what is hidden --------------------------------------------------------------------------------------------------

HIDDEN = ("glob", "capabilities", "deny", "hidden", "mask")


@pytest.fixture
def secretive(cordon, client, workspace):
    """A workspace with names that the policy hides."""
    (workspace / ".env").write_text("KEY=1\n")
    (workspace / "id_rsa").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (workspace / "plain").write_text("KEY=2\n")
    return lambda **settings: client("--workspace", workspace, **settings)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_file_tools_say_nothing_about_what_the_policy_hides(secretive, era):
    server = secretive(era=era, elicitation=False)
    for tool, more in (("read_file", {}), ("write_file", {"content": "x"}),
                       ("edit_file", {"old_text": "a", "new_text": "b"}), ("grep", {"pattern": "KEY"})):
        error = error_of(server.tool(tool, path=".env", **more))
        assert error["class"] == "capability_denied" and "request_capability" not in error
        assert not any(word in json.dumps(error).lower() for word in HIDDEN), (tool, error)
    listed, found, grepped = (server.tool(tool, **given)["structuredContent"] for tool, given in
                              (("list_directory", {}), ("find_files", {}), ("grep", {"pattern": "KEY"})))
    assert [each["name"] for each in listed["entries"]] == ["plain"]
    assert [each["path"] for each in found["entries"]] == ["plain"] == [each["path"] for each in grepped["matches"]]
    assert listed["notes"] == found["notes"] == grepped["notes"] == []


def test_commands_are_not_told_what_is_hidden_from_them(cordon, secretive):
    server = secretive()
    content = server.tool("shell", command="cat .env id_rsa; exit 1")["structuredContent"]
    assert content["denials"] == [], content
    job = server.tool("job_start", command="cat .env; exit 1")["structuredContent"]
    assert server.tool("job_wait", id=job["id"])["structuredContent"]["note"] is None
    # People are told: the ledger's rows have it.
    ended = [row for row in rows(cordon) if row["row"] == "result"]
    assert len(ended) == 2 and all(any(each["wall"] == "masked_names" for each in row["denials"]) for row in ended)


# ---- cordon's own approver, by configuration -------------------------------------------------------------------------

@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("place", ["user", "project", "session"])
def test_the_configuration_demands_cordons_own_approver(cordon, client, workspace, tmp_path, era, place):
    demand = 'approver = "cordon"\n'
    (tmp_path / "config.toml").write_text({"user": "[approval]\n" + demand, "project": "",
                                           "session": '[[session]]\nmatch = "mcp-*"\napproval.' + demand}[place])
    if place == "project":
        (workspace / ".cordon.toml").write_text("[approval]\n" + demand)
    (tmp_path / "data").mkdir(exist_ok=True)
    # The option only demands more.
    server = client("--config", tmp_path / "config.toml", "--workspace", workspace, "--approver", "client", era=era)
    error = error_of(server.tool("request_capability", fs_read=[str(tmp_path / "data")]))
    assert error["class"] == "capability_denied" and "no approver" in error["reason"]
    assert not any("method" in message for message in server.kept)


@pytest.mark.parametrize("option", [True, False], ids=["option", "configuration"])
def test_an_approval_of_cordons_own_approver(cordon, configured, any_client, tmp_path, option):
    """The client, which could be asked, is not; a person answers in another terminal, and the call goes on."""
    (tmp_path / "given").mkdir()
    queue = "[approval]\nqueue = true\n"
    server = configured(queue, "--approver", "cordon", era=any_client.era) if option else \
        configured(queue + 'approver = "cordon"\n', era=any_client.era)
    number = server.send("tools/call", name="request_capability", arguments={"fs_write": [str(tmp_path / "given")]})
    waits = lambda: json.loads(cordon("approvals", "list", "--json").stdout)["approvals"]  # noqa: E731
    assert wait_until(waits)
    cordon("approvals", "approve", waits()[0]["id"], "--for-session")
    assert server.checked("request_capability",
                          server.answer(number)["result"])["structuredContent"] == {"granted": True}
    assert not any("method" in message for message in server.kept)
    assert not server.tool("write_file", path=str(tmp_path / "given/made"), content=str(os.getpid()))["isError"]
    assert (tmp_path / "given/made").read_text() == str(os.getpid())


def test_an_unknown_approver_is_refused(cordon, tmp_path):
    (tmp_path / "config.toml").write_text('[approval]\napprover = "nobody"\n')
    done = cordon("config", "check", tmp_path / "config.toml")
    assert done.returncode and "approver" in done.stderr
    # A project may demand more, never less.
    (tmp_path / "config.toml").write_text('[approval]\napprover = "cordon"\n')
    (cordon.workspace / ".cordon.toml").write_text('[approval]\napprover = "client"\n')
    done = cordon("run", "--config", tmp_path / "config.toml", "--workspace", cordon.workspace, "--", "true")
    assert done.returncode and "approval.approver" in done.stderr, done.stderr
