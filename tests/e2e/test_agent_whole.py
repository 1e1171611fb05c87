"""cordon agent: a whole agent inside, by its profile. A stand-in is the agent: it does what its first argument says."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import tomllib

import pytest

from conftest import PROGRAM, ROOT, Terminal, wait_until
from lab import lack, rows

NAMES = ["aider", "claude", "codex", "gemini", "goose", "opencode"]
SHIPPED = {name: tomllib.loads((ROOT / f"packaging/agents/{name}.toml").read_text()) for name in NAMES}


class Whole:
    """A home with a project, agents in PATH, and cordon agent."""
    def __init__(self, cordon, place):
        self.home, self.project, self.bin = place / "home", place / "home/project", place / "bin"
        for directory in (self.project, self.bin, self.home / ".config"):
            directory.mkdir(parents=True)
        for name in NAMES:
            (self.bin / name).write_text('#!/bin/sh\neval "$1"\n')
            (self.bin / name).chmod(0o755)
        self.env = {**cordon.env, "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config"), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def popen(self, name, script, *options, **more):
        return subprocess.Popen([PROGRAM, "agent", name, *options, "--", script],
                                **{"cwd": self.project, "env": self.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                   "stderr": subprocess.PIPE, "text": True, "start_new_session": True, **more})

    def __call__(self, name, script, *options, **more):
        process = self.popen(name, script, *options, **more)
        output, errors = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def cordon(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.project, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def write(self, name, text, mode=0o600):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def profile(self, name, text):
        return self.write(f".config/cordon/agents/{name}.toml", text, 0o644)


@pytest.fixture
def whole(cordon, tmp_path):
    return Whole(cordon, tmp_path)


def test_the_agent_is_inside_and_its_work_is_kept(cordon, whole):
    subprocess.run(["git", "init", "-q", whole.project], check=True)
    whole.write("secret", "outside")
    whole.write(".ssh/id_rsa", "outside")
    first = whole("claude", "echo $CORDON_SESSION_ID; pwd; echo kept > ~/.claude-history; echo done > file; "
                  "git add file && git -c user.name=a -c user.email=a@b commit -qm work; cat ~/secret ~/.ssh/id_rsa; touch /etc/x; exit 3")
    assert first.returncode == 3, first.stderr
    session, where = first.stdout.splitlines()
    assert re.fullmatch("agent/claude/[0-9a-f]{24}", session) and where == str(whole.project)
    assert subprocess.run(["git", "-C", whole.project, "show", "HEAD:file"], capture_output=True).stdout == b"done\n"
    assert not (whole.home / ".claude-history").exists()
    # The same workspace has the same session; another agent and other grants have others.
    assert whole("claude", "cat ~/.claude-history; echo $CORDON_SESSION_ID").stdout.split() == ["kept", session]
    assert whole("codex", "cat ~/.claude-history").returncode == 1
    other = whole("claude", "cat ~/.claude-history; echo $CORDON_SESSION_ID", "--net", "example.com:443").stdout.split()
    assert len(other) == 1 and other[0] != session
    assert {row["session"] for row in rows(cordon) if row["row"] == "intent"} >= {session}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_planted_in_its_directory_stays_inside(whole, name):
    """Settings, hooks, entries of MCP servers, plugins and skills: each is a copy, whatever the agent writes there."""
    profile, before = SHIPPED[name], {}
    files = [path if "." in pathlib.Path(path).name[1:] or path.endswith(".goosehints") else f"{path}/inner/file.js"
             for path in profile.get("copy", [])]
    for path in files:
        before[whole.write(path[2:], f"the user's {path}\n", 0o644)] = f"the user's {path}\n"
    for part in profile.get("part", []):
        text = json.dumps({part["members"][0]: True, "mcpServers": {}, "projects": {"/other": "its prompts"}})
        before[whole.write(part["file"][2:], text)] = text
    every = [*files, *(part["file"] for part in profile.get("part", []))]
    seen = whole(name, f"cd ~ && cat {' '.join(every)}; cat {' '.join(pathlib.Path(path).parent.name and path for path in every)} | wc -l")
    assert seen.returncode == 0 and all(f"the user's {path}\n" in seen.stdout for path in files), (seen.stdout, seen.stderr)
    assert "its prompts" not in seen.stdout
    planted = whole(name, "cd ~; for f in " + " ".join(every) + "; do echo planted > $f && echo planted > ${f%/*}/more || exit 1; done")
    assert planted.returncode == 0 and planted.stderr == "", planted.stderr
    for path, text in before.items():
        assert path.read_text() == text and not (path.parent / "more").exists(), path
    # They are the session's to keep, until the user's own is newer.
    assert "planted" in whole(name, f"cat {files[0]}").stdout
    (whole.home / files[0][2:]).write_text("the user's newer\n")
    assert whole(name, f"cat {files[0]}").stdout == "the user's newer\n"


LOGIN = {"claudeAiOauth": {"accessToken": "first", "refreshToken": "r", "expiresAt": 1, "scopes": ["user"]}, "other": {"command": "true"}}
CREDENTIALS = ".claude/.credentials.json"


def renewed(**more):
    return json.dumps({**LOGIN, "claudeAiOauth": {**LOGIN["claudeAiOauth"], "accessToken": "second", "expiresAt": 2}, **more})


def test_a_renewed_login_is_copied_back(whole):
    login = whole.write(CREDENTIALS, json.dumps(LOGIN))
    assert json.loads(whole("claude", f"cat ~/{CREDENTIALS}").stdout) == LOGIN
    done = whole("claude", f"echo '{renewed()}' > ~/new && mv ~/new ~/{CREDENTIALS}")
    assert done.returncode == 0 and done.stderr == "" and login.read_text() == renewed() + "\n" and login.stat().st_mode & 0o777 == 0o600
    # One that was renewed outside goes in.
    login.write_text(json.dumps(LOGIN))
    assert json.loads(whole("claude", f"cat ~/{CREDENTIALS}").stdout) == LOGIN
    assert [path.name for path in login.parent.iterdir()] == [login.name]


def test_a_login_is_copied_back_while_the_agent_runs(whole):
    """One that renews itself at each use would be dead outside until the agent ends."""
    login = whole.write(CREDENTIALS, json.dumps(LOGIN))
    third = renewed().replace("second", "third")
    agent = whole.popen("claude", f"echo '{renewed()}' > ~/{CREDENTIALS}; read line; echo half > ~/{CREDENTIALS}; read line; echo '{third}' > ~/new; "
                        f"mv ~/new ~/{CREDENTIALS}; read line; echo '{renewed(other={'command': 'evil'})}' > ~/{CREDENTIALS}", stdin=subprocess.PIPE)

    def go_on():
        agent.stdin.write("\n")
        agent.stdin.flush()
    assert wait_until(lambda: login.read_text() == renewed() + "\n") and agent.poll() is None
    go_on()
    time.sleep(3)
    assert login.read_text() == renewed() + "\n"
    go_on()
    assert wait_until(lambda: login.read_text() == third + "\n") and agent.poll() is None
    go_on()
    output, errors = agent.communicate(timeout=60)
    assert agent.returncode == 0 and login.read_text() == third + "\n" and errors.count("was not copied back") == 1, errors
    assert [path.name for path in login.parent.iterdir()] == [login.name]


def test_a_login_that_changes_on_both_sides_while_the_agent_runs(whole):
    login = whole.write(CREDENTIALS, json.dumps(LOGIN))
    mine = renewed().replace("second", "mine")
    agent = whole.popen("claude", f"touch begun; read line; echo '{renewed()}' > ~/{CREDENTIALS}; read line", stdin=subprocess.PIPE)
    assert wait_until((whole.project / "begun").exists)
    login.write_text(mine)
    agent.stdin.write("\n")
    agent.stdin.flush()
    time.sleep(5)
    assert login.read_text() == mine
    assert "was changed meanwhile" in agent.communicate("\n", timeout=60)[1] and login.read_text() == mine


@pytest.mark.parametrize("what", [
    f"echo '{renewed(hooks={'x': 'y'})}' > ~/{CREDENTIALS}",
    f"echo '{renewed(other={'command': 'evil'})}' > ~/{CREDENTIALS}",
    f"echo '{json.dumps({'claudeAiOauth': LOGIN['claudeAiOauth'] | {'accessToken': 'b'}})}' > ~/{CREDENTIALS}",
    f"printf '{{' > ~/{CREDENTIALS}",
    f"echo '[]' > ~/{CREDENTIALS}",
    f"echo '{renewed()}' > ~/{CREDENTIALS}; head -c 70000 /dev/zero | tr '\\0' ' ' >> ~/{CREDENTIALS}",
    f"rm ~/{CREDENTIALS}; ln -s /etc/passwd ~/{CREDENTIALS}",
    f"echo '{renewed()}' > ~/x; rm ~/{CREDENTIALS}; ln -s ../x ~/{CREDENTIALS}",
    f"rm ~/{CREDENTIALS}; mkfifo ~/{CREDENTIALS}",
    f"rm ~/{CREDENTIALS}; mkdir ~/{CREDENTIALS}",
    f"echo '{renewed()}' > ~/{CREDENTIALS}; mv ~/.claude ~/away; ln -s away ~/.claude",
    f"printf '{renewed()[:-1]}, \"claudeAiOauth\": {{}}}}' > ~/{CREDENTIALS}",
    f"printf '%s' '{json.dumps({**LOGIN, 'claudeAiOauth': {'accessToken': chr(27) + '[2J'}})}' > ~/{CREDENTIALS}",
    f"rm ~/{CREDENTIALS}",
])
def test_what_is_no_renewed_login_is_not_copied_back(whole, what):
    login = whole.write(CREDENTIALS, json.dumps(LOGIN))
    assert whole("claude", what).returncode == 0
    assert login.read_text() == json.dumps(LOGIN) and not login.is_symlink()
    # Neither is it at the next start, which has the login again.
    again = whole("claude", f"cat ~/{CREDENTIALS}")
    if "mkdir" not in what:
        assert json.loads(again.stdout) == LOGIN, again.stderr
    assert login.read_text() == json.dumps(LOGIN)


def test_a_login_that_changed_meanwhile_stays(whole):
    login = whole.write(CREDENTIALS, json.dumps(LOGIN))
    process = whole.popen("claude", f"echo '{renewed()}' > ~/{CREDENTIALS}; echo ready; read line", stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    login.write_text(outside := renewed(other={"command": "false"}))
    _, errors = process.communicate("\n", timeout=60)
    assert login.read_text() == outside and "was changed meanwhile" in errors


def test_a_login_renewed_before_cordon_was_killed_is_not_lost(whole):
    login = whole.write(CREDENTIALS, json.dumps(LOGIN))
    os.utime(login, (time.time() - 60,) * 2)
    process = whole.popen("claude", f"echo '{renewed()}' > ~/{CREDENTIALS}; echo ready; sleep 60", stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert login.read_text() == json.dumps(LOGIN)
    assert json.loads(whole("claude", f"cat ~/{CREDENTIALS}").stdout)["claudeAiOauth"]["accessToken"] == "second"
    assert json.loads(login.read_text())["claudeAiOauth"]["accessToken"] == "second"


def test_a_login_of_another_kind_is_not_made(whole):
    """opencode would load settings from the server that such an entry names, programs included."""
    login = whole.write(".local/share/opencode/auth.json", json.dumps({"openai": {"type": "oauth", "refresh": "a", "access": "b", "expires": 1}}))
    before = login.read_text()
    whole("opencode", "echo '" + json.dumps({**json.loads(before), "https://evil": {"type": "wellknown", "key": "K", "token": "t"}}) +
          "' > ~/.local/share/opencode/auth.json")
    assert login.read_text() == before
    whole("opencode", "echo '" + json.dumps({"openai": {"type": "oauth", "refresh": "x", "access": "y", "expires": 2}}) +
          "' > ~/.local/share/opencode/auth.json")
    assert json.loads(login.read_text())["openai"]["access"] == "y"


def test_links_are_not_followed(whole):
    """A link in the agent's directory could lead to anything, and commands may have made it."""
    whole.write("secret", "outside")
    whole.write(".claude/skills/one/SKILL.md", "a skill")
    (whole.home / ".claude/skills/one/link").symlink_to(whole.home / "secret")
    (whole.home / ".claude/CLAUDE.md").symlink_to(whole.home / "secret")
    (whole.home / ".claude/commands").symlink_to(whole.home)
    done = whole("claude", "cat ~/.claude/skills/one/* ~/.claude/CLAUDE.md ~/.claude/commands/secret")
    assert "a skill" in done.stdout and "outside" not in done.stdout
    assert "~/.claude/CLAUDE.md is a symbolic link" in done.stderr
    # Inside, what lies in the way of a copy is replaced, wherever it leads.
    whole.write(".claude/settings.json", "settings\n")
    whole("claude", "rm -rf ~/.claude; ln -s /etc ~/.claude")
    assert whole("claude", "cat ~/.claude/settings.json; test -L ~/.claude").stdout == "settings\n"


