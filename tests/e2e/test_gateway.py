"""The gateway: an address inside that leads to an https service and adds a key outside. The service is one of the
tests' own, with certificates of their own, in the world that the tests of the network have."""
import json
import os
import pathlib
import subprocess
import types

import pytest

from conftest import PATIENCE, descendants
from lab import holds, rows
from network_lab import net, world  # noqa: F401

PUBLIC = "93.184.216.34"
KEY = "sk-" + "Zq7correct9horse0battery1staple2"
ECHO = pathlib.Path(__file__).parent / "data/tls-upstream.py"
CURL = "curl -sS -m 20 --noproxy '*'"


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def certify(directory, name, subject, days=2):
    """A key and a certificate for these names, of the authority there."""
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", directory / f"{name}.key", "-out",
            directory / f"{name}.csr", "-subj", "/CN=x")
    (directory / f"{name}.ext").write_text(f"subjectAltName={subject}\n")
    openssl("x509", "-req", "-in", directory / f"{name}.csr", "-CA", directory / "ca.pem", "-CAkey",
            directory / "ca.key", "-CAcreateserial", "-days", days, "-extfile", directory / f"{name}.ext", "-out",
            directory / f"{name}.pem")


@pytest.fixture(scope="module")
def service(world, tmp_path_factory):
    """Where its certificates are; it listens at good.test:8443, with a certificate for another name at 8444, with an
    old one at 8445."""
    directory = tmp_path_factory.mktemp("tls")
    directory.chmod(0o755)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", directory / "ca.key", "-out",
            directory / "ca.pem", "-days", "2", "-subj", "/CN=tests", "-addext", "basicConstraints=critical,CA:TRUE")
    certify(directory, "good", "DNS:good.test")
    certify(directory, "other", "DNS:other.test")
    certify(directory, "old", "DNS:good.test", days=-1)
    for name, port in (("good", 8443), ("other", 8444), ("old", 8445)):
        process = world.start("/usr/bin/python3", ECHO, directory / f"{name}.pem", directory / f"{name}.key", PUBLIC,
                              port, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        process.stdout.close()
    return directory


def gateway(service, port=8443, path="", more="", ca=True):
    return (f'[credentials.key]\nenv = "THE_KEY"\n[[gateway]]\nname = "test"\nupstream = "https://good.test:{port}{path}"\n'
            f'credential = "key"\nheader = "x-api-key"\nbase_url = "TEST_BASE_URL"\nplaceholder = "TEST_API_KEY"\n' +
            (f'ca_file = "{service}/ca.pem"\n' if ca else "") + more)


@pytest.fixture
def through(net, service, tmp_path):
    """Runs a line of shell with a gateway; returns the result."""
    def through(line, text=None, hosts=("good.test:8443",), options=()):
        config = tmp_path / "config.toml"
        config.write_text(text or gateway(service))
        net.env["THE_KEY"] = KEY
        return net.inside("sh", "-c", line, net=hosts, options=["--config", config, *options])
    return through


def connections(net):
    return [row for row in net.connections() if row["way"] == "gateway"]


def test_the_key_is_added_outside_and_is_nowhere_inside(net, through):
    told = through(f'env; {CURL} -X POST -d hello -H "x-api-key: $TEST_API_KEY" -H "Authorization: Bearer mine" $TEST_BASE_URL/v1/messages?a=1')
    asked = json.loads(told["stdout"].splitlines()[-1])
    headers = {name.lower(): value for name, value in asked["headers"]}
    # The service had the key, and told it: that is masked on the way back.
    assert asked["path"] == "/v1/messages?a=1" and asked["body"] == "hello" and asked["method"] == "POST"
    assert headers["x-api-key"] == "*" * len(KEY) and headers["host"] == "good.test:8443" and "authorization" not in headers
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    inside = dict(line.split("=", 1) for line in told["stdout"].splitlines()[:-1])
    assert inside["TEST_BASE_URL"].startswith("http://127.0.0.1:") and inside["TEST_API_KEY"] and "THE_KEY" not in inside
    assert KEY not in json.dumps(told)
    row, = connections(net)
    assert row["decision"] == "allowed" and (row["host"], row["port"],
                                             row["status"]) == ("good.test", 8443, 200) and row["address"] == PUBLIC
    assert row["bytes_in"] > 100 and row["bytes_out"] > 100 and row["audit_id"] == told["audit_id"]
    assert told["network"]["connections"] == 1
    kept = b"".join(path.read_bytes() for path in pathlib.Path(net.data).rglob("*") if path.is_file()
                    and os.access(path, os.R_OK))
    assert KEY.encode() not in kept


def test_what_comes_in_pieces_is_masked_and_whole(net, through):
    told = through(f"{CURL} -i $TEST_BASE_URL/stream; {CURL} $TEST_BASE_URL/plain/3000000 | wc -c; "
                   f"head -c 300000 /dev/zero | tr '\\0' a | {CURL} -H 'Transfer-Encoding: chunked' -T - $TEST_BASE_URL/put | wc -c")
    head, _, rest = told["stdout"].partition("\r\n\r\n")
    assert "X-Echo: " + "*" * len(KEY) in head and KEY not in told["stdout"]
    # What is masked has the length that was announced.
    text, big, put = rest[:rest.index("3000000")], *rest[rest.index("3000000"):].split()
    assert dict(json.loads(text)["headers"])["x-api-key"] == "*" * len(KEY)
    assert big == "3000000" and int(put) > 300000, told


@pytest.mark.parametrize("path", ["chunked/1", "chunked/12", "chunked/100000", "close"])
def test_content_is_masked_as_a_client_reads_it(net, through, path):
    """However the service frames it; a key that lies across chunks would be whole again when they are put together."""
    told = through(f"{CURL} -i $TEST_BASE_URL/{path} | tee saved; {CURL} -N --raw $TEST_BASE_URL/{path} > raw")
    head, _, text = told["stdout"].partition("\r\n\r\n")
    assert dict(json.loads(text)["headers"])["x-api-key"] == "*" * len(KEY), told
    assert "X-Echo: " + "*" * len(KEY) in head and ("chunked" in head) == path.startswith("chunked")
    saved = b"".join(line for line in (net.workspace / "raw").read_bytes().split(b"\r\n"))
    assert b"*" in saved and KEY not in told["stdout"] and KEY not in (net.workspace / "saved").read_text()
    assert connections(net)[-1]["status"] == 200 and connections(net)[-1]["decision"] == "allowed"


def test_one_request_each_and_nothing_behind_it(net, through):
    program = ("import os, socket; u = os.environ['TEST_BASE_URL'][7:].split(':'); s = socket.create_connection((u[0], int(u[1]))); "
               "h = ':'.join(u); r = f'POST /a HTTP/1.1\\r\\nHost: {h}\\r\\nContent-Length: 2\\r\\n\\r\\nok'; "
               "s.sendall((r + f'GET /smuggled HTTP/1.1\\r\\nHost: elsewhere\\r\\n\\r\\n').encode()); "
               "f = s.makefile('rb'); print(f.read().decode())")
    told = through(f'/usr/bin/python3 -c "{program}"')
    assert told["stdout"].count("HTTP/1.1 200") == 1 and "smuggled" not in told["stdout"], told


@pytest.mark.parametrize("request_line, status", [
    ("GET http://other.test/ HTTP/1.1", 400), ("CONNECT other.test:443 HTTP/1.1", 400), ("GET /x HTTP/2.0", 505),
    ("TRACE / HTTP/1.1", 405), ("nothing", 400),
])
def test_what_is_no_request_for_it_is_refused(net, through, request_line, status):
    program = ("import os, socket, sys; u = os.environ['TEST_BASE_URL'][7:].split(':'); s = socket.create_connection((u[0], int(u[1]))); "
               "s.sendall((sys.argv[1] + '\\r\\nHost: ' + ':'.join(u) + '\\r\\n\\r\\n').encode()); print(s.recv(100).decode())")
    told = through(f'/usr/bin/python3 -c "{program}" "{request_line}"')
    assert f"HTTP/1.1 {status} " in told["stdout"], told


def test_a_certificate_that_does_not_hold_is_refused(net, through, service):
    for text, hosts, why in ((gateway(service, ca=False), ["good.test:8443"], "certificate"),
                             (gateway(service, 8444), ["good.test:8444"], "mismatch"),
                             (gateway(service, 8445), ["good.test:8445"], "expired")):
        told = through(f"{CURL} -w '%{{http_code}}' $TEST_BASE_URL/", text, hosts)
        assert told["stdout"].endswith("502"), told
        assert connections(net)[-1]["decision"] == "failed" and why in connections(net)[-1]["why"], connections(net)[-1]
        assert KEY not in json.dumps(told)


def test_only_beneath_its_path(net, through, service):
    """Nor where a server could take it for another path, having decoded it once or twice."""
    bad = ["/other", "/v12", "/v1/../x", "/v1/%2e%2e/x", "/v1/x%2f..%2f..%2fx", "/v1%2F%2E./x", "/v1/x%5c..%5cx",
           "/v1/..;/x", "/v1/%252e%252e/x", "/v1/x%252F..%252f..", "/v1/x/.."]
    line = "; ".join(f"{CURL} --path-as-is -o /dev/null -w ' %{{http_code}}' \"${{TEST_BASE_URL%/v1}}{path}\""
                     for path in bad)
    told = through(f"echo $TEST_BASE_URL; {CURL} $TEST_BASE_URL/x; {line}", gateway(service, path="/v1"))
    lines = told["stdout"].splitlines()
    assert lines[0].endswith("/v1") and '"path": "/v1/x"' in lines[1] and lines[1].endswith("}" + " 403" * len(bad)), lines
    # A slash of a name, and a query, which leads nowhere else.
    for path in ("/@scope%2fname", "/x?file=/../a%5c"):
        told = through(f'{CURL} --path-as-is "$TEST_BASE_URL{path}"', gateway(service, path="/v1"))
        assert json.loads(told["stdout"])["path"] == "/v1" + path, told


def test_it_is_there_only_for_those_who_may_reach_the_host(net, through, service):
    for hosts in ((), ("other.test:80",), ("good.test:80",)):
        told = through(f"env | grep TEST_; {CURL} -m 3 http://127.0.0.1:3129/ || echo none", hosts=hosts)
        assert told["stdout"].strip() == "none" and not connections(net), told
    # A wildcard covers it; the caller's own word about the variable counts.
    told = through("env | grep TEST_BASE", hosts=("*.test:8443",), options=["--env", "TEST_BASE_URL=mine"])
    assert told["stdout"] == "TEST_BASE_URL=mine\n"


def test_a_key_that_cannot_be_had_is_told(net, through, service):
    text = gateway(service).replace('env = "THE_KEY"', 'command = ["/bin/false"]')
    told = through(f"{CURL} -w '%{{http_code}}' $TEST_BASE_URL/", text)
    assert told["stdout"].endswith("502") and "exit status 1" in told["stdout"] and "exit status 1" in connections(net)[-1]["why"]


def test_a_session_has_it_for_all_of_its_commands(net, service, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(gateway(service) + '[capabilities]\nnetwork = ["good.test:8443"]\n')
    net.env["THE_KEY"] = KEY
    for _ in range(2):
        done = net("run", "--session", "s", "--workspace", net.workspace, "--config", config, "sh", "-c",
                   f"{CURL} $TEST_BASE_URL/hi")
        assert dict(json.loads(done.stdout)["headers"])["x-api-key"] == "*" * len(KEY), done
    assert len(connections(net)) == 2 and KEY not in json.dumps(rows(net))


def test_no_other_process_keeps_the_key(net, service, tmp_path):
    """Not the daemon, nor the proxy, which reads what commands send; while the session's sandbox is up."""
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    config = tmp_path / "config/cordon/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(gateway(service).replace('env = "THE_KEY"',
                                               f'file = "{key}"') + '[capabilities]\nnetwork = ["good.test:8443"]\n')
    net.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    net.env.pop("THE_KEY", None)
    daemon = net.popen("serve")
    try:
        assert daemon.stdout.readline()
        if os.geteuid():  # in the daemon's user namespace, or the daemon declines
            net.world = types.SimpleNamespace(prefix=[*net.world.as_root, "nsenter", "--target", str(daemon.pid),
                                                      "--user", "--preserve-credentials"])
        line = f"{CURL} $TEST_BASE_URL/hi; curl -sk -m 20 -o /dev/null https://good.test:8443/; echo $?"
        done = net("run", "--session", "s", "--workspace", net.workspace, "sh", "-c", line)
        assert '"path": "/hi"' in done.stdout and done.stdout.endswith("0\n"), done
        found = {pid: pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
                 for pid in (daemon.pid, *descendants(daemon.pid))}
        assert {"cordon", "cordon-proxy", "cordon-gateway"} <= {*found.values()}, found
        kept = {(name, holds(pid, KEY.encode())) for pid, name in found.items()}
        assert all(not held or name == "cordon-gateway" for name, held in kept), kept
        # The daemon can be looked at by its user, the others by root.
        assert ("cordon", False) in kept and (os.geteuid() or {("cordon-gateway", True),
                                                               ("cordon-proxy", False)} <= kept), kept
    finally:
        daemon.terminate()
        daemon.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("source", ["env", "command"])
