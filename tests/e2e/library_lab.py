"""A process that stays and runs commands by the library (tests/support/library-lab.c), and what can be seen of it from
outside."""
import contextlib
import json
import os
import pathlib
import selectors
import signal
import subprocess

from conftest import PATIENCE, descendants, is_running
from lab import ROOT, wait_until

BUILD = pathlib.Path(os.environ.get("CORDON_BUILD") or ROOT / "build")
PROGRAM = BUILD / "tests/walls/library-lab"


class Ended(Exception):
    """The process has gone."""


class Library:
    def __init__(self, cordon, config=None, prefix=()):
        self.cordon, self.names, self.lines, self.rest, self.said = cordon, 0, [], b"", {}
        self.process = subprocess.Popen([*prefix, PROGRAM], env=cordon.env, cwd=cordon.workspace, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.config = config
        self.open()

    # ---- talking ----
    def tell(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        """Reads what there is into .lines; output of commands goes into .said."""
        assert self.selector.select(PATIENCE), "nothing is said"
        read = self.process.stdout.read()
        if read == b"":
            raise Ended(self.process.wait())
        *lines, self.rest = (self.rest + (read or b"")).split(b"\n")
        for line in map(json.loads, lines):
            if "said" in line:
                self.said[line["name"]] = self.said.get(line["name"], "") + line["said"]
            else:
                self.lines.append(line)

    def take(self, wanted):
        while True:
            for i, line in enumerate(self.lines):
                if wanted(line):
                    return self.lines.pop(i)
            self.hear()

    def ask(self, what, **more):
        self.tell(what, **more)
        answer = self.take(lambda line: "name" not in line)
        assert "error" not in answer, answer
        return answer

    # ---- what it does ----
    def open(self):
        self.ask("open", data=str(self.cordon.data / "cordon"), config=self.config and str(self.config))

    def session(self, name, **settings):
        self.ask("session", id=name, settings=pairs(workspace=str(self.cordon.workspace), **settings))

    def start(self, *argv, session="s", **settings):
        """Its name, to be waited for."""
        self.names += 1
        name = f"{self.names}"
        if session:
            settings["session"] = session
        self.tell("run", name=name, settings=pairs(**settings), argv=[str(word) for word in argv])
        return name

    def wait(self, name):
        return self.take(lambda line: line.get("name") == name)

    def wait_said(self, name, text):
        while text not in self.said.get(name, ""):
            assert not any(line.get("name") == name for line in self.lines), self.lines
            self.hear()

    def run(self, *argv, session="s", **settings):
        return self.wait(self.start(*argv, session=session, **settings))

    def shell(self, line, session="s", **settings):
        return self.run("/bin/sh", "-c", line, session=session, **settings)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            assert self.process.returncode == 0, self.process.returncode
        self.process.stdout.close()


def pairs(**settings):
    return [[key.replace("_", "-"), value] for key, values in settings.items()
            for value in (values if isinstance(values, list) else [values])]


# ---- seen from outside -----------------------------------------------------------------------------------------------

def called(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def numbers(pid):
    """Its number in each namespace, from the outermost in."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    return [int(number) for number in status.partition("NSpid:")[2].splitlines()[0].split()]


def name_of(pid):
    with contextlib.suppress(OSError):  # it has gone meanwhile
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def parts(library):
    """Of its process: the inits of sandboxes, and what runs in these besides their starters."""
    found = {"inits": [], "commands": []}
    for pid in descendants(library.process.pid):
        inside = numbers(pid)[len(numbers(library.process.pid)):]
        if inside and name_of(pid) != "cordon-starter":
            found["inits" if inside == [1] else "commands"].append(pid)
    return found


def kill(pids):
    """And waits until they are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # with the one before
            os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not any(map(is_running, pids)))
