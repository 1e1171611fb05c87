"""Sessions: made, shown, listed, paused, resumed, ended and removed; ids that are anything; records that were
damaged."""
import fcntl
import hashlib
import json
import os
import pathlib
import stat
import subprocess

import pytest

from conftest import ERROR_KEYS
from lab import IS_ROOT, rows


def hashed(identifier):
    """Of the id as a JSON string."""
    return hashlib.sha256(json.dumps(identifier, ensure_ascii=False).encode()).hexdigest()[:32]


def directory(cordon, identifier):
    return cordon.data / "cordon/sessions" / hashed(identifier)


def record(cordon, identifier):
    return directory(cordon, identifier) / "session.json"


def session(cordon, *words, **options):
    """What an action that must succeed says to a program."""
    done = cordon("session", words[0], "--json", *words[1:], **options)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1, done
    return json.loads(done.stdout)


def refused(cordon, *words, status=125, recorded=True):
    """The error of an action that must fail, in both forms; what was refused by a session is in the ledger."""
    before = len(rows(cordon))
    human = cordon("session", *words)
    assert human.returncode == status and human.stdout == "" and human.stderr.startswith("cordon: "), human
    machine = cordon("session", words[0], "--json", *words[1:])
    assert machine.returncode == status and machine.stderr == "", machine
    error = json.loads(machine.stdout)["error"]
    assert set(error) == ERROR_KEYS and error["reason"]
    new = rows(cordon)[before:]
    assert [row["row"] for row in new] == ["denial"] * (2 if recorded else 0), new
    if recorded:
        assert new[-1]["id"] == error["audit_id"] and new[-1]["error"] == error and error["step"] == "session"
    return error


def changes(cordon, identifier):
    return [row["change"] for row in rows(cordon) if row["row"] == "session" and row["session"] == identifier]


# ---- every action ----------------------------------------------------------------------------------------------------

def test_the_life_of_a_session(cordon):
    made = session(cordon, "new", "s")
    own = cordon.data / "cordon/workspaces" / hashed("s")
    assert made["id"] == "s" and made["state"] == "active" and made["why"] is None and made["baseline"] is None
    assert made["workspace"] == made["home"] == str(own) and not made["workspace_named"]
    assert made["grants"] == made["denials"] == [] and made["created"] == made["changed"]
    assert session(cordon, "new", "s") == session(cordon, "show", "s") == made
    paused = session(cordon, "pause", "s", "--why", "a ü reason")
    assert (paused["state"], paused["why"]) == ("paused", "a ü reason") and paused["changed"] > made["changed"]
    resumed = session(cordon, "resume", "s")
    assert (resumed["state"], resumed["why"]) == ("active", None)
    assert cordon("session", "pause", "s").stdout == ""
    assert session(cordon, "end", "s")["state"] == "ended"
    assert session(cordon, "rm", "s") == {"removed": "s"}
    assert not directory(cordon, "s").exists()
    assert session(cordon, "new", "s")["created"] > made["created"]
    assert changes(cordon, "s") == ["made", "paused", "resumed", "paused", "ended", "removed", "made"]
    told = [row for row in rows(cordon) if row.get("change") == "paused"][0]
    assert told["why"] == "a ü reason" and told["state"] == "paused"


