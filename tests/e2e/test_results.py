"""What a run tells: the result object, the error object, the ledger's rows, sessions and homes."""
import concurrent.futures
import hashlib
import json
import os
import re
import signal
import stat
import time

import pytest

from lab import IS_ROOT, ROOT, drivers, lack, leftovers, ledger_files, refused, result, rows, rows_of  # noqa: F401

NUMBER, TEXT, FLAG = int, str, bool
RESULT = {"exit_code": NUMBER, "signal": NUMBER, "ended_by": TEXT, "timed_out": FLAG, "stdout": TEXT, "stderr": TEXT,
          "stdout_bytes": NUMBER, "stderr_bytes": NUMBER, "stdin_bytes": NUMBER, "truncated": FLAG, "oom_killed": FLAG,
          "limit_hit": (TEXT, type(None)), "limit": (dict, type(None)), "duration_ms": NUMBER, "cpu_ms": NUMBER,
          "max_rss_kb": (NUMBER, type(None)), "memory_peak_kb": (NUMBER, type(None)),
          "process_peak": (NUMBER, type(None)), "read_bytes": NUMBER, "written_bytes": NUMBER,
          "network": (dict, type(None)), "network_unreachable": (TEXT, type(None)), "driver": TEXT, "isolation": dict,
          "denials": list, "audit_id": TEXT}
WALLS = re.findall(r'^CORDON_WALL\(\w+, "(\w+)"', (ROOT / "include/cordon-walls.def").read_text(), re.M)
CLASSES = re.findall(r'^CORDON_CLASS\(\d+, \w+, "(\w+)"', (ROOT / "include/cordon-codes.def").read_text(), re.M)
STEPS = {"session", "cwd", "capability", "profile", "run", "audit"}


# ---- the result ------------------------------------------------------------------------------------------------------

def check_shape(value):
    assert list(value) == list(RESULT)
    for key, kind in RESULT.items():
        assert isinstance(value[key], kind) and (kind is not NUMBER or not isinstance(value[key], bool)), key
    assert re.fullmatch("[0-9A-HJKMNP-TV-Z]{26}", value["audit_id"])


@drivers()
def test_the_shape_is_the_same_from_every_driver(cordon, driver):
    told = result(cordon, "--driver", driver, "-c", "echo out; echo err >&2; exit 5")
    check_shape(told)
    assert told["driver"] == driver and (told["exit_code"], told["signal"]) == (5, 0)
    assert (told["stdout"], told["stderr"], told["stdout_bytes"], told["stderr_bytes"]) == ("out\n", "err\n", 4, 4)
    check_shape(result(cordon, "--driver", driver, "--timeout", "200ms", "--", "sleep", "9"))
    check_shape(result(cordon, "--driver", driver, "-c", "kill -9 $$"))


OPTIONAL = {"spawn": ("--no-spawn",), "programs": ("--program", "/bin/true")}


@drivers()
def test_every_wall_that_was_asked_for_is_told(cordon, driver):
    told = result(cordon, "--driver", driver, "--", "/bin/true")["isolation"]
    assert list(told) == [wall for wall in WALLS if wall not in OPTIONAL]
    assert all(isinstance(mechanism, str) and mechanism for mechanism in told.values())
    if driver == "namespaces":
        missing = {wall for wall, mechanism in told.items() if mechanism == "none"}
        assert missing == ({"limit_cpu"} if lack("cgroup") else set()), told
    if driver == "local":
        assert told["filesystem"] == told["network"] == told["privileges"] == "none"
    told = result(cordon, "--driver", driver, "--net", "all", "--", "/bin/true")["isolation"]
    assert "network" not in told, "nothing was asked of it"


@pytest.mark.parametrize("wall", OPTIONAL)
def test_walls_that_are_asked_for_by_an_option(cordon, wall):
    told = result(cordon, *OPTIONAL[wall], "--", "/bin/true")["isolation"]
    assert told[wall] != "none"


def test_root_is_told_who_the_command_was(cordon):
    told = result(cordon, "--", "id", "-u")
    assert told["stdout"] != "0\n"
    assert told["isolation"]["identity"] == ("unprivileged user, owners mapped" if IS_ROOT else
                                             "caller's user, unprivileged")


def test_times_and_memory_are_plausible(cordon):
    begun = time.monotonic()
    told = result(cordon, "--", "sleep", "0.5")
    outside = (time.monotonic() - begun) * 1000
    assert 500 <= told["duration_ms"] <= outside and told["cpu_ms"] < 200
    told = result(cordon, "--", "/usr/bin/python3", "-c",
                  "import time\nx = b'x' * (100 << 20)\nwhile time.process_time() < 0.5: pass")
    assert 450 <= told["cpu_ms"] <= told["duration_ms"] + 100 < 30_000
    assert 100_000 <= told["max_rss_kb"] < 250_000
    for _ in range(30):  # ends sooner than anybody looks at the clock
        assert result(cordon, "--", "/bin/true")["duration_ms"] < 5_000


