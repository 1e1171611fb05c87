"""The protocol of cordon serve and cordon rpc: processes, their events, questions, rows, and what is refused."""
import base64
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import PATIENCE, is_running
from lab import ROOT, needs, wait_until  # noqa: F401
from test_serve import Rpc, daemon  # noqa: F401

BUILD = ROOT / "build"


class Pipe(Rpc):
    """The same over standard input and output of cordon rpc."""

    def __init__(self, process):
        self.process, self.file, self.count, self.notices = process, process.stdout, 0, []
        self.connection = self

    def sendall(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def check_shape(value, schema, where):
    """As much of JSON Schema as rpc.discover uses of results and notices."""
    types = schema.get("type", [])
    allowed = [TYPES[each] for each in ([types] if isinstance(types, str) else types)]
    assert not allowed or type(value) in allowed, (where, schema, value)
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            assert name in value, (where, name, value)
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                check_shape(value[name], inner, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, each in enumerate(value):
            check_shape(each, schema["items"], f"{where}[{i}]")


def check_all(rpc):
    """Whatever is answered and told has the shape that the table says."""
    table = rpc.call("rpc.discover")["result"]
    results = {each["name"]: each["result"] for each in table["methods"]}
    notices = {each["name"]: each["params"] for each in table["notices"]}
    events = {each["event"]: each["members"] for each in table["events"]}
    call, read = rpc.call, rpc.read

    def checked_call(method, **params):
        answer = call(method, **params)
        if "result" in answer:
            check_shape(answer["result"], results[method], method)
        return answer

    def checked_read():
        said = read()
        if said and "method" in said:
            check_shape(said["params"], notices[said["method"]], said["method"])
            if said["method"] == "process.event":
                told = said["params"]["event"]
                check_shape(told, events[told["event"]], told["event"])
        return said
    rpc.call, rpc.read = checked_call, checked_read
    return rpc


@pytest.fixture(params=["serve", "rpc"])
def rpc(cordon, daemon, request):  # noqa: F811
    if request.param == "serve":
        daemon.start()
        with daemon.rpc() as opened:
            yield check_all(opened)
    else:
        process = cordon.popen("rpc", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        opened = Pipe(process)
        yield check_all(opened)
        opened.close()


def start(rpc, line, session="s", **more):
    settings = {"session": session, **more.pop("settings", {})}
    answer = rpc.call("process.start", argv=["sh", "-c", line], settings=settings,
                      environment=[f"PATH={os.environ['PATH']}"], **more)
    assert "result" in answer, answer
    return answer["result"]["id"]


def event(rpc, process, kind):
    """The next event of this kind, and the output until then. What is told of others is kept."""
    output, looked = b"", 0
    while True:
        if looked == len(rpc.notices):
            said = rpc.read()
            assert said, "the connection ended"
            rpc.notices.append(said)
        said = rpc.notices[looked]
        if said.get("method") != "process.event" or said["params"]["process"] != process:
            looked += 1
            continue
        rpc.notices.pop(looked)
        told = said["params"]["event"]
        if told["event"] == "output" and told["stream"] == "stdout":
            output += base64.b64decode(told["data_base64"]) if "data_base64" in told else told["data"].encode()
        if told["event"] == kind:
            return told, output


def test_a_process(rpc):
    process = start(rpc, r"read line; echo got $line; printf 'a\377b'; exit 3",
                    settings={"stdin": "stream", "timeout": 60})
    assert rpc.call("process.write", id=process,
                    data_base64=base64.b64encode("grün\n".encode()).decode())["result"] == {"taken": 6}
    assert rpc.call("process.close_stdin", id=process)["result"] == {}
    ended, output = event(rpc, process, "ended")
    assert output == "got grün\n".encode() + b"a\xffb" and ended["result"]["exit_code"] == 3 and ended["result"]["ended_by"] == "exit"
    waited = rpc.call("process.wait", id=process)["result"]
    assert waited["ended"] and base64.b64decode(waited["result"]["stdout_base64"]) == output
    assert rpc.call("process.stat", id=process)["result"]["state"] == "ended"
    [row] = rpc.call("audit.query", id=ended["result"]["audit_id"], last=1)["result"]["rows"]
    assert row["row"] == "result"


def test_ending_a_process(rpc):
    process = start(rpc, "trap '' TERM; echo up; while :; do sleep 0.05; done")
    event(rpc, process, "output")
    assert rpc.call("process.wait", id=process, timeout_ms=10)["result"] == {"ended": False, "result": None}
    assert rpc.call("process.cancel", id=process, grace_ms=100)["result"] == {}
    ended, _ = event(rpc, process, "ended")
    assert (ended["result"]["signal"], ended["result"]["ended_by"]) == (9, "cancel")
    process = start(rpc, "echo up; exec sleep 600")
    event(rpc, process, "output")
    assert rpc.call("process.signal", id=process, signal="SIGINT")["result"] == {}
    assert event(rpc, process, "ended")[0]["result"]["ended_by"] == "signal"


def test_a_client_that_leaves_and_one_that_comes_back(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as rpc:
        left, kept = start(rpc, "echo $$; sleep 600"), start(rpc, "echo one; until [ -e go ]; do sleep 0.02; done; echo two", detached=True)
        event(rpc, left, "output")
        event(rpc, kept, "output")
    with daemon.rpc() as rpc:
        assert wait_until(lambda: rpc.call("process.stat", id=left)["result"]["state"] == "ended")
        assert rpc.call("process.attach", id=kept, stdout_from=2)["result"]["state"] == "running"
        assert event(rpc, kept, "output")[1] == b"e\n"
        rpc.call("fs.write", path="go", data="", settings={"session": "s"})
        assert event(rpc, kept, "ended")[1] == b"two\n"
    with daemon.rpc() as rpc:
        rpc.call("process.attach", id=kept, stdout_from=1 << 50)
        assert event(rpc, kept, "ended")[1] == b"", "a place that was never reached is the end"


def test_a_process_without_events_ends_with_its_connection_too(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as rpc:
        left, detached = start(rpc, "exec sleep 600", events=False), start(rpc, "exec sleep 600", events=False)
        read = start(rpc, "head -c 3000000 /dev/zero; exec sleep 600", events=False)
        assert wait_until(lambda: rpc.call("process.stat",
                                           id=read)["result"]["stdout"]["bytes"] == 3_000_000), "it waits for no reader"
        assert rpc.call("process.detach", id=detached)["result"] == {}
        assert rpc.call("status")["result"]["running"] == 3 and not rpc.notices
    with daemon.rpc() as rpc:
        assert wait_until(lambda: rpc.call("process.stat", id=left)["result"]["state"] == "ended")
        assert rpc.call("process.stat", id=detached)["result"]["state"] != "ended"
        assert rpc.call("process.cancel", id=detached)["result"] == {}


def test_attaching_again_begins_anew(rpc):
    process = start(rpc, "echo one; read line; echo two", settings={"stdin": "stream"})
    assert event(rpc, process, "output")[1] == b"one\n"
    rpc.call("process.attach", id=process, stdout_from=1)
    assert event(rpc, process, "output")[1] == b"ne\n"
    rpc.call("process.write", id=process, data="\n")
    assert event(rpc, process, "ended")[1] == b"two\n"


def test_an_id_is_of_one_call_at_a_time(rpc):
    process = start(rpc, "exec sleep 600")
    rpc.send("process.wait", "twice", id=process)
    rpc.send("process.wait", "twice", id=process, timeout_ms=1)
    assert rpc.answer("twice")["error"] == {"code": -32600, "message": "a call with this id is under way"}
    rpc.call("process.cancel", id=process, grace_ms=0)
    assert rpc.answer("twice")["result"]["ended"]
    rpc.send("process.wait", "twice", id=process)
    assert rpc.answer("twice")["result"]["ended"], "it is free again"


def test_how_many_processes_a_connection_may_have(rpc):
    """They wait for an answer, and so cost little."""
    most = rpc.call("hello")["result"]["limits"]["processes_of_a_connection"]
    ids = [start(rpc, "true", settings={"read": "/var/tmp", "ask": True}, events=False) for _ in range(most)]
    refused = rpc.call("process.start", argv=["true"], settings={"session": "s"})
    assert refused["error"]["code"] == -32001, refused
    rpc.call("process.cancel", id=ids[0], grace_ms=0)
    assert wait_until(lambda: "result" in rpc.call("process.start", argv=["true"], settings={"session": "s"}))


def test_a_question_is_told_and_answered(rpc):
    rpc.call("approvals.subscribe")
    process = start(rpc, "echo ran", settings={"read": "/var/tmp", "ask": True})
    asks, _ = event(rpc, process, "asks")
    assert wait_until(lambda: rpc.call("status")
                      and any(said.get("method") == "approvals.asked" for said in rpc.notices))
    assert "error" in rpc.call("approvals.answer", card=asks["card"], hash="another", answer="once")
    assert rpc.call("approvals.answer", card=asks["card"], hash=asks["hash"], answer="once")["result"] == {}
    assert "error" in rpc.call("approvals.answer", card=asks["card"], answer="once"), "the first counts"
    event(rpc, process, "settled")
    assert event(rpc, process, "ended")[1] == b"ran\n"
    assert wait_until(lambda: rpc.call("status") and
                      [said["method"] for said in rpc.notices if said.get("method", "").startswith("approvals")] ==
                      ["approvals.asked", "approvals.settled"])


@pytest.fixture
def queue(cordon, tmp_path):
    """Answers by approvals.answer count."""
    config = tmp_path / "config/cordon/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[approval]\nqueue = true\ntimeout = \"120s\"\n")
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")


def test_calls_that_ask_do_not_delay_the_answer(queue, rpc, tmp_path):
    """More of them at once than the daemon has workers for other calls."""
    count = 20
    outside = tmp_path / "outside"
    outside.mkdir()
    for each in range(count):
        (outside / f"{each}").write_text(f"content {each}")
        rpc.send("fs.read", f"read {each}", path=str(outside / f"{each}"),
                 settings={"session": f"s{each}"})
    cards = []

    def all_ask():
        cards[:] = rpc.call("approvals.list")["result"]["approvals"]
        return len(cards) == count
    assert wait_until(all_ask), (len(cards), rpc.notices)
    for card in cards:
        assert rpc.call("approvals.answer", card=card["id"], hash=card["hash"], answer="once")["result"] == {}
    for each in range(count):
        assert rpc.answer(f"read {each}")["result"]["data"] == f"content {each}"


def test_a_client_that_does_not_read(cordon, daemon):  # noqa: F811
    """Its command waits, the others do not, and nothing of it is lost."""
    daemon.start()
    with daemon.rpc() as slow, daemon.rpc() as other:
        process = start(slow, "head -c 3000000 /dev/zero | tr '\\0' x")
        assert wait_until(lambda: 200_000 < other.call("process.stat", id=process)["result"]["stdout"]["bytes"])
        for _ in range(3):
            assert event(other, start(other, "echo fine"), "ended")[1] == b"fine\n"
        assert other.call("process.stat", id=process)["result"]["state"] == "running"
        assert event(slow, process, "ended")[1] == b"x" * 3_000_000


def test_an_answer_may_be_longer_than_what_may_stay_unread(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as rpc:
        workspace = rpc.call("session.new", id="s")["result"]["workspace"]
        rpc.call("fs.write", path="large", data="", settings={"session": "s"})
        with open(f"{workspace}/large", "wb") as large:
            large.write(b"\377" * (25 << 20))
        sent = rpc.call("fs.send", path="large", settings={"session": "s"})["result"]
        assert base64.b64decode(sent["data_base64"]) == b"\377" * (25 << 20) and len(sent["data"]) == 64 << 10
        for each in range(3):
            rpc.send("fs.send", f"large {each}", path="large", settings={"session": "s"})
        with daemon.rpc() as other:
            assert wait_until(lambda: other.call("status")["result"]["clients"] == 1), "who leaves so much unread is disconnected"


def test_stopping_when_all_is_done(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as rpc:
        process = start(rpc, "until [ -e go ]; do sleep 0.02; done; echo done")
        event(rpc, process, "started")
        assert rpc.call("stop", drain_ms=600_000)["result"] == {}
        assert "ends" in rpc.call("process.start", argv=["true"])["error"]["message"]
        rpc.call("fs.write", path="go", data="", settings={"session": "s"})
        assert event(rpc, process, "ended")[1] == b"done\n"
        assert rpc.read() is None
    assert daemon.process.wait(PATIENCE) == 0
    daemon.process.communicate()
    daemon.process = None


@pytest.mark.parametrize("kind", ["process", "job", "detached by another"])
def test_a_drain_waits_for_what_no_client_waits_for(cordon, daemon, kind):  # noqa: F811
    daemon.start()
    line = "until [ -e go ]; do sleep 0.02; done; echo done >made"
    with daemon.rpc() as rpc:
        workspace = rpc.call("session.new", id="s")["result"]["workspace"]
        if kind == "job":
            rpc.call("job.start", argv=["sh", "-c", line], settings={"session": "s"})
        else:
            process = start(rpc, line, detached=kind == "process", events=False)
            with daemon.rpc() as other:
                assert kind == "process" or other.call("process.detach", id=process)["result"] == {}
    with daemon.rpc() as rpc:
        assert rpc.call("stop", drain_ms=600_000)["result"] == {}
        with pytest.raises(subprocess.TimeoutExpired):
            daemon.process.wait(0.5)
    with open(f"{workspace}/go", "w"):
        pass
    assert daemon.process.wait(PATIENCE) == 0
    assert open(f"{workspace}/made").read() == "done\n"
    daemon.process.communicate()
    daemon.process = None


def test_what_does_not_end_is_ended_after_the_drain(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as rpc:
        process = start(rpc, "trap '' TERM; echo up; while :; do sleep 0.05; done", detached=True)
        event(rpc, process, "output")
        assert rpc.call("stop", drain_ms=200, grace_ms=100)["result"] == {}
        ended, _ = event(rpc, process, "ended")
        assert (ended["result"]["signal"], ended["result"]["ended_by"]) == (9, "daemon")
    assert daemon.process.wait(PATIENCE) == 0
    daemon.process.communicate()
    daemon.process = None


def test_a_process_is_kept_by_whoever_detaches_it(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as other:
        with daemon.rpc() as rpc:
            kept, left = (start(rpc, "exec sleep 600", events=False) for _ in range(2))
            assert not other.call("process.stat", id=kept)["result"]["detached"]
            assert other.call("process.detach", id=kept)["result"] == {}
            told = {each["id"]: each["detached"] for each in other.call("process.list")["result"]["processes"]}
            assert told == {kept: True, left: False}
        assert wait_until(lambda: other.call("process.stat", id=left)["result"]["state"] == "ended")
        assert other.call("process.stat", id=kept)["result"]["state"] != "ended"
        assert other.call("process.cancel", id=kept)["result"] == {}


def test_detached_processes_count_as_their_starters(rpc):
    most = rpc.call("hello")["result"]["limits"]["processes_of_a_connection"]
    ids = [start(rpc, "true", settings={"read": "/var/tmp", "ask": True}, events=False, detached=each % 2 == 0)
           for each in range(most)]
    assert rpc.call("process.detach", id=ids[1])["result"] == {}
    assert rpc.call("process.start", argv=["true"], settings={"session": "s"})["error"]["code"] == -32001
    for each in ids:
        rpc.call("process.cancel", id=each, grace_ms=0)
    assert wait_until(lambda: "result" in rpc.call("process.start", argv=["true"], settings={"session": "s"}))


def test_what_has_ended_keeps_no_descriptor(rpc):
    """It is kept for those that attach later, by the hundreds."""
    pid = rpc.call("status")["result"]["pid"]

    def run_one():
        process = start(rpc, "true", detached=True, events=False, settings={"stdin": "stream"})
        assert rpc.call("process.wait", id=process)["result"]["ended"]

    def descriptors():
        return len(os.listdir(f"/proc/{pid}/fd"))
    run_one()
    before = descriptors()
    for _ in range(20):
        run_one()
    assert len(rpc.call("process.list")["result"]["processes"]) == 21
    assert wait_until(lambda: descriptors() <= before + 4), descriptors()


def rows_told(rpc):
    rpc.call("status")
    return [said["params"] for said in rpc.notices if said.get("method") == "audit.row"]


def test_rows_are_told(rpc):
    event(rpc, start(rpc, "true"), "ended")
    before = rpc.call("audit.follow", decision="result", session="s")["result"]["next"]
    for session in ("s", "other", "s"):
        event(rpc, start(rpc, "true", session=session), "ended")
    assert wait_until(lambda: len(rows_told(rpc)) == 2)
    told = rows_told(rpc)
    assert {row["row"] for row in told} == {"result"} and {row["session"] for row in told} == {"s"}
    since = rpc.call("audit.query", after=before, decision="result", session="s")["result"]
    assert since["rows"] == told and since["more"] is False, "from where it began on"
    assert rpc.call("audit.unfollow")["result"] == {}
    event(rpc, start(rpc, "true"), "ended")
    assert not wait_until(lambda: len(rows_told(rpc)) != 2, 0.5)
    assert rpc.call("audit.follow", decision="nothing")["error"]["data"]["class"] == "invalid_request"


def test_rows_by_parts(rpc):
    for _ in range(5):
        event(rpc, start(rpc, "true"), "ended")
    whole, parts, after = rpc.call("audit.query", last=1000)["result"], [], ""
    while (part := rpc.call("audit.query", after=after, limit=4)["result"])["rows"]:
        assert len(part["rows"]) <= 4 and part["more"] == (len(part["rows"]) == 4)
        parts, after = parts + part["rows"], part["next"]
    assert parts == whole["rows"] and len(parts) > 10 and part["next"] == after == whole["next"]
    day = after.partition(":")[0]
    assert rpc.call("audit.query", after="1970-01-01.jsonl:0",
                    limit=1)["result"]["rows"] == parts[:1], "a day that is gone"
    for wrong in ("x", f"{day}:3", f"{day}:-1", f"{day}:999999999", f"{day}:1x", ":5"):
        assert rpc.call("audit.query", after=wrong)["error"]["data"]["class"] == "invalid_request", wrong
    for more in ({"last": 3}, {"limit": 0}):
        assert "error" in rpc.call("audit.query", after="", **more)


def events_told(rpc):
    rpc.call("status")
    return [said["params"] for said in rpc.notices if said.get("method") == "event"]


def test_events(rpc):
    """Of all kinds, from now on; what others do is told, too."""
    event(rpc, start(rpc, "true"), "ended")
    assert rpc.call("events.subscribe", kinds=["proces"])["error"]["data"]["subject"] == "proces"
    assert "result" in rpc.call("events.subscribe")
    rpc.call("session.new", id="new")
    rpc.call("session.pause", id="new")
    process = start(rpc, "sleep 0.3", events=False, detached=True)
    asking = start(rpc, "true", settings={"read": "/var/tmp", "ask": True})
    card = event(rpc, asking, "asks")[0]["card"]
    assert wait_until(lambda: {("approval", "asked"),
                               ("process", "started")} <= {(each["kind"], each["change"]) for each in events_told(rpc)})
    rpc.call("approvals.answer", card=card, answer="deny")

    def told():
        return [(each["kind"], each["change"], each.get("session")
                 or each.get("process", each.get("approval", {})).get("id"))
                for each in events_told(rpc)]
    wanted = {("session", "paused", "new"), ("process", "started", process), ("process", "ended", process),
              ("process", "ended", asking), ("approval", "asked", card), ("approval", "settled", card)}
    assert wait_until(lambda: wanted <= set(told())), told()
    assert len(told()) == len(set(told())), "each once"
    assert rpc.call("events.subscribe", kinds=["session"])["result"]["next"]
    start(rpc, "true", session="later", events=False)
    rpc.call("session.resume", id="new")
    assert wait_until(lambda: any(each[1] == "resumed" for each in told()))
    assert {each[0] for each in told()[len(told()) - 1:]} == {"session"}
    assert rpc.call("events.unsubscribe")["result"] == {}
    count = len(told())
    rpc.call("session.pause", id="new")
    assert not wait_until(lambda: len(told()) != count, 0.6)


def test_questions_are_told_no_more(rpc):
    rpc.call("approvals.subscribe")
    assert rpc.call("approvals.unsubscribe")["result"] == {}
    process = start(rpc, "true", settings={"read": "/var/tmp", "ask": True})
    event(rpc, process, "asks")
    assert not wait_until(lambda: rpc.call("status")
                          and any(said.get("method") == "approvals.asked" for said in rpc.notices), 0.6)
    rpc.call("process.cancel", id=process, grace_ms=0)


def test_a_session_is_not_made_with_labels_that_are_none(rpc):
    assert rpc.call("session.new", id="s", labels={"": "x"})["error"]["data"]["class"] == "invalid_request"
    assert rpc.call("session.show", id="s")["error"]["data"]["class"] == "not_found"


def test_what_cannot_be_granted_is_not_passed_over(rpc):
    rpc.call("session.new", id="s")
    for key, value in (("env", "A=1"), ("view", "bare"), ("timeout", 5), ("tty", "10x10"), ("fresh", True),
                       ("secrets", "off"), ("no-caches", True)):
        error = rpc.call("session.update", id="s", grant={"read": "/etc/hostname", key: value})["error"]["data"]
        assert (error["class"], error["subject"]) == ("invalid_request", key), error
    assert rpc.call("session.show", id="s")["result"]["grants"] == []


def test_what_is_refused(rpc):
    def code(method, **params):
        return rpc.call(method, **params)["error"]["code"]
    assert code("nothing") == -32601 and code("process.stat") == -32602 and code("process.stat", id="gone") == -32000
    assert code("process.stat", id="gone", more=1) == -32602 and code("process.write", id="gone", data=3) == -32602
    assert rpc.call("process.attach", id="gone")["error"]["data"]["class"] == "not_found"
    refused = rpc.call("fs.read", path="/etc/hostname", settings={"session": "s"})["error"]["data"]
    assert refused["class"] == "capability_denied" and refused["setting"] == {"key": "read", "value": "/etc/hostname"}
    for line in (b"{", b"[]", b"[" * 100_000, b'{"jsonrpc":"2.0","id":{},"method":"hello"}',
                 b'{"jsonrpc":"2.0","id":1,"id":2,"method":"hello"}'):
        rpc.connection.sendall(line + b"\n")
        assert rpc.answer(None)["error"]["code"] in (-32700, -32600)
    for line, code in ((b'{"jsonrpc":"2.0","id":77,"method":"fs.read","params":{"path":"a\\u0000b"}}', -32602),
                       (b'{"jsonrpc":"2.0","id":78,"method":"status","params":{"a":1,"a":2}}', -32600)):
        rpc.connection.sendall(line + b"\n")
        assert rpc.answer(json.loads(line)["id"])["error"]["code"] == code
    assert "result" in rpc.call("hello")


def preflight(rpc, session="s", argv=("true",), **settings):
    return rpc.call("preflight", argv=list(argv), settings={"session": session, **settings})["result"]


def test_preflight_says_what_a_human_would_be_asked(rpc, cordon, tmp_path):
    assert preflight(rpc) == {"allowed": True}
    assert preflight(rpc, read="/etc/shadow")["asks"]["fs_read"] == ["/etc/shadow"]
    assert preflight(rpc, net="example.com:443")["asks"]["hosts"] == ["example.com:443"]
    assert preflight(rpc, timeout="100h")["allowed"] is False
    for option, value in (("read", "/etc/shadow"), ("net", "example.com:443")):
        process = start(rpc, "true", settings={option: value})
        assert event(rpc, process, "ended")[0]["error"]["class"] == "capability_denied"
    assert preflight(rpc, cwd="/etc")["error"]["class"] == "capability_denied"
    # Without a session the caller grants what it asks for.
    assert rpc.call("preflight", argv=["true"],
                    settings={"workspace": str(cordon.workspace), "read": "/etc/hosts"})["result"] == {"allowed": True}


def test_preflight_does_not_tell_what_is_there(rpc, cordon, tmp_path):
    """Also where a link in the workspace leads out."""
    workspace, data = tmp_path / "of-w", cordon.data / "cordon"
    secret = tmp_path / "secret"
    secret.mkdir()
    workspace.mkdir()
    rpc.call("session.new", id="w", settings={"workspace": str(workspace)})
    (secret / "there").write_text("x")
    (workspace / "to-there").symlink_to(secret / "there")
    (workspace / "to-gone").symlink_to(secret / "gone")
    (workspace / "up-there").symlink_to("../secret/there")
    (workspace / "up-gone").symlink_to("../secret/gone")
    for there, gone in ((secret / "there", secret / "gone"), (workspace / "to-there", workspace / "to-gone"),
                        (workspace / "up-there", workspace / "up-gone"), (data / "ledger", data / "gone"),
                        (secret / "there/x", secret / "gone/x")):
        for key in ("read", "write", "device", "socket", "cwd"):
            told = [json.dumps(preflight(rpc, "w", **{key: str(path)})).replace(str(path), "PATH")
                    for path in (there, gone)]
            assert told[0] == told[1] and json.loads(told[0])["allowed"] is False, (key, told)
        told = [json.dumps(preflight(rpc, "w", read=str(path), cwd=str(path))).replace(str(path), "PATH")
                for path in (there, gone)]
        assert told[0] == told[1], told
    assert "own data" in preflight(rpc, "w", read=str(data / "ledger"))["error"]["reason"]


def test_files(rpc):
    """Each file tool by its method, in one session's workspace."""
    def fs(tool, path, **params):
        answer = rpc.call(f"fs.{tool}", path=path, settings={"session": "s"}, **params)
        assert "result" in answer, (tool, answer)
        return answer["result"]
    fs("mkdir", "d")
    fs("write", "d/a", data="one\ntwo\n")
    fs("edit", "d/a", old="two", data_base64=base64.b64encode(b"\xff2").decode())
    assert base64.b64decode(fs("read", "d/a", bytes=True)["data_base64"]) == b"one\n\xff2\n"
    assert rpc.call("fs.edit", path="d/a", old="absent", data="", settings={"session": "s"})["error"]["code"] == -32000
    assert [each["name"] for each in fs("list", "d")["entries"]] == ["a"]
    assert "d/a" in json.dumps(fs("find", ".", globs=["a*"])) and "d/a" not in json.dumps(fs("find", ".", globs=["b*"]))
    [match] = fs("grep", ".", pattern="^o.e")["matches"]
    assert match["line"] == 1 and match["path"].endswith("d/a")
    assert "directory" in fs("stat", "d").values()
    walked = fs("walk", ".")
    assert [each["path"] for each in walked["entries"]] == ["d", "d/a"] and walked["more"] is False
    archive = fs("export", "d")
    fs("rename", "d/a", to="d/b")
    assert rpc.call("fs.rename", path="d/a", to="d/c",
                    settings={"session": "s"})["error"]["data"]["class"] == "not_found"
    fs("mkdir", "e")
    data = {key: archive[key] for key in ("data_base64",) if key in archive} or {"data": archive["data"]}
    assert fs("import", "e", **data)["files"] == 1
    assert base64.b64decode(fs("read", "e/a", bytes=True)["data_base64"]) == b"one\n\xff2\n"


def encoded(data):
    return base64.b64encode(data).decode()


def test_bytes_that_are_not_utf8_are_exact_everywhere(rpc):
    """Names, arguments, variables, output, of processes, jobs and files; given and told."""
    strange, settings = b"n\xffm", {"session": "s"}
    workspace = rpc.call("session.new", id="s")["result"]["workspace"]
    written = rpc.call("fs.write", path_base64=encoded(strange), data_base64=encoded(b"a\xfeb\n"),
                       settings=settings)["result"]
    assert written["path"].endswith("n\ufffdm") and base64.b64decode(written["path_base64"]).endswith(b"/" + strange)
    os.symlink(b"to\xfd", os.fsencode(workspace) + b"/link")
    listed = rpc.call("fs.list", path=".", settings=settings)["result"]["entries"]
    assert [base64.b64decode(each.get("target_base64", each.get("name_base64", "")))
            for each in listed] == [b"to\xfd", strange]
    walked = rpc.call("fs.walk", path=".", settings=settings)["result"]["entries"]
    assert base64.b64decode(walked[1]["path_base64"]) == strange
    [match] = rpc.call("fs.grep", path=".", pattern="b$", settings=settings)["result"]["matches"]
    assert base64.b64decode(match["path_base64"]) == strange and base64.b64decode(match["text_base64"]) == b"a\xfeb"
    [found] = rpc.call("fs.find", path=".", globs_base64=[encoded(b"n\xff*")], settings=settings)["result"]["entries"]
    assert base64.b64decode(found["path_base64"]) == strange
    assert rpc.call("fs.rename", path_base64=encoded(strange), to_base64=encoded(b"o\xff"), settings=settings)["result"]
    assert base64.b64decode(rpc.call("fs.read", path_base64=encoded(b"o\xff"),
                                     settings=settings)["result"]["data_base64"]) == b"a\xfeb\n"
    os.mkdir(os.fsencode(workspace) + b"/d\xff")
    argv = [b"sh", b"-c", b"printf %s \"$1\" \"$A\"; pwd", b"sh", b"1\xff"]
    process = rpc.call("process.start", argv_base64=[encoded(word) for word in argv],
                       environment_base64=[encoded(b"A=\xfc")],
                       settings={**settings, "pass-env": "A",
                                 "cwd_base64": encoded(os.fsencode(workspace) + b"/d\xff")})["result"]["id"]
    told = rpc.call("process.wait", id=process)["result"]["result"]
    assert base64.b64decode(told["stdout_base64"]) == b"1\xff\xfc" + os.fsencode(workspace) + b"/d\xff\n", told
    assert [base64.b64decode(word) for word in rpc.call("process.stat", id=process)["result"]["command_base64"]] == argv
    job = rpc.call("job.start", argv=["printf", "a\\377b"], settings=settings)["result"]["id"]
    assert rpc.call("job.wait", id=job)["result"]["state"] == "ended"
    assert base64.b64decode(rpc.call("job.poll", id=job)["result"]["stdout"]["data_base64"]) == b"a\xffb"
    for params in ({"path": "a", "path_base64": "YQ=="}, {"path_base64": "="}, {"path_base64": encoded(b"a\0b")},
                   {"path_base64": 3}, {}, {"path_base64": encoded(b"x" * 4097)}):
        assert rpc.call("fs.read", settings=settings, **params)["error"]["code"] == -32602, params
    for params in ({"argv_base64": "YQ=="}, {"argv_base64": ["="]}, {"argv_base64": [encoded(b"\0")]},
                   {"argv": ["a"], "argv_base64": ["YQ=="]}):
        assert rpc.call("process.start", **params)["error"]["code"] == -32602, params
    for settings in ({"cwd_base64": "="}, {"cwd_base64": True}, {"_base64": "YQ=="}, {"x" * 70 + "_base64": "YQ=="}):
        assert "error" in rpc.call("process.start", argv=["true"], settings=settings), settings


def test_checks(rpc, tmp_path):
    assert rpc.call("audit.verify")["result"]["intact"] in (True, False)
    run = start(rpc, "true")
    event(rpc, run, "ended")
    assert rpc.call("audit.verify")["result"]["intact"] is True
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text("[approval]\nqueue = true\n")
    bad.write_text("[approval]\nqueue = 3\n")
    assert rpc.call("config.check", file=str(good))["result"] == {}
    assert rpc.call("config.check", file=str(bad))["error"]["data"]["class"] == "config_invalid"
    assert any("approval" in json.dumps(each) for each in rpc.call("config.show")["result"]["settings"])
    assert rpc.call("manifest.check", file=str(tmp_path / "gone.toml"))["error"]["code"] == -32000
    checked = rpc.call("url.check", url="http://127.0.0.1:1/")["result"]
    assert checked["allowed"] is False and checked["report"]["host"] == "127.0.0.1"
    assert "error" in rpc.call("url.check", url="ftp://127.0.0.1/") or not rpc.call("url.check", url="ftp://127.0.0.1/")["result"]["allowed"]


def test_the_table_and_what_is_written_about_it(cordon):
    """docs/PROTOCOL.md and the schema that is installed are what rpc.discover says."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "rpc.discover"}) + "\n"
    table = json.loads(subprocess.run([BUILD / "cordon", "rpc"], env=cordon.env, input=line, capture_output=True,
                                      text=True, check=True, timeout=PATIENCE).stdout)["result"]
    assert json.loads((BUILD / "cordon-methods.json").read_text()) == table
    text = (ROOT / "docs/PROTOCOL.md").read_text()
    for method in table["methods"]:
        assert f"### {method['name']}\n" in text
        assert set(method["params"]["required"]) <= set(method["params"]["properties"])
        assert set(method["result"]["required"]) <= set(method["result"]["properties"]), method["name"]
        assert not (method["reads_only"] and method["destructive"]) and (method["idempotent"]
                                                                         or not method["reads_only"])
        either = {tuple(sorted(name for form in each["oneOf"] for name in form["required"]))
                  for each in method["params"]["allOf"]}
        assert all(encoded == f"{name}_base64" for name, encoded in either), method["name"]
    names = {method["name"]: method for method in table["methods"]}
    assert {name for name in names if names[name]["streams"]} == {after for notice in table["notices"]
                                                                  for after in notice["after"].split(", ")}
    for notice in table["notices"]:
        assert f"| `{notice['name']}` |" in text
    assert names["fs.write"]["params"]["allOf"] == [
        {"oneOf": [{"required": [each]}, {"required": [f"{each}_base64"]}]} for each in ("path", "data")]
    listed = names["fs.list"]["result"]["properties"]["entries"]["items"]
    assert listed["required"] == ["name", "type"] and listed["properties"]["size"] == {"type": ["integer", "null"]}
    assert names["job.wait"]["result"]["properties"]["command"] == {"type": ["array", "null"],
                                                                    "items": {"type": "string"}}


def test_who_answers(rpc):
    told = rpc.call("hello")["result"]
    assert told["protocol"] == 1 and {"process.event", "fs.changed", "event"} <= set(told["capabilities"]["notices"])
    assert "namespaces" in told["capabilities"]["drivers"] and told["limits"]["line"] == 48 << 20
    assert rpc.call("net.list")["result"]["groups"]


def test_the_rest_of_the_file_tools_and_of_what_runs(rpc):
    def fs(tool, path, **params):
        return rpc.call(f"fs.{tool}", path=path, settings={"session": "s"}, **params)
    fs("write", "a", data="one")
    assert fs("copy", "a", to="b")["result"]["copied"] == 1 and fs("read", "b")["result"]["data"] == "one"
    assert "error" in fs("copy", "a", to="b") and "result" in fs("copy", "a", to="b", replace=True)
    fs("mkdir", "d")
    assert fs("copy", "d", to="e")["error"] and fs("copy", "d", to="e", recursive=True)["result"]
    assert "result" in fs("remove", "a") and fs("stat", "a")["error"]["data"]["class"] == "not_found"
    fs("write", "d/x", data="")
    assert "error" in fs("remove", "d") and "result" in fs("remove", "d", recursive=True)
    job = rpc.call("job.start", argv=["sh", "-c", "until [ -e go ]; do sleep 0.02; done; exit 4"],
                   settings={"session": "s"})["result"]["id"]
    assert rpc.call("job.wait", id=job, timeout_ms=10)["result"]["state"] == "running"
    fs("write", "go", data="")
    assert rpc.call("job.wait", id=job)["result"]["exit_code"] == 4
    profile = rpc.call("profile", argv=["true"], settings={"session": "s"})["result"]["profile"]
    assert profile["network"] == "none" and profile["argv"] == ["true"] and "processes" in profile["walls"]
    process = start(rpc, "stty size; read line; stty size; read line", settings={"tty": "10x20"})
    assert "10 20" in event(rpc, process, "output")[1].decode()
    assert rpc.call("process.resize", id=process, rows=30, columns=40)["result"] == {}
    rpc.call("process.write", id=process, data="\n")
    output = ""
    while "30 40" not in output:
        output += event(rpc, process, "output")[1].decode()
    listed = {each["id"]: each for each in rpc.call("process.list")["result"]["processes"]}
    assert listed[process]["state"] == "running" and listed[process]["session"] == "s" and listed[process]["command"][0] == "sh"
    rpc.call("process.cancel", id=process, grace_ms=0)
    doctor = rpc.call("doctor")["result"]
    assert doctor["holds"] is doctor["report"]["holds"] and {"name", "available"} & set(doctor["report"]["drivers"][0])


def test_a_session_asks_for_more(queue, rpc, tmp_path):
    (tmp_path / "more").mkdir()
    settings = {"session": "s", "read": str(tmp_path / "more")}
    rpc.send("capability.request", "ask", settings=settings)
    assert wait_until(lambda: rpc.call("approvals.list")["result"]["approvals"])
    [card] = rpc.call("approvals.list")["result"]["approvals"]
    rpc.call("approvals.answer", card=card["id"], hash=card["hash"], answer="session")
    assert rpc.answer("ask")["result"] == {}
    assert preflight(rpc, read=settings["read"]) == {"allowed": True}
    assert "error" in rpc.call("capability.request", settings={"session": "s"})


# ---- watched directories ---------------------------------------------------------------------------------------------

def changes_told(rpc, watch):
    rpc.call("status")
    return [said["params"] for said in rpc.notices if said.get("method") in ("fs.changed", "fs.ended")
            and said["params"]["watch"] == watch]


def paths_told(rpc, watch):
    return {(each["path"], each["change"]) for told in changes_told(rpc, watch) for each in told.get("changes", [])}


@pytest.fixture
def tree(rpc):
    """A session's workspace with something in it."""
    place = pathlib.Path(rpc.call("session.new", id="s")["result"]["workspace"])
    (place / "d/e").mkdir(parents=True)
    (place / "d/e/old").write_text("x")
    return place


def watch(rpc, path=".", **params):
    answer = rpc.call("fs.watch", path=path, settings={"session": "s"}, **params)
    assert "result" in answer, answer
    return answer["result"]["watch"]


def test_what_changes_in_a_directory_is_told(rpc, tree):
    watched, shallow = watch(rpc), watch(rpc, depth=1)
    process = start(rpc, "echo a >made; mkdir new; echo b >new/inside; echo more >>d/e/old; mv made d/moved; rm d/moved; ln -s /etc link")
    assert event(rpc, process, "ended")[0]["result"]["exit_code"] == 0
    wanted = {("made", "created"), ("new", "created"), ("new/inside", "created"), ("d/e/old", "changed"),
              ("made", "removed"), ("d/moved", "created"), ("d/moved", "removed"), ("link", "created")}
    assert wait_until(lambda: wanted <= paths_told(rpc, watched)), paths_told(rpc, watched)
    assert wait_until(lambda: ("link", "created") in paths_told(rpc, shallow))
    assert {path for path, _ in paths_told(rpc, shallow)} == {"made", "new", "link"}
    row = changes_told(rpc, watched)[0]["audit_id"]
    assert [each["row"] for each in rpc.call("audit.query", id=row)["result"]["rows"]] == ["intent", "result"]
    # A directory that has come by another name is watched by that, and no longer by the old one.
    (tree / "new").rename(tree / "d/new")
    assert wait_until(lambda: ("d/new", "created") in paths_told(rpc, watched))
    (tree / "d/new/late").write_text("")
    assert wait_until(lambda: ("d/new/late", "created") in paths_told(rpc, watched))
    assert not any(path == "new/late" for path, _ in paths_told(rpc, watched))
    os.mkdir(os.fsencode(tree) + b"/b\xff")
    assert wait_until(lambda: any(base64.b64decode(each.get("path_base64", "")) == b"b\xff"
                                  for told in changes_told(rpc, watched)
                                  for each in told["changes"]))
    assert rpc.call("fs.unwatch", watch=watched)["result"] == {}
    count = len(changes_told(rpc, watched))
    (tree / "after").write_text("")
    assert wait_until(lambda: ("after", "created") in paths_told(rpc, shallow)) and len(changes_told(rpc, watched)) == count
    assert rpc.call("fs.unwatch", watch=watched)["error"]["data"]["class"] == "not_found"


def test_hidden_names_are_not_told_of(rpc, tree):
    watched = watch(rpc)
    (tree / ".ssh").mkdir()
    (tree / ".ssh/id_rsa").write_text("secret")
    (tree / "d/.env").write_text("A=1")
    (tree / "plain").write_text("")
    assert wait_until(lambda: ("plain", "created") in paths_told(rpc, watched))
    assert not any("ssh" in path or "env" in path for path, _ in paths_told(rpc, watched)), paths_told(rpc, watched)


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced", "session ended", "session paused"])
def test_a_watch_on_what_vanishes_ends_and_says_so(rpc, tree, how):
    watched = watch(rpc, "d")
    if how == "removed":
        shutil.rmtree(tree / "d")
    elif how.startswith("re"):
        (tree / "d").rename(tree / "other")
        if how == "replaced":
            (tree / "d").mkdir()
    else:
        rpc.call("session.end" if how == "session ended" else "session.pause", id="s")
        (tree / "d/made").write_text("")
    assert wait_until(lambda: changes_told(rpc, watched)
                      and (changes_told(rpc, watched)[-1].get("ended") or "error" in changes_told(rpc, watched)[-1]))
    last = changes_told(rpc, watched)[-1]
    assert last.get("why") or last["error"]["class"] == how.replace(" ", "_"), last
    assert wait_until(lambda: "error" in rpc.call("fs.changes", watch=watched, timeout_ms=0)), "it is gone"


def test_what_cannot_be_watched(rpc, tree):
    def refused(path, **settings):
        return rpc.call("fs.watch", path=path, settings={"session": "s", **settings})["error"]["data"]["class"]
    assert refused("/etc") == "capability_denied" and refused("gone") == "not_found" and refused("d/e/old") == "invalid_request"
    (tree / ".ssh").mkdir()
    assert refused(".ssh") == "capability_denied"
    ids = [watch(rpc, "d") for _ in range(40)]
    assert len(set(ids)) == 40
    for each in ids:
        rpc.call("fs.unwatch", watch=each)


def test_a_watch_ends_with_its_connection(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as other:
        other.call("session.new", id="s")
        with daemon.rpc() as rpc:
            watched = watch(rpc)
            assert other.call("fs.changes", watch=watched, timeout_ms=0)["result"]["ended"] is False
        assert wait_until(lambda: other.call("fs.changes", watch=watched,
                                             timeout_ms=0).get("error", {}).get("data", {}).get("class") == "not_found")


def test_more_than_can_be_watched_is_said(rpc, tree):
    for each in range(4200):
        (tree / f"many/{each}").mkdir(parents=True)
    answer = rpc.call("fs.watch", path="many", settings={"session": "s"})["result"]
    assert answer["missed"] is True
    assert rpc.call("fs.watch", path="many", settings={"session": "s"}, depth=1)["result"]["missed"] is False
    watched = watch(rpc, "d")
    (tree / "d/e/later").write_text("")
    assert wait_until(lambda: ("e/later", "created") in paths_told(rpc, watched))
