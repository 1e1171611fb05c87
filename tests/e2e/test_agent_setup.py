"""cordon setup: entries in agents' own settings, and taking them away again."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import PROGRAM, ROOT
from lab import IS_ROOT

SHELL = str(pathlib.Path(PROGRAM).resolve().parent / "cordon-shell")
CORDON = str(pathlib.Path(PROGRAM).resolve())
FILES = {"claude": [".claude/settings.json"], "codex": [".codex/environments.toml"],
         "gemini": [".gemini/settings.json"],
         "opencode": [".config/opencode/opencode.json", ".config/opencode/plugin/cordon.js"],
         "vscode": ["project/.vscode/mcp.json", "project/.github/hooks/cordon.json"],
         "cursor": [".cursor/mcp.json", ".cursor/hooks.json"]}
AGENTS = list(FILES)
COMMENTED = """\ufeff{
\t// mine
\t"env": { "MINE": "1" }, /* one
\tline */
\t"hooks": {
\t\t"BeforeTool": [
\t\t\t{ "matcher": "x", "hooks": [] }, // first
\t\t],
\t},
\t"url": "http://x//y",   // last
}
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home/project").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def setup(cordon, home):
    def call(*words, program=PROGRAM, command="setup", env=None, cwd=None):
        clean = {name: value for name, value in cordon.env.items() if name not in ("CODEX_HOME", "CLAUDE_CONFIG_DIR")}
        clean.update(HOME=str(home), XDG_CONFIG_HOME=str(home / ".config"), XDG_STATE_HOME=str(home / ".local/state"),
                     XDG_CACHE_HOME="")
        return subprocess.run([program, command, *words], cwd=cwd or home / "project", env={**clean, **(env or {})},
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return call


def tree(home):
    """Every file with its bytes and mode, but for cordon's record and the agent's temporary directory."""
    return {str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mode) for path in home.rglob("*")
            if path.is_file() and "cordon/setup" not in str(path)}


def write(path, text, mode=0o600):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(mode)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("mcp", [False, True])
def test_done_twice_and_undone(setup, home, agent, mcp):
    words = (agent, "--mcp-only") if mcp else (agent,)
    shown = setup(*words, "--dry-run")
    assert shown.returncode == 0 and "\n+" in shown.stdout and "not in cordon: " in shown.stdout and tree(home) == {}
    first = setup(*words)
    assert first.returncode == 0 and first.stderr == "" and "wrote " in first.stdout, first
    made = tree(home)
    if not mcp:
        assert set(made) == set(FILES[agent])
    assert all(CORDON.encode() in content for content, _ in made.values() if b"version" not in content)
    again = setup(*words)
    assert again.returncode == 0 and "nothing to change" in again.stdout and tree(home) == made
    assert setup(agent, "--undo", "--dry-run").stdout.count("+++ /dev/null") == len(made) and tree(home) == made
    assert setup(agent, "--undo").returncode == 0 and tree(home) == {}
    assert "nothing to undo" in setup(agent, "--undo").stdout


# With --mcp-only: where the server's entry goes.
MCP_FILES = {"claude": ".claude.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json",
             "opencode": ".config/opencode/opencode.json", "vscode": "project/.vscode/mcp.json",
             "cursor": ".cursor/mcp.json"}
# (agent, whether for MCP only, file)
EDITED = [(agent, False, file) for agent in AGENTS for file in FILES[agent] if not file.endswith(".js")] + \
         [(agent, True, file) for agent, file in MCP_FILES.items()]
JSON_FILES, TOML_FILES = ([each for each in EDITED if each[2].endswith(suffix)] for suffix in ("json", "toml"))
COMMENTED_TOML = """# mine
model = "x" # why

# before a table
[[environments]]
id = "other" # x
url = "ws://127.0.0.1"

[mcp_servers.other]
command = "true"
# last
"""


def words(agent, mcp):
    return (agent, "--mcp-only") if mcp else (agent,)


def directories(home):
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_dir() and ".local" not in str(path)
            and ".cache" not in str(path)}


@pytest.mark.parametrize("text", [COMMENTED, COMMENTED.replace("\n", "\r\n"), '{"env":{"MINE":"1"},"hooks":{}}', "{}",
                                  "{\n}\n", "", " \n", '{\n    "a": [1,\n  2], "env": {}\n}', "{ // only a comment\n}"])
