"""A session is one sandbox: what one command leaves in its memory, on its loopback and in /tmp the next one finds,
across grants and changes of the policy; what one command starts ends with it, however it hides. Each scene is played by
a daemon that serves `cordon` and by a process that uses the library; with a control group where this machine has them,
and without."""
import collections
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import threading

import pytest

from conftest import PATIENCE, descendants, is_running, wait_until
from lab import ROOT, lack, leftovers, missing, own_group, rows_of  # noqa: F401
from library_lab import Library, kill, name_of, numbers
from test_limits import PYTHON
from test_serve import Daemon

pytestmark = missing("mount-namespace")

SERVER = """
import os, socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", 8123))
server.listen()
print("serves", flush=True)
while True:
    connection = server.accept()[0]
    connection.sendall(b"the job\\n")
    connection.close()
"""
ASK = """
import socket
connection = socket.create_connection(("127.0.0.1", 8123), 20)
print(connection.makefile().read())
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class ByLibrary:
    """Commands of a process that stays."""
    def __init__(self, cordon, config, before=()):
        # As people mostly have it.
        self.library, self.cordon = Library(cordon, config, [*before, "prlimit", "--nofile=1024:"]), cordon
        self.pid = self.library.process.pid
        self.library.session("s", timeout="1h", processes="2000")

    def run(self, line, **settings):
        return self.library.shell(line, **settings)

    def job(self, *argv, said):
        name = self.library.start(*argv)
        self.library.wait_said(name, said)
        return name

    def ended(self, job):
        return self.library.wait(job)

    def ask_to_end(self, job):
        kill([pid for pid in descendants(self.pid) if name_of(pid) == "sleep"])

    def grant(self, **settings):
        self.library.ask("approve", answer="session")
        done = self.library.shell("true", **settings)
        assert done.get("exit_code") == 0, done

    def grant_once(self, line, **settings):
        self.library.ask("approve", answer="once")
        return self.library.shell(line, **settings)

    def close(self):
        self.library.close()


class ByDaemon:
    """Commands of processes that come and go, while cordon serve stays."""
    def __init__(self, cordon, config):
        self.cordon, self.daemon = cordon, Daemon(cordon)
        cordon.env["XDG_CONFIG_HOME"] = str(config.parent.parent)
        self.daemon.start(stderr=subprocess.DEVNULL, wrapper=["prlimit", "--nofile=1024:"])
        self.pid = self.daemon.process.pid
        assert cordon("session", "new", "s", "--workspace", cordon.workspace, "--timeout", "1h",
                      "--processes", "2000").returncode == 0

    def words(self, settings):
        return [word for key, value in settings.items()
                for word in (f"--{key.replace('_', '-')}", *([] if value == "true" else [value]))]

    def run(self, line, **settings):
        done = self.cordon("run", "--session", "s", "--json", *self.words(settings), "-c", line)
        return json.loads(done.stdout)

    def job(self, *argv, said):
        done = self.cordon("job", "start", "--session", "s", "--json", "--", *argv)
        job = json.loads(done.stdout)["id"]
        assert wait_until(lambda: said in self.cordon("job", "poll", job).stdout), self.cordon("job", "poll", job)
        return job

    def ask_to_end(self, job):
        assert self.cordon("job", "kill", job).returncode == 0

    def ended(self, job):
        assert self.cordon("job", "wait", job).returncode != 125
        return json.loads(self.cordon("job", "poll", "--json", job).stdout)

    def approve(self, line, *how, **settings):
        process = self.cordon.popen("run", "--session", "s", "--json", *self.words(settings), "-c", line, text=True)

        def cards():
            return json.loads(self.cordon("approvals", "list", "--json").stdout)["approvals"]
        assert wait_until(lambda: cards()
                          or process.poll() is not None) and process.poll() is None, process.communicate()
        assert self.cordon("approvals", "approve", cards()[0]["id"], *how).returncode == 0
        return json.loads(process.communicate(timeout=PATIENCE)[0])

    def grant(self, **settings):
        done = self.approve("true", "--for-session", **settings)
        assert done.get("exit_code") == 0, done

    def grant_once(self, line, **settings):
        return self.approve(line, **settings)

    def close(self):
        status, _ = self.daemon.end()
        assert status == 0, status


@pytest.fixture(params=[ByLibrary, ByDaemon])
def make(request, cordon, tmp_path, leftovers):  # noqa: F811
    """make(TEXT): a world with this configuration."""
    worlds = []

    def make(text=""):
        config = write(tmp_path / "config/cordon/config.toml", f'[approval]\nqueue = true\ntimeout = "60s"\n{text}')
        worlds.append(request.param(cordon, config))
        return worlds[-1]

    def end(world):
        worlds.remove(world)
        world.close()
    make.end = end
    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def world(make):
    return make()


GROUPS = {"group": "", "no-group": '[limits]\ncgroup = "none"\n', "version-2": None}


@pytest.fixture(params=GROUPS)
def any_world(request, make):
    """With the groups that this machine has, without, and with those of version 2, in a directory of our own without
    controllers."""
    if request.param != "version-2":
        world = make(GROUPS[request.param])
        world.is_grouped = world.run("true")["isolation"]["limit_processes"] != "rlimit"
        yield world
        return
    for name in ("root", "cgroup2"):
        if lack(name):
            pytest.skip(lack(name))
    with own_group() as path:
        world = make(f'[limits]\ncgroup = "{path}"\n')
        world.is_grouped = True
        yield world
        make.end(world)


def say(done):
    assert done.get("exit_code") == 0, done
    return done["stdout"]


def notes(done):
    return str(done.get("denials"))


def of_sandbox(world):
    """The processes of the session's sandbox by their names."""
    outer = len(numbers(world.pid))
    return [(pid, name_of(pid)) for pid in descendants(world.pid) if len(numbers(pid)) > outer]


