"""The machine around the tests: the ordinary user, a place that this user can read, and what was left behind."""
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

USER = f"cordon-test-{os.getpid()}"  # several runs of the suite may be beside each other


class Account:
    """The ordinary user: our caller if it is one, else one that is made for the run and removed after."""
    def __init__(self):
        self.made = False
        if os.geteuid() != 0:
            self.entry = pwd.getpwuid(os.geteuid())
            self.prefix = []
            return
        try:
            self.entry = pwd.getpwnam(USER)
        except KeyError:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", USER], check=True, capture_output=True)
            self.made = True
            self.entry = pwd.getpwnam(USER)
        self.prefix = ["setpriv", f"--reuid={USER}", f"--regid={self.entry.pw_gid}", "--init-groups",
                       "--inh-caps=-all", "--reset-env", "--"]

    def remove(self):
        """An error text, or None."""
        if not self.made:
            return None
        done = subprocess.run(["userdel", "--remove", USER], capture_output=True, text=True)
        noise = "mail spool"  # userdel's only complaint about a user that never had mail
        errors = [line for line in done.stderr.splitlines() if noise not in line]
        return None if done.returncode in (0, 12) and not errors else f"userdel: {done.returncode} {errors}"


def stage(root, account, build, build_files):
    """Where `account` can read and run what was built: the checkout itself, or a copy where a parent is closed to
    it."""
    wanted = [root / "tests/run", *(root / build / name for name in build_files)]
    if all(subprocess.run([*account.prefix, "test", "-r", str(path)]).returncode == 0 for path in wanted):
        return root, None
    place = pathlib.Path(tempfile.mkdtemp(prefix="cordon-suite-"))
    for name in ("tests", "include", "src", "bench", "docs", "examples", "packaging"):
        shutil.copytree(root / name, place / name, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    for name in build_files:
        (place / build / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / build / name, place / build / name)
    subprocess.run(["chmod", "-R", "u=rwX,go=rX", str(place)], check=True)
    return place, place


def footprint():
    """What tests could leave on the machine, as comparable sets. Only what carries our name, since others live here."""
    mounts = {" ".join(line.split()[3:5]) for line in open("/proc/self/mountinfo") if "cordon" in line or USER in line}
    places = [("/tmp", "cordon*"), ("/var/tmp", "cordon*"), ("/dev/shm", "cordon*"), ("/run", "cordon*")]
    files = {str(path) for place, pattern in places for path in pathlib.Path(place).glob(pattern)}
    # Other runs remove groups meanwhile, which os.walk() passes over.
    groups = {os.path.join(place, name) for place, names, _ in os.walk("/sys/fs/cgroup")
              for name in names if name.startswith("cordon")}
    return {"mounts": mounts, "files": files, "cgroups": groups}


def is_of_another(group):
    """A control group is named after its supervisor (cordon-PID-ID): one that lives, and is none of ours, is
    another's."""
    pid = os.path.basename(group).split("-")[1:2]
    return bool(pid) and pid[0].isdigit() and os.path.isdir(f"/proc/{pid[0]}")


def other_runs():
    """The processes of other runs of the suite: what they make cannot be told from what we leave."""
    mine, found, parent = os.getpid(), set(), {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
            parent[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if len(command) > 1 and b"python" in command[0] and command[1].endswith(b"tests/run"):
            found.add(int(entry.name))

    def is_beneath(pid, top):
        while pid > 1 and pid != top:
            pid = parent.get(pid, 0)
        return pid == top
    return {pid for pid in found if not is_beneath(pid, mine) and not is_beneath(mine, pid)}
