"""A daemon that systemd starts when a client connects: the listening socket is handed over as descriptor 3."""
import os
import socket
import subprocess

import pytest

from conftest import PATIENCE, wait_until


@pytest.fixture
def handed(cordon):
    """A socket that listens before any daemon does, at the place that clients use."""
    place = cordon.data / "cordon"
    place.mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "daemon.sock"))
        os.chmod(place / "daemon.sock", 0o600)
        listening.listen()
        yield listening


def serve(cordon, listening, pid="$$"):
    # It must be descriptor 3, whatever number it has here.
    script = f'exec 3<&{listening.fileno()}; export LISTEN_PID={pid} LISTEN_FDS=1; exec "$@"'
    return subprocess.Popen(["bash", "-c", script, "bash", *cordon.argv("serve", "--idle", "60s")],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=cordon.env, cwd=cordon.workspace, pass_fds=[listening.fileno()])


def ended(process):
    process.terminate()
    return process.communicate(timeout=PATIENCE)


def test_a_client_that_came_first_is_served(cordon, handed):
    assert cordon("session", "new", "s", "--workspace", cordon.workspace).returncode == 0
    path = cordon.data / "cordon/daemon.sock"
    before = path.stat().st_ino
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status"}\n')
        process = serve(cordon, handed)
        client.settimeout(PATIENCE)
        assert b'"result"' in client.recv(65536)
    done = cordon("run", "--session", "s", "-c", "env; ls -l /proc/self/fd")
    assert done.returncode == 0 and "LISTEN" not in done.stdout and "socket:" not in done.stdout
    out, err = ended(process)
    assert "listening at" in out and err == ""
    # The socket is systemd's: it stays, for the next daemon.
    assert path.stat().st_ino == before
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_socket_for_another_process_is_none(cordon, handed):
    """The variables were left by a parent: the daemon makes a socket of its own, and removes it."""
    process = serve(cordon, handed, pid="1")
    assert process.stdout.readline().startswith("cordon: listening at")
    ended(process)
    assert not (cordon.data / "cordon/daemon.sock").exists()


def test_a_socket_at_another_place_is_refused(cordon, tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "elsewhere"))
        listening.listen()
        process = serve(cordon, listening)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 125 and "ListenStream=" in err and str(cordon.data / "cordon/daemon.sock") in err
    assert wait_until(lambda: not (cordon.data / "cordon/daemon.sock").exists())
