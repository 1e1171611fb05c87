"""cordon -c, cordon shell and cordon-shell: the shell of an agent, in the session of its conversation."""
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from conftest import PROGRAM, wait_until
from lab import lack, rows

SHELL = pathlib.Path(PROGRAM).parent / "cordon-shell"


@pytest.fixture
def home(tmp_path, cordon):
    home = tmp_path / "home"
    for directory in (".claude/shell-snapshots", "project/sub", "other"):
        (home / directory).mkdir(parents=True)
    (home / ".claude/.credentials.json").write_text("login")
    (home / ".claude/shell-snapshots/snap.sh").write_text("snapped() { echo from the snapshot; }\n")
    return home


@pytest.fixture
def agent(cordon, home):
    """An agent that was started in a directory and calls its shell, with its marks, from where it is now."""
    def call(script, *more, id="one", started="project", at=None, marks=None, env=None, **options):
        started = home / started
        marks = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": id} if marks is None else marks
        marked = " ".join(f"{name}='{value}'" for name, value in marks.items())
        words = [script] if script is not None else []
        at = at or started
        # The shell that stands for the agent stays, since there is a command after the call.
        line = f'{{ cd "$1" && shift && env {marked} "$@"; }}; exit $?' if at == started else \
               f'at=$1; shift; (cd "$at" && exec env {marked} "$@"); exit $?'
        return subprocess.run(["/bin/sh", "-c", line, "sh", at, SHELL, *words, *more], cwd=started, text=True, capture_output=True,
                              env={**cordon.env, "HOME": str(home), **(env or {})}, start_new_session=True,
                              **{"stdin": subprocess.DEVNULL, **options})
    return call


def sessions(cordon, home):
    found = subprocess.run([PROGRAM, "session", "list", "--json"], env={**cordon.env, "HOME": str(home)}, capture_output=True, text=True)
    return json.loads(found.stdout)["sessions"]


def test_one_conversation_has_one_session(cordon, agent, home):
    first = agent("echo kept > /tmp/file; pwd; echo $CORDON_SESSION_ID")
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[0] == str(home / "project")
    name = first.stdout.splitlines()[1]
    assert re.fullmatch("agent/claude/[0-9a-f]{24}", name)
    assert agent("cat /tmp/file").stdout == "kept\n"
    # Not on this machine, and not in another conversation or workspace.
    assert agent("cat /tmp/file", id="two").returncode == 1
    assert agent("cat /tmp/file", started="other").returncode == 1
    assert agent("cat /tmp/file", marks={"OPENCODE": "1"}).returncode == 1
    assert len(sessions(cordon, home)) == 4
    assert {row["session"] for row in rows(cordon) if row["row"] == "intent"} == {each["id"] for each in sessions(cordon, home)}


def test_without_an_id_the_process_is_the_conversation(cordon, home):
    both = f"'{SHELL}' 'echo kept > /tmp/file' && '{SHELL}' 'cat /tmp/file'"
    for _ in range(2):
        done = subprocess.run(["/bin/sh", "-c", f"export OPENCODE=1; {both}; exit $?"], cwd=home / "project", text=True, capture_output=True,
                              env={**cordon.env, "HOME": str(home)}, start_new_session=True, stdin=subprocess.DEVNULL)
        assert done.stdout == "kept\n", done.stderr
    assert len(sessions(cordon, home)) == 2


def test_what_is_given_comes_through(agent):
    done = agent("-c; cat; echo err >&2; exit 7", input="in\0put", stdin=None)
    assert (done.returncode, done.stdout) == (7, "in\0put") and "err\n" in done.stderr
    assert agent(None, "-c", 'echo "$0" "$1"', "a b", "c").stdout == "a b c\n"
    assert agent(None, "-lc", "echo $((6 * 7))").stdout == "42\n"
    assert agent("echo '\"$(\\'").stdout == "\"$(\\\n"
    assert agent("head -c 3000000 /dev/zero").stdout == "\0" * 3000000
    assert agent("kill -9 $$").returncode == 137


