"""The walls on another kernel: the rows of tests/walls, asked there by the same code."""
import contextlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "walls"))
from walls_lab import Lab, WAYS  # noqa: E402
from walls_rows import Found, ROWS  # noqa: E402
from walls_world import World, write  # noqa: E402

TEXT = "secret-of-the-guest"
LOADER = "/usr/lib/ld-guest.so"
PORTS = {"user": 4000, "root": 5000}
HOMES = {"user": "/home/tester", "root": "/root"}

# What a row needs and the guests lack, so that nothing can be seen to escape there.
LACKING = {"x32", "vsock", "alg", "interface"}
# Rows that need what a kernel has only since a later release: (row, the first that has it).
LATER = {"setxattr-outside": (6, 6), "make-setuid-fchmodat2": (6, 6),
         "call-open_by_handle_at": (6, 13)}  # before it, an ordinary user was always refused


class Template(World):
    """The files of the world, made here and sent along. What listens or lives is made by the guest."""
    def __init__(self, base, attempt):
        self.base, self.text, self.attempt, self.data = base, TEXT, attempt, base / "around/data"
        self.env = dict(os.environ)
        self.names, self.workspaces = {}, 0
        self.make_files()
        self.workspace()

    def listen_at(self, *_):
        pass


def add_world(archive, who, uid, template):
    """/tmp/walls-WHO, and what it is brought back to between steps."""
    base = f"/tmp/walls-{who}"
    home = (template.base, base)
    archive.directory(base, uid=uid)
    for name in ("outside", "home", "granted", "around", "ungrouped"):
        archive.tree(f"{base}/{name}", template.base / name, uid, home)
    archive.copy(f"{base}/host-view.toml", template.base / "host-view.toml", 0o644, uid)
    archive.directory(f"/vm/template-{who}", uid=uid)
    archive.tree(f"/vm/template-{who}/workspace", template.base / "w1", uid, home)
    archive.directory(f"/vm/template-{who}/outside", uid=uid)
    for name in ("file", "doomed", "long", "movable"):
        archive.copy(f"/vm/template-{who}/outside/{name}", template.base / "outside" / name, 0o644, uid)
    archive.directory(f"{base}/tools", uid=uid)
    archive.copy(f"{base}/tools/attempt", template.attempt, uid=uid)
    archive.copy(f"{base}/tools/setuid", template.attempt, 0o4755, uid=65534 if uid == 0 else 0)
    if uid == 0:
        archive.copy(f"{base}/tools/capable", template.attempt)
    far = f"{HOMES[who]}/far"
    archive.directory(HOMES[who], uid=uid)
    for name in (far, f"{HOMES[who]}/.config", f"{HOMES[who]}/.config/op"):
        archive.directory(name, uid=uid)
    archive.file(f"{HOMES[who]}/.config/op/secret", TEXT, 0o600, uid)
    archive.file(f"{far}/file", "as it was\n", uid=uid)
    archive.directory(f"/vm/results/{who}", uid=uid)


class GuestWorld:
    def __init__(self, who, steps):
        self.steps, self.who, self.text, self.unique, self.workspaces = steps, who, TEXT, f"guest-{who}", 0
        self.base = base = pathlib.Path(f"/tmp/walls-{who}")
        self.data, self.tools, self.attempt = base / "around/data", base / "tools", base / "tools/attempt"
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(base / "home"), "XDG_DATA_HOME": str(self.data), "LANG": "C",
                    **dict.fromkeys(("CALLER_WORD", "SSH_AUTH_SOCK", "LD_PRELOAD", "BASH_ENV", "PYTHONPATH"), TEXT)}
        port = PORTS[who]
        self.names = {
            "text": TEXT, "unique": self.unique, "out": base / "outside", "home": base / "home",
            "granted": base / "granted", "around": base / "around", "data": self.data, "mark": f"cordon-mark-{who}",
            "hostname": "cordon-guest", "loader": LOADER, "self": self.attempt, "host_view": base / "host-view.toml",
            "device": "/dev/walls", "device_name": "walls", "setuid": self.tools / "setuid", "setuid_argument": "pause",
            "capable": self.tools / "capable" if who == "root" else "/usr/bin/none", "tcp": port, "udp": port,
            "tcp6": port + 1, "abstract": f"cordon-{self.unique}", "key": port, "mq": f"cordon-{self.unique}",
            "shm_file": f"cordon-{self.unique}",
            **{name: f"@{name}@" for name in ("victim", "victim_fd", "address", "other_session", "ledger", "ns_pid",
                                              "ns_net", "ns_cgroup")}}
        steps.shell(f"base={base}")
        if who == "root":
            steps.shell(f"guest capable {self.tools}/capable")
        steps.shell(f"world {TEXT} {self.unique} {port}")

    def workspace(self):
        self.workspaces += 1
        self.steps.shell(f"workspace w{self.workspaces}")
        return self.base / f"w{self.workspaces}"

    def restore(self):
        pass  # at each new workspace

    @contextlib.contextmanager
    def far(self):
        self.names.update(far=f"{HOMES[self.who]}/far", far_secret=f"{HOMES[self.who]}/.config/op/secret")
        yield


