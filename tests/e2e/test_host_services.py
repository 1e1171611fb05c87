"""Services of the host: a port of its loopback that was granted answers inside at the same address, and no other
does."""
import json
import socket
import threading

import pytest

from lab import drivers, needs, refused, result, rows

ASK = """
import socket, sys
for place in sys.argv[1:]:
    address, port = place.rsplit(":", 1)
    try:
        with socket.create_connection((address.strip("[]"), int(port)), timeout=20) as peer:
            peer.settimeout(20)
            peer.sendall(b"ping")
            peer.shutdown(socket.SHUT_WR)
            print(place, peer.recv(64).decode() or "closed")
    except OSError as error:
        print(place, type(error).__name__)
"""


class Service:
    """Answers each connection with its own name and what it was sent."""
    def __init__(self, name, address="127.0.0.1", port=0):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.name, self.listener, self.count = name, socket.create_server((address, port), family=family), 0
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                self.count += 1
                peer.sendall(f"{self.name} heard {peer.recv(64).decode()}".encode())

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def service():
    made = Service("granted")
    yield made
    made.close()


@pytest.fixture
def other():
    made = Service("other")
    yield made
    made.close()


def ask(cordon, driver, grants, *places, options=()):
    words = [word for grant in grants for word in ("--net", grant)]
    done = result(cordon, "--driver", driver, *words, *options, "--", "/usr/bin/python3", "-c", ASK, *places)
    return [line.split(" ", 1)[1] for line in done["stdout"].splitlines()], done


@needs("ipv6")
@drivers("namespaces", "bwrap")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_the_granted_port_answers_at_both_addresses(cordon, driver, host, service):
    said, done = ask(cordon, driver, [f"{host}:{service.port}"],
                     f"127.0.0.1:{service.port}", f"[::1]:{service.port}", f"localhost:{service.port}")
    assert said == ["granted heard ping"] * 3 and done["denials"] == [], done
    found = [row for row in rows(cordon) if row["row"] == "network" and "open" not in row]
    assert {row["host"] for row in found} <= {"127.0.0.1", "::1", "localhost"} and len(found) == 3
    assert all((row["port"], row["decision"], row["host_service"],
                row["way"]) == (service.port, "allowed", True, "address")
               for row in found), found


@needs("ipv6")
@drivers("namespaces")
def test_a_service_that_has_one_family_only(cordon, driver):
    six = Service("six", "::1")
    try:
        said, _ = ask(cordon, driver, [f"127.0.0.1:{six.port}"], f"127.0.0.1:{six.port}")
    finally:
        six.close()
    assert said == ["six heard ping"]


@drivers("namespaces", "bwrap")
def test_nothing_else_of_the_hosts_loopback(cordon, driver, service, other):
    """Neither directly, nor by another spelling, nor through the proxy."""
    proxy = f"""
import socket
peer = socket.create_connection(("198.18.0.1", 3128), timeout=20)
peer.sendall(b"CONNECT 127.0.0.1:{other.port} HTTP/1.0\\r\\n\\r\\n")
print("proxy", peer.recv(64).decode().split()[1])
"""
    places = [f"{address}:{other.port}" for address in ("127.0.0.1", "127.0.0.2", "localhost", "[::ffff:127.0.0.1]")]
    said, _ = ask(cordon, driver, [f"localhost:{service.port}"], *places, f"127.0.0.2:{service.port}")
    assert said == ["ConnectionRefusedError"] * 5, said
    done = result(cordon, "--driver", driver, "--net", f"localhost:{service.port}", "--", "/usr/bin/python3", "-c",
                  proxy)
    assert done["stdout"].split() == ["proxy", "403"] and service.count == other.count == 0


@drivers("namespaces")
def test_through_the_proxy_too(cordon, driver, service):
    script = f"""
import socket
for host in ("127.0.0.1", "localhost", "[::1]"):
    peer = socket.create_connection(("198.18.0.1", 3128), timeout=20)
    peer.sendall(f"CONNECT {{host}}:{service.port} HTTP/1.0\\r\\n\\r\\nping".encode())
    peer.shutdown(socket.SHUT_WR)
    said = b""
    while more := peer.recv(4096):
        said += more
    print(said.decode().split("\\r\\n\\r\\n")[1])
"""
    done = result(cordon, "--driver", driver, "--net", f"127.0.0.1:{service.port}", "--", "/usr/bin/python3", "-c",
                  script)
    assert done["stdout"].splitlines() == ["granted heard ping"] * 3, done


@drivers("namespaces", "bwrap")
def test_reset_where_nothing_listens(cordon, driver):
    gone = Service("gone")
    gone.close()
    said, done = ask(cordon, driver, [f"localhost:{gone.port}"], f"127.0.0.1:{gone.port}")
    assert said == ["ConnectionResetError"], done
    denial, = done["denials"]
    assert (denial["what"], denial["grant"]) == (f"127.0.0.1:{gone.port}",
                                                 "") and "the host's service" in denial["note"]
    row = [row for row in rows(cordon) if row["row"] == "network"][-1]
    assert row["decision"] == "failed" and "the host's service cannot be reached" in row["why"] and row["host_service"]


@drivers("namespaces")
def test_beside_a_wildcard_on_the_same_port(cordon, driver, service):
    said, _ = ask(cordon, driver, [f"localhost:{service.port}", f"*.listed.example:{service.port}"],
                  f"127.0.0.1:{service.port}")
    assert said == ["granted heard ping"]


@drivers("landlock", "local")
def test_refused_where_it_cannot_be_held(cordon, driver):
    error = refused(cordon, "--driver", driver, "--net", "localhost:5432", "--", "true")
    assert (error["class"], error["boundary"], error["subject"]) == ("spawn_sandbox_unavailable", "network", driver)


@pytest.mark.parametrize("text", ["localhost:99999", "localhost:0", "localhost", "127.0.0.1:", "[::1]", "127.1:80",
                                  "*.127.0.0.1:80"])
def test_what_is_no_port_of_it(cordon, text):
    error = cordon.refused("--net", text, "--", "true")
    assert error["class"] == "invalid_request" and error["remediation"], error


def test_the_profile_names_them(cordon):
    plan = json.loads(cordon("profile", "--net", "localhost:5432", "--net", "127.0.0.1:5432", "--", "true").stdout)
    places = [(row["address"], row["port"]) for row in plan["listeners"] if row["use"] == "forward"]
    assert places == [("127.0.0.1", 5432), ("::1", 5432)]
