"""The limits on another kernel, where control groups of version 2 hold them: for root, and for an ordinary user by
delegation. Each is seen to be exceeded without it and to hold with it."""
import json

MB = 1 << 20  # a limit on memory may be exceeded by a page or two, for what the kernel cannot do without
PLACES = {"user": "/sys/fs/cgroup/user", "root": "/sys/fs/cgroup/system"}
# More than the limit, by each way there is to take memory.
KINDS = ["anonymous", "shared", "memfd", "/tmp/hog", "/dev/shm/hog"]

LEAVE = "cat /proc/self/cgroup; for file in $(find /sys/fs/cgroup -name 'cgroup.procs' -o -name '*.max'); do echo 0 >$file && echo wrote; done"

TAKE_DISK = "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=$i bs=1M count=1; sleep 0.3; done; rm *; echo had it"


class Bench:
    """Runs commands through cordon, and judges what their results say."""
    def __init__(self, steps, name, uid=None, top="/disk/work"):
        """uid: who is to work there, if not the caller."""
        self.steps, self.cases, self.number, self.uid = steps, [], 0, uid
        self.directory = f"{top}/{name}-{steps.who}"
        self.make(self.directory)
        self.env = {"PATH": "/usr/bin", "HOME": self.directory, "XDG_DATA_HOME": f"{self.directory}/data"}

    def make(self, directory):
        self.steps.shell(f"mkdir {directory}" + (f" && chown {self.uid}:{self.uid} {directory}" if self.uid else ""))

    def result(self, *words, unwall=None, before=()):
        """What cordon says as JSON: {} as long as there are no answers."""
        self.number += 1
        workspace = f"{self.directory}/w{self.number}"
        self.make(workspace)
        argv = ["cordon-unwalled" if unwall else "cordon", *words]
        _, output, errors = self.steps.step(argv, {**self.env, **({"CORDON_UNWALL": unwall} if unwall else {})},
                                            workspace, before=before)
        try:
            return json.loads(output)
        except ValueError:
            return {} if self.steps.answers is None else {"broken": output + errors}

    def run(self, *words, **more):
        return self.result("run", "--json", *words, **more)

    def case(self, name, told, *laws):
        """Each law holds of what was told; one that cannot even be asked does not."""
        wrong = None
        if self.steps.answers is not None:
            for number, law in enumerate(laws):
                try:
                    holds = law(told)
                except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
                    holds, wrong = False, f"{type(error).__name__}: {error}"
                if not holds:
                    wrong = f"law {number} does not hold{f' ({wrong})' if wrong else ''} of {json.dumps(told)[:6000]}"
                    break
        self.cases.append((name, wrong))


def share(told):
    return told["cpu_ms"] / told["duration_ms"]


