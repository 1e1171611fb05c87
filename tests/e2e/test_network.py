"""The network of listed hosts: what is reached, what is refused and why, and that nothing else gets out. All of it in a
world of its own with names, addresses and servers (network_lab.py), so that what is public here is public to cordon,
too."""
import base64
import json
import os
import signal
import socket
import subprocess

import pytest

from conftest import descendants, is_running
from lab import IS_ROOT, drivers, needs, rows, wait_until
from network_lab import UNWALLED, net, world  # noqa: F401

PUBLIC, PUBLIC6, OTHER = "93.184.216.34", "2606:2800:220::1", "93.184.216.35"
GOOD = ["good.test:80"]


def get(url, more=""):
    return f"GET {url} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\nConnection: close\r\n{more}\r\n".encode()


def connect(target):
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


def status(text):
    """Of the first answer in it."""
    return int(text.split(b" ", 2)[1]) if text.startswith(b"HTTP/1.1 ") else text


def told(text):
    """What the server in the world says it was asked."""
    return json.loads(text.partition(b"\r\n\r\n")[2])


def configure(net, tmp_path, text):
    """For every command of this test."""
    path = tmp_path / "config/cordon/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    net.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")


# ---- what is reached -------------------------------------------------------------------------------------------------

@drivers("namespaces", "bwrap")
def test_every_way_leads_to_the_listed_host(net, driver):
    net.driver = driver
    socks = [b"\5\1\0", b"\5\1\0\3\x09good.test\0\x50", b"GET / HTTP/1.0\r\n\r\n"]
    literal = [b"\5\1\0", b"\5\1\0\1\x5d\xb8\xd8\x22\0\x50", b"GET / HTTP/1.0\r\n\r\n"]
    said = net.dialogs([get("http://good.test/a"), [connect("good.test:80"), b"GET /b HTTP/1.0\r\n\r\n"], socks,
                        literal, get("http://a.wild.test/"), get("http://b.c.wild.test/"), get("http://wild.test/")],
                       net=["good.test:80", "93.184.216.34:80", "*.wild.test:80"])
    assert told(said[0])["path"] == "/a"
    assert said[1].startswith(b"HTTP/1.1 200 ") and b'"path": "/b"' in said[1]
    assert all(text.startswith(b"\5\0\5\0\0") and b'"path": "/"' in text for text in said[2:4]), said[2:4]
    assert [status(text) for text in said[4:]] == [200, 200, 403]
    rows = net.connections()
    ways = sorted((row["host"], row["way"], row["decision"]) for row in rows)
    assert ways == [("93.184.216.34", "socks", "allowed"), ("a.wild.test", "http", "allowed"),
                    ("b.c.wild.test", "http", "allowed"), ("good.test", "connect", "allowed"),
                    ("good.test", "http", "allowed"), ("good.test", "socks", "allowed"),
                    ("wild.test", "http", "denied")], rows
    assert {row["port"] for row in rows} == {80}
    for row in rows:
        if row["decision"] == "allowed":
            assert row["address"] in (PUBLIC, PUBLIC6) and row["bytes_in"] > 100 and row["bytes_out"] > 10, row


@drivers("namespaces", "bwrap")
def test_names_have_addresses_of_both_families(net, driver):
    """Programs that know nothing of proxies connect to what the name server says; that is a name again to the proxy."""
    net.driver = driver
    rows = [["tcp", name, 80, int(family)] for name in ("good.test", "v6.test", "a.wild.test", "b.c.wild.test")
            for family in (socket.AF_INET, socket.AF_INET6)]
    reached, _ = net.verb("attempts", rows, net=["good.test:80", "v6.test:80", "*.wild.test:80"])
    assert set(reached) == {"reached"}, list(zip(rows, reached))
    found = {(row["host"], row["way"], row["decision"]) for row in net.connections()}
    assert found == {(name, "address", "allowed")
                     for name in ("good.test", "v6.test", "a.wild.test", "b.c.wild.test")}, found


@needs("veth")
def test_another_machine_and_one_that_is_silent(net, tmp_path):
    """At the other end of a cable: one answers, and packets to the other are swallowed."""
    assert status(net.dialogs([get("http://far.test/")], net=["far.test:80"])[0]) == 200
    configure(net, tmp_path, '[network]\nconnect_timeout = "300ms"\n')
    said = net.dialogs([get("http://silent.test/"), connect("silent.test:80")], net=["silent.test:80"])
    assert [status(text) for text in said] == [504, 504], said
    assert sorted(row["decision"] for row in net.connections()) == ["allowed", "failed", "failed"]


