"""What can be wrong with a request or a machine: each has one clear outcome, its row in the ledger, and leaves
nothing."""
import json
import os
import pathlib
import pwd
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

import pytest

from lab import (IS_ROOT, drivers, leftovers, ledger_files, missing, needs, refused, refused_unwalked,  # noqa: F401
                 result, rows, rows_of)

pytestmark = pytest.mark.usefixtures("leftovers")


@pytest.fixture(autouse=True)
def no_litter(cordon):
    """A refused command leaves the workspace as it was."""
    yield
    made = [path.name for path in cordon.workspace.rglob("*") if path.name.startswith("made")]
    assert not made, made


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret").write_text("secret\n")
    return path


# ---- granted paths ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("option", ["--read", "--write", "--device", "--socket", "--program"])
def test_a_path_that_is_not_there(cordon, tmp_path, option):
    path = tmp_path / "not-there"
    error = refused(cordon, option, path, "--", "touch", "made")
    assert (error["class"], error["step"], error["subject"]) == ("invalid_request", "capability", str(path))


def test_a_path_through_a_file(cordon):
    (cordon.workspace / "file").write_text("")
    path = cordon.workspace / "file/below"
    assert refused(cordon, "--read", path, "--", "touch", "made")["subject"] == str(path)


@pytest.mark.parametrize("option", ["--read", "--write", "--device", "--socket", "--program"])
@pytest.mark.parametrize("path", ["new\nline", "/new\nline", "/tab\there", "/esc\x1b[m", "~/new\nline"],
                         ids=repr)
def test_a_path_that_is_malformed(cordon, option, path):
    error = refused_unwalked(cordon, option, path, "--", "touch", "made")
    assert error["class"] == "invalid_request"


@pytest.mark.parametrize("option", ["--read", "--write", "--device", "--socket", "--program"])
@pytest.mark.parametrize("path", ["relative", "./here", "../up", "~/no-such-name"])
def test_a_path_that_is_not_absolute_and_not_there(cordon, option, path):
    """It is meant from the caller's directory or home, and the error names it whole."""
    error = refused(cordon, option, path, "--", "touch", "made")
    assert error["class"] == "invalid_request"
    start = pathlib.Path(os.environ["HOME"]) if path.startswith("~") else cordon.workspace
    assert os.path.normpath(error["subject"]) == os.path.normpath(start / path.removeprefix("~/"))


@pytest.mark.parametrize("option", ["--read", "--write"])
def test_a_path_through_a_link_that_leaves_the_workspace(cordon, outside, option):
    """What is in the workspace is the command's own doing: a link there must not choose what is granted."""
    (cordon.workspace / "link").symlink_to(outside)
    (cordon.workspace / "deep").mkdir()
    (cordon.workspace / "deep/up").symlink_to("../../outside/secret")
    for name in ("link", "link/secret", "deep/up"):
        error = refused(cordon, option, cordon.workspace / name, "--", "touch", "made")
        assert error["class"] == "capability_denied" and error["step"] == "capability", error


def test_a_path_through_a_link_that_stays(cordon, outside, tmp_path):
    (cordon.workspace / "real").mkdir()
    (cordon.workspace / "link").symlink_to("real")
    assert cordon("run", "--read", cordon.workspace / "link", "--", "true").returncode == 0
    # A link of the caller's own, outside: what it leads to is granted, and it has both names.
    (tmp_path / "alias").symlink_to(outside)
    done = cordon("run", "--read", tmp_path / "alias", "-c", f"cat {tmp_path}/alias/secret {outside}/secret")
    assert done.stdout == "secret\nsecret\n", done.stderr


@pytest.mark.parametrize("path", filter(os.path.exists,
                                        ["/", "/proc", "/dev", "/sys", "/run", "//proc//", "/usr/../proc/.",
                                                         "/proc/self/root"]))
@pytest.mark.parametrize("option", ["--read", "--write"])
def test_a_path_that_the_walls_are_made_of(cordon, option, path):
    error = refused(cordon, option, path, "--", "touch", "made")
    assert (error["class"], error["step"]) == ("capability_denied", "capability")


@pytest.mark.parametrize("option", ["--read", "--write"])
def test_cordons_own_data_is_not_granted(cordon, option):
    assert cordon("run", "--", "true").returncode == 0
    for path in (cordon.data / "cordon", cordon.data / "cordon/ledger"):
        assert refused(cordon, option, path, "--", "touch", "made")["class"] == "capability_denied"