def test_modes(cordon):
    session(cordon, "new", "s", umask=0)
    for path in (directory(cordon, "s").parent, directory(cordon, "s"), *directory(cordon, "s").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_what_a_session_may_reach(cordon, tmp_path):
    (tmp_path / "data").mkdir()
    made = session(cordon, "new", "s", "--workspace", cordon.workspace, "--read", f"{tmp_path}/data/../data/",
                   "--write", tmp_path, "--no-spawn", "--memory", "64M", "--net", "all", "--program", "/bin/ls",
                   "--max-output", "unlimited")
    assert made["workspace"] == str(cordon.workspace) and made["workspace_named"]
    assert made["home"] == str(cordon.data / "cordon/homes" / hashed("s"))
    baseline = made["baseline"]
    assert baseline["fs_write"] == [str(tmp_path)] and baseline["network"] == "all" and baseline["spawn"] is False
    assert "fs_read" not in baseline  # what may be written may be read
    assert baseline["limits"]["memory_bytes"] == 64 << 20 and "wall_ms" not in baseline["limits"]
    assert "deny" not in baseline  # what the configuration says holds besides
    [row] = rows(cordon)
    assert row["baseline"] == baseline and row["workspace"] == str(cordon.workspace)
    # The same again is the same session; anything else is not.
    assert session(cordon, "new", "s", "--workspace", ".")["created"] == made["created"]
    assert "workspace" in refused(cordon, "new", "s", "--workspace", tmp_path / "data")["reason"]
    assert "capabilities" in refused(cordon, "new", "s", "--no-spawn")["reason"]
    session(cordon, "new", "plain")
    assert "workspace" in refused(cordon, "new", "plain", "--workspace", cordon.workspace)["reason"]
    assert "capabilities" in refused(cordon, "new", "plain", "--read", "/usr")["reason"]
    human = cordon("session", "show", "s").stdout
    assert f"  write     {tmp_path}\n" in human and "  spawn     no\n" in human and "memory 64 MiB" in human


def test_named_limits_are_what_its_commands_have(cordon):
    """Each of them, more or less than the usual; a command may ask for less."""
    def limits(*words):
        return json.loads(cordon("profile", *words, "--", "true").stdout)["limits"]
    session(cordon, "new", "more", "--timeout", "5m", "--cpu", "200", "--max-output", "2M")
    session(cordon, "new", "less", "--timeout", "5s", "--cpu", "50")
    more, less = limits("--session", "more"), limits("--session", "less")
    assert (more["wall_ms"], more["cpu_percent"], more["stdout_bytes"]) == (300000, 200, 2 << 20), more
    assert less["wall_ms"] == 5000, less
    assert limits("--session", "more", "--timeout",
                  "7s")["wall_ms"] == 7000 and limits("--session", "usual")["wall_ms"] == 60000


def test_what_cannot_be_had(cordon, tmp_path):
    for words in (["--read", tmp_path / "missing"], ["--workspace", tmp_path / "missing"]):
        assert refused(cordon, "new", "s", *words)["class"] == "invalid_request"
    for words in (["--workspace", "/"], ["--workspace", "/usr"], ["--workspace", cordon.data]):
        assert refused(cordon, "new", "s", *words)["class"] == "capability_denied"
    assert refused(cordon, "new", "s", "--read", "missing")["class"] == "invalid_request"
    assert session(cordon, "list") == {"sessions": []}


def test_a_workspace_that_is_not_utf8(cordon, tmp_path):
    odd = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(odd)
    made = session(cordon, "new", "s", "--workspace", os.fsdecode(odd))
    assert bytes.fromhex(made["workspace"]["hex"]) == odd
    assert session(cordon, "new", "s", "--workspace", os.fsdecode(odd)) == made
    refused(cordon, "new", "s", "--workspace", tmp_path)
    assert odd.hex() in cordon("session", "list").stdout


def test_list(cordon):
    assert cordon("session", "list").stdout == "no sessions\n" and not cordon.data.exists()
    names = ["first", "x" * 200, "esc\u202eaped", "-dash"]
    for name in names:
        session(cordon, "new", "--", name)
    session(cordon, "pause", "first")
    listed = session(cordon, "list")["sessions"]
    assert [one["id"] for one in listed] == names[::-1]
    assert [one["state"] for one in listed] == ["active"] * 3 + ["paused"]
    lines = cordon("session", "list").stdout.splitlines()
    assert len(lines) == 5 and len({line.index("ctive") for line in lines if "active" in line}) == 1, lines
    assert lines[2].startswith("esc\\u{202e}aped ") and lines[3].startswith("x" * 39 + "…  active")
    assert lines[0].index("STATE") == lines[4].index("paused")


@pytest.mark.parametrize("words, subject", [
    ([], ""), (["nwe", "s"], "nwe"), (["new"], "new"), (["show"], "show"), (["rm", "a", "b"], "b"),
    (["list", "a"], "a"), (["show", "s", "--read", "/usr"], "--read PATH"),
    (["resume", "s", "--why", "x"], "--why TEXT"), (["pause", "s", "--remove-workspace"], "--remove-workspace"),
    (["new", "s", "--frob"], "--frob"), (["new", "s", "--cwd", "/x"], "--cwd"),
    (["new", "s", "--env", "A=B"], "--env")], ids=" ".join)
def test_words_that_make_no_sense(cordon, words, subject):
    human, machine = cordon("session", *words), cordon("session", "--json", *words)
    assert human.returncode == machine.returncode == 2 and human.stdout == machine.stderr == ""
    error = json.loads(machine.stdout)["error"]
    assert error["subject"] == subject and error["remediation"] and not cordon.data.exists()


# ---- under a configuration -------------------------------------------------------------------------------------------

def configure(cordon, text):
    place = cordon.data.parent / "config/cordon"
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.toml").write_text(text)
    cordon.env["XDG_CONFIG_HOME"] = str(place.parent)


def test_the_configured_baseline(cordon, tmp_path):
    configure(cordon, '[capabilities]\nfs_read = ["/opt"]\n[limits]\nprocesses = 7\n')
    assert session(cordon, "new", "follows")["baseline"] is None
    # What it is given comes on top of what is configured when a command runs.
    baseline = session(cordon, "new", "more", "--read", "/usr")["baseline"]
    assert baseline["fs_read"] == ["/usr"] and "processes" not in baseline["limits"] and baseline["spawn"] is True
    configure(cordon, '[capabilities]\npreset = "strict"\n')
    assert session(cordon, "show", "more")["baseline"] == baseline
    assert cordon("run", "--session", "more", "-c", "/usr/bin/true & wait").returncode != 0


def test_the_configured_place(cordon, tmp_path):
    """A session keeps its workspace where it was, whatever is configured later."""
    (tmp_path / "root").mkdir()
    configure(cordon, f'[sandbox]\nworkspace_root = "{tmp_path}/root"\n')
    made = session(cordon, "new", "s")
    assert made["workspace"] == f"{tmp_path}/root/{hashed('s')}"
    pathlib.Path(made["workspace"]).mkdir()
    configure(cordon, "")
    assert session(cordon, "show", "s")["workspace"] == made["workspace"]
    assert str(cordon.data) in session(cordon, "new", "t")["workspace"]
    session(cordon, "end", "s", "--remove-workspace")
    assert list((tmp_path / "root").iterdir()) == []


ALL = [["new", "s"], ["list"], ["show", "s"], ["pause", "s"], ["resume", "s"], ["end", "s"],
       ["end", "s", "--remove-workspace"], ["rm", "s"]]


def test_switched_off(cordon):
    """Every call says so, and nothing is made or changed."""
    configure(cordon, "[sandbox]\nenabled = false\n")
    for words in ALL:
        assert refused(cordon, *words, recorded=False)["class"] == "sandbox_disabled"
    assert not cordon.data.exists()


def test_a_configuration_that_is_wrong(cordon):
    configure(cordon, "[sandbox]\nenabeld = true\n")
    for words in ALL:
        assert refused(cordon, *words, recorded=False)["class"] == "config_invalid"
    assert not cordon.data.exists()


# ---- states ----------------------------------------------------------------------------------------------------------

TO_STATE = {"active": [], "paused": [["pause"]], "ended": [["end"]], "missing": None}
REFUSALS = {
    ("pause", "paused"): "invalid_request", ("pause", "ended"): "session_ended", ("pause", "missing"): "not_found",
    ("resume", "active"): "invalid_request", ("resume", "ended"): "session_ended", ("resume", "missing"): "not_found",
    ("end", "ended"): "session_ended", ("end", "missing"): "not_found",
    ("rm", "active"): "invalid_request", ("rm", "paused"): "invalid_request", ("rm", "missing"): "not_found",
    ("new", "ended"): "session_ended",
}


@pytest.mark.parametrize("state", TO_STATE)
def test_every_action_in_every_state(cordon, state):
    for action in ("new", "pause", "resume", "end", "rm"):
        name = f"{action} in {state}"
        if state != "missing":
            session(cordon, "new", name)
            for words in TO_STATE[state]:
                session(cordon, *words, name)
        before = record(cordon, name).read_bytes() if state != "missing" else None
        if (action, state) not in REFUSALS:
            session(cordon, action, name)
            continue
        error = refused(cordon, action, name)
        assert error["class"] == REFUSALS[action, state] and error["subject"] == name, error
        assert (record(cordon, name).read_bytes() if record(cordon, name).exists() else None) == before
    for action, hint in (("new", "cordon help session"), ("show", "cordon session list")):
        assert cordon("session", action).stderr.endswith(f"fix: see {hint}\n")
    error = refused(cordon, "show", "nobody", recorded=False)
    assert error["class"] == "not_found" and "no such session" in error["reason"]


def test_reasons_that_are_refused(cordon):
    session(cordon, "new", "s")
    for why in ("new\nline", "x" * 1025, "\udcff"):
        assert refused(cordon, "pause", "s", "--why", why, recorded=False)["class"] == "invalid_request"
    assert session(cordon, "pause", "s", "--why", "x" * 1024)["why"] == "x" * 1024


# ---- workspaces ------------------------------------------------------------------------------------------------------

def own_workspace(cordon, identifier):
    """A session's own workspace and home, with things in it that do not want to be removed."""
    for kind in ("workspaces", "homes"):
        place = cordon.data / "cordon" / kind / hashed(identifier)
        (place / "locked/deep").mkdir(parents=True)
        (place / "locked/deep/file").write_text("x")
        (place / "link").symlink_to(cordon.workspace)
        os.mkfifo(place / "fifo")
        (place / "locked/deep").chmod(0)
        (place / "locked").chmod(0o500)
    return cordon.data / "cordon/workspaces" / hashed(identifier), cordon.data / "cordon/homes" / hashed(identifier)


def nothing_aside(cordon):
    return not [path for kind in ("workspaces", "homes") for path in (cordon.data / "cordon" / kind).glob(".*")]


def test_workspaces_of_its_own(cordon):
    (cordon.workspace / "kept").write_text("x")
    session(cordon, "new", "s")
    workspace, home = own_workspace(cordon, "s")
    session(cordon, "end", "s")
    assert workspace.exists()
    session(cordon, "end", "s", "--remove-workspace")
    assert not workspace.exists() and home.exists() and (cordon.workspace / "kept").exists()
    session(cordon, "rm", "s")
    assert not home.exists() and nothing_aside(cordon)
    assert [row.get("removes_workspace") for row in rows(cordon)] == [None, None, True, True]


def test_rm_takes_all_that_is_its_own(cordon):
    for name in ("s", "other"):
        session(cordon, "new", name)
    left = own_workspace(cordon, "other")
    gone = own_workspace(cordon, "s")
    # What a remover that was killed had moved aside goes, too; what only looks alike does not.
    aside = cordon.data / "cordon/workspaces/.cordon-removed-01M7FKHYMZMT506NRGWYCD7JCA"
    alike = cordon.data / "cordon/workspaces/.cordon-removed-mine"
    (aside / "deep").mkdir(parents=True)
    alike.mkdir()
    session(cordon, "end", "s")
    session(cordon, "rm", "s")
    assert not any(path.exists() for path in gone) and all(path.exists()
                                                           for path in left) and not aside.exists() and alike.exists()
    assert [one["id"] for one in session(cordon, "list")["sessions"]] == ["other"]
    for path in left:
        subprocess.run(["chmod", "-R", "u+rwx", path])


def test_a_named_workspace_is_never_removed(cordon):
    (cordon.workspace / "kept").write_text("x")
    session(cordon, "new", "s", "--workspace", cordon.workspace)
    session(cordon, "end", "s", "--remove-workspace")
    session(cordon, "rm", "s")
    assert (cordon.workspace / "kept").exists() and not any("removes_workspace" in row for row in rows(cordon))


def test_a_link_in_place_of_the_workspace(cordon):
    (cordon.workspace / "kept").write_text("x")
    session(cordon, "new", "s")
    place = cordon.data / "cordon/workspaces" / hashed("s")
    place.parent.mkdir()
    place.symlink_to(cordon.workspace)
    session(cordon, "end", "s", "--remove-workspace")
    assert not place.is_symlink() and (cordon.workspace / "kept").exists()


def test_a_session_in_use(cordon):
    """A command holds a shared lock for its life. Ending lets it finish; removing anything does not go."""
    session(cordon, "new", "s")
    workspace, _ = own_workspace(cordon, "s")
    with open(directory(cordon, "s") / "use", "a+") as use:
        fcntl.flock(use, fcntl.LOCK_SH)
        error = refused(cordon, "end", "s", "--remove-workspace")
        assert error["class"] == "session_busy" and error["retriable"]
        assert session(cordon, "show", "s")["state"] == "active" and workspace.exists()
        session(cordon, "end", "s")
        assert refused(cordon, "rm", "s")["class"] == "session_busy"
    session(cordon, "rm", "s")
    assert not workspace.exists()


# ---- ids -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["/", "..", ".", "../../../etc/passwd", "a/b", "-c", "--json", "a b", " ", '"\\', "ü",
                                  "\U0001f4a9", "x" * 65536, '"' * 65536], ids=lambda name: name[:12])