def test_the_program_itself_is_a_shell(cordon, home):
    def call(*words):
        return subprocess.run([PROGRAM, *words], cwd=home / "project", text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              env={**cordon.env, "HOME": str(home)}, start_new_session=True)
    # The process that calls is the agent where nothing says more, and it was started elsewhere.
    at = ("shell", "--agent=goose", "--agent-id=7", f"--workspace={home}/project", "--")
    assert call(*at, "-c", "echo $CORDON_SESSION_ID").stdout.startswith("agent/goose/")
    call(*at[:-1], "--client-ref=mine", "--", "-c", "true")
    assert [row["client_ref"] for row in rows(cordon) if row["row"] == "intent"] == ['{"agent":"goose","session_id":"7"}', "mine"]
    unknown = call("shell", "--agent=gose", "--", "-c", "true")
    assert unknown.returncode == 125 and "gose" in unknown.stderr
    inside = subprocess.run(["/bin/sh", "-c", f"'{PROGRAM}' -l -c 'pwd'; exit $?"], cwd=home / "project", text=True, capture_output=True,
                            env={**cordon.env, "HOME": str(home)}, start_new_session=True, stdin=subprocess.DEVNULL)
    assert inside.stdout == f"{home}/project\n", inside.stderr
    assert call("-c").returncode == 2


def test_the_workspace_is_where_the_agent_was_started(agent, home):
    """Where the agent goes on its model's word makes no other directory the workspace."""
    elsewhere = agent("touch here", at=home / "other")
    assert elsewhere.returncode == 125 and "step: cwd" in elsewhere.stderr and not (home / "other/here").exists()
    assert agent("touch here", at=home / "project/sub").returncode == 0 and (home / "project/sub/here").exists()
    # Had it been started there, it would have been.
    assert agent("touch here", started="other").returncode == 0 and (home / "other/here").exists()


def test_a_working_tree_is_the_workspace(agent, home):
    subprocess.run(["git", "init", "-q", home / "project"], check=True)
    assert agent("touch ../above && pwd", started="project/sub").stdout == f"{home}/project/sub\n"
    assert (home / "project/above").exists()


def test_what_its_scripts_need(cordon, agent, home):
    assert agent(f"source {home}/.claude/shell-snapshots/snap.sh && snapped").stdout == "from the snapshot\n"
    assert agent(f"cat {home}/.claude/.credentials.json").returncode == 1
    agent(f"echo true > {home}/.claude/shell-snapshots/snap.sh")
    assert "snapped" in (home / ".claude/shell-snapshots/snap.sh").read_text()
    own = home / ".cache/cordon/claude"
    assert agent(f"pwd > {own}/claude-1-cwd", env={"CLAUDE_CODE_TMPDIR": str(own), "XDG_CACHE_HOME": ""}).returncode == 0
    assert (own / "claude-1-cwd").read_text() == f"{home}/project\n" and own.stat().st_mode & 0o777 == 0o700
    # Another directory is not granted because the agent calls it temporary.
    assert agent(f"touch {home}/other/x", env={"CLAUDE_CODE_TMPDIR": str(home / "other")}).returncode != 0
    assert not (home / "other/x").exists()


@pytest.fixture
def tmp(agent, home):
    """The agent's temporary directory, and a command that knows of it."""
    own = home / ".cache/cordon/claude"

    def call(script, **more):
        return agent(script.replace("$TMP", str(own)), env={"CLAUDE_CODE_TMPDIR": str(own), "XDG_CACHE_HOME": ""}, **more)
    call.own, call.files = own, lambda: {path.name for path in own.iterdir() if path.is_file() or path.is_symlink()}
    return call


def test_conversations_do_not_share_its_temporary_directory(tmp, home):
    assert tmp("echo /one >$TMP/claude-1-cwd; echo mine > $TMP/mine; mkdir $TMP/more").returncode == 0
    assert tmp.files() == {"claude-1-cwd"}
    (tmp.own / "private").write_text("the agent's")
    assert tmp("ls $TMP").stdout.split() == ["claude-0" if os.geteuid() == 0 else f"claude-{os.geteuid()}", "mine", "more"]
    for other in ({"id": "two"}, {"started": "other"}):
        seen = tmp("find $TMP -type f; cat $TMP/private; echo x > $TMP/private", **other)
        assert seen.returncode == 0 and seen.stdout == "" and (tmp.own / "private").read_text() == "the agent's", seen
    # What the agent keeps for this conversation can be read, and not written.
    kept = tmp.own / f"claude-{os.geteuid()}" / str(home / "project").translate({ord(c): "-" for c in "/._"}) / "one"
    (kept / "tasks").mkdir()
    (kept / "tasks/b1.output").write_text("of a task")
    assert tmp(f"cat {kept}/tasks/b1.output").stdout == "of a task"
    for change in (f"echo x > {kept}/tasks/b1.output", f"rm -r {kept}", f"mv {kept} $TMP/x", f"ln -s / {kept}/link"):
        assert tmp(change).returncode != 0 and (kept / "tasks/b1.output").read_text() == "of a task", change
    assert "of a task" not in tmp("cat $TMP/*/*/*/tasks/*", id="two").stdout


