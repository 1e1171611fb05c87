"""A view that a session's sandbox gets while it is up, by a grant or a changed policy: commands see the processes that
make it, in their pid namespace, and can stop and kill them. That costs the session its sandbox, and nobody else
anything."""
import signal
import subprocess
import threading

import pytest

from lab import ROOT, lack, leftovers, missing, wait_until  # noqa: F401
from test_session_living import ByDaemon, ByLibrary, capability, make, say, world, write  # noqa: F401

pytestmark = missing("mount-namespace")

# Signals the first or second process that comes, or all of a few, as soon as it is there, and says what it can see of
# it.
AMBUSH = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	static const char *const files[] = { "mem", "environ", "maps", "root/", "cwd/", "fd/", "ns/mnt" };
	struct stat info;
	char path[64], byte, words[4096] = "";
	int signal = atoi(argv[1]), wanted = fork(), found = 0;
	if (argc != 3 || !wanted)
		_exit(0);
	waitpid(wanted, NULL, 0);
	wanted += atoi(argv[2]);
	puts("up");
	fflush(stdout);
	while (kill(wanted, signal) < 0)
		if (errno != ESRCH)
			printf("refused %d\n", errno);
	for (int i = 0; i < 7; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", wanted, files[i]);
		int fd = open(path, O_RDONLY);
		if (fd >= 0 || readlink(path, &byte, 1) > 0)
			found++;
	}
	/* Its words, unless it is the starter by now; and what it is called. */
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", wanted, i ? "comm" : "cmdline");
		int fd = open(path, O_RDONLY);
		ssize_t length = fd < 0 ? 0 : read(fd, words, sizeof(words));
		found += length > 0 && *words && memcmp(words, "cordon-starter", 14) && memcmp(words, "memfd:", 6);
	}
	snprintf(path, sizeof(path), "/proc/%d", wanted);
	printf("%s owner %d, %d found\n", stat(path, &info) < 0 ? "gone" : "there", info.st_uid == geteuid(), found);
	fflush(stdout);
	for (;;)
		pause();
}
"""


@pytest.fixture(scope="module")
def ambush(tmp_path_factory):
    if lack("gcc"):
        pytest.skip(lack("gcc"))
    program = tmp_path_factory.mktemp("ambush") / "ambush"
    subprocess.run(["cc", "-O1", "-static", "-x", "c", "-", "-o", program], input=AMBUSH.encode(), check=True)
    return program


def output(ended):
    return ended["stdout"] if isinstance(ended["stdout"], str) else ended["stdout"]["data"]


def notes(done):
    return str(done["denials"])


# ---- what makes it, from inside --------------------------------------------------------------------------------------

@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("how", ["STOP", "KILL"])
def test_what_makes_a_view_is_stopped_or_killed(world, ambush, tmp_path, how, which):  # noqa: F811
    """The sandbox ends, within its second, and the result names what ended with it. Nothing of the daemon could be read
    meanwhile."""
    config, program = tmp_path / "config/cordon/config.toml", world.cordon.workspace / "ambush"
    for i in range(1000):  # it takes a while
        write(world.cordon.workspace / f"{i}/.env", "secret\n")
    program.write_bytes(ambush.read_bytes())
    program.chmod(0o755)
    for attempt in range(50):
        say(world.run("echo kept >/tmp/a"))
        job = world.job("./ambush", str(int(getattr(signal, f"SIG{how}"))), str(which), said="up")
        capability(config, f'fs_read = ["{write(tmp_path / f"granted{attempt}/file", "")}"]')
        for look in ("cat /tmp/a", "cat /tmp/a; pkill ambush || true"):
            done = world.run(look)
            assert "error" not in done, str(done)
            assert say(done) == "kept\n" and done["duration_ms"] < 30000, done
            if "it was ended" in notes(done):
                break
        ended = world.ended(job)
        said = output(ended).splitlines()
        # What it has seen it may not have come to say: then once more.
        if "it was ended" in notes(done) and (how == "KILL" or len(said) > 1):
            break
    assert "ambush" in notes(done), done
    assert ended["signal"] == signal.SIGKILL and said[0] == "up" and len(said) <= 2, ended
    assert how == "KILL" or said[1:] == ["there owner 0, 0 found"], said
    assert world.run("true")["denials"] == []


# Ends the first starter, and with it the sandbox, so many microseconds after a file is there.
END = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	puts("up");
	fflush(stdout);
	while (access("go", F_OK) < 0)
		;
	usleep(atoi(argv[argc - 1]));
	kill(2, SIGKILL);
	pause();
}
"""


