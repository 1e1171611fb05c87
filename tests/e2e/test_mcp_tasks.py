"""cordon mcp: tasks, the extension of the modern era, as lines of JSON. What the official client makes of it is tested
by make test-agents."""
import datetime
import json
import os
import subprocess
import time

import pytest

from conftest import PATIENCE
from lab import rows, wait_until
from mcp_client import client  # noqa: F401

EXTENSION = "io.modelcontextprotocol/tasks"
YES = {"action": "accept", "content": {"decision": "session"}}
NO = {"action": "decline"}


@pytest.fixture
def tasks(client):
    """A client that declares the extension with each request."""
    def start(*options, elicitation=True):
        made = client(*options, era="modern", elicitation=elicitation)
        made.capabilities = {**made.capabilities, "extensions": {EXTENSION: {}}}
        return made
    return start


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data-outside").mkdir()
    return tmp_path / "data-outside"


@pytest.fixture
def queued(tmp_path):
    """The configuration of a person who answers with cordon approvals."""
    (tmp_path / "config.toml").write_text("[approval]\nqueue = true\n")
    return "--config", tmp_path / "config.toml"


def checked(task, status=None):
    """What every task has."""
    begun, changed = (datetime.datetime.fromisoformat(task[name].replace("Z", "+00:00"))
                      for name in ("createdAt", "lastUpdatedAt"))
    assert begun <= changed and len(task["taskId"]) == 32 and task["ttlMs"] >= 3600000 and 0 < task["pollIntervalMs"] <= 5000
    assert status in (None, task["status"]), task
    assert ("inputRequests" in task, "result" in task, "error" in task) in \
        ((task["status"] == "input_required" and "resultType" in task and task["resultType"] == "complete",
          task["status"] == "completed", task["status"] == "failed"),), task
    return task


def call(client, name, **arguments):
    return client.call("tools/call", name=name, arguments=arguments)["result"]


def begin(client, name, status, **arguments):
    task = call(client, name, **arguments)
    assert task["resultType"] == "task" and "inputRequests" not in task and "content" not in task, task
    # On a machine that is busy it may have become one before the human was asked.
    assert task["status"] in ("working", status) and wait_until(lambda: get(client, task["taskId"])["status"] == status)
    return task["taskId"]


def get(client, task):
    told = client.call("tasks/get", taskId=task)["result"]
    assert told["resultType"] == "complete" and told["taskId"] == task
    return checked(told)


def update(client, task, answers):
    assert client.call("tasks/update", taskId=task, inputResponses=answers)["result"] == {"resultType": "complete"}


def ended(client, task, status="completed"):
    assert wait_until(lambda: get(client, task)["status"] not in ("working", "input_required"), PATIENCE)
    return checked(get(client, task), status)


def waiting(cordon):
    return json.loads(cordon("approvals", "list", "--json").stdout)["approvals"]


def unknown(client, method, task, **more):
    return client.call(method, taskId=task, **more).get("error", {}).get("code") == -32602


def files(cordon):
    place = cordon.data / "cordon/mcp/tasks"
    return sorted(place.iterdir()) if place.exists() else []


def test_the_server_declares_it(client):
    assert client(era="modern").call("server/discover")["result"]["capabilities"]["extensions"] == {EXTENSION: {}}
    assert "extensions" not in client().opened["result"]["capabilities"]


def test_an_approval_is_a_task(cordon, tasks, data):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_write=[str(data)])
    told = get(client, task)
    (key, question), = told["inputRequests"].items()
    assert told["status"] == "input_required" and question["method"] == "elicitation/create" and str(data) in question["params"]["message"]
    update(client, task, {key: YES})
    told = ended(client, task)
    assert client.checked("request_capability", told["result"])["structuredContent"] == {"granted": True}
    assert told["result"]["isError"] is False and told["result"]["resultType"] == "complete" and told["lastUpdatedAt"] >= told["createdAt"]
    assert call(client, "write_file", path=str(data / "made"), content="x")["isError"] is False
    assert [row["outcome"] for row in rows(cordon) if row["row"] == "approval"] == ["approved"]


def test_a_denial_is_a_result_of_the_task(tasks, data):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    update(client, task, dict.fromkeys(get(client, task)["inputRequests"], {**NO, "content": None}))
    result = ended(client, task)["result"]
    assert result["isError"] and json.loads(result["content"][0]["text"])["error"]["class"] == "capability_denied"