def test_a_daemon_reads_a_key_from_its_clients_environment(net, service, tmp_path, source):
    """Not from its own, where the variable has another value; for a sandbox of the command's own and for a
    session's."""
    config = tmp_path / "config/cordon/config.toml"
    config.parent.mkdir(parents=True)
    text = gateway(service) if source == "env" else gateway(service).replace('env = "THE_KEY"',
                                                                             'command = ["/usr/bin/printenv", "THE_KEY"]')
    config.write_text(text + '[secrets]\noutput = "report"\n[capabilities]\nnetwork = ["good.test:8443"]\n')
    net.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    net.env["THE_KEY"] = "x" * 7 + "Ab9"
    daemon = net.popen("serve")
    try:
        assert daemon.stdout.readline()
        net.env["THE_KEY"] = KEY
        for options in ([], ["--session", "s"], ["--session", "s"]):
            done = net("run", *options, "--workspace", net.workspace, "sh", "-c", f"{CURL} $TEST_BASE_URL/hi")
            # Its length is what the service says of it.
            assert dict(json.loads(done.stdout)["headers"])["x-api-key"] == "*" * len(KEY), done
    finally:
        daemon.terminate()
        daemon.communicate(timeout=PATIENCE)


# Many at a time, one after the other, and one that is too large; what each limit lets through, and what it says then.
@pytest.mark.parametrize("limit, line, first, last, why", [
    ("total_connections = 2", f"for i in 1 2 3; do {CURL} -o /dev/null -w '%{{http_code}} ' $TEST_BASE_URL/; done",
     "200 200 503", 503, "as many connections"),
    ('bytes = "1M"', f"for i in 1 2; do {CURL} -o /dev/null -w '%{{http_code}} ' $TEST_BASE_URL/plain/700000; done",
     "200 ", 403, "as many bytes"),
    ('header = "4K"',
     f"for n in 100 5000; do {CURL} -o /dev/null -w '%{{http_code}} ' -H \"X: $(head -c $n /dev/zero | tr '\\0' a)\" $TEST_BASE_URL/; done", "200 431", 431, "too long"),
])
def test_each_limit_of_the_network_holds_at_the_gateway(net, through, service, limit, line, first, last, why):
    told = through(line, gateway(service) + f"[network]\n{limit}\n")
    assert told["stdout"].startswith(first), told
    row = connections(net)[-1]
    assert row["decision"] == "failed" and row["status"] == last and why in row["why"], row


