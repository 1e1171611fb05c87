"""Hosts that forbid what the default driver needs. There it refuses, naming what is missing and the way out; the
landlock driver works and holds what it can; `auto` finds it and says so; `cordon doctor` tells all of this."""
import collections
import json

import pytest

from old_kernel_lab import IS_ROOT, NO_MOUNT_API, lack, needs

# A namespace of our own with every privilege in it, which are then dropped again.
OWN = ["unshare"] if IS_ROOT else ["unshare", "--user", "--map-current-user", "--keep-caps"]
DROP = [] if IS_ROOT else ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
OWN_PROC = [*OWN, "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec"]

# probes: what must be here for the host to be built. The refusal: its boundary, what it names, and words of the fix.
Host = collections.namedtuple("Host", "before probes boundary names fixes")


def docker(without):
    """Docker's default seccomp profile."""
    return without("docker")


def no_user_namespaces(without):
    """User namespaces used up: bubblewrap sees to it for all that is below."""
    return ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--unshare-user", "--disable-userns", "--"]


def sysctl_zero(without):
    """user.max_user_namespaces = 0, as an administrator would write it."""
    script = 'echo 0 >/proc/sys/user/max_user_namespaces\nexec "$@"'
    own = ["unshare", "--user", "--map-current-user", "--keep-caps"]
    return [*own, "sh", "-ec", script, "-", *(DROP or ["env"])]


def clone_refused(without):
    """kernel.unprivileged_userns_clone = 0 (Debian), or an LSM."""
    return without("clone3:EPERM,clone/0:0x10000000:EPERM")


def ubuntu(without):
    """Ubuntu 24.04's AppArmor rule lets the namespace be made and then refuses to map anybody into it."""
    return [*OWN_PROC, 'mount -t proc proc /proc\nmount -o remount,bind,ro /proc\nexec "$@"', "-", *DROP]


def ubuntu_mounts(without):
    """The same rule where the map is allowed: every capability in the namespace is refused, so nothing can be
    mounted."""
    return without("mount:EACCES,fsopen:EACCES,open_tree:EPERM,move_mount:EACCES")


def no_mount_api(without):
    """A kernel older than 5.2; mount(2) is refused, too, so that bubblewrap does not work either."""
    return without(f"{NO_MOUNT_API},mount:EPERM")


def masked_proc(without):
    """A container that hides parts of /proc: the kernel then gives nobody below an unhidden one."""
    return [*OWN_PROC, 'mount -t proc proc /proc\nmount --bind /dev/null /proc/timer_list\nexec "$@"', "-", *DROP]


HOSTS = {
    docker: Host(docker, ["seccomp"], "user_namespaces", "namespaces", ["seccomp profile", "landlock"]),
    no_user_namespaces: Host(no_user_namespaces, ["bwrap"], "user_namespaces", "limited",
                             ["user.max_user_namespaces", "landlock"]),
    sysctl_zero: Host(sysctl_zero, ["userns"], "user_namespaces", "limited", ["user.max_user_namespaces", "landlock"]),
    clone_refused: Host(clone_refused, ["seccomp"], "user_namespaces", "namespaces",
                        ["kernel.unprivileged_userns_clone=1", "landlock"]),
    ubuntu: Host(ubuntu, ["mount-namespace"], "user_namespaces", "/proc/self/uid_map",
                 ["sudo cp PREFIX/share/apparmor/extra-profiles/cordon /etc/apparmor.d/cordon && sudo apparmor_parser -r /etc/apparmor.d/cordon`", "landlock"]),
    ubuntu_mounts: Host(ubuntu_mounts, ["seccomp"], "filesystem", "private root",
                        ["sudo cp PREFIX/share/apparmor/extra-profiles/cordon /etc/apparmor.d/cordon && sudo apparmor_parser -r /etc/apparmor.d/cordon`", "landlock"]),
    no_mount_api: Host(no_mount_api, ["seccomp"], "filesystem", "open_tree",
                       ["Linux 5.14", "seccomp profile", "landlock"]),
    masked_proc: Host(masked_proc, ["mount-namespace"], "proc", "/proc are masked", ["unmasked /proc", "landlock"]),
}
NOT_HELD = {"filesystem_second", "masked_names", "proc", "hostname", "cgroup_view"} | \
    ({"identity"} if IS_ROOT else set()) | ({"limit_processes", "limit_cpu"} if lack("cgroup") else set())
# What a landlocked command must not get away with; masks are not among it, and that is said.
FORBIDDEN = """
try base-file sh -c ': >/usr/cordon-planted'
try outside-seen cat "$OUTSIDE/file"
try outside-written sh -c ': >"$OUTSIDE/planted"'
try read-only-grant sh -c ': >"$GIVEN/planted"'
try unix-socket python3 -c 'import socket; socket.socket(socket.AF_UNIX)'
try network python3 -c 'import socket; socket.socket(socket.AF_INET)'
try namespace unshare --user true
"""


