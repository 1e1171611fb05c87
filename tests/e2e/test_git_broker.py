"""git's own configuration while a command runs: what is harmless is written, everything else is refused and named, and
the file is never anything but what was judged."""
import os
import subprocess
import threading

import pytest

from conftest import PATIENCE
from lab import missing, needs, result

pytestmark = missing("git", "mount-namespace")
BUSY = "Device or resource busy"
GIT = {"GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always",
       "GIT_CONFIG_KEY_1": "user.name", "GIT_CONFIG_VALUE_1": "x", "GIT_CONFIG_KEY_2": "user.email",
       "GIT_CONFIG_VALUE_2": "x@example.org"}
ENVIRONMENT = [word for key, value in GIT.items() for word in ("--env", f"{key}={value}")]


def git(path, *words):
    done = subprocess.run(["git", *words], cwd=path, capture_output=True, text=True, env={**os.environ, **GIT})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repository(workspace):
    """The workspace, a clone of a repository in it, with a setting of the user's that runs something."""
    git(workspace, "init", "-q", "-b", "main", ".")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "a")
    git(workspace, "clone", "-q", "--bare", ".", "up.git")
    git(workspace, "remote", "add", "up", "./up.git")
    git(workspace, "config", "alias.mine", "!echo mine")
    return workspace


def config(repository):
    return (repository / ".git/config").read_text()


def notes(told):
    return [denial["note"] for denial in told["denials"] if denial["what"].endswith("/.git/config")]


def run(cordon, line, *words, code=0):
    told = result(cordon, *ENVIRONMENT, *words, "-c", line)
    assert told["exit_code"] == code, (line, told["stderr"], told["denials"])
    return told


@pytest.fixture(params=["one-off", "session", "daemon"])
def way(request, cordon):
    """The words by which a command is run in each way."""
    daemon = None
    if request.param == "daemon":
        daemon = cordon.popen("serve", text=True)
        assert "listening" in daemon.stdout.readline()
    yield ["--session", "s", "--workspace", "."] if request.param != "one-off" else []
    if daemon:
        daemon.terminate()
        assert daemon.wait(PATIENCE) == 0
        daemon.communicate()


EVERYDAY = {
    "push -u": ("git push -q -u up main", "branch.main.remote", "up"),
    "checkout --track": ("git push -q up main:other && git fetch -q up && git checkout -q --track up/other",
                         "branch.other.merge", "refs/heads/other"),
    "remote add": ("git remote add second ./up.git", "remote.second.url", "./up.git"),
    "user.name": ("git config user.name Ada", "user.name", "Ada"),
    "absolute": ('git config --file "$PWD/.git/config" user.name Ada', "user.name", "Ada"),
    "elsewhere": ("mkdir -p d && cd d && git config user.name Ada", "user.name", "Ada"),
    "branch.autosetuprebase": ("git config branch.autosetuprebase always", "branch.autosetuprebase", "always"),
}


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday(cordon, repository, way, name):
    line, key, value = EVERYDAY[name]
    inode = (repository / ".git/config").stat().st_ino
    mode = (repository / ".git/config").stat().st_mode
    told = run(cordon, f"{line} && git config --local {key}", *way)
    assert told["stdout"].endswith(f"{value}\n")
    assert git(repository, "config", "--file", ".git/config", key) == f"{value}\n"
    assert git(repository, "config", "alias.mine") == "!echo mine\n"
    assert not (repository / ".git/config.lock").exists()
    after = (repository / ".git/config").stat()
    assert (after.st_ino, after.st_mode, after.st_uid) == (inode, mode, os.geteuid())


