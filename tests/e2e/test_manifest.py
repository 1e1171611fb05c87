"""`cordon manifest check`: what a sound manifest is told as, what is wrong with others and where, and that the machine
is asked before a tool is used for the first time."""
import json
import os
import shutil

import pytest

from conftest import ERROR_KEYS
from lab import leftovers, needs, rows  # noqa: F401

TRUE = shutil.which("true")


def manifest(cordon, programs=(TRUE,), spawn="", rest=""):
    """A file with these programs, further keys of [capabilities.spawn], and further tables."""
    path = cordon.workspace / "tool.toml"
    path.write_text(f'name = "tool"\ndescription = "does \\u202e nothing"\n[capabilities.spawn]\n'
                    f"programs = {json.dumps([os.fspath(program) for program in programs])}\n{spawn}\n{rest}\n")
    return path


def refused(cordon, path, *words):
    """The error, which is the same for people and for programs; nothing was recorded and nothing left."""
    human, machine = cordon("manifest", "check", path, *words), cordon("manifest", "check", "--json", path, *words)
    assert human.returncode == machine.returncode == 125, (human, machine)
    assert human.stdout == "" and machine.stderr == "" and human.stderr.startswith("cordon: ")
    error = json.loads(machine.stdout)["error"]
    assert set(error) == ERROR_KEYS and error["reason"] and error["audit_id"] == ""
    assert rows(cordon) == []
    return error


@needs("mount-namespace", "landlock")
def test_a_sound_manifest(cordon, tmp_path, leftovers):
    data, out = tmp_path / "in", tmp_path / "out"
    data.mkdir()
    out.mkdir()
    path = manifest(cordon, spawn=f'argv = ["-i {{file}}", ["--x", "a b", "{{rest:option...}}"], ""]\n'
                                  f'fs_read = ["{data}"]\nfs_write = ["{out}/"]\nenv_passthrough = ["LANGUAGE"]',
                    rest='[capabilities.spawn.limits]\nmemory = "512M"\ntimeout = "90s"\nmax_output = 65536')
    done = cordon("manifest", "check", path)
    assert done.returncode == 0 and done.stderr == "", done
    assert [line.split(maxsplit=1) for line in done.stdout.splitlines()[1:-1]] == [
        ["programs", TRUE], ["arguments", "-i {file}"], ["--x", "a b {rest:option...}"], ["none"], ["reads", str(data)],
        ["writes", str(out)], ["variables", "LANGUAGE"], ["limits", "memory 512M"], ["timeout", "90s"],
        ["max_output", "64K"]]
    assert done.stdout.startswith("tool: does \\u{202e} nothing\n")  # no text of a file turns a terminal around
    assert done.stdout.endswith("This machine can hold it, by the driver namespaces.\n")

    done = cordon("manifest", "check", "--json", path)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["name"] == "tool" and told["file"] == str(path)
    assert told["argv"] == [["-i", "{file}"], ["--x", "a b", "{rest:option...}"], []]
    assert told["capabilities"]["fs_write"] == [str(out)] and told["capabilities"]["limits"]["wall_ms"] == 90000
    assert told["isolation"]["programs"] != "none" and told["driver"] == "namespaces"
    assert rows(cordon) == [] and list(out.iterdir()) == []


@needs("mount-namespace", "landlock")
def test_one_that_says_little(cordon):
    path = manifest(cordon)
    assert "arguments   any\n" in cordon("manifest", "check", path).stdout
    # By any name that leads there, also a relative one.
    (cordon.workspace / "link.toml").symlink_to("tool.toml")
    assert json.loads(cordon("manifest", "check", "link.toml", "--json").stdout)["argv"] is None