@pytest.mark.parametrize("agent, mcp, file", JSON_FILES)
def test_every_byte_of_json_comes_back(setup, home, agent, mcp, file, text):
    write(home / file, text, 0o640)
    before = tree(home), directories(home)
    assert setup(*words(agent, mcp)).returncode == 0
    now = (home / file).read_bytes().decode()
    assert CORDON in now and (home / file).stat().st_mode & 0o777 == 0o640
    # Nothing that was there is gone, in its order.
    rest = iter(now)
    assert all(character in rest for character in text if not character.isspace()), now
    assert setup(*words(agent, mcp)).stdout.startswith("nothing to change")
    assert setup(agent, "--undo").returncode == 0 and (tree(home), directories(home)) == before


@pytest.mark.parametrize("text", [COMMENTED_TOML, COMMENTED_TOML.replace("\n", "\r\n"), "", "# only a comment",
                                  'default = "other"\n\n\n'])
@pytest.mark.parametrize("agent, mcp, file", TOML_FILES)
def test_every_byte_of_toml_comes_back(setup, home, agent, mcp, file, text):
    write(home / file, text, 0o640)
    before = tree(home), directories(home)
    assert setup(*words(agent, mcp)).returncode == 0
    now = (home / file).read_bytes().decode()
    assert CORDON in now and all(line in now for line in text.splitlines() if not line.startswith("default")), now
    assert setup(*words(agent, mcp)).stdout.startswith("nothing to change")
    assert setup(agent, "--undo").returncode == 0 and (tree(home), directories(home)) == before


@pytest.mark.parametrize("agent, mcp, file", EDITED)
def test_directories_that_setup_made_go_again(setup, home, agent, mcp, file):
    before = directories(home)
    assert setup(*words(agent, mcp)).returncode == 0
    assert (home / file).parent == home or directories(home) > before
    kept = (home / file).parent / "mine"
    write(kept, "")
    assert setup(agent, "--undo").returncode == 0 and set(tree(home)) == {str(kept.relative_to(home))}
    kept.unlink()
    # Only of those that are empty when it is undone, none is looked for later.
    shutil.rmtree(home)
    (home / "project").mkdir(parents=True)
    assert setup(*words(agent, mcp)).returncode == 0 and setup(*words(agent, mcp)).returncode == 0
    assert setup(agent, "--undo").returncode == 0 and directories(home) == before


@pytest.mark.parametrize("agent, mcp, file", JSON_FILES)
def test_what_was_changed_meanwhile_stays(setup, home, agent, mcp, file):
    write(home / file, COMMENTED)
    setup(*words(agent, mcp))
    text = (home / file).read_text()
    changed = text.replace('"MINE": "1"', '"MINE": "2", "NEW": "3"').replace("// last", "// end")
    write(home / file, changed)
    assert setup(agent, "--undo").returncode == 0
    left = (home / file).read_text()
    assert left == COMMENTED.replace('"MINE": "1"',
                                     '"MINE": "2", "NEW": "3"').replace("// last", "// end").replace("\ufeff", "\ufeff", 1)


def extend(value):
    """Every object that names cordon has a key more, and a hook has another beside it."""
    if isinstance(value, list):
        return [extend(each) for each in value] + ([{"type": "command", "command": "mine"}]
                                                   if any("type" in each and "hook" in str(each)
                for each in value if isinstance(each, dict)) else [])
    if not isinstance(value, dict):
        return value
    more = {"mine": [True]} if CORDON in str(value.get("command")) else {}
    return {key: extend(each) for key, each in reversed(value.items())} | more