def ask_memory(bench):
    for kind in KINDS:
        words = ["--memory", "16M", "--", "guest", "hog", kind, "24"]
        bench.case(f"memory, {kind}: taken without the limit", bench.run(*words, unwall="limit_memory"),
                   lambda told: told["exit_code"] == 0 and told["stdout"] == "had it\n")
        bench.case(f"memory, {kind}: held", bench.run(*words),
                   lambda told: told["isolation"]["limit_memory"] == "cgroup v2",
                   lambda told: told["exit_code"] != 0 and "had it" not in told["stdout"],
                   lambda told: told["oom_killed"] and told["limit_hit"] == "memory",
                   lambda told: (told["limit"]["name"], told["limit"]["unit"],
                                 told["limit"]["allowed"]) == ("memory", "bytes", 16 * MB),
                   lambda told: 12 * MB <= told["limit"]["used"] <= 17 * MB
                   and told["memory_peak_kb"] == told["limit"]["used"] // 1024)
    words = ["guest", "hog", "cached", "32"]
    bench.case("memory, page cache: taken where it may", bench.run("--memory", "128M", "--", *words),
               lambda told: told["exit_code"] == 0 and told["memory_peak_kb"] > 24 * 1024)
    bench.case("memory, page cache: held, and no reason to end it", bench.run("--memory", "16M", "--", *words),
               lambda told: told["exit_code"] == 0 and told["stdout"] == "had it\n" and not told["oom_killed"]
               and told["limit"] is None,
               lambda told: told["memory_peak_kb"] <= 17 * 1024)
    bench.case("being killed is not being out of memory", bench.run("--", "sh", "-c", "kill -9 $$"),
               lambda told: told["signal"] == 9 and not told["oom_killed"] and told["limit_hit"] is None)


def ask_others(bench):
    words = ["--processes", "20", "--", "guest", "crowd", "40"]
    bench.case("processes: made without the limit", bench.run(*words, unwall="limit_processes"),
               lambda told: told["stdout"] == "40\n")
    bench.case("processes: held", bench.run(*words),
               lambda told: told["isolation"]["limit_processes"] == "cgroup v2" and told["stdout"] == "19\n",
               lambda told: [denial["wall"] for denial in told["denials"]] == ["limit_processes"])
    words = ["--cpu", "20", "--", "guest", "busy", "400"]  # long beside what it takes to begin
    bench.case("processor: used without the limit", bench.run(*words, unwall="limit_cpu"),
               lambda told: share(told) > 0.35)
    bench.case("processor: held", bench.run(*words),
               lambda told: told["isolation"]["limit_cpu"] == "cgroup v2" and told["exit_code"] == 0
               and share(told) < 0.3)
    words = ["--disk", "2M", "--", "sh", "-c", TAKE_DISK]
    bench.case("disk space: taken without the limit", bench.run(*words, unwall="limit_disk"),
               lambda told: told["stdout"] == "had it\n")
    bench.case("disk space: held", bench.run(*words),
               lambda told: told["isolation"]["limit_disk"].startswith("watched") and "had it" not in told["stdout"],
               lambda told: told["limit_hit"] == "disk" and 2 * MB < told["limit"]["used"]
               and told["limit"]["allowed"] == 2 * MB)
    bench.case("a group is left by nobody", bench.run("--view", "host-readonly", "--", "sh", "-c", LEAVE),
               lambda told: told["stdout"] == "0::/\n")


def ask_kernel_memory(bench):
    """What the kernel keeps for a command is the command's: it is ended, or its senders are held back."""
    for kind in ("pipes", "unix", "tcp"):
        words = ["--memory", "16M", "--", "guest", "hold", kind, "24"]
        bench.case(f"memory, {kind}: taken without the limit", bench.run(*words, unwall="limit_memory"),
                   lambda told: told["stdout"] == "had it\n")
        bench.case(f"memory, {kind}: held", bench.run(*words),
                   lambda told: told["exit_code"] != 0 and "had it" not in told["stdout"]
                   and told["memory_peak_kb"] <= 17 * 1024,
                   lambda told, kind=kind: kind == "tcp" or told["limit_hit"] == "memory")


def ask_bomb(bench):
    bench.case("a fork bomb is held, and ended",
               bench.run("--processes", "24", "--timeout", "1s", "--", "guest", "bomb"), lambda told: told["timed_out"]
               and told["limit_hit"] == "time",
               lambda told: [denial["wall"] for denial in told["denials"]] == ["limit_processes"])


def ask_required(bench):
    bench.steps.shell(f"echo 'limits.required = [\"memory\", \"processes\", \"cpu\"]' >{bench.directory}/required")
    bench.steps.shell(f"(cat {bench.directory}/required; echo 'limits.cgroup = \"none\"') >{bench.directory}/without")
    bench.case("what is required holds", bench.run("--config", f"{bench.directory}/required", "--", "true"),
               lambda told: told["exit_code"] == 0)
    bench.case("what is required and does not hold is refused",
               bench.run("--config", f"{bench.directory}/without", "--", "true"),
               lambda told: told["error"]["class"] == "spawn_sandbox_unavailable"
               and told["error"]["boundary"] == "limit_memory")


def ask_sweep(bench):
    """A cordon that is killed leaves a group, which the next one removes as soon as it is empty."""
    workspace = f"{bench.directory}/swept"
    bench.make(workspace)
    script = f"""left() {{ ls -d {PLACES[bench.steps.who]}/cordon-$pid-* 2>/dev/null; }}
        cordon run --quiet -c 'echo up; exec sleep 60' >up & pid=$!
        tries=1000; until grep -q up up || [ $((tries -= 1)) = 0 ]; do usleep 10000; done
        left; kill -9 $pid
        tries=50; while left >/dev/null && [ $((tries -= 1)) -gt 0 ]; do cordon run --quiet -- true; done
        left || echo swept"""
    told = bench.steps.step(["sh", "-c", script], bench.env, workspace)
    bench.case("what a killed cordon left is swept", told, lambda told: len(told[1].split()) == 2
               and told[1].split()[1] == "swept")


def ask_doctor(bench, release):
    place = PLACES[bench.steps.who]
    bench.case("the doctor knows this machine", bench.result("doctor", "--json"),
               lambda told: told["kernel"].startswith("{}.{}.".format(*release))
               and told["default_driver"] == "namespaces",
               lambda told: told["holds"],
               lambda told: told["landlock_abi"] == {(6, 1): 2, (6, 12): 6}[release],
               lambda told: (told["limits"]["mechanism"], told["limits"]["place"]) == ("cgroup v2", place),
               lambda told: told["limits"]["holds"] == ["limit_memory", "limit_processes", "limit_cpu"])


def ask(steps, _, release):
    bench = Bench(steps, "limits")
    ask_doctor(bench, release)
    ask_memory(bench)
    ask_others(bench)
    if steps.who == "user":
        ask_required(bench)
    else:
        ask_bomb(bench)
    ask_sweep(bench)
    _, rows, _ = steps.step(["sh", "-c", f"cat {bench.directory}/data/cordon/ledger/*.jsonl"], bench.env, "/")
    ended = [("memory", 16 * MB)] * len(KINDS) + [("disk", 2 * MB)] + [("time", 1000)] * (steps.who == "root")
    bench.case("the ledger has each limit that ended a command", rows, lambda rows: ended == [
        (row["limit"], row["allowed"]) for row in map(json.loads, rows.splitlines()) if row["row"] == "limit"])
    lines = steps.after("list", PLACES[steps.who])
    bench.case("no group is left behind", lines, lambda lines: "session" in lines
               and not any(line.startswith("cordon") for line in lines))
    if steps.who == "user":
        ask_kernel_memory(bench)
    return bench.cases


def ask_briefly(steps, *_):
    """Where the machine is slow: one attempt for each limit."""
    if steps.who != "user":
        return []
    bench = Bench(steps, "limits")
    words = ["--memory", "16M", "--", "guest", "hog", "anonymous", "24"]
    bench.case("memory: taken without the limit", bench.run(*words, unwall="limit_memory"),
               lambda told: told["stdout"] == "had it\n")
    bench.case("memory: held", bench.run(*words),
               lambda told: told["isolation"]["limit_memory"] == "cgroup v2" and told["oom_killed"]
               and told["limit_hit"] == "memory")
    ask_others(bench)
    return bench.cases