def test_what_setup_wrote_is_left_out(whole):
    """cordon's shell and hooks are not inside, where they would refuse every command; and nothing needs them there."""
    own = whole.write(".claude/settings.json", '{\n  // kept\n  "model": "m"\n}\n', 0o644)
    assert whole.cordon("setup", "claude").returncode == 0 and "cordon-shell" in own.read_text()
    assert whole("claude", "cat ~/.claude/settings.json").stdout == '{\n  // kept\n  "model": "m"\n}\n'
    assert whole.cordon("setup", "opencode").returncode == 0
    assert whole("opencode", "find ~/.config/opencode -type f").stdout == ""


def test_a_profile_says_what_it_may_reach(whole, tmp_path):
    shared, data = tmp_path / "shared", tmp_path / "read"
    shared.mkdir()
    data.mkdir()
    (data / "file").write_text("data")
    whole.env.update(GIVEN="1", PRE_ONE="2", OTHER="3")
    whole.profile("mine", f'program = "claude"\nhosts = ["localhost:9"]\nread = ["{data}", "~/not-there"]\nwrite = ["{shared}"]\n'
                          'variables = ["GIVEN", "PRE_*"]\n[set]\nFIXED = "4 5"\n[limits]\nprocesses = 77\nmemory = "512M"\n')
    done = whole("mine", f"cat {data}/file; touch {shared}/made; touch {data}/made; echo $GIVEN $PRE_ONE $OTHER. $FIXED $CORDON_NETWORK; "
                 "echo $CORDON_SESSION_ID")
    lines = done.stdout.splitlines()
    assert lines[0] == "data1 2 . 4 5 hosts" and (shared / "made").exists() and not (data / "made").exists(), done.stderr
    baseline = json.loads(whole.cordon("session", "show", "--json", lines[1]).stdout)["baseline"]
    assert baseline["limits"]["processes"] == 77 and baseline["limits"]["memory_bytes"] == 512 << 20
    assert "localhost:9" in json.dumps(baseline)
    # Options grant more, and a smaller limit is the caller's to say.
    more = tmp_path / "more"
    more.mkdir()
    assert whole("mine", f"touch {more}/made && echo $A", "--write", more, "--env", "A=b", "--processes", "50").stdout == "b\n"
    shown = json.loads(whole.cordon("agent", "show", "mine", "--json").stdout)
    assert shown["program"] == str(whole.bin / "claude") and shown["limits"] == {"processes": "77", "memory": "512M"}
    assert shown["profile"] == str(whole.home / ".config/cordon/agents/mine.toml")


