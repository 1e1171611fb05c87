"""What a command with a network of listed hosts finds around itself: loopback, the planned listeners and no other,
names that lead to the proxy, and nothing of it in its hands."""
import ipaddress
import json

from lab import drivers, needs, refused, result

HOSTS = ["--net", "listed.example:443", "--net", "listed.example:22", "--net", "*.listed.example:8443", "--net",
         "203.0.113.7:80"]
MANY = [word for number in range(20) for word in ("--net", f"h{number}.example:443")]
PROXY = "http://198.18.0.1:3128"


def listening(text):
    """{(protocol, address, port)} of what listens, from the tables of the kernel, each after its name."""
    found, protocol = set(), None
    for line in text.splitlines():
        words = line.split()
        if len(words) == 1:
            protocol = words[0]
        elif len(words) > 3 and words[1] != "local_address" and (words[3] == "0A" or protocol.startswith("udp")):
            address, port = words[1].split(":")
            by_word = b"".join(bytes.fromhex(address[at:at + 8])[::-1] for at in range(0, len(address), 8))
            found.add((protocol[:3], str(ipaddress.ip_address(by_word)), int(port, 16)))
    return found


def planned(cordon, *words):
    plan = json.loads(cordon("profile", *words, "--", "true").stdout)
    return {("udp" if row["use"] == "dns_udp" else "tcp", row["address"], row["port"]) for row in plan["listeners"]}


@needs("ipv6")
@drivers("namespaces", "bwrap")
def test_only_what_is_planned_listens(cordon, driver):
    tables = "for name in tcp tcp6 udp udp6; do echo $name; cat /proc/net/$name; done"
    for hosts in (HOSTS, MANY):
        wanted = planned(cordon, *hosts)
        assert ("tcp", "198.18.0.1", 3128) in wanted and ("udp", "198.18.0.1", 53) in wanted
        assert listening(result(cordon, "--driver", driver, *hosts, "-c", tables)["stdout"]) == wanted
    assert ("tcp", "198.18.1.1", 22) in planned(cordon, *HOSTS) and ("tcp", "::", 8443) in planned(cordon, *HOSTS)
    assert ("tcp", "0.0.0.0", 443) in planned(cordon, *MANY)


@drivers("namespaces", "bwrap")
def test_nothing_but_loopback(cordon, driver):
    done = result(cordon, "--driver", driver, *HOSTS, "-c", "tail -n +3 /proc/net/dev; tail -n +2 /proc/net/route")
    assert [line.split(":")[0].strip() for line in done["stdout"].splitlines()] == ["lo"], done
    assert done["isolation"]["network"].endswith("proxy"), done


@drivers("namespaces", "bwrap")
def test_no_listener_in_the_command(cordon, driver):
    done = result(cordon, "--driver", driver, *HOSTS, "-c", "ls -l /proc/self/fd")
    lines = done["stdout"].splitlines()
    assert len(lines) == 5 and lines[0] == "total 0" and "socket:" not in done["stdout"], done  # three, and what ls reads


@drivers("namespaces", "bwrap")
def test_names_lead_to_the_proxy(cordon, driver):
    for view in ([], ["--view", "host-readonly"], ["--read", "/etc"]):
        script = "cat /etc/resolv.conf; grep ^hosts: /etc/nsswitch.conf; cat /etc/hosts; env | grep -i '^[a-z]*_proxy=' | sort"
        lines = result(cordon, "--driver", driver, *HOSTS, *view, "-c", script)["stdout"].splitlines()
        assert lines[:2] == ["nameserver 198.18.0.1", "hosts: files dns"], (view, lines)
        assert lines[2:4] == ["127.0.0.1 localhost cordon", "::1 localhost ip6-localhost ip6-loopback"], (view, lines)
        values = dict(line.split("=", 1) for line in lines[4:])
        assert values.pop("NO_PROXY") == values.pop("no_proxy") == "localhost,127.0.0.1,::1"
        assert values == {name: PROXY for stem in ("http", "https", "all")
                          for name in (f"{stem}_proxy", f"{stem}_proxy".upper())}


@drivers("namespaces", "bwrap")
def test_a_port_of_its_own_is_the_commands(cordon, driver):
    """Where a name is listed by itself, the same port is free elsewhere."""
    script = """
import socket
own = socket.create_server(("127.0.0.1", 2200))
peer = socket.create_connection(("127.0.0.1", 2200))
own.accept()[0].sendall(b"own")
print(peer.recv(9).decode())
for place in [("198.18.1.1", 2200), ("198.18.0.1", 3128), ("0.0.0.0", 2200)]:
    taker = socket.socket()
    taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        taker.bind(place)
        taker.listen()
        print("taken", place)
    except OSError as error:
        print(error.errno)
"""
    done = result(cordon, "--driver", driver, "--net", "listed.example:2200", "--", "/usr/bin/python3", "-c", script)
    assert done["stdout"].split() == ["own", "98", "98", "98"], done


@drivers("landlock", "local")
def test_refused_where_it_cannot_be_held(cordon, driver):
    error = refused(cordon, "--driver", driver, *HOSTS, "--", "true")
    assert (error["class"], error["boundary"], error["subject"]) == ("spawn_sandbox_unavailable", "network", driver)


def test_more_than_there_is_room_for(cordon):
    ports = [word for port in range(1000, 1129) for word in ("--net", f"*.listed.example:{port}")]
    error = refused(cordon, *ports, "--", "true")
    assert (error["class"], error["boundary"]) == ("invalid_request",
                                                   "network") and "129 different ports" in error["reason"]
