"""What the tests of the network have done inside a sandbox: network-inside.py VERB FILE prints JSON; the file
has its words, as JSON, too."""
import base64
import contextlib
import json
import os
import socket
import struct
import sys

PROXY = ("198.18.0.1", 3128)


def outcome(attempt, *words):
    """What came of it: "reached", or the error's name."""
    try:
        return "reached" if attempt(*words) else "nothing came back"
    except OSError as error:
        return type(error).__name__ if error.errno is None else f"{error.errno} {error.strerror}"


# ---- ways out --------------------------------------------------------------------------------------------------------

def tcp(host, port, family=socket.AF_UNSPEC):
    """By hand, not through a proxy, whatever the variables say."""
    address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
    with socket.create_connection(address[:2], timeout=10) as peer:
        peer.sendall(b"GET / HTTP/1.0\r\n\r\n" if port != 7 else b"hello")
        return peer.recv(100)


def udp(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(10)
        peer.connect((host, port))
        peer.send(b"hello")
        return peer.recv(100)


def unix(address):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(address.replace("@", "\0"))
        return True


def make(family, kind, protocol):
    with socket.socket(family, kind, protocol):
        return True


def ping(host):
    """An echo request needs no privilege where the kernel lets everyone send it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as peer:
        peer.settimeout(10)
        peer.sendto(struct.pack(">BBHHH", 8, 0, 0xf7ff, 0, 0), (host, 0))
        return peer.recv(100)


def new_address():
    """Asks the kernel by netlink for another address on loopback."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes([8, 8, 4, 4]))
        kernel.send(struct.pack("=IHHII", 16 + len(body), 20, 0x405, 1, 0) + body)
        error, = struct.unpack("=i", kernel.recv(4096)[16:20])
        if error:
            raise OSError(-error, os.strerror(-error))
        return True


WAYS = {"tcp": tcp, "udp": udp, "unix": unix, "make": make, "ping": ping, "new_address": new_address}


def attempts(rows):
    return [outcome(WAYS[way], *words) for way, *words in rows]


# ---- the proxy -------------------------------------------------------------------------------------------------------

def everything(peer, text=b""):
    try:
        while data := peer.recv(65536):
            text += data
    except TimeoutError:
        text += b"<still open>"
    except ConnectionResetError:
        pass
    return text


def talk(parts, wait=20):
    """What the proxy says to these bytes, up to the end of the connection; each part but the first when something came
    back."""
    text = b""
    with socket.create_connection(PROXY, timeout=wait) as peer:
        try:
            for index, part in enumerate(parts):
                if index:
                    text += peer.recv(65536)
                peer.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return everything(peer, text)


def dialogs(rows):
    return [base64.b64encode(talk([base64.b64decode(part) for part in parts])).decode() for parts in rows]


def flood(count):
    """Connections opened and dropped, some with a beginning of something in them."""
    opened = 0
    for index in range(count):
        with socket.socket() as peer:
            try:
                peer.connect(PROXY)
                opened += 1
                if index % 4 == 1:
                    peer.send(b"CONNECT good.test:80 HTTP/1.1\r\n")
                elif index % 4 == 2:
                    peer.send(b"\5")
                elif index % 4 == 3:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
    return opened


def hold(count):
    """So many connections that say half a request and stay; then one that is whole."""
    kept = []
    for _ in range(count):
        peer = socket.create_connection(PROXY, timeout=20)
        peer.sendall(b"GET http://good.test/ HTTP/1.1\r\nHost: good")
        kept.append(peer)
    return talk([b"GET http://good.test/ HTTP/1.0\r\n\r\n"]).decode("latin1")


def ask(question):
    """A question to the name server inside: [rcode, how many answers], over UDP and over TCP."""
    name, kind = question
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    message = b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + struct.pack(">HH", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.settimeout(5)
        server.connect((PROXY[0], 53))
        server.send(message)
        answer = server.recv(4096)
    with socket.create_connection((PROXY[0], 53), timeout=5) as server:
        server.sendall(struct.pack(">H", len(message)) + message)
        length, = struct.unpack(">H", server.recv(2, socket.MSG_WAITALL))
        assert server.recv(length, socket.MSG_WAITALL) == answer
    return [answer[3] & 15, answer[7]]


def names(questions):
    return [ask(question) for question in questions]


def noise(messages):
    """These are no questions; whether one that is gets an answer after them."""
    for message in map(bytes.fromhex, messages):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.sendto(message, (PROXY[0], 53))
        with socket.create_connection((PROXY[0], 53), timeout=20) as server, contextlib.suppress(OSError):
            server.sendall(struct.pack(">H", len(message)) + message)
            server.shutdown(socket.SHUT_WR)
            everything(server)
    return ask(["good.test", 1])


def drip(url):
    """Reads what never ends; says so when it begins, and how it ended."""
    with socket.create_connection(PROXY, timeout=20) as peer:
        peer.sendall(f"GET {url} HTTP/1.0\r\n\r\n".encode())
        peer.recv(1)
        print("flowing", flush=True)
        try:
            while peer.recv(65536):
                pass
            return "end of file"
        except ConnectionResetError:
            return "reset"


VERBS = {"attempts": attempts, "dialogs": dialogs, "flood": flood, "hold": hold, "names": names, "noise": noise,
         "drip": drip}
with open(sys.argv[2]) as file:
    words = json.load(file)
print(json.dumps(VERBS[sys.argv[1]](words)), flush=True)
