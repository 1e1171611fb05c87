"""At every door that an agent uses, the caller's own secret is hidden in output, and in an argument it refuses the
command. What cordon run does is in test_secrets.py."""
import base64
import json
import pathlib
import subprocess

import pytest

from conftest import PATIENCE, PROGRAM
from lab import holds, rows, wait_until
from mcp_client import Client
from test_exec_server import Codex
from test_serve import Daemon

OWN = "correct7horse+battery"
HIDDEN = "a [REDACTED:MY_TOKEN] b\n"


@pytest.fixture
def project(cordon, tmp_path):
    """The caller's secret is in the environment of what is started, and in a file."""
    project = tmp_path / "home/project"
    project.mkdir(parents=True)
    (project / "own").write_text(f"a {OWN} b\n")
    cordon.workspace = project
    cordon.env.update(MY_TOKEN=OWN, HOME=str(project.parent))
    return project


def by_mcp(cordon):
    client = Client(cordon, f"--workspace={cordon.workspace}")
    try:
        shown, blocked = client.tool("shell", command="cat own"), client.tool("shell", command=f"echo {OWN}")
        read, written = client.tool("read_file", path="own"), client.tool("write_file", path="new", content=OWN)
        assert read["structuredContent"]["content"] == HIDDEN and written["isError"] and "leak_blocked" in written["content"][0]["text"]
        assert blocked["isError"]
        return shown["structuredContent"]["stdout"], json.dumps([shown, blocked, read, written])
    finally:
        client.close()


def by_exec_server(cordon):
    codex = Codex(cordon, cordon.workspace, cordon.workspace.parent)
    try:
        _, said = codex.run("cat own")
        status, blocked = codex.run(f"echo {OWN}", "other")
        read = base64.b64decode(codex.call("fs/readFile", path=codex.uri("own"))["result"]["dataBase64"]).decode()
        assert status == 125 and read == HIDDEN
        return said["stdout"].decode(), f"leak_blocked {blocked}" if b"MY_TOKEN" in blocked["stderr"] else ""
    finally:
        codex.process.stdin.close()
        codex.process.wait(PATIENCE)
        codex.process.stdout.close()
        codex.process.stderr.close()


def by_json_rpc(cordon):
    daemon = Daemon(cordon).start()
    try:
        with daemon.rpc() as rpc:
            settings = {"session": "s", "workspace": str(cordon.workspace)}
            shown, blocked = (rpc.run(*argv, settings=settings) for argv in (["cat", "own"], ["echo", OWN]))
        return shown["result"]["stdout"], json.dumps([shown, blocked])
    finally:
        daemon.end()


def by_shell(cordon):
    def call(script):
        # The shell that calls it stands for the agent.
        line = 'env CLAUDECODE=1 CLAUDE_CODE_SESSION_ID=one "$@"; exit $?'
        agent = ["/bin/sh", "-c", line, "sh", pathlib.Path(PROGRAM).parent / "cordon-shell", script]
        return subprocess.run(agent, cwd=cordon.workspace, env=cordon.env, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, start_new_session=True)
    shown, blocked = call("cat own"), call(f"echo {OWN}")
    assert blocked.returncode == 125
    return shown.stdout, "leak_blocked" + shown.stderr + blocked.stdout + blocked.stderr


def by_session_of_daemon(cordon):
    """The daemon was started without the secret: what is looked for is its client's."""
    env = {name: value for name, value in cordon.env.items() if name != "MY_TOKEN"}
    daemon = Daemon(cordon).start(env=env)
    try:
        words = ["run", "--session", "s", "--workspace", cordon.workspace]
        shown, blocked = cordon(*words, "cat", "own"), cordon(*words, "echo", OWN)
        assert daemon.status()["served"] == 2 and blocked.returncode == 125 and "argument 1" in blocked.stderr, blocked
        return shown.stdout, "leak_blocked" + shown.stderr + blocked.stdout + blocked.stderr
    finally:
        daemon.end()


@pytest.mark.parametrize("door", [by_mcp, by_exec_server, by_json_rpc, by_shell, by_session_of_daemon])
def test_every_door_hides_and_blocks(cordon, project, door):
    shown, everything = door(cordon)
    assert shown == HIDDEN and "leak_blocked" in everything and OWN not in everything, everything
    assert [row["error"]["class"] for row in rows(cordon) if row["row"] == "denial"][-1] == "leak_blocked"
    assert OWN not in json.dumps(rows(cordon)) and not (project / "new").exists()


def test_values_are_gone_from_memory(cordon, project, tmp_path):
    """Credentials are delivered to a command of a session, and looked for in what others print, and so is what the
    client's environment has; once the sandbox is down, the daemon has nothing of it any more."""
    key = tmp_path / "key"
    key.write_text(OWN[::-1])
    key.chmod(0o600)
    config = tmp_path / "config/cordon/config.toml"
    config.parent.mkdir(parents=True)
    programs = 'programs = ["/usr/bin/test", "/bin/test"]\n'
    config.write_text(f'[credentials.mine]\nfile = "{key}"\nvariable = "KEY"\n{programs}'
                      f'[credentials.variable]\nenv = "FROM_HERE"\nvariable = "OTHER_KEY"\n{programs}')
    cordon.env.update(XDG_CONFIG_HOME=str(tmp_path / "config"))
    (project / "mine").write_text(f"a {OWN[::-1]} b\n")
    # The daemon's own environment, which is its user's, has none of it.
    del cordon.env["MY_TOKEN"]
    daemon = Daemon(cordon).start()
    values = {"MY_TOKEN": OWN, "FROM_HERE": OWN.swapcase(), "PASSED": OWN.replace("7", "8"), "file": OWN[::-1]}
    cordon.env.update({name: values[name] for name in ("MY_TOKEN", "FROM_HERE", "PASSED")})
    try:
        words = ["run", "--session", "s", "--workspace", project]
        assert cordon(*words, "/usr/bin/test", "-n", "x").returncode == 0
        assert cordon(*words, "cat", "mine").stdout == "a [REDACTED:mine] b\n"
        assert holds(daemon.process.pid, str(project).encode())
        assert cordon(*words, "--pass-env", "PASSED", "sh", "-c", "echo ${#PASSED}").stdout == f"{len(OWN)}\n"
        assert cordon(*words, "cat", "own").stdout == HIDDEN
        # A client that is turned away has told its environment, too.
        assert cordon("run", "--session", "s", "--workspace", project, "--no-such-option").returncode == 125
        assert cordon("session", "end", "s").returncode == 0
        for name, value in values.items():
            assert wait_until(lambda: holds(daemon.process.pid, value.encode()) is False), name
    finally:
        daemon.end()
