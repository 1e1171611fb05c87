"""Agents that cordon setup --mcp-only has given the server: they load it, its tools run inside, and what they wrote
into their settings meanwhile stays when it is undone."""
import json
import pathlib

import pytest

from conftest import Claude, Codex
from model import Call

class ClaudeByServer(Claude):
    setup_words = ("--mcp-only",)
    settings_file = ".claude.json"

    def prepare(self, url):
        self.env["ENABLE_TOOL_SEARCH"] = "false"  # all tools are offered from the start
        return super().prepare(url)


class CodexByServer(Codex):
    setup_words, is_alone = ("--mcp-only",), True
    settings_file = ".codex/config.toml"

    def write(self, name, content):
        """What the scripted model needs comes before cordon's table, and stays."""
        path = self.home / name
        if name == self.settings_file and path.exists() and content not in path.read_text():
            content += path.read_text()
        super().write(name, content)


def tool(name, **input):
    return Call(f"mcp__cordon__{name}", **input)


@pytest.fixture(params=[ClaudeByServer, CodexByServer], ids=lambda kind: kind.name)
def agent(request, tmp_path):
    agent = request.param(tmp_path)
    del agent.env["XDG_DATA_HOME"]  # Codex passes few variables to a server
    return agent


def test_its_tools_run_inside(agent):
    done = agent.run(tool("shell", command="echo kept > /tmp/cordon-agent-file; echo in:$CORDON_SESSION_ID; touch here"),
                     tool("shell", command="cat /tmp/cordon-agent-file; touch /etc/cordon-test"),
                     tool("write_file", path="made", content="by the server"), "all is done")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert (agent.project / "here").exists() and (agent.project / "made").read_text() == "by the server", done.told[-3000:]
    assert not pathlib.Path("/tmp/cordon-agent-file").exists() and not pathlib.Path("/etc/cordon-test").exists()
    assert "the system is read-only inside" in done.told
    rows = [json.loads(line) for line in agent.cordon("audit", "export").stdout.splitlines()]
    [session] = {row["session"] for row in rows if row["row"] == "intent"}
    assert f"in:{session}" in done.told


def test_undo_takes_its_entry_out_of_what_the_agent_wrote(agent):
    agent.run(tool("shell", command="true"), "all is done")
    before = (agent.home / agent.settings_file).read_text()
    assert "cordon" in before
    agent.cordon("setup", agent.name, "--undo")
    after = (agent.home / agent.settings_file).read_text()
    assert str(agent.bin) not in after and len(after) > 20 and not list(agent.home.glob(".local/state/cordon/setup/*"))
