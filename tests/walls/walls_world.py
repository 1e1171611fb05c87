"""The world that the attempts are made in: secrets, listeners and processes of a host, all of the test's own making.

Everything that a row names in braces is a key of World.names. Each run gets a workspace of its own."""
import contextlib
import ctypes
import os
import pathlib
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
libc = ctypes.CDLL(None, use_errno=True)
IPC_CREAT, IPC_RMID = 0o1000, 0
CONFIG = "[core]\n\tbare = false\n"


def checked(result):
    if result in (-1, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


class World:
    def __init__(self, base, cordon):
        self.base, self.cordon, self.closers, self.workspaces = base, cordon, [], 0
        self.unique = f"{os.getpid()}-{os.urandom(4).hex()}"
        self.text = f"secret-{self.unique}"
        self.data = base / "around/data"
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(base / "home"), "XDG_DATA_HOME": str(self.data), "LANG": "C",
                    "CALLER_WORD": self.text, "SSH_AUTH_SOCK": self.text, "LD_PRELOAD": self.text,
                    "BASH_ENV": self.text, "PYTHONPATH": self.text}
        self.names = {"text": self.text, "unique": self.unique, "out": base / "outside", "home": base / "home",
                      "granted": base / "granted", "around": base / "around", "data": self.data,
                      "mark": f"cordon-mark-{self.unique}", "hostname": os.uname().nodename, "loader": self.loader(),
                      "pid1": pathlib.Path("/proc/1/comm").read_text().strip()}
        for kind in ("pid", "net", "cgroup"):
            self.names[f"ns_{kind}"] = os.readlink(f"/proc/self/ns/{kind}")
        self.build()
        self.make_files()
        self.make_programs()
        self.make_sockets()
        self.make_ipc()
        self.make_victim()
        self.make_session()

    def close(self):
        for close in reversed(self.closers):
            close()
        for closed in self.data.glob("cordon/roots/*/proc/directory"):
            closed.chmod(0o700)  # unreadable by design; what removes the tests' directories reads them first

    @staticmethod
    def loader():
        return os.path.realpath({"x86_64": "/lib64/ld-linux-x86-64.so.2"}.get(os.uname().machine,
                                                                              "/lib/ld-linux-aarch64.so.1"))

    def build(self):
        self.tools = self.base / "tools"
        self.tools.mkdir()
        self.attempt = self.tools / "attempt"
        subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-static", "-pthread", "-o", self.attempt,
                        *sorted(HERE.glob("attempt*.c"))], check=True)
        self.names["self"] = self.attempt

    def make_files(self):
        out, home = self.base / "outside", self.base / "home"
        for path in (out / "secret", home / ".ssh/id_ed25519", home / ".bash_history"):
            write(path, self.text, 0o600)
        write(out / "root-only", self.text, 0o600)
        for path in (out / "file", out / "doomed", out / "long", out / "movable", home / ".bashrc",
                     home / ".npm/_cacache/package", self.base / "granted/file"):
            write(path, "as it was\n" * 4)
        write(self.base / "granted/deep/.env", self.text)
        write(self.base / "ungrouped/cordon/config.toml", '[limits]\ncgroup = "none"\n')
        self.names["host_view"] = write(self.base / "host-view.toml", '[sandbox]\nview = "host-readonly"\n')
        shutil.copy(self.attempt, out / "tool")
        device = next((path for path in map(pathlib.Path, ("/dev/fuse", "/dev/net/tun", "/dev/autofs", "/dev/kvm",
                                                           "/dev/kmsg")) if self.opens(path)), None)
        self.names.update(device=device or "/dev/none", device_name=device.parts[2] if device else "none")

    @staticmethod
    def opens(path):
        """Anybody can, that is: for root the walls leave no more than that."""
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            return path.stat().st_mode & 0o004 != 0
        except OSError:
            return False

    def make_programs(self):
        """For root, one that is another user's and setuid; for others, the one every system has."""
        self.names.update(setuid="/usr/bin/su", setuid_argument="-", capable="/usr/bin/none")
        if os.geteuid() != 0:
            return
        for name in ("setuid", "capable"):
            shutil.copy(self.attempt, self.tools / name)
            self.names[name] = self.tools / name
        os.chown(self.tools / "setuid", 65534, 65534)
        (self.tools / "setuid").chmod(0o4755)
        self.names["setuid_argument"] = "pause"
        # struct vfs_ns_cap_data, version 2, effective: CAP_NET_RAW
        os.setxattr(self.tools / "capable", "security.capability", bytes([1, 0, 0, 2, 0, 32, 0, 0]) + bytes(12))

    # ---- listeners ----
    def serve(self, listener, datagram=False):
        def stream():
            while True:
                try:
                    peer, _ = listener.accept()
                    peer.sendall(self.text.encode())
                    peer.close()
                except OSError:
                    if listener.fileno() < 0:
                        return

        def answer():
            while True:
                try:
                    _, address = listener.recvfrom(100)
                    if address:
                        listener.sendto(self.text.encode(), address)
                except OSError:
                    if listener.fileno() < 0:
                        return
        threading.Thread(target=answer if datagram else stream, daemon=True).start()

        def close():
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()
        self.closers.append(close)

    def listen_at(self, path, kind=socket.SOCK_STREAM):
        """By descriptor: an address is shorter than a path may be."""
        listener = socket.socket(socket.AF_UNIX, kind)
        directory = os.open(path.parent, os.O_PATH)
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
        os.close(directory)
        path.chmod(0o666)
        if kind == socket.SOCK_STREAM:
            listener.listen(16)
        self.serve(listener, kind == socket.SOCK_DGRAM)

    def make_fifo(self, path):
        """Held open, so that writers find a reader."""
        os.mkfifo(path)
        path.chmod(0o666)
        fd = os.open(path, os.O_RDWR)
        self.closers.append(lambda: os.close(fd))

    def make_sockets(self):
        tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        tcp.bind(("0.0.0.0", 0))
        tcp.listen(16)
        udp.bind(("127.0.0.1", 0))
        self.serve(tcp)
        self.serve(udp, datagram=True)
        self.names.update(tcp=tcp.getsockname()[1], udp=udp.getsockname()[1], tcp6=0, abstract=f"cordon-{self.unique}")
        try:
            tcp6 = socket.socket(socket.AF_INET6)
            tcp6.bind(("::1", 0))
            tcp6.listen(16)
            self.serve(tcp6)
            self.names["tcp6"] = tcp6.getsockname()[1]
        except OSError:
            pass
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0" + self.names["abstract"])
        abstract.listen(16)
        self.serve(abstract)
        self.listen_at(self.base / "outside/socket")
        self.listen_at(self.base / "granted/socket")
        self.listen_at(self.base / "granted/datagram", socket.SOCK_DGRAM)
        self.make_fifo(self.base / "granted/fifo")

    # ---- shared memory and queues ----
    def make_ipc(self):
        libc.shmat.restype = ctypes.c_void_p
        libc.mq_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
        key = int.from_bytes(os.urandom(3), "big") | 0x10000000
        shm = checked(libc.shmget(key, 4096, IPC_CREAT | 0o666))
        self.closers.append(lambda: libc.shmctl(shm, IPC_RMID, None))
        memory = checked(libc.shmat(shm, None, 0))
        ctypes.memmove(memory, self.text.encode() + b"\0", len(self.text) + 1)
        sem = checked(libc.semget(key, 1, IPC_CREAT | 0o666))
        self.closers.append(lambda: libc.semctl(sem, 0, IPC_RMID))
        msg = checked(libc.msgget(key, IPC_CREAT | 0o666))
        self.closers.append(lambda: libc.msgctl(msg, IPC_RMID, None))
        before = os.umask(0)
        mq = f"cordon-{self.unique}"
        os.close(checked(libc.mq_open(b"/" + mq.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)))
        os.umask(before)
        self.closers.append(lambda: libc.mq_unlink(b"/" + mq.encode()))
        shared = write(pathlib.Path("/dev/shm") / f"cordon-{self.unique}", self.text, 0o666)
        self.closers.append(shared.unlink)
        self.names.update(key=key, mq=mq, shm_file=shared.name)

    # ---- a process of the caller's, and another session ----
    def make_victim(self):
        fd = os.open(self.base / "outside/secret", os.O_RDONLY)
        victim = subprocess.Popen([self.attempt, "victim", self.text], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  pass_fds=[fd], env={"VICTIM": self.text}, cwd=self.base / "outside")
        os.close(fd)
        self.names.update(victim=victim.pid, victim_fd=fd, address=victim.stdout.readline().decode().strip()[2:])

        def end():
            victim.kill()
            victim.wait()
        self.closers.append(end)

    def make_session(self):
        """A workspace of another session, of cordon's own making, and a ledger."""
        subprocess.run([self.cordon, "run", "--session", "other", "-c", "cat > secret"], input=self.text.encode(),
                       check=True, env=self.env, cwd=self.base / "outside", capture_output=True)
        self.names["other_session"] = next((self.data / "cordon/workspaces").iterdir())
        self.names["ledger"] = next((self.data / "cordon/ledger").glob("*.jsonl"))

    @contextlib.contextmanager
    def far(self):
        """A file in the account's own directory and one in a place of secrets there, for as long as they are needed.
        HOME is elsewhere: what it names is covered by a private home."""
        account = pathlib.Path(pwd.getpwuid(os.geteuid()).pw_dir)
        home, place = pathlib.Path(tempfile.mkdtemp(prefix=".cordon-walls-", dir=account)), account / ".config/op"
        made = [path for path in (place, place.parent) if not path.exists()]
        secret = place / home.name
        try:
            write(secret, self.text, 0o600)
            write(home / "file", "as it was\n")
            self.names.update(far=str(home), far_secret=str(secret))
            yield
        finally:
            secret.unlink()
            for path in made:
                path.rmdir()
            shutil.rmtree(home)

    # ---- workspaces ----
    def shown(self):
        """A git repository with names that a default glob means, and that are shown all the same; one of them has
        changed since."""
        made = self.base / "shown-template"
        if made.exists():
            return made
        key = f"-----BEGIN PRIVATE KEY-----\n{self.text}\n-----END PRIVATE KEY-----\n"
        for name, text in {".env.example": self.text, ".env.template": self.text, ".env.test": self.text,
                           "committed.key": key, "changed.key": "as it was",
                           "ca.pem": f"-----BEGIN CERTIFICATE-----\n{self.text}\n-----END CERTIFICATE-----\n"}.items():
            write(made / name, text)
        env = {**self.env, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        for words in (["init", "-q"], ["add", "-f", "committed.key", "changed.key", ".env.test"]):
            subprocess.run(["git", *words], cwd=made, env=env, check=True)
        shutil.rmtree(made / ".git/hooks", ignore_errors=True)
        write(made / "changed.key", key)
        return made

    def workspace(self):
        """A new one; the one before is gone, before it is ever written to a disk."""
        shutil.rmtree(self.base / f"w{self.workspaces}", ignore_errors=True)
        self.workspaces += 1
        ws = self.base / f"w{self.workspaces}"
        for name in (".env", "conf/.env.local", "keys/id_rsa_work", ".ssh/config", ".netrc",
                     *(f"conf{i}/.env" for i in (2, 3, 5, 6, 7, 8))):
            write(ws / name, self.text)
        for name in ("keys/server.pem", "keys/tls.key"):
            write(ws / name, f"-----BEGIN PRIVATE KEY-----\n{self.text}\n-----END PRIVATE KEY-----\n")
        for name in ("notes", "conf5/other"):
            write(ws / name, "as it was\n")
        for i in range(1, 13):
            write(ws / f"r{i}/.git/config", CONFIG)
            write(ws / f"r{i}/.git/HEAD", "ref: refs/heads/main\n")
            write(ws / f"r{i}/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)
            write(ws / f"r{i}/evil", "[core]\n\tfsmonitor = evil\n")
        write(ws / ".cordon.toml", "# nothing\n")
        for name in ("point", "point2"):
            (ws / name).mkdir()
        for name, target in {"link-out": "outside/secret", "link-file": "outside/file", "link-dir": "outside"}.items():
            (ws / name).symlink_to(self.base / target)
        shutil.copytree(self.shown(), ws / "shown", symlinks=True)
        (ws / "link-env").symlink_to(".env")
        (ws / ".env.example").symlink_to(".env")
        shutil.copy(self.attempt, ws / "tool")
        self.listen_at(ws / "socket")
        return ws

    def restore(self):
        """What an attempt that got out may have changed, as it was for the next."""
        out, granted = self.base / "outside", self.base / "granted"
        for path in (out / "made", out / "made-by-link", out / "moved-out", out / "tmpfile", out / "fifo",
                     out / "made.sock", granted / "made", self.data / "cordon/planted",
                     self.base / "home/.npm/_cacache/planted", pathlib.Path("/cordon-walls-made"),
                     pathlib.Path(f"/tmp/cordon-walls-{self.unique}"),
                     pathlib.Path(f"/tmp/cordon-walls-next-{self.unique}"),
                     pathlib.Path(f"/dev/shm/copy-{self.unique}")):
            if path.is_symlink() or path.exists():
                path.unlink()
        if (out / "directory").exists():
            (out / "directory").rmdir()
        for name in ("file", "doomed", "long", "movable"):
            write(out / name, "as it was\n" * 4)
        if stat.S_IMODE((out / "file").stat().st_mode) != 0o644:
            raise AssertionError("cannot restore")
