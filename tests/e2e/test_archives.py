"""File tools about whole trees: walk, copy, export, import; and what an archive from elsewhere may not do."""
import base64
import io
import json
import os
import subprocess
import tarfile

import pytest

from test_files import file, refused, rows  # noqa: F401


def archive(*entries):
    """Of (path, kind, content or target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, kind, content in entries:
            info = tarfile.TarInfo(path)
            info.type, info.mode = kind, 0o755
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                tar.addfile(info)
    return out.getvalue()


FILE, DIRECTORY, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def put(cordon, data, *words):
    """cordon file import: its object, or the error."""
    done = cordon("file", "import", *words, "--json", text=False, input=data)
    answer = json.loads(done.stdout)
    assert (done.returncode == 0) == ("error" not in answer), done
    return answer.get("error", answer)


def fill(top):
    (top / "src/deep").mkdir(parents=True)
    (top / "src/run.sh").write_text("#!/bin/sh\n")
    (top / "src/run.sh").chmod(0o755)
    (top / ("src/deep/" + "n" * 150)).write_bytes(bytes(range(256)))
    (top / "src/link").symlink_to("deep/" + "n" * 150)
    (top / "empty").mkdir()
    (top / ".gitignore").write_text("*.o\n")
    (top / "src/a.o").write_text("object")


def test_a_tree_there_and_back(cordon, file):  # noqa: F811
    fill(cordon.workspace)
    subprocess.run(["git", "init", "-q"], cwd=cordon.workspace, check=True)
    (cordon.workspace / ".env").write_text("KEY=1")
    os.mkfifo(cordon.workspace / "pipe")
    told = file("export")
    data = base64.b64decode(told["content"])
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getnames()
        assert tar.getmember("src/run.sh").mode & 0o100 and tar.getmember("src/link").linkname == "deep/" + "n" * 150
        assert tar.extractfile("src/deep/" + "n" * 150).read() == bytes(range(256))
    assert names == [".gitignore", "empty", "src", "src/deep", "src/deep/" + "n" * 150, "src/link", "src/run.sh"]
    assert told["entries"] == 7 and told["others_left_out"] == 1 and [row["row"] for row in rows(cordon, told["audit_id"])] == ["intent", "result"]
    assert cordon("file", "export",
                  text=False).stdout == data, "the same every time, and nothing else on standard output"
    file("mkdir", "back")
    done = put(cordon, data, "back")
    assert (done["files"], done["directories"], done["links"], done["left_out"]) == (3, 3, 1, [])
    back = cordon.workspace / "back"
    assert subprocess.run(["tar", "-C", back, "-cf", "-", "."], capture_output=True, check=True).stdout
    assert (back / "src/link").read_bytes() == bytes(range(256)) and (back / "src/run.sh").stat().st_mode & 0o111
    assert put(cordon, data, "back")["files"] == 3, "over what is there"
    # Everything but what is hidden comes with --all; of it a repository's own directory is not written.
    everything = base64.b64decode(file("export", "--all")["content"])
    with tarfile.open(fileobj=io.BytesIO(everything)) as tar:
        assert {"src/a.o", ".git/HEAD"} <= set(tar.getnames()) and ".env" not in tar.getnames()
    refused_git = put(cordon, everything, "back")
    assert refused_git["class"] == "capability_denied" and refused_git["subject"].startswith(".git"), refused_git
    skipped = put(cordon, everything, "back", "--skip")
    assert (back / "src/a.o").exists() and not (back / ".git").exists() and {entry["path"].split("/")[0]
                                                                             for entry in skipped["left_out"]} == {".git"}


def test_what_tar_itself_writes(cordon, file, tmp_path):  # noqa: F811
    """GNU's long names, as `tar` writes them by default, and POSIX's."""
    tree = tmp_path / "tree"
    fill(tree)
    for form in ("gnu", "posix", "ustar"):
        data = subprocess.run(["tar", "-C", tree, f"--format={form}", "-cf", "-", "."], capture_output=True).stdout
        file("mkdir", form)
        done = put(cordon, data, form)
        # A name of more than 100 bytes is not in the oldest form.
        assert (done["files"], done["links"]) == (3 if form == "ustar" else 4, 1), done
        assert len(os.listdir(cordon.workspace / form / "src/deep")) == (form != "ustar")


EVIL = {
    "up": [("../escaped", FILE, b"x")],
    "up-inside": [("dir", DIRECTORY, ""), ("dir/../../escaped", FILE, b"x")],
    "absolute": [("{outside}/escaped", FILE, b"x")],
    "link-out": [("link", LINK, "{outside}"), ("link/escaped", FILE, b"x")],
    "link-up": [("link", LINK, "../outside"), ("link/escaped", FILE, b"x")],
    "link-through-a-link": [("here", LINK, "."), ("link", LINK, "here/../outside"), ("link/escaped", FILE, b"x")],
    "hard-link": [("linked", HARD, "{outside}/kept")],
    "device": [("null", tarfile.CHRTYPE, "")],
    "fifo": [("fifo", tarfile.FIFOTYPE, "")],
    "hook": [(".git/hooks/post-checkout", FILE, b"#!/bin/sh\n")],
    "hook-case": [(".GIT/hooks/post-checkout", FILE, b"#!/bin/sh\n")],
    "protected-by-a-link": [(".hg", LINK, "plain"), ("plain/hgrc", FILE, b"")],
    "policy": [(".cordon.toml", FILE, b"")],
    "secret-name": [("sub/.env", FILE, b"")],
    "long": [("n" * 300, FILE, b"")],
}


@pytest.mark.parametrize("kind", EVIL)
def test_what_an_archive_may_not_do(cordon, file, kind):  # noqa: F811
    outside = cordon.workspace.parent / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    entries = [("good", FILE, b"good"),
               *((path.format(outside=outside), type_,
                  content.format(outside=outside) if isinstance(content, str) else content)
                                          for path, type_, content in EVIL[kind])]
    data = archive(*entries)
    error = put(cordon, data)
    assert error["class"] == "capability_denied" and "nothing was written" in error["reason"] and error["remediation"], error
    assert [row["row"] for row in rows(cordon, error["audit_id"])][-1] in ("denial", "result")
    assert list(cordon.workspace.iterdir()) == [] and os.listdir(outside) == ["kept"]
    done = put(cordon, data, "--skip")
    assert done["files"] >= 1 and (cordon.workspace / "good").read_text() == "good" and done["left_out"], done
    assert os.listdir(outside) == ["kept"] and (outside / "kept").stat().st_nlink == 1
    assert not (cordon.workspace.parent / "escaped").exists() and not os.path.lexists(cordon.workspace / "linked")
    if kind.startswith(("up", "absolute", "link")):  # without the judging it does escape
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extraction_filter = lambda member, path: member
            tar.extractall(cordon.workspace.parent / "control")
        assert (outside / "escaped").exists() or (cordon.workspace.parent / "escaped").exists()


def test_links_that_are_there_lead_nowhere(cordon, file):  # noqa: F811
    outside = cordon.workspace.parent / "outside"
    outside.mkdir()
    (cordon.workspace / "dir").mkdir()
    (cordon.workspace / "link").symlink_to(outside)
    (cordon.workspace / "within").symlink_to("dir")
    (cordon.workspace / "file").symlink_to("dir/target")
    for path in ("link/x", "within/x", "file"):
        error = put(cordon, archive(("first", FILE, b"1"), (path, FILE, b"x")))
        assert error["class"] in ("capability_denied", "invalid_request"), error
        assert "written before" in error["remediation"], error
    assert os.listdir(outside) == [] and os.listdir(cordon.workspace / "dir") == []


def test_what_is_no_archive(cordon, file):  # noqa: F811
    good = archive(("one", FILE, b"x" * 1000), ("two", FILE, b"y"))
    flipped = bytearray(good)
    flipped[3] ^= 1
    for data in (b"", b"x", b"\x1f\x8b" + b"\0" * 600, good[:700], good[:1536], bytes(flipped), os.urandom(4096)):
        error = put(cordon, data)
        assert error["class"] == "invalid_request" and "nothing was written" in error["reason"], error
    assert list(cordon.workspace.iterdir()) == []
    (cordon.workspace / "plain").write_text("")
    assert put(cordon, good, "plain")["class"] == "invalid_request" and put(cordon, good,
                                                                            "missing")["class"] == "not_found"
    (cordon.workspace / "two").mkdir()
    assert put(cordon, good)["class"] == "invalid_request"


def test_secrets_do_not_leave_in_an_archive(cordon, file):  # noqa: F811
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    (cordon.workspace / "notes").write_text(f"token {token}\n")
    data = base64.b64decode(file("export")["content"])
    assert token.encode() not in data and b"[REDACTED" in data
    (cordon.workspace / "binary").write_bytes(b"\0" + token.encode())
    assert refused(file, cordon, "export")["class"] == "leak_blocked"
    assert token.encode() in base64.b64decode(file("export", "--secrets", "report")["content"])


def test_a_tree_that_is_too_large(cordon, file):  # noqa: F811
    for name in ("a", "b"):
        with open(cordon.workspace / name, "wb") as large:
            large.truncate(20 << 20)
    assert refused(file, cordon, "export")["class"] == "limit_exceeded"


def test_copies(cordon, file):  # noqa: F811
    fill(cordon.workspace)
    assert refused(file, cordon, "copy", "src", "copy")["class"] == "invalid_request"
    assert file("copy", "--recursive", "src", "copy")["copied"] == 6
    assert (cordon.workspace / "copy/run.sh").stat().st_mode & 0o111 and os.readlink(cordon.workspace / "copy/link").startswith("deep/")
    assert refused(file, cordon, "copy", "--recursive", "src", "copy")["class"] == "invalid_request"
    assert refused(file, cordon, "copy", "--recursive", "src", "src/deep/in")["class"] == "invalid_request"
    file("copy", "src/run.sh", "one")
    assert (cordon.workspace / "one").read_text() == "#!/bin/sh\n" and (cordon.workspace / "one").stat().st_mode & 0o111
    assert refused(file, cordon, "copy", "src/a.o", "one")["class"] == "invalid_request"
    file("copy", "--replace", "src/a.o", "one")
    assert (cordon.workspace / "one").read_text() == "object"
    (cordon.workspace / "src/.env").write_text("KEY=1")
    for words in (["--recursive", "src", "other"], ["src/.env", "plain"], ["src/a.o", ".git/hooks/x"],
                  ["src/a.o", "x.pem/../.cordon.toml"]):
        assert file("copy", *words, status=125)["class"] in ("capability_denied", "not_found"), words
    outside = cordon.workspace.parent / "outside"
    outside.mkdir()
    (outside / "text").write_text("text")
    assert refused(file, cordon, "copy", f"{outside}/text", "in")["class"] == "capability_denied"
    file("copy", "--read", outside, f"{outside}/text", "in")
    assert (cordon.workspace / "in").read_text() == "text"
    assert refused(file, cordon, "copy", "--read", outside, "in", f"{outside}/out")["class"] == "capability_denied"


def test_a_walk_in_parts(cordon, file):  # noqa: F811
    fill(cordon.workspace)
    (cordon.workspace / ".env").write_text("KEY=1")
    whole = file("walk")
    paths = [entry["path"] for entry in whole["entries"]]
    assert paths == [".env", ".gitignore", "empty", "src", "src/deep", "src/deep/" + "n" * 150, "src/link",
                     "src/run.sh"] and whole["next"] == 0
    assert whole["entries"][0] == {"path": ".env", "type": "hidden"} and whole["entries"][-1]["mode"] == "0755"
    parts, at = [], 0
    while True:
        part = file("walk", "--limit", "3", "--offset", str(at))
        parts += [entry["path"] for entry in part["entries"]]
        at = part["next"]
        if not at:
            break
    assert parts == paths
    assert [entry["path"]
            for entry in file("walk", "--depth", "1")["entries"]] == [".env", ".gitignore", "empty", "src"]
    assert "src/a.o" in [entry["path"] for entry in file("walk", "--all", "src/..")["entries"]]
