"""A network of listed hosts as the walk has it: rows, counters, denials, and people who are asked while a connection
waits. What the proxy makes of the bytes is tested in test_network*.py."""
import contextlib
import http.server
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import threading

import pytest

from conftest import PATIENCE, is_running
from lab import IS_ROOT, drivers, embed, lack, leftovers, needs, refused, result, rows, rows_of, wait_until  # noqa: F401

PYTHON = "/usr/bin/python3"
pytestmark = [pytest.mark.skipif(bool(lack("mount-namespace")), reason=str(lack("mount-namespace")))]

# What the command does: `get URL` through the proxy of the environment, `direct HOST PORT` without, `resolve NAME`.
CLIENT = r"""
import os, socket, sys, urllib.error, urllib.request
def get(url):
    try:
        with urllib.request.urlopen(url, timeout=50) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as error:
        print(error.code)
        return 1
def many(times, url):
    made = 0
    try:
        for made in range(int(times) + 1):
            made == int(times) or urllib.request.urlopen(url, timeout=50).read()
    except OSError:
        pass
    print(made)
def direct(host, port):
    with socket.create_connection((host, int(port)), 50) as peer:
        peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
        print(b"".join(iter(lambda: peer.recv(4096), b"")).decode().rpartition("\n")[2])
def resolve(name):
    try:
        print(socket.getaddrinfo(name, None))
    except socket.gaierror:
        print("no such name")
        return 1
def hold(host, port):
    # Says that it is connected, and then what becomes of the connection.
    with socket.create_connection((host, int(port)), 50) as peer:
        peer.sendall(b"hold\n")
        print(peer.recv(64).decode(), flush=True)
        try:
            print("closed" if peer.recv(64) == b"" else "more", flush=True)
        except OSError as error:
            print("closed", flush=True)
sys.exit(globals()[sys.argv[1]](*sys.argv[2:]))
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.path)
        body = b"hello"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """A web server on loopback; .port, .seen."""
    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http_server.seen, http_server.port = [], http_server.server_address[1]
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield http_server
    http_server.shutdown()
    http_server.server_close()
    thread.join()


class Holder:
    """A server that answers one connection and then waits for its other end to close."""
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.held, self.closed = threading.Event(), threading.Event()
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            peer, _ = self.listener.accept()
            with peer:
                peer.recv(64)
                peer.sendall(b"held")
                self.held.set()
                with contextlib.suppress(OSError):
                    peer.recv(64)
            self.closed.set()

    def end(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


@pytest.fixture
def holder():
    server = Holder()
    yield server
    server.end()


@pytest.fixture
def net(cordon, tmp_path):
    """net(text): the configuration, with names for this machine; and the client is in the workspace."""
    place = tmp_path / "config/cordon"
    place.mkdir(parents=True)
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    for name in list(cordon.env):
        if name.lower().endswith("_proxy"):
            del cordon.env[name]
    (cordon.workspace / "client.py").write_text(CLIENT)

    def write(text="", private='["127.0.0.1"]'):
        (place / "config.toml").write_text(
            f'[network]\nallow_private = {private}\n[network.names]\n"a.test" = "127.0.0.1"\n"b.test" = "127.0.0.1"\n'
            f'"c.test" = ["127.0.0.1"]\n{text}\n')
    write()
    return write


def client(*words):
    return ["--", PYTHON, "client.py", *map(str, words)]


def network_rows(cordon, audit_id=None, is_open=False):
    """Those that tell of a connection while it is open, or the others: how long one is depends on the machine."""
    return [row for row in rows(cordon) if row["row"] == "network" and audit_id in (None, row["audit_id"]) and
            ("open" in row) == is_open]


def proxies_of(pid):
    """The proxies that this process has started."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                with contextlib.suppress(OSError):
                    if pathlib.Path(f"/proc/{child}/comm").read_text().startswith(("cordon-proxy", "memfd:cordon-pr")) or \
                       b"cordon-proxy" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(child)
    return found


# ---- rows, counters, denials -----------------------------------------------------------------------------------------

