"""cordon mcp, driven by clients that others wrote: the official SDK of each era, the Inspector's command line in both,
mcporter."""
import json
import subprocess

import pytest

from conftest import NODE, PACKAGES, PROGRAM

LEGACY = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
"""
MODERN = """
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
"""
SCRIPT = """
const client = new Client({ name: "test", version: "1" })
await client.connect(new StdioClientTransport({ command: process.argv[2], args: ["mcp"], env: process.env, cwd: process.cwd() }))
const tools = (await client.listTools()).tools.map((tool) => tool.name)
const call = (name, given) => client.callTool({ name, arguments: given })
const first = await call("shell", { command: "echo kept > /tmp/file; echo out; exit 3" })
const second = await call("shell", { command: "cat /tmp/file; touch here" })
const written = await call("write_file", { path: "made", content: "by the client" })
const outside = await call("read_file", { path: "/etc/shadow" })
// The client compares each with the tool's outputSchema, and throws.
const job = await call("job_start", { command: "echo begun" })
const { id } = job.structuredContent
await call("job_wait", { id })
for (const [name, given] of [["job_poll", { id }], ["job_list", {}], ["job_kill", { id }], ["exec", { argv: ["cat", "/srv/none"] }],
  ["read_file", { path: "made" }], ["edit_file", { path: "made", old_text: "client", new_text: "CLIENT" }], ["list_directory", {}],
  ["find_files", {}], ["grep", { pattern: "CLIENT" }], ["grep", { pattern: "CLIENT", names_only: true }], ["preflight", { command: "make" }],
  ["preflight", { command: "make", cwd: "/etc" }], ["preflight", { command: "make", fs_write: ["/srv/none"] }]])
  await call(name, given)
console.log(JSON.stringify({ tools, first: first.structuredContent, second: second.structuredContent, written: !written.isError, outside: !!outside.isError }))
await client.close()
"""


# A human who answers every question with the same word, in the SDK of each era; the arguments: program, era, answer,
# directory.
ASKED = """
const [program, era, decision, outside] = process.argv.slice(2)
const legacy = era === "legacy", from = legacy ? "@modelcontextprotocol/sdk" : "@modelcontextprotocol/client"
const { Client } = await import(legacy ? `${from}/client/index.js` : from)
const { StdioClientTransport } = await import(legacy ? `${from}/client/stdio.js` : `${from}/stdio`)
const question = legacy ? (await import(`${from}/types.js`)).ElicitRequestSchema : "elicitation/create"
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} }, versionNegotiation: { mode: era } })
const asked = []
client.setRequestHandler(question, async (request) => {
  asked.push(request.params.message)
  return { action: "accept", content: { decision } }
})
await client.connect(new StdioClientTransport({ command: program, args: ["mcp"], env: process.env, cwd: process.cwd() }))
const call = (name, given) => client.callTool({ name, arguments: given })
const granted = await call("request_capability", { fs_write: [outside] })
const written = await call("shell", { command: `echo approved > ${outside}/made` })
console.log(JSON.stringify({ asked, granted: !granted.isError, written: !written.isError }))
await client.close()
"""

# Tasks, as the package of that extension drives them: an approval, which a human answers with `decision`, and waiting
# for a job. What the SDK's codecs do not know goes to the server by its transport; the arguments: program, answer,
# directory.
TASKS = """
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client"
const [program, decision, outside] = process.argv.slice(2)
const about = { name: "test", version: "1" }, capabilities = { elicitation: {} }
const client = new Client(about, { capabilities, versionNegotiation: { mode: "modern" } })
const transport = new StdioClientTransport({ command: program, args: ["mcp"], env: process.env, cwd: process.cwd() })
await client.connect(transport)
const waiting = new Map(), toClient = transport.onmessage
let last = 0
transport.onmessage = (message, extra) => {
  const taken = waiting.get(message.id)
  if (!taken) return toClient(message, extra)
  waiting.delete(message.id)
  taken(message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result })
}
const rawDispatch = (request) => new Promise((resolve) => {
  const id = `raw-${++last}`
  waiting.set(id, resolve)
  transport.send({ jsonrpc: "2.0", id, ...request })
})
const asked = [], seen = []
const session = createTaskSessionFromClient(client, {
  endpointId: "cordon", rawDispatch, v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo: about, clientCapabilities: capabilities },
  onInputRequest: async (request, context) => {
    asked.push([request.kind, context.delivery, request.params.message])
    return { action: "accept", content: { decision } }
  },
})
const call = async (name, given) => {
  const execution = await session.callTool(name, given)
  const { outcome } = await execution.settle()
  seen.push([name, outcome.status, outcome.task !== undefined])
  return resultFromTaskOutcome(outcome)
}
const quick = await call("shell", { command: "echo on" })
const granted = await call("request_capability", { fs_write: [outside] })
const written = await call("shell", { command: `echo approved > ${outside}/made` })
const job = await call("job_start", { command: "sleep 2; echo over" })
const waited = await call("job_wait", { id: job.structuredContent.id })
const endless = await call("job_start", { command: "sleep 600" })
const cancelled = await session.callTool("job_wait", { id: endless.structuredContent.id })
await cancelled.cancel()
const { outcome } = await cancelled.settle()
console.log(JSON.stringify({ asked, seen, on: quick.structuredContent.stdout, granted: !granted.isError, written: !written.isError,
  waited: waited.structuredContent.state, cancelled: outcome.status }))