@pytest.mark.parametrize("plant", [
    "ln -s {secret} $TMP/claude-2-cwd", "ln -s /etc/passwd $TMP/claude-2-cwd", "mkfifo $TMP/claude-2-cwd", "mkdir $TMP/claude-2-cwd",
    "echo /a > $TMP/x; ln $TMP/x $TMP/claude-2-cwd", "printf '/a\\n/b\\n' > $TMP/claude-2-cwd", "echo relative > $TMP/claude-2-cwd",
    "echo /a/../b > $TMP/claude-2-cwd", "printf '/a\\0b' > $TMP/claude-2-cwd", "printf '/\\033[2J' > $TMP/claude-2-cwd", ": > $TMP/claude-2-cwd",
    "{{ printf /; head -c 5000 /dev/zero | tr '\\0' a; }} > $TMP/claude-2-cwd", "rm -rf $TMP; ln -s {home}/other $TMP",
    "rm -rf ~/.cache; ln -s {home} ~/.cache; mkdir -p cordon/claude", "rm -rf $TMP; echo file > $TMP", "rm -rf $TMP",
    "echo /planted > $TMP/claude-1-cwd", "echo /x > $TMP/other", "echo /x > \"$TMP/claude-../../x-cwd\"",
])
def test_what_is_planted_in_its_temporary_directory(tmp, home, plant):
    """Nothing but a path in a file of its own comes out, and it replaces nothing."""
    (home / "secret").write_text("/the/secret")
    (home / "other/claude-9-cwd").write_text("/of/another")
    assert tmp("true").returncode == 0
    (tmp.own / "claude-1-cwd").write_text("/of the agent")
    before = {path for path in home.rglob("*")}
    tmp(plant.format(secret=home / "secret", home=home))
    assert tmp.files() == {"claude-1-cwd"} and (tmp.own / "claude-1-cwd").read_text() == "/of the agent"
    assert {path for path in home.rglob("*") if "project" not in str(path)} == {path for path in before if "project" not in str(path)}
    # The next command has one again.
    assert tmp("pwd > $TMP/claude-3-cwd").returncode == 0 and (tmp.own / "claude-3-cwd").read_text() == f"{home}/project\n"


def test_many_temporary_files(tmp):
    assert tmp("for i in $(seq 3000); do echo /x > $TMP/claude-$i-cwd; done").returncode == 0
    assert len(tmp.files()) == 8


@pytest.mark.parametrize("driver", ["landlock", "local"])
def test_without_a_home_of_its_own_it_is_granted(agent, home, driver):
    """A driver that mounts nothing shows no directory in the place of another."""
    config = home / ".config/cordon/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[sandbox]\ndriver = "{driver}"\n')
    if driver == "landlock" and lack(driver):
        pytest.skip(lack(driver))
    own = home / ".cache/cordon/claude"
    done = agent(f"pwd > {own}/claude-1-cwd", env={"CLAUDE_CODE_TMPDIR": str(own), "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": str(home / ".config")})
    assert done.returncode == 0 and (own / "claude-1-cwd").read_text() == f"{home}/project\n", done


def test_variables(agent):
    out = agent("env", env={"ANTHROPIC_API_KEY": "no", "CLAUDE_CODE_OAUTH_TOKEN": "no", "CLAUDE_CODE_ENTRYPOINT": "cli"}).stdout
    assert "CLAUDE_CODE_ENTRYPOINT=cli\n" in out and "CLAUDECODE=1\n" in out and "API_KEY" not in out and "OAUTH" not in out


def test_limits(agent, cordon, home):
    """No time, every processor, 4096 processes."""
    agent("true")
    limits = subprocess.run([PROGRAM, "session", "show", sessions(cordon, home)[0]["id"]], env={**cordon.env, "HOME": str(home)},
                            capture_output=True, text=True).stdout
    assert "time unlimited" in limits and "processes 4096" in limits and "cpu percent unlimited" in limits
    assert agent("nproc").stdout == f"{len(os.sched_getaffinity(0))}\n"


def used(cordon, id, days):
    """As if it had been used last so long ago: when its record and the file that tells its use were changed."""
    [record] = [path for path in (cordon.data / "cordon/sessions").glob("*/session.json") if id in path.read_text()]
    for path in record.parent.iterdir():
        os.utime(path, (time.time() - days * 86400,) * 2)
    return record