@drivers("namespaces", "bwrap")
def test_a_listed_host_is_reached_and_recorded(cordon, net, server, driver, leftovers):
    for words, way in ((["get", f"http://a.test:{server.port}/x?secret"], "http"),
                       (["direct", "a.test", server.port], "address")):
        told = result(cordon, "--driver", driver, "--net", f"A.test.:{server.port}", *client(*words))
        assert told["exit_code"] == 0 and "hello" in told["stdout"], told
        assert told["network"]["connections"] == 1 and told["network"]["denied"] == told["network"]["failed"] == 0, told
        assert told["network"]["bytes_in"] > 5 and told["network"]["bytes_out"] > 5 and told["network_unreachable"] is None
        row, = network_rows(cordon, told["audit_id"])
        assert (row["host"], row["port"], row["decision"], row["address"], row["way"]) == \
            ("a.test", server.port, "allowed", "127.0.0.1", way), row
        assert row["bytes_in"] == told["network"]["bytes_in"] and row["bytes_out"] == told["network"]["bytes_out"]
        assert row["program"] == PYTHON and row["session"] and row["duration_ms"] >= 0 and row["why"] == "", row
        intent, final = rows_of(cordon, told["audit_id"])
        assert intent["capabilities"]["network"] == "hosts" and intent["capabilities"]["hosts"] == [f"a.test:{server.port}"]
        assert final["network"] == told["network"]
        assert told["denials"] == [] and "secret" not in json.dumps(row)
    assert server.seen == ["/x?secret", "/"]
    assert json.loads(cordon("audit", "verify", "--json").stdout)["intact"]


def test_what_is_not_listed_is_denied(cordon, net, server):
    told = result(cordon, "--net", f"a.test:{server.port}", *client("get", f"http://b.test:{server.port}/"))
    assert told["exit_code"] == 1 and told["stdout"] == "403\n", told
    assert told["network"]["connections"] == 0 and told["network"]["denied"] == 1
    row, = network_rows(cordon, told["audit_id"])
    assert (row["host"], row["port"], row["decision"], row["address"],
            row["status"]) == ("b.test", server.port, "denied", None, 403)
    denial, = told["denials"]
    assert (denial["what"], denial["wall"], denial["grant"]) == \
        (f"b.test:{server.port}", "network", f"--net b.test:{server.port}") and "1 time" in denial["note"]
    # Another port is another thing, and a name that may not be reached is not told.
    told = result(cordon, "--net", f"a.test:{server.port}", *client("get", f"http://a.test:{server.port + 1}/"))
    assert told["stdout"] == "403\n" and told["denials"][0]["grant"] == f"--net a.test:{server.port + 1}"
    told = result(cordon, "--net", f"a.test:{server.port}", *client("resolve", "b.test"))
    assert told["stdout"] == "no such name\n" and told["network"]["denied"] >= 1
    assert all((row["host"], row["port"], row["way"], row["decision"]) == ("b.test", None, "dns", "denied")
               for row in network_rows(cordon, told["audit_id"]))
    assert [(denial["what"], denial["grant"]) for denial in told["denials"]] == [("b.test", "--net b.test:PORT")]
    assert server.seen == []
    found = [json.loads(line)
             for line in cordon("audit", "query", "--json", "--decision", "denied").stdout.splitlines()]
    assert {row["host"] for row in found} == {"a.test", "b.test"}, found


def test_a_private_address_is_refused_by_name(cordon, net, server):
    net(private="[]")
    told = result(cordon, "--net", f"a.test:{server.port}", *client("get", f"http://a.test:{server.port}/"))
    assert told["stdout"] == "403\n" and server.seen == []
    denial, = told["denials"]
    assert denial["what"] == f"a.test:{server.port}" and "loopback" in denial["note"] and \
        denial["grant"] == f"--net-private a.test:{server.port}", denial
    assert network_rows(cordon, told["audit_id"])[0]["address"] == "127.0.0.1"