def test_cpu_time_of_children_counts(cordon):
    told = result(cordon, "-c", "/usr/bin/python3 -c 'import time\nwhile time.process_time() < 0.4: pass' & wait")
    assert told["cpu_ms"] >= 350


def test_output_that_is_no_text(cordon):
    """JSON is UTF-8: what is not is replaced there, and counted as it was."""
    told = result(cordon, "-c", r"printf 'a\377\376b\000c\303'")
    assert told["stdout_bytes"] == 7 and told["stdout"].startswith("a") and "b\0c" in told["stdout"]
    told = result(cordon, "--max-output", "64", "-c", "for n in $(seq 100); do printf 'ü'; done")
    head, tail = told["stdout"].split("\n[cordon: ")
    assert set(head) == {"ü"} and set(tail.split("]\n")[1]) == {"ü"}, "no character is split"
    assert told["truncated"] and told["stdout_bytes"] == 200


def test_what_was_planted_is_told(cordon):
    line = "mkdir -p .git/hooks; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    told = result(cordon, "-c", line)
    [denial] = told["denials"]
    assert set(denial) == {"what", "wall", "note", "grant", "setting"}
    assert denial["what"] == f"{cordon.workspace}/.git/hooks/pre-commit" and denial["wall"] == "protected_names"
    assert not (cordon.workspace / ".git/hooks/pre-commit").exists()
    kept = list((cordon.data / "cordon/quarantine").rglob("*"))
    assert any(path.is_file() for path in kept)
    assert rows_of(cordon, told["audit_id"])[1]["denials"][0]["what"] == denial["what"]


# ---- the error -------------------------------------------------------------------------------------------------------

def test_errors_have_nine_keys_everywhere(cordon):
    seen = set()
    for words, status in ((["--read", "/no/such", "--", "true"], 125), (["--cwd", "..", "--", "true"], 125),
                          (["--", "no-such"], 127), (["--env", "LD_PRELOAD=x", "--", "true"], 125),
                          (["--driver", "disabled", "--", "true"], 125),
                          (["--workspace", "/etc", "--", "true"], 125)):
        error = refused(cordon, *words, status=status)
        assert error["class"] in CLASSES and error["step"] in STEPS
        assert all(isinstance(error[key], str) for key in set(error) - {"retriable", "setting"})
        assert error["setting"] is None or set(error["setting"]) == {"key", "value"}
        seen.add(error["step"])
    assert seen == {"capability", "cwd", "run", "profile", "session"}


# ---- the ledger ------------------------------------------------------------------------------------------------------

SECRET = "hunter2-sk-0123456789abcdef"


def test_rows_close_what_they_open(cordon):
    told = result(cordon, "--read", "/etc/hostname", "--processes", "10", "--timeout", "5s", "-c", "echo x; exit 3")
    intent, ended = rows_of(cordon, told["audit_id"])
    assert (intent["row"], ended["row"]) == ("intent", "result") and intent["session"] == ended["session"]
    for row in (intent, ended):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["time"])
    assert intent["time"] <= ended["time"]
    assert intent["program"] == "/bin/sh" and intent["cwd"] == intent["workspace"] == str(cordon.workspace)
    assert ended["program"] == intent["program"]
    assert (intent["driver"], intent["platform"]) == ("namespaces", "linux")
    assert intent["argv_shape"] == [7, 2, 14]
    assert intent["argv_sha256"] == hashlib.sha256(b"/bin/sh\0-c\0echo x; exit 3\0").hexdigest()
    granted = intent["capabilities"]
    assert granted["fs_read"] == ["/etc/hostname"] and granted["processes"] == 10 and granted["wall_ms"] == 5000
    assert (ended["exit_code"], ended["signal"], ended["timed_out"], ended["denials"]) == (3, 0, False, [])
    assert ended["stdout"] == {"bytes": 2, "sha256": hashlib.sha256(b"x\n").hexdigest(), "truncated": False}
    assert ended["stderr"]["sha256"] == hashlib.sha256(b"").hexdigest()
    assert ended["isolation"] == told["isolation"] and ended["duration_ms"] == told["duration_ms"]


def test_the_hash_is_of_everything_that_was_written(cordon):
    told = result(cordon, "--max-output", "100", "-c", "seq 100000")
    [_, ended] = rows_of(cordon, told["audit_id"])
    whole = "".join(f"{n}\n" for n in range(1, 100_001)).encode()
    assert ended["stdout"] == {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest(), "truncated": True}