@pytest.mark.parametrize("agent, mcp, file", JSON_FILES)
def test_entries_are_found_however_they_are_written_now(setup, home, agent, mcp, file):
    """As an agent does that writes its settings anew, and a person who adds to an entry."""
    mine = {"env": {"MINE": "1"}, "hooks": {"BeforeTool": [{"matcher": "x", "hooks": []}]},
            "mcpServers": {"mine": {"command": "true"}}}
    write(home / file, json.dumps(mine))
    assert setup(*words(agent, mcp)).returncode == 0
    changed = extend(json.loads((home / file).read_text()))
    write(home / file, json.dumps(changed, indent=7, sort_keys=True))
    done = setup(agent, "--undo")
    assert done.returncode == 0 and not list(home.glob(".local/state/cordon/setup/*")), done
    left = (home / file).read_text()
    assert "cordon" not in left, left
    left = json.loads(left)
    assert left["env"] == mine["env"] and left["mcpServers"] == mine["mcpServers"] and mine["hooks"]["BeforeTool"][0] in left["hooks"]["BeforeTool"]
    # A hook that was put beside cordon's is not cordon's.
    assert ("mine" in json.dumps(left["hooks"])) == ("mine" in json.dumps(changed["hooks"]).replace('"mine": [true]', ""))


@pytest.mark.parametrize("agent, mcp, file", TOML_FILES)
def test_tables_are_found_however_they_are_written_now(setup, home, agent, mcp, file):
    write(home / file, COMMENTED_TOML)
    assert setup(*words(agent, mcp)).returncode == 0
    name = "mcp_servers.cordon" if mcp else "environments"
    text = (home / file).read_text()
    table = text.index(f"[{name}]" if mcp else f'[[{name}]]\nid = "cordon"')
    own = text[table:].replace(" = ", "=").replace(f"[{name}]", f"[ {name} ]").replace("args", "# a remark\n  args")
    own += f'cwd = "/"\n\n[{name}.env]\nA = "[x]"\n\n# theirs\n[tables]\nb = [\n1,\n]\n'
    write(home / file, text[:table].replace('default = "cordon"\n',
                                            "default='cordon' # kept\n").replace("include_local = ", "include_local   =") + own)
    done = setup(agent, "--undo")
    assert done.returncode == 0 and not list(home.glob(".local/state/cordon/setup/*")), done
    assert (home / file).read_text() == ("" if mcp else "# kept\n") + COMMENTED_TOML + "\n# theirs\n[tables]\nb = [\n1,\n]\n"


@pytest.mark.parametrize("agent, mcp, file, change", [
    ("codex", False, ".codex/environments.toml",
     lambda text: text[:text.index("[[")] + f'environments = [{{ id = "cordon", program = "{CORDON}" }}]\n'),
    ("codex", False, ".codex/environments.toml", lambda text: text + "["),
    ("codex", True, ".codex/config.toml", lambda text: f'mcp_servers = {{ cordon = {{ command = "{CORDON}" }} }}\n'),
    ("gemini", False, ".gemini/settings.json", lambda text: text + "{"),
    ("cursor", False, ".cursor/hooks.json", lambda text: text[:-3]),
    ("opencode", False, ".config/opencode/plugin/cordon.js", lambda text: text + "// mine\n"),
])
def test_what_cannot_be_undone_is_said_and_its_record_kept(setup, home, agent, mcp, file, change):
    assert setup(*words(agent, mcp)).returncode == 0
    good = (home / file).read_text()
    write(home / file, change(good))
    for _ in range(2):
        done = setup(agent, "--undo")
        assert done.returncode == 125 and str(home / file) in done.stderr and f"kept {home / file}: " in done.stdout and done.stdout.count("kept ") == 1
        # All other files are as they were, and it can be undone once it is as it was.
        assert (home / file).read_text() == change(good) and set(tree(home)) == {file}
        assert [each["path"] for each in json.loads((home / f".local/state/cordon/setup/{agent}.json").read_text())["files"]] == [str(home / file)]
    write(home / file, good)
    assert setup(agent, "--undo").returncode == 0 and tree(home) == {} and not list(home.glob(".local/state/cordon/setup/*"))


