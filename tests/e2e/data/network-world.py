"""A network of its own, for programs in sandboxes to reach: loopback with public and other addresses, names for them,
and servers. Run it in new network and mount namespaces: network-world.py DIRECTORY [far]. It prints a line when all of
it is there; then each line of standard input, a list, is a question about it, and gets a line. It ends with its
input."""
import ctypes
import http.server
import ipaddress
import json
import os
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time

PUBLIC, PUBLIC6, OTHER = "93.184.216.34", "2606:2800:220::1", "93.184.216.35"
ADDRESSES = [PUBLIC, PUBLIC6, OTHER, "93.184.216.36", "8.8.8.8", "10.0.0.1", "169.254.169.254", "169.254.1.1",
             "100.64.0.1"]
NAMES = {
    "good.test": [PUBLIC, PUBLIC6], "v4.test": [PUBLIC], "v6.test": [PUBLIC6], "other.test": [OTHER],
    "dead.test": ["93.184.216.36"], "private.test": ["10.0.0.1"], "mixed.test": [PUBLIC, "10.0.0.1"],
    "mapped.test": ["::ffff:10.0.0.1"], "loop.test": ["127.0.0.1"], "meta.test": ["169.254.169.254"],
    "shared.test": ["100.64.0.1"], "metadata.google.internal": [PUBLIC], "far.test": ["93.184.217.2"],
    "silent.test": ["93.184.218.1"], "registry.test": [PUBLIC], "a.wild.test": [PUBLIC], "b.c.wild.test": [PUBLIC6],
}
PR_SET_PDEATHSIG = 1
directory = sys.argv[1]
log, asked, packages = [], [], {}


def note(kind, connection):
    """What a server saw: where it was reached."""
    log.append([kind, connection.getsockname()[0].removeprefix("::ffff:"), connection.getsockname()[1]])


# ---- names -----------------------------------------------------------------------------------------------------------

def addresses_of(name, kind):
    """rebind.test is public when it is first asked for, and private ever after."""
    if name == "rebind.test":
        return [PUBLIC if [name, kind] not in asked else "10.0.0.1"]
    return NAMES.get(name)


def answer(question):
    end, labels, at = question.index(b"\0", 12) + 5, [], 12
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode())
        at += 1 + question[at]
    name, (kind,) = ".".join(labels).lower(), struct.unpack(">H", question[end - 4:end - 2])
    found = addresses_of(name, kind)
    asked.append([name, kind])
    packed = [ipaddress.ip_address(text).packed for text in found or []]
    records = [b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(each)) + each for each in packed
               if len(each) == {1: 4, 28: 16}.get(kind)]
    return question[:2] + struct.pack(">HHHHH", 0x8180 | (3 if found is None else 0), 1, len(records), 0,
                                      0) + question[12:end] + b"".join(records)


def serve_udp(server, reply):
    while True:
        message, peer = server.recvfrom(4096)
        log.append(["udp", "", server.getsockname()[1]])
        server.sendto(reply(message), peer)


# ---- servers ---------------------------------------------------------------------------------------------------------