def test_the_intent_is_there_before_the_command(cordon):
    """Seen from the outside while it runs."""
    process = cordon.popen("run", "-c", "echo up; read line", stdin=-1)
    assert process.stdout.readline() == b"up\n"
    assert [row["row"] for row in rows(cordon)] == ["intent"]
    process.communicate(b"\n")
    assert [row["row"] for row in rows(cordon)] == ["intent", "result"]


@drivers()
def test_no_secret_reaches_the_ledger(cordon, driver):
    env = {**cordon.env, "API_TOKEN": SECRET}
    cordon("run", "--driver", driver, "--pass-env", "API_TOKEN", "--env", f"OTHER={SECRET}", "-c",
           f"echo $API_TOKEN {SECRET}; echo $OTHER >&2", env=env, input=SECRET)
    cordon("run", "--driver", driver, "--env", f"API_TOKEN={SECRET}", "--", "no-such-program", f"--token={SECRET}",
           env=env)
    cordon("run", "--driver", driver, "--env", f"LD_PRELOAD={SECRET}", "--", "true", env=env)
    cordon("run", "--driver", driver, "--cwd", "missing", "-c", f"curl -H 'Authorization: {SECRET}'", env=env)
    assert len(rows(cordon)) >= 4
    for file in cordon.data.rglob("*"):
        if file.is_file() and os.access(file, os.R_OK):
            assert SECRET.encode() not in file.read_bytes(), file


def test_the_ledger_is_its_owners_alone(cordon):
    cordon("run", "--", "true")
    [file] = ledger_files(cordon)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\.jsonl", file.name)
    for path in (file, file.parent, file.parent.parent):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) and path.stat().st_uid == os.geteuid()
    done = cordon("run", "-c", f"ls -la {cordon.data} {file}; cat {file}; find / -name '*.jsonl' -path '*ledger*' 2>/dev/null")
    assert file.name not in done.stdout


def test_a_torn_line_is_repaired(cordon):
    cordon("run", "--", "true")
    [file] = ledger_files(cordon)
    with open(file, "a") as ledger:
        ledger.write('{"row":"intent","id":"to')
    assert cordon("run", "--", "true").returncode == 0
    lines = file.read_text().splitlines()
    assert lines[3] == '{"row":"intent","id":"to'
    kinds = [json.loads(line)["row"] for line in lines[:3] + lines[4:]]
    assert kinds == ["begin", "intent", "result", "repair", "intent", "result"]


# ---- sessions --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("session", ["plain", 'quote"back\\slash', "sl/ash", "ünï", "emoji \U0001f600", "x" * 1000])
def test_where_a_session_works(cordon, session):
    """The first 16 bytes of SHA-256 over the id as a JSON string."""
    text = json.dumps(session, ensure_ascii=False)
    wanted = cordon.data / "cordon/workspaces" / hashlib.sha256(text.encode()).hexdigest()[:32]
    assert cordon("run", f"--session={session}", "-c",
                  "pwd; echo $CORDON_WORKSPACE; echo $HOME").stdout == f"{wanted}\n" * 3
    assert wanted.stat().st_mode & 0o7777 == 0o700 and wanted.stat().st_uid == os.geteuid()


def test_many_race_for_a_new_session(cordon):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for turn in range(3):
            runs = [pool.submit(cordon, "run", "--session", f"new{turn}", "-c", f"pwd; echo {n} > {n}")
                    for n in range(16)]
            places = {run.result().stdout for run in runs}
            assert len(places) == 1 and all(run.result().returncode == 0 for run in runs), places
            made = [name for name in os.listdir(places.pop().strip())
                    if not name.startswith(".")]  # mount points in its home
            assert sorted(made, key=int) == [str(n) for n in range(16)]
    assert len(list((cordon.data / "cordon/workspaces").iterdir())) == 3


def test_sessions_do_not_see_each_other(cordon):
    cordon("run", "--session", "a", "-c", "echo secret > file")
    done = cordon("run", "--session", "b", "-c", "ls -a ..; cat ../*/file")
    assert "secret" not in done.stdout and done.returncode != 0
    [other] = [path for path in (cordon.data / "cordon/workspaces").iterdir() if (path / "file").exists()]
    assert cordon("run", "--session", "b", "--", "cat", other / "file").returncode != 0


def test_a_run_without_a_session_is_its_own(cordon):
    told = result(cordon, "-c", "echo $CORDON_SESSION_ID $CORDON_SANDBOX_ID")
    assert told["stdout"].split() == [told["audit_id"]] * 2
    told = result(cordon, "--session", "named", "-c",
                  "echo $CORDON_SESSION_ID $CORDON_SANDBOX_ID $CORDON_SANDBOX $CORDON_NETWORK")
    assert told["stdout"].split() == ["named", told["audit_id"], "namespaces", "none"]
    assert not (cordon.data / "cordon/homes").exists()