# ---- what stays ------------------------------------------------------------------------------------------------------

def test_files_and_memory_stay(world):
    say(world.run("echo one >/tmp/a; echo two >/var/tmp/b; echo three >/dev/shm/c; echo four >~/d; mkdir -p /tmp/deep/er; mkfifo /tmp/f"))
    assert say(world.run("cat /tmp/a /var/tmp/b /dev/shm/c ~/d; ls -d /tmp/deep/er; stat -c %F /tmp/f")).split("\n") == \
        ["one", "two", "three", "four", "/tmp/deep/er", "fifo", ""]


def test_what_is_fresh_has_nothing_of_it(world):
    say(world.run("echo one >/tmp/a; echo three >/dev/shm/c; echo four >~/d"))
    done = world.run("ls /tmp/a /dev/shm/c; ls ~/d; ps ax | grep -c cordon-starte[r]", fresh="true")
    assert "/tmp/a" not in done["stdout"] and "/dev/shm/c" not in done["stdout"], done
    assert say(world.run("cat /tmp/a /dev/shm/c")) == "one\nthree\n"


@pytest.mark.parametrize("setting", ["program", "no_spawn", "view", "net"])
def test_a_command_with_other_walls_has_a_sandbox_of_its_own(make, setting):
    """On the same workspace and home; the session's goes on."""
    view = '[sandbox]\nview = "host-readonly"\n' if setting == "view" else ""
    world = make(f'{view}[capabilities]\nnetwork = ["example.com:443"]\n')
    value, is_asked_about = {"program": ("/bin/sh", False), "no_spawn": ("true", False), "view": ("system", False),
                             "net": ("example.org:443", True)}[setting]
    job = world.job("/bin/sh", "-c", "echo up; exec sleep 7572", said="up")
    say(world.run("echo b >/dev/shm/b; echo c >~/c; echo d >d"))
    look = "for f in /dev/shm/b ~/c d; do [ -e $f ] && echo $f; done; for p in /proc/[0-9]*; do read -r n <$p/comm && echo $n; done"
    seen = say(world.run(look)).split()
    assert seen[0] == "/dev/shm/b" and seen[2] == "d" and "sleep" in seen, seen
    done = world.grant_once(look, **{setting: value}) if is_asked_about else world.run(look, **{setting: value})
    seen = say(done).split()
    assert done["isolation"]["processes"] == "pid namespace" and "sleep" not in seen and "cordon-starter" not in seen, done
    assert "/dev/shm/b" not in seen and seen[0].endswith("/c") and seen[1] == "d", seen
    assert say(world.run("pgrep -cxf 'sleep 7572'")) == "1\n", f"{job} goes on"


def test_isolation_says_whose_processes_there_are(world):
    """Those of the session, where its next command can reach what jobs leave; else the command's own. The ledger says
    the same."""
    own, shared = "pid namespace", "pid namespace of the session"
    alone = world.cordon("run", "--session", "s", "--no-daemon", "--json", "--", "/bin/true")
    for done, wanted in ((world.run("true"), shared), (world.run("true", fresh="true"), own),
                         (json.loads(alone.stdout), own)):
        assert done["isolation"]["processes"] == wanted, done
        rows = rows_of(world.cordon, done["audit_id"])
        assert [row["isolation"]["processes"] for row in rows if row["row"] == "result"] == [wanted], rows


def test_a_job_is_everybodys(world, tmp_path):
    """It answers at loopback, is seen by ps and ended by kill; before and after directories and hosts were granted."""
    granted = write(tmp_path / "granted/file", "granted\n")
    write(world.cordon.workspace / "server.py", SERVER)
    write(world.cordon.workspace / "ask.py", ASK)
    job = world.job(PYTHON, "server.py", said="serves")
    look = f"{PYTHON} ask.py; pgrep -cxf '.* server.py'"
    for grant in ({}, {"read": str(granted.parent)}, {"net": "127.0.0.1:9"}, {"net": "example.com:443"}):
        if grant:
            world.grant(**grant)
        assert say(world.run(look)).split() == ["the", "job", "1"], grant
    assert say(world.run(f"cat {granted}")) == "granted\n"
    say(world.run("kill $(pgrep -xf '.* server.py')"))
    assert world.ended(job)["signal"] == signal.SIGTERM


def test_a_grant_loses_nothing(world, tmp_path):
    granted = write(tmp_path / "granted/file", "granted\n")
    say(world.run("echo one >/tmp/a; echo two >/dev/shm/b; echo three >${XDG_RUNTIME_DIR:-/run}/c"))
    before = say(world.run("readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/ipc"))
    assert "No such file" in world.run(f"cat {granted}")["stderr"]
    world.grant(read=str(granted.parent))
    assert say(world.run(f"cat {granted} /tmp/a /dev/shm/b ${{XDG_RUNTIME_DIR:-/run}}/c")) == "granted\none\ntwo\nthree\n"
    assert say(world.run("readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/ipc")) == before