def test_a_conversation_ends_when_nobody_goes_on_with_it(cordon, agent, home):
    name = agent("echo kept > /tmp/file; echo $CORDON_SESSION_ID").stdout.strip()
    assert sessions(cordon, home)[0]["idle_expiry_s"] == 30 * 86400
    used(cordon, name, 29)
    assert agent("cat /tmp/file").stdout == "kept\n"
    # Taken up again, it has a new session of the same name.
    used(cordon, name, 31)
    again = agent("cat /tmp/file; echo $CORDON_SESSION_ID")
    assert again.stdout == f"{name}\n" and "No such file" in again.stderr
    # Another conversation's first command ends it, and forgets it after as long again.
    used(cordon, name, 31)
    agent("true", id="two")
    assert {each["id"]: each["state"] for each in sessions(cordon, home)}[name] == "ended"
    record = used(cordon, name, 31)
    record.write_text(record.read_text().replace(json.loads(record.read_text())["changed"], "2020-01-01T00:00:00.000Z"))
    agent("true", id="three")
    assert name not in {each["id"] for each in sessions(cordon, home)} and len(sessions(cordon, home)) == 2


def test_what_the_policy_hides_is_not_told(cordon, agent, home):
    (home / "project/.env").write_text("SECRET=1")
    for path in (".env", "."):
        done = agent(f"cat {path}/x 2>/dev/null; cat .env; false")
        assert done.returncode == 1 and "SECRET" not in done.stdout and "masked" not in done.stderr and ".env (" not in done.stderr, done.stderr
        assert "--read" not in done.stderr and "capabilities" not in done.stderr, done.stderr
    # A person is told.
    told = subprocess.run([PROGRAM, "run", "-c", "cat .env; false"], cwd=home / "project", env={**cordon.env, "HOME": str(home)}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    assert "masked_names" in told.stderr


def test_no_session_of_a_person_is_joined(cordon, agent, home):
    person = cordon("session", "new", "agent/claude/0123", "--workspace", home / "project")
    assert person.returncode == 125 and "agent" in person.stderr
    # Nor by a command, a file tool or a method, which else make the session that they name.
    for words in (("run", "--session", "agent/claude/0123", "--", "true"), ("file", "list", "--session", "agent/claude/0123", "."),
                  ("job", "start", "--session", "agent/claude/0123", "--", "true"), ("profile", "--session", "agent/claude/0123", "--", "true")):
        made = cordon(*words)
        assert made.returncode != 0 and "there is no such session" in made.stdout + made.stderr, (words, made)
    assert sessions(cordon, home) == []
    env = {**cordon.env, "HOME": str(home)}
    assert subprocess.run([PROGRAM, "session", "new", "one", "--workspace", home / "project"], env=env, capture_output=True).returncode == 0
    assert agent("echo $CORDON_SESSION_ID").stdout != "one\n"
    # One that is ended, or paused, is not made anew.
    name = next(each["id"] for each in sessions(cordon, home) if each["id"] != "one")
    subprocess.run([PROGRAM, "session", "pause", name], env=env, check=True)
    paused = agent("true")
    assert paused.returncode == 125 and "paused" in paused.stderr
    subprocess.run([PROGRAM, "session", "end", name], env=env, check=True)
    assert agent("true").returncode == 125


def test_a_person_can_let_it_reach_more(cordon, agent, home):
    name = agent("echo $CORDON_SESSION_ID").stdout.strip()
    assert agent(f"touch {home}/other/x").returncode != 0 and not (home / "other/x").exists()
    config = cordon.data.parent / "queue.toml"
    config.write_text("[approval]\nqueue = true\n")
    env = {**cordon.env, "HOME": str(home)}
    asking = subprocess.Popen([PROGRAM, "run", "--config", config, "--session", name, "--write", home / "other", "--", "true"], env=env,
                              start_new_session=True, cwd=home, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cards():
        return json.loads(subprocess.run([PROGRAM, "approvals", "list", "--json"], env=env, capture_output=True, text=True).stdout)["approvals"]
    assert wait_until(cards)
    subprocess.run([PROGRAM, "approvals", "approve", cards()[0]["id"], "--for-session"], env=env, check=True, capture_output=True)
    assert asking.wait(60) == 0
    assert agent(f"touch {home}/other/x").returncode == 0 and (home / "other/x").exists()
