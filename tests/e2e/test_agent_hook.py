"""cordon hook: what agents ask before they run a tool, and that nothing but an answer ends well."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import PROGRAM
from lab import lack, rows

COMMAND = "echo \"it's\" $((6 * 7)); pwd; echo $CORDON_SESSION_ID >&2"


@pytest.fixture
def project(tmp_path):
    project = tmp_path / "home/project"
    project.mkdir(parents=True)
    return project


@pytest.fixture
def hook(cordon, project):
    def call(question, *words, env=None, program=PROGRAM, **options):
        text = question if isinstance(question, (str, bytes)) else json.dumps(question)
        return subprocess.run([program, "hook", *words], input=text.encode() if isinstance(text, str) else text,
                              capture_output=True, cwd=project,
                              env={**cordon.env, "HOME": str(project.parent), **(env or {})}, **options)
    return call


def ask(project, event="PreToolUse", tool="Bash", **input):
    return {"session_id": "abc-1", "cwd": str(project), "hook_event_name": event, "tool_name": tool,
            "tool_input": input}


def carry_out(cordon, project, command):
    return subprocess.run(["bash", "-c", command], cwd=project, env={**cordon.env, "HOME": str(project.parent)},
                          text=True, capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("agent, event, tool, words", [
    ("claude", "PreToolUse", "Bash", []), ("claude", "PreToolUse", "Monitor", []),
    ("gemini", "BeforeTool", "run_shell_command", []),
    ("vscode", "PreToolUse", "run_in_terminal", ["--agent", "vscode"]),
])
def test_a_command_is_run_inside(cordon, hook, project, agent, event, tool, words):
    done = hook(ask(project, event, tool, command=COMMAND, description="kept", timeout=7), *words)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == event
    if event == "PreToolUse":
        assert {**answer["updatedInput"], "command": COMMAND} == {"command": COMMAND, "description": "kept",
                                                                  "timeout": 7}
    ran = carry_out(cordon, project, (answer.get("updatedInput") or answer["tool_input"])["command"])
    assert {row["client_ref"] for row in rows(cordon) if row["row"] == "intent"} == {'{"session_id":"abc-1"}'}
    assert ran.stdout == f"it's 42\n{project}\n", ran.stderr
    assert ran.stderr.startswith(f"agent/{agent}/")


def test_the_id_of_the_tool_call_is_in_the_ledger(cordon, hook, project):
    answer = hook({**ask(project, command="true"), "tool_use_id": "toolu_'1"})
    carry_out(cordon, project, json.loads(answer.stdout)["hookSpecificOutput"]["updatedInput"]["command"])
    assert [json.loads(row["client_ref"]) for row in rows(cordon)
            if row["row"] == "intent"] == [{"session_id": "abc-1", "tool_use_id": "toolu_'1"}]


@pytest.mark.parametrize("shell", [["bash"], ["zsh"], ["zsh", "-o", "rcquotes"], ["fish"]], ids=" ".join)
def test_no_shell_reads_more_of_it_than_one_word(hook, project, shell):
    """VS Code types the command into a terminal, whose shell is the person's own."""
    if lack(shell[0]):
        pytest.skip(lack(shell[0]))
    program, seen, show = str(pathlib.Path(PROGRAM).resolve()), project / "words", project.parent / "show"
    show.write_text(f'#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done > {seen}\n')
    show.chmod(0o700)
    for command in (r"\'; touch escaped; #", r"'\'; touch escaped; '", "\\", r"\\'", r"'''\\\\'",
                    "a'\n\ttouch $escaped `touch escaped` !!\n\\"):
        line = json.loads(hook({**ask(project, command=command),
                                "session_id": r"\'x"}).stdout)["hookSpecificOutput"]["updatedInput"]["command"]
        assert program in line
        subprocess.run([*shell, "-c", line.replace(program, str(show), 1)], cwd=project, check=True)
        words = seen.read_text().split("\0")
        assert words[-2] == command and r"--agent-id=\'x" in words and not (project / "escaped").exists()


def test_the_workspace_is_the_agents_word(cordon, hook, project):
    """The input's cwd may be where the model went."""
    other = project.parent / "other"
    other.mkdir()
    question = {**ask(project, command="touch here"), "cwd": str(other)}
    answer = json.loads(hook(question, env={"CLAUDE_PROJECT_DIR": str(project)}).stdout)["hookSpecificOutput"]
    ran = carry_out(cordon, other, answer["updatedInput"]["command"])
    assert ran.returncode == 125 and not (other / "here").exists()
    assert carry_out(cordon, project, answer["updatedInput"]["command"]).returncode == 0 and (project / "here").exists()


