"""Ports of a sandbox that this machine's loopback answers at: --publish."""
import hashlib
import json
import os
import socket
import threading

import pytest

from conftest import wait_until
from lab import lack, refused, refused_unwalked, rows
from test_serve import Daemon

# Answers each connection with what it was sent; says when it listens.
ECHO = """
import socket, sys, threading
address, port = sys.argv[1], int(sys.argv[2])
listener = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=64)
def serve(peer):
    while data := peer.recv(1 << 16):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
    peer.close()
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
PYTHON = "/usr/bin/python3"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


def ask(port, data=b"ping", address="127.0.0.1"):
    """What comes back, or the name of what went wrong."""
    try:
        with socket.create_connection((address, port), timeout=30) as peer:
            threading.Thread(target=lambda: (peer.sendall(data), peer.shutdown(socket.SHUT_WR)), daemon=True).start()
            got = b""
            while piece := peer.recv(1 << 16):
                got += piece
            return got
    except OSError as error:
        return type(error).__name__


@pytest.fixture
def served(cordon):
    """A server that runs inside, once it listens."""
    running = []

    def serve(*words, address="127.0.0.1", port=8000, **options):
        process = cordon.popen("run", *words, "--", PYTHON, "-c", ECHO, address, str(port), text=True, **options)
        running.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return process
    yield serve
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1"])
@pytest.mark.parametrize("network", ["none", "example.com:443"])
def test_a_server_inside_is_reached(cordon, served, address, network):
    if address == "::1" and lack("ipv6"):
        pytest.skip(lack("ipv6"))
    port = free_port()
    process = served("--net", network, "--publish", f"{port}:8000", address=address)
    assert ask(port) == b"ping" and ask(port, b"again") == b"again"
    assert ask(8000 if port != 8000 else 8001) == "ConnectionRefusedError"
    # At 127.0.0.1 alone.
    assert ask(port, address="127.0.0.2") == "ConnectionRefusedError"
    process.terminate()
    process.wait()
    assert ask(port) == "ConnectionRefusedError"
    # A connection that is open for long has a row meanwhile, too.
    found = [row for row in rows(cordon) if row["row"] == "network" and "open" not in row]
    assert [(row["way"], row["port"], row["decision"], row["bytes_in"], row["bytes_out"]) for row in found] == [
        ("published", 8000, "allowed", 4, 4), ("published", 8000, "allowed", 5, 5)], found
    intents = [row for row in rows(cordon) if row["row"] == "intent"]
    assert intents[0]["capabilities"]["publish"] == [f"{port}:8000"]


def test_many_connections_at_a_time_and_much_through_one(cordon, served):
    port = free_port()
    served("--publish", f"{port}:8000")
    data = os.urandom(1 << 24)
    back = ask(port, data)
    assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest()
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(ask(port, b"%d" % i) == b"%d" % i))
               for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 100


def test_where_nothing_listens_the_connection_ends(cordon, served):
    port, other = free_port(), free_port()
    process = served("--publish", f"{port}:8000", "--publish", f"{other}:8001")
    assert ask(port) == b"ping"
    assert ask(other) in (b"", "ConnectionResetError", "BrokenPipeError")
    process.terminate()
    process.wait()
    failed = [row for row in rows(cordon) if row["row"] == "network" and row["decision"] == "failed"]
    assert len(failed) == 1 and failed[0]["port"] == 8001 and "the port inside cannot be reached" in failed[0]["why"], failed


def test_it_leads_in_and_not_out(cordon, served):
    """From the inside neither the port of this machine nor what carries it is there."""
    port = free_port()
    probe = f"""
import pathlib, socket
names = [path.read_text().strip() for path in pathlib.Path("/proc").glob("[0-9]*/comm")]
print("cordon-proxy" in names)
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=10)
    print("open")
except ConnectionRefusedError:
    print("refused")
"""
    done = cordon("run", "--publish", f"{port}:8000", "--", PYTHON, "-c", probe)
    assert done.stdout == "False\nrefused\n", done


def test_a_port_that_is_taken(cordon):
    marker = cordon.workspace / "ran"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = refused(cordon, "--publish", f"{port}:8000", "--", "/usr/bin/touch", "ran")
    assert error["class"] == "invalid_request" and f"port {port} of this machine is in use" in error["reason"]
    assert "--publish" in error["remediation"] and not marker.exists()


@pytest.mark.parametrize("value", ["", "0", "65536", "99999999999", "x", "80:", ":80", "1:2:3", "-1", "8080:0", " 80",
                                   "127.0.0.1:80:80"])
def test_what_is_no_port(cordon, value):
    error = refused_unwalked(cordon, "--publish", value, "--", "true")
    assert error["class"] == "invalid_request", error


def test_one_port_leads_to_one(cordon):
    error = refused_unwalked(cordon, "--publish", "8080:1", "--publish", "8080:2", "--", "true")
    assert "for one port only" in error["reason"]


def test_with_the_network_of_the_host_there_is_nothing_to_publish(cordon):
    error = refused(cordon, "--net", "all", "--publish", "8080", "--", "true")
    assert error["class"] == "invalid_request" and "nothing to publish" in error["reason"]


@pytest.mark.parametrize("driver", ["bwrap", "landlock", "local"])
def test_drivers_that_cannot(cordon, driver):
    error = refused(cordon, "--driver", driver, "--publish", "8080", "--", "true")
    assert error["class"] == "spawn_sandbox_unavailable" and "cannot publish" in error["reason"], error


def test_a_session_keeps_its_ports(cordon):
    port = free_port()
    daemon = Daemon(cordon)
    daemon.start()
    try:
        made = json.loads(cordon("session", "new", "web", "--publish", f"{port}:8000", "--json").stdout)
        assert made["baseline"]["publish"] == [f"{port}:8000"]
        job = cordon("job", "start", "--session", "web", "--", PYTHON, "-c", ECHO, "127.0.0.1", "8000").stdout.strip()
        assert wait_until(lambda: ask(port) == b"ping")
        shown = json.loads(cordon("session", "show", "web", "--json").stdout)
        assert shown["baseline"]["publish"] == [f"{port}:8000"]
        # Other commands of the session come and go; the port stays, and what it leads to.
        assert cordon("run", "--session", "web", "--", "true").returncode == 0
        assert ask(port) == b"ping"
        shown = json.loads(cordon("session", "show", "web", "--json").stdout)
        assert shown["sandbox"]["published"] == [{"host_port": port, "port": 8000, "why": ""}]
        cordon("job", "kill", job)
        assert wait_until(lambda: ask(port) != b"ping")
        # It is gone with the sandbox, which is gone with the session.
        assert cordon("session", "end", "web").returncode == 0
        assert wait_until(lambda: ask(port) == "ConnectionRefusedError")
    finally:
        daemon.end()


def test_a_session_asks_for_a_port(cordon):
    """A command of a session publishes nothing that its session does not."""
    cordon("session", "new", "s")
    error = refused(cordon, "--session", "s", "--publish", "8080:3000", "--", "true")
    assert error["class"] == "capability_denied" and "8080:3000" in json.dumps(error), error