def test_what_fails_is_told(cordon, net):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    told = result(cordon, "--net", f"a.test:{port}", *client("get", f"http://a.test:{port}/"))
    assert told["stdout"] == "502\n" and told["network"]["failed"] == 1 and told["denials"] == [], told
    row, = network_rows(cordon, told["audit_id"])
    assert row["decision"] == "failed" and row["why"] and row["status"] == 502


def test_wildcards_and_many_hosts(cordon, net, server):
    told = result(cordon, "--net", f"*.test:{server.port}", "--net", "x.example:1",
                  *client("get", f"http://c.test:{server.port}/"))
    assert told["stdout"] == "200 hello\n", told
    assert result(cordon, "--net", f"*.test:{server.port}",
                  *client("direct", "c.test", server.port))["stdout"] == "hello\n"
    words = [word for i in range(200) for word in ("--net", f"h{i}.example:443")]
    assert result(cordon, *words, "--net", f"a.test:{server.port}",
                  *client("direct", "a.test", server.port))["stdout"] == "hello\n"


def test_a_baseline_of_hosts(cordon, net, server):
    """A request adds to a list; of a whole network it takes only what it names; `none` is none."""
    net(f'[capabilities]\nnetwork = ["a.test:{server.port}"]')
    assert result(cordon, *client("get", f"http://a.test:{server.port}/"))["stdout"] == "200 hello\n"
    assert result(cordon, "--session", "s", "--workspace", cordon.workspace,
                  *client("get", f"http://a.test:{server.port}/"))["stdout"] == "200 hello\n"
    assert result(cordon, "--net", f"b.test:{server.port}",
                  *client("get", f"http://a.test:{server.port}/"))["stdout"] == "200 hello\n"
    told = result(cordon, "--net", "none", *client("get", f"http://a.test:{server.port}/"))
    assert told["exit_code"] != 0 and told["network"] is None
    net('[capabilities]\nnetwork = "all"')
    told = result(cordon, "--net", f"a.test:{server.port}", *client("get", f"http://b.test:{server.port}/"))
    assert told["stdout"] == "403\n" and told["isolation"]["network"] != "none"


def test_a_manifest_declares_hosts(cordon, net, server):
    file = cordon.workspace / "tool.toml"
    file.write_text(f'name = "tool"\n[capabilities.spawn]\nprograms = ["{os.path.realpath(PYTHON)}", "{PYTHON}"]\n'
                    f'[capabilities.network]\nhosts = ["a.test:{server.port}"]\n')
    told = result(cordon, "--manifest", file, *client("get", f"http://a.test:{server.port}/"))
    assert told["stdout"] == "200 hello\n", told
    assert result(cordon, "--manifest", file, *client("get", f"http://b.test:{server.port}/"))["stdout"] == "403\n"


@drivers("landlock", "local")
def test_drivers_without_a_network_of_their_own_refuse(cordon, driver):
    error = refused(cordon, "--driver", driver, "--net", "a.test:80", "--", "true")
    assert error["class"] == "spawn_sandbox_unavailable" and error["remediation"], error


def test_a_hint_where_the_way_out_was_not_used(cordon, net):
    for words in (["--net", "a.test:80"], []):
        told = result(cordon, *words, "-c", "echo 'connect: Network is unreachable' >&2; exit 1")
        assert "--net" in told["network_unreachable"] or "HTTP_PROXY" in told["network_unreachable"], told
        assert result(cordon, *words, "-c", "exit 1")["network_unreachable"] is None
        assert result(cordon, *words, "-c", "echo 'Network is unreachable' >&2")["network_unreachable"] is None
    done = cordon("run", "--net", "a.test:80", "-c", "echo 'Network is unreachable' >&2; exit 1")
    assert "cordon: it seems to have looked for a network" in done.stderr


