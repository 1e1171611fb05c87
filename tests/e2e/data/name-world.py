"""A network of its own: loopback, a name server on it, a hosts file and a resolv.conf, and in it a command for each
line of standard input; prints a JSON list for each: status, output, errors. Run it in new network and mount namespaces.
name-world.py DIRECTORY COMMAND..."""
import fcntl
import ipaddress
import json
import os
import socket
import struct
import subprocess
import sys
import threading

HOSTS = "127.0.0.1 localhost\n10.9.8.7 listed.test\n8.8.4.4 public-listed.test\n"
NAMES = {
    "good.test": ["93.184.216.34", "2606:2800:220::1"], "private.test": ["10.0.0.1"],
    "mixed.test": ["93.184.216.34", "10.0.0.1"], "mapped.test": ["::ffff:169.254.169.254"],
    "metadata.google.internal": ["93.184.216.34"], "listed.test": ["93.184.216.34"],
    "many.test": [f"93.1.0.{i}" for i in range(100)], "localhost": ["93.184.216.34"], "empty.test": [],
}


def answer(question, limit):
    end = question.index(b"\0", 12) + 5
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode())
        at += 1 + question[at]
    kind, = struct.unpack(">H", question[end - 4:end - 2])
    found = NAMES.get(".".join(labels).lower())
    addresses = [ipaddress.ip_address(text).packed for text in found or []]
    records = [b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(packed)) + packed for packed in addresses
               if len(packed) == {1: 4, 28: 16}.get(kind)]
    truncated = end + sum(map(len, records)) > limit
    flags = 0x8180 | (3 if found is None else 2 if labels[0] == "broken" else 0) | (0x200 if truncated else 0)
    records = [] if truncated else records
    return question[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + question[12:end] + b"".join(records)


def serve_udp(server):
    while True:
        question, asker = server.recvfrom(512)
        server.sendto(answer(question, 512), asker)


def serve_tcp(server):
    while True:
        peer, _ = server.accept()
        with peer:
            while size := peer.recv(2, socket.MSG_WAITALL):
                reply = answer(peer.recv(struct.unpack(">H", size)[0], socket.MSG_WAITALL), 65535)
                peer.sendall(struct.pack(">H", len(reply)) + reply)


def bring_up():
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
    with socket.socket() as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        flags, = struct.unpack("16xh14x", request)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


directory, *command = sys.argv[1:]
bring_up()
for name, text in (("hosts", HOSTS), ("resolv.conf", "nameserver 127.0.0.1\nsearch test\noptions ndots:9\n")):
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    subprocess.run(["mount", "--bind", path, os.path.realpath(f"/etc/{name}")], check=True)
for kind, serve in ((socket.SOCK_DGRAM, serve_udp), (socket.SOCK_STREAM, serve_tcp)):
    server = socket.socket(socket.AF_INET, kind)
    server.bind(("127.0.0.1", 53))
    if kind == socket.SOCK_STREAM:
        server.listen()
    threading.Thread(target=serve, args=[server], daemon=True).start()
for line in sys.stdin:
    done = subprocess.run([*command, *json.loads(line)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
