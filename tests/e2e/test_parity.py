"""Whatever the command line can do, a client of the protocol can; and what docs/PROTOCOL.md promises to those who fit
it to other contracts is there. A new command, action or option without a row here fails."""
import json
import re
import subprocess

import pytest

from conftest import PATIENCE
from lab import ROOT

SOURCE = ROOT / "src/door/cli"

# Command, or command and action: by which methods a client does it.
METHODS = {
    "run": "process.start process.wait", "profile": "profile", "doctor": "doctor",
    "session new": "session.new", "session list": "session.list", "session show": "session.show",
    "session update": "session.update", "session pause": "session.pause", "session resume": "session.resume",
    "session end": "session.end", "session rm": "session.remove", "job start": "job.start", "job list": "job.list",
    "job poll": "job.poll", "job tail": "job.poll job.wait", "job wait": "job.wait", "job kill": "job.kill",
    "approvals list": "approvals.list approvals.subscribe", "approvals approve": "approvals.answer",
    "approvals deny": "approvals.answer", "config show": "config.show", "config check": "config.check",
    "audit tail": "audit.query audit.follow", "audit show": "audit.query", "audit query": "audit.query",
    "audit verify": "audit.verify", "audit export": "audit.query",
    "manifest check": "manifest.check", "net list": "net.list", "cache list": "cache.list",
    "cache clear": "cache.clear", "url check": "url.check",
    **{f"file {name}": f"fs.{name}"
       for name in "read write edit list find grep stat remove mkdir rename copy send walk export import".split()},
}
# What is a door itself, sets up another program on this machine, or explains the program.
EXPLAINS = {"config docs"}
DOORS = {"serve", "rpc", "mcp", "shell", "exec-server", "hook", "setup", "agent", "wsl", "completion", "help",
         "version"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    place = tmp_path_factory.mktemp("parity")
    calls = "".join(json.dumps({"jsonrpc": "2.0", "id": each, "method": each}) + "\n"
                    for each in ("rpc.discover", "settings"))
    env = {"XDG_DATA_HOME": str(place), "XDG_CONFIG_HOME": str(place), "HOME": str(place), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([ROOT / "build/cordon", "rpc"], input=calls, env=env, capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    return {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def methods(answers):
    return {each["name"]: each for each in answers["rpc.discover"]["methods"]}


def commands():
    """Each command, with each of its actions."""
    for name in re.findall(r'^COMMAND\(\w+, "([\w-]+)"', (SOURCE / "commands.def").read_text(), re.M):
        if name in DOORS:
            continue
        text = (SOURCE / f"{name}.c").read_text()
        actions = re.findall(r'^\t\t\{ "(\w+)", [^{}]*act_\w+ \},$', text, re.M) if "action_run(" in text else []
        yield from [f"{name} {action}" for action in actions] or [name]


def test_what_the_command_line_can_do_a_client_can(methods):
    there = {each if each != "manifest" else "manifest check" for each in commands()}
    assert there == set(METHODS) | EXPLAINS, (there - set(METHODS), set(METHODS) - there)
    for command, names in METHODS.items():
        assert set(names.split()) <= set(methods), command


def test_what_a_command_can_be_granted_a_client_can_grant(answers):
    """Each option that goes with a request is a setting."""
    options = re.findall(r'^OPTION\([^,]+, "([\w-]+)", [^,]+, REQUEST,', (SOURCE / "options.def").read_text(), re.M)
    settings = {each["key"] for each in answers["settings"]["settings"]}
    assert len(options) > 20 and set(options) <= settings, set(options) - settings


def contracts():
    """Rows of the table: (contract, member, by)."""
    text = (ROOT / "docs/PROTOCOL.md").read_text().partition("## Which method serves which contract")[2].partition("\n## ")[0]
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in text.splitlines()
            if line.startswith("| ")]
    return [row for row in rows if row[0] != "contract"]


# As their packages declare them.
CONTRACTS = {
    "AI SDK `SandboxSession`": "description run spawn abortSignal readFile readBinaryFile readTextFile writeFile writeBinaryFile writeTextFile stat "
                               "listDirectory deleteFile",
    "AI SDK harness": "providerId createSession identity onFirstCreate resumeSession id defaultWorkingDirectory ports getPortUrl getPortEndpoint stop destroy "
                      "restricted setNetworkPolicy setPorts",
    "deepagents `BaseSandbox`": "id execute uploadFiles downloadFiles",
    "OpenAI Agents `SandboxClient`": "backendId create delete resume serializeSessionState deserializeSessionState exec execCommand writeStdin readFile listDir "
                                     "pathExists materializeEntry applyManifest persistWorkspace hydrateWorkspace resolveExposedPort running close",
    "ComputeSDK": "create getById list destroy runCommand streamCommand getInfo getUrl filesystem",
    "E2B": "create list kill timeout metadata getHost process.start process.connect sendInput sendSignal files.read files.write files.list files.watch",
    "Claude Agent SDK": "spawnClaudeCodeProcess",
    "Inspect `SandboxEnvironment`": "exec read_file write_file sample_init sample_cleanup",
}


def test_each_member_of_each_contract_has_a_row(methods):
    told = {}
    for contract, member, by in contracts():
        told.setdefault(contract, {}).update({name: by for name in re.findall(r"`([\w.]+)`", member)})
    for contract, members in CONTRACTS.items():
        assert set(members.split()) <= set(told.get(contract, {})), (contract, set(members.split()) - set(told.get(contract, {})))
    for contract, member, by in contracts():
        assert by and "`" in by, (contract, member)


def test_each_method_that_is_named_is_there(methods, answers):
    notices = {each["name"] for each in answers["rpc.discover"]["notices"]}
    rooms = {name.partition(".")[0] for name in methods if "." in name}
    settings = {each["key"] for each in answers["settings"]["settings"]}
    named = 0
    for contract, member, by in contracts():
        for name in re.findall(r"`([a-z]+\.[a-z_]+)`", by):
            assert name.partition(".")[0] in rooms and name in set(methods) | notices, (contract, member, name)
            named += 1
        for name in re.findall(r"setting `([\w-]+)`", by):
            assert name in settings, (contract, member, name)
    assert named > 60