def test_the_result_and_the_ledger_count(net):
    _, value = net.verb("attempts", [["tcp", "good.test", 80], ["tcp", "good.test", 80], ["tcp", "other.test", 80]],
                        net=GOOD)
    assert value["network"]["connections"] == 2, value["network"]
    rows = net.connections()
    assert value["network"]["denied"] == sum(row.get("count", 1) for row in rows if row["decision"] == "denied") > 0
    allowed = [row for row in rows if row["decision"] == "allowed"]
    assert sum(row["bytes_in"] for row in allowed) == value["network"]["bytes_in"] > 0
    assert sum(row["bytes_out"] for row in allowed) == value["network"]["bytes_out"] > 0
    assert {row["audit_id"] for row in rows} == {value["audit_id"]}
    assert any("--net other.test" in json.dumps(each) for each in value["denials"]), value["denials"]


def test_bodies_in_every_framing(net):
    chunked = (b"POST http://good.test/c HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
               b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
    length = b"PUT http://good.test/l HTTP/1.1\r\nHost: good.test\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    head = b"HEAD http://good.test/big/1000 HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n"
    two = b"GET http://good.test/1 HTTP/1.1\r\nHost: good.test\r\n\r\n" + get("http://good.test/2")
    mixed = b"GET http://good.test/1 HTTP/1.1\r\nHost: good.test\r\n\r\n" + get("http://other.test/2")
    waits = [b"POST http://good.test/e HTTP/1.1\r\nHost: good.test\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n", b"ok"]
    hidden = get("http://good.test/h", "Proxy-Authorization: Basic eA==\r\nX-A: 1\r\nX-B: 2\r\nConnection: x-a\r\n")
    said = net.dialogs([chunked, length, head, two, mixed, waits, hidden, get("http://good.test/big/300000")], net=GOOD)
    assert told(said[0])["body"] == "hello world" and told(said[1])["body"] == "hello"
    assert b"Content-Length: 1000\r\n" in said[2] and said[2].endswith(b"\r\n\r\n")
    assert said[3].count(b"HTTP/1.1 200 ") == 2 and b'"path": "/2"' in said[3]
    assert said[4].count(b"HTTP/1.1 200 ") == 1 and b"HTTP/1.1 403 " in said[4]
    assert b"HTTP/1.1 100 " in said[5] and b'"body": "ok"' in said[5]
    assert {name for name, _ in told(said[6])["headers"]} == {"Host", "X-B"} | ({"Connection"} & {name for name, _ in told(said[6])["headers"]})
    assert said[7].endswith(b"x" * 300000)
    assert not [each for each in net.world.seen() if each[1] == OTHER]


# ---- secrets in requests ---------------------------------------------------------------------------------------------

OWN_SECRET = "correct7horse+battery"
TOKEN = "ghp" + "_R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK"


def post(body, path="p", size=None):
    return (f"POST http://good.test/{path} HTTP/1.1\r\nHost: good.test\r\nContent-Length: {size or len(body)}\r\nConnection: close\r\n\r\n"
            .encode() + body)


def test_a_body_with_an_own_secret_does_not_go_out(net, tmp_path):
    # What the server says it got is printed, and not to be redacted here.
    configure(net, tmp_path, 'secrets.output = "report"\n')
    net.env["MY_TOKEN"] = OWN_SECRET
    own = OWN_SECRET.encode()
    plain, encoded = post(b'{"key": "' + own + b'"}'), post(base64.b64encode(b"key=" + own))
    # Behind much that is harmless, across the proxy's reads, and in chunks.
    far = post(b"x" * 65530 + own)
    long = post(b"y" * 300000 + own)
    chunked = (b"POST http://good.test/c HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" +
               b"%x\r\n" % (len(own) + 2) + b"a=" + own + b"\r\n0\r\n\r\n")
    # A secret across two chunks.
    head, rest = chunked.split(own)
    head = head.replace(b"%x\r\n" % (len(own) + 2), b"7\r\n")
    across = head + own[:5] + b"\r\n%x\r\n" % (len(own) - 5) + own[5:] + rest
    # Within a token of another kind, which is only reported.
    token = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=")
                      for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1","k":"' + own + b'"}',
                                   b"R7kW2mZx9QvT4nLb8YcJ5hGd1Ps"))
    within = post(b"token=" + token)
    harmless = post(b"hello " * 20000)
    said, value = net.verb("dialogs", [[base64.b64encode(part).decode()
                                        for part in ([row] if isinstance(row, bytes) else row)]
                                       for row in (plain, encoded, far, long, chunked, across, within, harmless)],
                           net=GOOD)
    said = [base64.b64decode(text) for text in said]
    for answer in said[:7]:
        assert answer.startswith(b"HTTP/1.1 403 ") and own not in answer and b"MY_TOKEN" in answer, answer[:200]
    assert told(said[7])["body"] == "hello " * 20000
    denied = [row for row in net.connections() if row["decision"] == "denied"]
    assert len(denied) == 7 and all("MY_TOKEN" in row["why"] and "fingerprint" in row["why"] for row in denied)
    assert "(base64, " in denied[1]["why"] and len({row["why"].split("fingerprint ")[1] for row in denied}) == 1
    assert any("MY_TOKEN" in denial["note"] for denial in value["denials"])
    assert OWN_SECRET not in json.dumps(value["denials"]) + json.dumps(net.connections())


