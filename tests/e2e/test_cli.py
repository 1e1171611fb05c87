"""The command line: what is refused and how, exit statuses, help."""
import json
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

COMMANDS = ["run", "profile", "doctor", "completion", "help", "version"]

# Words after `cordon run`, and what the error is about. Classes are checked where the contract fixes one.
BAD_WORDS = [
    (["--bogus", "--", "true"], "invalid_request", "--bogus"),
    (["--raed", "/etc", "--", "true"], "invalid_request", "--raed"),
    (["-z", "true"], "invalid_request", "-z"),
    (["--json=yes", "--", "true"], "invalid_request", "--json"),
    ([], "invalid_request", ""),
    (["--"], "invalid_request", ""),
    (["--", ""], "invalid_request", ""),
    (["--timeout", "--", "true"], "invalid_request", "--timeout"),
    (["--timeout"], "invalid_request", "--timeout"),
    (["--timeout", "fast", "--", "true"], "invalid_request", "fast"),
    (["--timeout", "", "--", "true"], "invalid_request", ""),
    (["--timeout", "-1", "--", "true"], "invalid_request", "-1"),
    (["--timeout", "5 s", "--", "true"], "invalid_request", "5 s"),
    (["--timeout", "99999999999999999999h", "--", "true"], "invalid_request", "9h"),
    (["--memory", "lots", "--", "true"], "invalid_request", "lots"),
    (["--memory", "2X", "--", "true"], "invalid_request", "2X"),
    (["--memory", "99999999999999999999", "--", "true"], "invalid_request", "9999"),
    (["--processes", "many", "--", "true"], "invalid_request", "many"),
    (["--processes", "1.5", "--", "true"], "invalid_request", "1.5"),
    (["--max-output", "1Q", "--", "true"], "invalid_request", "1Q"),
    (["--read", "relative/path", "--", "true"], "invalid_request", "relative/path"),
    (["--write", "./here", "--", "true"], "invalid_request", "./here"),
    (["--read", "", "--", "true"], "invalid_request", ""),
    (["--read", "/new\nline", "--", "true"], "invalid_request", "line"),
    (["--read", "/no/such/path", "--", "true"], None, "/no/such/path"),
    (["--write", "/no/such/path", "--", "true"], None, "/no/such/path"),
    (["--device", "relative", "--", "true"], "invalid_request", "relative"),
    (["--socket", "relative", "--", "true"], "invalid_request", "relative"),
    (["--program", "relative", "--", "true"], "invalid_request", "relative"),
    (["--session", "new\nline", "--", "true"], "invalid_request", "line"),
    (["--session", "", "--", "true"], "invalid_request", ""),
    (["--workspace", "/no/such/directory", "--", "true"], None, "/no/such/directory"),
    (["--workspace", "/", "--", "true"], None, "/"),
    (["--workspace", "/usr", "--", "true"], None, "/usr"),
    (["--workspace", "/etc/passwd", "--", "true"], None, "/etc/passwd"),
    (["--cwd", "..", "--", "true"], "capability_denied", ".."),
    (["--cwd", "missing", "--", "true"], "capability_denied", "missing"),
    (["--cwd", "/etc", "--", "true"], "capability_denied", "/etc"),
    (["--view", "sytem", "--", "true"], "invalid_request", "sytem"),
    (["--driver", "namespace", "--", "true"], "invalid_request", "namespace"),
    (["--toolchain", "nvn", "--", "true"], "invalid_request", "nvn"),
    (["--net", "sometimes", "--", "true"], "invalid_request", "sometimes"),
    *[(["--net", host, "--", "true"], "invalid_request", host) for host in (
        "example.com", "example.com:", "example.com:0", "example.com:99999", "example.com:8o", ":443", "a b:1", "a,b:1",
        "user@example.com:443", "http://example.com:80", "example.com:443/", "*:443", "*.*.com:443", "a.*.com:443",
        "127.1:80", "0x7f000001:80", "010.0.0.1:80", "::1:80", "[::1%lo]:80", "ex\u00e4mple.com:443", "a..b:1",
        "example.com:+443")],
    (["--net", "a.test:1", "--net", "all", "--", "true"], "invalid_request", "all"),
    (["--net", "a.test:1", "--net", "none", "--", "true"], "invalid_request", "none"),
    (["--net", "none", "--net", "a.test:1", "--", "true"], "invalid_request", "a.test:1"),
    (["--net", "all", "--net", "a.test:1", "--", "true"], "invalid_request", "a.test:1"),
    (["--env", "NOVALUE", "--", "true"], "invalid_request", "NOVALUE"),
    (["--env", "=x", "--", "true"], "invalid_request", ""),
    (["--env", "LD_PRELOAD=/x.so", "--", "true"], "invalid_request", "LD_PRELOAD"),
    (["--env", "bash_env=/x", "--", "true"], "invalid_request", "bash_env"),
    (["--pass-env", "PYTHONPATH", "--", "true"], "invalid_request", "PYTHONPATH"),
    (["--driver", "disabled", "--", "true"], "sandbox_disabled", ""),
]

