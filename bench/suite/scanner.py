"""The scanner for secrets: how fast it is beside Hyperscan and ripgrep, what it adds to a command that prints much, and
how often it takes something for a secret."""
import base64
import os
import resource
import shutil
import subprocess

from commands import REST_US
from ground import ROOT
from report import Part

SCANNER = [f"src/secrets/{name}.c" for name in ("filter", "kinds", "layers", "prefilter-avx2", "prefilter", "scan",
                                                "set", "shapes")]
TEXT_BYTES = 64 << 20
NEAR_MISSES = b"sk-ant-sk-sk-"
LEAST_S = 0.2  # of processor time, so that the clock's ticks do not count
SIZES = {"1 MiB": 1 << 20, "100 MiB": 100 << 20}


def collect_text(place):
    """What people's machines are full of: documentation, headers, scripts."""
    left = TEXT_BYTES
    with open(place, "wb") as out:
        for top in ("/usr/share/doc", "/usr/include", "/usr/share/perl", "/usr/lib/python3", "/usr/share"):
            for directory, _, names in os.walk(top):
                for name in names:
                    path = os.path.join(directory, name)
                    if left <= 0:
                        return
                    if not name.endswith((".gz", ".so", ".pyc")) and os.path.isfile(path) and os.access(path, os.R_OK):
                        with open(path, "rb") as source:
                            left -= out.write(source.read(1 << 20))


def children_s():
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def ripgrep_rate(path, runs):
    """GB a second of processor time, searching for the same prefixes and shapes; the best of several."""
    pattern = (r"sk-(ant|or|proj)-[\w-]{24}|gh[posur]_[A-Za-z0-9]{36}|github_pat_\w{36}|glpat-[\w-]{20}|AIza[\w-]{35}|A[KS]IA[A-Z0-9]{16}"
               r"|xox[abprs]-[\w-]{20}|-----BEGIN [A-Z ]*PRIVATE KEY|npm_[A-Za-z0-9]{36}|[sr]k_(live|test)_[A-Za-z0-9]{16}")
    best = 0
    for _ in range(runs):
        before, times = children_s(), 0
        while times == 0 or children_s() - before < LEAST_S:
            subprocess.run(["rg", "--no-config", "--text", "--threads", "1", "--no-unicode", "--count", pattern, path],
                           stdout=subprocess.DEVNULL)
            times += 1
        best = max(best, times * os.path.getsize(path) / (children_s() - before) / 1e9)
    return best


def measure_speed(ground, _peers, runs):
    """On one processor, by processor time; Hyperscan and ripgrep with the same patterns where they are installed."""
    part = Part("secrets", "The scanner for secrets, GB a second")
    path, rounds = ground.memory / "text", max(3, runs // 50)
    collect_text(path)
    has_hyperscan = os.path.exists("/usr/include/hs/hs.h")
    program = ground.compile("secrets", *SCANNER, "src/base/utf8.c", *(["-lhs"] if has_hyperscan else []),
                             options=["-DHYPERSCAN"] if has_hyperscan else [])
    near = ground.memory / "near"
    near.write_bytes(NEAR_MISSES * (1 << 20))
    encoded = ground.memory / "encoded"
    encoded.write_bytes(base64.b64encode(path.read_bytes()[:32 << 20]))
    found = {name: ground.measure(program, "speed", rounds, place) for name, place in
             (("text", path), ("base64", encoded), ("near misses", near))}
    part.header = ["what", *found]
    part.rows = [(way, *(found[name][way][0] for name in found)) for way in found["text"]]
    if shutil.which("rg"):
        part.rows.append(("ripgrep, raw layer", *(ripgrep_rate(place, rounds) for place in (path, encoded, near))))
    else:
        part.absent("ripgrep", "not installed")
    if not has_hyperscan:
        part.absent("hyperscan", "libhyperscan-dev is not installed")

    def against_hyperscan(what):
        return found[what]["raw layer"][0] / found[what]["hyperscan, raw layer"][0] if has_hyperscan else None
    part.goal("secrets, raw layer on text", found["text"]["raw layer"][0], "≥", 10, "GB/s")
    part.goal("secrets, raw layer on text, against Hyperscan", against_hyperscan("text"), "≥", 2, "×")
    part.goal("secrets, raw layer on near misses, against Hyperscan", against_hyperscan("near misses"), "≥", 0.8, "×")
    return part


def measure_added(ground, _peers, runs):
    """A command that prints text, by the library: with the scanner, and with one put in its place that finds nothing
    and holds nothing back. Two programs, by turns; the best of several medians each."""
    part = Part("scanning", "What the search for secrets adds to a command that prints")
    rounds, times = max(1, runs // 150), max(3, runs // 30)
    programs = {"": ground.compile("commands", library="libcordon-core.a", called="scanned"),
                "not searched": ground.compile("commands", "bench/unscanned.c", library="libcordon-core.a",
                                               called="unscanned", options=["-Wl,--wrap=secret_scan"])}
    rows = []
    collect_text(ground.memory / "text")
    text = (ground.memory / "text").read_bytes()
    for name, size in SIZES.items():
        place = ground.workspace / name.replace(" ", "")
        place.write_bytes((text * (size // len(text) + 1))[:size])
        rows.append(f"subject\t{name}\t/bin/cat\t{place}")
    rows += [f"request\t{action}\t1\tworkspace={ground.workspace}\tsecrets={action}" for action in ("report", "redact")]
    best = {}
    for _ in range(rounds):
        for searched, program in programs.items():
            for way, found in ground.measure(program, "times", times, REST_US, input="\n".join(rows) + "\n").items():
                if isinstance(found, str):
                    raise RuntimeError(found)
                size, action = way.rsplit(" ", 1)
                key = size, searched or action
                best[key] = min(best.get(key, found[0]), found[0])
    part.header = ["it prints", "output is", "ms", "adds ms"]
    for (size, action), value in best.items():
        part.rows.append((size, action, value / 1000,
                          "—" if action == "not searched" else (value - best[size, "not searched"]) / 1000))
    for name in SIZES:
        (ground.workspace / name.replace(" ", "")).unlink()
    return part


def measure_false(_ground, _peers, _runs):
    """In text that is no secret, but for the keys that documentation shows and tests have."""
    part = Part("false", "What is taken for a secret in real text")
    told = subprocess.run([ROOT / "tools/secrets-rate"], capture_output=True, text=True, check=True).stdout
    lines = [line.split("\t") for line in told.splitlines()]
    part.header = ["where", "what", "number"]
    part.rows = [(where, what, float(number)) for where, what, number in lines]
    part.goal("taken for a secret, in 100 MB of text", part.rows[-1][2], "≤", 1, "")
    return part
