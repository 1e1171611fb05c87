"""The smaller parts: what deciding, sessions, control groups and the proxy cost."""
import contextlib
import os
import shutil
import socket
import subprocess


from commands import REST_US
from ground import BUILD, wait_until
from report import Part

DECIDES = ["src/policy/capability.c", "src/policy/cover.c", "src/policy/rules.c", "src/base/arena.c",
           "src/base/error.c", "src/base/glob.c", "src/base/json.c", "src/base/text.c", "src/base/utf8.c"]
SESSIONS = 10000


def measure_walk(ground, _peers, runs):
    """Steps 1 to 4 and a durable intent row, with all of cordon's data in memory."""
    part = Part("walk", "The walk without the driver")
    found = ground.measure(ground.compile("walk", library="libcordon-core.a"), max(20, runs * 5),
                           ground.memory / "walk", ground.workspace)
    part.header = ["step", "p50 µs", "p90 µs", "p99 µs"]
    part.rows = [(name, *numbers) for name, numbers in found.items()]
    part.goal("the walk of a one-off", found["one-off whole"][0], "≤", 150, "µs")
    part.goal("the walk of a session's command", found["session whole"][0], "≤", 60, "µs")
    return part


def measure_names(ground, _peers, runs):
    """Nothing changed: what a command pays at its end in a tree that it did not touch."""
    part = Part("names", "The check at a command's end, in a tree of 100 files a directory")
    part.header = ["directories", "p50 µs", "p90 µs", "p99 µs", "µs a directory"]
    program = ground.compile("names", library="libcordon-core.a")
    for count in (100, 1000, 10000):
        tree = ground.memory / f"tree-{count}"
        for number in range(count):
            place = tree / f"a{number // 100}/b{number}"
            place.mkdir(parents=True)
            for name in range(100 if count <= 1000 else 1):
                (place / f"file{name}").touch()
        found = ground.measure(program, max(20, runs), ground.memory / f"names-{count}", tree)
        for directories, numbers in found.items():
            part.rows.append((directories, *numbers, numbers[0] / int(directories)))
            if count == 10000:
                part.goal("the check at a command's end, a directory", numbers[0] / int(directories), "≤", 2, "µs")
        shutil.rmtree(tree)
    return part