@pytest.mark.parametrize("answers", [{}, {"approval": YES}, {"approval-0": YES}, {"approval-999": YES}, {"": YES},
                                     [YES], None, "yes"])
def test_an_answer_to_no_question_counts_for_nothing(cordon, tasks, data, answers):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    update(client, task, answers)
    assert get(client, task)["status"] == "input_required" and waiting(cordon)
    for wrong in ("yes", None, 1, [YES]):
        update(client, task, dict.fromkeys(get(client, task)["inputRequests"], wrong))
    assert get(client, task)["status"] == "input_required" and waiting(cordon)


def test_the_first_answer_counts(tasks, data):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    key, = get(client, task)["inputRequests"]
    update(client, task, {key: NO})
    update(client, task, {key: YES})
    assert ended(client, task)["result"]["isError"]
    update(client, task, {key: YES})
    assert ended(client, task)["result"]["isError"] and call(client, "shell", command=f"ls {data}")["isError"]


def test_an_answer_that_comes_too_late(cordon, tasks, data, tmp_path):
    (tmp_path / "config.toml").write_text('[approval]\ntimeout = "1s"\n')
    client = tasks("--config", tmp_path / "config.toml")
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    key, = get(client, task)["inputRequests"]
    result = ended(client, task)["result"]
    assert result["isError"] and json.loads(result["content"][0]["text"])["error"]["class"] == "approval_timeout"
    update(client, task, {key: YES})
    assert ended(client, task)["result"] == result and [row["outcome"] for row in rows(cordon)
                                                        if row["row"] == "approval"] == ["timeout"]


def test_what_is_answered_elsewhere_needs_no_answer(cordon, tasks, data):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    cordon("approvals", "approve", waiting(cordon)[0]["id"], "--for-session")
    assert ended(client, task)["result"]["structuredContent"] == {"granted": True}


def test_the_answer_to_one_question_is_none_to_another(cordon, tasks, tmp_path):
    client = tasks()
    asked = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        asked.append(begin(client, "request_capability", "input_required", fs_read=[str(tmp_path / name)]))
    keys = [list(get(client, task)["inputRequests"])[0] for task in asked]
    assert keys[0] != keys[1]
    update(client, asked[1], {keys[0]: YES})
    assert [get(client, task)["status"] for task in asked] == ["input_required"] * 2 and len(waiting(cordon)) == 2


def test_only_a_request_that_declared_it_gets_one(client, tasks, data):
    plain = client(era="modern")
    assert call(plain, "request_capability", fs_read=[str(data)])["resultType"] == "input_required"
    job = call(plain, "job_start", command="sleep 600")["structuredContent"]
    assert call(plain, "job_wait", id=job["id"], timeout_ms=1500)["resultType"] == "complete"
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        error = plain.call(method, taskId="0" * 32)["error"]
        assert error["code"] == -32021 and error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    legacy = client()
    assert legacy.call("tasks/get", taskId="0" * 32)["error"]["code"] == -32601
    # And what is no declaration is none.
    odd = tasks()
    for wrong in (True, [], "yes", None):
        odd.capabilities = {"elicitation": {}, "extensions": {EXTENSION: wrong}}
        assert call(odd, "request_capability", fs_read=[str(data)])["resultType"] == "input_required"


def test_waiting_for_a_job_is_a_task(cordon, tasks, workspace):
    client = tasks("--workspace", workspace)
    job = call(client, "job_start", command="while [ ! -e go ]; do sleep 0.05; done; echo over")["structuredContent"]
    task = begin(client, "job_wait", "working", id=job["id"])
    assert "job" in get(client, task)["statusMessage"]
    (workspace / "go").touch()
    told = client.checked("job_wait", ended(client, task)["result"])["structuredContent"]
    assert told["state"] == "ended" and told["id"] == job["id"]
    assert call(client, "job_poll", id=job["id"])["structuredContent"]["stdout"]["data"] == "over\n"