def test_a_body_with_another_secret_is_reported_or_blocked(net, tmp_path):
    configure(net, tmp_path, 'secrets.output = "report"\n')
    answer, = net.dialogs([post(TOKEN.encode())], net=GOOD)
    assert told(answer)["body"] == TOKEN
    assert "github-token (raw, at byte 0 of the body" in net.connections()[-1]["why"]
    configure(net, tmp_path, 'secrets.output = "report"\nsecrets.block = ["github-token"]\n')
    answer, = net.dialogs([post(b"x " + TOKEN.encode())], net=GOOD)
    assert answer.startswith(b"HTTP/1.1 403 ") and TOKEN.encode() not in answer
    # What the command has by name it may use.
    net.env["MY_TOKEN"] = OWN_SECRET
    answer, = net.dialogs([post(OWN_SECRET.encode())], net=GOOD, options=["--pass-env", "MY_TOKEN"])
    assert told(answer)["body"] == OWN_SECRET


def test_no_row_names_a_host_after_a_secret(net):
    net.env["MY_TOKEN"] = "correct7horse-battery"
    ask = [["tcp", "correct7horse-battery.test", 80]]
    for options in ((), ("--pass-env", "MY_TOKEN")):
        for hosts in (GOOD, ()):
            _, value = net.verb("attempts", ask, net=hosts, options=options)
            assert "correct7horse-battery" not in json.dumps(value["denials"])
    assert any("[REDACTED:MY_TOKEN]" in row["host"] for row in net.connections())
    assert "correct7horse-battery" not in json.dumps(rows(net))


# ---- what is refused -------------------------------------------------------------------------------------------------