def test_a_host_granted_once_is_the_commands_own(make):
    """Neither a job nor a later command of the session reaches it, though the session has a network."""
    world = make('[capabilities]\nnetwork = ["example.com:443"]\n')
    with Listener() as listener:
        address = f"127.0.0.1:{listener.port}"
        reach = f"curl -sS --noproxy '' -x http://198.18.0.1:3128 -o /dev/null -w '%{{http_code}}' -m 20 http://{address}/"
        assert say(world.run(reach)) == "403"
        job = world.job("/bin/sh", "-c",
                        f"echo waits; until [ -e go ]; do sleep 0.02; done; {reach} >said; touch been; exec sleep 1000",
                        said="waits")
        own = world.grant_once(f"{reach}; readlink /proc/self/ns/net; touch go; until [ -e been ]; do sleep 0.02; done",
                               net=address)
        assert say(own).startswith("200"), own
        assert (world.cordon.workspace / "said").read_text() == "403"
        assert say(world.run(reach)) == "403"
        say(world.run("kill $(pgrep -xf 'sleep 1000')"))
        world.ended(job)


def capability(config, text):
    """One line in place of the one before, in the same configuration."""
    config.write_text(config.read_text().split("[capabilities]")[0] + (f"[capabilities]\n{text}\n" if text else ""))


NETWORKS = {"none": "", "hosts": 'network = ["example.com:443"]', "all": 'network = "all"'}


@pytest.mark.parametrize("first, then", [("none", "all"), ("hosts", "all"), ("all", "none"), ("all", "hosts")])
def test_the_hosts_network_comes_and_goes(world, tmp_path, first, then):
    """The sandbox stays: its processes and memory, and what jobs have of the network they began in. Who is left there
    is named once."""
    config, host = tmp_path / "config/cordon/config.toml", os.readlink("/proc/self/ns/net")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    write(world.cordon.workspace / "server.py", SERVER.replace("8123", port))
    write(world.cordon.workspace / "ask.py", ASK.replace("8123", port))
    capability(config, NETWORKS[first])
    job = world.job(PYTHON, "server.py", said="serves")
    spaces, network = "readlink /proc/self/ns/pid /proc/self/ns/ipc", "readlink /proc/self/ns/net"
    before = say(world.run(f"echo kept >/dev/shm/a; {spaces}"))
    own = say(world.run(network)).strip()
    assert (own == host) == (first == "all")
    capability(config, NETWORKS[then])
    changed = world.run(f"{network}; {spaces}; cat /dev/shm/a; pgrep -cxf '.* server.py'")
    said = say(changed).split("\n", 1)
    assert said[0] != own and (said[0] == host) == (then == "all") and said[1] == f"{before}kept\n1\n", changed
    told = [denial for denial in changed["denials"] if "what had begun keeps its own" in str(denial)]
    assert len(told) == 1 and f"{PYTHON} (" in str(told), changed
    again = world.run(f"{network}; {PYTHON} ask.py")
    assert again["stdout"].strip() == said[0] and "had begun" not in str(again["denials"]), again
    if then == "hosts":
        assert say(world.run("getent hosts example.com >/dev/null && ! getent hosts example.org && echo ours")) == "ours\n"
    capability(config, NETWORKS[first])
    assert say(world.run(f"{PYTHON} ask.py; {network}; {spaces}")).split("\n", 2) == ["the job", "", f"{own}\n{before}"]
    say(world.run("kill $(pgrep -xf '.* server.py')"))
    assert world.ended(job)["signal"] == signal.SIGTERM


class Listener:
    """A web server of the host's loopback."""
    def __enter__(self):
        import http.server

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()

            def log_message(self, *words):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()


# ---- what ends -------------------------------------------------------------------------------------------------------

HIDING = {
    "daemon": "(setsid sleep {mark} >/dev/null 2>&1 &)",
    "double": "setsid sh -c '(setsid sleep {mark} &) ; exit' >/dev/null 2>&1",
    "ignores": "(trap '' TERM HUP INT QUIT; setsid sleep {mark} >/dev/null 2>&1 &)",
    "stopped": "sleep {mark} >/dev/null 2>&1 & kill -STOP $!",
    "subreaper": "./subreaper sleep {mark}",
    "sixty": "./sixty sleep {mark}",
    "sibling": "./sibling sleep {mark}",
    "no-reaper": "(setsid sleep {mark} >/dev/null 2>&1 &); sleep 0.1; kill -KILL $PPID; sleep 1",
}
SUBREAPER = """
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	(void)argc;
	if (fork() == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		setsid();
		for (int i = 0; i < 8; i++)
			if (fork() == 0) {
				setsid();
				if (fork() == 0)
					execvp(argv[1], argv + 1);
				_exit(0);
			}
		for (;;)
			pause();
	}
	return 0;
}
"""
SIBLING = """
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	(void)argc;
	/* No child of this process, but of the one that started it. */
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0L, 0L, 0L, 0L);
	if (pid == 0) {
		setsid();
		execvp(argv[1], argv + 1);
	}
	return pid < 0;
}
"""
SIXTY = """
#include <unistd.h>
int main(int argc, char **argv)
{
	(void)argc;
	/* Each of them goes on as its child, for as long as it is let; one stays to be found. */
	if (fork() == 0) {
		setsid();
		execvp(argv[1], argv + 1);
	}
	for (int i = 0; i < 60; i++)
		if (fork() == 0) {
			setsid();
			for (;;)
				if (fork() != 0)
					_exit(0);
		}
	return 0;
}
"""