def test_a_call_that_ends_as_it_becomes_a_task_is_answered_once(tasks, workspace):
    """Many wait for one job, which ends when the oldest of them have become tasks and the others have not."""
    client = tasks("--workspace", workspace)
    job = call(client, "job_start", command="while [ ! -e go ]; do sleep 0.002; done")["structuredContent"]
    numbers = []
    for _ in range(200):
        numbers.append(client.send("tools/call", name="job_wait", arguments={"id": job["id"]}))
        time.sleep(0.002)
    first = client.answer(numbers[0])["result"]
    (workspace / "go").touch()
    results = [first, *(client.answer(number)["result"] for number in numbers[1:])]
    asked = [each["taskId"] for each in results if each["resultType"] == "task"]
    for result in [each for each in results
                   if each["resultType"] != "task"] + [ended(client, task)["result"] for task in asked]:
        assert result["structuredContent"]["state"] == "ended"
    assert first["resultType"] == "task" and not any(message.get("id") in numbers for message in client.kept)


def test_what_is_quick_is_no_task(tasks):
    client = tasks()
    assert call(client, "shell", command="echo on")["structuredContent"]["stdout"] == "on\n"
    job = call(client, "job_start", command="true")["structuredContent"]
    assert call(client, "job_wait", id=job["id"])["structuredContent"]["state"] == "ended"


def test_a_command_that_runs_is_no_task(tasks):
    """It has its progress, which ends with the answer to its request."""
    client = tasks()
    number = client.send("tools/call", name="shell", arguments={"command": "echo first; sleep 2; echo last"},
                         _meta={"progressToken": 1})
    assert client.answer(number)["result"]["structuredContent"]["stdout"] == "first\nlast\n"
    assert any(each.get("method") == "notifications/progress" for each in client.kept)


@pytest.mark.parametrize("tool", ["request_capability", "shell"])
def test_a_slow_approver_of_cordons_own(cordon, tasks, queued, data, tool):
    client = tasks("--approver", "cordon", *queued)
    if tool == "shell":
        queued[1].write_text('[approval]\nqueue = true\n[[policy.rules]]\ntool = "run"\ndecision = "ask"\n')
        task = begin(client, "shell", "working", command="echo ran")
    else:
        task = begin(client, "request_capability", "working", fs_read=[str(data)])
    assert get(client, task)["status"] == "working" and "approver" in get(client, task)["statusMessage"]
    cordon("approvals", "approve", waiting(cordon)[0]["id"], "--for-session")
    content = client.checked(tool, ended(client, task)["result"])["structuredContent"]
    assert content == {"granted": True} if tool != "shell" else content["stdout"] == "ran\n"


def test_cancelling_a_question_withdraws_it(cordon, tasks, data):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    key, = get(client, task)["inputRequests"]
    assert client.call("tasks/cancel", taskId=task)["result"] == {"resultType": "complete"}
    assert ended(client, task, "cancelled") and wait_until(lambda: waiting(cordon) == [])
    update(client, task, {key: YES})
    assert client.call("tasks/cancel", taskId=task)["result"] == {"resultType": "complete"}
    assert get(client, task)["status"] == "cancelled"
    # Nobody has denied it, and nobody has approved it: it is asked again.
    assert begin(client, "request_capability", "input_required", fs_read=[str(data)]) != task


def test_cancelling_a_command_kills_its_tree(cordon, tasks, queued):
    """It became a task while a human was asked, and runs by now."""
    mark = f"7{os.getpid()}"
    client = tasks(*queued)
    queued[1].write_text('[approval]\nqueue = true\n[[policy.rules]]\ntool = "run"\ndecision = "ask"\n')
    task = begin(client, "shell", "input_required", command=f"setsid sleep {mark} & sleep {mark}")
    update(client, task,
           dict.fromkeys(get(client, task)["inputRequests"], {"action": "accept", "content": {"decision": "once"}}))
    lives = lambda: subprocess.run(["pgrep", "-f", f"^sleep {mark}"],
                                   stdout=subprocess.DEVNULL).returncode == 0  # noqa: E731
    assert wait_until(lives) and get(client, task)["status"] == "working"
    client.call("tasks/cancel", taskId=task)
    assert wait_until(lambda: not lives()) and ended(client, task, "cancelled")


def test_the_answered_request_is_not_what_cancels(tasks, data):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": client.number}})
    assert get(client, task)["status"] == "input_required"


@pytest.mark.parametrize("task", ["", "0" * 32, "../" * 10 + "etc/passwd", "x" * 32, "0" * 31, "0" * 100000, None, 1,
                                  {}, ["0" * 32]])