def test_where_nothing_is_mounted(whole):
    """A driver that shows no directory in the place of another, as macOS's: the home is elsewhere, and HOME names it."""
    if lack("landlock"):
        pytest.skip(lack("landlock"))
    whole.write(".config/cordon/config.toml", '[sandbox]\ndriver = "landlock"\n', 0o644)
    whole.profile("claude", 'program = "claude"\ncopy = ["~/.claude/settings.json"]\n[[login]]\nfile = "~/.claude/.credentials.json"\n'
                  'changes = ["claudeAiOauth"]\n')
    whole.write(".claude/settings.json", "the user's", 0o644)
    whole.write("secret", "outside")
    login = whole.write(CREDENTIALS, json.dumps(LOGIN))
    first = whole("claude", f"echo $HOME; pwd; cat ~/.claude/settings.json && echo && cat ~/{CREDENTIALS} && echo && echo kept > ~/history; "
                  f"echo planted > ~/.claude/settings.json; echo '{renewed()}' > ~/new && mv ~/new ~/{CREDENTIALS}; "
                  f"cat {whole.home}/secret {login}; echo x > {whole.home}/.claude/settings.json; echo x > {login}; echo done > file")
    home, where, settings, credentials = first.stdout.splitlines()
    assert pathlib.Path(home).is_dir() and not pathlib.Path(home).is_relative_to(whole.home / ".claude") and home != str(whole.home)
    assert (where, settings, json.loads(credentials)) == (str(whole.project), "the user's", LOGIN), first.stderr
    assert first.stderr.count("ermission denied") == 4, first.stderr
    assert (whole.home / ".claude/settings.json").read_text() == "the user's" and login.read_text() == renewed() + "\n"
    assert (whole.project / "file").read_text() == "done\n" and not (whole.home / "history").exists()
    assert whole("claude", "cat ~/history ~/.claude/settings.json").stdout == "kept\nplanted\n"


