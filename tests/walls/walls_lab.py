"""How rows are run. Rows of a kind share one sandbox, where each attempt is a process of its own; each answer is kept.

A mode is a driver of the real program ("namespaces", "landlock", "bwrap"), or the walls that a row is to be seen to
escape without: names for the program that can leave walls out, LOCAL or BARE. Or it is one of WAYS: as the second
command of a session ("session"), or after another with which it shares nothing ("fresh"); walls may be left out there,
too. An answer is (escaped | contained | broken | refused, what was said)."""
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import termios
import time

from walls_rows import BARE, Found, JUDGES, LOCAL, ROWS

DRIVERS = ("namespaces", "landlock", "bwrap")
WAYS = ("session", "fresh")
WITHOUT = " without "
PATIENCE = 60
TOGETHER = 80  # attempts of one command of a session


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())


def marked(mark):
    """Living processes that carry the mark in what they were started as."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in words and words[0] != b"" and state not in "ZX" and b"--driver" not in words:
            found.append(int(entry.name))
    return found


def way_of(mode):
    """The way, or "" where the walls are raised for the command, and the walls to leave out."""
    way, _, walls = mode.partition(WITHOUT)
    return (way, walls) if way in WAYS else ("", mode if mode not in (*DRIVERS, LOCAL, BARE) else "")


class Lab:
    # What a command has time for that must have left everything behind when it runs out; and what it would take, in
    # seconds.
    time_to_leave, time_to_stay = "1500ms", "5"

    def __init__(self, world, cordon, unwalled, session_run=None):
        self.world, self.cordon, self.unwalled, self.session_run, self.answers = world, cordon, unwalled, session_run, {}

    # ---- asking ----
    def answer(self, row, mode):
        key = (row.name, mode)
        if key not in self.answers:
            rows = self.together(row, mode)
            getattr(self, "run_" + row.how.replace("-", "_"))(rows, mode)
            assert key in self.answers, f"{key} was not answered"
        return self.answers[key]

    def together(self, row, mode):
        """The rows that can share a run with this one."""
        if row.how in ("alone", "next", "init-kill", "kill-cordon", "output", "terminal", "stdio"):
            return [row]
        return [other for other in ROWS if (other.how, other.options) == (row.how, row.options) and
                (mode in (*DRIVERS, *WAYS) or other.without == (way_of(mode)[1] or mode))]

    def set(self, row, mode, answer, said=""):
        self.answers[(row.name, mode)] = (answer, said)

    def fill(self, words, ws, **more):
        names = {**self.world.names, "ws": ws, **more}
        return [str(word).format(**names) for word in words]

    def got_out(self, row, ws):
        kind, path = row.judge
        return JUDGES[kind](self.look(*self.fill([path], ws)))

    # ---- running ----
    def argv(self, mode, ws, options, words):
        """words: of the attempt program."""
        program = [str(self.world.attempt), *words]
        if mode == BARE:
            return program
        way, walls = way_of(mode)
        driver = mode if mode in DRIVERS else "local" if mode == LOCAL else "namespaces"
        cordon = self.session_run if way else self.unwalled if walls else self.cordon
        timeout = [] if "--timeout" in options else ["--timeout", "40s"]
        if way == "session" and "--view" in options:  # that is the configuration's to say for a session
            options = ["--config", "{host_view}"]
        return [cordon, "run", "--quiet", *["--fresh"][:way == "fresh"], "--driver", driver, "--workspace", str(ws),
                "--read", str(self.world.tools), *timeout, *self.fill(options, ws), "--", *program]

    def env(self, mode):
        return {**self.world.env, "CORDON_UNWALL": way_of(mode)[1]}

    def run(self, mode, ws, options, words, first=None, **more):
        """first: words of the attempt program that runs before in the same session, where there is a way."""
        env = {**self.env(mode), **({"FIRST": "\n".join(first)} if first else {})}
        return self.execute(self.argv(mode, ws, options, words), env, ws, **more)

    # ---- on this machine: what another machine does in its own way ----
    def execute(self, argv, env, cwd, files=None, secret=None):
        """(status, output, errors). files: paths to be the standard streams; secret: one to be left open at other
        numbers."""
        opened, fds = [], []
        if secret:
            fds = [os.open(secret, os.O_RDONLY)]
            fds += [fcntl.fcntl(fds[0], fcntl.F_DUPFD, number) for number in (9, 50, 199)]
        for path in files or ():
            pathlib.Path(path).write_text("")
            os.chmod(path, 0o600)
            opened.append(open(path, "r+b"))
        stdin, stdout, stderr = opened or (subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE)
        process = subprocess.Popen([str(word) for word in argv], env=env, cwd=cwd, stdin=stdin, stdout=stdout,
                                   stderr=stderr, pass_fds=fds)
        for fd in fds:
            os.close(fd)
        try:
            said = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()
        if files:
            for file in opened:
                file.close()
            said = [pathlib.Path(path).read_bytes() for path in files[1:]]
        return process.returncode, *(text.decode(errors="replace") for text in said)

    def look(self, path):
        """What is at a path: Found, or None."""
        path = pathlib.Path(path)
        return Found(path.stat().st_mode & 0o777, path.read_text(errors="replace")) if path.is_file() else None

    def left(self, mark):
        """The processes that still carry a mark. They belong to nobody any more, and are ended."""
        pids = marked(mark)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return pids

    def kill_when_marked(self, argv, env, cwd, mark):
        """Kills what was started as soon as a process with the mark is there: (was it, what is left)."""
        process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        there = wait_until(lambda: marked(mark), 20)
        process.kill()
        process.communicate()
        wait_until(lambda: not marked(mark), 3)
        return there, self.left(mark)

    def on_terminal(self, argv, env, cwd):
        """Called from a terminal of its own, as a person would: (status, what came out, what was typed)."""
        master, slave = pty.openpty()
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                os.dup2(os.open("/dev/null", os.O_RDONLY), 0)  # cordon itself would read what is typed
                os.dup2(slave, 1)
                os.dup2(slave, 2)
                os.chdir(cwd)
                os.execve(argv[0], argv, env)
            finally:
                os._exit(99)
        output, status, deadline = b"", None, time.monotonic() + PATIENCE
        while status is None and time.monotonic() < deadline:
            if select.select([master], [], [], 0.02)[0]:
                output += os.read(master, 65536)
            done, ended = os.waitpid(pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(ended) if done else None
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        while select.select([master], [], [], 0.02)[0]:
            output += os.read(master, 65536)
        typed = b""
        os.set_blocking(slave, False)
        try:
            typed = os.read(slave, 4096)
        except OSError:
            pass
        os.close(master)
        os.close(slave)
        return status, output.decode(errors="replace"), typed.decode(errors="replace")

    # ---- what was answered ----
    def take(self, rows, mode, ws, status, output, errors):
        """The lines the attempt program printed, one for each row in their order."""
        lines = [line.split("\t") for line in output.splitlines() if line.count("\t") == 2]
        for i, row in enumerate(rows):
            name = row.words[0]
            if i < len(lines) and lines[i][0] == name:
                self.set(row, mode, lines[i][1], lines[i][2])
            elif status == 125 and not lines:
                self.set(row, mode, "refused", errors)
            else:
                self.set(row, mode, "broken", f"no answer; status {status}: {output[-500:]}{errors[-500:]}")
        for row in rows:
            answer, said = self.answers[(row.name, mode)]
            if row.judge and answer in ("escaped", "contained"):
                self.set(row, mode, "escaped" if self.got_out(row, ws) else "contained", said)
        self.world.restore()

    def words_of(self, rows, ws):
        words = []
        for row in rows:
            words += ["--", *self.fill(row.words, ws)] if words else self.fill(row.words, ws)
        return words

    # ---- the ways ----
    def run_batch(self, rows, mode, before=(), **more):
        for some in [rows[at:at + TOGETHER] for at in range(0, len(rows), TOGETHER)] if way_of(mode)[0] else [rows]:
            ws = self.world.workspace()
            done = self.run(mode, ws, some[0].options, [*before, *self.words_of(some, ws)], **more)
            self.take(some, mode, ws, *done)

    def run_inline(self, rows, mode):
        self.run_batch(rows, mode, before=["--inline"])

    def run_far(self, rows, mode):
        """With files that are not beneath /tmp, which is always private."""
        with self.world.far():
            self.run_batch(rows, mode)

    def run_alone(self, rows, mode):
        """Ended before it could answer: the host looks."""
        ws = self.world.workspace()
        for row in rows:
            status, output, errors = self.run(mode, ws, row.options, self.words_of([row], ws))
            broken = "broken" in output or status == 125
            self.set(row, mode, "broken" if broken else "escaped" if self.got_out(row, ws) else "contained",
                     output + errors)

    def run_next(self, rows, mode):
        """One command makes the file, the next one looks for it."""
        ws = self.world.workspace()
        row = rows[0]
        make = ["create", *self.fill(row.words[1:], ws)]
        if way_of(mode)[0]:
            self.take(rows, mode, ws, *self.run(mode, ws, row.options, self.words_of(rows, ws), first=make))
            return
        status, output, errors = self.run(mode, ws, row.options, make)
        if status not in (0, 1):
            self.set(row, mode, "broken", output + errors)
            return
        self.take(rows, mode, ws, *self.run(mode, ws, row.options, self.words_of(rows, ws)))

    def run_init_kill(self, rows, mode):
        ws = self.world.workspace()
        row = rows[0]
        env = self.env(mode)
        if mode == LOCAL:  # where a group ends with its init
            env["XDG_CONFIG_HOME"] = str(self.world.base / "ungrouped")
        argv = self.argv(mode, ws, row.options, ["--inline", *self.words_of(rows, ws)])
        status, output, errors = self.execute(argv, env, ws)
        gone = wait_until(lambda: self.look(ws / "init-is-gone"), 0 if "contained" in output else 1)
        self.set(row, mode, "escaped" if gone else "contained" if "contained" in output else "broken",
                 f"{status} {output}{errors}")

    def run_key(self, rows, mode):
        ws = self.world.workspace()
        argv = self.argv(mode, ws, rows[0].options, self.words_of(rows, ws))
        argv = [str(self.world.attempt), "with-key", "cordon-walls", self.world.text, *argv]
        self.take(rows, mode, ws, *self.execute(argv, self.env(mode), ws))

    def run_descriptors(self, rows, mode):
        self.run_batch(rows, mode, secret=self.world.base / "outside/secret")

    def run_stdio(self, rows, mode):
        """All three are files; what the attempt says is in one of them, and what it did shows in their modes."""
        ws = self.world.workspace()
        row = rows[0]
        paths = [self.world.base / f"stdio-{i}" for i in range(3)]
        self.take(rows, mode, ws, *self.run(mode, ws, row.options, self.words_of(rows, ws), files=paths))
        found = self.look(paths[int(row.words[1])])
        changed = found is None or found.mode != 0o600
        answer, said = self.answers[(row.name, mode)]
        if answer in ("escaped", "contained"):
            self.set(row, mode, "escaped" if changed else "contained", said)

    def run_terminal(self, rows, mode):
        """What arrives there counts."""
        ws = self.world.workspace()
        row = rows[0]
        words = self.words_of(rows, ws)
        status, output, typed = self.on_terminal(self.argv(mode, ws, row.options, words), self.env(mode), ws)
        self.take(rows, mode, ws, status, output.replace("\r\n", "\n").replace(f"written-{self.world.unique}", ""), "")
        answer, said = self.answers[(row.name, mode)]
        arrived = {"terminal-type": words[-1] in typed, "terminal-write": words[-1] in output}.get(row.name)
        if arrived is not None and answer in ("escaped", "contained"):
            self.set(row, mode, "escaped" if arrived else "contained", f"{said}; typed {typed!r}")

    # ---- what is left ----
    def judge_left(self, rows, mode, ran, mark):
        for row in rows:
            left = self.left(f"{mark}-{row.words[2]}")
            tried = "leave\tescaped" in ran[1]
            self.set(row, mode, "escaped" if left else "contained" if tried else "broken", f"{ran}")

    def run_leave(self, rows, mode, options=(), more=()):
        ws = self.world.workspace()
        mark = self.world.names["mark"]
        kinds = [row.words[2] for row in rows]
        ran = self.run(mode, ws, options, ["leave", mark, *kinds, *more])
        self.judge_left(rows, mode, ran, mark)

    def run_leave_timeout(self, rows, mode):
        """The command itself would stay as well; its time runs out."""
        self.run_leave(rows, mode, ["--timeout", self.time_to_leave], ["--", "outlast", self.time_to_stay, "/dev/null"])

    def run_kill_cordon(self, rows, mode):
        ws = self.world.workspace()
        row = rows[0]
        mark = f"{self.world.names['mark']}-caller"
        there, left = self.kill_when_marked(self.argv(mode, ws, row.options, ["pause", mark]), self.env(mode), ws, mark)
        self.set(row, mode, "broken" if not there else "escaped" if left else "contained", f"left {left}")

    def run_output(self, rows, mode):
        ws = self.world.workspace()
        argv = self.argv(mode, ws, rows[0].options, [])
        argv = [argv[0], argv[1], "--json", *argv[2:argv.index("--")], "--", "head", "-c", "100000", "/dev/zero"]
        _, output, errors = self.execute(argv, self.env(mode), ws)
        result = json.loads(output or "{}")
        kept = len(result.get("stdout", ""))
        answer = "broken" if result.get("stdout_bytes") != 100000 else "escaped" if kept >= 100000 else "contained"
        self.set(rows[0], mode, answer, f"{kept} kept; {errors}")