def test_an_unknown_task(tasks, task):
    client = tasks()
    call(client, "shell", command="true")
    assert unknown(client, "tasks/get", task) and unknown(client, "tasks/cancel", task)
    assert unknown(client, "tasks/update", task, inputResponses={"approval": YES})
    assert client.call("tasks/list")["error"]["code"] == -32601


def test_a_task_of_another_session_is_none(tasks, data):
    mine, other = tasks(), tasks()
    task = begin(mine, "request_capability", "input_required", fs_read=[str(data)])
    call(other, "shell", command="true")
    assert unknown(other, "tasks/get", task) and unknown(other, "tasks/cancel", task)
    assert unknown(other, "tasks/update", task, inputResponses=dict.fromkeys(get(mine, task)["inputRequests"], YES))
    assert get(mine, task)["status"] == "input_required"


# ---- on disk ---------------------------------------------------------------------------------------------------------

def test_a_task_is_on_disk_before_its_answer(cordon, tasks, data):
    """The server is killed as soon as the client knows of the task: the next one of the session knows of it, too."""
    cordon("session", "new", "mine")
    first = tasks("--session", "mine")
    open_task = begin(first, "request_capability", "input_required", fs_read=[str(data)])
    done = begin(first, "request_capability", "input_required", fs_write=[str(data)])
    update(first, done, dict.fromkeys(get(first, done)["inputRequests"], YES))
    result = ended(first, done)
    first.process.kill()
    first.process.wait()
    assert len(files(cordon)) == 2 and all(path.stat().st_mode & 0o777 == 0o600 for path in files(cordon))
    second = tasks("--session", "mine")
    assert get(second, done) == result
    lost = get(second, open_task)
    assert lost["status"] == "failed" and "ended" in lost["error"]["message"] and "inputRequests" not in lost
    assert second.close()[0] == 0 and len(files(cordon)) == 2


def test_tasks_end_with_their_session(cordon, tasks, data):
    client, killed = tasks(), tasks()
    for each in (client, killed):
        begin(each, "request_capability", "input_required", fs_read=[str(data)])
    assert len(files(cordon)) == 2
    killed.process.kill()
    killed.process.wait()
    assert client.close()[0] == 0 and len(files(cordon)) == 1
    # What a server that was killed has left, the next one ends.
    last = tasks()
    call(last, "shell", command="true")
    assert files(cordon) == []


def test_what_has_expired_is_removed(cordon, tasks, data):
    cordon("session", "new", "mine")
    client = tasks("--session", "mine", elicitation=True)
    old = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    update(client, old, dict.fromkeys(get(client, old)["inputRequests"], NO))
    ended(client, old)
    os.utime(files(cordon)[0], (1, 1))
    new = begin(client, "request_capability", "input_required", fs_write=[str(data)])
    assert unknown(client, "tasks/get",
                   old) and get(client, new)["status"] == "input_required" and len(files(cordon)) == 1


def test_where_no_task_can_be_kept_there_is_none(cordon, tasks, data):
    """The question is asked as it is of a client without tasks."""
    client = tasks()
    call(client, "shell", command="true")
    (cordon.data / "cordon/mcp/tasks").write_text("no directory")
    told = call(client, "request_capability", fs_read=[str(data)])
    assert told["resultType"] == "input_required"
    again = client.call("tools/call", name="request_capability", arguments={"fs_read": [str(data)]},
                        inputResponses={"approval": YES}, requestState=told["requestState"])["result"]
    assert again["structuredContent"] == {"granted": True}


def test_there_are_not_too_many(cordon, tasks, data):
    client = tasks()
    begin(client, "request_capability", "input_required", fs_read=[str(data)])
    kept = files(cordon)[0]
    for number in range(255):
        (kept.parent / f"{kept.name[:33]}{number:032x}").write_bytes(kept.read_bytes())
    assert call(client, "request_capability", fs_write=[str(data)])["resultType"] == "input_required"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"status":1}', '{"status":"working"}', "x" * 100])
def test_a_damaged_record(cordon, tasks, data, text):
    client = tasks()
    task = begin(client, "request_capability", "input_required", fs_read=[str(data)])
    update(client, task, dict.fromkeys(get(client, task)["inputRequests"], NO))
    ended(client, task)
    files(cordon)[0].write_text(text)
    assert unknown(client, "tasks/get", task)
    assert call(client, "shell", command="echo on")["structuredContent"]["stdout"] == "on\n"
