"""Machines that lack something: what is refused there, with which remedy, and what is said to hold."""
from vm_limits import Bench

USER = ["guest", "as", "1000"]
REFUSED = "spawn_sandbox_unavailable"


def refuses(boundary, remedy):
    """Laws of a refusal."""
    return (lambda told: told["error"]["class"] == REFUSED and told["error"]["boundary"] == boundary,
            lambda told: remedy in told["error"]["remediation"])


def driver_of(told, name):
    return next(driver for driver in told["drivers"] if driver["name"] == name)


def ask_without_user_namespaces(steps, *_):
    """Two ways to switch them off. Only root can; both are about an ordinary user."""
    if steps.who != "root":
        return []
    bench = Bench(steps, "userns", uid=1000)
    for setting, off, on in (("user.max_user_namespaces", 0, 10000), ("kernel.unprivileged_userns_clone", 0, 1)):
        steps.shell(f"sysctl -qw {setting}={off}")
        bench.case(f"{setting}={off}: the namespaces driver refuses, and says what to do",
                   bench.run("--driver", "namespaces", "--", "true", before=USER), *refuses("user_namespaces", setting))
        bench.case(f"{setting}={off}: nothing is run behind less", bench.run("--", "true", before=USER),
                   *refuses("user_namespaces", setting))
        bench.case(f"{setting}={off}: the doctor says so", bench.result("doctor", "--json", before=USER),
                   lambda told: not told["holds"] and not driver_of(told, "namespaces")["works"],
                   lambda told, setting=setting: setting in driver_of(told, "namespaces")["error"]["remediation"])
        steps.shell(f"sysctl -qw {setting}={on}")
    bench.case("user namespaces are on again", bench.run("--", "true", before=USER),
               lambda told: told["exit_code"] == 0)
    return bench.cases


def ask_without_landlock(steps, *_):
    bench = Bench(steps, "landlock")
    bench.case("a run without Landlock says so", bench.run("--", "true"),
               lambda told: told["exit_code"] == 0 and told["isolation"]["filesystem_second"] == "none",
               lambda told: told["isolation"]["filesystem"] == "mount namespace")
    bench.case("the landlock driver refuses, and says what to do", bench.run("--driver", "landlock", "--", "true"),
               *refuses("filesystem", "lsm="))
    bench.case("a list of programs is refused", bench.run("--program", "/bin/sh", "--", "sh", "-c", "/usr/bin/true"),
               lambda told: told["error"]["class"] == REFUSED and "lsm=" in told["error"]["remediation"])
    bench.case("the doctor says so", bench.result("doctor", "--json"),
               lambda told: told["landlock_abi"] == 0 and told["default_driver"] == "namespaces",
               lambda told: any(wall["wall"] == "filesystem_second" and not wall["holds"] and "lsm=" in wall["fix"]
                                for wall in driver_of(told, "namespaces")["walls"]))
    return bench.cases


def ask_without_memory(steps, *_):
    bench = Bench(steps, "memory")
    words = ["--memory", "16M", "--", "guest", "hog", "anonymous", "24", "4"]
    bench.case("memory is taken without the limit", bench.run(*words, unwall="limit_memory"),
               lambda told: told["stdout"] == "had it\n")
    bench.case("memory is watched, and that is said", bench.run(*words),
               lambda told: told["exit_code"] != 0 and "had it" not in told["stdout"],
               lambda told: told["isolation"]["limit_memory"] == "watched every 50 ms",
               lambda told: told["oom_killed"] and told["limit_hit"] == "memory")
    bench.case("what the other controllers hold is held", bench.run("--processes", "20", "--", "guest", "crowd", "40"),
               lambda told: told["isolation"]["limit_processes"] == "cgroup v2" and told["stdout"] == "19\n")
    bench.case("the doctor says so", bench.result("doctor", "--json"),
               lambda told: told["limits"]["mechanism"] == "cgroup v2" and "limit_processes" in told["limits"]["holds"],
               lambda told: "limit_memory" not in told["limits"]["holds"])
    return bench.cases