@pytest.fixture(scope="module")
def hiders(tmp_path_factory):
    place = tmp_path_factory.mktemp("hiders")
    for name, source in (("subreaper", SUBREAPER), ("sixty", SIXTY), ("sibling", SIBLING)):
        subprocess.run(["cc", "-O1", "-static", "-x", "c", "-", "-o", place / name], input=source.encode(), check=True)
    return place


@pytest.mark.parametrize("way", HIDING)
def test_nothing_outlives_its_command(any_world, hiders, way):
    """However it hides. A job of the session goes on, but where what was to end it is gone and there is no group: then
    the sandbox ends, and the result says so."""
    world, ws = any_world, any_world.cordon.workspace
    for name in ("subreaper", "sixty", "sibling"):
        (ws / name).write_bytes((hiders / name).read_bytes())
        (ws / name).chmod(0o755)
    world.job("/bin/sh", "-c", "echo up; exec sleep 7531", said="up")
    done = world.run(HIDING[way].format(mark="7532"))
    ended = any("sandbox was ended" in str(denial) for denial in done["denials"])
    grouped = world.is_grouped
    left = say(world.run("ps axo args"))
    assert "sleep 7532" not in left and not any(f"./{name}" in left for name in ("subreaper", "sixty", "sibling")), left
    assert ("sleep 7531" in left) == (not ended), (left, done)
    if grouped or way != "sixty":
        assert ended == (way == "no-reaper" and not grouped), done
    if way == "sibling":
        assert done["exit_code"] == 0, "it was refused, and showed nothing"


def test_a_command_that_stops_its_reaper(any_world):
    """Its time ends it all the same, and what it left; unless the reaper was found stopped before."""
    done = any_world.run("kill -STOP $PPID; (setsid sleep 7533 >/dev/null 2>&1 &) ; echo done", timeout="1500ms")
    assert done["timed_out"] != ("killed or stopped" in str(done["denials"])), done
    assert done["stdout"] == "done\n" and done["duration_ms"] < 30000, done
    assert "sleep 7533" not in say(any_world.run("ps axo args"))


@pytest.mark.parametrize("how", ["KILL", "STOP"])
def test_a_reaper_that_is_lost_ends_a_command_without_a_time(any_world, how):
    """It is found out, nothing hangs, and nothing is done twice; without a group the sandbox ends with it, jobs and
    all."""
    world = any_world
    grouped = world.is_grouped
    world.job("/bin/sh", "-c", "echo up; exec sleep 7545", said="up")
    done = world.run(f"echo done >>counted; (setsid sleep 7546 >/dev/null 2>&1 &) ; kill -{how} $PPID; sleep 1000")
    assert done["signal"] == signal.SIGKILL and not done["timed_out"] and done["duration_ms"] < 60000, done
    assert (world.cordon.workspace / "counted").read_text() == "done\n"
    notes = str(done["denials"])
    assert "killed or stopped" in notes and ("sandbox was ended" in notes) != grouped, done
    left = say(world.run("ps axo args"))
    assert "sleep 7546" not in left and ("sleep 7545" in left) == grouped, left


def test_a_client_is_not_kept_by_a_stopped_reaper(cordon, tmp_path, leftovers):  # noqa: F811
    """A signal to it is obeyed, though it goes through the reaper."""
    world = ByDaemon(cordon, write(tmp_path / "config/cordon/config.toml", GROUPS["no-group"]))
    client = cordon.popen("run", "--session", "s", "-c", "kill -STOP $PPID; echo said; sleep 1000", text=True)
    assert client.stdout.readline() == "said\n"
    client.terminate()
    client.communicate(timeout=PATIENCE)
    assert client.returncode in (128 + signal.SIGTERM, 128 + signal.SIGKILL), client.returncode
    assert wait_until(lambda: not any(name == "sleep" for _, name in of_sandbox(world)))
    world.close()


@pytest.mark.parametrize("driver", ["landlock", "local"])
def test_an_init_that_is_stopped(cordon, leftovers, driver):  # noqa: F811
    """A command whose init is no pid 1 of its own; where a domain keeps it from signalling that, nothing happens."""
    if driver == "landlock" and lack("landlock"):
        pytest.skip(lack("landlock"))
    line = "(setsid sleep 7547 >/dev/null 2>&1 &) ; kill -STOP $PPID && sleep 1000; echo kept"
    done = cordon("run", "--driver", driver, "--timeout", "none", "--json", "-c", line)
    done = json.loads(done.stdout)
    assert done["stdout"] == "kept\n" or "killed or stopped" in str(done["denials"]), done
    assert driver != "local" or done["signal"] == signal.SIGKILL, done


def test_a_starter_that_is_killed_at_once(any_world):
    """What its command has done by then is not done again, and the result says what was ended."""
    done = any_world.run("echo done >>counted; kill -KILL 2; sleep 1000")
    assert (any_world.cordon.workspace / "counted").read_text() == "done\n"
    assert done["signal"] == signal.SIGKILL and "cordon-starter" in str(done["denials"]), done


def test_four_hundred_daemons(any_world):
    """And then the next command."""
    line = "i=0; while [ $i -lt 400 ]; do (setsid sleep 7534 >/dev/null 2>&1 &); i=$((i+1)); done; echo made"
    assert say(any_world.run(line)) == "made\n"
    assert say(any_world.run("pgrep -cxf 'sleep 7534' || true")) == "0\n"


