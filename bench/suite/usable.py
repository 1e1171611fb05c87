"""Does the machine stay usable? While a fork bomb, a memory hog and a disk fill run in one session, each at its limits,
small commands run in another."""
import pathlib
import signal
import subprocess
import tempfile
import time

from report import Part

GOAL = 3
BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
# Each goes on until it is ended, and is held by a limit all the time.
HOGS = {
    "fork bomb": ["--", "/usr/bin/python3", "-c", BOMB],
    "memory hog": ["--memory", "256M", "-c",
                   "while :; do dd if=/dev/zero of=/dev/null bs=400M count=1 status=none; done"],
    "disk fill": ["--disk", "256M", "-c", "while :; do dd if=/dev/zero of=file bs=1M count=192 status=none; done"],
}


def sample(argv, env, runs):
    """p50, p90 and p99, in milliseconds."""
    took = []
    for i in range(-5, runs):
        begin = time.perf_counter()
        subprocess.run([*argv, "true"], env=env, check=True, stdin=subprocess.DEVNULL)
        took += [(time.perf_counter() - begin) * 1000] if i >= 0 else []
    took.sort()
    return [took[round((runs - 1) * share)] for share in (0.5, 0.9, 0.99)]


def measure_usable(ground, _peers, runs):
    """As the caller: limits on a whole tree of processes need a place for control groups."""
    part = Part("usable", "Small commands beside hogs of another session")
    place = pathlib.Path(tempfile.mkdtemp(prefix="usable.", dir=ground.place))
    env = {**ground.env, "HOME": str(place), "XDG_DATA_HOME": str(place / "data")}
    runs = max(3, runs * 2)
    argv = {}
    for name in ("small", "wild"):
        (place / name).mkdir()
        argv[name] = [ground.cordon, "run", "--quiet", "--session", name, "--workspace", place / name]
    small = [*argv["small"], "--"]
    hogs = []
    try:
        alone = sample(small, env, runs)
        for words in HOGS.values():
            hogs.append(subprocess.Popen([*argv["wild"], *words], env=env, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(1)
        beside = sample(small, env, runs)
        ended = [name for name, hog in zip(HOGS, hogs) if hog.poll() is not None]
    finally:
        for hog in hogs:
            hog.send_signal(signal.SIGTERM)
        for hog in hogs:
            hog.wait()
    part.header = ["", "p50 ms", "p90 ms", "p99 ms"]
    part.rows = [("alone", *alone), ("beside a fork bomb, a memory hog and a disk fill", *beside)]
    part.goal("small commands beside hogs, p99", beside[2] / alone[2], "≤", GOAL, "× alone")
    if ended:
        part.absent("ended before the end of it", ", ".join(ended))
    return part