def test_paths_of_the_wrong_kind(cordon, outside):
    for option, path in (("--socket", outside / "secret"), ("--device", outside / "secret"), ("--device", outside),
                         ("--program", outside), ("--device", "/dev")):
        error = refused(cordon, option, path, "--", "touch", "made")
        assert error["class"] in ("invalid_request", "capability_denied"), (option, path)
        assert error["subject"] == str(path)


@needs("user")
def test_a_path_that_may_not_be_read(cordon, outside):
    inner = outside / "closed"
    inner.mkdir()
    outside.chmod(0)
    try:
        error = refused(cordon, "--read", inner, "--", "touch", "made")
        assert error["class"] == "capability_denied" and "Permission denied" in error["reason"]
    finally:
        outside.chmod(0o700)


# ---- the workspace ---------------------------------------------------------------------------------------------------

SYSTEM = ["/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/proc", "/root", "/run",
          "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/local", "/usr/share/doc", "/var", "/var/lib", "/var/tmp",
          "/dev/shm", "//usr///bin/", "/usr/../etc"]


@pytest.mark.parametrize("path", filter(os.path.isdir, SYSTEM))
def test_a_workspace_of_the_systems(cordon, path):
    if path == "/root" and not IS_ROOT:
        error = refused(cordon, "--workspace", path, "--", "true")
        assert error["class"] in ("capability_denied", "invalid_request")
        return
    error = refused(cordon, "--workspace", path, "--", "touch", "made")
    assert (error["class"], error["step"]) == ("capability_denied", "session") and "director" in error["reason"]
    # The same where one stands in it.
    assert refused(cordon, "--", "touch", "made", cwd=path)["class"] == "capability_denied"


def test_a_workspace_through_a_link_is_what_it_leads_to(cordon, tmp_path):
    (tmp_path / "link").symlink_to("/etc")
    assert refused(cordon, "--workspace", tmp_path / "link", "--", "true")["subject"] == "/etc"
    (tmp_path / "alias").symlink_to(cordon.workspace)
    assert cordon("run", "--workspace", tmp_path / "alias", "--", "pwd").stdout == f"{cordon.workspace}\n"


def test_workspaces_around_homes_and_data(cordon, tmp_path):
    home = tmp_path / "people" / "me"
    home.mkdir(parents=True)
    env = {**cordon.env, "HOME": str(home)}
    for path in (home, home.parent):
        error = refused(cordon, "--workspace", path, "--", "touch", "made", env=env)
        assert error["class"] == "capability_denied" and "home" in error["reason"]
    # Beneath a home is where projects are.
    (home / "project").mkdir()
    assert cordon("run", "--workspace", home / "project", "--", "true", env=env).returncode == 0
    for path in (cordon.data, cordon.data / "cordon", cordon.data / "cordon/ledger", tmp_path):
        error = refused(cordon, "--workspace", path, "--", "touch", "made")
        assert error["class"] == "capability_denied" and "data" in error["reason"]


