"""The network of listed hosts as Windows programs have it, under wine: cordon-proxy.exe beside cordon.exe. Filters are not set there
(tests/platforms/windows/test-read-back.c has those), so `network` is among the walls that are left out; the proxy is as shipped but
for what it requires of its own. wine shares the host's loopback: clients and servers are this test's."""
import base64
import contextlib
import hashlib
import http.server
import json
import os
import re
import socket
import socketserver
import subprocess
import threading
import time

PATIENCE = 60
BULK = 8 << 20


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):
        Site.seen.append((self.path, dict(self.headers)))
        body = b"hello from outside\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Site.seen.append((self.path, hashlib.sha256(body).hexdigest()))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Echo(socketserver.BaseRequestHandler):
    """What comes goes back; at its end, a word more."""
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
        self.request.sendall(b"<end>")


def serve(kind, handler):
    server = kind(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def take_all(client):
    parts = []
    while data := client.recv(65536):
        parts.append(data)
    return b"".join(parts)


class Network:
    def __init__(self, program, target):
        self.program, self.target, self.check = program, target, program.check
        self.site = serve(http.server.ThreadingHTTPServer, Site)
        self.echo = serve(socketserver.ThreadingTCPServer, Echo)
        self.path = program.place / "cordon-proxy.exe"

    def all(self):
        self.missing()
        trouble = self.target.proxy_program(self.path)
        self.check("network: cordon-proxy.exe links with no undefined symbol", ("trouble", trouble, ""))
        if not trouble:
            self.program.wine.own(self.path)
            for name in ("changeable", "probe", "requests", "closed", "tokens", "tunnels", "bulk", "crowd", "killed", "rows", "resolver"):
                getattr(self, name)()

    def run(self, *words, hosts=None, options=()):
        hosts = hosts or [f"localhost:{self.site}", f"127.0.0.1:{self.echo}"]
        return self.program.cordon("run", *(word for host in hosts for word in ("--net", host)), *options, "--", self.program.child, *words)

    def get(self, url, show="@", **more):
        return self.run("talk", "0", f"GET {url} HTTP/1.1|Host: {url.split('/')[2]}|{show}Connection: close||", **more)

    @contextlib.contextmanager
    def command(self):
        """A command that stays: the port of its proxy, and its token."""
        program = self.program
        with program.wine.begin([program.wine.path(program.place / "cordon-unwalled.exe"), "run", "--net", f"127.0.0.1:{self.echo}", "--net",
                                 f"localhost:{self.site}", "--", program.child, "stay", "HTTP_PROXY"], {"CORDON_UNWALL": ",".join(program.OF_WINE)},
                                program.project) as running:
            found = re.match(rb"http://(cordon:([0-9a-f]{64}))@127\.0\.0\.1:(\d+)", running.stdout.readline())
            try:
                yield int(found[3]), found[2].decode(), running
            finally:
                running.terminate()
                running.communicate()

    # ---- the program -------------------------------------------------------------------------------------------------

    def missing(self):
        found = json.loads(self.run("exit", "0", options=["--json"])[1] or "{}").get("error", {})
        self.check("network: without cordon-proxy.exe beside it nothing starts", ("class", found.get("class"), "spawn_sandbox_unavailable"),
                   ("wall", found.get("boundary"), "network"), ("reason", found.get("reason", ""), re.compile("not beside it")))

    def changeable(self):
        os.chmod(self.path, 0o777)
        found = json.loads(self.run("exit", "0", options=["--json"])[1] or "{}").get("error", {})
        os.chmod(self.path, 0o755)
        self.check("network: nor with one that others can change", ("reason", found.get("reason", ""), re.compile("can be changed by others")))

    def probe(self):
        """As cordon asks it with a command's token, before filters are taken for a wall: here nothing is denied."""
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            closed = nobody.getsockname()[1]
        for name, words, status in (("a port that is reached is not denied", (self.site, 0), 1), ("one that is not is", (closed, 0), 0),
                                    ("and the proxy's port must be reached", (closed, self.site), 0), ("or the probe fails", (closed, closed), 2)):
            self.check(f"network: probe: {name}", ("status", self.program.wine.run([self.program.wine.path(self.path), "probe", *words])[0], status))

    # ---- requests ----------------------------------------------------------------------------------------------------

    def requests(self):
        Site.seen.clear()
        found = self.get(f"http://localhost:{self.site}/a")
        self.check("network: a listed host answers", ("status", found[0], 0), ("answer", found[1], re.compile("200 OK(.|\n|\r)*hello from outside")))
        self.check("network: and is not told the token", ("requests", len(Site.seen), 1),
                   ("headers", sorted(name for name in Site.seen[0][1] if name.lower().startswith("proxy")), []))
        for url in (f"http://localhost:{self.echo + 1}/", "http://example.org/", "http://169.254.169.254/"):
            self.check(f"network: {re.sub(':[0-9]+/', '/', url)} is not listed", ("answer", self.get(url)[1], re.compile("^HTTP/1.1 403 .*", re.S)))
        none = self.program.cordon("run", "--net", "none", "--", self.program.child, "talk", "0", "x")
        self.check("network: none has no proxy", ("status", none[0], 90))

    def closed(self):
        """To a command, which is the same user's: the proxy's memory has the tokens of others, and secrets."""
        found = self.run("seize", f"GET http://localhost:{self.site}/ HTTP/1.1|Host: localhost|@Connection: close||")
        self.check("network: a command cannot open the proxy or its threads", ("status", found[0], 0),
                   ("rights", re.findall("(?m)^(?:process|thread) .*", found[1]), []), ("there", found[1], re.compile("1 processes, [1-9]")))

        before = self.path.stat()
        found = self.run("write", self.program.wine.path(self.path), "another")
        after = self.path.stat()
        self.check("network: nor put another program in its place", ("status", found[0], 1), ("size", after.st_size, before.st_size),
                   ("inode", after.st_ino, before.st_ino))

    def tokens(self):
        for name, show in (("none", ""), ("a wrong one", "Proxy-Authorization: Basic " + base64.b64encode(b"cordon:" + b"0" * 64).decode() + "|")):
            self.check(f"network: {name} of the tokens is refused", ("answer", self.get(f"http://localhost:{self.site}/", show)[1],
                                                                   re.compile("^HTTP/1.1 407 ")))
        with self.command() as (port, token, running):
            def socks(password):
                with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
                    client.sendall(b"\5\1\2")
                    greeted = client.recv(2)
                    client.sendall(b"\1\6cordon" + bytes([len(password)]) + password.encode())
                    answer = client.recv(2)
                    if answer != b"\1\0":
                        return greeted, answer
                    client.sendall(b"\5\1\0\1\x7f\0\0\1" + self.echo.to_bytes(2, "big"))
                    reply = client.recv(10)
                    client.sendall(b"over socks")
                    client.shutdown(socket.SHUT_WR)
                    return greeted, answer, reply[:2], take_all(client)
            self.check("network: SOCKS with the token", ("answers", socks(token), (b"\5\2", b"\1\0", b"\5\0", b"over socks<end>")))
            self.check("network: SOCKS without it", ("answers", socks("0" * 64), (b"\5\2", b"\1\1")))
        self.check("network: the port ends with its command", ("refused", self.refuses(port), True))

    def refuses(self, port):
        """At some time: what was killed may take a moment."""
        for _ in range(PATIENCE):
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
            except OSError:
                return True
            time.sleep(1)
        return False

    def connect(self, port, token, to):
        client = socket.create_connection(("127.0.0.1", port), PATIENCE)
        login = base64.b64encode(f"cordon:{token}".encode()).decode()
        client.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nProxy-Authorization: Basic {login}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1) or b"\r\n\r\n"
        return client, head.split(b" ")[1]

    def tunnels(self):
        with self.command() as (port, token, _):
            client, status = self.connect(port, token, f"127.0.0.1:{self.echo}")
            with client:
                client.sendall(b"one ")
                first = client.recv(100)
                client.sendall(b"two ")
                client.shutdown(socket.SHUT_WR)
                rest = take_all(client)
            self.check("network: a tunnel, closed in one direction first", ("status", status, b"200"), ("first", first, b"one "), ("rest", rest, b"two <end>"))
            with socket.create_server(("127.0.0.1", 0)) as nobody:
                closed = nobody.getsockname()[1]
            client, status = self.connect(port, token, f"127.0.0.1:{closed}")
            client.close()
            self.check("network: a tunnel to what is not listed", ("status", status, b"403"))
        found = self.get(f"http://localhost:{closed}/", hosts=[f"localhost:{closed}"])
        self.check("network: where nobody listens, that is the answer", ("answer", found[1], re.compile("^HTTP/1.1 50[24] ")))

    def bulk(self):
        body = os.urandom(BULK)
        with self.command() as (port, token, _):
            client, status = self.connect(port, token, f"127.0.0.1:{self.echo}")
            with client:
                threading.Thread(target=lambda: (client.sendall(body), client.shutdown(socket.SHUT_WR)), daemon=True).start()
                back = take_all(client)
        self.check("network: eight megabytes there and back", ("status", status, b"200"), ("length", len(back), BULK + 5), ("same", back[:BULK] == body, True))

    def crowd(self):
        """Many at a time; silent ones hold up nobody. No wall: one that fails must pass twice after that, and is named."""
        found = self.one_crowd()
        if found != {}:
            print(f"# UNSTEADY network: sixty tunnels among forty silent clients: {found}", flush=True)
            found = {**self.one_crowd(), **self.one_crowd()}
        self.check("network: sixty tunnels among forty silent clients", ("what went wrong, by client", found, {}))

    def one_crowd(self):
        """{client: what went wrong}"""
        wrong = {}
        with self.command() as (port, token, _):
            silent = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(40)]

            def one(number):
                wrong[number] = "no end"
                client, status = self.connect(port, token, f"127.0.0.1:{self.echo}")
                with client:
                    text = f"client {number} ".encode() * 100
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
                    got = take_all(client)
                    wrong[number] = (status, len(text), len(got), got[:40], got[-40:])
                    if status == b"200" and got == text + b"<end>":
                        del wrong[number]
            threads = [threading.Thread(target=one, args=(i,)) for i in range(60)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            for client in silent:
                client.close()
        return dict(wrong)

    def killed(self):
        """A proxy that ends early takes its connections along, and the command is told."""
        with self.command() as (port, token, running):
            client, _ = self.connect(port, token, f"127.0.0.1:{self.echo}")
            found = subprocess.run(["pgrep", "-f", "cordon-proxy [0-9.]+$"], stdout=subprocess.PIPE, text=True).stdout.split()
            with client:
                for pid in found:
                    subprocess.run(["kill", "-KILL", pid])
                client.settimeout(PATIENCE)
                try:
                    ended = client.recv(10)
                except ConnectionError:
                    ended = b""
            self.check("network: a proxy that is killed ends its connections", ("processes", len(found), 1), ("read", ended, b""),
                       ("the command goes on", running.poll(), None))

    # ---- what is known of it -----------------------------------------------------------------------------------------

    def rows(self):
        done = json.loads(self.get(f"http://localhost:{self.site}/", options=["--json"])[1] or "{}")
        denied = json.loads(self.get("http://example.org/", options=["--json"])[1] or "{}")
        tail = [json.loads(line) for line in self.program.cordon("audit", "tail", "--json", "--last", "40")[1].splitlines()]
        row = next((row for row in tail if row.get("row") == "network" and row.get("audit_id") == done.get("audit_id")), {})
        self.check("network: a connection is counted and has a row", ("count", done.get("network", {}).get("connections"), 1),
                   ("bytes", done.get("network", {}).get("bytes_in", 0) > 100, True), ("host", (row.get("host"), row.get("port")), ("localhost", self.site)))
        self.check("network: a denied one is told with what would allow it", ("count", denied.get("network", {}).get("denied"), 1),
                   ("grant", [entry["grant"] for entry in denied.get("denials", [])], ["--net example.org:80"]))

    def resolver(self):
        """The system's, in cordon itself."""
        found = self.program.cordon("url", "check", "http://127.0.0.1:8080/", walled=True)
        self.check("network: url check judges an address", ("status", found[0] != 0, True), ("words", found[1] + found[2], re.compile("loopback|this machine")))
