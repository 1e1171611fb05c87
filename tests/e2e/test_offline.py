"""Without a network: names and the proxy's address answer at once that there is none, and the result names what was
asked for."""
import pathlib
import time

from conftest import descendants
from lab import drivers, needs, result, rows

ASK = """
import socket, sys
for name in sys.argv[1:]:
    try:
        print(name, socket.getaddrinfo(name, 443)[0][4][0])
    except socket.gaierror as error:
        print(name, error.errno == socket.EAI_NONAME)
"""
CONNECT = """
import socket, sys
for host in sys.argv[1:]:
    peer = socket.create_connection(("198.18.0.1", 3128), timeout=30)
    peer.sendall(f"CONNECT {host} HTTP/1.0\\r\\n\\r\\n".encode())
    print(peer.recv(64).decode().split()[1])
"""


def network_rows(cordon):
    return [row for row in rows(cordon) if row["row"] == "network"]


@drivers("namespaces")
def test_names_are_refused_and_named(cordon, driver):
    done = result(cordon, "--", "/usr/bin/python3", "-c", ASK, "packages.example", "b.example")
    assert done["stdout"].split() == ["packages.example", "True", "b.example", "True"], done
    assert [(denial["what"], denial["wall"], denial["grant"]) for denial in done["denials"]] == \
        [("packages.example", "network", "--net packages.example:443"), ("b.example", "network", "--net b.example:443")]
    assert done["network_unreachable"] == "no network access (tried: packages.example, b.example). To allow it: " \
        "--net packages.example:443 --net b.example:443"
    found = network_rows(cordon)
    assert {(row["host"], row["decision"], row["way"], row["why"]) for row in found} == \
        {(name, "denied", "dns", "no network access") for name in ("packages.example", "b.example")}
    assert all(row["audit_id"] == done["audit_id"] for row in found)


@drivers("namespaces")
def test_the_proxy_refuses_and_the_port_is_known(cordon, driver):
    done = result(cordon, "--", "/usr/bin/python3", "-c", CONNECT, "packages.example:8443", "10.0.0.1:80", "[::1]:22")
    assert done["stdout"].split() == ["403"] * 3
    assert [denial["grant"] for denial in done["denials"]] == \
        ["--net packages.example:8443", "--net 10.0.0.1:80", "--net [::1]:22"]


@drivers("namespaces")
def test_a_name_with_and_without_its_port_is_one(cordon, driver):
    done = result(cordon, "--", "/usr/bin/python3", "-c", ASK + CONNECT.replace("sys.argv[1:]", '["a.example:22"]'),
                  "a.example")
    assert [denial["what"] for denial in done["denials"]] == ["a.example:22"], done


def test_one_line_says_so(cordon):
    done = cordon("run", "--", "/usr/bin/python3", "-c", ASK + "sys.exit(1)", "packages.example")
    assert [line for line in done.stderr.splitlines() if "network" in line] == \
        ["cordon: no network access (tried: packages.example). To allow it: --net packages.example:443"]


@drivers("namespaces")
def test_a_command_that_asks_for_nothing_has_no_proxy(cordon, driver):
    process = cordon.popen("run", "-c", "echo up; read wait", stdin=-1, text=True)
    assert process.stdout.readline() == "up\n"
    names = [pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in descendants(process.pid)]
    process.communicate("\n", timeout=60)
    assert names and not any(name.startswith("cordon-proxy") for name in names), names
    done = result(cordon, "-c", "exit 1")
    assert (done["denials"], done["network"], done["network_unreachable"]) == ([], None, None)
    assert network_rows(cordon) == []


@drivers("namespaces")
def test_its_own_names_and_loopback_work(cordon, driver):
    done = result(cordon, "--", "/usr/bin/python3", "-c", ASK, "localhost", "cordon")
    assert done["stdout"].split() in (["localhost", "127.0.0.1", "cordon", "127.0.0.1"],
                                      ["localhost", "::1", "cordon", "127.0.0.1"]), done
    assert done["denials"] == []
    script = """
import socket
own = socket.create_server(("127.0.0.1", 3128))
peer = socket.create_connection(("127.0.0.1", 3128))
own.accept()[0].sendall(b"own")
print(peer.recv(9).decode())
"""
    assert result(cordon, "--", "/usr/bin/python3", "-c", script)["stdout"] == "own\n"


@drivers("namespaces")
def test_noise(cordon, driver):
    """What is no question gets no answer, and nobody is held up by it."""
    script = """
import os, socket
noise = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for length in (0, 1, 11, 12, 13, 512, 4096, 9000):
    noise.sendto(os.urandom(length), ("198.18.0.1", 53))
for port in (53, 3128):
    for length in (1, 2, 100, 70000):
        with socket.create_connection(("198.18.0.1", port), timeout=30) as peer:
            try:
                peer.sendall(b"\\xff" * length)
            except OSError:
                pass
try:
    socket.getaddrinfo("after.example", 80)
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME)
"""
    done = result(cordon, "--", "/usr/bin/python3", "-c", script)
    assert done["stdout"] == "True\n" and "after.example" in [denial["what"] for denial in done["denials"]], done


@drivers("namespaces")
def test_who_says_otherwise_is_followed(cordon, driver):
    done = result(cordon, "--env", "HTTPS_PROXY=http://127.0.0.1:9", "--env", "no_proxy=a.example", "-c",
                  "echo $HTTPS_PROXY $no_proxy $HTTP_PROXY")
    assert done["stdout"].split() == ["http://127.0.0.1:9", "a.example", "http://198.18.0.1:3128"]


@needs("npm")
def test_npm_ends_soon(cordon):
    (cordon.workspace / "package.json").write_text('{"name": "a", "version": "1.0.0", "dependencies": {"b": "1.0.0"}}')
    before = time.monotonic()
    done = cordon("run", "--", "npm", "install", "--registry", "https://packages.example/", timeout=120)
    assert done.returncode not in (0, 124, 125)
    assert "cordon: no network access (tried: packages.example). To allow it: --net packages.example:443" in done.stderr
    assert time.monotonic() - before < 20, "npm waited for a network"