def test_submodule_update_init(cordon, repository, tmp_path):
    git(repository, "submodule", "--quiet", "add", str(repository / "up.git"), "part")
    git(repository, "commit", "-qm", "part")
    git(repository, "push", "-q", "up", "main")
    (repository / "clone").mkdir()
    git(repository, "clone", "-q", "up.git", "fresh")
    fresh = tmp_path / "fresh"
    (repository / "fresh").rename(fresh)
    git(fresh, "remote", "set-url", "origin", str(repository / "up.git"))
    told = run(cordon, "git submodule update -q --init && git config submodule.part.url && ls part/.git", "--workspace",
               fresh, "--read", repository / "up.git")
    assert told["stdout"].endswith("part/.git\n")


REFUSED = {
    "core.hooksPath": ("git config core.hooksPath /tmp", "core.hookspath would run hooks from another directory"),
    "core.fsmonitor": ("git config core.fsmonitor ./x", "core.fsmonitor would run a program"),
    "alias": ("git config alias.x '!sh'", "alias.x could run a program"),
    "unknown": ("git config a.setting-of-the-future x",
                "a.setting-of-the-future is not a setting that is known to be harmless"),
    "set-url": ("git remote set-url up https://example.org/evil",
                "remote.up.url would make git use another repository"),
    "taken away": ("git config --unset alias.mine", "alias.mine would be taken away"),
    "twice": ("git config --add alias.mine '!echo mine'",
              "a setting that could run a program would come in another place or another number of times"),
    "include": ("git config include.path ../evil", "include.path would read more configuration"),
    "worktree": ("git config core.worktree /tmp", "core.worktree would make git write elsewhere"),
    "no configuration": ("printf '[core\\n' > .git/config.lock; mv -T .git/config.lock .git/config",
                         "the file is not a git configuration that can be judged"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(cordon, repository, name):
    line, note = REFUSED[name]
    before = config(repository)
    told = result(cordon, *ENVIRONMENT, "-c", line)
    assert told["exit_code"] != 0 and BUSY in told["stderr"]
    assert [each for each in notes(told) if each.startswith(note)], told["denials"]
    assert config(repository) == before


REMOVED = {
    "branch -m": ("git branch -m main trunk && git config branch.trunk.merge && ! git config branch.main.merge",
                  "refs/heads/main\n"),
    "branch -D": ("git checkout -q --detach && git branch -qD main && ! git config --get-regexp '^branch[.]'", ""),
    "unset-upstream": ("git branch --unset-upstream && ! git config --get-regexp '^branch[.]main'", ""),
    "remote remove": ("git remote remove up && ! git config --get-regexp '^(branch|remote)[.]'", ""),
    "remote rename": ("git branch --unset-upstream && git remote rename up down && git config remote.down.url",
                      "./up.git\n"),
}


@pytest.mark.parametrize("name", REMOVED)
def test_what_git_takes_away_with_a_branch_or_a_remote(cordon, repository, name):
    git(repository, "push", "-qu", "up", "main")
    line, printed = REMOVED[name]
    told = run(cordon, line)
    assert told["stdout"] == printed and BUSY not in told["stderr"], told
    removed = [note for note in notes(told) if "was taken away with its remote" in note]
    assert bool(removed) == name.startswith("remote"), told["denials"]
    assert git(repository, "config", "alias.mine") == "!echo mine\n"


def test_what_was_taken_away_is_not_put_elsewhere(cordon, repository):
    """One command cannot do in two steps what it cannot do in one; nor does a remote go that has a program in it."""
    git(repository, "push", "-qu", "up", "main")
    for line, note in (("git remote remove up; git remote add up https://example.org/evil",
                        "remote.up.url would make git use another repository"),
                       ("git remote remove up; git remote add evil https://example.org/evil; git config branch.main.remote evil",
                        "branch.main.remote would make git use another remote"),
                       ("git remote rename up down", "remote.up.url would be taken away")):
        before = config(repository)
        told = result(cordon, *ENVIRONMENT, "-c", line)
        assert [each for each in notes(told) if each.startswith(note)] and told["exit_code"] != 0, told
        (repository / ".git/config").write_text(before)
    git(repository, "config", "remote.up.uploadpack", "mine")
    assert [each for each in notes(result(cordon, *ENVIRONMENT, "-c", "git remote remove up"))
            if "remote.up.uploadpack would be taken away" in each]
    assert git(repository, "config", "remote.up.uploadpack") == "mine\n"


def test_a_refusal_is_in_the_way_of_nothing_else(cordon, repository):
    told = run(cordon, "git config core.pager evil; git config user.name Ada; git config core.editor evil; git config --local user.name")
    assert told["stdout"] == "Ada\n"
    assert [note.split()[0] for note in notes(told)][:2] == ["core.pager", "core.editor"]


def test_what_was_refused_in_words_for_a_person(cordon, repository):
    done = cordon("run", "--", "git", "config", "core.hooksPath", "/tmp")
    assert done.returncode == 4 and "core.hookspath would run hooks from another directory" in done.stderr


# ---- who is not git --------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def mover(tmp_path_factory):
    """A program that makes one thing a lock, and renames it, by each call; and one in which many do at a time."""
    place = tmp_path_factory.mktemp("mover")
    (place / "mover.c").write_text(r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char evil[] = "[core]\n\thooksPath = /tmp/evil\n";
static int good_size;
static char *good;
static volatile int stop;

/* While the library looks at it, it is something else. */
static void *change(void *unused)
{
	(void)unused;
	while (!stop) {
		int fd = open(".git/config.lock", O_WRONLY);
		if (fd >= 0) {
			pwrite(fd, evil, sizeof(evil) - 1, 0);
			pwrite(fd, good, (size_t)good_size, 0);
			close(fd);
		}
		rename(".git/other", ".git/config.lock");
		symlink("/etc/passwd", ".git/other");
	}
	return NULL;
}

static void *rename_on(void *words)
{
	char name[2][64];
	(void)words;
	for (int i = 0; i < 100; i++) {
		int fd = open(".git/config.lock", O_WRONLY | O_CREAT, 0644);
		if (fd >= 0)
			write(fd, good, (size_t)good_size), close(fd);
		strcpy(name[0], ".git/config.lock");
		strcpy(name[1], ".git/config");
		syscall(SYS_renameat2, AT_FDCWD, name[0], AT_FDCWD, name[1], 0);
		snprintf(name[0], 64, ".git/a%ld", syscall(SYS_gettid));
		close(open(name[0], O_WRONLY | O_CREAT, 0644));
		if (rename(name[0], ".git/b") < 0)
			_exit(3);
	}
	return NULL;
}

static int calls(void)
{
	int directory = open(".git", O_RDONLY | O_DIRECTORY), made = 0;
	for (int i = 0; i < 3; i++) {
		int fd = open(".git/config.lock", O_WRONLY | O_CREAT | O_EXCL, 0644);
		write(fd, good, (size_t)good_size);
		close(fd);
		made += (i == 0 ? syscall(SYS_renameat2, directory, "config.lock", directory, "config", 0)
		         : i == 1 ? syscall(SYS_renameat, AT_FDCWD, ".git/config.lock", directory, "config")
		                  : rename(".git/../.git/config.lock", ".git/config")) == 0;
	}
	return made == 3 && syscall(SYS_renameat2, AT_FDCWD, ".git/config", AT_FDCWD, ".git/x", 0) < 0 && errno == EBUSY ? 0 : 1;
}

int main(int argc, char **argv)
{
	int fd = open(".git/config", O_RDONLY);
	good = malloc(65536);
	good_size = (int)read(fd, good, 65536);
	close(fd);
	good_size += sprintf(good + good_size, "[user]\n\tname = %s\n", argc > 2 ? argv[2] : "x");
	if (!strcmp(argv[1], "calls"))
		return calls();
	pthread_t threads[16];
	int count = !strcmp(argv[1], "race") ? 2 : 16;
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, i || count == 16 ? rename_on : change, NULL);
	for (int i = count == 2; i < count; i++)
		pthread_join(threads[i], NULL);
	stop = 1;
	if (count == 2)
		pthread_join(threads[0], NULL);
	return 0;
}
""")
    subprocess.run(["cc", "-O1", "-static", "-pthread", "-w", "-o", place / "mover", place / "mover.c"], check=True)
    return place / "mover"


@needs("gcc")
def test_every_call_that_renames(cordon, repository, mover):
    told = result(cordon, "--read", mover, "--", mover, "calls", "Ada")
    assert told["exit_code"] == 0, told
    assert git(repository, "config", "--file", ".git/config", "user.name") == "Ada\n"


@needs("gcc")
def test_a_lock_that_changes_while_it_is_looked_at(cordon, repository, mover):
    """Only what was judged is ever in the file, whatever the lock is by then."""
    seen, stop = set(), threading.Event()

    def watch():
        while not stop.is_set():
            seen.add(config(repository))
    watcher = threading.Thread(target=watch)
    watcher.start()
    before = config(repository)
    told = result(cordon, "--read", mover, "--", mover, "race")
    stop.set()
    watcher.join()
    assert told["exit_code"] == 0, told
    good = before + "[user]\n\tname = x\n"
    assert all(good.startswith(each) or each == before for each in seen), seen
    assert "evil" not in config(repository) and "root:" not in config(repository)


@needs("gcc")
def test_many_threads_at_a_time(cordon, repository, mover):
    before = config(repository)
    told = result(cordon, "--read", mover, "--processes", "200", "--", mover, "many")
    assert told["exit_code"] == 0, told
    assert config(repository) in [before, before + "[user]\n\tname = x\n"]


LOCKS = {
    "link": "ln -s ../evil .git/config.lock",
    "fifo": "mkfifo .git/config.lock",
    "directory": "mkdir .git/config.lock",
    "second name": "cp .git/config .git/o; ln .git/o .git/config.lock",
    "1 GB": "cp .git/config .git/config.lock; truncate -s 1G .git/config.lock",
    "unreadable": "printf '[alias]\\nx = !sh\\n' > .git/config.lock; chmod 0 .git/config.lock",
    "NUL": "printf '[user]\\n\\tname = a\\0b\\n' > .git/config.lock",
    "evil": "printf '[alias]\\n\\tx = !sh\\n' > .git/config.lock",
}


@pytest.mark.parametrize("name", LOCKS)
def test_locks_that_are_none(cordon, repository, name):
    before = config(repository)
    (repository / "evil").write_text("[alias]\n\tx = !sh\n")
    told = result(cordon, "-c", f"{LOCKS[name]}; mv -T .git/config.lock .git/config")
    assert told["exit_code"] != 0 and config(repository) == before, told


def test_the_second_command_sees_what_the_first_wrote(cordon, repository, way):
    run(cordon, "git config user.name Ada", *way)
    assert run(cordon, "git config --local user.name && git config user.name Bob && git config --local user.name",
               *way)["stdout"] == "Ada\nBob\n"


def test_only_where_there_is_one_to_protect(cordon, workspace):
    """Elsewhere a program may have a listener of its own; here it is told that there is one."""
    line = """python3 -c '
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
allow = struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(allow)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(text)))
fd = libc.syscall({nr}, 1, 8, program)
print(fd >= 0 or os.strerror(ctypes.get_errno()))'""".replace("{nr}", "317" if os.uname().machine == "x86_64" else "277")
    assert cordon("run", "-c", line).stdout == "True\n"
    git(workspace, "init", "-q", ".")
    assert cordon("run", "-c", line).stdout == f"{os.strerror(16)}\n"


def test_the_broker_is_no_wall(cordon, repository):
    """Whoever goes around it meets the mount: it cannot be written, removed or covered."""
    before = config(repository)
    for line in ["echo x >> .git/config", "rm -f .git/config", "mv .git/config x", "ln -f x .git/config",
                 "mv .git git2", "cp x .git/config"]:
        assert result(cordon, "-c", f"echo '[alias]x=!sh' > x; {line}")["exit_code"] != 0
    assert config(repository) == before
