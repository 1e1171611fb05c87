"""Where the measuring happens: a place that is removed after, the user it runs as, the programs it needs, the
daemon."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
LIBRARIES = ["-ljansson", "-lsodium", "-lcares", "-lpthread"]
PATIENCE_S = 30
UID = 61234  # whom root becomes: nobody else's, and without an entry anywhere
# Exits, and does nothing else: what is left is what starting it costs.
NOOP = """
#include <sys/syscall.h>
void _start(void);
void _start(void)
{
#if defined(__x86_64__)
	__asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(0));
#elif defined(__aarch64__)
	register long number __asm__("x8") = SYS_exit_group;
	register long status __asm__("x0") = 0;
	__asm__ volatile("svc 0" : : "r"(number), "r"(status));
#endif
	__builtin_unreachable();
}
"""


class Ground:
    def __init__(self):
        self.places = []
        self.place = self.directory("/tmp")
        self.memory = self.directory("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
        self.prefix = ["setpriv", "--pdeathsig=KILL"]
        if os.geteuid() == 0:
            self.prefix += [f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        self.workspace, self.home = self.place / "workspace", self.place / "home"
        self.data = self.directory(os.environ["BENCH_DATA"]) if "BENCH_DATA" in os.environ else self.home / "data"
        for directory in (self.workspace, self.home):
            directory.mkdir()
            self.give(directory)
        # The build may lie where the user cannot read.
        self.cordon = self.place / "cordon"
        shutil.copy2(BUILD / "cordon", self.cordon)
        self.env = {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.data),
                    "XDG_CONFIG_HOME": str(self.home / "none"), "XDG_RUNTIME_DIR": str(self.home / "run")}

    def directory(self, where):
        """Another one, the user's, until all is over."""
        path = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench.", dir=where))
        self.places.append(path)
        self.give(path)
        return path

    def give(self, path):
        path.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(path, UID, UID)

    def close(self):
        for path in self.places:
            subprocess.run(["rm", "-rf", path])

    def compile(self, name, *others, library=None, options=(), called=None):
        """bench/NAME.c as a program, with what all of them share."""
        program = self.place / (called or name)
        if not program.exists():
            subprocess.run(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-Iinclude",
                            "-Isrc", "-Itests", *options, f"bench/{name}.c", "bench/sample.c", *others,
                            *([BUILD / library] if library else []), *LIBRARIES, "-o", program], cwd=ROOT, check=True)
        return program

    def noop(self):
        program = self.workspace / "noop"
        if not program.exists():
            subprocess.run(["cc", "-O2", "-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector", "-x", "c",
                            "-", "-o", program],
                           input=NOOP, text=True, check=True)
        return program

    def measure(self, program, *words, input="", env=None, prefix=None):
        """What a measuring program printed: {name: [numbers]}, or a text where it says that something is absent."""
        done = subprocess.run([*(self.prefix if prefix is None else prefix), program, *map(str, words)], input=input,
                              text=True, stdout=subprocess.PIPE, env={**self.env, **(env or {})}, cwd=self.place)
        if done.returncode:
            raise RuntimeError(f"{program.name} ended with {done.returncode}")
        return parse(done.stdout)

    def is_served_by(self, process):
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(str(self.data / "cordon/daemon.sock")):
                return False
            listener, _, _ = struct.unpack("iII", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return listener == process.pid

    def start_daemon(self):
        """`cordon serve`, ready. One that was killed a moment ago may be in its way: a process that it was just
        starting."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            process = subprocess.Popen([*self.prefix, self.cordon, "serve"], env=self.env, cwd=self.place,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True)
            if wait_until(lambda: self.is_served_by(process), process):
                return process
            process.kill()
            complaint = process.communicate()[1]
        raise RuntimeError(f"the daemon does not start: {complaint}")

    @contextlib.contextmanager
    def daemon(self):
        """The daemon meanwhile; None where this build has none."""
        if subprocess.run([self.cordon, "serve", "--help"], capture_output=True).returncode:
            yield None
            return
        process = self.start_daemon()
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def parse(text):
    found = {}
    for line in text.splitlines():
        name, *numbers = line.split("\t")
        found[name] = numbers[1] if numbers[0] == "absent" else [float(number) for number in numbers]
    return found


def wait_until(condition, process, seconds=PATIENCE_S):
    """True as soon as the condition holds; False if the process ended, or time is up."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@contextlib.contextmanager
def open_ground():
    """However it ends, nothing is left."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    ground = Ground()
    try:
        yield ground
    finally:
        ground.close()


@contextlib.contextmanager
def progress(what):
    """A sign of life on stderr: seconds that count on a terminal, else a line when it is done."""
    begun, done = time.monotonic(), threading.Event()

    def tick():
        while not done.wait(1):
            print(f"\r{what} … {time.monotonic() - begun:.0f} s ", end="", file=sys.stderr, flush=True)
    thread = threading.Thread(target=tick, daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        done.set()
        start = "\r" if sys.stderr.isatty() else ""
        print(f"{start}{what}: {time.monotonic() - begun:.1f} s ", file=sys.stderr, flush=True)
