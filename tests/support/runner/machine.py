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
    """Where `account` can read and run what was built: the checkout itself, or a copy where a parent is closed to it."""
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
    groups = {str(path) for path in pathlib.Path("/sys/fs/cgroup").glob("**/cordon*")} \
        if os.path.isdir("/sys/fs/cgroup") else set()
    return {"mounts": mounts, "files": files, "cgroups": groups}