def test_a_sandbox_that_ends_while_a_view_is_made(cordon, tmp_path, leftovers):  # noqa: F811
    """It is one that has ended, whatever cannot be entered just then: the command has another one."""
    if lack("gcc"):
        pytest.skip(lack("gcc"))
    config = write(tmp_path / "config/cordon/config.toml", "")
    world = ByDaemon(cordon, config)
    subprocess.run(["cc", "-O1", "-static", "-x", "c", "-", "-o", cordon.workspace / "end"], input=END.encode(),
                   check=True)
    try:
        for attempt in range(40):
            (cordon.workspace / "go").unlink(missing_ok=True)
            capability(config, "")
            # What the attempt before has begun may end this one.
            assert wait_until(lambda: world.run("true").get("exit_code") == 0)
            world.job("./end", str(attempt % 20 * 100), said="up")
            capability(config, f'fs_read = ["{write(tmp_path / f"granted{attempt}", "")}"]')
            # The client takes as long as this to come to the daemon.
            later = threading.Timer(0.004 + attempt % 4 / 500, (cordon.workspace / "go").touch)
            later.start()
            done = world.run("true")
            later.join()
            assert "namespaces" not in str(done.get("error")), done
    finally:
        world.close()


def test_no_view_is_added_without_landlock(cordon, tmp_path, leftovers):  # noqa: F811
    """Nothing would keep what runs from what makes the view: also where it is to show a name that was hidden."""
    if lack("gcc"):
        pytest.skip(lack("gcc"))
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "without", ROOT / "tests/old-kernel/without.c"], check=True)
    config = write(tmp_path / "config/cordon/config.toml", '[approval]\nqueue = true\n')
    capability(config, 'deny = ["*.kept"]')
    write(cordon.workspace / "a.kept", "text\n")
    world = ByLibrary(cordon, config, [tmp_path / "without", "landlock_create_ruleset:ENOSYS", "--"])
    try:
        job = world.job("/bin/sh", "-c", "echo up; exec sleep 7561", said="up")
        assert "denied" in world.run("cat a.kept; pgrep -cxf 'sleep 7561' >&2")["stderr"]
        capability(config, "")
        done = world.run("cat a.kept; pgrep -cxf 'sleep 7561'")
        assert done["stdout"] == "text\n0\n" and "/bin/sh (" in notes(done) and "it was ended" in notes(done), done
        assert world.ended(job)["signal"] == signal.SIGKILL
    finally:
        world.close()


def test_a_later_views_starter_is_killed(world, tmp_path):  # noqa: F811
    """What it cannot be changed through any more goes with the sandbox, so that names that appear are hidden in the
    next one."""
    config = tmp_path / "config/cordon/config.toml"
    capability(config, f'fs_read = ["{write(tmp_path / "granted/file", "")}"]')
    job = world.job("/bin/sh", "-c", "echo up; exec sleep 7562", said="up")
    capability(config, "")
    newer = world.job("/bin/sh", "-c", "echo up; exec sleep 7563", said="up")
    capability(config, f'fs_read = ["{tmp_path}/granted/file"]')
    assert say(world.run("pgrep -cxf 'sleep 756[23]'")) == "2\n"
    say(world.run("kill -KILL $(pgrep -x cordon-starter | tail -1); sleep 0.1"))
    write(world.cordon.workspace / ".env", "secret\n")
    done = world.run("cat .env; pgrep -cxf 'sleep 756[23]'")
    assert done["stdout"] == "0\n" and "denied" in done["stderr"] and "this command ran in a new one" in notes(done), done
    assert world.ended(job)["signal"] == world.ended(newer)["signal"] == signal.SIGKILL