def test_workspaces_that_are_no_directory_of_ours(cordon, tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("file", "pipe"):
        error = refused(cordon, "--workspace", tmp_path / name, "--", "touch", "made")
        assert error["class"] == "capability_denied" and "directory" in error["reason"]
    for name in ("missing", "dangling", "file/below"):
        assert refused(cordon, "--workspace", tmp_path / name, "--", "touch", "made")["step"] == "session"
    error = refused(cordon, "--workspace", "line\nbreak", "--", "touch", "made")
    assert error["class"] == "invalid_request"


def test_a_workspace_of_another_user(cordon, tmp_path):
    if IS_ROOT:
        # root may work in a directory of somebody's; what is made there belongs to root.
        other = tmp_path / "theirs"
        other.mkdir()
        os.chown(other, 12345, 12345)
        done = cordon("run", "--workspace", other, "--", "true")
        assert done.returncode == 0, done
        return
    place = next(path for path in ("/var/cache", "/var/log", "/var/opt", "/var/local", "/snap") if os.path.isdir(path))
    assert os.stat(place).st_uid != os.geteuid()
    error = refused(cordon, "--workspace", place, "--", "touch", "made")
    assert error["class"] == "capability_denied" and "another user" in error["reason"]


def test_the_directory_of_a_session_that_was_replaced(cordon, outside):
    """Whoever puts a link where a session's workspace belongs does not choose where it works."""
    assert cordon("run", "--session", "x", "--", "true").returncode == 0
    [place] = (cordon.data / "cordon/workspaces").iterdir()
    shutil.rmtree(place)
    place.symlink_to(outside)
    error = refused(cordon, "--session", "x", "--", "touch", "made")
    assert error["class"] == "capability_denied" and error["step"] == "session"
    assert not (outside / "made").exists()


@pytest.mark.parametrize("name", [".ssh", ".aws/cli", "x/.GnuPG"])
def test_a_directory_of_secrets_is_no_workspace(cordon, tmp_path, name):
    place = tmp_path / name
    place.mkdir(parents=True)
    error = refused(cordon, "--workspace", place, "--", "touch", "made")
    assert error["class"] == "capability_denied" and "secrets" in error["reason"] and list(place.iterdir()) == []


def test_a_data_directory_that_others_can_change(cordon):
    assert cordon("run", "--", "true").returncode == 0
    (cordon.data / "cordon").chmod(0o777)
    assert cordon.refused("--", "touch", "made")["class"] == "audit_unavailable"
    assert list(cordon.workspace.iterdir()) == []


@needs("root")
def test_a_data_directory_of_another_user(cordon, tmp_path):
    """Nothing is made there, not even the row of the refusal; and what they have is not called damaged."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    cordon.data.mkdir()
    (cordon.data / "cordon").symlink_to(theirs)
    error = cordon.refused("--", "touch", "made")
    assert error["class"] == "audit_unavailable" and error["audit_id"] == "" and list(theirs.iterdir()) == []
    for directory in (theirs / "sessions", theirs / "sessions" / ("0" * 32)):
        directory.mkdir()
        os.chown(directory, 12345, 12345)
    done = cordon("session", "list")
    assert done.returncode == 125 and "another user" in done.stderr and "damaged" not in done.stdout, done


# ---- the working directory -------------------------------------------------------------------------------------------

def test_working_directories_that_leave(cordon, outside, tmp_path):
    (cordon.workspace / "in").mkdir()
    (cordon.workspace / "in/up").symlink_to("../..")
    (cordon.workspace / "root").symlink_to("/")
    (cordon.workspace / "proc").symlink_to("/proc/self/cwd")
    (cordon.workspace / "dangling").symlink_to("nowhere")
    (cordon.workspace / "loop").symlink_to("loop")
    (cordon.workspace / "file").write_text("")
    for cwd in ("..", "in/../..", "in/up", "root", "root/tmp", "proc", "dangling", "loop", "file", "missing", "file/x",
                outside, tmp_path, f"{cordon.workspace}-not", f"{cordon.workspace}/../outside", "/"):
        error = refused(cordon, "--cwd", cwd, "--", "touch", "made")
        assert (error["class"], error["step"]) == ("capability_denied", "cwd"), (cwd, error)
    assert refused(cordon, "--cwd", "new\nline", "--", "touch", "made")["class"] == "invalid_request"
    refused_cwd = cordon.refused("--cwd", "", "--", "touch", "made")
    assert refused_cwd["class"] == "invalid_request"


def test_a_working_directory_that_is_granted(cordon, outside):
    (outside / "sub").mkdir()
    (outside / "sub/out").symlink_to(cordon.workspace)
    assert cordon("run", "--cwd", outside / "sub", "--read", outside, "--", "pwd").stdout == f"{outside}/sub\n"
    assert cordon("run", "--cwd", f"{outside}/sub/../sub", "--write", outside, "--", "pwd").stdout == f"{outside}/sub\n"
    assert refused(cordon, "--cwd", outside / "sub/out", "--read", outside, "--", "true")["step"] == "cwd"


def test_a_working_directory_that_is_deep(cordon):
    deep = cordon.workspace / "/".join(["d" * 200] * 15)
    deep.mkdir(parents=True)
    assert cordon("run", "--cwd", deep.relative_to(cordon.workspace), "--", "pwd").stdout == f"{deep}\n"
    assert cordon("run", "--workspace", deep, "--", "pwd").stdout == f"{deep}\n"
    for cwd in ("d/" * 5000, "x" * 300):
        assert refused(cordon, "--cwd", cwd, "--", "touch", "made")["class"] == "capability_denied"


# ---- names -----------------------------------------------------------------------------------------------------------

def test_names_with_anything_in_them(cordon):
    """In the workspace names are the command's own; only what is granted or shown must be printable."""
    names = ["new\nline", "tab\t", "\x1b[31m", "-dash", " space ", "\udcff\udcfe", "ü", "a" * 255]
    for name in names:
        (cordon.workspace / name).mkdir()
    done = cordon("run", "--", "find", ".", "-mindepth", "1", "-print0", text=False)
    assert sorted(done.stdout.split(b"\0")[:-1]) == sorted(b"./" + os.fsencode(name) for name in names)
    for name in names[3:]:
        assert cordon("run", "--cwd", name, "--", "true").returncode == 0, name


def test_a_workspace_whose_name_has_a_newline(cordon, tmp_path):
    odd = tmp_path / "new\nline"
    odd.mkdir()
    error = refused(cordon, "--workspace", odd, "--", "true")
    assert error["class"] == "invalid_request" and "control character" in error["reason"]
    assert refused(cordon, "--", "true", cwd=odd)["class"] == "invalid_request"


@pytest.mark.parametrize("session", ["new\nline", "", "\x1b]0;x\x07", "\x7f"], ids=repr)
def test_sessions_that_are_malformed(cordon, session):
    error = cordon.refused("--session", session, "--", "touch", "made")
    assert error["class"] == "invalid_request"
    assert not (cordon.data / "cordon/workspaces").exists()


@pytest.mark.parametrize("session", ["../../etc", "a/b", ".", "..", "ü", "x" * 4000, "-c", "a b", '"quoted"'],
                         ids=lambda s: s[:9])
def test_sessions_of_any_other_name(cordon, session):
    done = cordon("run", f"--session={session}", "--", "pwd")
    assert done.returncode == 0 and done.stdout.startswith(f"{cordon.data}/cordon/workspaces/"), done


# ---- the program -----------------------------------------------------------------------------------------------------

def test_no_command(cordon):
    for words in ([], ["--"], ["--", ""], ["--timeout", "0", "--", "true"]):
        error = refused_unwalked(cordon, *words)
        assert error["class"] == "invalid_request" and error["remediation"], words


def elf(machine, bits=64):
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1, 1]) + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0x10000, 64, 0, 0, 64, 56, 1, 0, 0, 0) + \
        struct.pack("<IIQQQQQQ", 1, 5, 0, 0x10000, 0x10000, 120, 120, 0x1000)