# ---- what is shown ---------------------------------------------------------------------------------------------------

def test_session_show(cordon, tmp_path, leftovers):  # noqa: F811
    """What is up and what runs in it; and the job that has a sandbox of its own, because no daemon runs it."""
    def shown():
        return json.loads(cordon("session", "show", "s", "--json").stdout)
    world = ByDaemon(cordon, write(tmp_path / "config/cordon/config.toml", ""))
    assert shown()["sandbox"] is None and "none is up" in cordon("session", "show", "s").stdout
    script = "kept=$(head -c 4000000 /dev/zero | tr '\\0' x); echo rea''dy; while :; do sleep 0.2; done"
    job = world.job("/bin/sh", "-c", script, said="ready")
    session = shown()
    sandbox, (command,) = session["sandbox"], session["sandbox"]["running"]
    assert sandbox["up"] and sandbox["up_ms"] >= command["running_ms"] >= 0
    assert command["audit_id"] == job and command["job"] and command["command"] == ["/bin/sh", "-c", script], command
    assert command["program"] == "/bin/sh" and command["processes"] >= 1 and command["memory_kb"] > 4000, command
    assert say(world.run(f"ps -o comm= {command['pid']}")) == "sh\n"
    own = json.loads(cordon("job", "start", "--session", "s", "--no-daemon", "--json", "--", "sleep",
                            "7549").stdout)["id"]
    session = shown()
    assert {each["id"] for each in session["jobs"]} == {job, own} and len(session["sandbox"]["running"]) == 1, session
    text = cordon("session", "show", "s").stdout
    assert f"job {job}: /bin/sh -c" in text and f"job {own}, in a sandbox of its own: sleep 7549\n" in text, text
    assert say(world.run("pgrep -cxf 'sleep 7549' || true")) == "0\n"
    world.close()
    text = cordon("session", "show", "s").stdout
    assert "none is up" in text and f"job {own}, in a sandbox of its own: sleep 7549\n" in text, text
    assert cordon("job", "kill", own).returncode == 0
    assert wait_until(lambda: not shown()["jobs"])


# ---- what a command does to the sandbox ------------------------------------------------------------------------------

def test_the_sandboxs_own_processes(world):
    """Init cannot be reached; the starter and reapers, a job's too, can be ended. None of them can be read."""
    world.job("/bin/sh", "-c", "echo up; exec sleep 7551", said="up")
    look = "for n in $(pgrep ^cordon-); do ps -o comm= $n; for f in environ mem maps fd root cwd exe; do " \
           "ls /proc/$n/$f/ >/dev/null 2>&1 && echo read $n $f; head -c1 /proc/$n/$f >/dev/null 2>&1 && echo read $n $f; done; done; " \
           "kill -KILL 1; kill -STOP 1; ps -o comm= 1 2; ps -o args= $(pgrep ^cordon-) | cut -d' ' -f1"
    all_of_them = ["cordon-init", "cordon-starter", "cordon-reaper", "cordon-reaper"]
    assert say(world.run(look)).split() == [*all_of_them, *all_of_them[:2], *all_of_them], "by name and by arguments"
    assert say(world.run("pgrep -cxf 'sleep 7551'")) == "1\n"


@pytest.mark.parametrize("signal_name", ["KILL", "STOP", "SEGV"])
def test_a_starter_that_is_ended_or_stopped(world, signal_name):
    first = world.run(f"echo lost >/dev/shm/a; echo kept >/tmp/a; kill -{signal_name} 2")
    done = world.run("cat /tmp/a; cat /dev/shm/a || true")
    assert say(done) == "kept\n"
    assert "session's sandbox" in str(first["denials"] + done["denials"]), (first, done)
    assert say(world.run("echo more")) == "more\n" and world.run("true")["denials"] == []


def test_how_commands_are_scheduled_is_not_left_to_others(world):
    """A command can put any process of its user behind others, and so what the starter starts."""
    look = "nice; taskset -p $$ | sed 's/.*mask//'; chrt -p $$ | head -1 | sed 's/.*policy//'; ionice"
    before = say(world.run(look))
    assert say(world.run("taskset -cp 0 2 >/dev/null && chrt -i -p 0 2 && ionice -c3 -p 2 && echo done")) == "done\n"
    assert say(world.run(look)) == before
    say(world.run("renice 19 2"))
    assert say(world.run(look)) == before


def test_nothing_leaks_from_command_to_command(world):
    look = "umask; ulimit -n; ulimit -c; pwd; nice; grep -E '^(Sig|Cap|Groups|Seccomp|NoNew)' /proc/self/status | grep -v SigQ; " \
           "ls /proc/self/fd | wc -l; env | grep -v CORDON_SANDBOX_ID | sort"
    before = say(world.run(look))
    say(world.run("umask 0; ulimit -n 20; ulimit -c 0; cd /; trap '' TERM INT HUP PIPE; export A=1; nice -n 5 true",
                  open_files="64"))
    assert say(world.run(look)) == before


def test_a_terminal_of_one_is_not_anothers(world):
    """One whose command has ended is not among those of the next."""
    assert say(world.run("ls /dev/pts")).split() == ["ptmx"]


# ---- what the host does to the sandbox -------------------------------------------------------------------------------

