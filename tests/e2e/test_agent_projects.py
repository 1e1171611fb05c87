"""Settings in a project by which an agent or an editor would run programs outside at its next start: in agents'
sessions those that are there cannot be changed, and new ones are moved away when the command has ended."""
import base64
import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import PROGRAM, ROOT
from lab import lack, rows

NAMES = re.findall(r'^PROJECT_NAME\("(.*)"\)', (ROOT / "src/door/agent/projects.def").read_text(), re.M)
DIRECTORIES = {".opencode": "plugin/x.js", ".codex": "config.toml", ".github/hooks": "x.json"}
SHELL = pathlib.Path(PROGRAM).parent / "cordon-shell"


def file_of(name):
    return f"{name}/{DIRECTORIES[name]}" if name in DIRECTORIES else name


class Place:
    def __init__(self, cordon, place):
        self.home, self.project = place / "home", place / "home/project"
        self.project.mkdir(parents=True)
        self.env = {**cordon.env, "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}

    def run(self, *words, **options):
        done = subprocess.run([str(word) for word in words], env=self.env, text=True, capture_output=True,
                              start_new_session=True,
                              **{"cwd": self.project, **({} if "input" in options else {"stdin": subprocess.DEVNULL}),
                                 **options})
        self.told = done.stdout + done.stderr
        return done

    def shell(self, script):
        return self.run("/bin/sh", "-c", f'CLAUDECODE=1 CLAUDE_CODE_SESSION_ID=one "{SHELL}" "$1"; exit $?', "sh",
                        script)

    def hook(self, script):
        question = {"session_id": "abc", "cwd": str(self.project), "hook_event_name": "PreToolUse", "tool_name": "Bash",
                    "tool_input": {"command": script}}
        answer = self.run(PROGRAM, "hook", input=json.dumps(question))
        return self.run("bash", "-c", json.loads(answer.stdout)["hookSpecificOutput"]["updatedInput"]["command"])

    def exec_server(self, script):
        asked = {"processId": "p", "argv": ["/bin/sh", "-c", script], "cwd": f"file://{self.project}", "env": {},
                 "tty": False}
        process = subprocess.Popen([PROGRAM, "exec-server", "--agent-id=1", f"--workspace={self.project}"],
                                   env=self.env, cwd=self.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, start_new_session=True)
        process.stdin.write(json.dumps({"id": 1, "method": "process/start", "params": asked}) + "\n")
        process.stdin.flush()
        self.told = ""
        for line in process.stdout:
            message = json.loads(line)
            self.told += base64.b64decode(message.get("params", {}).get("chunk", "")).decode()
            if message.get("method") == "process/closed":
                break
        process.stdin.close()
        process.wait(60)

    def agent(self, script):
        program = self.home.parent / "bin/claude"
        program.parent.mkdir(exist_ok=True)
        program.write_text('#!/bin/sh\neval "$1"\n')
        program.chmod(0o755)
        self.env["PATH"] = f"{program.parent}:/usr/bin:/bin"
        return self.run(PROGRAM, "agent", "claude", "--", script)

    def mcp(self, script):
        lines = [{"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                                                              "clientInfo": {"name": "t", "version": "1"}}},
                 {"method": "notifications/initialized"},
                 {"id": 2, "method": "tools/call", "params": {"name": "shell", "arguments": {"command": script}}}]
        process = subprocess.Popen([PROGRAM, "mcp"], env=self.env, cwd=self.project, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, start_new_session=True)
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
        process.stdin.flush()
        while (message := json.loads(process.stdout.readline())).get("id") != 2:
            pass
        self.told = json.dumps(message)
        process.stdin.close()
        process.wait(60)


@pytest.fixture
def place(cordon, tmp_path):
    if lack("mount-namespace"):
        pytest.skip(lack("mount-namespace"))
    return Place(cordon, tmp_path)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_table():
    assert len(NAMES) == len(set(NAMES)) > 10
    judged = (ROOT / "src/paths/planted/planted.c").read_text()
    for name in NAMES:
        directory, _, leaf = name.rpartition("/")
        within = f'"/{directory}/"' if directory else "NULL"
        assert f'{{ "{leaf}", {within}, NULL, judge_settings }},' in judged, name
        assert name in (ROOT / "docs/AGENTS.md").read_text(), name


@pytest.mark.parametrize("name", NAMES)
def test_what_a_command_plants_is_moved_away(cordon, place, name):
    file = file_of(name)
    for at in (file, f"packages/one/{file}"):
        done = place.shell(f"mkdir -p $(dirname {at}) && echo planted > {at} && echo kept > kept")
        assert done.returncode == 0 and not (place.project / at).exists() and (place.project / "kept").exists(), done
        assert "run programs outside" in done.stderr and "moved to quarantine" in done.stderr, done.stderr
    assert [[denial["wall"] for denial in row["denials"]] for row in rows(cordon)
            if row["row"] == "result"] == [["protected_names"]] * 2
    # By another spelling, and by a link in the place of its directory.
    upper = file.upper()
    place.shell(f"mkdir -p $(dirname {upper}) && echo planted > {upper}")
    assert not (place.project / upper).exists()
    if "/" in name:
        directory = name.split("/")[0]
        place.shell(f"rm -rf {directory}; mkdir -p else/$(basename {name}) && ln -s else {directory}")
        assert not os.path.lexists(place.project / directory), place.told


@pytest.mark.parametrize("name", NAMES)
def test_what_is_there_cannot_be_changed(place, name):
    file = place.project / file_of(name)
    write(file, "the user's")
    top = file_of(name).split("/")[0]
    for change in (f"echo planted > {file}", f"rm -f {file}", f"mv {file} x && echo planted > {file}",
                   f"echo planted > x && mv x {file}",
                   f"mv {top} y && mkdir -p $(dirname {file}) && echo planted > {file}",
                   f"ln {file} z && echo planted > z"):
        done = place.shell(change)
        assert done.returncode != 0 and file.read_text() == "the user's", (change, done)
    assert place.shell(f"cat {file}").stdout == "the user's"
    assert place.shell("true").stderr == ""


@pytest.mark.parametrize("door", ["shell", "hook", "exec_server", "agent", "mcp"])
def test_at_every_door(place, door):
    """The same wherever an agent's command comes from."""
    write(place.project / ".mcp.json", "the user's")
    getattr(place, door)("mkdir .claude .vscode; echo planted > .claude/settings.local.json; echo planted > .vscode/tasks.json; "
                         "echo planted > .mcp.json; echo done > done")
    assert (place.project / "done").read_text() == "done\n", place.told
    assert (place.project / ".mcp.json").read_text() == "the user's"
    assert not list((place.project / ".claude").iterdir()) and not list((place.project / ".vscode").iterdir()), place.told


def test_a_person_is_not_kept_from_them(place):
    done = place.run(PROGRAM, "run", "-c", "mkdir .vscode; echo mine > .vscode/tasks.json")
    assert done.returncode == 0 and (place.project / ".vscode/tasks.json").read_text() == "mine\n", done


@pytest.mark.parametrize("agent, door", [("claude", "shell"), ("claude", "hook"), ("codex", "exec_server"),
                                         ("claude", "agent"), ("mcp", "mcp")])
def test_a_user_may_take_them_out_and_add_others(place, agent, door):
    write(place.home / f".config/cordon/agents/{agent}.toml",
          f'program = "{agent}"\nprotect = ["!.vscode/tasks.json", "Makefile"]\n'
          + ('title = "x"\n' if agent != "mcp" else ""))
    write(place.project / "Makefile", "the user's")
    getattr(place, door)("mkdir .claude .vscode; echo planted > .claude/settings.local.json; echo planted > .vscode/tasks.json; echo x > Makefile; "
                         "echo done > done")
    assert (place.project / "done").exists(), place.told
    assert (place.project / ".vscode/tasks.json").read_text() == "planted\n" and not (place.project / ".claude/settings.local.json").exists()
    assert (place.project / "Makefile").read_text() == "the user's"


def test_a_profile_that_is_wrong_refuses(place):
    write(place.home / ".config/cordon/agents/claude.toml", 'protect = ["/etc"]\n')
    done = place.shell("touch x")
    assert done.returncode == 125 and not (place.project / "x").exists() and "relative" in done.stderr, done
    write(place.home / ".config/cordon/agents/claude.toml", "protect = 3\n")
    assert place.shell("touch x").returncode == 125 and not (place.project / "x").exists()


def test_a_branch_with_other_settings(place):
    """git leaves the file as it is, says so, and ends with 0: it is told why."""
    git = ["git", "-C", place.project, "-c", "user.name=n", "-c", "user.email=e"]
    file = place.project / ".vscode/settings.json"
    for branch, text in (("main", "one"), ("other", "two")):
        subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
        subprocess.run([*git, "checkout", "-q", "-B", branch], check=True)
        write(file, text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", branch], check=True)
    done = place.shell("git checkout main")
    assert done.returncode == 0 and file.read_text() == "two", done
    assert ".vscode/settings.json" in done.stderr and "it decides what runs later" in done.stderr, done
    assert "decides what runs later" not in place.shell("echo busy; cat .vscode/settings.json").stderr
