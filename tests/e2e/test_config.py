"""`cordon config`: what is in force and where it comes from, files that are good and files that are not, the sample."""
import json
import os
import re
import shutil
import subprocess
import tomllib

import pytest

from conftest import ROOT
from lab import IS_ROOT


@pytest.fixture
def config(cordon, tmp_path):
    """The user's file; config(text) writes it."""
    path = tmp_path / "home/cordon/config.toml"
    path.parent.mkdir(parents=True)
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "home")

    def write(text):
        path.write_text(text)
        path.chmod(0o644)
        return path
    write.path = path
    return write


def test_a_closed_workspace_has_no_file_that_could_be_made_readable(cordon, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    done = cordon("run", "--workspace", closed, "--", "true")
    assert "cannot be read" not in done.stderr
    assert IS_ROOT or "its directory is closed" in done.stderr, done


def shown(cordon, *words):
    """The settings by key."""
    done = cordon("config", "show", "--json", *words)
    assert done.returncode == 0 and done.stderr == "", done
    value = json.loads(done.stdout)
    assert set(value) == {"files", "settings", "sessions", "credentials", "gateway", "note"}
    return {each["key"]: each for each in value["settings"]}, value


def wrong(cordon, *words):
    """The error of a check that must fail."""
    human = cordon("config", "check", *words)
    assert human.returncode == 1 and human.stdout == "" and human.stderr.startswith("cordon: "), human
    done = cordon("config", "check", "--json", *words)
    assert done.returncode == 1 and done.stderr == "", done
    error = json.loads(done.stdout)["error"]
    assert error["class"] == "config_invalid" and error["boundary"] == "configuration"
    return error


# ---- show ------------------------------------------------------------------------------------------------------------

def test_without_files_everything_is_the_default(cordon, config):
    settings, value = shown(cordon)
    assert all(each["from"] == "default" and each["value"] == each["default"] for each in settings.values())
    assert settings["limits.memory"]["value"] == "2G" and settings["limits.cpu"]["value"] == 100
    assert settings["capabilities.network"]["value"] == "none" and "**/.env" in settings["capabilities.deny"]["value"]
    assert [each["in_force"] for each in value["files"]] == [None] * len(value["files"]) and value["note"] is None
    assert not cordon.data.exists()


def test_each_value_names_its_file_and_line(cordon, config, workspace):
    config('[limits]\nmemory = "8G"\nprocesses = 10\n[[policy.rules]]\ntool = "run"\ndecision = "ask"\n'
           '[[session]]\nmatch = "ci-*"\nlimits.memory = "16G"\n')
    (workspace / ".cordon.toml").write_text('[limits]\nmemory = "4G"\n')
    settings, value = shown(cordon)
    assert settings["limits.memory"]["value"] == "4G"
    assert settings["limits.memory"]["from"] == f"{workspace.resolve()}/.cordon.toml:2:1"
    assert settings["limits.processes"]["from"] == f"{config.path}:3:1"
    assert settings["policy.rules"]["value"] == [{"tool": "run", "match": None, "decision": "ask",
                                                  "from": f"{config.path}:4:1"}]
    assert value["sessions"] == [{"match": "ci-*", "from": f"{config.path}:7:1", "settings": [
        {"key": "limits.memory", "value": "16G", "from": f"{config.path}:9:8"}]}]
    # Another workspace, without such a file.
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    assert shown(cordon, "--workspace", elsewhere)[0]["limits.memory"]["value"] == "8G"
    assert shown(cordon, "--workspace", "../elsewhere")[0]["limits.memory"]["value"] == "8G"


def test_for_people_it_is_a_file_again(cordon, config):
    path = config('[sandbox]\ntoolchains = ["nvm"]\n[limits]\nmemory = "8G"\n[[policy.rules]]\ntool = "run"\nmatch = "/bin/*"\n'
                  'decision = "deny"\n[[session]]\nmatch = "x"\ncapabilities.network = "all"\n')
    done = cordon("config", "show")
    assert done.returncode == 0 and re.search(rf'^memory = "8G" +# {re.escape(str(path))}:4:1$', done.stdout, re.M)
    again = path.parent / "again.toml"
    again.write_text(done.stdout)
    assert cordon("config", "check", again).returncode == 0
    assert tomllib.loads(done.stdout)["session"] == [{"match": "x", "capabilities": {"network": "all"}}]


def test_values_of_variables_are_never_shown(cordon, config):
    config('[env]\npassthrough = ["FOO"]\nset = { TOKEN = "hunter2" }\n[[session]]\nmatch = "x"\nenv.set = { KEY = "hunter2" }\n')
    settings, _ = shown(cordon)
    assert settings["env.set"]["value"] == {"TOKEN": "set"} and settings["env.passthrough"]["value"] == ["FOO"]
    for words in (["show"], ["show", "--json"]):
        done = cordon("config", *words)
        assert "hunter2" not in done.stdout + done.stderr and "TOKEN" in done.stdout
    config('[env]\nset = { TOKEN = ["hunter2"] }\n')
    assert "hunter2" not in json.dumps(wrong(cordon))


def test_strange_names_do_not_reach_the_terminal(cordon, config):
    config('capabilities.fs_read = ["/tmp/\u202etxt", "/\U000e0041"]\n[[session]]\nmatch = "\\u001b[2J"\n')
    done = cordon("config", "show")
    assert done.returncode == 0
    assert not set(done.stdout) & {"\u202e", "\x1b", "\U000e0041"}


def test_the_file_is_where_home_says(cordon, config, tmp_path):
    del cordon.env["XDG_CONFIG_HOME"]
    cordon.env["HOME"] = str(tmp_path / "me")
    path = tmp_path / "me/.config/cordon/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('sandbox.workspace_root = "~/w"\n')
    path.chmod(0o600)
    settings, _ = shown(cordon)
    assert settings["sandbox.workspace_root"]["value"] == f"{tmp_path}/me/w"


def test_one_file_instead_of_all(cordon, config, workspace):
    config("this is not TOML")
    other = workspace / "other.toml"
    other.write_text("limits.cpu = 7\n")
    other.chmod(0o600)
    settings, value = shown(cordon, "--config", "other.toml")
    assert settings["limits.cpu"]["value"] == 7 and [each["layer"] for each in value["files"]] == ["user", "project"]
    done = cordon("config", "show", "--config", "nowhere.toml")
    assert done.returncode == 125 and "nowhere.toml" in done.stderr
    assert cordon("config", "show", "--config", "").returncode == 125


def test_a_bad_file_is_an_error_with_its_place(cordon, config):
    config('[limits]\nmemory = "8G"\nmemroy = 1\n')
    done = cordon("config", "show", "--json")
    assert done.returncode == 125
    error = json.loads(done.stdout)["error"]
    assert error["subject"] == f"{config.path}:3:1" and "did you mean memory?" in error["remediation"]


# ---- check -----------------------------------------------------------------------------------------------------------

BROKEN = [
    ('[limits]\nmemory = "8G"\nmemroy = 1\n', "3:1", "did you mean memory?"),
    ('[sandbox]\ndriver = "landlok"\n', "2:1", "did you mean landlock?"),
    ('[sandbox]\nenabled = "yes"\n', "2:1", "true or false"),
    ("[limits]\nprocesses = 0\n", "2:1", "from 1 to"),
    ('[capabilities]\nfs_read = ["/a",\n "b"]\n', "3:2", "absolute"),
    ('[[policy.rules]]\ntool = "run"\ndecision = "deny"\n[[policy.rules]]\ntool = "run"\ndecision = "ask"\n', "4:1",
     ":1:1"),
    ("[limits]\n\nmemory = \n", "3:", ""),
    ("\n".join(f"key{i} = {i}" for i in range(50000)), "", ""),
]


@pytest.mark.parametrize("text, where, part", BROKEN, ids=[where or "many" for _, where, _ in BROKEN])
def test_mistakes_are_named_with_their_place(cordon, config, tmp_path, text, where, part):
    config(text)
    error = wrong(cordon)
    assert error["subject"].startswith(f"{config.path}:{where}") and part in error["reason"] + error["remediation"]
    assert wrong(cordon, config.path)["reason"] == error["reason"]


def test_good_files(cordon, config, workspace):
    config("limits.cpu = 50\n")
    for words in ([], [config.path], [os.path.relpath(config.path, workspace)]):
        assert cordon("config", "check", *words).stdout.endswith(": good\n")
        assert json.loads(cordon("config", "check", "--json", *words).stdout) == {"good": True}
    assert not cordon.data.exists()


def test_a_project_can_only_narrow(cordon, config, workspace):
    project = workspace / ".cordon.toml"
    project.write_text('[capabilities]\nspawn = false\n[limits]\nmemory = "4G"\n')
    error = wrong(cordon)
    assert error["subject"] == f"{workspace.resolve()}/.cordon.toml:4:1" and "in force: default" in error["reason"]
    assert wrong(cordon, project) == error and wrong(cordon, ".cordon.toml") == error
    config('limits.memory = "5G"\n')
    assert cordon("config", "check").returncode == 0 and cordon("config", "check", project).returncode == 0
    project.unlink()
    project.symlink_to(config.path)
    assert "symbolic link" in wrong(cordon)["reason"]
    project.unlink()
    os.mkfifo(project)
    assert "regular file" in wrong(cordon)["reason"]


def test_a_session_of_a_project_can_only_narrow(cordon, config, workspace):
    project = workspace / ".cordon.toml"
    for match in ("*", "ci-*", "one"):
        project.write_text(f'[[session]]\nmatch = "{match}"\ncapabilities.network = "all"\n')
        assert "capabilities.network can only be narrowed" in wrong(cordon)["reason"]
    project.write_text('[[session]]\nmatch = "*"\ncapabilities.spawn = false\n')
    assert cordon("config", "check").returncode == 0


def test_what_others_can_write_is_refused(cordon, config):
    config("limits.cpu = 50\n").chmod(0o666)
    assert "by others" in wrong(cordon)["reason"]


def test_a_missing_file_is_not_good(cordon, config, tmp_path):
    assert "nowhere" in wrong(cordon, tmp_path / "nowhere.toml")["subject"]
    assert ".cordon.toml" in wrong(cordon, tmp_path / ".cordon.toml")["subject"]


# ---- docs ------------------------------------------------------------------------------------------------------------

def test_the_sample_is_complete_and_good(cordon, config, tmp_path):
    text = cordon("config", "docs").stdout
    assert max(map(len, text.splitlines())) <= 110
    assert tomllib.loads(text) == {section: {} for section in tomllib.loads(text)}
    config(text)
    assert cordon("config", "check").returncode == 0
    settings, _ = shown(cordon)
    assert all(each["from"] == "default" for each in settings.values())
    # With every setting in it.
    config(re.sub(r"^#(?! |$)", "", text, flags=re.M))
    done = cordon("config", "check")
    assert done.returncode == 0, done.stderr
    settings, value = shown(cordon)
    assert not [key for key, each in settings.items() if each["from"] == "default"]
    assert value["sessions"]


def test_the_manual_has_every_setting(cordon, config, tmp_path):
    build = os.environ.get("CORDON_BUILD") or ROOT / "build"
    page = os.path.join(build, "cordon.toml.5")
    if not os.path.exists(page):
        pytest.skip("cannot: build: the manual is made by the build")
    text = open(page).read().replace("\\-", "-")
    for key in shown(cordon)[0]:
        section, name = key.split(".")
        assert f".SS [{section}]\n" in text and f"\\fB{name}\\fR\n" in text, key
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == ""


# ---- words -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words, part", [
    ([], "missing"), (["shwo"], "show?"), (["show", "x"], "x"), (["check", "a", "b"], "b"), (["docs", "x"], "x"),
    (["check", "--workspace", "/tmp"], "--workspace"),
])
def test_wrong_words(cordon, config, words, part):
    done = cordon("config", *words)
    assert done.returncode == 2 and (part in done.stderr or part in done.stdout), done


# ---- a file that is not in force -------------------------------------------------------------------------------------

STAYS = "the last good version of this file stays in force"


@pytest.mark.parametrize("first", [["--cwd", "..", "--", "true"], ["--quiet", "--", "true"]], ids=["refused", "quiet"])
def test_that_a_file_is_not_in_force_is_not_used_up_unseen(cordon, config, first):
    config("[limits]\nmemory = \"1G\"\n")
    assert cordon("run", "--", "true").stderr == ""
    config("[limits\n")
    assert STAYS in cordon("run", *first).stderr
    # Once it was said, it is not said again.
    assert STAYS not in cordon("run", "--", "true").stderr


def test_a_job_leaves_it_to_be_said(cordon, config):
    config("[limits]\nmemory = \"1G\"\n")
    assert cordon("run", "--session", "s", "--", "true").stderr == ""
    config("[limits\n")
    started = cordon("job", "start", "--session", "s", "--json", "--", "true")
    assert started.returncode == 0, started
    assert STAYS in cordon("run", "--json", "--", "true").stdout