@pytest.mark.parametrize("which", ["cordon-init", "cordon-starter"])
def test_the_host_ends_it(world, which):
    say(world.run("echo lost >/dev/shm/a; echo kept >/tmp/a"))
    kill([pid for pid, name in of_sandbox(world) if name == which][:1])
    done = world.run("cat /tmp/a; cat /dev/shm/a || true")
    assert say(done) == "kept\n" and "this command ran in a new one" in str(done["denials"]), done
    assert world.run("true")["denials"] == []


@pytest.mark.parametrize("which", ["cordon-init", "cordon-starter", "cordon-reaper"])
def test_the_host_ends_it_while_a_command_runs(world, which):
    job = world.job("/bin/sh", "-c", "echo up; exec sleep 7535", said="up")
    kill([pid for pid, name in of_sandbox(world) if name == which][:1])
    if which == "cordon-starter":  # what it started goes on with init, until the next command finds that nothing can be started
        assert say(world.run("echo next")) == "next\n"
    assert world.ended(job)["signal"] == signal.SIGKILL
    assert say(world.run("pgrep -cxf 'sleep 7535' || true")) == "0\n"


# ---- many at once ----------------------------------------------------------------------------------------------------

def test_many_callers_at_once(world):
    world.job("/bin/sh", "-c", "echo up; exec sleep 7536", said="up")
    if isinstance(world, ByLibrary):
        names = [world.library.start("/bin/sh", "-c", f"echo {i}") for i in range(40)]
        said = [world.library.wait(name) for name in names]
    else:
        with world.daemon.rpc() as rpc:
            begun = [rpc.start("/bin/sh", "-c", f"echo {i}", events=False) for i in range(40)]
            said = [rpc.end(process)["result"] for process in begun]
    assert [done.get("stdout") for done in said] == [f"{i}\n" for i in range(40)], said
    assert say(world.run("pgrep -cxf 'sleep 7536'")) == "1\n", "the job was left alone"


