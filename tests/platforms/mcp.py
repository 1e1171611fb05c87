"""cordon.exe mcp under wine, over standard input and output, in both eras of the protocol. What cannot be had on Windows is not among
its tools. The walls that wine does not enforce are left out, as in program.py."""
import base64
import json
import pathlib
import re
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from mcp_client import MODERN, PATIENCE, Client  # noqa: E402: found by the line before

TOOLS = ["exec", "read_file", "write_file", "edit_file", "list_directory", "find_files", "grep", "request_capability", "preflight"]
GARBAGE = [b"no JSON", b"[]", b"\0\0", b"\xff\xfe{}", b"{" * 5000, b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}']


class Mcp:
    def __init__(self, program, network):
        self.program, self.network, self.child = program, network, program.child
        self.clients, self.others = [], ()

    def all(self):
        self.others = {row["id"] for row in self.sessions()}
        for name in ("shipped", "listed", "commands", "time", "cancelled", "crowd", "files", "asking", "hosts", "garbage", "end", "end_of_a_command",
                     "abandoned"):
            try:
                getattr(self, name)()
            except Exception as error:  # an answer that did not come, or is another
                self.check(f"{name} is tried to its end", ("error", repr(error), ""))
            for client in self.clients:
                client.process.kill()
                client.process.wait()
            self.clients = []

    def check(self, name, *wanted):
        self.program.check(f"mcp: {name}", *wanted)

    def start(self, *options, walled=False, **settings):
        program = self.program

        class Started:
            def popen(self, *words, wrapper=(), **streams):
                path = program.wine.path(program.place / ("cordon.exe" if walled else "cordon-unwalled.exe"))
                return program.wine.start([path, *words], {"CORDON_UNWALL": ",".join(program.OF_WINE)}, program.project, **streams)
        self.clients.append(Client(Started(), *options, **settings))
        return self.clients[-1]

    def both(self, *options, **settings):
        return [self.start(*options, era=era, **settings) for era in ("legacy", "modern")]

    def sessions(self):
        """But for those that other tests have made."""
        listed = json.loads(self.program.cordon("session", "list", "--json")[1])["sessions"]
        return [row for row in listed if row["id"] not in self.others]

    def is_gone(self, process):
        """Within the time that what must happen may take."""
        until = time.monotonic() + PATIENCE
        while (status := self.program.run("alive", process)[0]) == 1 and time.monotonic() < until:
            pass
        return status == 0

    def begin(self, client, *words):
        """A command that says a word of its own first: its call, and that word."""
        number = client.send("tools/call", name="exec", arguments={"argv": [self.child, *words]}, _meta={"progressToken": 1})
        said = client.wait(lambda message: message.get("method") == "notifications/progress")["params"]["message"]
        return number, said.strip()

    @staticmethod
    def error(result):
        return json.loads(result["content"][0]["text"])["error"] if result["isError"] else {}

    # ---- what there is ----------------------------------------------------------------------------------------------

    def shipped(self):
        client = self.start(walled=True)
        error = self.error(client.tool("exec", argv=[self.child, "exit", "0"]))
        self.check("the shipped server starts no command under wine", ("class", error.get("class"), "spawn_sandbox_unavailable"),
                   ("boundary", error.get("boundary"), "filesystem"))
        listed = client.tool("list_directory")
        self.check("and goes on", ("failed", listed["isError"], False), ("end", client.close(), (0, b"")), ("sessions", self.sessions(), []))

    def listed(self):
        for client in self.both():
            result = client.call("tools/list")["result"]
            self.check(f"the tools, {client.era}", ("names", [tool["name"] for tool in result["tools"]], TOOLS),
                       ("needed by preflight", result["tools"][-1]["inputSchema"]["required"], ["argv"]))
            for name in ("shell", "job_start", "job_poll"):
                answer = client.call("tools/call", name=name, arguments={"command": "x"})
                self.check(f"{name} is none of them, {client.era}", ("error", answer.get("error", {}).get("code"), -32602))
        told = self.clients[1].call("server/discover")["result"]
        self.check("what is discovered", ("versions", told["supportedVersions"], [MODERN]), ("words", told["instructions"], re.compile("Files in the workspace")))
        opened = self.clients[0].opened["result"]
        self.check("what is agreed on first", ("version", opened["protocolVersion"], "2025-11-25"), ("name", opened["serverInfo"]["name"], "cordon"),
                   ("words", "jobs" in opened["instructions"], False))

    # ---- commands ---------------------------------------------------------------------------------------------------

    def commands(self):
        for client in self.both():
            said = client.tool("exec", argv=[self.child, "say", "a", "größe"])
            content = said["structuredContent"]
            self.check(f"output and how it ended, {client.era}", ("exit code", content["exit_code"], 0), ("stdout", content["stdout"], "a\r\ngröße\r\n"),
                       ("stderr", content["stderr"], "on stderr\r\n"), ("driver", content["driver"], "windows"), ("failed", said["isError"], False))
            failed = client.tool("exec", argv=[self.child, "exit", "7"])
            self.check(f"a status, {client.era}", ("exit code", failed["structuredContent"]["exit_code"], 7), ("failed", failed["isError"], True))
            text = "".join(f"line {i}\n" for i in range(5000))
            copied = client.tool("exec", argv=[self.child, "copy"], stdin=text)["structuredContent"]
            self.check(f"input, {client.era}", ("same", copied["stdout"].replace("\r", "") == text, True))
            none = client.tool("exec", argv=[self.child, "copy"])["structuredContent"]
            self.check(f"no input, {client.era}", ("output", (none["exit_code"], none["stdout"]), (0, "")))
            value = client.tool("exec", argv=[self.child, "variable", "GIVEN"], env=["GIVEN=x"])["structuredContent"]
            session = client.tool("exec", argv=[self.child, "variable", "CORDON_SESSION_ID"])["structuredContent"]
            self.check(f"variables, {client.era}", ("given", value["stdout"], "x"), ("session", session["stdout"], re.compile("^mcp-")))
            client.tool("exec", argv=[self.child, "write", "left.txt", client.era])
            self.check(f"what a command leaves is found, {client.era}", ("content", client.tool("read_file", path="left.txt")["structuredContent"]["content"], client.era))
            for words in ([], ["no-such-program"]):
                error = self.error(client.tool("exec", argv=words))
                self.check(f"what is not a command is an error of the tool: {words}, {client.era}", ("error", bool(error), True))
            wrong = self.error(client.tool("exec", command="x"))
            self.check(f"an argument that is none, {client.era}", ("class", wrong.get("class"), "invalid_request"))
            allowed = client.tool("preflight", argv=[self.child, "exit", "0"])["structuredContent"]
            refused = client.tool("preflight", argv=[self.child, "exit", "0"], cwd="C:\\windows")["structuredContent"]
            self.check(f"preflight, {client.era}", ("allowed", allowed["allowed"], True), ("outside", refused["allowed"], False))
            self.check(f"it ends with its input, {client.era}", ("end", client.close(), (0, b"")))
        self.check("and nothing of its sessions is left", ("sessions", self.sessions(), []))

    def time(self):
        for client in self.both():
            content = client.tool("exec", argv=[self.child, "sleep"], timeout_ms=700)["structuredContent"]
            self.check(f"the time limit, {client.era}", ("timed out", content["timed_out"], True), ("ended by", content["ended_by"], re.compile("time")))

    def cancelled(self):
        for client in self.both():
            number, process = self.begin(client, "tree", "stay")
            alive = self.program.run("alive", process)[0]
            client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            self.check(f"output comes as it is written, and a call that is cancelled ends with all that it started, {client.era}", ("before", alive, 1),
                       ("after", self.is_gone(process), True))
            after = client.tool("exec", argv=[self.child, "say", "after"])["structuredContent"]
            self.check(f"the next one runs, and the cancelled one has no answer, {client.era}", ("stdout", after["stdout"], "after\r\n"),
                       ("answers", [message for message in client.kept if message.get("id") == number], []))

    def crowd(self):
        client = self.start()
        numbers = [client.send("tools/call", name="exec", arguments={"argv": [self.child, "say", str(i)]}) for i in range(24)]
        said = [client.answer(number)["result"].get("structuredContent", {}).get("stdout") for number in numbers]
        self.check("many at once", ("output", said, [f"{i}\r\n" for i in range(24)]))

    # ---- files ------------------------------------------------------------------------------------------------------

    def files(self):
        secret = self.program.place / "secret.txt"
        secret.write_text("secret")
        self.program.wine.own(secret)
        for client in self.both(elicitation=False):
            def tool(name, **arguments):
                return client.tool(name, **arguments)
            tool("write_file", path="a.c", content="one\ntwo\n")
            read = tool("read_file", path="a.c", offset=2, limit=1)["structuredContent"]
            edited = tool("edit_file", path="a.c", old_text="two", new_text="2", if_version=read["version"])
            stale = tool("edit_file", path="a.c", old_text="2", new_text="3", if_version=read["version"])
            self.check(f"write, read, edit, {client.era}", ("read", read["content"], "two\n"), ("edited", edited["isError"], False), ("stale", stale["isError"], True),
                       ("content", tool("read_file", path="a.c")["structuredContent"]["content"], "one\n2\n"))
            matches = tool("grep", pattern="^o.e", globs=["*.c"])["structuredContent"]["matches"]
            self.check(f"list, find and grep, {client.era}", ("list", "a.c" in [each["name"] for each in tool("list_directory")["structuredContent"]["entries"]], True),
                       ("find", [each["path"] for each in tool("find_files", globs=["*.c"])["structuredContent"]["entries"]], ["a.c"]),
                       ("grep", [(each["path"], each["line"]) for each in matches], [("a.c", 1)]))
            whole = self.program.wine.path(self.program.project / "a.c")
            self.check(f"by a path as Windows has it, {client.era}", ("content", tool("read_file", path=whole)["structuredContent"]["content"], "one\n2\n"),
                       ("in a directory", tool("exec", argv=[self.child, "where"], cwd=whole[:-4])["structuredContent"]["stdout"], whole[:-4]))
            for path in ("../secret.txt", "..\\secret.txt", self.program.wine.path(secret), f"/z{secret}", "a.c:stream", "nul"):
                found = [tool("read_file", path=path), tool("write_file", path=path, content="x")]
                self.check(f"{path.replace(str(secret.parent), '...')} is refused, {client.era}", ("failed", [each["isError"] for each in found], [True, True]),
                           ("told", "secret\"" in json.dumps(found), False), ("content", secret.read_text(), "secret"))

    # ---- asking -----------------------------------------------------------------------------------------------------

    def asking(self):
        place = self.program.place / "beside"
        place.mkdir()
        (place / "given").write_text("text")
        self.program.wine.own(place)
        wanted = {"fs_read": [self.program.wine.path(place)]}
        unasked = self.start(elicitation=False)
        error = self.error(unasked.tool("request_capability", **wanted))
        self.check("without a human nothing is granted", ("class", error.get("class"), "capability_denied"), ("words", "--" in error.get("remediation", ""), False))
        cwd = self.error(unasked.tool("exec", argv=[self.child, "where"], cwd=self.program.wine.path(place)))
        self.check("and a refusal has what can be asked for", ("class", cwd.get("class"), "capability_denied"),
                   ("tool", list(cwd.get("request_capability", {})), ["fs_read"]))
        # wine finds nothing in a directory by a handle from before it was renamed. So no answer to a question is found there, whoever
        # gives it, and nothing is granted: how an approval ends has not been tried.
        answer = {"action": "accept", "content": {"decision": "session"}}
        for client in self.both():
            number = client.send("tools/call", name="request_capability", arguments=wanted)
            if client.era == "legacy":
                question = client.wait(lambda message: message.get("method") == "elicitation/create")
                client.write({"jsonrpc": "2.0", "id": question["id"], "result": answer})
                text = question["params"]["message"]
            else:
                asked = client.answer(number)["result"]
                state = bytearray(base64.urlsafe_b64decode(asked["requestState"]))
                state[3] ^= 1
                again = {"name": "request_capability", "arguments": wanted, "inputResponses": {"approval": answer}}
                forged = client.call("tools/call", **again, requestState=base64.urlsafe_b64encode(state).decode())
                self.check("a state that was changed", ("error", forged.get("error", {}).get("code"), -32602))
                number = client.send("tools/call", **again, requestState=asked["requestState"])
                text = asked["inputRequests"]["approval"]["params"]["message"]
            result = client.answer(number)["result"]
            self.check(f"the human behind the client is asked, {client.era}", ("question", text, re.compile("beside")), ("answered", result["isError"], True))
        config = self.program.place / "queue.toml"
        config.write_text("[approval]\nqueue = true\n")
        self.program.wine.own(config)
        client = self.start("--config", self.program.wine.path(config), "--approver", "cordon")
        client.send("tools/call", name="request_capability", arguments=wanted)
        cards, until = [], time.monotonic() + PATIENCE
        while not cards and time.monotonic() < until:
            cards = json.loads(self.program.cordon("approvals", "list", "--json")[1] or "{}").get("approvals", [])
        self.check("with --approver cordon it waits for cordon approvals", ("cards", [card["content"]["tool"] for card in cards], ["request_capability"]),
                   ("end", client.close(), (0, b"")))

    def hosts(self):
        site = self.network.site
        for client in self.both("--net", f"localhost:{site}", elicitation=False):
            def get(url):
                request = f"GET {url} HTTP/1.1|Host: {url.split('/')[2]}|@Connection: close||"
                return client.tool("exec", argv=[self.child, "talk", "0", request])["structuredContent"]
            self.check(f"a listed host, {client.era}", ("answer", get(f"http://localhost:{site}/")["stdout"], re.compile("200 OK(.|\n|\r)*hello from outside")))
            denied = get("http://example.org/")
            self.check(f"another one, {client.era}", ("answer", denied["stdout"], re.compile("^HTTP/1.1 403 ")),
                       ("asks for", [each.get("request_capability") for each in denied["denials"]], [{"hosts": ["example.org:80"]}]))

    # ---- lines ------------------------------------------------------------------------------------------------------

    def garbage(self):
        client = self.start()
        for line in GARBAGE:
            client.process.stdin.write(line + b"\r\n")
        client.process.stdin.write(b'\n\n{"jsonrpc":"2.0","id":"split","met')
        client.process.stdin.flush()
        time.sleep(0.3)
        client.process.stdin.write(b'hod":"ping"}\n')
        client.process.stdin.flush()
        answer = client.answer("split")
        codes = [message["error"]["code"] for message in client.kept if "error" in message]
        self.check("lines that are none are refused, and the next is taken", ("answer", answer.get("result"), {}), ("refused", len(codes), len(GARBAGE)),
                   ("codes", set(codes) <= {-32700, -32600}, True))
        unknown = client.call("nothing/at-all")
        self.check("an unknown method", ("code", unknown.get("error", {}).get("code"), -32601))
        client.process.stdin.write(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
        client.process.stdin.close()
        self.check("the last line needs no end", ("answer", client.answer("last").get("result"), {}), ("status", client.process.wait(PATIENCE), 0))
        long = self.start()
        try:
            long.process.stdin.write(b'{"' + b"x" * (80 << 20))
            long.process.stdin.flush()
        except BrokenPipeError:
            pass
        refused = long.wait(lambda message: "error" in message)
        self.check("a line without an end is refused", ("words", refused["error"]["message"], re.compile("too long")), ("status", long.process.wait(PATIENCE), 0))

    def end(self):
        client = self.start()
        self.check("without a request", ("end", client.close(), (0, b"")))
        found = self.program.cordon("mcp")
        self.check("without a line", ("found", found, (0, "", "")))
        wrong = self.program.cordon("mcp", "--approver", "nobody")
        self.check("an option that is wrong", ("status", wrong[0], 125), ("words", wrong[2], re.compile("client or cordon")))

    def end_of_a_command(self):
        """A command that runs still when the client closes its end is ended with the server."""
        for client in self.both():
            _, process = self.begin(client, "tree", "stay")
            self.check(f"a command that still runs at the end of input, {client.era}", ("end", client.close(), (0, b"")), ("gone", self.is_gone(process), True))
        self.check("and its session", ("sessions", self.sessions(), []))

    def abandoned(self):
        """What a server that is killed leaves behind: nothing that runs, and a session that the next one ends."""
        client = self.start()
        _, process = self.begin(client, "tree", "stay")
        client.process.kill()
        client.process.wait()
        self.check("a server that is killed takes its commands along", ("gone", self.is_gone(process), True), ("sessions", len(self.sessions()), 1))
        after = self.start()
        after.tool("exec", argv=[self.child, "exit", "0"])
        self.check("and the next one ends its session", ("sessions", len(self.sessions()), 1), ("end", after.close(), (0, b"")), ("left", self.sessions(), []))