ARM64, X86_64 = 183, 62
FOREIGN = ARM64 if os.uname().machine == "x86_64" else X86_64
PROGRAMS = [
    ("not-found", None, 0, 127), ("plain", b"#!/bin/sh\necho made > made\n", 0o644, 126),
    ("foreign", elf(FOREIGN), 0o755, 126), ("empty", b"", 0o755, 126), ("data", b"\0\1\2\3" * 100, 0o755, 126),
    ("half", b"\x7fELF\2\1\1", 0o755, 126), ("no-line", b"echo made > made\n", 0o755, 126),
    ("interpreter", b"#!/no/such/interpreter\n", 0o755, 127), ("interpreter-dir", b"#!/usr\n", 0o755, 126),
]


@drivers("namespaces", "landlock", "local")
@pytest.mark.parametrize("name, content, mode, status", PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_programs_that_cannot_start(cordon, driver, name, content, mode, status):
    if content is not None:
        (cordon.workspace / name).write_bytes(content)
        (cordon.workspace / name).chmod(mode)
    error = refused(cordon, "--driver", driver, "--", f"./{name}", status=status)
    wanted = "program_not_found" if status == 127 else "program_not_allowed"
    assert (error["class"], error["step"], error["subject"]) == (wanted, "run", f"./{name}"), error


def test_a_program_that_is_not_visible(cordon, outside):
    shutil.copy("/bin/true", outside / "tool")
    assert refused(cordon, "--", outside / "tool", status=127)["class"] == "program_not_found"
    assert refused(cordon, "--", "/" + "x" * 5000, status=127)["class"] == "program_not_found"
    assert cordon("run", "--read", outside, "--", outside / "tool").returncode == 0
    assert refused(cordon, "--", "tool", status=127, env={**cordon.env, "PATH": f"{outside}:/usr/bin"})


def test_names_along_path(cordon):
    """A directory, or a file that may not be executed, is passed over for what comes later along PATH."""
    first, second = cordon.workspace / "first", cordon.workspace / "second"
    for place in (first, second):
        place.mkdir()
    (first / "tool").write_text("#!/bin/sh\necho wrong\n")
    (second / "tool").write_text("#!/bin/sh\necho right\n")
    (second / "tool").chmod(0o755)
    env = {**cordon.env, "PATH": f"{first}:{second}:/usr/bin:/bin"}
    assert cordon("run", "--", "tool", env=env).stdout == "right\n"
    (second / "tool").unlink()
    assert refused(cordon, "--", "tool", status=126, env=env)["subject"] == str(first / "tool")


# ---- too much --------------------------------------------------------------------------------------------------------

def test_an_argument_list_as_long_as_the_kernel_takes(cordon):
    words = ["x" * 1000] * 1500
    done = cordon("run", "-c", 'echo $#', "sh", *words)
    assert done.returncode == 0 and done.stdout == "1500\n"


def test_arguments_that_do_not_fit(cordon, tmp_path):
    """The program's arguments may be longer than cordon's own: the environment that cordon adds counts, too."""
    env = {**cordon.env, **{f"PASS{n}": "v" * 120_000 for n in range(12)}}
    flags = [word for n in range(12) for word in ("--pass-env", f"PASS{n}")]
    done = cordon("run", *flags, "--", "/bin/true", "y" * 100_000, env=env, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_STACK, (8 << 20, 8 << 20)))
    assert done.returncode in (0, 125), done.stderr
    limit = "import os, sys, resource; resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, -1)); os.execv(sys.argv[1], sys.argv[1:])"
    big = {**cordon.env, **{f"BIG{n}": "v" * 130_000 for n in range(10)}}
    words = [word for n in range(10) for word in ("--pass-env", f"BIG{n}")] + \
            [word for n in range(10) for word in ("--env", f"MORE{n}=" + "w" * 60_000)]
    done = subprocess.run(["/usr/bin/python3", "-c", limit,
                           *cordon.argv("run", "--json", *words, "--", "touch", "made")],
                          cwd=cordon.workspace, env=big, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        (cordon.workspace / "made").unlink()
        return
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 125 and error["class"] == "invalid_request" and "too long" in error["reason"], error


def test_one_variable_that_is_too_long(cordon):
    env = {**cordon.env, "LONG": "v" * 131_000}
    done = cordon("run", "--pass-env", "LONG", "-c", 'echo ${#LONG}', env=env)
    assert done.stdout == "131000\n" and done.returncode == 0


# ---- the ledger ------------------------------------------------------------------------------------------------------

def unrecorded(cordon, *words, **options):
    """No row, no run."""
    error = cordon.refused(*words, "--", "touch", "made", **options)
    assert error["class"] == "audit_unavailable" and error["retriable"] and error["audit_id"] == "", error
    assert not (cordon.workspace / "made").exists()
    return error


@pytest.mark.parametrize("bytes_left", [0, 10, 300])
def test_a_ledger_that_may_not_grow(cordon, bytes_left):
    assert cordon("run", "--", "true").returncode == 0
    [file] = ledger_files(cordon)
    before = file.read_bytes()
    most = len(before) + bytes_left
    error = unrecorded(cordon, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    assert "ulimit" in error["remediation"] and file.read_bytes() == before
    assert cordon("run", "--", "true").returncode == 0 and len(rows(cordon)) == 4


def test_a_result_that_would_not_fit(cordon):
    """Its intent would, but nothing runs whose end could not be recorded."""
    assert cordon("run", "--json", "--", "true").returncode == 0
    [file] = ledger_files(cordon)
    while file.stat().st_size < 48 << 10:  # longer than any file that cordon needs besides
        assert cordon("run", "--json", "--", "true").returncode == 0
    before = [row["row"] for row in rows(cordon)]
    intent = len(file.read_bytes().split(b"\n")[-3]) + 1
    most = file.stat().st_size + intent + 20
    done = cordon("run", "--json", "--workspace", cordon.workspace, "--", "touch", "made",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 125 and error["class"] == "audit_unavailable" and "too large" in error["reason"], error
    assert not (cordon.workspace / "made").exists()
    assert [row["row"] for row in rows(cordon)] == before


def test_a_limit_on_the_size_of_files_does_not_end_the_caller(cordon):
    """Whatever it is that does not fit, a row of the ledger or the init program in memory, it is told; and what fits,
    runs."""
    statuses = set()
    for most in (*range(512, 32768, 1536), 1 << 20):
        done = cordon("run", "--json", "--", "true",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        statuses.add(done.returncode)
        if done.returncode:
            error = json.loads(done.stdout)["error"]
            assert done.returncode == 125 and error["class"] in ("audit_unavailable",
                                                                 "spawn_sandbox_unavailable"), error
            assert "too large" in error["reason"] or "size" in error["reason"], error
    assert statuses == {0, 125}


FULL = """
set -e
mount -t tmpfs -o size=96k tmpfs "$1"
export XDG_DATA_HOME="$1/data"
"$2" run -- true
dd if=/dev/zero of="$1/filler" bs=1k 2> /dev/null || true
n=0
while "$2" run --json -c 'touch made; rm made' > "$3/out" && [ $n -lt 40 ]; do n=$((n + 1)); done
cat "$3/out"
rm "$1/filler"
"$2" run -- true
cat "$1"/data/cordon/ledger/*.jsonl
"""


@needs("mount-namespace")
def test_a_full_disk(cordon, tmp_path):
    """A real one, in a mount namespace of its own; what was recorded before stays whole, and it works again after."""
    place = tmp_path / "small"
    place.mkdir()
    (cordon.data).mkdir()
    prefix = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run([*prefix, "sh", "-c", FULL, "sh", place, cordon.argv()[0], tmp_path], cwd=cordon.workspace,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    first, *ledger = done.stdout.splitlines()
    assert json.loads(first)["error"]["class"] == "audit_unavailable", first
    assert "No space left" in json.loads(first)["error"]["reason"] or "written in part" in json.loads(first)["error"]["reason"]
    kinds = [json.loads(line)["row"] for line in ledger]
    assert kinds[:3] == ["begin", "intent", "result"] and kinds[-2:] == ["intent", "result"], kinds


STOPPED = """
set -e
mount -t tmpfs -o size=256k tmpfs "$1"
export XDG_DATA_HOME="$1/data"
"$2" job start --session stopped -- sleep 300 > /dev/null
"$2" session new s > /dev/null
dd if=/dev/zero of="$1/filler" bs=1k 2> /dev/null || true
"$2" session pause s
until "$2" session resume s --json | grep -q audit_unavailable; do :; done  # the room that the day's file has
for word in pause resume end; do
    "$2" session $word stopped --json && echo "$word was recorded" || test $? = 125
    "$2" session show stopped --json
done
"$2" job list --json
"""


@needs("mount-namespace")
def test_a_full_disk_does_not_keep_a_session_from_being_stopped(cordon, tmp_path):
    """What lets it go on needs its row, as ever."""
    place = tmp_path / "small"
    place.mkdir()
    prefix = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run([*prefix, "sh", "-c", STOPPED, "sh", place, cordon.argv()[0]], cwd=cordon.workspace,
                          env=cordon.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    pause, paused, resume, still, end, ended, jobs = map(json.loads, done.stdout.splitlines())
    assert all(each["error"]["class"] == "audit_unavailable" for each in (pause, resume, end)), done.stdout
    assert "the session is paused" in pause["error"]["reason"] and "its jobs were ended" in end["error"]["remediation"]
    assert (paused["state"], still["state"], ended["state"]) == ("paused", "paused", "ended")
    assert [job["state"] for job in jobs["jobs"]] != ["running"]


ENDED = """
set -e
mount -t tmpfs -o size=256k tmpfs "$1"
export XDG_DATA_HOME="$1/data"
job=$("$2" job start --session s --workspace "$PWD" -c 'until [ -e go ]; do sleep 0.01; done; exit 4')
dd if=/dev/zero of="$1/filler" bs=1k 2> /dev/null && exit 9
touch go
"$2" job wait --json "$job" || test $? = 4
"""


@needs("mount-namespace")
def test_how_a_job_ends_is_known_on_a_full_disk(cordon, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    prefix = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run([*prefix, "sh", "-c", ENDED, "sh", place, cordon.argv()[0]], cwd=cordon.workspace,
                          env=cordon.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    job = json.loads(done.stdout)
    assert (job["state"], job["exit_code"]) == ("ended", 4), done


@needs("user")
@pytest.mark.parametrize("name", ["ledger", "."])
def test_a_ledger_directory_that_may_not_be_written(cordon, name):
    assert cordon("run", "--", "true").returncode == 0
    for file in ledger_files(cordon) if name == "ledger" else (cordon.data / "cordon/ledger").iterdir():
        file.unlink()
    place = cordon.data / "cordon" / name
    if name == ".":
        (place / "ledger").rmdir()
    place.chmod(0o500)
    try:
        assert "Permission denied" in unrecorded(cordon)["reason"]
    finally:
        place.chmod(0o700)


@needs("mount-namespace")
def test_a_ledger_on_a_read_only_file_system(cordon, tmp_path):
    assert cordon("run", "--", "true").returncode == 0
    line = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" run --json -- touch made'
    prefix = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run([*prefix, "sh", "-c", line, "sh", cordon.data, cordon.argv()[0]], cwd=cordon.workspace,
                          env=cordon.env, capture_output=True, text=True, timeout=60)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 125 and error["class"] == "audit_unavailable" and "Read-only" in error["reason"], done


def make_link(path):
    path.symlink_to("elsewhere")


STANDS = [("file", lambda path: path.write_text("")), ("pipe", os.mkfifo), ("link", make_link),
          ("socket", lambda path: socket.socket(socket.AF_UNIX).bind(str(path)) if len(str(path)) < 100
           else os.mkfifo(path))]


@pytest.mark.parametrize("kind, make", STANDS, ids=[row[0] for row in STANDS])
@pytest.mark.parametrize("where", ["data", "ledger", "day"])
def test_something_else_stands_where_the_ledger_belongs(cordon, where, kind, make):
    assert cordon("run", "--", "true").returncode == 0
    [day] = ledger_files(cordon)
    path = {"data": cordon.data / "cordon", "ledger": cordon.data / "cordon/ledger", "day": day}[where]
    if (where, kind) == ("day", "file"):
        path.chmod(0o666)  # others may write it
    elif path.is_dir():
        path.rename(path.with_name("moved"))
        make(path)
    else:
        path.unlink()
        make(path)
    error = unrecorded(cordon)
    assert error["subject"].startswith(str(cordon.data))


@pytest.mark.parametrize("unset", [("XDG_DATA_HOME",), ("XDG_DATA_HOME", "HOME"), ("HOME",)], ids="-".join)
def test_without_home_and_data_home(cordon, tmp_path, unset):
    """Then the home is that of /etc/passwd, for which another file is mounted here."""
    home, passwd = tmp_path / "home", tmp_path / "passwd"
    home.mkdir()
    passwd.write_text(f"someone:x:{os.geteuid()}:{os.getegid()}::{home}:/bin/sh\n")
    env = {key: value for key, value in {**cordon.env, "HOME": str(home)}.items() if key not in unset}
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-current-user", "--keep-caps",
                                                            "--mount"]
    drop = [] if os.geteuid() == 0 else ["setpriv", "--inh-caps=-all", "--ambient-caps=-all"]
    wrapper = [*own, "sh", "-ec", f'mount --bind "{passwd}" /etc/passwd; exec "$@"', "-", *drop]
    done = cordon("run", "--json", "-c", "touch done; rm done; echo $HOME", env=env, wrapper=wrapper)
    assert done.returncode == 0 and json.loads(done.stdout)["stdout"] == f"{home}\n", done.stdout
    passwd.write_text("someone:x:4000000:4000000::/nowhere:/bin/sh\n")
    if "HOME" in unset:
        done = cordon("run", "--json", "-c", "true", env=env, wrapper=wrapper)
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 125 and "HOME" in error["reason"], error
        assert error["class"] == ("audit_unavailable" if "XDG_DATA_HOME" in unset else "invalid_request"), error
    ledger = (home / ".local/share" if "XDG_DATA_HOME" in unset else cordon.data) / "cordon/ledger"
    assert len(list(ledger.glob("*.jsonl"))) == 1
    assert ledger.stat().st_mode & 0o777 == 0o700 and next(ledger.iterdir()).stat().st_mode & 0o777 == 0o600


# ---- streams and callers ---------------------------------------------------------------------------------------------

def test_a_closed_input_and_a_broken_output_are_recorded(cordon):
    line = 'exec "$@" <&-'
    subprocess.run(["bash", "-c", line, "bash", *cordon.argv("run", "--", "cat")], cwd=cordon.workspace, env=cordon.env,
                   check=True, timeout=60)
    process = cordon.popen("run", "-c", "sleep 0.3; yes | head -c 100000; exit 0")
    process.stdout.close()
    assert process.wait(10) == 128 + signal.SIGPIPE
    process.stderr.close()
    assert [row["row"] for row in rows(cordon)] == ["intent", "result"] * 2


def test_a_refusal_to_a_broken_output(cordon):
    process = cordon.popen("run", "--json", "--read", "/no/such", "--", "true")
    process.stdout.close()
    assert process.wait(10) in (125, 128 + signal.SIGPIPE, -signal.SIGPIPE)
    process.stderr.close()
    assert [row["row"] for row in rows(cordon)] == ["denial"]


def test_an_input_that_is_a_directory(cordon):
    fd = os.open(cordon.workspace, os.O_RDONLY)
    try:
        done = cordon("run", "--", "cat", stdin=fd)
        assert (done.returncode, done.stdout,
                done.stderr) == (0, "", "cordon: standard input could not be read to its end: Is a directory\n")
    finally:
        os.close(fd)


def test_few_descriptors_left(cordon):
    """Short of descriptors it refuses, and says why; it never runs with a wall less."""
    # To look for leaks takes descriptors, too. For a root caller each toolchain takes one for its mount.
    cordon.env["ASAN_OPTIONS"] = cordon.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    for most in (4, 6, 8, 9, 10, 12, 16, 24, 32, 48, 64, 128):
        done = cordon("run", "--json", "--", "true", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (most, most)))
        value = json.loads(done.stdout)
        if done.returncode == 0:
            missing = {wall for wall, by in value["isolation"].items() if by == "none"}
            assert value["exit_code"] == 0 and all(wall.startswith("limit_") for wall in missing), missing
        else:
            assert done.returncode == 125 and value["error"]["reason"], value
            assert "is mounted in it" not in value["error"]["reason"], value
    assert done.returncode == 0


# ---- places that cordon itself makes inside --------------------------------------------------------------------------

@pytest.mark.parametrize("view", ["system", "bare", "host-readonly"])
@pytest.mark.parametrize("parent", ["/tmp", "/var/tmp", "/home", "/opt", "/srv", "/var/lib", "/mnt", "/var/cache"])
def test_a_workspace_wherever_it_may_be(cordon, parent, view):
    """Also beneath what is private inside, a link there, or part of the view."""
    cordon.env["HOME"] = str(cordon.workspace)  # whoever runs the tests may have much in theirs, all of which would be looked at
    try:
        place = pathlib.Path(tempfile.mkdtemp(prefix="cordon-place-", dir=parent))
    except OSError:
        pytest.skip(f"cannot: root: {parent} may not be written")
    try:
        place.chmod(0o755)  # a root caller's command is another user, who must get through what is shown as it is
        (place / "project").mkdir()
        (place / "more").mkdir()
        (place / "data").mkdir()
        (place / "more/file").write_text("more\n")
        options = ["--view", view, "--workspace", place / "project", "--read", place / "more"]
        if view == "bare":
            options += [word for path in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(path)
                        for word in ("--read", path)]
        done = cordon("run", *options, "-c",
                      f"pwd; cat {place}/more/file; echo made > made-inside; touch {place}/more/x")
        assert done.stdout == f"{place}/project\nmore\n" and done.returncode != 0, done
        # And cordon's own data there, with a session's workspace in it.
        kept = cordon("run", "--session", "s", "-c", "pwd; ls .. | wc -l",
                      env={**cordon.env, "XDG_DATA_HOME": str(place / "data")})
        assert kept.returncode == 0 and kept.stdout.startswith(f"{place}/data/cordon/workspaces/"), kept
        assert kept.stdout.endswith("\n1\n"), "the workspaces of others are not there"
        assert (place / "project/made-inside").read_text() == "made\n" and not (place / "more/x").exists()
    finally:
        subprocess.run(["rm", "-rf", place], check=True)


@drivers("namespaces", "bwrap")
@pytest.mark.parametrize("parent", ["/tmp", "/var/tmp", "/dev/shm", "/run"])
def test_a_home_wherever_it_may_be(cordon, parent, driver):
    """Beneath what is private inside there is nothing to hide of it, but in what was granted there."""
    try:
        place = pathlib.Path(tempfile.mkdtemp(prefix="cordon-place-", dir=parent))
    except OSError:
        pytest.skip(f"cannot: root: {parent} may not be written")
    try:
        place.chmod(0o755)
        for name in (".ssh/id_rsa", ".env", "project/.env", "project/file"):
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(f"{name} as it was\n")
        done = cordon("run", "--driver", driver, "--view", "host-readonly", "--read", place / "project", "-c",
                      f"ls -A {place}; cat {place}/project/file; cat {place}/project/.env",
                      env={**cordon.env, "HOME": str(place)})
        assert done.stdout == "project\nproject/file as it was\n" and "Permission denied" in done.stderr, done
    finally:
        subprocess.run(["rm", "-rf", place], check=True)