HEAD = 'name = "x"\n[capabilities.spawn]\nprograms = ["/bin/true"]\n'
MISTAKES = [
    ('name = "x"\nfoo', "2:4", "an '=' was expected", ""),
    ('name = "x"\n[capabilities.spwan]', "2:15", "no key \"spwan\"", "did you mean spawn?"),
    (HEAD + "fs_raed = []", "4:1", "no key \"fs_raed\"", "did you mean fs_read?"),
    ('name = "x"\n[capabilities.spawn]\nprograms = ["true"]', "3:13", "neither absolute nor", ""),
    (HEAD + 'argv = ["{a"]', "4:9", "closing brace", ""),
    (HEAD + 'env_passthrough = ["LD_PRELOAD"]', "4:20", "LD_PRELOAD", ""),
    ('[capabilities.spawn]\nprograms = ["/bin/true"]', "1:1", "no name", ""),
    ('name = "x"', "1:1", "no program", ""),
    ("a = 1\n" * 2, "2:1", "there already", ""),
    ("a = " + "[" * 100000, "1:37", "levels deep", ""),
    ("".join(f"k{i} = 1\n" for i in range(30000)), "20001:1", "more than 20000 values", ""),
]


@pytest.mark.parametrize("text, place, says, remedy", MISTAKES, ids=[row[2] for row in MISTAKES])
def test_mistakes_are_told_by_their_place(cordon, text, place, says, remedy):
    path = cordon.workspace / "tool.toml"
    path.write_text(text)
    error = refused(cordon, path)
    assert (error["class"], error["subject"]) == ("config_invalid", f"{path}:{place}"), error
    assert says in error["reason"] and error["remediation"].startswith(remedy), error


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "large", "others"])
def test_what_is_no_file_of_ones_own(cordon, kind):
    path = cordon.workspace / "tool.toml"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        path.write_text("# \n" * 400000)
    elif kind == "others":
        manifest(cordon).chmod(0o666)
    error = refused(cordon, path)
    assert error["class"] == "config_invalid" and error["subject"].startswith(str(path)), error
    assert error["reason"].startswith("the manifest "), error


@pytest.mark.parametrize("kind", ["missing", "plain", "directory", "setuid", "setgid"])
def test_programs_are_looked_at(cordon, kind):
    program = cordon.workspace / "program"
    if kind == "directory":
        program.mkdir()
    elif kind != "missing":
        shutil.copy(TRUE, program)
        program.chmod({"plain": 0o644, "setuid": 0o4755, "setgid": 0o2755}[kind])
    error = refused(cordon, manifest(cordon, [TRUE, program]))
    class_ = "program_not_found" if kind == "missing" else "program_not_allowed"
    assert (error["class"], error["subject"]) == (class_, str(program)), error


@needs("mount-namespace", "landlock")
@pytest.mark.parametrize("path, class_", [("/nonexistent/data", "invalid_request"), ("/proc", "capability_denied")])
def test_paths_are_looked_at(cordon, path, class_):
    error = refused(cordon, manifest(cordon, spawn=f'fs_read = ["{path}"]'))
    assert (error["class"], error["subject"], error["step"]) == (class_, path, "capability"), error


@pytest.mark.parametrize("setting, class_, boundary", [("enabled = false", "sandbox_disabled", ""),
                                                       ('driver = "local"', "spawn_sandbox_unavailable", "filesystem")])
def test_the_configuration_counts(cordon, setting, class_, boundary):
    """Nothing runs where the sandbox is switched off, and what a weaker driver would leave out is said."""
    config = cordon.workspace / "config.toml"
    config.write_text(f"[sandbox]\n{setting}\n")
    error = refused(cordon, manifest(cordon), "--config", config)
    assert (error["class"], error["boundary"]) == (class_, boundary), error


@needs("mount-namespace", "landlock")
def test_hosts_are_held_or_refused(cordon):
    file = manifest(cordon, rest='[capabilities.network]\nhosts = ["example.com:443"]')
    told = json.loads(cordon("manifest", "check", "--json", file).stdout)
    assert told["capabilities"]["hosts"] == ["example.com:443"] and told["isolation"]["network"] != "none", told
    config = cordon.workspace / "config.toml"
    config.write_text('[sandbox]\ndriver = "landlock"\n')
    error = refused(cordon, file, "--config", config)
    assert error["class"] == "spawn_sandbox_unavailable", error


@pytest.mark.parametrize("words", ["", "chekc x", "check", "check a b", "check --read / a"])
def test_usage(cordon, words):
    done = cordon("manifest", *words.split())
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("cordon: "), done
