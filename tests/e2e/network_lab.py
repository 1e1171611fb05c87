"""What the tests of the network share: a world with names, addresses and servers (data/network-world.py), in which
cordon is run, and programs inside a sandbox there."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import PROGRAM, Cordon
from lab import IS_ROOT, lack, rows

WORLD = pathlib.Path(__file__).parent / "data/network-world.py"
INSIDE = pathlib.Path(__file__).parent / "data/network-inside.py"
UNWALLED = os.environ.get("CORDON_UNWALLED") or PROGRAM + "-unwalled"


class World:
    """Its process lives as long as it is needed; commands are put beside it by nsenter."""
    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="cordon-world-"))
        os.chmod(self.directory, 0o755)
        prefix = ["unshare", "--net", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--net",
                                                                  "--mount"]
        argv = [*prefix, "/usr/bin/python3", WORLD, self.directory, *([] if lack("veth") else ["far"])]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        enter = ["nsenter", "--target", str(self.process.pid), "--net", "--mount"]
        # An ordinary user is root in that world, and becomes ordinary again for what is tested.
        self.as_root = enter if IS_ROOT else [*enter, "--user", "--preserve-credentials"]
        self.prefix = enter if IS_ROOT else [*self.as_root, "unshare", "--user", f"--map-user={os.getuid()}",
                                             f"--map-group={os.getgid()}"]
        self.servers = []

    def ask(self, *question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def seen(self):
        """What reached a server since the last time, but for questions about names: [kind, address, port] each."""
        return [each for each in self.ask("seen") if each != ["udp", "", 53]]

    def run(self, *words, **options):
        """A program in the world, outside of any sandbox."""
        return subprocess.run([*self.prefix, *map(str, words)], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, **options)

    def start(self, *words, **options):
        """A server that ends with the world."""
        process = subprocess.Popen([*self.prefix, *map(str, words)], stdin=subprocess.DEVNULL, **options)
        self.servers.append(process)
        return process

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait(20)
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        shutil.rmtree(self.directory)


class Networked(Cordon):
    """cordon in the world."""
    def __init__(self, world, workspace, data):
        super().__init__(workspace, data)
        self.world, self.program, self.driver = world, PROGRAM, "namespaces"
        self.env.pop("CORDON_UNWALL", None)

    def argv(self, *words):
        return [*self.world.prefix, "env", "-C", str(self.workspace), self.program,
                *(os.fspath(word) for word in words)]

    def inside(self, *command, net=(), options=(), **others):
        """The result of a command that may reach these hosts."""
        words = [word for host in net for word in ("--net", host)]
        done = self("run", "--json", "--driver", self.driver, *words, *options, "--", *command, **others)
        value = json.loads(done.stdout)
        assert "error" not in value, value
        return value

    def program_of(self, verb, words):
        """That verb as a command; its words are in a file, since there may be many."""
        (self.workspace / "words.json").write_text(json.dumps(words))
        return ["/usr/bin/python3", "-c", INSIDE.read_text(), verb, "words.json"]

    def verb(self, verb, words, **others):
        """What data/network-inside.py says in a sandbox, and the result of that run."""
        value = self.inside(*self.program_of(verb, words), **others)
        assert value["stdout"].strip(), value
        return json.loads(value["stdout"].splitlines()[-1]), value

    def dialogs(self, rows, **others):
        """What the proxy says to each of these, bytes or lists of bytes."""
        rows = [[row] if isinstance(row, bytes) else row for row in rows]
        said, _ = self.verb("dialogs", [[base64.b64encode(part).decode() for part in row] for row in rows], **others)
        return [base64.b64decode(text) for text in said]

    def connections(self):
        """The ledger's rows about the network; those of connections once they have ended."""
        return [row for row in rows(self) if row["row"] == "network" and "open" not in row]


@pytest.fixture(scope="module")
def world():
    for name in ("mount-namespace", "ipv6", "ip", "openssl"):
        if lack(name):
            pytest.skip(lack(name))
    made = World()
    yield made
    made.close()


@pytest.fixture
def net(world, tmp_path, workspace):
    world.seen()
    world.ask("asked")
    return Networked(world, workspace, tmp_path / "data")
