"""File tools: `cordon file`, as an agent's harness calls it, and the rows that the ledger has of each call."""
import base64
import json
import os
import socket
import subprocess

import pytest


@pytest.fixture
def file(cordon):
    def call(*words, status=0, **options):
        """The object of --json, or of a call that is refused the error."""
        done = cordon("file", *words, "--json", **options)
        assert done.returncode == status and done.stderr == "", (done.returncode, done.stdout, done.stderr)
        answer = json.loads(done.stdout)
        return answer["error"] if status else answer
    return call


def rows(cordon, audit_id):
    done = cordon("audit", "show", audit_id, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def refused(file, cordon, *words, **options):
    """The error; the ledger has it, and nothing of it is on standard output without --json."""
    error = file(*words, status=125, **options)
    assert [row["row"] for row in rows(cordon, error["audit_id"])][-1] == "denial"
    plain = cordon("file", *words, **options)
    assert plain.returncode == 125 and plain.stdout == "" and plain.stderr.startswith("cordon: "), plain
    return error


def test_a_day_of_work(cordon, file):
    made = file("write", "src.txt", input="one\ntwo\nthree\n")
    assert made["created"] and made["size"] == 14
    assert [row["row"] for row in rows(cordon, made["audit_id"])] == ["intent", "result"]
    assert rows(cordon, made["audit_id"])[0]["tool"] == "write"
    assert cordon("file", "read", "--offset", "2", "--limit", "1", "--numbers", "src.txt").stdout == "     2\ttwo\n"
    read = file("read", "src.txt")
    assert read["content"] == "one\ntwo\nthree\n" and read["lines"] == 3
    edited = file("edit", "--old", "two", "--new", "2", "--if-version", read["version"], "src.txt")
    assert edited["replaced"] == 1 and edited["line"] == 2
    assert refused(file, cordon, "edit", "--old", "2", "--new", "3", "--if-version", read["version"],
                   "src.txt")["class"] == "session_busy"
    assert file("mkdir", "dir")["path"] == str(cordon.workspace / "dir")
    file("rename", "src.txt", "dir/moved.txt")
    assert [entry["path"] for entry in file("find", "--type", "file")["entries"]] == ["dir/moved.txt"]
    match = file("grep", "^t.+e$")["matches"]
    assert [(m["path"], m["line"], m["text"]) for m in match] == [("dir/moved.txt", 3, "three")]
    assert file("stat", "dir/moved.txt")["size"] == 12
    assert [entry["name"] for entry in file("list", "dir")["entries"]] == ["moved.txt"]
    sent = file("send", "dir/moved.txt")
    assert base64.b64decode(sent["content"]) == b"one\n2\nthree\n" and sent["name"] == "moved.txt" and sent["type"] == "text/plain"
    assert refused(file, cordon, "remove", "dir")["class"] == "invalid_request"
    file("remove", "--recursive", "dir")
    assert list(cordon.workspace.iterdir()) == []


def test_nothing_leaves(cordon, file, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("SECRET")
    up = os.path.relpath(outside, cordon.workspace)
    (cordon.workspace / "link").symlink_to(outside)
    (cordon.workspace / "file-link").symlink_to(outside / "secret")
    (cordon.workspace / "relative").symlink_to(f"{up}/secret")
    paths = [f"{outside}/secret", f"{up}/secret", "link/secret", "file-link", "relative",
             f"/proc/self/root{outside}/secret", f"{cordon.workspace}/{up}/secret", "/etc/passwd"]
    for path in paths:
        for words in (["read", path], ["send", path], ["stat", path], ["grep", "SECRET", path],
                      ["edit", "--old", "S", "--new", "s", path], ["write", "--content", "x", path]):
            error = file(*words, status=125)
            assert error["class"] == "capability_denied", (words, error)
            assert "SECRET" not in json.dumps(error)
    refused(file, cordon, "read", paths[0])
    for words in (["write", "--content", "x", "link/new"], ["mkdir", "link/new"], ["remove", "link/secret"],
                  ["rename", "link/secret", "stolen"], ["list", "link"], ["find", "link"]):
        assert file(*words, status=125)["class"] == "capability_denied", words
    assert os.listdir(outside) == ["secret"] and (outside / "secret").read_text() == "SECRET"
    # What is granted is there, and no more of it than that.
    assert file("read", "--read", outside, f"{outside}/secret")["content"] == "SECRET"
    assert refused(file, cordon, "write", "--content", "x", "--read", outside,
                   f"{outside}/secret")["class"] == "capability_denied"
    file("write", "--content", "x", "--write", outside, f"{outside}/secret")
    assert (outside / "secret").read_text() == "x"


def test_a_second_name_of_a_file_outside(cordon, file, tmp_path):
    """Writing makes another file: what lies outside keeps its content, whatever name it has inside."""
    outside = tmp_path / "outside"
    outside.write_text("one\ntwo\n")
    for name in ("written", "edited"):
        os.link(outside, cordon.workspace / name)
    # What has a name in the workspace is content of the workspace: it can be read by that name.
    assert file("read", "written")["content"] == "one\ntwo\n"
    file("write", "written", input="new\n")
    file("edit", "--old", "two", "--new", "2", "edited")
    assert outside.read_text() == "one\ntwo\n" and outside.stat().st_nlink == 1
    assert (cordon.workspace / "written").read_text() == "new\n" and (cordon.workspace / "edited").read_text() == "one\n2\n"


def test_hidden_and_protected_names(cordon, file):
    subprocess.run(["git", "init", "-q"], cwd=cordon.workspace, check=True)
    (cordon.workspace / ".env").write_text("KEY=1")
    before = (cordon.workspace / ".git/config").read_text()
    for words in (["read", ".env"], ["read", ".ENV"], ["write", "--content", "x", ".Env.local"],
                  ["write", "--content", "x", ".git/config"], ["write", "--content", "x", ".GIT/hooks/pre-commit"],
                  ["edit", "--old", "core", "--new", "x", ".git/config"], ["remove", "--recursive", ".git"],
                  ["rename", ".git", "git"], ["rename", ".env", "plain"], ["write", "--content", "", ".cordon.toml"]):
        assert file(*words, status=125)["class"] in ("capability_denied", "not_found"), words
    assert (cordon.workspace / ".git/config").read_text() == before and not (cordon.workspace / "plain").exists()
    assert "KEY" not in json.dumps(file("grep", "--all", "KEY"))
    assert {entry["name"]: entry["type"]
            for entry in file("list")["entries"]} == {".env": "hidden", ".git": "directory"}


def test_what_was_not_looked_at_or_is_not_there_is_said(cordon, file):
    (cordon.workspace / ".env").write_text("KEY=1")
    (cordon.workspace / "one").write_text("only\n")
    for words in (["grep", "--all", "KEY"], ["find", "--all"], ["export"]):
        assert any("1 name is hidden" in note for note in file(*words)["notes"]), words
    assert file("grep", "only", "one")["notes"] == [] and "notes" not in file("read", "one")
    assert file("read", "one", "--offset", "99")["notes"] == ["the file ends before that: it has 1 line"]
    assert file("read", "one", "--bytes", "--offset", "99")["notes"] == ["the file ends before that: it has 5 bytes"]
    done = cordon("file", "read", "one", "--offset", "99")
    assert done.stdout == "" and done.stderr == "cordon: the file ends before that: it has 1 line\n"
    error = refused(file, cordon, "write", "--content", "x", "no/such/file")
    assert error["class"] == "not_found" and "the directory in which it would be" in error["reason"] and "mkdir" in error["remediation"]
    # What is too large to be sent is not told to be sent, and no other advice leads back to where it came from.
    with open(cordon.workspace / "large", "wb") as large:
        large.truncate((25 << 20) + 1)
    assert "cordon run" in file("read", "large",
                                status=125)["remediation"] and "send" not in file("read", "large", status=125)["remediation"]
    assert "cordon run" in file("send", "large",
                                status=125)["remediation"] and "cordon run" in file("export", status=125)["remediation"]


def test_what_has_no_content(cordon, file):
    os.mkfifo(cordon.workspace / "pipe")
    (cordon.workspace / "binary").write_bytes(b"\0\1\2")
    (cordon.workspace / "dir").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(cordon.workspace / "socket"))
        for name in ("pipe", "dir", "socket", "binary"):
            assert refused(file, cordon, "read", name)["class"] == "invalid_request"
    assert base64.b64decode(file("send", "binary")["content"]) == b"\0\1\2"
    assert refused(file, cordon, "read", "nothing")["class"] == "not_found"
    with open(cordon.workspace / "large", "wb") as large:
        large.truncate((25 << 20) + 1)
    assert refused(file, cordon, "send", "large")["class"] == "limit_exceeded"


def test_odd_names_and_bytes(cordon, file):
    name = "two\nlines"
    file("write", "--content", "caf\u00e9", name)
    assert cordon("file", "list").stdout.count("\n") == 1
    assert file("read", name)["content"] == "caf\u00e9"
    (cordon.workspace / "latin").write_bytes(b"caf\xe9\r\nend\r\n")
    read = file("read", "latin")
    assert not read["utf8"] and read["content"] == "caf\ufffd\r\nend\r\n"
    file("edit", "--old", "end\n", "--new", "more\nend\n", "latin")
    assert (cordon.workspace / "latin").read_bytes() == b"caf\xe9\r\nmore\r\nend\r\n"


def test_in_a_session(cordon, file, tmp_path):
    file("write", "--session", "s", "--content", "mine", "note")
    done = cordon("run", "--session", "s", "--", "cat", "note")
    assert done.stdout == "mine", done
    # Nobody can be asked for more.
    assert refused(file, cordon, "read", "--session", "s", "/etc/hostname")["class"] == "capability_denied"
    assert cordon("session", "pause", "s").returncode == 0
    assert refused(file, cordon, "read", "--session", "s", "note")["class"] == "session_paused"
    assert cordon("session", "resume", "s").returncode == 0
    assert file("read", "--session", "s", "note")["content"] == "mine"
    assert file("list", "--session", "another")["entries"] == []
    # Another session's workspace is not to be had by its path.
    theirs = json.loads(cordon("session", "show", "s", "--json").stdout)["workspace"]
    assert refused(file, cordon, "read", "--session", "another", f"{theirs}/note")["class"] == "capability_denied"
    assert refused(file, cordon, "read", "--read", cordon.data, f"{theirs}/note")["class"] == "capability_denied"


def test_path_lists_and_rules(cordon, file, tmp_path):
    for name in ("open", "closed", "asked"):
        (cordon.workspace / name).mkdir()
        (cordon.workspace / name / "file").write_text(name)
    config = tmp_path / "config.toml"
    config.write_text(f'[policy]\ndenied_paths = ["{cordon.workspace}/closed"]\n[[policy.rules]]\ntool = "read"\n'
                      f'match = "{cordon.workspace}/asked/**"\ndecision = "ask"\n')
    assert file("read", "--config", config, "open/file")["content"] == "open"
    assert "denied_paths" in refused(file, cordon, "read", "--config", config, "closed/file")["reason"]
    assert refused(file, cordon, "read", "--config", config, "asked/file")["class"] == "capability_denied"
    assert "closed" not in json.dumps(file("find", "--config", config)["entries"])
    assert file("stat", "--config", config, "asked/file")["size"] == 5


def test_without_a_ledger_nothing_is_done(cordon, file):
    file("write", "--content", "old", "file")
    (cordon.data / "cordon" / "ledger").rename(cordon.data / "cordon" / "was")
    (cordon.data / "cordon" / "ledger").write_text("no directory")
    assert file("write", "--content", "new", "file", status=125)["class"] == "audit_unavailable"
    assert (cordon.workspace / "file").read_text() == "old"


def test_words(cordon, file):
    for words in (["grep"], ["rename", "a"], ["edit", "a"], ["read"], ["write", "--offset", "1", "a"], ["frobnicate"],
                  ["find", "a", "b"]):
        done = cordon("file", *words, "--json")
        assert done.returncode in (2, 125) and json.loads(done.stdout)["error"]["class"] == "invalid_request", (words, done)
    assert "the new path is missing" in cordon("file", "rename", "a").stderr
    assert file("grep", "(a", status=125)["class"] == "invalid_request"


@pytest.mark.parametrize("path", [".git/rebase-merge/git-rebase-todo", ".git/logs/HEAD", ".git/modules",
                                  "sub/.git/BISECT_NAMES", ".GIT/x"])
def test_nothing_is_changed_in_the_directory_of_a_repository(cordon, path):
    """Nearly every file there decides what git does next, outside."""
    for name in (".git/rebase-merge", ".git/logs", "sub/.git", ".GIT"):
        (cordon.workspace / name).mkdir(parents=True, exist_ok=True)
    (cordon.workspace / "link").symlink_to("plain")
    for words in (["write", "--content", "x", path], ["mkdir", path], ["rename", "link", path]):
        done = cordon("file", *words, input="")
        assert done.returncode == 125 and ("repository" in done.stderr or "protected" in done.stderr), (words, done)
    assert not os.path.lexists(cordon.workspace / path)
