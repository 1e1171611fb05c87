"""Results as Markdown: the machine, the goals, and a table for each part."""
import datetime
import os
import pathlib
import platform
import re
import subprocess


class Part:
    """What one part of the suite found: goals, and a table."""
    def __init__(self, name, title):
        self.name, self.title = name, title
        self.header, self.rows, self.notes, self.goals = [], [], [], []
        self.times, self.condition = {}, ""  # {(subject, way): [p50, p90, p99]}, for the chart; "idle" or "busy"

    def goal(self, what, value, sign, bound, unit):
        """`value` None: not measured."""
        met = None if value is None else value <= bound if sign == "≤" else value >= bound
        self.goals.append((what, "—" if value is None else f"{number(value)} {unit}".rstrip(),
                           f"{sign} {number(bound)} {unit}".rstrip(),
                           {True: "met", False: "**NOT MET**", None: "not measured"}[met]))

    def absent(self, what, why):
        self.notes.append(f"{what}: {why}")


def number(value):
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}" if abs(value) >= 20 else f"{value:.2f}"


def table(header, rows):
    """Columns of numbers to the right."""
    right = [any(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("---:" if each else "---" for each in right) + "|"]
    return lines + ["| " + " | ".join(number(cell) for cell in row) + " |" for row in rows]


def goals_table(parts):
    rows = [goal for part in parts for goal in part.goals]
    return ["| what | measured | goal | |", "|---|---:|---:|---|",
            *("| " + " | ".join(row) + " |" for row in rows)] if rows else []


# ---- the machine -----------------------------------------------------------------------------------------------------

def load():
    return f"{os.getloadavg()[0]:.2f}"


def grep(path, pattern, otherwise="unknown"):
    found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    return found.group(1).strip() if found else otherwise


def version(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError:
        return None
    return (done.stdout.strip().splitlines() or [""])[0] if done.returncode == 0 else None


def filesystem(path):
    return version("stat", "-f", "-c", "%T", str(path)) or "unknown"


def describe_machine(ground, load_before, peers):
    memory = int(grep("/proc/meminfo", r"MemTotal:\s+(\d+)", "0")) / 1024 / 1024
    who = "an ordinary user (started by root)" if os.geteuid() == 0 else "an ordinary user"
    return [
        f"- {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {version(ground.cordon, '--version') or 'cordon'}",
        f"- Linux {platform.release()}, {platform.machine()}; {os.cpu_count()} processors, "
        f"{grep('/proc/cpuinfo', r'^model name.*: (.*)$')}; {memory:.0f} GB of memory",
        f"- {len(pathlib.Path('/proc/self/mountinfo').read_text().splitlines())} mounts; cordon's data on {filesystem(ground.data.parent)}",
        f"- load {load_before} before and {load()} after; run by {who}"
        + ("" if os.sched_getscheduler(0) == os.SCHED_OTHER else ", at real-time priority because of the load"),
        f"- beside: {', '.join(peers) or 'no other sandbox'}",
    ]


def markdown(parts, machine, settings, chart):
    missed = sum("NOT MET" in goal[3] for part in parts for goal in part.goals)
    total = sum("not measured" not in goal[3] for part in parts for goal in part.goals)
    lines = ["# Results of `make bench`", "",
             "Ratios travel; microseconds do not. What is measured and how: [docs/PERFORMANCE.md](../../docs/PERFORMANCE.md).", "",
             *machine, f"- {settings}", ""]
    if chart:
        lines += [f"![what one command costs, beside a bare start]({chart})", ""]
    if any(part.goals for part in parts):
        lines += [f"## Goals: {total - missed} of {total} met", "", *goals_table(parts), ""]
    for part in parts:
        lines += [f"## {part.title}", ""]
        if part.rows:
            lines += [*table(part.header, part.rows), ""]
        lines += [f"- {note}" for note in part.notes] + ([""] if part.notes else [])
    return "\n".join(lines).rstrip() + "\n"