def test_list_and_show(whole):
    listed = json.loads(whole.cordon("agent", "list", "--json").stdout)["agents"]
    assert [each["name"] for each in listed] == NAMES and all(each["program"] == str(whole.bin / each["name"]) for each in listed)
    (whole.bin / "goose").unlink()
    whole.profile("claude", 'title = "mine"\nprogram = "claude"\n')
    whole.profile("broken", "program = 1\n")
    text = whole.cordon("agent", "list").stdout
    assert re.search("goose +goose, not installed", text) and re.search("claude +mine, by /", text) and "broken" in text
    for name in NAMES:
        shown = whole.cordon("agent", "show", name)
        assert shown.returncode == 0 and all(host in shown.stdout for host in ([] if name == "claude" else SHIPPED[name]["hosts"])), shown
    missing = whole("goose", "true")
    assert missing.returncode == 125 and "goose is not installed" in missing.stderr


@pytest.mark.parametrize("text, told", [
    ("", "names no program"),
    ('program = "a"\nhost = []\n', "did you mean hosts"),
    ('program = "a"\nhosts = ["a:1", "a:1"]\n', ":2:17"),
    ('program = "../a"\n', "an absolute path"),
    ('program = "a"\ncopy = ["/etc/passwd"]\n', "beneath ~/"),
    ('program = "a"\ncopy = ["~/../x"]\n', "beneath ~/"),
    ('program = "a"\n[limits]\nmemroy = "1g"\n', "did you mean memory"),
    ('program = "a"\n[[login]]\nchanges = []\n', "names no file"),
    ('program = "a"\n[[login]]\nfile = "~/x"\nmember = []\n', 'no key "member"'),
    ('program = "a"\nprogram = "b"\n', ":2:1"),
    ('program = "claude"\nhosts = ["a b"]\n', "a b"),
    ('program = "claude"\n[set]\nLD_PRELOAD = "x"\n', "LD_PRELOAD"),
])
def test_a_profile_that_is_wrong_is_refused(whole, text, told):
    whole.profile("wrong", text)
    done = whole("wrong", "true")
    assert done.returncode == 125 and told in done.stderr, done.stderr


