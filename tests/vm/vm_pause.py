"""A paused session on another kernel, where control groups of version 2 make what runs stand still: for root, and for
an ordinary user by delegation. What is counted is what a command does."""
import json

from vm_limits import PLACES, Bench

# `still`: soon, and then for longer than it takes to notice a pause. Nothing here takes for ever.
WORDS = """size() { wc -c <count; }
    until_() { tries=3000; until $* || [ $((tries -= 1)) = 0 ]; do usleep 10000; done; }
    grown() { [ $(size) -gt $from ]; }
    on() { from=$(size); until_ grown; grown && echo on; }
    still() { for try in 1 2 3 4 5 6 7 8; do from=$(size); sleep 1; [ $(size) = $from ] && echo still && return; done; echo goes on; }
    begin() { : >count; cordon run --json --session $name --workspace $PWD $* -c "(while :; do echo x >>count; usleep 10000; done) &
        while :; do echo x >>count; usleep 10000; done" >told & pid=$!; on; }
    pause() { cordon session pause $name && still; }
    alive() { grep -q . PLACE/cordon-$pid-*/cgroup.procs 2>/dev/null; }
    gone() { ! alive; }
    left() { ls -d PLACE/cordon-$pid-* 2>/dev/null; }
"""


def ask(steps, *_):
    bench = Bench(steps, "pause")

    def script(name, text):
        workspace = f"{bench.directory}/{name}"
        bench.make(workspace)
        words = f"name={name}\n" + WORDS.replace("PLACE", PLACES[steps.who]) + text
        _, output, errors = steps.step(["sh", "-c", words], bench.env, workspace)
        return {"words": output.split("\n")[:-1], "errors": errors}
    bench.case("paused, it stands still, and goes on when it is resumed",
               script("resumed", "begin; pause; cordon session resume $name; on; pause; cordon session resume $name; on; kill $pid; wait $pid; left"),
               lambda told: told["words"] == ["on", "still", "on", "still", "on"])
    bench.case("paused, it is killed with its session, and does nothing before",
               script("ended", "begin; pause; cordon session end $name; wait $pid; size; echo $from; cat told; left"),
               lambda told: told["words"][:2] == ["on", "still"] and told["words"][2] == told["words"][3]
               and len(told["words"]) == 5,
               lambda told: json.loads(told["words"][4])["signal"] == 9
               and json.loads(told["words"][4])["paused_ms"] > 0)
    if steps.who == "root":
        bench.case("paused, its time goes on",
                   script("timed", "begin --timeout 12s; pause; wait $pid; size; echo $from; cat told; left"),
                   lambda told: told["words"][:2] == ["on", "still"] and told["words"][2] == told["words"][3]
                   and len(told["words"]) == 5,
                   lambda told: json.loads(told["words"][4])["timed_out"])
    bench.case("paused, it ends with a caller that is killed",
               script("killed", """begin; pause; alive && echo alive; kill -9 $pid; until_ gone; gone && echo gone
                   size; echo $from; cordon session resume $name
                   tries=50; while left >/dev/null && [ $((tries -= 1)) -gt 0 ]; do cordon run --quiet -- true; done; left || echo swept"""),
               lambda told: told["words"][:4] == ["on", "still", "alive", "gone"]
               and told["words"][4] == told["words"][5],
               lambda told: told["words"][6:] == ["swept"])
    return bench.cases
