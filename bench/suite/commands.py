"""One command by every way there is: how long it takes, how many there are in a second, how much processor time each
takes, on an idle machine and with every processor busy; and how times grow with the mounts of the host. The ways and
the subjects are rows here; bench/commands.c runs what it is told, by turns."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

from ground import ROOT, progress
from report import Part, version

# Before each command, so that what one leaves to be tidied or raised is not counted with the next: the kernel takes a
# network down two to four milliseconds after it was left, on whichever processor is there.
REST_US = 5000
MOUNTS = 200
BWRAP = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all", "--new-session",
         "--die-with-parent"]
TRUE, NO_OP, SHELL = "/bin/true", "no-op", "bash -c :"
NAMES = {  # what people read
    "floor": "bare", "bwrap": "bubblewrap", "library": "cordon library, one-shot",
    "hosts": "cordon library, one listed host", "cli": "cordon run, one-shot", "session": "cordon library, session",
    "session-cli": "cordon run, session",
}
OURS = {"library", "hosts", "cli", "session", "session-cli"}
# (subject, way, sign, bound on an idle machine, bound on a busy one or None, against what)
GOALS = [
    (TRUE, "library", "≤", 0.45, 0.55, "bwrap"), (TRUE, "cli", "≤", 0.70, 0.70, "bwrap"),
    (TRUE, "session", "≤", 1.25, 1.40, "floor"), (TRUE, "session-cli", "≤", 2.20, None, "floor"),
]
# (subject, way, sign, bound, against what) of rates
RATE_GOALS = [(NO_OP, "session", "≥", 0.60, "floor"), (TRUE, "session", "≥", 0.80, "floor"),
              (NO_OP, "library", "≥", 3.0, "bwrap")]
AGAINST = {"floor": "× bare", "bwrap": "× bubblewrap"}
FASTER = {"srt": 100, "codex": 15}  # so many times the time of `cordon run`, at least


def npm_peers(ground):
    """srt and codex as npm has them today, in the place that is removed: {name: (words before the command,
    version)}."""
    subprocess.run([ROOT / "packaging/apt-install", "peers"], check=True)
    place = ground.place / "npm"
    with progress("installing srt and codex"):
        subprocess.run(["npm", "install", "--prefix", place, "--cache", ground.place / "npm-cache", "--no-audit",
                        "--no-fund", "--loglevel=error", "@anthropic-ai/sandbox-runtime", "@openai/codex"], check=True,
                       stdout=subprocess.DEVNULL)
    ground.env["CODEX_HOME"] = str(ground.directory("/var/tmp"))  # it refuses to work in /tmp
    programs = {"srt": [place / "node_modules/.bin/srt"], "codex": [place / "node_modules/.bin/codex", "sandbox", "--"]}
    return {name: (words, f"{name} {(version(words[0], '--version') or '?').split()[-1]}")
            for name, words in programs.items()}


class Peers:
    """The other sandboxes that are here: ways, and what they call themselves."""
    def __init__(self, ground):
        self.ways, self.versions = [], []
        for name, words in (("bwrap", [*BWRAP, "--bind", ground.workspace, ground.workspace]),
                            ("firejail", ["--quiet", "--noprofile", "--net=none", "--private-tmp",
                                          f"--whitelist={ground.workspace}", "--"])):
            if shutil.which(name):
                self.ways.append(("spawn", name, 1, [shutil.which(name), *words]))
                self.versions.append(version(name, "--version") or name)
        if os.environ.get("BENCH_PEERS") == "all":
            for name, (words, text) in npm_peers(ground).items():
                self.ways.append(("spawn", name, 20, words))
                self.versions.append(text)


def ways(ground, peers, *wanted):
    """Lines for bench/commands.c."""
    rows = [
        ("spawn", "floor", 1, []),
        *peers.ways,
        ("request", "library", 1, [f"workspace={ground.workspace}"]),
        ("request", "hosts", 1, [f"workspace={ground.workspace}", "net=listed.example:443"]),
        ("spawn", "cli", 1, [ground.cordon, "run", "--quiet", "--workspace", ground.workspace, "--"]),
        ("request", "session", 1, ["session=bench", f"workspace={ground.workspace}"]),
        ("spawn", "session-cli", 1, [ground.cordon, "run", "--quiet", "--session", "bench-cli", "--workspace",
                                     ground.workspace, "--"]),
    ]
    return [row for row in rows if not wanted or row[1] in wanted]


def lines(ground, rows, *subjects):
    argv = {TRUE: ["/bin/true"], NO_OP: [ground.noop()], SHELL: ["/bin/bash", "-c", ":"]}
    every = [("subject", name, *argv[name]) for name in subjects] + [(kind, name, every, *words)
                                                                     for kind, name, every, words in rows]
    return "".join("\t".join(map(str, words)) + "\n" for words in every)


def split(found):
    """{(subject, way): numbers}, and why something is absent by (subject, way)."""
    times = {tuple(name.rsplit(" ", 1)): value for name, value in found.items()}
    return ({key: value for key, value in times.items() if not isinstance(value, str)},
            {key: value for key, value in times.items() if isinstance(value, str)})


def usable_ways(ground, peers, daemon, part, *wanted):
    """Without what would be something else in this build."""
    rows = ways(ground, peers, *wanted)
    if not daemon and any(row[1] == "session-cli" for row in rows):
        part.absent(NAMES["session-cli"], "not in this build")
        rows = [row for row in rows if row[1] != "session-cli"]
    return rows


def note_absent(part, absent):
    for way in dict.fromkeys(way for _, way in absent):
        why = next(value for key, value in absent.items() if key[1] == way)
        part.absent(NAMES.get(way, way),
                    "not in this build" if "no such setting" in why else f"does not run here ({why})")


def ratio(times, subject, way, against):
    if (subject, way) not in times or (subject, against) not in times:
        return None
    return times[subject, way][0] / times[subject, against][0]


@contextlib.contextmanager
def busy_processors():
    """A busy loop on every processor; the process ids of the loops."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def fill_times(part, absent, condition, goals):
    times, part.condition = part.times, condition
    note_absent(part, absent)
    part.header = ["what", "how", "p50 µs", "p90 µs", "p99 µs", "× bare", "× bubblewrap"]
    part.rows = [(f"`{subject}`", NAMES.get(way, way), *times[subject, way], *(
        ratio(times, subject, way, against) or "—" for against in AGAINST)) for subject, way in times]
    for subject, way, sign, bound, against in goals:
        part.goal(f"`{subject}`, {NAMES[way]}, {condition}", ratio(times, subject, way, against), sign, bound,
                  AGAINST[against])