def test_ids_of_any_kind(cordon, name):
    made = session(cordon, "new", "--", name)
    assert made["id"] == name and pathlib.Path(made["workspace"]).name == hashed(name)
    assert [path.name for path in (cordon.data / "cordon/sessions").iterdir()] == [hashed(name)]
    assert [one["id"] for one in session(cordon, "list")["sessions"]] == [name]
    session(cordon, "end", "--", name)
    session(cordon, "rm", "--", name)
    assert {path.name for path in cordon.data.rglob("*")} - {"cordon", "ledger", "sessions"} == \
        {path.name for path in (cordon.data / "cordon/ledger").iterdir()}


def test_ids_of_every_byte(cordon):
    """One process for each would take long: printable ones at once, and each of the others."""
    session(cordon, "new", "--", bytes(range(0x20, 0x7f)).decode())
    for byte in [*range(1, 0x20), *range(0x7f, 0x100)]:
        done = cordon("session", "show", "--json", b"a" + bytes([byte]) + b"b",
                      text=False) if byte in (10, 0x7f, 0x80, 0xff) \
            else cordon("session", "show", "--json", "--", b"a" + bytes([byte]), text=False)
        assert done.returncode == 125 and json.loads(done.stdout)["error"]["class"] == "invalid_request", byte


@pytest.mark.parametrize("name", [b"", b"x" * 65537, b"\xff", b"a\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xc2\x85",
                                  b"a\nb", b"\x1b[31m"],
                         ids=lambda name: repr(name[:8]))