def measure_policy(ground, _peers, runs):
    part = Part("policy", "Deciding, with 10, 100 and 1,000 rules or entries")
    found = ground.measure(ground.compile("policy", *DECIDES), max(5, runs // 3))
    part.header = ["ns each", "10", "100", "1,000", "1,000 : 10"]
    part.rows = [(name, *numbers, numbers[2] / numbers[0]) for name, numbers in found.items()]
    return part


def measure_sessions(ground, _peers, runs):
    """An operation should not grow at all; the list grows by the number, so its cost per session should not."""
    many = int(os.environ.get("BENCH_SESSIONS", SESSIONS))
    part = Part("sessions", f"A session among 10 and among {many:,}, in memory")
    found = ground.measure(ground.compile("sessions", library="libcordon.a"), ground.memory / "sessions", 10, many)
    part.header = ["operation (the fastest of several)", "10: µs", f"{many:,}: µs", "ratio"]
    part.rows = [("list, per session" if name == "list" else name, *numbers, numbers[1] / numbers[0])
                 for name, numbers in found.items()]
    return part


def measure_limits(ground, _peers, runs):
    """A control group of its own: made, entered, read and removed. As the caller, who has a place for groups, or has
    not."""
    part = Part("limits", "A control group for each command")
    if "\"mechanism\":\"cgroup" not in subprocess.run([ground.cordon, "doctor", "--json"], env=ground.env,
                                                      capture_output=True, text=True).stdout:
        part.absent("control groups", "none can be made here: see cordon doctor")
        return part
    configs = {"with": ground.memory / "with", "without": ground.memory / "without"}
    configs["with"].write_text("")
    configs["without"].write_text('limits.cgroup = "none"\n')
    rows = [f"subject\tno-op\t{ground.noop()}"]
    for name, config in configs.items():
        rows.append(f"request\tlibrary-{name}\t1\tconfig={config}\tworkspace={ground.workspace}")
        rows.append("\t".join(map(str, ["spawn", f"cli-{name}", 1, ground.cordon, "run", "--quiet", "--workspace",
                                        ground.workspace, "--config", config, "--"])))
    data = {"HOME": str(ground.memory), "XDG_DATA_HOME": str(ground.memory)}
    found = ground.measure(ground.compile("commands", library="libcordon.a"), "times", runs, REST_US,
                           input="\n".join(rows) + "\n", env=data, prefix=[])
    absent = {name: why for name, why in found.items() if isinstance(why, str)}
    if absent:
        part.absent("control groups", "; ".join(f"{name} does not run here ({why})" for name, why in absent.items()))
        return part
    part.header = ["by", "without µs", "with µs", "adds µs"]
    for name, text in (("library", "library"), ("cli", "cordon run")):
        without, with_one = (found[f"no-op {name}-{kind}"][0] for kind in ("without", "with"))
        part.rows.append((text, without, with_one, with_one - without))
        part.goal(f"a control group adds, {text}", with_one - without, "≤", 150, "µs")
    return part


def measure_offline(ground, _peers, runs):
    """Without a network, name server and proxy answer at once; a command that asks neither pays for their listeners. By
    the program for tests, which can leave them out."""
    part = Part("offline", "What answers where there is no network")
    if not (BUILD / "cordon-unwalled").exists():
        part.absent("listeners", "the program for tests is not built")
        part.goal("no network, answered at once, adds", None, "≤", 150, "µs")
        return part
    program = ground.place / "cordon-unwalled"
    shutil.copy2(BUILD / "cordon-unwalled", program)
    rows = [f"subject\tno-op\t{ground.noop()}"]
    for name, out in (("with", ""), ("without", "offline_answers")):
        rows.append("\t".join(map(str, ["spawn", name, 1, "/usr/bin/env", f"CORDON_UNWALL={out}", program, "run",
                                        "--quiet", "--workspace", ground.workspace, "--"])))
    found = ground.measure(ground.compile("commands", library="libcordon.a"), "times", runs, REST_US,
                           input="\n".join(rows) + "\n")
    absent = {name: why for name, why in found.items() if isinstance(why, str)}
    if absent:
        part.absent("listeners", "; ".join(f"{name} does not run here ({why})" for name, why in absent.items()))
        return part
    without, with_them = found["no-op without"], found["no-op with"]
    part.header = ["", "without µs", "with µs", "adds µs"]
    part.rows = [(name, without[i], with_them[i], with_them[i] - without[i]) for i, name in enumerate(("p50", "p90"))]
    part.goal("no network, answered at once, adds", with_them[0] - without[0], "≤", 150, "µs")
    return part


@contextlib.contextmanager
def tinyproxy(ground):
    """Port and pid, or nothing where it is not installed. TINYPROXY names the program."""
    program = os.environ.get("TINYPROXY") or shutil.which("tinyproxy")
    if not program:
        yield []
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = ground.place / "tinyproxy.conf"
    config.write_text(f'Port {port}\nListen 127.0.0.1\nMaxClients 200\nTimeout 600\nLogLevel Critical\nLogFile "{ground.place}/log"\n')

    def answers():
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0
    process = subprocess.Popen([program, "-d", "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield [port, process.pid] if wait_until(answers, process) else []
    finally:
        process.terminate()
        process.wait()


def measure_relay(ground, _peers, runs):
    """Three programs share what two have in the direct case: the processors, too."""
    part = Part("relay", "Through the proxy, and over loopback directly")
    with tinyproxy(ground) as other:
        program = ground.compile("relay", "tests/support/proxy-process.c")
        proxy = ground.place / "cordon-proxy"
        shutil.copy2(BUILD / "cordon-proxy", proxy)
        found = ground.measure(program, proxy, *other, prefix=["setpriv", "--pdeathsig=KILL"])
    units = {"throughput": "GB/s", "cpu": "CPU-ms/GB", "set-up": "µs", "start": "µs", "memory": "kB"}
    texts = {"throughput": "throughput, connections: ", "cpu": "processor time, connections: ",
             "memory": "memory, connections: "}
    part.header = ["what", "way", "", "× direct"]
    for name, (value,) in found.items():
        what, way = name.split()
        kind, _, count = what.partition("-") if what != "set-up" else (what, "", "")
        direct = found.get(f"{what} direct")
        part.rows.append((texts[kind] + count if count else kind, way, f"{value:g} {units[kind]}",
                          value / direct[0] if direct and way != "direct" else "—"))
    for count in (1, 50):
        speed = found[f"throughput-{count} cordon-proxy"][0] / found[f"throughput-{count} direct"][0]
        part.goal(f"egress relay, connections: {count}", speed, "≥", 0.65, "× direct")
        part.goal(f"egress relay, connections: {count}, processor time", found[f"cpu-{count} cordon-proxy"][0], "≤",
                  150, "CPU-ms per GB")
    return part