def measure_times(ground, peers, runs):
    part = Part("commands", "One command, on an idle machine")
    program = ground.compile("commands", library="libcordon.a")
    with ground.daemon() as daemon:
        rows = usable_ways(ground, peers, daemon, part)
        found = ground.measure(program, "times", runs, REST_US, input=lines(ground, rows, TRUE, NO_OP, SHELL))
    part.times, absent = split(found)
    fill_times(part, absent, "idle",
               [(subject, way, sign, idle, against) for subject, way, sign, idle, _, against in GOALS])
    for peer, bound in FASTER.items():
        if (TRUE, peer) in part.times:
            part.goal(f"`cordon run`, faster than {peer}", ratio(part.times, TRUE, peer, "cli"), "≥", bound, "×")
    if {(NO_OP, "hosts"), (NO_OP, "library")} <= set(part.times):
        part.goal("a network of one listed host adds to one of none",
                  part.times[NO_OP, "hosts"][0] - part.times[NO_OP, "library"][0], "≤", 500, "µs")
    return part


def measure_busy(ground, peers, runs):
    part = Part("busy", "One command, with a busy loop on every processor")
    program = ground.compile("commands", library="libcordon.a")
    with ground.daemon() as daemon, busy_processors():
        rows = usable_ways(ground, peers, daemon, part)
        found = ground.measure(program, "times", runs // 2 + 1, REST_US, input=lines(ground, rows, TRUE, NO_OP))
    part.times, absent = split(found)
    fill_times(part, absent, "busy",
               [(subject, way, sign, busy, against) for subject, way, sign, _, busy, against in GOALS if busy])
    return part


def measure_rate(ground, peers, runs):
    """One worker, no rest. The processor time is that of the whole machine, less that of the busy loops."""
    part = Part("rate", "One after another, without a rest")
    program = ground.compile("commands", library="libcordon.a")
    with ground.daemon() as daemon:
        rows = usable_ways(ground, peers, daemon, part, "floor", "bwrap", "library", "session", "session-cli")
        text, seconds = lines(ground, rows, NO_OP, TRUE), max(1, round(runs / 100))

        def measured(pids):
            rates, absent = split(ground.measure(program, "rate", seconds, input=text))
            return rates, split(ground.measure(program, "cpu", max(10, runs), *pids, input=text))[0], absent
        idle, idle_cpu, absent = measured([])
        with busy_processors() as pids:
            busy, busy_cpu, _ = measured(pids)
    note_absent(part, absent)
    part.header = ["what", "how", "per second", "of bare", "CPU µs each", "busy: per second", "of bare", "CPU µs each"]
    part.rows = [(f"`{subject}`", NAMES.get(way, way),
                  *(number for rates, cpu in ((idle, idle_cpu), (busy, busy_cpu)) for number in (
        rates[subject, way][0], rates[subject, way][0] / rates[subject, "floor"][0], cpu[subject, way][0])))
        for subject, way in idle if (subject, way) in busy]
    for subject, way, sign, bound, against in RATE_GOALS:
        part.goal(f"`{subject}`, {NAMES[way]}, sustained rate", ratio(idle, subject, way, against), sign, bound,
                  AGAINST[against])
    return part


def measure_mounts(ground, peers, runs):
    """Both times the same way: as many runs, one after the other."""
    part = Part("mounts", f"With {MOUNTS} more mounts on the host")
    if os.geteuid() != 0:
        part.absent("growth", "only root can make the mounts")
        part.goal("growth, cordon", None, "≤", 30, "%")
        return part
    program = ground.compile("commands", library="libcordon.a")
    rows = ways(ground, peers, "floor", "bwrap", "library", "cli")
    text = lines(ground, rows, TRUE, NO_OP)
    few, _ = split(ground.measure(program, "times", runs // 3 + 1, REST_US, input=text))
    place = tempfile.mkdtemp(prefix="mounts.", dir=ground.home)
    script = (f'mount -t tmpfs tmpfs "$1" && cd "$1" && i=0; while [ $i -lt {MOUNTS} ]; do mkdir $i; mount -t tmpfs tmpfs $i || exit 1; '
              'i=$((i + 1)); done; chmod 755 .; shift; exec "$@"')
    many, _ = split(ground.measure(program, "times", runs // 3 + 1, REST_US, input=text,
                                   prefix=["unshare", "-m", "sh", "-c", script, "sh", place, *ground.prefix]))
    part.header = ["what", "how", "p50 µs", f"with {MOUNTS} more", "growth %"]
    part.rows = [(f"`{key[0]}`", NAMES.get(key[1], key[1]), few[key][0], many[key][0],
                  (many[key][0] / few[key][0] - 1) * 100)
                 for key in few if key in many]
    for key in ((TRUE, "library"), (TRUE, "cli")):
        part.goal(f"`{key[0]}`, {NAMES[key[1]]}, growth with {MOUNTS} more mounts",
                  (many[key][0] / few[key][0] - 1) * 100, "≤", 30, "%")
    return part