SUGGESTIONS = [
    (["--raed", "/etc", "--", "true"], "--read"), (["--time-out=1", "true"], "--timeout"),
    (["--view", "sytem", "--", "true"], "system"), (["--driver", "namespace", "--", "true"], "namespaces"),
    (["--toolchain", "nvn", "--", "true"], "nvm"),
]


@pytest.mark.parametrize("words, kind, subject", BAD_WORDS, ids=lambda value: " ".join(value)[:40]
                         if isinstance(value, list) else None)
def test_bad_words(cordon, words, kind, subject):
    error = cordon.refused(*words)
    assert kind in (None, error["class"]) and error["class"] != "internal", error
    assert subject in error["subject"] or subject in error["reason"], error
    assert list(cordon.workspace.iterdir()) == []


@pytest.mark.parametrize("words, suggestion", SUGGESTIONS, ids=lambda value: value if isinstance(value, str) else None)
def test_did_you_mean(cordon, words, suggestion):
    assert suggestion in cordon.refused(*words)["remediation"]


def test_a_refused_value_is_not_told(cordon):
    for words in (["--env", "BASH_ENV=hunter2"], ["--tokn=hunter2"]):
        assert "hunter2" not in json.dumps(cordon.refused(*words, "--", "true"))


def test_json_counts_wherever_it_stands(cordon):
    done = cordon("run", "--bogus", "--json", "--", "true")
    assert json.loads(done.stdout)["error"]["class"] == "invalid_request" and done.stderr == ""
    done = cordon("run", "--bogus", "--", "echo", "--json")
    assert done.stdout == "" and done.stderr


def test_messages_cannot_steer_a_terminal(cordon):
    for name in ("--\x1b]0;owned\x07", "--a\rb", "--\u202eevil", "--\x9b31m", "--\udcff"):
        done = cordon("run", name, "--", "true", text=False)
        assert done.returncode == 125
        text = done.stderr.decode()  # which is to say: it is UTF-8
        assert all(character == "\n" or character.isprintable() for character in text), text


def test_workspaces_that_are_refused(cordon, tmp_path):
    a_file = tmp_path / "file"
    a_file.write_text("")
    cordon.refused("--workspace", a_file, "--", "true")
    home = tmp_path / "home"
    home.mkdir()
    cordon.refused("--workspace", home, "--", "true", env={**cordon.env, "HOME": str(home)})
    # What contains cordon's own data.
    cordon.refused("--workspace", tmp_path, "--", "true")


@pytest.mark.skipif(os.geteuid() == 0, reason="cannot: user: root may write everywhere")
def test_workspace_that_is_not_ours(cordon):
    cordon.refused("--workspace", "/etc", "--", "true")