await session.close()
await client.close()
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "home/project").mkdir(parents=True)
    # Modules are found beneath the script's own directory.
    (tmp_path / "home/node_modules").symlink_to(PACKAGES / "node_modules")
    return tmp_path / "home/project"


@pytest.fixture
def run(place):
    env = {"HOME": str(place.parent), "PATH": f"{NODE}:/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
           "XDG_DATA_HOME": str(place.parent / "data")}
    return lambda *argv: subprocess.run([str(word) for word in argv], cwd=place, env=env, capture_output=True,
                                        text=True, timeout=120, stdin=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("imports", [LEGACY, MODERN], ids=["sdk", "client"])
def test_the_official_sdks(run, place, imports):
    script = place.parent / "client.mjs"
    script.write_text(imports + SCRIPT)
    done = run(NODE / "node", script, PROGRAM)
    assert done.returncode == 0, (done.stdout, done.stderr)
    told = json.loads(done.stdout)
    assert {"shell", "exec", "job_start", "read_file", "edit_file", "request_capability"} <= set(told["tools"])
    assert told["first"]["exit_code"] == 3 and told["first"]["stdout"] == "out\n" and told["second"]["stdout"] == "kept\n"
    assert told["written"] and told["outside"] and (place / "made").read_text() == "by the CLIENT" and (place / "here").exists()


@pytest.mark.parametrize("decision", ["session", "deny"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_human_behind_the_sdks_is_asked(run, place, era, decision):
    script, outside = place.parent / "client.mjs", place.parent / "outside"
    script.write_text(ASKED)
    outside.mkdir()
    done = run(NODE / "node", script, PROGRAM, era, decision, outside)
    assert done.returncode == 0, (done.stdout, done.stderr)
    told = json.loads(done.stdout)
    approved = decision == "session"
    assert len(told["asked"]) == 1 and str(outside) in told["asked"][0] and "request_capability" in told["asked"][0]
    assert told["granted"] == told["written"] == approved and (outside / "made").exists() == approved


@pytest.mark.parametrize("decision", ["session", "deny"])
def test_tasks_by_the_package_of_the_extension(run, place, decision):
    script, outside = place.parent / "client.mjs", place.parent / "outside"
    script.write_text(TASKS)
    outside.mkdir()
    done = run(NODE / "node", script, PROGRAM, decision, outside)
    assert done.returncode == 0, (done.stdout, done.stderr)
    told = json.loads(done.stdout)
    approved = decision == "session"
    assert [each[:2] for each in told["asked"]] == [["elicitation",
                                                     "task-update"]] and str(outside) in told["asked"][0][2]
    assert told["granted"] == told["written"] == approved and (outside / "made").exists() == approved
    assert told["on"] == "on\n" and told["waited"] == "ended" and told["cancelled"] == "cancelled"
    tasks = {name: is_task for name, _, is_task in told["seen"]}
    assert tasks == {"shell": False, "request_capability": True, "job_start": False, "job_wait": True}


@pytest.mark.parametrize("era", ["modern", "legacy", "auto"])
def test_the_inspector(run, place, era):
    inspector = (PACKAGES / "node_modules/.bin/mcp-inspector", "--cli", "--protocol-era", era)
    server = ("--", PROGRAM, "mcp")
    listed = run(*inspector, "--strict", "--method", "tools/list", *server)
    assert listed.returncode == 0 and "0 errors" in listed.stderr + listed.stdout, (listed.stdout[-500:], listed.stderr)
    # The Inspector takes --strict for tools/list alone.
    call = lambda tool, *given: run(*inspector, "--method", "tools/call", "--tool-name", tool,  # noqa: E731
                                    *(word for each in given for word in ("--tool-arg", each)), *server)
    called = call("shell", "command=echo hi; cat /etc/shadow; touch here")
    assert called.returncode == 0, (called.stdout, called.stderr)
    assert json.loads(called.stdout)["structuredContent"]["stdout"] == "hi\n" and (place / "here").exists()
    (place / "file").write_text("one\ntwo\n")
    for tool, given in (("edit_file", ["path=file", "old_text=two", "new_text=zwei"]), ("grep", ["pattern=zwei"])):
        called = call(tool, *given)
        assert called.returncode == 0 and json.loads(called.stdout)["structuredContent"], (tool, called.stdout, called.stderr)
    assert (place / "file").read_text() == "one\nzwei\n"


def test_mcporter(run, place):
    (place / "config").mkdir()
    (place / "config/mcporter.json").write_text(json.dumps({"mcpServers": {"cordon": {"command": str(PROGRAM), "args": ["mcp"]}}}))
    done = run(PACKAGES / "node_modules/.bin/mcporter", "call", "cordon.shell", "command=echo $((6 * 7))")
    assert done.returncode == 0 and "42" in done.stdout, (done.stdout, done.stderr)