def test_a_thousand_callers_of_a_new_session(cordon, tmp_path, leftovers):  # noqa: F811
    """None of them made it before: it is made once, and all of them are in one sandbox."""
    world = ByDaemon(cordon, write(tmp_path / "config/cordon/config.toml", ""))
    argv = cordon.argv("run", "--session", "many", "--workspace", cordon.workspace, "--", "readlink",
                       "/proc/self/ns/pid")

    def call(_):
        done = subprocess.run(argv, env=cordon.env, cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
        return done.returncode, done.stdout, done.stderr
    with concurrent.futures.ThreadPoolExecutor(100) as callers:
        said = collections.Counter(callers.map(call, range(1000)))
    world.close()
    assert len(said) == 1, said
    assert next(iter(said))[0] == 0 and [each["id"] for each in json.loads(cordon("session", "list", "--json").stdout)["sessions"]].count("many") == 1


# ---- what there is no room for ---------------------------------------------------------------------------------------

def test_no_room_for_another_process(make):
    """Where no group holds the limit it is the sandbox's, and a job can use it up. What then cannot be started says so,
    or the sandbox is ended for it; the next command runs."""
    world = make(GROUPS["no-group"])
    bomb = "echo up; while :; do sleep 1000 & sleep 0.001; done"
    job = world.job("/bin/sh", "-c", f"ulimit -u 2>/dev/null; {bomb}", said="up")
    done = {}
    for _ in range(100):
        done = world.run("echo ran")
        if done.get("stdout") != "ran\n" or done["denials"]:
            break
    assert done.get("stdout") == "ran\n" and "sandbox" in notes(done) or "limit_processes" in json.dumps(done), done
    world.cordon("job", "kill", job) if isinstance(world, ByDaemon) else world.run("pkill sleep; pkill -f 'echo u[p]'")
    assert wait_until(lambda: world.run("echo again").get("stdout") == "again\n")


def test_what_is_full_can_be_emptied(make):
    """A command that fills /tmp up to the session's limit is ended; the next one begins there all the same, and makes
    room. A grant beneath it finds a mount point."""
    world = make()
    done = world.run("head -c 400M /dev/zero >/tmp/big; sleep 60", disk="64M", timeout="60s")
    assert done.get("limit_hit") == "disk" or "disk" in json.dumps(done), done
    assert say(world.run("ls -s /tmp/big >/dev/null && rm /tmp/big && echo more >/tmp/small && cat /tmp/small")) == "more\n"


def test_descriptors_under_way_elsewhere(world):
    """The kernel counts them per user: what a command of another session keeps under way is not in the way of this
    one."""
    line = f"""exec {PYTHON} -c '
import array, socket, time
pairs = []
try:
    while True:
        pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
        pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
except OSError as error:
    print("full", error.errno, flush=True)
time.sleep(7537)'"""
    write(world.cordon.workspace / "fill.sh", line)
    # Where there is a repository, a command's renames are told of by way of a descriptor of its own.
    subprocess.run(["git", "init", "-q", world.cordon.workspace], check=True)
    world.job("/bin/sh", "fill.sh", said="full 109")
    for _ in range(3):
        assert say(world.run("echo on")) == "on\n"
    assert say(world.run("pgrep -cf 'time.sleep.753[7]'")) == "1\n", "the job was left alone"


# ---- two processes, one session --------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", [ByLibrary, ByDaemon])
def test_two_processes_use_one_session(cordon, tmp_path, leftovers, kind):  # noqa: F811
    """Two that use the library, or one and the daemon: each has a sandbox of its own for it: files are shared,
    processes are not, and names are hidden in both."""
    one, two = kind(cordon, write(tmp_path / "config/cordon/config.toml", "")), Library(cordon)
    try:
        assert say(one.run("echo a >/tmp/a; echo a >~/a")) == ""
        assert say(two.shell("cat /tmp/a ~/a; echo b >/tmp/b")) == "a\na\n"
        assert say(one.run("cat /tmp/b")) == "b\n"
        one.job("/bin/sh", "-c", "echo up; exec sleep 7538", said="up")
        assert say(two.shell("pgrep -cxf 'sleep 7538' || true")) == "0\n"
        for i in range(3):
            write(cordon.workspace / "saving", f"secret {i}\n").rename(cordon.workspace / ".env")
            for done in (one.run("cat .env"), two.shell("cat .env")):
                assert "secret" not in done["stdout"] and "denied" in done["stderr"], done
    finally:
        one.close()
        two.close()


# ---- names, while a job runs -----------------------------------------------------------------------------------------

def test_names_appear_while_a_job_runs(world):
    """A name that the host makes is hidden from the job, too, from the next command on; a repository that a command
    made is protected in the next."""
    ws = world.cordon.workspace
    job = world.job("/bin/sh", "-c",
                    "echo up; until [ -e go ]; do sleep 0.02; done; cat .env sub/.env 2>&1; echo evil >>r/.git/config; echo end; sleep 0.1", said="up")
    write(ws / ".env", "secret\n")
    write(ws / "sub/.env", "secret\n")
    write(ws / "r/.git/config", "[core]\n\tbare = false\n")
    write(ws / "r/.git/HEAD", "ref: refs/heads/main\n")
    (ws / "r/.git/hooks").mkdir()
    done = world.run("cat .env; echo evil >>r/.git/config; mv sub other; touch go")
    assert "secret" not in done["stdout"] and "denied" in done["stderr"], done
    ended = world.ended(job)
    output = ended["stdout"] if isinstance(ended["stdout"], str) else ended["stdout"]["data"]
    assert "secret" not in output and output.count("denied") == 2 and output.endswith("end\n"), output
    assert "evil" not in (ws / "r/.git/config").read_text() and (ws / "sub/.env").exists()


def test_the_workspace_is_replaced_under_a_live_session(world):
    ws = world.cordon.workspace
    write(ws / "file", "first\n")
    job = world.job("/bin/sh", "-c", "echo up; exec sleep 7539", said="up")
    ws.rename(ws.with_name("away"))
    gone = world.run("cat file") if isinstance(world, ByLibrary) else None
    assert gone is None or "error" in gone, gone
    write(ws / "file", "second\n")
    assert say(world.run("cat file")) == "second\n"
    assert say(world.run("pgrep -cxf 'sleep 7539'")) == "1\n", f"{job} was left alone"


# ---- from one view on another ----------------------------------------------------------------------------------------

SPY = r"""
import ctypes, os, sys, time
granted, mark = sys.argv[1:]
print("up", flush=True)
while not os.path.exists("look"):
    time.sleep(0.02)
libc, found = ctypes.CDLL(None, use_errno=True), []

def attempt(name, act):
    try:
        if act():
            found.append(name)
    except OSError:
        pass

def words(pid):
    try:
        return open(f"/proc/{pid}/cmdline").read().split("\0")
    except OSError:
        return []
pid = None
while not pid:  # until the shell has executed it
    pid = next((each for each in os.listdir("/proc") if each.isdigit() and words(each)[:2] == ["sleep", mark]), None)
for name in ("root", "cwd"):
    attempt(name, lambda: os.listdir(f"/proc/{pid}/{name}"))
attempt("file", lambda: open(f"/proc/{pid}/root{granted}").read())
for name in ("environ", "maps", "auxv"):
    attempt(name, lambda: open(f"/proc/{pid}/{name}", "rb").read(1))
attempt("mem", lambda: open(f"/proc/{pid}/mem", "r+b"))
attempt("fd", lambda: os.readlink(f"/proc/{pid}/fd/0"))
attempt("namespace", lambda: os.readlink(f"/proc/{pid}/ns/mnt"))
attempt("trace", lambda: libc.ptrace(16, int(pid), 0, 0) == 0)
attempt("take-fd", lambda: libc.syscall(438, os.pidfd_open(int(pid)), 0, 0) >= 0)
print("found", *found, flush=True)
"""
LOOKS = {"root", "cwd", "file", "environ", "maps", "auxv", "mem", "fd", "namespace", "trace"}


def spied(world, job):
    (world.cordon.workspace / "look").touch()
    output = world.ended(job)["stdout"]
    (world.cordon.workspace / "look").unlink()
    return set((output if isinstance(output, str) else output["data"]).split("found")[1].split())


def test_from_one_command_on_another_across_a_grant(world, tmp_path):
    """What has begun before a grant looks at what has more, and the other way round; within one view all of that can be
    done."""
    granted = write(tmp_path / "granted/file", "granted\n")
    write(world.cordon.workspace / "spy.py", SPY)
    older = world.job(PYTHON, "spy.py", str(granted), "7541", said="up")
    world.job("/bin/sh", "-c", "echo up; exec sleep 7540", said="up")
    world.grant(read=str(granted.parent))
    world.job("/bin/sh", "-c", "echo up; exec sleep 7541", said="up")
    assert spied(world, older) == set()
    newer = world.job(PYTHON, "spy.py", str(granted), "7540", said="up")
    assert spied(world, newer) == set()
    same = world.job(PYTHON, "spy.py", str(granted), "7541", said="up")
    assert spied(world, same) == LOOKS
    # Signals reach all of the session.
    left = "pkill -xf 'sleep 7540'; while pgrep -xf 'sleep 7540' >/dev/null; do sleep 0.02; done; pgrep -cxf 'sleep 7541'"
    assert say(world.run(left)) == "1\n"


def test_a_grant_without_landlock(cordon, tmp_path, leftovers):  # noqa: F811
    """Nothing would keep what runs from looking into what is granted, so that ends, and the result names it. Files
    stay."""
    if lack("gcc"):
        pytest.skip(lack("gcc"))
    granted = write(tmp_path / "granted/file", "granted\n")
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "without", ROOT / "tests/old-kernel/without.c"], check=True)
    world = ByLibrary(cordon, None, [tmp_path / "without", "landlock_create_ruleset:ENOSYS", "--"])
    try:
        job = world.job("/bin/sh", "-c", "echo up; exec sleep 7544", said="up")
        done = world.run("echo one >/tmp/a; echo two >/dev/shm/b; pgrep -cxf 'sleep 7544'")
        assert say(done) == "1\n" and done["isolation"]["filesystem_second"] == "none", done
        world.grant(read=str(granted.parent))
        done = world.run(f"cat {granted} /tmp/a; cat /dev/shm/b; pgrep -cxf 'sleep 7544'")
        assert done["stdout"] == "granted\none\n0\n", done
        assert any("/bin/sh (" in str(denial) and "it was ended" in str(denial) for denial in done["denials"]), done
        assert world.ended(job)["signal"] == signal.SIGKILL
        assert world.run("true")["denials"] == []
    finally:
        world.close()