def test_a_directory_that_is_gone(cordon, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    done = subprocess.run(["sh", "-c", line, "sh", *cordon.argv("run", "--", "true")], env=cordon.env,
                          capture_output=True, text=True)
    assert done.returncode == 125 and done.stderr.startswith("cordon: ")


def test_cwd_through_links(cordon, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (cordon.workspace / "inside").mkdir()
    for name, target in (("leaves", outside), ("dangles", "nowhere"), ("climbs", "../outside")):
        (cordon.workspace / name).symlink_to(target)
        assert cordon.refused("--cwd", name, "--", "true")["class"] == "capability_denied"
    done = cordon("run", "--cwd", "inside", "--", "pwd")
    assert done.stdout == f"{cordon.workspace}/inside\n", done


def elf_for_another_machine():
    risc_v, x86_64 = 243, 62
    machine = x86_64 if os.uname().machine == "riscv64" else risc_v
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0x10000, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return ident + header + struct.pack("<IIQQQQQQ", 1, 5, 0, 0x10000, 0x10000, 120, 120, 0x1000)


def make_setuid(path):
    shutil.copy("/bin/true", path)
    path.chmod(0o4755)


def make_foreign(path):
    path.write_bytes(elf_for_another_machine())
    path.chmod(0o755)


NOT_EXECUTABLE = [
    ("plain", lambda path: path.write_text("#!/bin/sh\n")), ("directory", lambda path: path.mkdir()),
    ("setuid", make_setuid), ("foreign", make_foreign),
]


@pytest.mark.parametrize("name, make", NOT_EXECUTABLE, ids=[row[0] for row in NOT_EXECUTABLE])
def test_not_executable(cordon, name, make):
    make(cordon.workspace / name)
    error = cordon.refused("--", f"./{name}", status=126)
    assert error["class"] == "program_not_allowed" and name in error["subject"]


@pytest.mark.parametrize("program", ["no-such-program-anywhere", "./missing", "/no/such/program"])
def test_not_found(cordon, program):
    error = cordon.refused("--", program, status=127)
    assert error["class"] == "program_not_found" and program in error["subject"]


STATUSES = [
    (["--", "true"], 0), (["--", "false"], 1), (["-c", "exit 3"], 3), (["-c", "exit 255"], 255),
    (["-c", "kill -TERM $$"], 143), (["-c", "kill -KILL $$"], 137), (["--timeout", "300ms", "--", "sleep", "30"], 124),
    (["--timeout=1s", "-c", "trap '' TERM; sleep 30"], 124), (["-c", "exit 125"], 125),
]


@pytest.mark.parametrize("words, status", STATUSES, ids=[" ".join(words) for words, _ in STATUSES])
def test_statuses(cordon, words, status):
    assert cordon("run", *words).returncode == status


def test_words_reach_the_command_as_they_are(cordon):
    words = ["--json", "-c", "a b", "", "new\nline", "tab\t", "$HOME", "\udcff", "--"]
    done = cordon("run", "--", "printf", "%s|", *words, text=False)
    assert done.stdout == b"".join(os.fsencode(word) + b"|" for word in words)
    # Without "--" the first word that is no option ends the options.
    assert cordon("run", "echo", "--json", "--quiet").stdout == "--json --quiet\n"


def test_shell_line(cordon):
    done = cordon("run", "-c", 'echo "$0 $1 $#"', "zero", "one", "two")
    assert done.stdout == "zero one 2\n"
    assert cordon("run", "-c", "").returncode == 0


def test_workspace_is_the_current_directory(cordon):
    (cordon.workspace / "file").write_text("here\n")
    assert cordon("run", "-c", "pwd; cat file").stdout == f"{cordon.workspace}\nhere\n"


def test_a_relative_workspace_is_named_from_here(cordon):
    (cordon.workspace / "sub").mkdir()
    for named in ("sub", "./sub", "sub/../sub/"):
        assert cordon("run", "--workspace", named, "--", "pwd").stdout == f"{cordon.workspace}/sub\n", named
    assert cordon("run", "--workspace", "missing", "--", "pwd").returncode == 125


def test_session_has_its_own_workspace(cordon):
    assert cordon("run", "--session", "a", "-c", "pwd; echo kept > note").stdout != f"{cordon.workspace}\n"
    assert cordon("run", "--session", "a", "--", "cat", "note").stdout == "kept\n"
    assert cordon("run", "--session", "b", "--", "cat", "note").returncode == 1
    assert list(cordon.workspace.iterdir()) == []


def test_json_result(cordon):
    done = cordon("run", "--json", "-c", "echo out; echo err >&2; exit 4")
    assert done.returncode == 4 and done.stderr == "" and done.stdout.count("\n") == 1
    result = json.loads(done.stdout)
    assert {"exit_code": 4, "signal": 0, "timed_out": False, "stdout": "out\n", "stderr": "err\n", "stdout_bytes": 4,
            "truncated": False, "oom_killed": False}.items() <= {**result, "signal": result["signal"] or 0}.items()
    assert {"limit_hit", "duration_ms", "cpu_ms", "max_rss_kb", "isolation", "denials", "audit_id"} <= set(result)


def test_timeout_keeps_output_and_says_so(cordon):
    done = cordon("run", "--timeout", "500ms", "-c", "echo before; exec sleep 30")
    assert done.returncode == 124 and done.stdout == "before\n" and "timed out" in done.stderr
    assert cordon("run", "--quiet", "--timeout", "300ms", "--", "sleep", "30").stderr == ""
    result = json.loads(cordon("run", "--json", "--timeout", "500ms", "-c", "echo before; exec sleep 30").stdout)
    assert result["timed_out"] and result["stdout"] == "before\n"


def test_nothing_is_said_without_need(cordon):
    done = cordon("run", "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_weaker_driver_is_told(cordon):
    done = cordon("run", "--driver", "local", "--", "true")
    assert done.returncode == 0 and "filesystem" in done.stderr
    assert cordon("run", "--driver", "local", "--quiet", "--", "true").stderr == ""


def test_profile_prints_and_runs_nothing(cordon):
    done = cordon("profile", "--disk", "1G", "--read", "/etc/hostname", "--", "touch", "made")
    assert done.returncode == 0 and done.stderr == "", done
    assert json.loads(done.stdout) and done.stdout.count("\n") > 5
    assert list(cordon.workspace.iterdir()) == [] and not cordon.data.exists()
    one_line = cordon("profile", "--json", "--disk", "1G", "--read", "/etc/hostname", "--", "touch", "made").stdout
    assert one_line.count("\n") == 1 and json.loads(one_line) == json.loads(done.stdout)
    assert cordon("profile", "--bogus", "--", "true").returncode == 125
    assert cordon("profile").returncode == 125
    # What run finds out inside the walls only.
    for words in (["nonexistent"], ["/etc/passwd"], ["--program", "/usr/bin/ls", "--", "cat"]):
        assert cordon("profile", *words).returncode == 0


def test_drivers_are_named(cordon):
    """By the refusal of another word; those of this system are what the doctor looks at."""
    error = cordon.refused("--driver", "foo", "--", "true")
    assert error["reason"] == "there is no such driver", error
    _, _, listed = error["remediation"].partition("choose one of: auto ")
    names = {driver["name"] for driver in json.loads(cordon("doctor", "--json").stdout)["drivers"]}
    assert listed and {*listed.split()} == names | {"disabled"}, error
    for other in ("seatbelt", "windows"):
        assert "another system" in cordon.refused("--driver", other, "--", "true")["reason"]


def test_doctor(cordon):
    machine = cordon("doctor", "--json")
    report = json.loads(machine.stdout)
    assert machine.returncode == (0 if report["holds"] else 1) and machine.stderr == ""
    names = [driver["name"] for driver in report["drivers"]]
    assert report["default_driver"] in names
    human = cordon("doctor")
    assert human.returncode == machine.returncode and "\x1b" not in human.stdout
    for name in names:
        assert name in human.stdout
    chosen = report["drivers"][names.index(report["default_driver"])]
    for wall in chosen["walls"]:
        assert wall["wall"] in human.stdout and wall["mechanism"] in human.stdout
    for driver in report["drivers"]:
        for wall in driver.get("walls", []):
            assert wall["can_hold"] or not wall["holds"], wall
            assert wall["holds"] or wall["fix"], wall
    hosts = {driver["name"]: driver["listed_hosts"] for driver in report["drivers"] if driver["works"]}
    assert not any(hosts[name]["holds"] or "namespaces" not in hosts[name]["fix"] for name in ("landlock", "local")
                   if name in hosts)
    assert all(hosts[name]["holds"] for name in ("namespaces", "bwrap") if name in hosts), hosts
    assert ("A network of listed hosts: yes" in human.stdout) == hosts.get(chosen["name"], {"holds": False})["holds"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help(cordon, command):
    first, second = cordon("help", command), cordon(command, "--help")
    assert first.returncode == second.returncode == 0 and first.stderr == second.stderr == ""
    assert first.stdout == second.stdout == cordon(command, "-h").stdout
    assert first.stdout.startswith(f"Usage: cordon {command}")
    assert max(map(len, first.stdout.splitlines())) <= 80
    assert command in cordon("help").stdout


def test_help_after_other_options(cordon):
    done = cordon("run", "--read", "/etc", "--help")
    assert done.returncode == 0 and done.stdout.startswith("Usage:")
    assert "--help" in cordon("run", "--", "echo", "--help").stdout


def test_version(cordon):
    for words in (["version"], ["--version"], ["-V"]):
        done = cordon(*words)
        assert done.returncode == 0 and done.stdout.startswith("cordon ") and done.stdout.count("\n") == 1


USAGE_ERRORS = [[], ["bogus"], ["--bogus"], ["help", "bogus"], ["help", "run", "more"], ["doctor", "--jsn"],
                ["doctor", "x"], ["version", "x"], ["completion"], ["completion", "csh"], [""]]


@pytest.mark.parametrize("words", USAGE_ERRORS, ids=lambda words: " ".join(words) or "nothing")
def test_usage_errors(cordon, words):
    done = cordon(*words)
    assert done.returncode == 2 and done.stdout == "" and "cordon" in done.stderr


def test_unknown_commands_are_corrected(cordon):
    assert "cordon run" in cordon("rnu").stderr and "doctor" in cordon("docter").stderr
    assert "cordon run -- " in cordon("ls").stderr


@pytest.mark.parametrize("words, meant", [("session remove", "session rm"), ("session delete", "session rm"),
                                          ("job stop", "job kill"), ("session stop", "session end"),
                                          ("job ls", "job list"), ("session resme", "session resume")])
def test_unknown_actions_are_corrected(cordon, words, meant):
    done = cordon(*words.split())
    assert done.returncode == 2 and f"did you mean cordon {meant}?" in done.stderr, done


def test_a_full_standard_output_is_noticed(cordon):
    for words in (["help"], ["run", "--json", "--", "true"], ["run", "--", "echo", "x"]):
        with open("/dev/full", "w") as full:
            done = cordon(*words, stdout=full)
        assert done.returncode == 125 and "No space left" in done.stderr, words


def test_a_closed_standard_output_is_noticed(cordon):
    """Where something is written to it; and no file of cordon's takes its place."""
    for words, status in ((["help"], 125), (["run", "--json", "--", "true"], 125), (["run", "--", "echo", "x"], 125),
                          (["run", "--", "true"], 0), (["run", "--", "no-such-program"], 127)):
        done = subprocess.run(["bash", "-c", '"$@" >&-', "bash", *cordon.argv(*words)], cwd=cordon.workspace,
                              env=cordon.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == status and ("Bad file descriptor" in done.stderr) == (status == 125), (words, done)
    assert cordon("audit", "verify").returncode == 0


def test_a_ledger_that_cannot_be_written_refuses(cordon):
    pathlib.Path(cordon.data).write_text("a file where a directory should be")
    error = cordon.refused("--", "touch", "made")
    assert error["class"] == "audit_unavailable" and list(cordon.workspace.iterdir()) == []