def test_in_other_forms(cordon, net, server):
    told = result(cordon, "--net", f"a.test:{server.port}", *client("get", f"http://a.test:{server.port}/"))
    result(cordon, "--net", f"a.test:{server.port}", *client("get", f"http://b.test:{server.port}/"))
    events = [json.loads(line) for line in cordon("audit", "export", "--format", "ocsf").stdout.splitlines()]
    allowed, denied = [event for event in events if event["class_uid"] == 4001]
    assert (allowed["activity_name"], allowed["status"], denied["activity_name"], denied["action"]) == \
        ("Traffic", "Success", "Refuse", "Denied")
    assert allowed["dst_endpoint"] == {"hostname": "a.test", "ip": "127.0.0.1", "port": server.port}
    assert allowed["traffic"]["bytes_in"] == told["network"]["bytes_in"]
    assert allowed["metadata"]["correlation_uid"] == told["audit_id"]
    lines = [line for line in cordon("audit", "tail").stdout.splitlines() if "  network " in line]
    assert len(lines) == 2 and "allowed, a.test, 127.0.0.1" in lines[0] and "denied, b.test" in lines[1]


# ---- people are asked ------------------------------------------------------------------------------------------------

def start(cordon, *words, hosts=(), session="s", **options):
    named = [word for host in hosts for word in ("--net", host)]
    return cordon.popen("run", "--json", "--session", session, "--workspace", cordon.workspace, *named, *client(*words),
                        text=True, **options)


def end(process):
    output, errors = process.communicate(timeout=60)
    return json.loads(output)


def listed(cordon):
    return json.loads(cordon("approvals", "list", "--json").stdout)["approvals"]


def card_of(cordon):
    assert wait_until(lambda: len(listed(cordon)) == 1, 30), listed(cordon)
    return listed(cordon)[0]


def answer(cordon, *words):
    done = cordon("approvals", words[0], "--json", *words[1:])
    assert done.returncode == 0, done


def approvals(cordon):
    return [row for row in rows(cordon) if row["row"] == "approval"]


@pytest.fixture
def asking(net, server):
    """A session's baseline has a.test, and `cordon approvals` counts; asking(timeout="1s") sets more."""
    def write(timeout="60s", more=""):
        net(f'[capabilities]\nnetwork = ["a.test:{server.port}"]\n[approval]\nqueue = true\ntimeout = "{timeout}"\n{more}')
    write()
    return write


@drivers("namespaces", "bwrap")
def test_approved_once(cordon, asking, server, driver):
    config = pathlib.Path(cordon.env["XDG_CONFIG_HOME"]) / "cordon/config.toml"
    config.write_text(config.read_text() + f'[sandbox]\ndriver = "{driver}"\n')
    process = start(cordon, "get", f"http://b.test:{server.port}/")
    card = card_of(cordon)
    assert f"connect to b.test:{server.port}" in cordon("approvals", "list").stdout
    assert server.seen == [] and process.poll() is None
    answer(cordon, "approve", card["id"])
    told = end(process)
    assert told["stdout"] == "200 hello\n" and told["network"]["connections"] == 1 and told["network"]["denied"] == 0
    row, = approvals(cordon)
    assert (row["outcome"], row["scope"], row["audit_id"], row["asks_for"]["hosts"]) == \
        ("approved", "once", told["audit_id"], [f"b.test:{server.port}"])
    assert [row["decision"] for row in network_rows(cordon, told["audit_id"])] == ["allowed"]
    # The next command asks again.
    process = start(cordon, "get", f"http://b.test:{server.port}/")
    answer(cordon, "deny", card_of(cordon)["id"], "--reason", "once is once")
    told = end(process)
    assert told["stdout"] == "403\n" and "once is once" in told["denials"][0]["note"], told


def test_once_is_for_the_command(cordon, asking, server):
    (cordon.workspace / "client.py").write_text(CLIENT.replace("sys.exit(", "globals()[sys.argv[1]](*sys.argv[2:])\nsys.exit("))
    process = start(cordon, "get", f"http://b.test:{server.port}/")
    answer(cordon, "approve", card_of(cordon)["id"])
    assert end(process)["stdout"] == "200 hello\n" * 2 and len(approvals(cordon)) == 1


