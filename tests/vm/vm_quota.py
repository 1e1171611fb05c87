"""Disk space that the filesystem itself holds: a disk in the guest has quotas for projects. Only root may set them."""
from vm_limits import MB, Bench

PLACE = "/quota"
DISK = ["-q", "-O", "quota,project", "-E", "quotatype=prjquota", "-N", "4096"]
DISK_MB = 24
FILL = "dd if=/dev/zero of=big bs=64k count=128 && echo had it; stat -c %s big"
CROWD = "i=0; while [ $i -lt 2000 ] && touch f$i 2>/dev/null; do i=$((i + 1)); done; echo $i; rm f*"


def filled(told):
    return int(told["stdout"].split()[-1])


def ask_root(bench):
    words = ["--disk", "2M", "--", "sh", "-c", FILL]
    bench.case("quota: taken without the limit", bench.run("--session", "free", *words, unwall="limit_disk"),
               lambda told: told["stdout"].startswith("had it\n") and filled(told) == 8 * MB)
    bench.case("quota: held, and who writes is told", bench.run("--session", "full", *words),
               lambda told: told["isolation"]["limit_disk"] == "project quota",
               lambda told: "had it" not in told["stdout"] and "uota exceeded" in told["stderr"],
               lambda told: told["signal"] == 0 and told["limit_hit"] is None and MB < filled(told) <= 2 * MB,
               lambda told: [denial["wall"] for denial in told["denials"]] == ["limit_disk"])
    bench.case("quota: another session has its own",
               bench.run("--session", "other", "--disk", "4M", "--", "sh", "-c", FILL),
               lambda told: 3 * MB < filled(told) <= 4 * MB)
    bench.case("quota: what is removed makes room",
               bench.run("--session", "full", "--disk", "2M", "-c", "rm big && echo more >small && cat small"),
               lambda told: told["stdout"] == "more\n" and not told["denials"])
    bench.case("quota: a limit that was raised", bench.run("--session", "full", "--disk", "3M", "--", "sh", "-c", FILL),
               lambda told: 2 * MB < filled(told) <= 3 * MB)
    bench.case("quota: many names", bench.run("--session", "crowd", "--disk", "2M", "--", "sh", "-c", CROWD),
               lambda told: 400 < int(told["stdout"]) <= 512)
    required = f"{bench.directory}/required"
    bench.steps.shell(f"echo 'limits.required = [\"disk\"]' >{required}")
    bench.case("quota: it is as good as required",
               bench.run("--config", required, "--session", "required", "--", "true"),
               lambda told: told["exit_code"] == 0 and told["isolation"]["limit_disk"] == "project quota")


def ask(steps, *_):
    bench = Bench(steps, "quota", top=PLACE)
    if steps.who == "root":
        ask_root(bench)
    else:
        bench.case("quota: not for an ordinary user to set", bench.run("--session", "mine", "--", "true"),
                   lambda told: told["isolation"]["limit_disk"].startswith("watched"))
    bench.case("quota: a directory that was named stays as it is", bench.run("--", "true"),
               lambda told: told["isolation"]["limit_disk"].startswith("watched"))
    return bench.cases
