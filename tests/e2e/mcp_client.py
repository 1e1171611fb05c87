"""A client of cordon mcp for tests: lines of JSON, in either era of the protocol. What a tool returns is checked
against the schema that the server tells."""
import contextlib
import json
import queue
import subprocess
import threading

import pytest

from conftest import PATIENCE

MODERN = "2026-07-28"


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "null": type(None)}


def check_schema(value, schema, at="result"):
    """As much of JSON Schema as the tools use; a word that is not known here is a failure, too."""
    assert set(schema) <= {"type", "properties", "required", "items", "enum", "minimum", "description",
                           "additionalProperties"}, (at, schema)
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    assert any(isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
               for kind in kinds), (at, value, kinds)
    assert value in schema.get("enum", [value]), (at, value, schema["enum"])
    if isinstance(value, dict):
        known = schema.get("properties", {})
        assert set(schema.get("required", [])) <= set(value), (at, schema["required"], value)
        others = schema.get("additionalProperties", True)
        assert others or set(value) <= set(known), (at, set(value) - set(known))
        for name in value:
            if name in known or isinstance(others, dict):
                check_schema(value[name], known.get(name, others), f"{at}.{name}")
    if isinstance(value, list):
        for each in value:
            check_schema(each, schema.get("items", {}), f"{at}[]")
    if isinstance(value, int):
        assert value >= schema.get("minimum", value), (at, value)


class Client:
    """One server, and what it says: answers by id, everything else in order."""
    def __init__(self, cordon, *options, era="legacy", elicitation=True, wrapper=()):
        self.process = cordon.popen("mcp", *options, wrapper=wrapper, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        self.era, self.number, self.schemas = era, 0, {}
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
            meta = {"io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": self.capabilities}
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
        result = self.call("tools/call", name=name, arguments=arguments)["result"]
        return self.checked(name, result)

    def checked(self, name, result):
        """What a tool returns is what its outputSchema promises: clients refuse it otherwise."""
        if not self.schemas:
            self.schemas = {each["name"]: each["outputSchema"] for each in self.call("tools/list")["result"]["tools"]}
        if "structuredContent" in result:
            check_schema(result["structuredContent"], self.schemas[name])
        return result

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
