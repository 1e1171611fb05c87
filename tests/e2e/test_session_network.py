"""The network of a session's sandbox while it is up: hosts come and go, and what jobs are connected to goes on where it
still may."""
import json
import socket
import threading

import pytest

from conftest import descendants, is_running, wait_until
from lab import leftovers, missing, rows  # noqa: F401
from library_lab import name_of
from test_limits import PYTHON
from test_session_living import ByDaemon, capability, make, say, write, world  # noqa: F401

pytestmark = missing("mount-namespace")

# Sends a line for each that it gets, and says how the connection ended.
CLIENT = """
import socket, sys, time
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
lines = connection.makefile("rw")
count = 0
try:
    while True:
        lines.write("more\\n"); lines.flush()
        if not lines.readline():
            break
        count += 1
        open("count", "w").write(str(count))
        if count == 1:
            print("carries", flush=True)
        time.sleep(0.02)
    print("ended")
except OSError as error:
    print("reset", error.errno)
sys.stdout.flush()
time.sleep(1000)
"""


class Lines:
    """A server of the host's loopback that answers each line with another, for as long as it is let."""
    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=self.server.accept()[:1], daemon=True).start()
        except OSError:
            pass

    def serve(self, connection):
        try:
            lines = connection.makefile("rw")
            for _ in lines:
                lines.write("answer\n")
                lines.flush()
        except OSError:
            pass

    def close(self):
        self.server.close()


@pytest.fixture
def server():
    lines = Lines()
    yield lines
    lines.close()


def proxies(world):  # noqa: F811
    return [pid for pid in descendants(world.pid) if name_of(pid).startswith("cordon-proxy") and is_running(pid)]


def goes_on(world):  # noqa: F811
    """Is the job's connection carried?"""
    def count():
        return int((world.cordon.workspace / "count").read_text() or "0")
    before = count()
    return wait_until(lambda: count() > before + 2, 5)


def hosts(*ports):
    return f"network = {json.dumps([f'127.0.0.1:{port}' for port in ports])}"


@pytest.fixture
def connected(world, server, tmp_path):  # noqa: F811
    """A job of a session whose hosts are the server's and another one: its name, and the configuration."""
    config = tmp_path / "config/cordon/config.toml"
    capability(config, hosts(server.port, 9))
    write(world.cordon.workspace / "client.py", CLIENT)
    job = world.job(PYTHON, "client.py", str(server.port), said="carries")
    assert goes_on(world)
    return job, config


def test_another_setting_changes_no_connection(world, connected):  # noqa: F811
    """Nor the process that carries it: there is one for all of the sandbox's commands."""
    _, config = connected
    before = proxies(world)
    assert len(before) == 1
    capability(config, config.read_text().split("[capabilities]\n")[1] + "# a comment\n[limits]\nopen_files = 512")
    for _ in range(3):
        say(world.run("true"))
    assert proxies(world) == before and goes_on(world)


@pytest.mark.parametrize("more", [True, False])
def test_hosts_that_are_left_stay_connected(world, connected, server, more):  # noqa: F811
    """When one is added, and when another one is taken away; both twice."""
    _, config = connected
    for i in range(2):
        capability(config, hosts(server.port, *([9, 10 + i] if more else [])))
        look = f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {server.port}), 20); print(1)'"
        assert say(world.run(look)) == "1\n"
        assert goes_on(world), i
    assert len(proxies(world)) <= 2


def test_a_host_that_is_taken_away_is_left(world, connected, server):  # noqa: F811
    """Also by connections that went on through an earlier change; and the process that carried them ends with them."""
    job, config = connected
    capability(config, hosts(server.port, 9, 10))
    say(world.run("true"))
    assert goes_on(world)
    capability(config, hosts(9, 10))
    say(world.run("true"))
    assert not goes_on(world)
    assert wait_until(lambda: len(proxies(world)) == 0)
    say(world.run("kill $(pgrep -f '[c]lient.py')"))
    ended = world.ended(job)
    output = ended["stdout"] if isinstance(ended["stdout"], str) else ended["stdout"]["data"]
    assert "reset" in output or "ended" in output, output
    taken = [row for row in rows(world.cordon) if row["row"] == "network"
             and row.get("why") == "the host was taken back"]
    assert len(taken) == 1 and taken[0]["host"] == "127.0.0.1" and taken[0]["bytes_out"] > 0, taken