def test_bad_words(whole):
    for words, told in ((("agent",), "no agent was named"), (("agent", "clade"), "did you mean claude"), (("agent", "../x"), "no name of an agent"),
                        (("agent", "show"), "no agent was named"), (("agent", "list", "x"), "no such argument")):
        done = whole.cordon(*words)
        assert done.returncode == 125 and told in done.stderr, (words, done.stderr)
    unknown = whole.cordon("agent", "claude", "--print", "hello")
    assert unknown.returncode == 125 and "unknown option of cordon agent" in unknown.stderr and "after --" in unknown.stderr
    shared = whole.profile("shared", 'program = "claude"\n')
    shared.chmod(0o666)
    assert "others may change it" in whole.cordon("agent", "shared").stderr
    # A home is no workspace.
    home = whole("claude", "true", cwd=whole.home)
    assert home.returncode == 125 and "home" in home.stderr


def test_it_has_a_terminal_where_cordon_has_one(whole):
    terminal = Terminal([PROGRAM, "agent", "claude", "--", "test -t 0 && test -t 1 && stty size; echo end"], whole.project, whole.env)
    terminal.expect("24 80")
    terminal.expect("end")
    assert terminal.end() == 0
    assert whole("claude", "test -t 0 || echo none").stdout == "none\n"