def test_a_rewritten_file_loses_only_ours(setup, home):
    file = home / ".claude/settings.json"
    write(file, '{"env":{"MINE":"1","CLAUDE_CODE_TMPDIR":"/old"},"model":"x"}')
    setup("claude")
    settings = json.loads(file.read_text())
    assert settings["env"] == {"MINE": "1", "CLAUDE_CODE_TMPDIR": str(home / ".cache/cordon/claude"),
                               "CLAUDE_CODE_SHELL_PREFIX": SHELL}
    assert (home / ".cache/cordon/claude").stat().st_mode & 0o777 == 0o700
    write(file, json.dumps({"new": True, **settings}, indent=4))
    setup("claude", "--undo")
    assert json.loads(file.read_text()) == {"new": True, "env": {"MINE": "1", "CLAUDE_CODE_TMPDIR": "/old"},
                                            "model": "x"}
    # What a person has set to something else since is theirs.
    setup("claude")
    settings = json.loads(file.read_text())
    settings["env"]["CLAUDE_CODE_SHELL_PREFIX"] = "/my/own"
    write(file, json.dumps(settings))
    assert "has lost cordon's entry; run cordon setup claude" in setup(command="doctor").stdout
    assert f"{file}: an entry that setup wrote was changed to something else, and stays" in setup("claude", "--undo").stdout
    assert json.loads(file.read_text())["env"]["CLAUDE_CODE_SHELL_PREFIX"] == "/my/own"


def test_codex(setup, home):
    file = home / ".codex/environments.toml"
    for text in ('# mine\ndefault = "other" # why\n\n[[environments]]\nid = "other" # x\nurl = "ws://127.0.0.1"\n',
                 "# only a comment", "include_local = true\n"):
        write(file, text)
        before = tree(home)
        assert setup("codex").returncode == 0
        now = file.read_text()
        assert now.count('default = "cordon"\n') == 1 and now.count("include_local = false\n") == 1 and f'program = "{CORDON}"' in now
        assert setup("codex").stdout.startswith("nothing to change")
        write(file, now + "# later\n")
        assert setup("codex", "--undo").returncode == 0
        left = file.read_text()
        assert "# later" in left and "cordon" not in left
        write(file, text)
        assert setup("codex").returncode == 0 and setup("codex", "--undo").returncode == 0 and tree(home) == before
    # Entries that would contradict ours.
    for text in ('environments = [{ id = "x", url = "ws://127.0.0.1" }]\n', 'default = """\nx"""\n',
                 "[[environments\n"):
        write(file, text)
        refused = setup("codex")
        assert refused.returncode == 125 and str(file) in refused.stderr and file.read_text() == text


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"env":1}', '{"hooks":[],"env":[],"mcpServers":3,"shell":{}}{',
                                  '{"a":1,"a":2}', "{'a':1}", '{"a":1 /*', '{"a"}', "\0", '{"env":{"A":}}', "\ud7ff{"])
@pytest.mark.parametrize("agent, file", [("claude", ".claude/settings.json"), ("gemini", ".gemini/settings.json")])
def test_invalid_files_are_refused(setup, home, agent, file, text):
    if agent == "gemini" and text == '{"env":1}':
        text = '{"hooks":1}'
    write(home / file, text)
    before = tree(home)
    refused = setup(agent)
    assert refused.returncode == 125 and file in refused.stderr, refused
    assert tree(home) == before and not list(home.glob(".local/state/cordon/setup/*"))


def test_links_and_files_of_others_are_refused(setup, home):
    file = home / ".claude/settings.json"
    write(home / "elsewhere.json", "{}")
    file.parent.mkdir()
    file.symlink_to(home / "elsewhere.json")
    assert "symbolic link" in setup("claude").stderr and (home / "elsewhere.json").read_text() == "{}"
    file.unlink()
    write(file, "{}", 0o666)
    assert "others may change it" in setup("claude").stderr
    file.unlink()
    file.mkdir()
    assert "no regular file" in setup("claude").stderr
    file.rmdir()
    os.mkfifo(file)
    assert "no regular file" in setup("claude").stderr
    file.unlink()
    if IS_ROOT:
        write(file, "{}")
        os.chown(file, 12345, 12345)
        assert "another user's" in setup("claude").stderr
    write(home / ".config/opencode/plugin/cordon.js", "// mine\n")
    assert setup("opencode").returncode == 125 and not (home / ".config/opencode/opencode.json").exists()