def test_approved_for_the_session(cordon, asking, server):
    process = start(cordon, "get", f"http://b.test:{server.port}/")
    answer(cordon, "approve", card_of(cordon)["id"], "--for-session")
    assert end(process)["stdout"] == "200 hello\n"
    # Later commands have it, by whichever way, and nobody is asked; another session has not.
    for words in (["get", f"http://b.test:{server.port}/"], ["direct", "b.test", server.port]):
        assert "hello" in end(start(cordon, *words))["stdout"]
    assert len(approvals(cordon)) == 1
    process = start(cordon, "get", f"http://b.test:{server.port}/", session="other")
    answer(cordon, "deny", card_of(cordon)["id"])
    assert end(process)["stdout"] == "403\n"


def test_denied_is_remembered(cordon, asking, server):
    for i in range(2):
        process = start(cordon, "get", f"http://b.test:{server.port}/")
        if i == 0:
            answer(cordon, "deny", card_of(cordon)["id"], "--reason", "not there")
        told = end(process)
        assert told["stdout"] == "403\n" and "not there" in told["denials"][0]["note"], told
    assert [(row["outcome"], row["by"]["door"])
            for row in approvals(cordon)] == [("denied", "queue"), ("denied", "memory")]
    assert server.seen == []


def test_a_paused_session_asks_no_more(cordon, asking, server):
    """In a group it would stand still before it could."""
    asking(more='denials_to_pause = 1\n[limits]\ncgroup = "none"')
    script = f"{PYTHON} client.py get http://b.test:{server.port}/; {PYTHON} client.py get http://c.test:{server.port}/"
    process = cordon.popen("run", "--json", "--session", "s", "--workspace", cordon.workspace, "-c", script, text=True)
    answer(cordon, "deny", card_of(cordon)["id"])
    told = end(process)
    assert told["stdout"] == "403\n403\n" and [row["outcome"] for row in approvals(cordon)] == ["denied"], told
    assert "paused" in told["denials"][1]["note"], told


def test_no_answer_is_not_remembered(cordon, asking, server):
    asking(timeout="300ms")
    told = end(start(cordon, "get", f"http://b.test:{server.port}/"))
    assert told["stdout"] == "403\n" and "no answer within" in told["denials"][0]["note"], told
    asking()
    process = start(cordon, "get", f"http://b.test:{server.port}/")
    answer(cordon, "approve", card_of(cordon)["id"])
    assert end(process)["stdout"] == "200 hello\n"
    assert [row["outcome"] for row in approvals(cordon)] == ["timeout", "approved"]


def test_the_end_of_the_command_ends_the_question(cordon, asking, server):
    process = start(cordon, "get", f"http://b.test:{server.port}/")
    card_of(cordon)
    process.send_signal(signal.SIGTERM)
    told = end(process)
    assert told["signal"] == signal.SIGTERM and listed(cordon) == [], told
    assert [row["outcome"] for row in approvals(cordon)] == ["cancelled"] and server.seen == []


def test_others_do_not_wait(cordon, asking, server):
    """While one host is asked about, a granted one is reached."""
    script = (f"{PYTHON} client.py get http://b.test:{server.port}/ & "
              f"until {PYTHON} client.py get http://a.test:{server.port}/; do :; done; wait $!")
    process = cordon.popen("run", "--json", "--session", "s", "--workspace", cordon.workspace, "-c", script, text=True)
    card = card_of(cordon)
    assert wait_until(lambda: server.seen, 30)
    answer(cordon, "approve", card["id"])
    assert sorted(end(process)["stdout"].splitlines()) == ["200 hello", "200 hello"]


def test_without_anybody_to_ask(cordon, asking, net, server):
    net(f'[capabilities]\nnetwork = ["a.test:{server.port}"]')
    told = end(start(cordon, "get", f"http://b.test:{server.port}/"))
    assert told["stdout"] == "403\n" and approvals(cordon) == []
    # A one-off has what it was given.
    asking()
    told = result(cordon, *client("get", f"http://b.test:{server.port}/"))
    assert told["stdout"] == "403\n" and approvals(cordon) == []