@pytest.fixture(params=HOSTS, ids=lambda build: build.__name__.replace("_", "-"))
def host(request, without):
    found = HOSTS[request.param]
    needs(*found.probes)
    return found._replace(before=found.before(without))


def test_default_refuses(lab, host):
    error = lab.unavailable(host.before, boundary=host.boundary, names=host.names, fix=host.fixes[0])
    for word in host.fixes:
        assert word in error["remediation"], error


@pytest.mark.parametrize("driver", ["landlock", "auto"])
def test_landlock_holds(lab, host, driver):
    needs("landlock")
    through, document = lab.attempts(host.before, "--driver", driver, script=FORBIDDEN)
    assert through == []
    assert document["driver"] == "landlock"
    assert {wall for wall, mechanism in document["isolation"].items() if mechanism == "none"} == NOT_HELD


def test_auto_says_what_it_could_not_hold(lab, host):
    needs("landlock")
    for _ in range(2):  # the second time from what was kept
        done = lab.run(host.before, "run", "--driver", "auto", "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (0, "ran\n"), done
        remark = next(line for line in done.stderr.splitlines()
                      if line.startswith("cordon: the driver landlock did not hold: "))
        assert set(remark.partition("did not hold: ")[2].split(", ")) == NOT_HELD - {"limit_cpu"}


def test_bubblewrap_that_fails_is_a_refusal(lab, host):
    """Its own failures are exit status 1, as a program's may be; but nothing ran, so it is no result."""
    needs("bwrap")
    done = lab.run(host.before, "run", "--driver", "bwrap", "--", "sh", "-c", "echo ran; exit 1")
    if "ran" in done.stdout:  # what stops the default driver need not stop bubblewrap
        assert done.returncode == 1
        return
    assert done.returncode == 125, done
    assert "bubblewrap could not raise the walls: bwrap: " in done.stderr


def test_the_proc_of_another_pid_namespace(lab):
    """What a command leaves is ended by its numbers there, which are others' here."""
    needs("userns")
    error = lab.unavailable([*OWN, "--pid", "--fork", "--kill-child", *(DROP or ["env"])], "--driver", "local",
                            boundary="lifetime", names="/proc", fix="mount")
    assert "another pid namespace" in error["reason"]


def test_doctor(lab, host):
    needs("landlock")
    done = lab.run(host.before, "doctor", "--json")
    assert done.returncode == 1, done
    report = json.loads(done.stdout)
    drivers = {driver["name"]: driver for driver in report["drivers"]}
    default, landlock = drivers[report["default_driver"]], drivers["landlock"]
    assert report["holds"] is False and report["default_driver"] == "namespaces"
    assert (default["works"], default["holds"],
            default["error"]["class"]) == (False, False, "spawn_sandbox_unavailable")
    assert host.names in default["error"]["subject"] + default["error"]["reason"]
    assert (landlock["works"], landlock["holds"]) == (True, False)
    assert {wall["wall"] for wall in landlock["walls"] if not wall["holds"]} == NOT_HELD
    assert all(wall["fix"] for wall in landlock["walls"] if not wall["holds"])

    table = lab.run(host.before, "doctor")
    assert table.returncode == 1
    assert "namespaces (default): does not work here" in table.stdout
    for word in host.fixes:
        assert word in table.stdout


def test_kept_answer_is_of_this_place(lab, without):
    """What `auto` found in a container is not taken for the machine outside, nor the other way round."""
    needs("landlock", "mount-namespace")
    for before, driver in [(without("docker"), "landlock"), ([], "namespaces"), (without("docker"), "landlock")]:
        assert lab.result(before, "--driver", "auto", "--", "true")["driver"] == driver


@pytest.mark.parametrize("answer", ["ENOSYS", "EOPNOTSUPP"])
def test_neither_namespaces_nor_landlock(lab, without, answer):
    """Nothing is left that could hold: every driver refuses, and auto takes none of those without walls."""
    before = without(f"docker,landlock_create_ruleset:{answer}")
    for driver in ("namespaces", "landlock", "auto"):
        error = lab.refused(before, "--driver", driver, "--", "true")
        assert error["class"] == "spawn_sandbox_unavailable" and error["remediation"], error
    assert lab.run(before, "doctor").returncode == 1


@pytest.mark.parametrize("answer", ["ENOSYS", "EOPNOTSUPP"])
def test_doctor_without_landlock(lab, without, answer):
    """The first layer holds; the table says what is missing and how to get it."""
    needs("mount-namespace")
    done = lab.run(without(f"landlock_create_ruleset:{answer}"), "doctor", "--json")
    report = json.loads(done.stdout)
    default = next(driver for driver in report["drivers"] if driver["name"] == "namespaces")
    missing = [wall for wall in default["walls"] if not wall["holds"]]
    assert done.returncode == 1 and report["landlock_abi"] == 0
    missing = [wall for wall in missing if wall["wall"] != "limit_cpu"]
    assert [wall["wall"] for wall in missing] == ["filesystem_second"] and "lsm=" in missing[0]["fix"]