def test_a_projects_links_lead_nowhere(setup, home):
    """A project is not of the user's making: what it links to is not written, also where the link came later."""
    elsewhere, project = home / "elsewhere", home / "project"
    elsewhere.mkdir()
    for link in (".vscode", ".github", ".github/hooks"):
        (project / link).parent.mkdir(exist_ok=True)
        (project / link).symlink_to(elsewhere)
        for words in (("vscode",), ("vscode", "--dry-run")):
            refused = setup(*words)
            assert refused.returncode == 125 and "symbolic link" in refused.stderr and not list(elsewhere.iterdir())
        (project / link).unlink()
    assert setup("vscode").returncode == 0
    (project / ".vscode").rename(home / "moved")
    (project / ".vscode").symlink_to(home / "moved")
    refused = setup("vscode", "--undo")
    assert refused.returncode == 125 and "symbolic link" in refused.stderr and (home / "moved/mcp.json").exists()
    (project / ".vscode").unlink()
    (home / "moved").rename(project / ".vscode")
    assert setup("vscode", "--undo").returncode == 0 and tree(home) == {}
    # The user's own directory may be a link.
    (home / ".claude").symlink_to(elsewhere)
    assert setup("claude").returncode == 0 and SHELL in (elsewhere / "settings.json").read_text()


def test_a_terminal_does_not_obey_a_project(setup, home):
    (home / "project").rename(home / "\x1b[2J\u202e")
    (home / "project").symlink_to(home / "\x1b[2J\u202e")
    write(home / "project/.vscode/mcp.json", '{\n\t// \x1b]0;x\x07 \u202e \r é 漢\n\t"servers": {}\n}\n')
    for words in (("vscode", "--dry-run"), ("vscode",), ("vscode", "--undo", "--dry-run"), ("vscode", "--undo")):
        said = setup(*words)
        assert said.returncode == 0, said.stderr
        assert not set("\x1b\x07\r\u202e") & set(said.stdout + said.stderr) and "\\x1b[2J\\u{202e}/.vscode/mcp.json\n" in said.stdout
        assert "--dry-run" not in words or " \t// \\x1b]0;x\\x07 \\u{202e} \\x0d é 漢\n" in said.stdout


def test_a_damaged_record(setup, home):
    setup("claude")
    record = home / ".local/state/cordon/setup/claude.json"
    assert record.stat().st_mode & 0o777 == 0o600
    good = json.loads(record.read_text())
    for bad in ("", "{", "[]", '{"files":3}', '{"files":[3]}', '{"files":[{"path":"relative"}]}',
                json.dumps({"files": [{**good["files"][0], "after": None, "edits": [{"kind": "file"}]}]}),
                json.dumps({"files": [{**good["files"][0], "after": "x",
                                       "edits": [{"kind": "toml-key", "path": [], "text": "x"}]}]})):
        write(record, bad)
        done = setup("claude", "--undo")
        assert done.returncode in (0, 125) and "Traceback" not in done.stderr
        assert SHELL in (home / ".claude/settings.json").read_text()


def test_goose_is_told_what_to_do(setup, home):
    done = setup("goose")
    assert done.returncode == 0 and f"export GOOSE_SHELL={SHELL}" in done.stdout and tree(home) == {}


def test_goose_is_told_one_word(setup, home, tmp_path):
    own = tmp_path / "it's a place"
    own.mkdir()
    shutil.copy2(CORDON, own / "cordon")
    (own / "cordon-shell").symlink_to("cordon")
    line = next(line for line in setup("goose", program=own / "cordon").stdout.splitlines() if "export" in line)
    assert subprocess.run(["sh", "-c", f"{line}; printf %s \"$GOOSE_SHELL\""], capture_output=True,
                          text=True).stdout == str(own / "cordon-shell")


def test_gemini_asks_about_every_tool(setup, home):
    """One that was renamed reaches the hook, too, which refuses it."""
    setup("gemini")
    assert json.loads((home / ".gemini/settings.json").read_text())["hooks"]["BeforeTool"][0]["matcher"] == "*"


def test_words(setup):
    assert setup("nobody").returncode == 125 and setup().returncode == 125 and setup("other").returncode == 125
    assert setup("claude", "extra").returncode == 2