HOST = b"Host: good.test\r\n"
MALFORMED = [
    (400, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"), (400, b"GET http://good.test/ HTTP/1.1\n" + HOST + b"\n"),
    (400, b"POST http://good.test/ HTTP/1.1\r\n" + HOST
     + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (400, b"POST http://good.test/ HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
    (400, b"GET http://good.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n"),
    (400, b"GET http://x@good.test/ HTTP/1.1\r\n" + HOST + b"\r\n"),
    (400, b"CONNECT good.test%00.other.test:80 HTTP/1.1\r\n\r\n"), (400, b"CONNECT 0x5db8d822:80 HTTP/1.1\r\n\r\n"),
    (400, b"CONNECT good.test:0 HTTP/1.1\r\n\r\n"),
    (400, b"GET http://good.test/ HTTP/1.1\r\n" + HOST + b" folded: 1\r\n\r\n"), (400, b"\x16\3\1\2\0\1\0\1\xfc"),
    (405, b"TRACE http://good.test/ HTTP/1.1\r\n" + HOST + b"\r\n"),
    (501, b"POST http://good.test/ HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
    (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    (431, b"GET http://good.test/ HTTP/1.1\r\n" + HOST + b"A: " + b"b" * (1 << 20) + b"\r\n\r\n"),
    (403, get("http://other.test/")), (403, connect("good.test:443")), (403, connect(f"{PUBLIC}:80")),
    (403, connect("[::1]:80")), (403, connect("127.0.0.1:80")), (403, connect("198.18.0.1:3128")),
    (403, get("http://xgood.test/")), (403, get("http://good.test.x/")), (502, connect("dead.test:9")),
]


def test_each_refusal_says_what_it_is(net):
    said = net.dialogs([text for _, text in MALFORMED], net=[*GOOD, "dead.test:9"])
    assert [status(text) for text in said] == [wanted for wanted, _ in MALFORMED], said
    assert all(b"cordon: " in text.partition(b"\r\n\r\n")[2] for text in said), said
    assert net.world.seen() == []


OK = b"HTTP/1.1 200 OK\r\n"
# What a server may answer: (the status that arrives, what it sends).
ANSWERS_OF_SERVERS = [
    (200, OK + b"\r\nuntil it closes"), (200, OK + b"Content-Length: 2\r\n\r\nok"),
    (200, OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    (204, b"HTTP/1.1 204 No Content\r\n\r\n"), (304, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    (502, OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (502, OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!"),
    (502, b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"), (502, OK + b"A: b\r\n c\r\n\r\n"),
    (502, OK + b"Content-Length : 2\r\n\r\nok"),
    (502, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), (502, b"<html>\r\n\r\n"),
    (502, b"HTTP/1.1 200"), (502, b""), (502, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
]


def test_what_servers_may_answer(net):
    said = net.dialogs([get(f"http://good.test/raw/{text.hex()}") for _, text in ANSWERS_OF_SERVERS], net=GOOD)
    wanted = [wanted for wanted, _ in ANSWERS_OF_SERVERS]
    assert [status(text) for text in said] == wanted, list(zip(wanted, said))
    assert said[0].endswith(b"until it closes") and said[1].endswith(b"\r\n\r\nok")


def raw(text, method="GET"):
    return f"{method} http://good.test/raw/{text.hex()} HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n".encode()


def test_nothing_is_smuggled(net):
    """A second request in the body of a first is judged or is body; a second response behind a first goes nowhere."""
    post, other = b"POST http://good.test/x HTTP/1.1\r\nHost: good.test\r\n", get("http://other.test/smuggled")
    evil = OK + b"Content-Length: 4\r\n\r\nevil"
    chunked, length = b"Transfer-Encoding: chunked\r\n\r\n", b"Content-Length: 2\r\n\r\n"
    requests = [post + length + b"ab" + other,
                post + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(other) + other,
                post + chunked + b"0\r\n\r\n" + other, post + chunked + b"5;\n" + other,
                post + chunked + b"0\r\nHost: other.test\r\n\r\n"]
    said = net.dialogs([*requests, raw(OK + length + b"ok" + evil), raw(OK + length + evil, "HEAD"),
                        raw(OK + chunked + b"2;\nxx\r\n" + evil)], net=GOOD)
    assert [text.count(b"HTTP/1.1 ") for text in said[:5]] == [2, 1, 2, 1, 1], said
    assert b"HTTP/1.1 403 " in said[0] and b"HTTP/1.1 403 " in said[2] and told(said[1])["body"] == other.decode()
    assert [status(text) for text in said[3:5]] == [400, 400]
    assert said[5].endswith(b"\r\n\r\nok") and not any(b"evil" in text for text in said[5:]), said[5:]
    assert not [each for each in net.world.seen() if each[1] == OTHER]


SOCKS = [
    (b"\5\xff", b"\5\1\2"), (b"", b"\4\1\0\x50\1\2\3\4\0"), (b"\5\0\5\7", [b"\5\1\0", b"\5\3\0\1\0\0\0\0\0\0"]),
    (b"\5\0\5\7", [b"\5\1\0", b"\5\2\0\1\0\0\0\0\0\0"]), (b"\5\0\5\2", [b"\5\1\0", b"\5\1\0\3\x0aother.test\0\x50"]),
    (b"\5\0\5\x08", [b"\5\1\0", b"\5\1\0\x09"]), (b"\5\0\5\2", [b"\5\1\0", b"\5\1\0\1\x7f\0\0\1\0\x50"]),
    (b"\5\0\5\4", [b"\5\1\0", b"\5\1\0\3\x09dead.test\0\x09"]),
]


def test_socks_refuses_with_its_own_words(net):
    said = net.dialogs([row for _, row in SOCKS], net=[*GOOD, "dead.test:9"])
    assert [text[:len(wanted)] if wanted else text[:0]
            for text, (wanted, _) in zip(said, SOCKS)] == [wanted for wanted, _ in SOCKS], said
    assert len(said[1]) <= 2 and b"<still open>" not in b"".join(said), said


# What is listed by name and leads where nothing may go: (name, a part of why).
INWARD = [("private.test", "private"), ("mixed.test", "private"), ("mapped.test", "private"), ("loop.test", "loopback"),
          ("meta.test", "metadata"), ("shared.test", "100.64.0.1"), ("metadata.google.internal", "metadata")]


@drivers("namespaces", "bwrap")
def test_names_that_lead_inwards(net, driver):
    net.driver = driver
    hosts = [f"{name}:80" for name, _ in INWARD]
    said = net.dialogs([connect(host) for host in hosts], net=hosts)
    assert [status(text) for text in said] == [403] * len(hosts), said
    # Which address it is, and of what kind, is for the ledger.
    for text, row, (name, why) in zip(said, net.connections(), INWARD):
        assert row["host"] == name and why in row["why"], (name, row)
        assert row["why"].encode() not in text or row["address"] is None, (name, text)
    reached, _ = net.verb("attempts", [["tcp", name, 80] for name, _ in INWARD], net=hosts)
    assert "reached" not in reached, reached
    assert net.world.seen() == []
    assert {row["decision"] for row in net.connections()} == {"denied"}


def test_exemptions_and_literals_open_what_is_closed(net, tmp_path):
    """The same names and addresses are reached where somebody says so: the refusals above are by the table."""
    configure(net, tmp_path, '[network]\nallow_private = ["10.0.0.0/8"]\n[network.names]\n"static.test" = "10.0.0.1"\n')
    said = net.dialogs([get("http://private.test/"), get("http://mixed.test/"), get("http://static.test/"),
                        get("http://meta.test/")],
                       net=["private.test:80", "mixed.test:80", "static.test:80", "meta.test:80"])
    assert [status(text) for text in said] == [200, 200, 200, 403], said
    said = net.dialogs([get("http://169.254.169.254/"), get("http://127.0.0.1/"), get("http://10.0.0.1/")],
                       net=["169.254.169.254:80", "127.0.0.1:80"])
    assert [status(text) for text in said] == [200, 200, 403], said


def test_a_name_that_may_be_at_a_private_address(net, tmp_path):
    """One name, with one port, and no metadata service."""
    hosts = ["private.test:80", "mixed.test:80", "loop.test:80", "shared.test:80", "mapped.test:80", "meta.test:80"]
    requests = [get(f"http://{host[:-3]}/") for host in hosts]
    private = [word for host in hosts for word in ("--net-private", host)]
    said = net.dialogs(requests, options=private)
    assert [status(text) for text in said] == [200, 200, 200, 200, 403, 403], said
    said = net.dialogs(requests[:2], net=hosts[1:2], options=private[:2])
    assert [status(text) for text in said] == [200, 403] and b"to allow it: --net-private mixed.test:80" in said[1], said
    configure(net, tmp_path, '[network]\nprivate_hosts = ["PRIVATE.test.:80"]\n')
    said = net.dialogs([*requests[:2], get("http://private.test:81/")], net=[*hosts[:2], "private.test:81"])
    assert [status(text) for text in said] == [200, 403, 403], said


def test_who_may_say_so(net, tmp_path):
    """Not the project, and not a request of a session."""
    (net.workspace / ".cordon.toml").write_text('[network]\nprivate_hosts = ["private.test:80"]\n')
    error = json.loads(net("run", "--json", "--net", "private.test:80", "--", "true").stdout)["error"]
    assert error["class"] == "config_invalid" and "private_hosts" in error["reason"], error
    (net.workspace / ".cordon.toml").unlink()
    error = json.loads(net("run", "--json", "--session", "s", "--net-private", "private.test:80", "--",
                           "true").stdout)["error"]
    assert (error["class"], error["boundary"], error["subject"]) == ("invalid_request", "network", "private.test:80")
    assert error["remediation"] == 'write network.private_hosts = ["private.test:80"] into your configuration'
    for text in ("10.0.0.1:80", "*.private.test:80", "private.test", "[::1]:80"):
        error = json.loads(net("run", "--json", "--net-private", text, "--", "true").stdout)["error"]
        assert error["class"] == "invalid_request" and error["remediation"], error


def test_a_name_that_is_not_there(net):
    """It is told as that, once, and nothing would allow it."""
    _, value = net.verb("dialogs", [[base64.b64encode(connect("missing.test:80")).decode()]] * 2,
                        net=["missing.test:80"])
    denial, = value["denials"]
    assert (denial["what"], denial["grant"]) == ("missing.test:80",
                                                 "") and "there is no such name" in denial["note"], denial


def test_a_name_that_changes_its_mind(net):
    """Judged is what is dialled: the first answer is public and is reached, the second is private and is not."""
    said = net.dialogs([connect("rebind.test:80") + b"GET / HTTP/1.0\r\n\r\n", connect("rebind.test:80")],
                       net=["rebind.test:80"])
    assert [status(text) for text in said] == [200, 403], said
    assert {each[1] for each in net.world.seen() if each[0] == "http"} <= {PUBLIC}


# ---- nothing else ----------------------------------------------------------------------------------------------------

def ways_out(world):
    """(attempt, whether it succeeds without the wall). What needs privileges never does: seccomp and capabilities hold
    that everywhere, and tests/walls/ shows it."""
    direct = [["tcp", host, 80] for host in ("8.8.8.8", PUBLIC, PUBLIC6, OTHER, "10.0.0.1", "169.254.169.254",
                                             "169.254.1.1")]
    # Without the proxy there is nobody to ask for names.
    rows = [(row, True) for row in direct] + [(["tcp", "other.test", 80], None), (["udp", "good.test", 7], None),
                                              (["tcp", "good.test", 8080], None)]
    rows += [(["udp", host, 7], True) for host in (PUBLIC, PUBLIC6, "8.8.8.8")]
    rows += [(["tcp", "127.0.0.1", 8080], True), (["tcp", "::1", 8080], True)]
    rows += [(["unix", "@cordon-network-world"], None), (["unix", f"{world.directory}/unix-socket"], False)]
    rows += [(["ping", "8.8.8.8"], None), (["make", 2, 3, 1], False), (["make", 17, 3, 0x300], False),
             (["make", 17, 2, 0x300], False), (["make", 40, 1, 0], False), (["make", 16, 3, 12], False),
             (["new_address"], False)]
    return rows


@drivers("namespaces", "bwrap")
def test_nothing_else_gets_out(net, driver):
    net.driver = driver
    rows = ways_out(net.world)
    reached, _ = net.verb("attempts", [row for row, _ in rows], net=[*GOOD, "*.wild.test:80"])
    assert [row for (row, _), came in zip(rows, reached) if came == "reached"] == [], list(zip(rows, reached))
    assert net.world.seen() == []


def test_without_the_wall_all_of_it_does(net):
    rows = ways_out(net.world)
    net.program, net.env["CORDON_UNWALL"] = UNWALLED, "network"
    reached, _ = net.verb("attempts", [row for row, _ in rows], net=GOOD)
    wrong = [(row, came) for (row, free), came in zip(rows, reached) if free is not None
             and (came == "reached") != free]
    assert not wrong, wrong


def test_the_proxys_other_doors_are_closed(net):
    """What it listens on for others and for itself: no way to reach another host or port by choosing an address."""
    rows = [["tcp", "198.18.0.1", port] for port in (22, 80, 8080)] + [["tcp", "127.0.0.1", port]
                                                                       for port in (80, 443, 3128, 53)]
    rows += [["tcp", "::1", 80], ["tcp", "198.18.1.1", 443], ["tcp", "198.18.1.2", 80], ["tcp", "198.18.200.1", 80],
             ["tcp", "198.19.0.77", 80]]
    reached, _ = net.verb("attempts", rows, net=["good.test:80", "v4.test:443", "*.wild.test:80"])
    assert "reached" not in reached, list(zip(rows, reached))
    assert net.world.seen() == []


def test_names_do_not_carry_secrets_out(net):
    """Only what is allowed is ever asked for outside, and only its addresses."""
    questions = [("good.test", 1), ("GOOD.test", 28), ("good.test", 16), ("good.test", 255), ("secret.evil.test", 1),
                 ("secret.good.test", 1), ("secret.evil.test", 16), ("other.test", 28),
                 ("34.216.184.93.in-addr.arpa", 12), ("x." * 100 + "test", 1)]
    answers, _ = net.verb("names", questions, net=GOOD)
    assert answers[:4] == [[0, 1], [0, 1], [0, 0], [0, 0]], answers
    assert all(answer == [3, 0] for answer in answers[4:]), answers
    assert {name for name, _ in net.world.ask("asked")} <= {"good.test"}
    denied = {row["host"] for row in net.connections() if row["decision"] == "denied"}
    assert {"secret.evil.test", "secret.good.test", "other.test"} <= denied, denied


def test_noise_on_the_name_servers_door(net):
    """Too short, a reply, a name that points to itself, one that never ends, and a great many bytes."""
    header = "123401000001000000000000"
    messages = ["", "00", header, "123481800001000000000000" + "0161" * 5, header + "c00c00010001",
                header + "3f" + "61" * 20, header + "0161" * 126 + "0000010001", "ff" * 4000]
    answer, _ = net.verb("noise", messages, net=GOOD)
    assert answer == [0, 1]


# ---- bounds and accidents --------------------------------------------------------------------------------------------

WAITS = ["sh", "-c", "getent hosts good.test >/dev/null; echo up; read line"]  # once it has used its network: before that there is no proxy


def proxy_of(process):
    """The proxy's process, of a cordon that runs."""
    def find():
        return [pid for pid in descendants(process.pid)
                if open(f"/proc/{pid}/cmdline").read().startswith("cordon-proxy")]
    assert wait_until(find, 30)
    return find()[0]


def test_a_proxy_that_is_killed(net):
    """The command sees a connection that is closed, whatever it was doing; the ledger has it."""
    process = net.popen("run", "--net", "good.test:80", "--", *net.program_of("drip", "http://good.test/drip"),
                        text=True)
    assert process.stdout.readline() == "flowing\n"
    os.kill(proxy_of(process), signal.SIGKILL)
    output, errors = process.communicate(timeout=30)
    assert json.loads(output) in ("end of file", "reset"), (output, errors)
    assert [row for row in net.connections() if row["decision"] == "failed"], net.connections()


def test_the_proxy_ends_with_its_command(net):
    process = net.popen("run", "--net", "good.test:80", "--", *WAITS, stdin=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    proxy = proxy_of(process)
    process.communicate("\n", timeout=30)
    assert wait_until(lambda: not is_running(proxy), 30)


def test_the_proxy_ends_with_whoever_started_it(net):
    process = net.popen("run", "--net", "good.test:80", "--", *WAITS, stdin=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    proxy = proxy_of(process)
    process.kill()
    process.communicate(timeout=30)
    assert wait_until(lambda: not is_running(proxy), 30)


def test_ten_thousand_connections_opened_and_dropped(net, tmp_path):
    configure(net, tmp_path, "[network]\ntotal_connections = 20000\n")
    opened, _ = net.verb("flood", 10000, net=GOOD, timeout=60)
    assert opened > 9000, opened
    assert len(net.connections()) <= 10001


def test_half_a_request_holds_up_nobody(net):
    said, _ = net.verb("hold", 100, net=GOOD)
    assert said.startswith("HTTP/1.1 200 "), said


def test_a_flood_stops_at_its_bound(net, tmp_path):
    configure(net, tmp_path, "[network]\ntotal_connections = 5\n")
    reached, _ = net.verb("attempts", [["tcp", "good.test", 80]] * 8, net=GOOD)
    assert reached.count("reached") == 5 and set(reached[:5]) == {"reached"}, reached


def test_bounds_of_bytes_and_heads(net, tmp_path):
    configure(net, tmp_path, '[network]\nbytes = "100K"\nheader = "2K"\n')
    said = net.dialogs([get("http://good.test/", f"A: {'b' * 2500}\r\n"),
                        get("http://good.test/", f"A: {'b' * 1000}\r\n"), get("http://good.test/big/1000000"),
                        get("http://good.test/")], net=GOOD)
    assert [status(text) for text in said[:2]] == [431, 200], said
    assert len(said[2]) < 200_000 and not said[3].startswith(b"HTTP/1.1 200"), said[3]


def test_who_says_nothing_is_let_go(net, tmp_path):
    configure(net, tmp_path, '[network]\nidle_timeout = "200ms"\n')
    said = net.dialogs([b"GET http://good.test/ HT", b"\5", [connect("good.test:80"), b"GET"]], net=GOOD)
    assert not any(b"<still open>" in text for text in said), said


def test_the_proxy_is_sealed(net):
    process = net.popen("run", "--net", "good.test:80", "--", *WAITS, stdin=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    proxy = proxy_of(process)

    def state():
        return dict(line.split(":\t", 1) for line in open(f"/proc/{proxy}/status").read().splitlines())
    assert wait_until(lambda: state()["Seccomp"] == "2", 30), state()
    assert state()["NoNewPrivs"] == "1" and {state()[f"Cap{which}"] for which in ("Prm", "Eff", "Amb")} == {"0" * 16}
    assert set(state()["Uid"].split()) == ({"65530"} if IS_ROOT else {str(os.getuid())}), state()["Uid"]
    process.communicate("\n", timeout=30)


def test_two_commands_have_two_proxies(net):
    """What one may reach, the other may not."""
    first = net.popen("run", "--net", "good.test:80", "--", *WAITS, stdin=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "up\n"
    said = net.dialogs([get("http://good.test/"), get("http://v4.test/")], net=["v4.test:80"])
    assert [status(text) for text in said] == [403, 200]
    first.communicate("\n", timeout=30)


def test_many_hosts_and_too_many_ports(net):
    many = ["good.test:80", *(f"host-{index}.test:{80 + index % 3}" for index in range(300))]
    rows = [["tcp", "good.test", 80], ["tcp", "v4.test", 80], ["tcp", "good.test", 81], ["tcp", "127.0.0.1", 80]]
    reached, _ = net.verb("attempts", rows, net=many)
    assert [each == "reached" for each in reached] == [True, False, False, False], reached
    done = net("run", "--json", *(word for port in range(1000, 1300) for word in ("--net", f"good.test:{port}")), "--",
               "true")
    error = json.loads(done.stdout)["error"]
    assert "ports" in error["reason"], error


def test_variables_for_programs_that_know_them(net):
    lines = net.inside("env", net=GOOD)["stdout"].splitlines()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        assert f"{name}=http://198.18.0.1:3128" in lines, lines
    assert any(line.startswith("NO_PROXY=") and "127.0.0.1" in line for line in lines), lines
    # Without a network, too: what knows them hears at once that there is none.
    assert "HTTPS_PROXY=http://198.18.0.1:3128" in net.inside("env")["stdout"].splitlines()
    assert not [line for line in net.inside("env", net=["all"])["stdout"].splitlines() if "3128" in line]


# ---- asking while a connection waits ---------------------------------------------------------------------------------

APPROVAL = '[approval]\nqueue = true\ntimeout = "60s"\n[capabilities]\nnetwork = ["good.test:80"]\n'
ANSWERS = [(["approve"], 200, 0), (["approve", "--for-session"], 200, 1), (["deny"], 403, 0)]


@pytest.mark.parametrize("words,wanted,grants", ANSWERS, ids=["once", "session", "denied"])
def test_a_human_is_asked_while_the_connection_waits(net, tmp_path, words, wanted, grants):
    configure(net, tmp_path, APPROVAL)
    requests = [[base64.b64encode(get(url)).decode()]
                for url in ("http://good.test/", "http://other.test/a", "http://other.test/b")]
    process = net.popen("run", "--session", "s", "--workspace", ".", "--", *net.program_of("dialogs", requests),
                        text=True)

    def cards():
        return json.loads(net("approvals", "list", "--json").stdout)["approvals"]
    assert wait_until(cards, 60)
    card, = cards()
    assert "other.test:80" in json.dumps(card), card
    assert net("approvals", words[0], card["id"], *words[1:]).returncode == 0
    output, errors = process.communicate(timeout=60)
    said = [base64.b64decode(text) for text in json.loads(output)]
    # One answer is for all connections of the command.
    assert [status(text) for text in said] == [200, wanted, wanted], (said, errors)
    assert ([each[1] for each in net.world.seen() if each[1] == OTHER] != []) == (wanted == 200)
    shown = json.loads(net("session", "show", "s", "--json").stdout)
    assert len(shown["grants"]) == grants, shown
    if grants:
        said = net.dialogs([get("http://other.test/")], options=["--session", "s", "--no-ask"])
        assert status(said[0]) == 200, said


# ---- drivers that cannot ---------------------------------------------------------------------------------------------

@drivers("landlock", "local")
def test_a_driver_that_cannot_refuses(net, driver):
    done = net("run", "--json", "--driver", driver, "--net", "good.test:80", "--", "true")
    assert json.loads(done.stdout)["error"]["class"] == "spawn_sandbox_unavailable", done
