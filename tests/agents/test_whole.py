"""The whole agent inside, by the profile that ships: it edits a file, runs the project's tests and commits. Nothing
else is granted but the place of the scripted model."""
import json
import os
import subprocess
import urllib.parse

import pytest

from conftest import Claude, Codex, Gemini, Opencode
from model import Model


@pytest.fixture(params=[Claude, Codex, Gemini, Opencode], ids=lambda kind: kind.name)
def agent(request, tmp_path):
    agent = request.param(tmp_path)
    agent.env["PATH"] = f"{agent.bins}:{agent.env['PATH']}"
    agent.is_alone = True  # no cordon around its commands: what cordon setup wrote is not copied
    (agent.project / "check.sh").write_text("#!/bin/sh\ngrep -q fixed program && echo all passed\n")
    (agent.project / "check.sh").chmod(0o755)
    git(agent, "init", "-q")
    git(agent, "config", "user.name", "a")
    git(agent, "config", "user.email", "a@example.com")
    return agent


def git(agent, *words):
    return subprocess.run(["git", "-C", agent.project, *words], check=True, capture_output=True, text=True).stdout


def whole(agent, *steps):
    with Model(list(steps)) as model:
        argv = agent.prepare(model.url)
        place = urllib.parse.urlparse(model.url).netloc
        done = subprocess.run([agent.bin / "cordon", "agent", agent.name, "--net", place, "--", *argv[1:]],
                              cwd=agent.project, env=agent.env, capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, start_new_session=True)
        done.told = model.told()
        assert not model.errors, (model.errors, done.stdout, done.stderr)
        return done


def test_it_finishes_a_small_task(agent, tmp_path):
    (tmp_path / "outside").mkdir()
    done = whole(agent, agent.edit(agent.project / "program", "fixed\n"), agent.shell("./check.sh"),
                 agent.shell("git add -A && git commit -qm 'by the agent' && echo in:$CORDON_SESSION_ID"),
                 agent.shell(f"touch {tmp_path}/outside/file || echo denied; cat {agent.home}/.bash_history"),
                 "all is done")
    assert done.returncode == 0 and "all is done" in done.stdout, (done.stdout, done.stderr)
    assert "all passed" in done.told and f"in:agent/{agent.name}/" in done.told and "denied" in done.told
    assert git(agent, "log", "--format=%s") == "by the agent\n" and git(agent, "show",
                                                                        "HEAD:program").strip() == "fixed"
    assert list((tmp_path / "outside").iterdir()) == []
    rows = [json.loads(line) for line in agent.cordon("audit", "export").stdout.splitlines()]
    assert {row["session"] for row in rows if row["row"] == "intent"} == {agent.sessions()[0]}


def test_what_it_writes_to_its_directory_stays_inside(agent):
    """What the real agent keeps there itself, and a hook that its model plants."""
    outside = {path: path.read_bytes() for path in agent.home.rglob("*") if path.is_file()
               and agent.project not in path.parents}
    names = {"claude": ".claude/settings.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json",
             "opencode": ".config/opencode/plugin/evil.js"}
    done = whole(agent, agent.shell(f"mkdir -p ~/{os.path.dirname(names[agent.name])} && echo '{{}}' > ~/{names[agent.name]} && echo wrote:it"),
                 "all is done")
    assert done.returncode == 0 and "wrote:it" in done.told, (done.stdout, done.stderr)
    after = {path: path.read_bytes() for path in agent.home.rglob("*") if path.is_file()
             and agent.project not in path.parents}
    prepared = {".codex/config.toml", ".gemini/settings.json", ".gemini/trustedFolders.json",
                ".config/opencode/opencode.json"}
    changed = {str(path.relative_to(agent.home)) for path in after if after[path] != outside.get(path)}
    assert changed <= prepared and all(after[agent.home / name] != b"{}\n" for name in changed), changed