def test_ids_that_are_none(cordon, name):
    for words in (["new"], ["show"], ["pause"], ["resume"], ["end"], ["end", "--remove-workspace"], ["rm"]):
        done = cordon("session", *words, "--json", "--", name, text=False)
        assert done.returncode == 125, done
        error = json.loads(done.stdout)["error"]
        assert error["class"] == "invalid_request" and error["boundary"] == "session" and "id" in error["reason"]
    run = cordon("run", "--json", b"--session=" + name, "--", "true", text=False)
    assert run.returncode == 125 and json.loads(run.stdout)["error"]["class"] == "invalid_request"
    assert not cordon.data.exists()


# ---- damage ----------------------------------------------------------------------------------------------------------

def as_text(change):
    return lambda path: path.write_text(change(path.read_text()))


def as_member(key, value):
    return as_text(lambda text: json.dumps({**json.loads(text), key: value}))


def replace_by(make):
    def damage(path):
        path.rename(path.with_name("aside"))
        make(path)
    return damage


DAMAGES = {
    "garbage": as_text(lambda text: "\0\1\2"), "empty": as_text(lambda text: ""),
    "half": as_text(lambda text: text[:len(text) // 2]), "huge": lambda path: os.truncate(path, 1 << 40),
    "wrong id": as_member("id", "another"), "no version": as_member("version", 0), "a key more": as_member("more", 1),
    "no such state": as_member("state", "free"), "not an object": as_text(lambda text: "[]"),
    "a grant of nonsense": as_member("grants", [{"card": "x"}]), "deep": as_text(lambda text: "[" * 100_000),
    "a link": replace_by(lambda path: path.symlink_to("aside")), "a pipe": replace_by(os.mkfifo),
    "a directory": replace_by(os.mkdir), "for others to write": lambda path: path.chmod(0o666),
    "the directory for others to write": lambda path: path.parent.chmod(0o777),
}
if IS_ROOT:
    DAMAGES["another owner"] = lambda path: os.chown(path, 12345, 12345)
    DAMAGES["the directory another owner's"] = lambda path: os.chown(path.parent, 12345, 12345)


def snapshot(path):
    return [(one.name, one.lstat().st_mode, one.lstat().st_size, one.lstat().st_uid) for one in sorted(path.iterdir())
            if one.name != "use"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_records(cordon, damage):
    session(cordon, "new", "s")
    session(cordon, "new", "whole")
    DAMAGES[damage](record(cordon, "s"))
    before = snapshot(directory(cordon, "s"))
    for words in (["new", "s"], ["pause", "s"], ["end", "s", "--remove-workspace"], ["rm", "s"]):
        error = refused(cordon, *words)
        assert error["class"] == "internal" and str(directory(cordon, "s")) in error["subject"] and error["remediation"], error
    error = refused(cordon, "show", "s", recorded=False)
    assert error["class"] == "internal"
    # Nothing is lost, and the others are not touched by it.
    assert snapshot(directory(cordon, "s")) == before
    listed = session(cordon, "list")["sessions"]
    assert [(one["id"], one["state"]) for one in listed] == [("whole", "active"), (None, "damaged")]
    assert listed[1]["directory"] == str(directory(cordon, "s"))
    assert "(damaged)  damaged" in cordon("session", "list").stdout


def test_no_row_no_change_but_a_stop(cordon):
    """Who wants a session stopped has it stopped, and is told that no row says so; all else needs its row."""
    for name in ("s", "t", "ended", "paused"):
        session(cordon, "new", name)
    assert cordon("run", "--session", "t", "--", "touch", "kept").returncode == 0
    session(cordon, "end", "ended")
    session(cordon, "pause", "paused")
    ledger = cordon.data / "cordon/ledger"
    ledger.rename(ledger.with_name("kept"))
    ledger.write_text("in its place")
    for state, *words in (["", "new", "more"], ["", "resume", "paused"], ["", "rm", "ended"],
                          ["", "end", "ended", "--remove-workspace"], ["paused", "pause", "s"], ["ended", "end", "s"],
                          ["ended", "end", "t", "--remove-workspace"]):
        done = cordon("session", words[0], "--json", *words[1:])
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 125 and error["class"] == "audit_unavailable" and error["audit_id"] == "", error
        assert f"the session is {state}, but the ledger does not say so" in error["reason"] if state else True, error
    assert {one["id"]: one["state"] for one in session(cordon, "list")["sessions"]} == {
        "s": "ended", "t": "ended", "ended": "ended", "paused": "paused"}
    assert list((cordon.data / "cordon/workspaces").glob("*/kept"))


# ---- many at once ----------------------------------------------------------------------------------------------------

def test_many_make_one_session(cordon):
    """64 processes and one new id: one record, one row."""
    words = cordon.argv("session", "new", "--json", "one")
    at_once = [subprocess.Popen(words, stdout=subprocess.PIPE, env=cordon.env, cwd=cordon.workspace) for _ in range(64)]
    outputs = [process.communicate(timeout=60)[0] for process in at_once]
    assert all(process.returncode == 0 for process in at_once), [output for output in outputs if b"error" in output]
    assert len(set(outputs)) == 1
    assert changes(cordon, "one") == ["made"]
    assert {path.name for path in directory(cordon, "one").iterdir()} == {"session.json", "lock"}