def test_other_tools_pass(hook, project):
    for tool, input in (("Edit", {"file_path": "x"}), ("mcp__cordon__shell", {"command": "ls"}),
                        ("mcp_other_tool", {"command": 3})):
        done = hook(ask(project, tool=tool, **input))
        assert done.returncode == 0 and json.loads(done.stdout) == {}
    # Gemini CLI asks about every tool, and says which are of MCP servers.
    own = ask(project, "BeforeTool", "any_name", command="ls")
    assert hook({**own, "mcp_context": {"server_name": "x"}}).stdout == b"{}\n" and hook(own).returncode == 2
    for tool in ("read_file", "write_file", "glob", "web_fetch"):
        assert hook(ask(project, "BeforeTool", tool, path="x", content="rm -rf /")).stdout == b"{}\n"


def test_cursor_is_told_what_to_use(hook):
    done = hook({"conversation_id": "c", "command": "ls", "cwd": "/", "hook_event_name": "beforeShellExecution"})
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["permission"] == "deny" and "cordon" in answer["agent_message"]


def bad_questions():
    good = ask("/src", command="ls")
    yield from ("", "null", "[]", "{", "\0", '{"a":1}', "[" * 100000, b"\xff\xfe", json.dumps(good)[:-1],
                json.dumps(good) + "x")
    yield '{"hook_event_name":"Stop","hook_event_name":"PreToolUse"}'
    for gone in good:
        # Without the cwd, the environment may say where the agent was started; here it does not.
        yield {key: value for key, value in good.items() if key != gone}
        yield {**good, gone: 7}
        yield {**good, gone: None}
    yield {**good, "hook_event_name": "AfterTool"}
    yield {**good, "tool_input": {"script": "ls"}}
    yield {**good, "tool_input": {"command": ["ls"]}}
    yield {**good, "tool_input": {"command": "a\0b"}}
    yield {**good, "tool_name": "NewShell"}
    yield {**good, "tool_name": "NewShell", "tool_input": {"cmd": "ls"}}
    yield {**good, "tool_name": "NewShell", "tool_input": {"script": ["ls"]}}
    yield {**good, "session_id": ""}
    # Where the command is typed into a terminal, these are keys.
    for key in "\x03\x04\r\x1b\x15\x7f":
        yield {**good, "tool_input": {"command": f"echo '{key}touch x\n"}}
    yield {**good, "cwd": "/src\x03"}
    yield {**good, "session_id": "a\r"}
    yield {**good, "cwd": "relative"}


@pytest.mark.parametrize("number, question", list(enumerate(bad_questions())))
def test_whatever_is_wrong_is_a_refusal(hook, number, question):
    done = hook(question)
    assert done.returncode == 2 and done.stdout == b"" and done.stderr.startswith(b"cordon: "), done


def test_a_refusal_whatever_happens(cordon, hook, project, tmp_path):
    assert hook(ask(project, command="ls"), "--agent", "nobody").returncode == 2
    assert hook(ask(project, command="ls"), "--no-such-option").returncode == 2
    assert hook(ask(project, command="ls"), "operand").returncode == 2
    assert hook(json.dumps(ask(project, command="x" * (33 << 20)))).returncode == 2
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "hook"], input=json.dumps(ask(project, command="ls")).encode(), stdout=full,
                              stderr=subprocess.PIPE, env=cordon.env)
    assert done.returncode == 2
    # Signals, among them the one that its own clock sends.
    for number in (1, 2, 3, 6, 11, 13, 14, 15):
        waiting = subprocess.Popen([PROGRAM, "hook"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=cordon.env)
        status = pathlib.Path(f"/proc/{waiting.pid}/wchan")
        while "cordon" not in os.readlink(f"/proc/{waiting.pid}/exe") or pathlib.Path(f"/proc/{waiting.pid}/syscall").read_text().split()[0] != "0":
            pass
        waiting.send_signal(number)
        assert waiting.wait(60) == 2, number
        waiting.stdin.close()
        waiting.stdout.close()


def test_it_needs_little(hook, project, cordon):
    """No file of cordon's is opened, so that it answers on a machine where nothing else works."""
    done = hook(ask(project, command="ls"), env={"XDG_DATA_HOME": "/dev/null/nowhere", "XDG_CONFIG_HOME": "/dev/null"})
    assert done.returncode == 0
    assert not cordon.data.exists() or not list(cordon.data.iterdir())
