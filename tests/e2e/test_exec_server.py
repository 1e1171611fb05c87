"""cordon exec-server, as Codex 0.169.0 speaks to it: lines of JSON-RPC without a version. What Codex itself makes of it
is tested by make test-agents."""
import base64
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading

import pytest

from conftest import PATIENCE, descendants, is_running, wait_until
from lab import lack, rows


def chunk(data):
    return base64.b64encode(data).decode()


class Codex:
    def __init__(self, cordon, workspace, home, *options):
        self.process = cordon.popen("exec-server", f"--workspace={workspace}", "--agent-id=1", *options,
                                    stdin=subprocess.PIPE, cwd=workspace, env={**cordon.env, "HOME": str(home)})
        self.workspace, self.number = workspace, 0
        self.messages, self.kept = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def write(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def wait(self, wanted):
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

    def call(self, method, **params):
        self.number += 1
        number = self.number
        self.write({"id": number, "method": method, "params": params})
        return self.wait(lambda message: message.get("id") == number)

    def uri(self, path):
        return f"file://{path}" if str(path).startswith("/") else f"file://{self.workspace}/{path}"

    def start(self, name, *argv, cwd=None, **more):
        answer = self.call("process/start", processId=name, argv=list(argv), cwd=self.uri(cwd or self.workspace),
                           tty=False, **{"arg0": None, "env": {"NAME": "v a"}, **more})
        assert answer.get("result", {}).get("processId") == name, answer

    def ended(self, name):
        """All that was said of it: output by stream, and its status."""
        said = {"stdout": b"", "stderr": b"", "pty": b""}
        before = 0
        while True:
            message = self.wait(lambda each: each.get("params", {}).get("processId") == name)
            params = message["params"]
            assert "jsonrpc" not in message and params["seq"] == before + 1
            before = params["seq"]
            if message["method"] == "process/output":
                said[params["stream"]] += base64.b64decode(params["chunk"])
            elif message["method"] == "process/exited":
                status, self.denied = params["exitCode"], params["sandboxDenied"]
            else:
                assert message["method"] == "process/closed"
                return status, said

    def run(self, script, name="p", **more):
        self.start(name, "/bin/bash", "-lc", script, **more)
        return self.ended(name)


@pytest.fixture
def project(tmp_path):
    project = tmp_path / "home/pro ject"
    project.mkdir(parents=True)
    return project


@pytest.fixture
def codex(cordon, project):
    codex = Codex(cordon, project, project.parent)
    yield codex
    codex.process.stdin.close()
    assert codex.process.wait(PATIENCE) == 0
    codex.process.stdout.close()
    codex.process.stderr.close()


def test_the_ids_of_thread_and_call_are_in_the_ledger(cordon, codex):
    assert codex.run("true", metadata={"threadId": "t-1", "toolCallId": "call_2", "more": "left out"})[0] == 0
    assert [json.loads(row["client_ref"]) for row in rows(cordon)
            if row["row"] == "intent"] == [{"threadId": "t-1", "toolCallId": "call_2"}]


def test_a_sandbox_that_nothing_needs_is_lowered(cordon, codex):
    """The server stays, and looks by itself."""
    if lack("mount-namespace"):
        pytest.skip(lack("mount-namespace"))
    _, said = codex.run("echo $CORDON_SESSION_ID")

    def is_up():
        return any(pathlib.Path(f"/proc/{pid}/comm").read_text() == "cordon-init\n" and is_running(pid)
                   for pid in descendants(codex.process.pid))
    assert is_up()
    assert cordon("session", "end", said["stdout"].decode().strip()).returncode == 0
    assert wait_until(lambda: not is_up()) and codex.process.poll() is None


def test_the_opening(codex, project):
    assert codex.call("initialize", clientName="x", resumeSessionId=None)["result"]["sessionId"]
    codex.write({"method": "initialized", "params": {}})
    codex.write({"id": 50, "method": "environment/info", "params": None})
    info = codex.wait(lambda message: message.get("id") == 50)["result"]
    assert info["shell"] == {"name": "bash", "path": "/bin/bash"} and info["cwd"] == str(project.as_uri())
    assert codex.call("environment/status")["result"] == {"status": "ready"}
    roots = codex.call("capabilityRoots/discoverV1",
                       roots=[{"id": "a", "path": "file:///x", "sandbox": None}])["result"]["roots"]
    assert roots[0]["id"] == "a" and roots[0]["error"] and not roots[0]["skills"]
    assert codex.call("http/request", url="http://127.0.0.1")["error"]["code"] == -32601


def test_commands(cordon, codex, project):
    status, said = codex.run("echo $NAME; pwd; echo err >&2; echo kept > /tmp/f; touch here; exit 3")
    assert (status, said["stdout"], said["stderr"]) == (3, f"v a\n{project}\n".encode(),
                                                        b"err\n") and (project / "here").exists()
    assert codex.run("cat /tmp/f; kill -9 $$", "second") == (137, {"stdout": b"kept\n", "stderr": b"", "pty": b""})
    assert {row["session"] for row in rows(cordon)
            if row["row"] == "intent"} == {codex.run("printf %s $CORDON_SESSION_ID", "x")[1]["stdout"].decode()}
    # Whatever it says about its own sandbox.
    wish = {"permissions": {"type": "disabled"}, "cwd": "file:///"}
    assert codex.run("touch /etc/cordon-test", "wish", sandbox=wish, enforceManagedNetwork=False)[0] != 0
    codex.run(f"touch {project.parent}/out", "home", sandbox=wish)
    assert not (project.parent / "out").exists()


def test_what_is_refused_is_told_to_the_model(codex, project):
    status, said = codex.run("true", cwd="/etc")
    assert status == 125 and b"cordon: " in said["stderr"] and b"fix:" in said["stderr"]
    for number, bad in enumerate(({"argv": []}, {"argv": ["true", 1]}, {"argv": "true"}, {"cwd": "/tmp"},
                                  {"cwd": "file:///a%00b"}, {"cwd": 1}, {"env": {"A": 1}},
                                  {"argv": ["/no/such/program"]})):
        name = f"bad-{number}"
        answer = codex.call("process/start", **{"processId": name, "argv": ["/bin/true"], "cwd": codex.uri(project),
                                                "env": {}, "tty": False, "arg0": None, **bad})
        assert answer["result"] == {"processId": name}
        status, said = codex.ended(name)
        assert status in (125, 127) and said["stderr"].startswith(b"cordon: "), (bad, said)
    assert codex.run("echo still", "after")[1]["stdout"] == b"still\n"


def test_reading(codex):
    codex.start("p", "/bin/bash", "-c", "echo one; read line; echo $line; exit 5", pipeStdin=True)
    first = codex.call("process/read", processId="p", afterSeq=0, waitMs=60000, maxBytes=None)["result"]
    assert base64.b64decode(first["chunks"][0]["chunk"]) == b"one\n" and not first["exited"] and first["exitCode"] is None
    assert codex.call("process/read", processId="p", afterSeq=first["nextSeq"] - 1, waitMs=1)["result"]["chunks"] == []
    codex.number += 1
    waiting = codex.number
    codex.write({"id": waiting, "method": "process/read",
                 "params": {"processId": "p", "afterSeq": first["nextSeq"] - 1, "waitMs": 60000}})
    assert codex.call("process/write", processId="p", chunk=chunk(b"two\n"),
                      writeId="1")["result"] == {"status": "accepted"}
    answer = codex.wait(lambda message: message.get("id") == waiting)["result"]
    assert base64.b64decode(answer["chunks"][0]["chunk"]) == b"two\n"
    codex.ended("p")
    last = codex.call("process/read", processId="p")["result"]
    assert last["closed"] and last["exitCode"] == 5 and len(last["chunks"]) == 2
    assert len(codex.call("process/read", processId="p", maxBytes=1)["result"]["chunks"]) == 1
    assert codex.call("process/write", processId="p", chunk=chunk(b"x"),
                      writeId="2")["result"] == {"status": "stdinClosed"}
    assert codex.call("process/write", processId="q", chunk=chunk(b"x"),
                      writeId="3")["result"] == {"status": "unknownProcess"}
    assert codex.call("process/read", processId="q")["error"]["code"] == -32600
    assert codex.call("process/write", processId="p", chunk="*", writeId="4")["error"]["code"] == -32602


ASKING = """[approval]
queue = true
[[policy.rules]]
tool = "run"
match = "/**/true"
decision = "ask"
"""


@pytest.fixture
def asking(cordon, project):
    """One whose configuration asks a person about the program `true`, and a way to be that person."""
    config = project.parent.parent / "asking.toml"
    config.write_text(ASKING)
    codex = Codex(cordon, project, project.parent, f"--config={config}")

    def person(*words):
        return subprocess.run(cordon.argv("approvals", *words, "--config", config),
                              env={**cordon.env, "HOME": str(project.parent)}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
    codex.cards = lambda: json.loads(person("list", "--json").stdout)["approvals"]
    codex.answer = lambda word: person(word, codex.cards()[0]["id"])
    yield codex
    if not codex.process.stdin.closed:
        codex.process.stdin.close()
    assert codex.process.wait(PATIENCE) == 0
    codex.process.stdout.close()
    codex.process.stderr.close()


def still_goes_on(codex, name):
    """Output, status, files, input and the end of other processes, while a person is asked."""
    codex.start(name, "/bin/sh", "-c", "echo begun; read line; echo got $line; exec sleep 1000", pipeStdin=True)
    first = codex.call("process/read", processId=name, afterSeq=0, waitMs=60000)["result"]
    assert base64.b64decode(first["chunks"][0]["chunk"]) == b"begun\n"
    assert codex.call("process/write", processId=name, chunk=chunk(b"it\n"))["result"] == {"status": "accepted"}
    second = codex.call("process/read", processId=name, afterSeq=first["nextSeq"] - 1, waitMs=60000)["result"]
    assert base64.b64decode(second["chunks"][0]["chunk"]) == b"got it\n"
    assert codex.call("environment/status")["result"] == {"status": "ready"}
    assert "result" in codex.call("fs/writeFile", path=codex.uri(name), dataBase64=chunk(b"x"))
    assert codex.call("process/terminate", processId=name)["result"] == {"running": True}
    assert codex.ended(name)[0] == 137


def test_nothing_else_waits_while_a_person_is_asked_about_a_command(asking):
    asking.start("asked", "/bin/true")
    assert wait_until(asking.cards)
    still_goes_on(asking, "beside")
    assert asking.call("process/read", processId="asked")["result"]["exited"] is False and asking.cards()
    assert asking.answer("approve").returncode == 0
    assert asking.ended("asked")[0] == 0
    asking.start("denied", "/bin/true", "again")
    assert wait_until(asking.cards)
    asking.answer("deny")
    status, said = asking.ended("denied")
    assert status == 125 and b"cordon: " in said["stderr"]


def test_nothing_else_waits_while_a_person_is_asked_about_a_file(asking, project):
    outside = project.parent / "outside.txt"
    outside.write_text("granted")
    asking.number += 1
    number = asking.number
    asking.write({"id": number, "method": "fs/readFile", "params": {"path": asking.uri(outside)}})
    assert wait_until(asking.cards)
    still_goes_on(asking, "beside")
    assert asking.answer("approve").returncode == 0
    answer = asking.wait(lambda message: message.get("id") == number)
    assert base64.b64decode(answer["result"]["dataBase64"]) == b"granted"


@pytest.mark.parametrize("how", ["terminate", "interrupt", "close"])
def test_who_is_asked_is_asked_no_more(cordon, asking, project, how):
    """A command that waits for its answer can be ended, and never runs; neither does it when the client goes."""
    asking.start("asked", "/bin/true")
    asking.number += 1
    asking.write({"id": asking.number, "method": "fs/readFile", "params": {"path": "file:///etc/hostname"}})
    assert wait_until(asking.cards)
    if how == "close":
        asking.process.stdin.close()
        assert asking.process.wait(PATIENCE) == 0
    else:
        method, more = ("process/terminate", {}) if how == "terminate" else ("process/signal", {"signal": "interrupt"})
        assert "result" in asking.call(method, processId="asked", **more)
        assert asking.ended("asked")[0] == 125
    assert wait_until(lambda: not [card for card in asking.cards() if "true" in json.dumps(card)])
    assert not [row for row in rows(cordon) if row["row"] == "intent" and row["program"].endswith("/true")]


def test_a_write_that_is_repeated_is_not_written_twice(codex):
    codex.start("p", "/bin/sh", "-c", "cat", pipeStdin=True)
    for number, text in (("1", "a"), ("1", "a"), ("2", "b"), ("1", "a"), ("2", "b"), ("3", "c\n")):
        assert codex.call("process/write", processId="p", chunk=chunk(text.encode()),
                          writeId=number)["result"] == {"status": "accepted"}
    seen = b""
    while not seen.endswith(b"\n"):
        said = codex.call("process/read", processId="p", afterSeq=0, waitMs=60000)["result"]
        seen = b"".join(base64.b64decode(each["chunk"]) for each in said["chunks"])
    assert seen == b"abc\n"
    for wrong in (3, "x" * 300, ["1"]):
        assert codex.call("process/write", processId="p", chunk=chunk(b"x"), writeId=wrong)["error"]["code"] == -32602
    codex.call("process/terminate", processId="p")
    codex.ended("p")


def test_what_cannot_be_kept_is_refused_by_name(codex, project):
    """A client that asks for it would go by what it did not get."""
    for name, wrong in (("arg0", {"arg0": "other"}), ("arg0", {"arg0": 3}), ("envPolicy", {"envPolicy": "all"}),
                        ("future", {"envPolicy": {"future": 1}}), ("envPolicy.set", {"envPolicy": {"set": []}})):
        answer = codex.call("process/start", **{"processId": name + str(wrong), "argv": ["/bin/true"],
                                                "cwd": codex.uri(project), "env": {}, "tty": False, **wrong})
        assert "result" in answer
        status, said = codex.ended(name + str(wrong))
        assert status == 125 and name.encode() in said["stderr"], said
    codex.start("same", "/bin/true", arg0="/bin/true")
    assert codex.ended("same")[0] == 0
    policy = {"inherit": "core", "ignoreDefaultExcludes": False, "exclude": [], "includeOnly": [],
              "set": {"NAME": "of the policy", "MORE": "m"}}
    status, said = codex.run("echo $NAME $MORE", "policy", envPolicy=policy)
    assert said["stdout"] == b"v a m\n"
    assert codex.call("initialize", clientName="x",
                      resumeSessionId="another")["error"]["message"].startswith("resumeSessionId")
    own = codex.call("initialize", clientName="x", resumeSessionId=None)["result"]["sessionId"]
    assert codex.call("initialize", clientName="x", resumeSessionId=own)["result"] == {"sessionId": own}


def test_signals_and_terminals(codex):
    codex.start("p", "/bin/bash", "-c", "trap 'echo int; exit 4' INT; echo ready; while :; do sleep 0.1; done")
    codex.call("process/read", processId="p", afterSeq=0, waitMs=60000)
    assert codex.call("process/signal", processId="p", signal="interrupt")["result"] == {}
    status, said = codex.ended("p")
    assert status == 4 and said["stdout"] == b"ready\nint\n"
    codex.start("q", "/bin/sleep", "1000")
    assert codex.call("process/terminate", processId="q")["result"] == {"running": True}
    assert codex.ended("q")[0] == 137
    assert codex.call("process/terminate", processId="q")["result"] == {"running": False}
    codex.call("process/start", processId="t", argv=["/bin/bash", "-c", "tty; read x; echo got $x"],
               cwd=codex.uri(codex.workspace), env={}, tty=True, arg0=None)
    codex.call("process/write", processId="t", chunk=chunk(b"line\n"), writeId="1")
    status, said = codex.ended("t")
    assert status == 0 and b"/dev/pts/" in said["pty"] and b"got line" in said["pty"]


def test_much_output(codex):
    status, said = codex.run("head -c 5000000 /dev/zero")
    assert status == 0 and said["stdout"] == b"\0" * 5000000
    kept = codex.call("process/read", processId="p")["result"]
    assert sum(len(base64.b64decode(each["chunk"])) for each in kept["chunks"]) <= 1 << 20


def test_files(codex, project):
    (project / "f").write_bytes(b"a\0\xff")
    (project / "link").symlink_to("/etc/passwd")
    told = codex.call("fs/getMetadata", path=codex.uri("f"), sandbox=None)["result"]
    assert told["isFile"] and not told["isDirectory"] and told["size"] == 3 and abs(told["modifiedAtMs"] / 1000 - os.stat(project / "f").st_mtime) < 1
    assert base64.b64decode(codex.call("fs/readFile", path=codex.uri("f"))["result"]["dataBase64"]) == b"a\0\xff"
    assert codex.call("fs/createDirectory", path=codex.uri("x/y/z"), recursive=True)["result"] == {}
    assert codex.call("fs/createDirectory", path=codex.uri("x/y"), recursive=True)["result"] == {}
    assert codex.call("fs/createDirectory", path=codex.uri("x/y"), recursive=False)["error"]["code"] == -32600
    assert codex.call("fs/writeFile", path=codex.uri("x/y/new"), dataBase64=chunk(b"\0data"))["result"] == {}
    assert (project / "x/y/new").read_bytes() == b"\0data"
    assert codex.call("fs/copy", sourcePath=codex.uri("x/y/new"), destinationPath=codex.uri("copied"),
                      recursive=False)["result"] == {}
    assert (project / "copied").read_bytes() == b"\0data"
    listed = codex.call("fs/readDirectory", path=codex.uri("x"))["result"]["entries"]
    assert listed == [{"fileName": "y", "isDirectory": True, "isFile": False}]
    assert codex.call("fs/canonicalize", path=codex.uri("x/../f"))["result"]["path"] == (project / "f").as_uri()
    assert codex.call("fs/open", path=codex.uri("f"), handleId="h")["result"] == {"handleId": "h"}
    assert codex.call("fs/readBlock", handleId="h", offset=1, len=1)["result"] == {"chunk": chunk(b"\0"), "eof": False}
    assert codex.call("fs/readBlock", handleId="h", offset=1,
                      len=9)["result"] == {"chunk": chunk(b"\0\xff"), "eof": True}
    assert codex.call("fs/close", handleId="h")["result"] == {}
    assert codex.call("fs/readBlock", handleId="h", offset=0, len=1)["error"]["code"] == -32600
    assert codex.call("fs/remove", path=codex.uri("x"), recursive=True)["result"] == {} and not (project / "x").exists()
    assert codex.call("fs/remove", path=codex.uri("x"))["result"] == {}
    assert codex.call("fs/remove", path=codex.uri("x"), force=False)["error"]["code"] == -32004
    assert codex.call("fs/getMetadata", path=codex.uri("x"))["error"]["code"] == -32004


def test_trees_are_walked_and_copied(codex, project):
    (project / "tree/deep/er").mkdir(parents=True)
    (project / "tree/run").write_text("#!/bin/sh\n")
    (project / "tree/run").chmod(0o755)
    (project / "tree/deep/a b").write_text("text")
    (project / "tree/link").symlink_to("run")
    (project / "tree/.env").write_text("KEY=1\n")
    found = codex.call("fs/walk", path=codex.uri("tree"), options={"maxDepth": 64, "maxEntries": 50000})["result"]
    root = (project / "tree").as_uri()
    assert (found["errors"], found["truncated"]) == ([], False)
    assert sorted((each["path"], each["kind"]) for each in found["entries"]) == [
        (f"{root}/deep", "directory"), (f"{root}/deep/a%20b", "file"), (f"{root}/deep/er", "directory"),
        (f"{root}/run", "file")]
    few = codex.call("fs/walk", path=codex.uri("tree"), options={"maxDepth": 1, "maxEntries": 1})["result"]
    assert len(few["entries"]) <= 1 and few["truncated"]
    assert codex.call("fs/walk", path=codex.uri("none"), options={})["error"]["code"] == -32004
    assert codex.call("fs/copy", sourcePath=codex.uri("tree/run"), destinationPath=codex.uri("run"),
                      recursive=False)["result"] == {}
    assert os.stat(project / "run").st_mode & 0o777 == 0o755
    assert codex.call("fs/copy", sourcePath=codex.uri("tree/run"), destinationPath=codex.uri("run"),
                      recursive=False)["result"] == {}
    assert "error" in codex.call("fs/copy", sourcePath=codex.uri("tree/deep"), destinationPath=codex.uri("other"),
                                 recursive=False)
    assert codex.call("fs/copy", sourcePath=codex.uri("tree/deep"), destinationPath=codex.uri("other"),
                      recursive=True)["result"] == {}
    assert (project / "other/a b").read_text() == "text" and (project / "other/er").is_dir()


def test_a_denial_that_explains_a_failure_is_told_as_one(codex, project):
    (project / ".env").write_text("KEY=1\n")
    for number, (script, denied) in enumerate((("exit 3", False), ("true", False), ("touch /etc/x", True),
                                               ("touch /etc/x; true", False), ("cat /srv/none", True))):
        codex.run(script, name=f"d{number}")
        assert codex.denied == denied, script
        read = codex.call("process/read", processId=f"d{number}", afterSeq=0)["result"]
        assert read["sandboxDenied"] == denied
    codex.run("true", name="refused", cwd="/etc")
    assert codex.denied


def test_a_refused_variable_is_left_out_and_said(codex):
    sent = {"NAME": "kept", "PYTHONPATH": "/x", "LD_LIBRARY_PATH": "/y", "CORDON_SESSION_ID": "z"}
    status, said = codex.run("echo $NAME${PYTHONPATH+1}${LD_LIBRARY_PATH+1}; test \"$CORDON_SESSION_ID\" != z",
                             env=sent)
    assert (status, said["stdout"], said["stderr"]) == (0, b"kept\n", b"")
    status, said = codex.run("exit 3", name="q", env=sent)
    assert status == 3 and all(name.encode() in said["stderr"] for name in list(sent)[1:]), said


def test_what_the_policy_hides_is_not_told(codex, project):
    """It is for a person to know; a model would ask for it."""
    (project / ".env").write_text("SECRET=1")
    codex.start("p", "/bin/sh", "-c", "cat .env; exit 3")
    status, said = codex.ended("p")
    assert status == 3 and b"masked" not in said["stderr"] and b"--read" not in said["stderr"] and b"SECRET" not in said["stdout"], said
    for method, more in (("fs/readFile", {}), ("fs/getMetadata", {}), ("fs/writeFile", {"dataBase64": chunk(b"x")}),
                         ("fs/remove", {})):
        answer = codex.call(method, path=codex.uri(".env"), **more)
        assert "deny" not in json.dumps(answer) and "hidden" not in json.dumps(answer) and "capabilities" not in json.dumps(answer), answer
    assert (project / ".env").read_text() == "SECRET=1"


def test_files_outside_are_refused(cordon, codex, project):
    secret = project.parent / "outside"
    secret.write_text("outside")
    (project / "link").symlink_to(secret)
    for path in (secret, project / "link", f"{project}/../outside", "/etc/shadow"):
        answer = codex.call("fs/readFile", path=codex.uri(path))
        assert answer["error"]["code"] == -32600 and "outside" not in answer.get("result", {}), answer
        assert codex.call("fs/writeFile", path=codex.uri(path), dataBase64=chunk(b"x"))["error"]["code"] == -32600
    assert secret.read_text() == "outside"
    assert codex.call("fs/copy", sourcePath=codex.uri(secret), destinationPath=codex.uri("c"),
                      recursive=False)["error"]["code"] == -32600
    assert [row["row"] for row in rows(cordon)].count("denial") == 9


def test_garbage(codex):
    for line in (b"", b"{", b"[]", b"null", b"\0", b"\xff\xfe", b"[" * 100000, b'{"id":{},"method":"x"}',
                 b'{"id":1,"id":2,"method":"initialize"}', b'{"id":"' + b"x" * 500 + b'","method":"initialize"}',
                 b'{"id":7,"method":"initialize","params":[]}', b'{"method":7}', b'{"id":9}'):
        codex.write(line)
    for method in ("", "process", "fs/readFile\0", "process/start", "process/read", "process/signal", "fs/open",
                   "fs/readFile", "fs/copy", "fs/readBlock", "fs/writeFile"):
        assert codex.call(method)["error"]["code"] < 0
    assert codex.call("process/start", processId="x" * 300, argv=["true"])["error"]
    assert codex.call("fs/readFile", path="file://other/etc/passwd")["error"]["code"] == -32602
    assert codex.call("environment/status")["result"]


def test_nothing_is_left_when_it_ends(cordon, project):
    for end in ("close", "kill"):
        codex = Codex(cordon, project, project.parent)
        codex.start("p", "/bin/sleep", "1000")
        assert wait_until(lambda: descendants(codex.process.pid))
        children = descendants(codex.process.pid)
        if end == "close":
            codex.process.stdin.close()
        else:
            codex.process.send_signal(signal.SIGKILL)
        codex.process.wait(PATIENCE)
        assert wait_until(lambda: not any(map(is_running, children)))
        codex.process.stdout.close()
        codex.process.stderr.close()
        if end == "kill":
            codex.process.stdin.close()