REACH = """
import socket, sys, time
port, last = int(sys.argv[1]), None
while True:
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"more\\n")
            now = "reached" if connection.recv(10) else "refused"
    except OSError:
        now = "refused"
    if now != last:
        open("now", "w").write(now)
    last = now
    time.sleep(0.05)
"""


@pytest.mark.parametrize("by", ["session-update", "configuration"])
def test_a_host_comes_and_goes_for_a_job(cordon, tmp_path, leftovers, server, by):  # noqa: F811
    """While nothing else of its session begins: soon after the session has it, and after it was taken back."""
    config = write(tmp_path / "config/cordon/config.toml", "")
    world = ByDaemon(cordon, config)  # noqa: F811
    now, host = cordon.workspace / "now", f"127.0.0.1:{server.port}"
    capability(config, hosts(9))
    write(cordon.workspace / "reach.py", REACH)
    job = world.job("/bin/sh", "-c", f"echo up; exec {PYTHON} reach.py {server.port}", said="up")
    assert wait_until(lambda: now.exists() and now.read_text() == "refused")
    if by == "configuration":
        capability(config, hosts(9, server.port))
    else:
        assert cordon("session", "update", "s", "--net", host).returncode == 0
    assert wait_until(lambda: now.read_text() == "reached", 30)
    if by == "configuration":
        capability(config, hosts(9))
    else:
        grants = json.loads(cordon("session", "show", "s", "--json").stdout)["grants"]
        assert cordon("session", "update", "s", "--revoke", grants[0]["approval"]).returncode == 0
    assert wait_until(lambda: now.read_text() == "refused", 30)
    assert json.loads(cordon("session", "show", "s", "--json").stdout)["sandbox"]["running"][0]["audit_id"] == job
    world.close()


def test_a_port_that_a_job_has_taken(cordon, tmp_path, leftovers, server):  # noqa: F811
    """It is said, and once the job is gone what was listed before is there again, and the new host, too."""
    config, other = write(tmp_path / "config/cordon/config.toml", ""), Lines()
    world = ByDaemon(cordon, config)
    write(cordon.workspace / "ask.py",
          "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 20)\n"
                                       "s.sendall(b'more\\n')\nprint(s.recv(9))\n")
    write(cordon.workspace / "taken.py", f"import socket, time\ns = socket.create_server(('0.0.0.0', {other.port}))\n"
                                         "print('up', flush=True)\ntime.sleep(1000)\n")
    capability(config, hosts(server.port))
    assert "answer" in say(world.run(f"{PYTHON} ask.py {server.port}"))
    job = world.job(PYTHON, "taken.py", said="up")
    capability(config, hosts(server.port, other.port))
    for _ in range(2):
        error = world.run(f"{PYTHON} ask.py {server.port}")["error"]
        assert error["class"] == "session_busy" and "listens at the port of a listed host" in error["reason"], error
    world.ask_to_end(job)
    world.ended(job)
    for port in (server.port, other.port):
        assert "answer" in say(world.run(f"{PYTHON} ask.py {port}"))
    world.close()
    other.close()


ASK_PROXY = """
import os, socket, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
connection = socket.create_connection((proxy.hostname, proxy.port), 20)
connection.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
print(connection.recv(100).split()[1].decode(), flush=True)
"""


def test_whose_a_connection_was(world, tmp_path):  # noqa: F811
    """Of two commands that run at once each finds the proxy at an address of its own, by which a row is the one's or
    the other's."""
    servers = [Lines(), Lines(), Lines()]
    capability(tmp_path / "config/cordon/config.toml", hosts(*(server.port for server in servers)))
    write(world.cordon.workspace / "ask.py", ASK_PROXY)
    line = "{python} ask.py 127.0.0.1:{port}; touch said-{port}; until [ -e go ]; do sleep 0.02; done"
    jobs = {server.port: world.job("/bin/sh", "-c", "echo up; " + line.format(python=PYTHON, port=server.port),
                                   said="up") for server in servers[:2]}
    for port in jobs:
        assert wait_until((world.cordon.workspace / f"said-{port}").exists)
    last = world.run(f"{PYTHON} ask.py 127.0.0.1:{servers[2].port}; touch go")
    ended = {port: world.ended(job) for port, job in jobs.items()}
    ids = {port: done.get("audit_id") or jobs[port]
           for port, done in ended.items()} | {servers[2].port: last["audit_id"]}
    told = [(row["port"], row["audit_id"]) for row in rows(world.cordon) if row["row"] == "network"]
    assert sorted(told) == sorted(ids.items()), (told, ids)
    for server in servers:
        server.close()