def test_the_hooks_line_refuses_whatever_happens(setup, home, tmp_path):
    """A missing program, one that may not be run, one that is killed: all are status 2."""
    setup("gemini")
    line = json.loads((home / ".gemini/settings.json").read_text())["hooks"]["BeforeTool"][0]["hooks"][0]["command"]
    question = json.dumps({"session_id": "a", "cwd": str(home), "hook_event_name": "BeforeTool",
                           "tool_name": "run_shell_command", "tool_input": {"command": "ls"}})
    assert subprocess.run(["bash", "-c", line], input=question, text=True, capture_output=True).returncode == 0
    other = tmp_path / "program"
    for make in (lambda: None, lambda: write(other, "#!/bin/sh\nexit 0\n", 0o600),
                 lambda: write(other, "#!/bin/sh\nkill -9 $$\n", 0o700),
                 lambda: write(other, "#!/bin/sh\nexit 1\n", 0o700),
                 lambda: write(other, "#!/no/such/interpreter\n", 0o700)):
        make()
        done = subprocess.run(["bash", "-c", line.replace(CORDON, str(other))], input=question, text=True,
                              capture_output=True)
        assert done.returncode == 2


def test_an_environment_of_the_users_own_that_is_called_cordon(setup, home):
    file = home / ".codex/environments.toml"
    mine = '[[environments]]\nid = "cordon"\nprogram = "/usr/bin/mine"\n'
    write(file, mine)
    done = setup("codex")
    assert done.returncode == 125 and "environments.toml" in done.stderr and "another id" in done.stderr and file.read_text() == mine


def test_the_doctor_looks(setup, home):
    assert "Agents that are set up" not in setup(command="doctor").stdout
    setup("claude")
    setup("codex")
    said = setup(command="doctor").stdout
    assert "claude      as it was set up" in said and "codex       as it was set up" in said
    (home / ".codex/environments.toml").unlink()
    assert "codex       " + str(home / ".codex/environments.toml") in setup(command="doctor").stdout


def looked(setup, agent, **options):
    found = json.loads(setup("--json", command="doctor", **options).stdout)["agents"]
    return next(each for each in found if each["agent"] == agent)


@pytest.mark.parametrize("agent, package, tried",
                         [("claude", "@anthropic-ai/claude-code", "2.1.326"), ("codex", "@openai/codex", "0.169.0"),
                                                   ("gemini", "@google/gemini-cli", "0.61.0"),
                          ("opencode", "opencode-ai", "1.18.33")])
def test_the_doctor_knows_the_version(setup, tmp_path, agent, package, tried):
    """Without running the agent: a version that was not tried may run commands where cordon is missing."""
    assert json.loads((ROOT / "tests/agents/package.json").read_text())["dependencies"][package] == tried
    setup(agent)
    path = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    assert looked(setup, agent, env=path)["remarks"] == ["its program is not in PATH"]
    place = tmp_path / "lib/node_modules" / package
    write(place / "bin/run.js", "#!/bin/sh\ntouch /tmp/cordon-doctor-ran\n", 0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / agent).symlink_to(place / "bin/run.js")
    for version, told in (("0.0.9", "older"), (tried, None), ("99.0.0", "newer"), ("x", "not known")):
        write(place / "package.json", json.dumps({"name": package, "version": version}))
        found = looked(setup, agent, env=path)
        assert found["program"] == f"{tmp_path}/bin/{agent}" and found["tried"] == tried and found["fault"] is None
        assert len(found["remarks"]) == bool(told) and (not told or told in found["remarks"][0]), found
    assert "the agent's own file tools" in found["outside"] or agent == "codex" and "MCP servers" in found["outside"]
    assert not os.path.exists("/tmp/cordon-doctor-ran")


@pytest.mark.parametrize("agent, program", [("vscode", "code"), ("cursor", "cursor")])
def test_the_doctor_finds_editors(setup, tmp_path, agent, program):
    setup(agent)
    path = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    assert looked(setup, agent, env=path)["remarks"] == ["its program is not in PATH"]
    write(tmp_path / f"share/{program}/bin/{program}", "#!/bin/sh\n", 0o755)
    write(tmp_path / f"share/{program}/resources/app/package.json", json.dumps({"version": "1.2.3"}))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / program).symlink_to(tmp_path / f"share/{program}/bin/{program}")
    found = looked(setup, agent, env=path)
    assert (found["program"], found["version"], found["fault"],
            found["remarks"]) == (f"{tmp_path}/bin/{program}", "1.2.3", None, [])
    assert agent == "cursor" or "does not trust" in found["outside"]