class GuestLab(Lab):
    """While steps are only written down, every look is asked for, so that it is there when the answers are."""
    time_to_leave, time_to_stay = "6s", "20"  # an emulated machine on a busy one

    def __init__(self, who, steps):
        super().__init__(GuestWorld(who, steps), "/usr/bin/cordon", "/usr/bin/cordon-unwalled", "/usr/bin/session-run")
        self.steps = steps

    def execute(self, argv, env, cwd, files=None, secret=None):
        return self.steps.step(argv, env, cwd, "files" if files else "step",
                               ["guest", "with-descriptors", secret] if secret else [])

    def look(self, path):
        lines = self.steps.after("look", path)
        if lines is None:
            return Found(0, "")
        if not lines or lines[0] == "none":
            return None
        mode, _, text = lines[0].partition(" ")
        return Found(int(mode, 8), bytes.fromhex(text).decode(errors="replace"))

    def take(self, rows, mode, ws, status, output, errors):
        if self.steps.answers is None:
            output = "".join(f"{row.words[0]}\tcontained\t\n" for row in rows)
        super().take(rows, mode, ws, status, output, errors)

    def left(self, mark):
        lines = self.steps.after("left", mark)
        return [] if lines is None else lines[0].split()[1:] if lines else ["unknown"]

    def kill_when_marked(self, argv, env, cwd, mark):
        _, output, _ = self.steps.step(argv, env, cwd, before=["guest", "kill-when-marked", mark])
        there, _, left = output.partition("\n")
        return there == "there", left.split()[1:]

    def on_terminal(self, argv, env, cwd):
        return self.steps.step(argv, env, cwd, before=["guest", "terminal"])


def contained(lab, rows, refused=(), mode="namespaces"):
    for row in rows:
        wanted = "refused" if row.category in refused else "escaped" if row.shown or row.how == "next" and mode == "session" else "contained"
        answer, said = lab.answer(row, mode)
        yield f"{row.name} is {wanted}" + (f", {mode}" if mode in WAYS else ""), \
            None if answer == wanted else f"{' '.join(row.words)}: {answer}: {said}"


def escaping(lab, rows, release):
    for row in rows:
        if row.needs in LACKING or LATER.get(row.name, release) > release or (row.only and row.only.split(":")[0] != lab.steps.who):
            continue
        answer, said = lab.answer(row, row.without)
        yield f"{row.name} escapes without {row.without}", None if answer == "escaped" else \
            f"{' '.join(row.words)} without {row.without}: {answer}: {said}"


def ask(escapes, callers=("user", "root"), wall="", refused=(), kept={}):
    """Every row must be contained; for the callers named first, those that `wall` has a part in must also be seen to
    escape. refused: kinds of rows that cordon must not even start on this machine. kept: by which way a caller's walls
    also stay up."""
    def asked(steps, arch, release):
        if steps.who not in callers:
            return []
        lab, rows = GuestLab(steps.who, steps), [row for row in ROWS if row.needs not in arch.lacking]
        walled = [row for row in rows if steps.who in escapes and wall in row.without]
        more = contained(lab, rows, refused, kept[steps.who]) if steps.who in kept else ()
        return [*contained(lab, rows, refused), *escaping(lab, walled, release), *more]
    return asked
