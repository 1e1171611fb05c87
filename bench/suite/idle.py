"""Sessions that have run a command and are idle: how long they take to make, what each holds of memory, and whether a
command notices the others."""
import os
import subprocess
import time

import watch
from ground import parse
from report import Part

FEW, MANY = 1000, 2000
KERNEL = ["SUnreclaim", "KernelStack", "PageTables", "Percpu"]


class Idle:
    """bench/idle.c, asked line by line."""
    def __init__(self, ground):
        # In memory: on a disk it is the records of the sessions that take their time, each of which is synced.
        self.process = subprocess.Popen([*ground.prefix, ground.compile("idle", library="libcordon.a")], text=True,
                                        env={**ground.env, "XDG_DATA_HOME": str(ground.memory / "idle")},
                                        cwd=ground.place, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"idle ended at: {line}")
        return next(iter(parse(answer).values()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def memory(pid):
    """What is left of memory, what the kernel has of it, the share of all processes of `pid` (None: unknown), all in
    kB."""
    time.sleep(1)  # what was freed a moment ago comes back
    shares = [watch.pss_kb(each) for each in [pid, *watch.below(pid)]]
    return watch.memory_kb("MemAvailable"), {key: watch.memory_kb(key) for key in KERNEL}, \
        None if None in shares else sum(shares)


def measure_idle(ground, _peers, runs):
    part = Part("idle", "Sessions that do nothing, their records in memory")
    few, many = (int(os.environ.get("BENCH_IDLE", MANY)) * share // 2 for share in (1, 2))
    idle = Idle(ground)
    try:
        idle.ask("make 1")
        alone = idle.ask(f"exec {max(10, runs * 3)} 1")
        free, kernel, share = memory(idle.process.pid)
        seconds = idle.ask(f"make {few + 1}")[0]
        idle.ask(f"make {many + 1}")
        free_after, kernel_after, share_after = memory(idle.process.pid)
        same = idle.ask(f"exec {max(10, runs * 3)} 1")
        crowded = idle.ask(f"exec {max(10, runs * 3)} {many + 1}")
    finally:
        idle.close()
    part.header = ["`/bin/true` in one of them", "p50 µs", "p90 µs", "p99 µs"]
    part.rows = [("the only one", *alone), (f"the same, beside {many:,}", *same),
                 (f"one of {many:,}, at random", *crowded)]
    taken = (free - free_after) / many
    per_gb, growth = (1024 * 1024 / taken if taken > 0 else None), (same[2] / alone[2], crowded[2] / alone[2])
    each = None if None in (share, share_after) else (share_after - share) / many
    part.notes.append(f"{few:,} were made in {seconds:.2f} s.")
    part.notes.append(f"Each took {taken:.0f} kB of what the machine had left (MemAvailable), of which the kernel's own: " + ", ".join(
        f"{key} {(kernel_after[key] - kernel[key]) / many:.0f} kB" for key in KERNEL) + ".")
    if each is None:
        part.absent("the share of memory of each (PSS)", "only root may read it")
    part.goal(f"{few:,} sessions made", seconds, "≤", 2 * few / FEW, "s")
    part.goal("memory of an idle session (PSS)", each, "≤", 40, "kB")
    part.goal("idle sessions, with the kernel's memory", per_gb, "≥", 2000, "per GB")
    part.goal(f"p99 in a session beside {many:,}", growth[0], "≤", 2, "× alone")
    part.goal(f"p99 in one of {many:,} sessions, at random", growth[1], "≤", 2, "× alone")
    return part