# ---- covers ----------------------------------------------------------------------------------------------------------

MOUNTS = "wc -l </proc/self/mountinfo"


def test_what_is_a_mount_is_not_yet_protected(world, tmp_path):  # noqa: F811
    """A directory on the way to a hidden name, which is a mount so that it stays where it is; then it is to be
    protected itself."""
    write(world.cordon.workspace / "vendor/sub/.env", "secret\n")
    say(world.run("echo mine >vendor/file"))
    job = world.job("/bin/sh", "-c", "echo up; until [ -e go ]; do sleep 0.02; done; echo evil >>vendor/file; echo end",
                    said="up")
    capability(tmp_path / "config/cordon/config.toml", 'protect = ["vendor"]')
    done = world.run("echo evil >>vendor/file; touch go")
    assert "Read-only" in done["stderr"], done
    assert "Read-only" in str(world.ended(job)) and (world.cordon.workspace / "vendor/file").read_text() == "mine\n"
    mounts = say(world.run(MOUNTS))
    assert say(world.run(MOUNTS)) == mounts


def test_what_cannot_be_read_is_not_yet_hidden(world, tmp_path):  # noqa: F811
    """A directory that a command has closed looks like a mask, until it is opened again."""
    write(world.cordon.workspace / "x/.env", "secret\n")
    write(world.cordon.workspace / "x/file", "hidden\n")
    job = world.job("/bin/sh", "-c",
                    "chmod 0 x; echo up; until [ -e go ]; do sleep 0.02; done; chmod 755 x; cat x/file; echo end",
                    said="up")
    capability(tmp_path / "config/cordon/config.toml", 'deny = ["x"]')
    say(world.run("touch go"))
    ended = world.ended(job)
    (world.cordon.workspace / "x").chmod(0o755)
    assert "hidden" not in output(ended) and output(ended).endswith("end\n"), ended


@pytest.mark.parametrize("lacks", ["openat2:ENOSYS", "openat2:EPERM", "statx:ENOSYS", "openat2:ENOSYS,statx:ENOSYS"])
def test_what_is_covered_is_not_covered_again(cordon, tmp_path, leftovers, lacks):  # noqa: F811
    """Also where the kernel, or a container around us, lacks the calls that are used for looking."""
    if lack("gcc"):
        pytest.skip(lack("gcc"))
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "without", ROOT / "tests/old-kernel/without.c"], check=True)
    write(cordon.workspace / "sub/.env", "secret\n")
    write(cordon.workspace / "r/.git/config", "[core]\n\tbare = false\n")
    write(cordon.workspace / "r/.git/HEAD", "ref: refs/heads/main\n")
    world = ByLibrary(cordon, write(tmp_path / "config/cordon/config.toml", ""), [tmp_path / "without", lacks, "--"])
    try:
        counts = [say(world.run(MOUNTS)) for _ in range(4)]
        assert len(set(counts)) == 1, counts
        write(cordon.workspace / "later/.env", "secret\n")
        done = world.run(f"cat later/.env sub/.env; echo evil >>r/.git/config; {MOUNTS}")
        assert done["stderr"].count("denied") == 2 and "Read-only" in done["stderr"], done
        assert world.run(MOUNTS)["stdout"] == done["stdout"], "what was covered from outside stays covered"
    finally:
        world.close()


def test_what_cannot_be_hidden_is_not_shown(make, tmp_path):  # noqa: F811
    """With the host's whole tree in view there is nothing to make masks of once the sandbox is up: while a job runs
    there the command is refused, and then another sandbox is raised."""
    world = make('[sandbox]\nview = "host-readonly"\n')  # noqa: F811
    job = world.job("/bin/sh", "-c", "echo up; exec sleep 7564", said="up")
    write(world.cordon.workspace / ".env", "secret\n")
    for _ in range(2):
        done = world.run("cat .env")
        assert done["error"]["subject"].endswith(".env") and done["error"]["step"] == "run", done
    world.ask_to_end(job)
    world.ended(job)
    done = world.run("cat .env")
    assert "secret" not in done["stdout"] and "denied" in done["stderr"], done
