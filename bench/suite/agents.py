"""What the doors for agents cost: cordon mcp beside `cordon version` and beside the library, many calls at once, and
the hook."""
import json
import statistics
import subprocess
import time

from commands import REST_US
from report import Part

AT_ONCE = 200
ROUNDS = 9
QUESTION = {"session_id": "bench", "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": "ls"}}


class Server:
    """cordon mcp, of the legacy era."""
    def __init__(self, ground, *options):
        self.process = subprocess.Popen([*ground.prefix, ground.cordon, "mcp", *options], env=ground.env,
                                        cwd=ground.workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.number = 0
        self.call("initialize", protocolVersion="2025-11-25", capabilities={},
                  clientInfo={"name": "bench", "version": "1"})

    def send(self, method, **params):
        self.number += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method,
                                             "params": params}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def call(self, method, **params):
        self.send(method, **params)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def percentiles(times):
    times.sort()
    return [times[min(len(times) - 1, len(times) * percent // 100)] * 1e6 for percent in (50, 90, 99)]


def timed(act, *arguments):
    begun = time.perf_counter()
    act(*arguments)
    return time.perf_counter() - begun


def measure_starts(ground, runs):
    """{name: [p50, p90, p99]}, by turns."""
    quiet = {"env": ground.env, "cwd": ground.workspace, "stdout": subprocess.DEVNULL, "check": True}
    question = json.dumps({**QUESTION, "cwd": str(ground.workspace)}).encode()
    found = {"version": [], "mcp, first answer": [], "hook": []}
    for _ in range(runs):
        found["version"].append(timed(lambda: subprocess.run([*ground.prefix, ground.cordon, "version"], **quiet)))
        begun = time.perf_counter()
        server = Server(ground)
        found["mcp, first answer"].append(time.perf_counter() - begun)
        server.close()
        found["hook"].append(timed(lambda: subprocess.run([*ground.prefix, ground.cordon, "hook"], input=question,
                                                          **quiet)))
    return {name: percentiles(times) for name, times in found.items()}


def measure_calls(ground, runs):
    server = Server(ground)
    call = {"name": "shell", "arguments": {"command": ":"}}
    server.call("tools/call", **call)  # the session is made, and its sandbox
    times = []
    for _ in range(runs):
        time.sleep(REST_US / 1e6)
        times.append(timed(lambda: server.call("tools/call", **call)))
    server.close()
    return percentiles(times)


def count_errors(ground):
    server = Server(ground, "--processes", "1000")
    for _ in range(AT_ONCE):
        server.send("tools/call", name="exec", arguments={"argv": ["true"]})
    answers = [server.answer() for _ in range(AT_ONCE)]
    server.close()
    return sum(answer.get("result", {}).get("structuredContent", {}).get("exit_code") != 0 for answer in answers)


def measure_library(ground, runs):
    rows = ["subject\tbash\t/bin/bash\t-c\t:", f"request\tlibrary\t1\tsession=bench\tworkspace={ground.workspace}"]
    found = ground.measure(ground.compile("commands", library="libcordon.a"), "times", runs, REST_US,
                           input="\n".join(rows) + "\n")["bash library"]
    if isinstance(found, str):
        raise RuntimeError(f"the library runs nothing in a session: {found}")
    return found


def measure_agents(ground, _peers, runs):
    part = Part("agents", "The doors for agents")
    found = measure_starts(ground, runs)
    # By turns, since a machine that others use is not the same from one second to the next.
    rounds = [(measure_library(ground, max(3, runs // ROUNDS)), measure_calls(ground, max(3, runs // ROUNDS)))
              for _ in range(ROUNDS)]
    library, shell = ([statistics.median(each) for each in zip(*times)] for times in zip(*rounds))
    errors = count_errors(ground)
    part.header = ["what", "p50 µs", "p90 µs", "p99 µs"]
    part.rows = [*((f"`cordon {name}`" if name != "mcp, first answer" else "`cordon mcp`, start to first answer",
                    *times)
                   for name, times in found.items()),
                 ("`bash -c :` in a session, library", *library), ("the same, `shell` of `cordon mcp`", *shell)]
    part.goal("`cordon mcp`, start to first answer", found["mcp, first answer"][0] / found["version"][0], "≤", 3,
              "× cordon version")
    part.goal("`shell` of `cordon mcp`", statistics.median(ours[0] / bare[0] for bare, ours in rounds), "≤", 1.5,
              "× library, session")
    part.goal(f"errors of {AT_ONCE} calls at once", errors, "≤", 0, "")
    part.goal("`cordon hook`", found["hook"][0] / 1000, "≤", 20, "ms")
    return part