def test_asked_before_the_start(cordon, asking, server):
    """What a request names beyond the baseline is asked about like everything else."""
    process = start(cordon, "get", f"http://b.test:{server.port}/", hosts=[f"b.test:{server.port}"])
    answer(cordon, "approve", card_of(cordon)["id"])
    assert end(process)["stdout"] == "200 hello\n" and len(approvals(cordon)) == 1
    done = cordon("session", "new", "t", "--workspace", cordon.workspace, "--net", f"b.test:{server.port}", "--json")
    assert done.returncode == 0, done
    assert end(start(cordon, "get", f"http://b.test:{server.port}/", session="t"))["stdout"] == "200 hello\n"
    assert len(approvals(cordon)) == 1


@needs("gcc", "unsanitized")
def test_in_a_program_with_a_loop_of_its_own(cordon, asking, net, server, tmp_path, leftovers):
    net(f'[capabilities]\nnetwork = ["a.test:{server.port}"]')
    program = embed(pathlib.Path(__file__).parent / "library/egress.c", tmp_path)
    done = subprocess.run([program], env={**cordon.env, "WORKSPACE": str(cordon.workspace), "PORT": str(server.port)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done
    assert [row["outcome"] for row in approvals(cordon)] == ["approved", "cancelled", "denied", "denied"]


QUESTION = r"Allow\? \[o\]nce, for the \[s\]ession, \[d\]eny, deny with a \[r\]eason: "


def test_on_the_terminal_of_a_command_that_runs(cordon, net, server, terminal):
    """What the command writes waits while the question stands, and what is typed is not for the command."""
    net(f'[capabilities]\nnetwork = ["a.test:{server.port}"]')
    script = ("while :; do echo no''ise; sleep 0.01; done & until test -e go; do sleep 0.01; done; "
              f"{PYTHON} client.py get http://b.test:{server.port}/; kill $!; echo read; read line; echo got $line")
    session = terminal("run", "--session", "s", "--workspace", cordon.workspace, "-c", script)
    session.expect("noise", 60)
    (cordon.workspace / "go").touch()
    session.expect(r"\x0f\x1b\[!p\x1b\[0m\r\n", 60)
    card = session.expect(f"(?s).*connect to b.test:{server.port}.*{QUESTION}", 60).group().decode()
    assert "noise" not in card and listed(cordon)[0]["id"] in card
    session.type("once\n")
    session.expect("200 hello", 60)
    session.expect("read\r\n", 60)
    session.type("later\n")
    session.expect("got later", 60)
    assert session.end(60) == 0 and [row["outcome"] for row in approvals(cordon)] == ["approved"]


def test_a_command_with_a_terminal_of_its_own_is_asked_about_elsewhere(cordon, net, server, terminal):
    net(f'[capabilities]\nnetwork = ["a.test:{server.port}"]')
    session = terminal("run", "--tty", "--session", "s", "--workspace", cordon.workspace,
                       *client("get", f"http://b.test:{server.port}/"))
    answer(cordon, "approve", card_of(cordon)["id"])
    session.expect("200 hello", 60)
    assert session.end(60) == 0 and b"Allow?" not in session.output


# ---- when there is a proxy -------------------------------------------------------------------------------------------

@drivers("namespaces", "bwrap")
def test_the_proxy_starts_with_the_first_connection(cordon, net, server, driver, leftovers):
    script = f"echo up; read line; {PYTHON} client.py direct a.test {server.port}"
    process = cordon.popen("run", "--driver", driver, "--net", f"a.test:{server.port}", "-c", script,
                           stdin=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n" and proxies_of(process.pid) == []
    output, errors = process.communicate("\n", timeout=60)
    assert (output, process.returncode) == ("hello\n", 0), (output, errors)
    assert [row["host"] for row in network_rows(cordon)] == ["a.test"]


def test_a_network_that_is_not_used(cordon, net, server):
    told = result(cordon, "--net", f"a.test:{server.port}", "--", "true")
    assert set(told["network"].values()) == {0} and told["denials"] == [] and network_rows(cordon) == [], told


@pytest.mark.parametrize("to", ["a.test", "198.18.1.1"])
def test_a_connection_that_nobody_waits_for(cordon, net, server, to):
    """It may be the first thing that is done with the network, and the last that the command does at all."""
    for _ in range(5):
        told = result(cordon, "--net", f"a.test:{server.port}", "--", "bash", "-c",
                      f"exec 3<>/dev/tcp/{to}/{server.port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3")
        assert told["exit_code"] == 0 and told["network"]["connections"] + told["network"]["failed"] == 1, told
        row, = network_rows(cordon, told["audit_id"])
        assert (row["host"], row["port"], row["way"]) == ("a.test", server.port, "address"), row


# ---- what goes wrong -------------------------------------------------------------------------------------------------

def reach(cordon, holder):
    """A command whose connection is held; it has said so."""
    process = cordon.popen("run", "--net", f"a.test:{holder.port}", *client("hold", "a.test", holder.port), text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_the_proxy_is_killed(cordon, net, holder, leftovers):
    process = reach(cordon, holder)
    proxy, = proxies_of(process.pid)
    os.kill(proxy, signal.SIGKILL)
    output, errors = process.communicate(timeout=60)
    # It succeeded all the same: only its rows say so.
    assert (output, process.returncode, errors) == ("closed\n", 0, "")
    assert holder.closed.wait(30)
    row, = network_rows(cordon)
    assert row["decision"] == "failed" and "the proxy ended" in row["why"], row
    assert [row["row"] for row in rows(cordon) if "open" not in row] == ["intent", "network", "result"]


def test_a_proxy_that_does_nothing_is_not_waited_for(cordon, net, holder):
    process = reach(cordon, holder)
    proxy, = proxies_of(process.pid)
    os.kill(proxy, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and holder.closed.wait(30)
    row, = network_rows(cordon)
    assert row["decision"] == "failed" and "did not end with the command and was killed" in row["why"], row


def test_a_connection_that_is_open_at_the_end_has_its_row(cordon, net, holder):
    process = reach(cordon, holder)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and holder.closed.wait(30)
    row, = network_rows(cordon)
    assert (row["host"], row["decision"], row["bytes_in"], row["bytes_out"]) == ("a.test", "allowed", 4, 5), row


def test_cordon_is_killed(cordon, net, holder):
    process = reach(cordon, holder)
    proxy, = proxies_of(process.pid)
    # A connection that lasts is told of while it does, for nobody is left to tell of its end.
    assert wait_until(lambda: network_rows(cordon, is_open=True), 30)
    process.kill()
    process.communicate()
    assert holder.closed.wait(30) and wait_until(lambda: not is_running(proxy), 30)
    row, = network_rows(cordon, is_open=True)
    assert (row["host"], row["port"], row["decision"], row["address"], row["open"]) == \
        ("a.test", holder.port, "allowed", "127.0.0.1", True) and network_rows(cordon) == [], row


def test_no_row_no_connection(cordon, net, server, holder):
    """When the ledger cannot be written any more, connections end."""
    script = f"{PYTHON} client.py hold a.test {holder.port} & until test -e go; do sleep 0.01; done; " \
             f"{PYTHON} client.py get http://b.test:{server.port}/ >/dev/null 2>&1; wait"
    process = cordon.popen("run", "--json", "--net", f"a.test:{holder.port}", "--net", f"b.test:{server.port}", "-c",
                           script, text=True)
    assert holder.held.wait(30)
    ledger = cordon.data / "cordon/ledger"
    ledger.rename(ledger.with_name("away"))
    ledger.write_text("no directory")
    (cordon.workspace / "go").touch()
    output, errors = process.communicate(timeout=60)
    assert holder.closed.wait(30)
    error = json.loads(output)["error"]
    assert error["class"] == "audit_unavailable" and process.returncode == 125, output
    ledger.unlink()
    ledger.with_name("away").rename(ledger)


SMALL = """
mount -t tmpfs -o size=4m none "$1" || exit 9
export XDG_DATA_HOME="$1/data"
mkdir "$1/work" && cp client.py "$1/work" && cd "$1/work" || exit 9
cordon=$2
shift 2
"$cordon" run --workspace . -- true || exit 9
"$cordon" run --workspace . --json "$@"
cat ../data/cordon/ledger/*.jsonl
"""


@needs("mount-namespace")
@pytest.mark.parametrize("times", [3, 2000])
def test_connections_on_a_full_disk(cordon, net, server, tmp_path, times):
    """Each has its row; when what is reserved for such rows is used up, there are no more connections, and the result
    says so."""
    (tmp_path / "small").mkdir()
    line = (f"dd if=/dev/zero of=filler bs=64k 2>/dev/null; dd if=/dev/zero of=more bs=1k 2>/dev/null; {PYTHON} client.py many "
            f"{times} http://a.test:{server.port}/")
    prefix = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run([*prefix, "sh", "-c", SMALL, "sh", tmp_path / "small", cordon.argv()[0], "--net",
                           f"a.test:{server.port}", "-c", line], cwd=cordon.workspace, env=cordon.env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    told, *found = map(json.loads, done.stdout.splitlines())
    assert "error" not in told and told["exit_code"] == 0, told
    made = int(told["stdout"])
    network = [row for row in found if row["row"] == "network"]
    assert found[-1]["row"] == "result" and found[-1]["id"] == told["audit_id"]
    # The last one has none if it was the one for which there was no room; but it is counted.
    assert len(network) >= made - (times > 3) and told["network"]["connections"] >= made, (made, len(network))
    assert made == times if times == 3 else 50 < made < times, made
    closed = [denial for denial in told["denials"] if "the ledger could not be written" in denial["note"]]
    assert bool(closed) == (times > 3), told["denials"]


def test_a_proxy_that_cannot_be_kept_in_memory(cordon, net, server, tmp_path):
    """A limit on the size of files cuts its program off. The command has no network, all say so, and nothing else is
    executed in its place: not what was open by chance, such as the caller's input, which an earlier command may have
    written."""
    mark = tmp_path / "mark"
    (tmp_path / "input.c").write_text(f'#include <fcntl.h>\nint main(void) {{ return creat("{mark}", 0600) < 0; }}\n')
    subprocess.run(["cc", tmp_path / "input.c", "-o", tmp_path / "input"], check=True)
    small = 256 << 10
    with open(tmp_path / "input", "rb") as given:
        told = result(cordon, "--net", f"a.test:{server.port}", "-c",
                      "cat >/dev/null; RES_OPTIONS='timeout:1 attempts:1' " +
                      f"{PYTHON} client.py direct a.test {server.port}",
                      stdin=given, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (small, small)))
    assert told["exit_code"] == 1 and server.seen == [] and told["network"]["failed"] == 1, told
    assert [denial["what"] for denial in told["denials"]] == ["all hosts"] and not mark.exists()
    row, = network_rows(cordon)
    assert row["decision"] == "failed" and "cannot keep the proxy in memory" in row["why"], row
    assert [row["row"] for row in rows(cordon)] == ["intent", "network", "result"]


@pytest.mark.parametrize("words", [["--net", "a.test:80"], ["--tty"]], ids=["net", "tty"])
def test_descriptors_of_others_under_way_are_not_in_the_way(cordon, net, words):
    """They are counted by user, against the soft limit of open files: one that is low leaves others of this user, who
    have their own, enough."""
    hoard = "import socket, array, resource, time\nresource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n" \
            "kept = []\nfile = open('/dev/null')\ntry:\n    while len(kept) < 4000:\n" \
            "        ends = socket.socketpair()\n        for _ in range(100):\n            kept.append(ends) or " \
            "ends[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [file.fileno()] * 8))])\n" \
            "except OSError as error:\n    print(error.errno, flush=True)\ntime.sleep(60)"
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                     (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))  # noqa: E731
    process = cordon.popen("run", "--", PYTHON, "-c", hoard, text=True)
    try:
        assert process.stdout.readline() == "109\n"  # ETOOMANYREFS
        assert cordon("run", *words, "--", "true", preexec_fn=few).returncode == 0
    finally:
        process.terminate()
        process.communicate(timeout=60)
