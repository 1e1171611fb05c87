"""One system call is missing or refused: the command runs behind the same walls, or `isolation` says what is different,
or it is refused in a way that names the call and the fix. Never a weaker run that says nothing."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from old_kernel_lab import IN_THE_LAB, IS_ROOT, MOUNT_API, NO_MOUNT_API, PROGRAM, ROOT, members, needs, own_group

NO_SECOND = {"filesystem_second": "none"}
PATIENCE = 20

# What is missing, and how `isolation` differs then.
RUNS = [
    ("clone3:ENOSYS", {}),
    ("clone3:EPERM", {}),
    ("openat2:ENOSYS", {}),
    ("openat2:EPERM", {}),
    ("close_range:ENOSYS", {}),
    ("close_range:EPERM", {}),
    ("statx:ENOSYS", {}),
    ("statx:EPERM", {}),
    ("keyctl:ENOSYS", {}),
    ("keyctl:EPERM", {}),
    ("faccessat2:ENOSYS", {}),
    ("pidfd_send_signal:ENOSYS", {}),
    ("pidfd_open:ENOSYS", {}),
    *([] if IS_ROOT else [("unshare:EPERM", {})]),  # with a control group, its view is made so
    ("setns:EPERM", {}),
    ("landlock_create_ruleset:ENOSYS", NO_SECOND),
    ("landlock_create_ruleset:EOPNOTSUPP", NO_SECOND),
    ("openat2:ENOSYS,clone3:ENOSYS,close_range:ENOSYS,statx:ENOSYS", {}),
    ("openat2:ENOSYS,landlock_create_ruleset:ENOSYS", NO_SECOND),
]

# What is missing, the options, and the refusal: its boundary, what it names, and a word of the fix.
REFUSALS = [
    ("landlock_create_ruleset:ENOSYS", ["--driver", "landlock"], "filesystem", "Landlock", "lsm="),
    ("landlock_create_ruleset:EOPNOTSUPP", ["--driver", "landlock"], "filesystem", "Landlock", "lsm="),
    ("landlock_create_ruleset:ENOSYS", ["--program", "/bin/sh"], "programs", "Landlock", "lsm="),
    ("landlock_create_ruleset:EOPNOTSUPP", ["--program", "/bin/sh"], "programs", "Landlock", "5.13"),
    ("landlock_add_rule:ENOSYS", [], "filesystem_second", "Landlock", "doctor"),
    ("landlock_restrict_self:EPERM", [], "filesystem_second", "Landlock", "doctor"),
    ("landlock_restrict_self:EPERM", ["--driver", "landlock"], "lifetime", "Landlock", "doctor"),
    ("seccomp:EINVAL", [], "kernel_surface", "seccomp", "CONFIG_SECCOMP_FILTER"),
    ("seccomp:EINVAL", ["--driver", "landlock"], "kernel_surface", "seccomp", "CONFIG_SECCOMP_FILTER"),
    ("memfd_create:ENOSYS", [], "lifetime", "memfd_create", "memfd_create"),
    ("execveat:ENOSYS", [], "lifetime", "execveat", "5.13"),
    ("execveat:ENOSYS", ["--driver", "landlock"], "lifetime", "execveat", "5.13"),
    ("prlimit64:ENOSYS", [], "limits", "resource limit", "doctor"),
    ("capset:EPERM", [], "privileges", "drop privileges", "doctor"),
    ("capset:EPERM", ["--driver", "landlock"], "privileges", "drop privileges", "doctor"),
    ("setsid:EPERM", [], "terminal", "setsid", "doctor"),
    ("sethostname:EPERM", [], "hostname", "sethostname", "doctor"),
    ("pivot_root:ENOSYS", [], "filesystem", "pivot_root", "seccomp"),
    ("pivot_root:EPERM", ["--view", "host-readonly"], "filesystem", "host's root", "doctor"),
    ("umount2:EPERM", [], "filesystem", "umount2", "seccomp"),
    *((f"{call}:ENOSYS", [], "filesystem", call, "Linux 5.14") for call in MOUNT_API),
    (NO_MOUNT_API, [], "filesystem", "open_tree", "--driver landlock"),
    (NO_MOUNT_API, ["--view", "host-readonly"], "filesystem", "open_tree", "seccomp profile"),
    ("open_tree:EPERM,mount_setattr:EPERM,fsconfig:EPERM", [], "filesystem", "private root", "seccomp profile"),
    ("move_mount:EPERM", [], "filesystem", "private root", "landlock"),
    ("move_mount:EACCES", [], "filesystem", "private root", "apparmor_parser -r"),
    ("clone3:EPERM,clone/0:0x10000000:EPERM", [], "user_namespaces", "namespaces", "unprivileged_userns_clone"),
    ("clone3:ENOSYS,clone/0:0x10000000:EPERM", [], "user_namespaces", "namespaces", "landlock"),
    ("clone3:ENOSPC", [], "user_namespaces", "namespaces", "max_user_namespaces"),
    ("clone3:EUSERS", [], "user_namespaces", "nested", "outside"),
    ("clone3:EINVAL", [], "user_namespaces", "namespace", "landlock"),
]


def name(rules):
    return rules.replace(NO_MOUNT_API, "mount-api:ENOSYS") if isinstance(rules, str) else None


@pytest.mark.parametrize("rules, differs", RUNS, ids=name)
def test_same_walls(lab, without, usual, rules, differs):
    through, document = lab.attempts(without(rules))
    assert through == []
    assert document["driver"] == "namespaces"
    assert document["isolation"] == {**usual, **differs}


@pytest.mark.parametrize("driver", ["namespaces", "landlock", "local"])
def test_what_cannot_be_watched_does_not_go_on(lab, without, driver):
    if driver != "local":
        needs("mount-namespace" if driver == "namespaces" else "user")
    seconds = str(100000 + os.getpid())
    # What a command asks of its network is watched first, where it has one of its own.
    for network, why in (["all", "cannot watch the command"],
                         *([["none", "the proxy needs"]] if driver == "namespaces" else [])):
        done = subprocess.run([*without("epoll_create1:EMFILE"), PROGRAM, "run", "--driver", driver, "--net", network,
                               "-c", f"sleep {seconds}; :"],
                              cwd=lab.workspace, env=lab.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, timeout=PATIENCE)
        assert done.returncode == 125 and why in done.stderr
    assert subprocess.run(["pgrep", "-f", f"sleep {seconds}"], stdout=subprocess.PIPE).stdout == b""


@pytest.mark.parametrize("rules", ["sethostname:NEVER", "umount2:NEVER", "sethostname:NEVER,pidfd_send_signal:ENOSYS"])
def test_walls_that_are_never_up_are_not_waited_for_longer_than_the_command(lab, without, rules):
    needs("mount-namespace")
    argv = [*without(rules), PROGRAM, "run", "--driver", "namespaces"]
    options = {"cwd": lab.workspace, "env": lab.env, "stdin": subprocess.DEVNULL}
    assert subprocess.run([*argv, "--timeout", "100ms", "--", "true"], timeout=PATIENCE, **options).returncode == 124
    with subprocess.Popen([*argv, "--", "true"], **options) as process:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not children.read_text():
            time.sleep(0.01)
        process.terminate()
        assert process.wait(PATIENCE) in (128 + signal.SIGKILL, 128 + signal.SIGTERM)


@pytest.mark.parametrize("rules, words, boundary, names, fix", REFUSALS, ids=name)
def test_refused(lab, without, rules, words, boundary, names, fix):
    needs("mount-namespace")
    lab.unavailable(without(rules), *words, boundary=boundary, names=names, fix=fix)


def test_data_on_a_filesystem_without_locks(lab, without):
    """A session and a daemon say so, not that another process has it."""
    for words in (["run", "--session", "s", "--json", "--", "true"], ["session", "new", "s", "--json"], ["serve"]):
        done = lab.run(without("flock:ENOLCK"), *words)
        assert done.returncode == 125, done
        said = done.stdout + done.stderr
        assert "cannot lock a file" in said and "XDG_DATA_HOME" in said and "already" not in said, said
        assert words == ["serve"] or json.loads(done.stdout)["error"]["class"] == "resource_exhausted", done


@pytest.mark.parametrize("rules", ["clone3:ENOSYS", "clone3:EPERM"])
def test_a_group_is_joined_where_nothing_can_be_born_in_it(lab, without, tmp_path, rules):
    needs("root", "cgroup2", "mount-namespace")
    with own_group() as path:
        (tmp_path / "config.toml").write_text(f'limits.cgroup = "{path}"')
        process = subprocess.Popen([*without(rules), PROGRAM, "run", "--config", tmp_path / "config.toml", "--",
                                    "sleep", "60"],
                                   cwd=lab.workspace, env=lab.env, stdin=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 10
            while len(members(path)) != 2 and time.monotonic() < deadline:  # while it starts, there is one more in between
                time.sleep(0.01)
            assert len(members(path)) == 2, "init and the command"
        finally:
            process.terminate()
            process.wait()


@pytest.mark.parametrize("rules, boundary",
                         [("landlock_create_ruleset:ENOSYS", "programs"), ("seccomp:EINVAL", "kernel_surface")])
def test_manifest_is_refused_before_first_use(lab, without, rules, boundary):
    needs("mount-namespace")
    path = lab.workspace / "tool.toml"
    path.write_text('name = "tool"\n[capabilities.spawn]\nprograms = ["/bin/true"]\n')
    assert lab.run([], "manifest", "check", path).returncode == 0
    done = lab.run(without(rules), "manifest", "check", "--json", path)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["class"], error["boundary"]) == (125, "spawn_sandbox_unavailable", boundary), error


def test_attempts_get_through_without_walls(lab):
    """Nothing is proven by attempts that cannot succeed: without walls each of them does."""
    through, _ = lab.attempts([], "--driver", "local",
                              script=IN_THE_LAB.replace("try masked-removed rm src/deep/.env\n", ""))
    assert through == [line.split()[1] for line in IN_THE_LAB.split("\n") if line and "masked-removed" not in line]


@pytest.mark.parametrize("rules", ["openat2:ENOSYS", "openat2:EPERM"])
def test_cwd_beneath_without_openat2(lab, without, rules):
    """The walk by hand decides as the kernel does."""
    needs("mount-namespace", "openat2")
    ws = lab.workspace
    for link, to in [("in", "src/deep"), ("in-again", "in/../../src"), ("up", ".."), ("far", "/usr"), ("loop", "loop"),
                     ("out-and-in", f"../{ws.name}/src"), ("gone", "nowhere")]:
        (ws / link).symlink_to(to)
    for cwd in [".", "src", "src/../src/deep", "in", "in-again", "src//deep/", "in/..", "up", "far", "loop",
                "out-and-in", "gone", "..", "src/../..", "made", ".env", "in/../../..", ws, ws / "in", ws / "up"]:
        said = []
        for before in ([], without(rules)):
            document = json.loads(lab.run(before, "run", "--json", "--cwd", cwd, "--", "pwd").stdout)
            said.append(document.get("stdout") or [document["error"][key] for key in ("class", "reason", "subject")])
        assert said[0] == said[1], cwd


@pytest.mark.parametrize("rules", ["openat2:ENOSYS", "openat2:EPERM"])
def test_a_credential_is_read_without_openat2(lab, without, tmp_path, rules):
    """And through no link, wherever that is on the way."""
    needs("mount-namespace", "openat2")
    directory = tmp_path / "keys"
    directory.mkdir()
    (directory / "key").write_text("Zq7-correct+horse")
    (directory / "key").chmod(0o600)
    (directory / "link").symlink_to("key")
    (tmp_path / "way").symlink_to("keys")
    said = []
    for name in ("keys/key", "keys//key", "keys/link", "way/key", "keys/none", "keys", "keys/key/x"):
        (tmp_path / "config.toml").write_text(f'[credentials.mine]\nfile = "{tmp_path / name}"\nvariable = "MY_KEY"\nprograms = ["/usr/bin/printenv"]\n')
        for before in ([], without(rules)):
            document = json.loads(lab.run(before, "run", "--json", "--config", tmp_path / "config.toml", "--",
                                          "/usr/bin/printenv", "MY_KEY").stdout)
            said.append(document.get("stdout") or [document["error"][key] for key in ("class", "reason", "subject")])
        assert said[-1] == said[-2], name
    assert said[1] == "Zq7-correct+horse\n" and "there is a link on the way" in said[5][1] and "there is a link on the way" in said[7][1]


def inits(pid):
    """The inits among the processes below one."""
    found = []
    for child in map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        name = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
        found += [child] if name == "cordon-init" else inits(child)
    return found


@pytest.mark.parametrize("driver", ["namespaces", "landlock"])
def test_no_descriptor_of_the_caller_inside(lab, without, tmp_path, driver):
    """Closed one by one where close_range() is missing, in the command and (which only root can see) in its init."""
    needs("mount-namespace", "landlock")
    inherited = tmp_path / "inherited"
    inherited.write_text("secret\n")
    script = f'exec 7<"{inherited}" 300<"{inherited}"; ulimit -S -n 256; exec "$@"'
    argv = ["bash", "-c", script, "-", *without("close_range:ENOSYS"), PROGRAM, "run", "--driver", driver, "-c",
            "ls /proc/self/fd; cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=lab.workspace,
                          env=lab.env) as process:
        assert [process.stdout.readline().strip() for _ in range(4)] == ["0", "1", "2", "3"]  # 3: what ls reads
        deadline = time.monotonic() + 10
        while not inits(process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in inits(process.pid) if IS_ROOT else []:
            held = {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
            assert all(name.startswith(("socket:", "anon_inode:[signalfd]")) for name in held), held
        assert len(inits(process.pid)) == 1
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.mark.parametrize("driver", ["namespaces", "landlock"])
def test_nothing_runs_on_without_init(lab, without, driver):
    """The command is started before its init: where that fails, it does not go on alone."""
    needs("mount-namespace", "landlock")
    lab.refused(without("execveat:ENOSYS"), "--driver", driver, "-c", "sleep 0.3; echo x >ran")
    lab.run([], "run", "--", "sleep", "0.6")
    assert not (lab.workspace / "ran").exists()


@pytest.mark.parametrize("rules", ["clone3:ENOSYS", "landlock_create_ruleset:EOPNOTSUPP"])
def test_whole_host_view(lab, without, rules):
    """All of the host, read-only: nothing of the host's own tree is left above or below it."""
    needs("mount-namespace")
    script = f"cat /proc/self/mountinfo; ls -d /..{lab.outside} {lab.outside}; touch /..{lab.outside}/planted /cordon-planted"
    document = lab.result(without(rules), "--view", "host-readonly", "-c", script)
    assert list(lab.outside.iterdir()) == [lab.outside / "file"]
    roots = [line.split()[5].split(",") for line in document["stdout"].splitlines() if line.split()[4:5] == ["/"]]
    assert len(roots) == 1 and {"ro", "nosuid", "nodev"} <= set(roots[0])


def test_a_process_that_stays_without_setns(lab, without):
    needs("mount-namespace")
    program = pathlib.Path(os.environ.get("CORDON_BUILD") or ROOT / "build") / "tests/walls/library-lab"
    with subprocess.Popen([*without("setns:EPERM"), program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=lab.env) as stays:
        def ask(**line):
            print(json.dumps(line), file=stays.stdin, flush=True)
            while "said" in (answer := json.loads(stays.stdout.readline())):
                pass
            return answer
        ask(do="open", data=str(lab.data / "cordon"), config=None)
        ask(do="session", id="s", settings=[["workspace", str(lab.workspace)]])
        for _ in range(3):
            done = ask(do="run", name="1", settings=[["session", "s"]], argv=["/bin/echo", "fine"])
            assert done.get("stdout") == "fine\n", done
        stays.stdin.close()
        stays.stdout.read()
    assert stays.returncode == 0