def test_connections_at_a_time_wait_at_the_gateway(net, through, service):
    """Of as many as may be open; the next one is served when one of them has ended."""
    line = f"{CURL} -m 3 -o /dev/null $TEST_BASE_URL/silent & {CURL} -m 1 -o /dev/null $TEST_BASE_URL/; echo $?; wait; {CURL} -o /dev/null -w '%{{http_code}}' $TEST_BASE_URL/"
    told = through("(" + line.replace(" & ", " & sleep 0.5; ", 1) + ")",
                   gateway(service) + "[network]\nconnections = 1\n")
    assert told["stdout"] == "28\n200", told


@pytest.mark.parametrize("change, reason", [
    (("https://good", "http://good"), "https://"), (("8443", "8443/a?b"), "plain"),
    (('credential = "key"', 'credential = "kee"'), "no [credentials.kee]"),
    (('header = "x-api-key"', 'header = "x api"'), "header"),
    (('base_url = "TEST_BASE_URL"\n', ""), "needs a base_url"), (("upstream", "upstraem"), "upstream"),
])
def test_a_bad_table_is_refused_at_its_place(net, service, tmp_path, change, reason):
    config = tmp_path / "config.toml"
    config.write_text(gateway(service).replace(*change))
    done = net("config", "check", "--config", config)
    assert done.returncode and reason in done.stderr and "config.toml:" in done.stderr, done.stderr


def test_the_configuration_shows_it(net, service, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(gateway(service))
    net.env["THE_KEY"] = KEY
    done = net("config", "show", "--config", config)
    assert "[[gateway]]" in done.stdout and 'upstream = "https://good.test:8443"' in done.stdout and KEY not in done.stdout
    assert "[credentials.key]" in done.stdout and 'env = "THE_KEY"' in done.stdout