def test_the_doctor_knows_gooses_shell(setup, tmp_path):
    assert json.loads(setup("--json", command="doctor", env={"GOOSE_SHELL": "/bin/bash"}).stdout)["agents"] == []
    found = looked(setup, "goose", env={"GOOSE_SHELL": SHELL, "PATH": "/usr/bin:/bin"})
    assert found["fault"] is None and found["remarks"] == ["its program is not in PATH"]
    write(tmp_path / "bin/goose", "", 0o755)
    assert looked(setup, "goose",
                  env={"GOOSE_SHELL": SHELL, "PATH": f"{tmp_path}/bin"})["program"] == f"{tmp_path}/bin/goose"
    assert "is missing" in looked(setup, "goose", env={"GOOSE_SHELL": f"{tmp_path}/cordon-shell"})["fault"]


def test_the_doctor_looks_at_the_top_of_the_tree(setup, home, tmp_path):
    (home / "project/.git").mkdir()
    (home / "project/inner").mkdir()
    for agent, name, content in (("claude", ".claude/settings.json", {"env": {"CLAUDE_CODE_SHELL_PREFIX": "/bin/x"}}),
                                 ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}})):
        setup(agent)
        write(home / "project" / name, json.dumps(content))
        remarks = looked(setup, agent, cwd=home / "project/inner")["remarks"]
        assert any(name in each and "do not run in cordon" in each for each in remarks), remarks


@pytest.mark.parametrize("enabled, folders, told", [
    (False, {}, False), (True, {}, True), (True, {"project": "TRUST_FOLDER"}, False),
    (True, {"": "TRUST_FOLDER"}, False), (True, {"project/sub": "TRUST_PARENT"}, False),
    (True, {"other": "TRUST_FOLDER"}, True), (False, {"project": "DO_NOT_TRUST"}, True),
    (True, {"": "TRUST_FOLDER", "project": "DO_NOT_TRUST"}, True),
])
def test_the_doctor_sees_folders_that_gemini_does_not_trust(setup, home, enabled, folders, told):
    setup("gemini")
    settings = json.loads((home / ".gemini/settings.json").read_text())
    write(home / ".gemini/settings.json", json.dumps({**settings, "security": {"folderTrust": {"enabled": enabled}}}))
    write(home / ".gemini/trustedFolders.json",
          json.dumps({str(home / name).rstrip("/"): rule for name, rule in folders.items()}))
    remarks = [each for each in looked(setup, "gemini")["remarks"] if "does not trust" in each]
    assert bool(remarks) == told


def test_the_doctor_sees_what_takes_the_entries_out_of_force(setup, home, tmp_path):
    path = {"PATH": f"{tmp_path}/bin"}
    for agent, files in (("claude", {"project/.claude/settings.json": {"env": {"CLAUDE_CODE_SHELL_PREFIX": "/bin/x"}}}),
                         ("opencode", {"project/opencode.json": {"shell": "/bin/bash"}}),
                         ("gemini", {"project/.gemini/settings.json": {"hooksConfig": {"enabled": False}}}),
                         ("gemini", {"project/.gemini/settings.json": {"hooksConfig": {"disabled": ["cordon"]}}})):
        setup(agent)
        assert len(looked(setup, agent, env=path)["remarks"]) == 1
        for name, content in files.items():
            write(home / name, json.dumps(content))
            remarks = looked(setup, agent, env=path)["remarks"]
            assert len(remarks) == 2 and name in remarks[1] and "do not run in cordon" in remarks[1], remarks
            (home / name).unlink()


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
def test_the_doctor_misses_the_program(setup, home, tmp_path, agent):
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy2(CORDON, own / "cordon")
    (own / "cordon-shell").symlink_to("cordon")
    assert setup(agent, program=own / "cordon").returncode == 0
    assert looked(setup, agent)["fault"] is None
    (own / "cordon").unlink()
    assert "is missing: no command will run" in looked(setup, agent)["fault"]
    assert f"is missing: no command will run; run cordon setup {agent}" in setup(command="doctor").stdout.replace("\n", "")
