"""A command that fills the file system of cordon's data is recorded like any other: room for its rows was reserved
before it started. And where its result row cannot be written all the same, the caller gets the result with the
error."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import PATIENCE
from lab import missing, needs, rows_of, wait_until
from test_serve import daemon  # noqa: F401

IS_ROOT = os.geteuid() == 0
NAMESPACE = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]

# What a hook is planted by, and then everything is written full, in large steps and in small ones.
PLANT = "mkdir -p new/.git/hooks; echo '#!/bin/sh' > new/.git/hooks/pre-commit; chmod +x new/.git/hooks/pre-commit"
FILL = ("dd if=/dev/zero of=filler bs=64k 2> /dev/null; for i in 1 2 3 4; do dd if=/dev/zero of=filler.$i bs=1k 2> /dev/null; done;"
        " echo more > more 2> /dev/null && echo not full")
MOUNTS = {
    "tmpfs": 'mount -t tmpfs -o size=4m none "$1"',
    "ext4": 'truncate -s 16m "$1.image" && mkfs.ext4 -q -m 0 "$1.image" && mount -o loop "$1.image" "$1"',
}
FILLED = """
%s || exit 9
export XDG_DATA_HOME="$1/data"
mkdir "$1/work" && cd "$1/work" || exit 9
cordon=$2 fill=$3
shift 3
"$cordon" run --workspace . -- true || exit 9
"$cordon" run --workspace . "$@" -c "$fill"
echo "status $?"
"$cordon" audit verify > /dev/null
echo "verify $?"
cat ../data/cordon/ledger/*.jsonl
"""


def filled(cordon, tmp_path, kind, *words, fill=PLANT + "; echo out; echo err >&2;" + FILL + "; exit 3"):
    """(what was said, the exit status, standard error, the rows)"""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run([*NAMESPACE, "sh", "-c", FILLED % MOUNTS[kind], "sh", place, cordon.argv()[0], fill, *words],
                          env=cordon.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    status = next(i for i, line in enumerate(lines) if line.startswith("status "))
    assert lines[status + 1] == "verify 0", lines[:status + 2]
    return "\n".join(lines[:status]), int(lines[status].split()[1]), done.stderr, [json.loads(line) for line in lines[status + 2:]]


KINDS = pytest.mark.parametrize("kind", [pytest.param("tmpfs", marks=missing("mount-namespace")),
                                         pytest.param("ext4", marks=missing("loop-ext4"))])


@KINDS
def test_a_command_that_fills_the_disk(cordon, tmp_path, kind):
    said, status, _, found = filled(cordon, tmp_path, kind, "--json")
    result = json.loads(said)
    assert status == 3 and "error" not in result, said
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "out\n", "err\n")
    assert any("hooks" in denial["what"] for denial in result["denials"]), result["denials"]
    mine = [row for row in found if row["id"] == result["audit_id"]]
    assert [row["row"] for row in mine] == ["intent", "result"], found
    recorded, told = ([denial["what"] for denial in each["denials"]] for each in (mine[1], result))
    assert mine[1]["exit_code"] == 3 and recorded == told


@KINDS
def test_what_people_see_of_it(cordon, tmp_path, kind):
    said, status, errors, found = filled(cordon, tmp_path, kind, "--disk", "1G")
    assert (said, status) == ("out", 3) and "err\n" in errors and "hooks" in errors, (said, errors)
    assert [row["row"] for row in found] == ["begin", "intent", "result", "intent", "result"]


@KINDS
def test_more_was_planted_than_there_is_room_for(cordon, tmp_path, kind):
    """The row counts what it has no room for, and the caller is told of all."""
    fill = ("long=$(printf %0200d 0); for i in $(seq 250); do mkdir -p $long$i/$long/$long/.git/hooks; done; " + FILL)
    said, status, _, found = filled(cordon, tmp_path, kind, "--json", fill=fill)
    result = json.loads(said)
    assert "error" not in result and len(result["denials"]) > 100, said
    assert [row["row"] for row in found[-2:]] == ["intent", "result"] and found[-1]["id"] == result["audit_id"]
    listed = found[-1]["denials"]
    assert 1 < len(listed) < len(result["denials"]) and listed[-1]["what"] == "and more", (len(listed), listed[-1])
    assert listed[-1]["note"] == f"{len(result['denials']) - len(listed) + 1} that are not listed"


REFUSED = """
mount -t tmpfs -o size=4m none "$1" || exit 9
export XDG_DATA_HOME="$1/data"
"$2" run -- true || exit 9
head -c 300000 /dev/zero > "$1/last"
dd if=/dev/zero of="$1/filler" bs=1k 2> /dev/null
n=0
while "$2" run --workspace "$3" -- touch "ran$n" 2> /dev/null && [ $n -lt 500 ]; do n=$((n + 1)); done
"$2" run --workspace "$3" --json -- touch refused
rm "$1/last"
"$2" run --workspace "$3" -- touch again && "$2" audit verify > /dev/null && tail -n 1 "$1"/data/cordon/ledger/*.jsonl
"""


@needs("mount-namespace")
def test_without_room_for_its_rows_nothing_starts(cordon, tmp_path):
    """What was allocated ahead is used up by commands that run, each of them with both its rows."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run([*NAMESPACE, "sh", "-c", REFUSED, "sh", place, cordon.argv()[0], cordon.workspace],
                          env=cordon.env, cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    error, last = map(json.loads, done.stdout.splitlines())
    assert error["error"]["class"] == "audit_unavailable" and "No space left" in error["error"]["reason"], error
    assert last["row"] == "result" and (cordon.workspace / "again").exists()
    assert not (cordon.workspace / "refused").exists()


# ---- the row cannot be written all the same --------------------------------------------------------------------------

LINE = PLANT + "; echo out; echo err >&2; touch ready; until [ -e go ]; do sleep 0.01; done; exit 3"


def spoil(cordon, start):
    """Does `start` and takes the ledger away while the command runs; it is put back by calling what this returns."""
    for name in ("ready", "go"):
        (cordon.workspace / name).unlink(missing_ok=True)
    shutil.rmtree(cordon.workspace / "new", ignore_errors=True)
    running = start()
    assert wait_until((cordon.workspace / "ready").exists)
    ledger, aside = cordon.data / "cordon/ledger", cordon.data / "cordon/aside"
    ledger.rename(aside)
    ledger.write_text("")

    def put_back():
        ledger.unlink()
        aside.rename(ledger)
    (cordon.workspace / "go").touch()
    return running, put_back


def check_result(result):
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "out\n", "err\n"), result
    assert any("hooks" in denial["what"] for denial in result["denials"]), result
    error = result["error"]
    assert error["class"] == "audit_unavailable" and error["step"] == "audit" and not error["retriable"], error
    assert "the command ran (exit status 3)" in error["reason"] and error["audit_id"] == result["audit_id"]


def check_text(process):
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (125, "out\n") and "err\n" in err, (process.returncode, out, err)
    assert "hooks" in err and "cordon: the command ran (exit status 3)" in err, err


def check_next(cordon, put_back):
    """As long as no row can be written nothing runs; after that it does."""
    assert cordon.refused("--session", "s", "--", "true")["class"] == "audit_unavailable"
    put_back()
    assert cordon("run", "--session", "s", "--", "true").returncode == 0
    assert cordon("audit", "verify").returncode == 0


@pytest.mark.parametrize("served", [False, True], ids=["here", "daemon"])
def test_the_result_comes_with_the_error(cordon, daemon, served):
    assert cordon("session", "new", "s", "--workspace", cordon.workspace).returncode == 0
    if served:
        daemon.start()
    run = ["run", "--session", "s"]
    process, put_back = spoil(cordon, lambda: cordon.popen(*run, "-c", LINE, text=True))
    check_text(process)
    check_next(cordon, put_back)
    process, put_back = spoil(cordon, lambda: cordon.popen(*run, "--json", "-c", LINE, text=True))
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 125 and err == "" and out.count("\n") == 1, (process.returncode, out, err)
    check_result(json.loads(out))
    check_next(cordon, put_back)
    assert [row["row"] for row in rows_of(cordon, json.loads(out)["audit_id"])] == ["intent"]


def test_by_rpc(cordon, daemon):
    assert cordon("session", "new", "s", "--workspace", cordon.workspace).returncode == 0
    daemon.start()
    with daemon.rpc() as rpc:
        process, put_back = spoil(cordon, lambda: rpc.start("sh", "-c", LINE, events=False))
        answer = rpc.end(process)
        assert "error" not in answer, answer
        check_result(answer["result"])
    check_next(cordon, put_back)


@pytest.mark.parametrize("served", [False, True], ids=["here", "daemon"])
def test_of_a_job(cordon, daemon, served):
    assert cordon("session", "new", "s", "--workspace", cordon.workspace).returncode == 0
    if served:
        daemon.start()
    started, put_back = spoil(cordon, lambda: cordon("job", "start", "--session", "s", "-c", LINE))
    job = json.loads(cordon("job", "wait", "--json", started.stdout.strip()).stdout)
    assert (job["state"], job["exit_code"]) == ("ended", 3), job
    assert "the command ran (exit status 3)" in job["note"] and "hooks" in job["note"], job
    check_next(cordon, put_back)