# ---- homes -----------------------------------------------------------------------------------------------------------

def test_a_home_in_a_session_of_cordons_making_is_the_workspace(cordon):
    cordon("run", "--session", "s", "-c", "echo kept > ~/.history")
    assert cordon("run", "--session", "s", "-c",
                  "cat ~/.history; [ $HOME = $PWD ] && echo same").stdout == "kept\nsame\n"


def test_the_home_of_a_session_in_a_named_directory_is_kept_with_the_session(cordon):
    options = ["--session", "s", "--workspace", cordon.workspace]
    assert cordon("run", *options, "-c", "mkdir -p ~/.cache && echo kept > ~/.cache/x; ls -A").stdout == ""
    assert cordon("run", *options, "-c", "cat ~/.cache/x; echo $HOME").stdout == f"kept\n{cordon.env['HOME']}\n"
    assert cordon("run", "--session", "t", "--workspace", cordon.workspace, "--toolchain", "none", "-c",
                  "ls -A ~").stdout == ""
    assert list(cordon.workspace.iterdir()) == []
    home, = [path for path in (cordon.data / "cordon/homes").iterdir() if (path / ".cache/x").exists()]
    assert home.name == hashlib.sha256(b'"s"').hexdigest()[:32] and home.stat().st_mode & 0o7777 == 0o700


def test_the_home_of_a_one_off_is_gone_after_it(cordon):
    line = "ls -A ~; echo x > ~/.bash_history; df --output=fstype ~ | tail -1; cd; pwd"
    for _ in range(2):
        assert cordon("run", "--toolchain", "none", "-c", line).stdout == f"tmpfs\n{cordon.env['HOME']}\n"
    assert list(cordon.workspace.iterdir()) == []
    assert not any(path.name == ".bash_history" for path in cordon.data.rglob("*"))


@drivers("landlock", "local")
def test_homes_without_a_private_root(cordon, driver, leftovers, tmp_path):
    line = "ls -A ~; echo x > ~/file; echo y > $TMPDIR/file2; echo $HOME; [ -w ~ ] && echo writable"
    done = cordon("run", "--quiet", "--driver", driver, "-c", line)
    assert done.stdout.endswith("writable\n") and str(cordon.data) in done.stdout, done
    assert list(cordon.workspace.iterdir()) == []
    config = tmp_path / "config.toml"
    config.write_text(f'[sandbox]\ndriver = "{driver}"\n')
    options = ["--quiet", "--config", config, "--session", "s", "--workspace", cordon.workspace]
    cordon("run", *options, "-c", "echo kept > ~/note")
    assert cordon("run", *options, "-c", "cat ~/note").stdout == "kept\n"


# ---- profile ---------------------------------------------------------------------------------------------------------

def test_a_profile_creates_nothing(cordon, tmp_path):
    def everything():
        return sorted((str(path), path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    (cordon.workspace / ".git/hooks").mkdir(parents=True)
    (cordon.workspace / ".env").write_text("X=1\n")
    before = everything()
    for words in ([], ["--session", "s"], ["--session", "s", "--workspace", cordon.workspace], ["--driver", "landlock"],
                  ["--driver", "local"], ["--driver", "bwrap"], ["--driver", "auto"], ["--view", "host-readonly"],
                  ["--view", "bare"]):
        words = [*words, "--disk", "1G"]  # a plain one is by what is free, which others change meanwhile
        done = cordon("profile", *words, "--", "touch", "made")
        assert done.returncode == 0, done
        assert json.loads(done.stdout)["argv"] == ["touch", "made"]
        assert cordon("profile", *words, "--", "touch", "made").stdout == done.stdout, "the same each time"
    assert everything() == before


def test_a_profile_is_what_a_run_does(cordon):
    # By name, the limits that a run with --json has and a plain one has not.
    words = ["--read", "/etc/hostname", "--no-spawn", "--timeout", "5s", "--cpu", "100%", "--max-output", "1M"]
    profile = json.loads(cordon("profile", *words, "--", "/bin/true").stdout)
    told = result(cordon, *words, "--", "/bin/true")
    assert set(profile["walls"]) == set(told["isolation"])
    assert profile["limits"]["wall_ms"] == 5000 and profile["spawn"] is False
    assert {"kind": "bind", "target": "/etc/hostname", "source": "/etc/hostname",
            "flags": ["read_only", "granted"]} in \
        profile["mounts"]


def test_a_profile_of_what_is_refused(cordon):
    for words, kind in ((["--read", "/no/such"], "invalid_request"), (["--cwd", ".."], "capability_denied"),
                        (["--driver", "disabled"], "sandbox_disabled")):
        done = cordon("profile", "--json", *words, "--", "true")
        assert done.returncode == 125 and json.loads(done.stdout)["error"]["class"] == kind
    assert not cordon.data.exists()
