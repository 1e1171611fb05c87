"""A file system that allocates nothing ahead: what a command's rows need is held by a file, and a command that fills
the disk has its rows all the same. Where there is no space for that file, nothing runs."""
import json
import os
import subprocess

import pytest

from old_kernel_lab import IS_ROOT, PROGRAM, needs

NAMESPACE = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
FILLED = """
mount -t tmpfs -o size=4m none "$1" || exit 9
export XDG_DATA_HOME="$1/data"
mkdir "$1/work" && cd "$1/work" || exit 9
"$2" run --workspace . -- true || exit 9
"$2" run --workspace . --json -c 'echo out; dd if=/dev/zero of=filler bs=64k; dd if=/dev/zero of=more bs=1k; exit 3'
"$2" run --workspace . --json -- touch refused
test ! -e refused || exit 8
"$2" audit verify > /dev/null || exit 7
ls -l ../data/cordon/ledger/reserve | tr -s ' ' | cut -d ' ' -f 5
cat ../data/cordon/ledger/*.jsonl
"""


@pytest.mark.parametrize("error", ["EOPNOTSUPP", "ENOSYS", "EPERM"])
def test_nothing_is_allocated_ahead(without, tmp_path, error):
    needs("mount-namespace")
    place = tmp_path / "small"
    place.mkdir()
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "none")}
    done = subprocess.run([*NAMESPACE, *without(f"fallocate:{error}"), "sh", "-c", FILLED, "sh", place, PROGRAM],
                          env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    result, refused, reserve, *rows = map(json.loads, done.stdout.splitlines())
    assert "error" not in result and (result["exit_code"], result["stdout"]) == (3, "out\n"), result
    assert [row["row"] for row in rows if row["id"] == result["audit_id"]] == ["intent", "result"], rows
    assert refused["error"]["class"] == "audit_unavailable" and "No space left" in refused["error"]["reason"], refused
    # A part of it was given to the result row.
    assert 0 < reserve < 16384, reserve
