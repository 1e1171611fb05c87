"""An agent that cordon setup has set up: where its commands run, and that they do not run elsewhere. docs/AGENTS.md has
the table of what is seen here. Each agent has a file that takes these cases, so that they run beside each other."""
import json
import pathlib
import re
import subprocess

import pytest

from conftest import e2e

ROOT = e2e.ROOT


def test_commands_run_in_a_session_of_their_own(agent):
    done = agent.run(agent.shell("echo kept > /tmp/cordon-agent-file; echo first > here; echo in:$CORDON_SESSION_ID"),
                     agent.shell("cat /tmp/cordon-agent-file; pwd"), "all is done")
    assert done.returncode == 0, (done.stdout, done.stderr)
    sessions = agent.sessions() or [re.search(f"agent/{agent.name}/[0-9a-f]{{24}}", done.told)[0]]
    assert len(sessions) == 1 and re.fullmatch(f"agent/{agent.name}/[0-9a-f]{{24}}", sessions[0])
    assert f"in:{sessions[0]}" in done.told and "kept" in done.told.replace("echo kept", "")
    assert str(agent.project) in done.told
    assert (agent.project / "here").read_text() == "first\n" and not pathlib.Path("/tmp/cordon-agent-file").exists()
    rows = [json.loads(line) for line in agent.cordon("audit", "export").stdout.splitlines()]
    assert [row["session"] for row in rows if row["row"] == "intent"
            and row.get("program") == "/bin/bash"].count(sessions[0]) >= 2


def test_a_write_outside_is_denied_and_a_person_can_allow_it(agent, tmp_path):
    """The model sees why, and after a person's approval the same command succeeds, in the same conversation."""
    outside = tmp_path / "outside"
    outside.mkdir()
    approved = []

    def approve():
        session = agent.sessions()[0]
        config = tmp_path / "queue.toml"
        config.write_text("[approval]\nqueue = true\n")
        asking = subprocess.Popen([agent.bin / "cordon", "run", "--config", config, "--session", session, "--write",
                                   outside, "--", "true"],
                                  env=agent.env, cwd=agent.project, start_new_session=True, stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)

        def cards():
            return json.loads(agent.cordon("approvals", "list", "--json").stdout)["approvals"]
        assert e2e.wait_until(lambda: cards() or asking.poll() is not None) and cards(), asking.stderr.read()
        agent.cordon("approvals", "approve", cards()[0]["id"], "--for-session")
        assert asking.wait(60) == 0
        asking.stderr.close()
        approved.append(session)
        return agent.shell(f"touch {outside}/allowed && echo now:it-is")
    # Beneath /tmp, which is a private one inside, nothing is said of a write; beneath other directories of the host it
    # is.
    done = agent.run(agent.shell("touch /etc/cordon-test"), agent.shell("touch /home/cordon-test/elsewhere/file"),
                     agent.shell(f"touch {outside}/denied"), approve, "all is done")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "the system is read-only inside" in done.told
    assert re.search("/home/cordon-test/elsewhere/file .{0,40}the command could not write it: it was not granted; allowed by --write "
                     "/home/cordon-test/elsewhere", done.told)
    assert approved and "now:it-is" in done.told.replace("echo now:it-is", "")
    assert (outside / "allowed").exists() and not (outside / "denied").exists() and not pathlib.Path("/etc/cordon-test").exists()


def test_a_file_edit_lands(agent):
    done = agent.run(agent.edit(agent.project / "written", "by the agent\n"), agent.shell("cat written"), "all is done")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert (agent.project / "written").read_text().strip() == "by the agent"


def test_a_change_of_a_file_lands(agent):
    """Of one that is there, which keeps what else is in it."""
    path = agent.project / "there"
    path.write_text("first\nsecond\nthird\n")
    done = agent.run(*agent.change(path, "second", "changed"), agent.shell("cat there"), "all is done")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert path.read_text() == "first\nchanged\nthird\n", done.told[-3000:]


def remove(agent):
    (agent.bin / "cordon").unlink()
    (agent.bin / "cordon-shell").unlink()


def rename(agent):
    (agent.bin / "cordon").rename(agent.bin / "cordon-of-old")


def forbid(agent):
    (agent.bin / "cordon").chmod(0o600)


def kill(agent):
    (agent.bin / "cordon").unlink()
    (agent.bin / "cordon").write_text("#!/bin/sh\nkill -9 $$\n")
    (agent.bin / "cordon").chmod(0o755)


def refuse(agent):
    """cordon itself refuses: its data directory cannot be made. The agent's own, beside it, can."""
    (agent.home.parent / "data").mkdir(exist_ok=True)
    (agent.home.parent / "data/cordon").write_text("no directory")


@pytest.mark.parametrize("fault", [remove, rename, forbid, kill, refuse])
def test_without_cordon_no_command_runs(agent, fault):
    fault(agent)
    first, second = f"touch {agent.project}/ran /tmp/cordon-ran; expr 6 '*' 7", "touch ran; expr 70 + 7"
    done = agent.run(agent.shell(first), agent.shell(second), "all is done", timeout=300)
    # It did ask its model, was told to run both, tried, and says to the model that they failed: an agent that never
    # came so far would prove nothing.
    for command in (first, second):
        answers = agent.answers(done, json.dumps(command)[1:-1])
        assert answers and re.search(agent.refused, answers[0]), (command, done.stdout, done.stderr, done.told[-2000:])
    assert not (agent.project / "ran").exists() and not pathlib.Path("/tmp/cordon-ran").exists(), (done.stdout, done.stderr)


def test_undo_leaves_it_as_it_was(agent):
    agent.cordon("setup", agent.name, "--undo")
    agent.is_alone = True
    done = agent.run(agent.shell("echo in:$CORDON_SESSION_ID.; touch ran"), "all is done")
    assert (agent.project / "ran").exists() and "in:." in done.told, (done.stdout, done.stderr)


def test_the_table_names_this_version(agent):
    versions = json.loads((ROOT / "tests/agents/package.json").read_text())["dependencies"]
    assert f"{agent.title} {versions[agent.package]}" in (ROOT / "docs/AGENTS.md").read_text()