class Web(http.server.BaseHTTPRequestHandler):
    """Tells what it was asked; /drip never ends; /big/N is many bytes; /raw/HEX is answered with just these; packages
    of npm are here, too."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        note("tls" if isinstance(self.connection, ssl.SSLSocket) else "http", self.connection)
        if self.path == "/drip":
            return self.drip()
        if self.path.startswith("/raw/"):
            self.close_connection = True
            return self.wfile.write(bytes.fromhex(self.path[5:]))
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length else self.read_chunks() if "chunked" in self.headers.get("Transfer-Encoding", "") else b""
        told = {"method": self.command, "path": self.path, "headers": self.headers.items(),
                "body": body.decode("latin1")}
        data = packages.get(self.path) or (b"x" * int(self.path[5:]) if self.path.startswith("/big/")
                                           else json.dumps(told).encode())
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
    do_POST = do_PUT = do_HEAD = do_GET

    def read_chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def drip(self):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b"drop\n" * 100)
            time.sleep(0.002)

    def log_message(self, *words):
        pass


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        note("echo", self.request)
        while data := self.request.recv(65536):
            self.request.sendall(data)


class Server(socketserver.ThreadingTCPServer):
    """Of both families. Whoever goes away in the middle is nothing to complain about."""
    address_family, daemon_threads, allow_reuse_address, request_queue_size = socket.AF_INET6, True, True, 1024

    def handle_error(self, *words):
        pass


def serve(port, handler, context=None):
    server = Server(("::", port), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def serve_unix():
    """Unix sockets with a path and without: what is said to them is known here."""
    def accept(server):
        while True:
            with server.accept()[0]:
                log.append(["unix", "", 0])
    for address in (f"{directory}/unix-socket", "\0cordon-network-world"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen()
        threading.Thread(target=accept, args=[server], daemon=True).start()
    os.chmod(f"{directory}/unix-socket", 0o777)


def certificates():
    """A certificate authority of this world, and a server's certificate by it."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=world")
    openssl("req", "-x509", *key, "-keyout", "server.key", "-out", "server.crt", "-days", "2", "-subj", "/CN=good.test",
            "-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "subjectAltName=DNS:good.test,DNS:other.test", "-addext",
            "basicConstraints=critical,CA:FALSE")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{directory}/server.crt", f"{directory}/server.key")
    return context


# ---- the world -------------------------------------------------------------------------------------------------------

def replace(name, text):
    """Another file in /etc, here alone. Its place may be behind a link, and what that leads to may be gone."""
    path, place = os.path.join(directory, name), os.path.realpath(f"/etc/{name}")
    with open(path, "w") as file:
        file.write(text)
    if not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        open(place, "w").close()
    subprocess.run(["mount", "--bind", path, place], check=True)


def make_network():
    ip("link set lo up",
       *(f"addr add {address}/{128 if ':' in address else 32} dev lo {'nodad' if ':' in address else ''}"
                           for address in ADDRESSES))
    if os.access("/etc/shadow", os.W_OK):  # real root: what sshd wants of a system
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        os.mkdir("/run/sshd", 0o755)
        replace("shadow", "root:*:19000:0:99999:7:::\n")
    replace("hosts", "127.0.0.1 localhost\n")
    replace("resolv.conf", "nameserver 127.0.0.1\n")
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as file:
        file.write("0")


def ip(*orders):
    subprocess.run(["/bin/ip", "-batch", "-"], input="\n".join(orders) + "\n", text=True, check=True,
                   capture_output=True)


def make_far():
    """Another machine, as far as packets can tell: a network of its own at the other end of a cable, with a server in
    it. What is sent through it to yet others is swallowed."""
    CLONE_NEWNET = 0x40000000
    there, here = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        assert ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0
        os.write(there[1], b"1")
        os.read(here[0], 1)
        ip("link set lo up", "addr add 93.184.217.2/24 dev far", "link set far up")
        server = Server(("::", 80), Web)
        os.write(there[1], b"1")
        server.serve_forever()
    os.read(there[0], 1)
    ip(f"link add near type veth peer name far netns {pid}", "addr add 93.184.217.1/24 dev near", "link set near up",
       "route add 93.184.218.0/24 via 93.184.217.2")
    os.write(here[1], b"1")
    os.read(there[0], 1)


def question(kind, *words):
    if kind == "seen":  # since the last time
        seen, log[:] = list(log), []
        return seen
    if kind == "asked":
        names, asked[:] = list(asked), []
        return names
    if kind == "serve":  # path, file
        with open(words[1], "rb") as file:
            packages[words[0]] = file.read()
        return True
    if kind == "wait":  # for a server on this port
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", words[0])).close()
                return True
            except OSError:
                time.sleep(0.02)
        return False
    raise ValueError(kind)


def main():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    make_network()
    if "far" in sys.argv[2:]:
        make_far()
    for port, reply in ((53, answer), (7, bytes)):
        server = socket.socket(socket.AF_INET6 if port == 7 else socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("::" if port == 7 else "127.0.0.1", port))
        threading.Thread(target=serve_udp, args=[server, reply], daemon=True).start()
    for port in (80, 8080):
        serve(port, Web)
    serve(443, Web, certificates())
    serve(7, Echo)
    serve_unix()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(question(*json.loads(line))), flush=True)


main()