def test_the_policy_changes_while_a_job_runs(world, tmp_path):
    """The job goes on, with what is hidden now hidden from it, too."""
    write(world.cordon.workspace / "a.kept", "text\n")
    job = world.job("/bin/sh", "-c",
                    "cat a.kept; until [ -e go ]; do sleep 0.02; done; cat a.kept 2>&1; echo end; exec sleep 7542",
                    said="text")
    config = tmp_path / "config/cordon/config.toml"
    config.write_text(config.read_text() + '[capabilities]\ndeny = ["*.kept"]\n')
    assert "denied" in world.run("cat a.kept; echo memory >/dev/shm/a; touch go")["stderr"]
    config.write_text(config.read_text().replace('"*.kept"', '"*.kept", "*.other"'))
    assert say(world.run("cat /dev/shm/a; pgrep -cxf 'sleep 7542' >/dev/null; true")) == "memory\n"
    say(world.run("until pgrep -xf 'sleep 7542'; do sleep 0.02; done; pkill -xf 'sleep 7542'"))
    output = world.ended(job)["stdout"]
    output = output if isinstance(output, str) else output["data"]
    assert output.startswith("text\n") and output.count("text") == 1 and "denied" in output and output.endswith("end\n"), output


# ---- the end ---------------------------------------------------------------------------------------------------------

FILL = """
import os, socket
for i in range(300):
    open(f"/tmp/{i}", "w").close()
for i in range(50):
    os.mkfifo(f"/tmp/fifo{i}")
    socket.socket(socket.AF_UNIX).bind(f"/tmp/socket{i}")
    os.symlink("/etc", f"/tmp/link{i}")
os.makedirs("/tmp/" + "/".join(["deep"] * 200))
os.mkdir("/tmp/locked"); open("/tmp/locked/a", "w").close(); os.chmod("/tmp/locked", 0)
"""


def test_all_of_tmp_goes_with_the_session(world):
    write(world.cordon.workspace / "fill.py", FILL)
    say(world.run(f"{PYTHON} fill.py; ls /tmp | wc -l; chmod 0 /tmp"))
    places = list((world.cordon.data / "cordon/tmp").iterdir())
    assert len(places) == 1, places
    for words in (("end", "s"), ("rm", "s")):
        done = world.cordon("session", *words)
        assert done.returncode == 0, done
    assert list((world.cordon.data / "cordon/tmp").iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_daemon_ends_processes_only(cordon, tmp_path, leftovers, how):  # noqa: F811
    config, world = write(tmp_path / "config/cordon/config.toml", ""), None
    world = ByDaemon(cordon, config)
    say(world.run("echo one >/tmp/a; echo two >~/b; echo three >/dev/shm/c"))
    job = world.job("/bin/sh", "-c", "echo up; exec sleep 7543", said="up")
    inside = [pid for pid, _ in of_sandbox(world)]
    world.daemon.process.send_signal(how)
    world.daemon.process.communicate(timeout=PATIENCE)
    assert wait_until(lambda: not any(map(is_running, inside)))
    # Without a daemon, and with another one.
    assert say(world.run("cat /tmp/a ~/b; cat /dev/shm/c || true")) == "one\ntwo\n"
    assert wait_until(lambda: json.loads(cordon("job", "poll", "--json", job).stdout)["state"] != "running")
    world.daemon.start(stderr=subprocess.DEVNULL)
    assert say(world.run("cat /tmp/a ~/b; cat /dev/shm/c || true")) == "one\ntwo\n"
    world.close()
