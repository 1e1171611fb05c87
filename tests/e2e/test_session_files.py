"""The files of a session: /tmp, /var/tmp and home are on disk with it, the same ones for all of its commands, with a
daemon and without, and go when it is removed. One-offs, and commands that ask for it (--fresh), have a /tmp of their
own, in memory."""
import json
import os
import pathlib
import subprocess

import pytest

from conftest import PATIENCE, wait_until
from lab import leftovers, missing, result  # noqa: F401

pytestmark = missing("mount-namespace")


@pytest.fixture(params=["alone", "daemon"])
def door(request, cordon, leftovers):  # noqa: F811
    """Commands of a session, run by `cordon run` itself or by `cordon serve`."""
    if request.param == "alone":
        yield cordon
        return
    daemon = cordon.popen("serve", stdout=subprocess.DEVNULL)
    try:
        assert wait_until((cordon.data / "cordon/daemon.sock").exists)
        yield cordon
        assert daemon.poll() is None
    finally:
        daemon.terminate()
        daemon.wait(PATIENCE)


def shell(cordon, line, *options, session="s"):
    return result(cordon, *(("--session", session) if session else ()), *options, "--", "/bin/sh", "-c", line)


def tmp_of(cordon, session="s"):
    return pathlib.Path(json.loads(cordon("session", "show", session, "--json").stdout)["tmp"])


@pytest.mark.parametrize("driver", ["namespaces", "landlock", "bwrap", "local"])
def test_what_one_command_wrote_the_next_one_reads(cordon, tmp_path, driver):
    config = tmp_path / "config.toml"
    config.write_text(f'[sandbox]\ndriver = "{driver}"\n')
    options = ["--config", str(config), "--session", "s"]
    first = cordon("run", *options, "--", "/bin/sh", "-c", "echo x > ${TMPDIR}/a; echo y > ~/b")
    if driver == "bwrap" and first.returncode == 125:
        pytest.skip("cannot: bwrap: not here")
    assert first.returncode == 0, first
    second = cordon("run", *options, "--", "/bin/sh", "-c", "cat ${TMPDIR}/a; cat ~/b")
    # The workspace is mounted in /tmp here: bubblewrap would follow what links a command left there, so it has memory.
    assert second.stdout == ("y\n" if driver == "bwrap" else "x\ny\n"), second


def test_tmp_is_one_for_a_session(door):
    assert shell(door, "echo x > /tmp/a; echo y > /var/tmp/b; mkdir -p ~/.cache; echo z > ~/.cache/c")["exit_code"] == 0
    assert shell(door, "cat /tmp/a /var/tmp/b ~/.cache/c")["stdout"] == "x\ny\nz\n"
    assert shell(door, "cat /var/tmp/a /tmp/b")["stdout"] == "x\ny\n"
    assert shell(door, "stat -c '%a %u' /tmp; id -u")["stdout"].split() == ["1777", *[shell(door, "id -u")["stdout"].strip()] * 2]
    for other in (dict(session="t"), dict(session=None), dict(session="s", options=["--fresh"])):
        found = shell(door, "ls -A /tmp /var/tmp", *other.get("options", ()), session=other["session"])
        assert "a" not in found["stdout"].split() and "b" not in found["stdout"].split(), found
    assert shell(door, "cat /tmp/a")["stdout"] == "x\n", "what shares nothing took nothing away"


def test_it_goes_when_the_session_is_removed(door):
    assert shell(door, "echo x > /tmp/a")["exit_code"] == 0
    place = tmp_of(door)
    assert (place / "a").read_text() == "x\n" and place.stat().st_uid == os.geteuid()
    assert door("session", "end", "s").returncode == 0 and (place / "a").exists()
    assert door("session", "rm", "s").returncode == 0
    assert not place.exists() and not list(place.parent.iterdir())
    assert shell(door, "test -e /tmp/a")["exit_code"] == 1, "another one of the same name"


def test_removing_a_full_one(cordon):
    """100,000 files, sockets and fifos, directories that nobody may enter, and a link to somewhere else."""
    outside = cordon.data.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept\n")
    made = shell(cordon, f"""cd /tmp; ln -s {outside} link; mkdir deep; cd deep; mkdir shut; mkfifo shut/fifo fifo; chmod 0 shut
                             python3 -Sc "import socket; socket.socket(socket.AF_UNIX).bind('socket')" """)
    assert made["exit_code"] == 0, made
    place = tmp_of(cordon)
    for number in range(100000):
        if number % 1000 == 0:
            (place / f"deep/{number}").mkdir()
        os.mknod(place / f"deep/{number // 1000 * 1000}/{number}")
    assert sum(len(files) for _, _, files in os.walk(place)) > 100000
    assert cordon("session", "end", "s").returncode == 0 and cordon("session", "rm", "s").returncode == 0
    assert not place.exists() and (outside / "file").read_text() == "kept\n"


def test_one_that_was_replaced_by_a_link_is_refused(cordon):
    assert shell(cordon, "echo x > /tmp/a")["exit_code"] == 0
    place, outside = tmp_of(cordon), cordon.data.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept\n")
    place.rename(place.with_name("moved"))
    place.symlink_to(outside)
    error = cordon.refused("--session", "s", "--", "/bin/true")
    assert error["class"] == "capability_denied" and error["subject"] == str(place)
    assert cordon("session", "end", "s").returncode == 0 and cordon("session", "rm", "s").returncode == 0
    assert not os.path.lexists(place) and (outside / "file").read_text() == "kept\n"


def test_it_counts_for_the_disk_limit(cordon):
    told = shell(cordon, "dd if=/dev/zero of=/tmp/big bs=1M count=64 2>/dev/null; sleep 5", "--disk", "16M")
    assert told["limit_hit"] == "disk", told


# What a command leaves where the next one's grant needs a mount point: each is in the way.
LEFT = {"link": "ln -s / {name}", "loop": "ln -s {name} {name}", "file": "echo x > {name}", "fifo": "mkfifo {name}",
        "link-inside": "mkdir -p {name}; ln -s {outside} {name}/granted"}


@pytest.mark.parametrize("what", LEFT)
def test_what_is_in_the_way_of_a_mount_point(cordon, tmp_path, what):
    """A grant beneath /tmp is mounted in the session's own directory: no link there is followed, nothing outside is
    made or changed."""
    root = pathlib.Path("/tmp") / f"cordon-files-{os.getpid()}-{what}"
    granted, outside = root / "granted", tmp_path / "outside"
    granted.mkdir(parents=True)
    outside.mkdir()
    (granted / "file").write_text("granted\n")
    before = sorted(os.listdir("/"))
    try:
        left = shell(cordon, LEFT[what].format(name=root, outside=outside))
        assert left["exit_code"] == 0, left
        config = tmp_path / "config.toml"
        config.write_text(f'[capabilities]\nfs_read = ["{granted}"]\n')
        told = shell(cordon, f"cat {granted}/file; ls -d {root}*", "--config", str(config))
        assert told["stdout"].startswith("granted\n"), told
        assert list(outside.iterdir()) == [] and sorted(os.listdir("/")) == before and os.listdir(granted) == ["file"]
        # The next command without the grant finds an empty directory there, and what was in the way beside it.
        again = shell(cordon, f"ls -A {granted}; ls -d {root}*")
        assert str(root) in again["stdout"].split()
    finally:
        (granted / "file").unlink()
        granted.rmdir()
        root.rmdir()
