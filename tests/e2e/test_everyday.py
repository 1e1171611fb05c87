"""Programs that people use every day work inside as they do outside, and leave in a project only what they mean to."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from lab import IS_ROOT, missing, needs, refused, result

DATA = pathlib.Path(__file__).parent / "data"


@pytest.fixture
def work(cordon):
    """work(line) runs a shell line inside that must succeed, and returns what it printed."""
    cordon.env.pop("PYENV_VERSION", None)

    def run(line, *options, **more):
        done = cordon("run", *options, "-c", line, timeout=60, **more)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout
    run.names = lambda: sorted(path.name for path in cordon.workspace.iterdir())
    run.write = lambda name, text: (cordon.workspace / name).write_text(text)
    return run


def system_path(cordon):
    """Without what the person at this machine has installed under their home."""
    cordon.env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


# ---- building, version control ---------------------------------------------------------------------------------------

MAKEFILE = """
CFLAGS = -O1 -Wall -Werror
hello: main.o words.o
\t$(CC) -o $@ $^
%.o: %.c words.h
\t$(CC) $(CFLAGS) -c -o $@ $<
check: hello
\t./hello world | grep -x 'hello, world'
clean:
\trm -f hello *.o
.PHONY: check clean
"""


@needs("make", "gcc")
def test_a_build_with_make(work, cordon):
    work.write("Makefile", MAKEFILE)
    work.write("words.h", "const char *greeting(void);\n")
    work.write("words.c", '#include "words.h"\nconst char *greeting(void) { return "hello"; }\n')
    work.write("main.c", '#include <stdio.h>\n#include "words.h"\n'
               'int main(int c, char **v) { return c < 2 || printf("%s, %s\\n", greeting(), v[1]) < 0; }\n')
    assert "hello, world" in work("make -j4 check")
    built = cordon.workspace / "hello"
    assert built.stat().st_uid == os.geteuid() and built.stat().st_gid == os.getegid()
    assert subprocess.check_output([built, "outside"], text=True) == "hello, outside\n"
    assert "up to date" in work("make")
    work("make clean")
    assert work.names() == ["Makefile", "main.c", "words.c", "words.h"]


GIT_CONFIG = """[user]
\tname = Ada Example
\temail = ada@example.org
[alias]
\tleak = !echo leaked
[core]
\thooksPath = /tmp/evil-hooks
\tpager = evil-pager
[credential]
\thelper = store --file=/tmp/secret-token-file
[url "https://user:hunter2token@example.org/"]
\tinsteadOf = https://example.org/
"""


@pytest.fixture
def git_home(cordon, tmp_path):
    home = tmp_path / "git-home"
    home.mkdir()
    (home / ".gitconfig").write_text(GIT_CONFIG)
    cordon.env = {key: value for key, value in cordon.env.items() if not key.startswith(("GIT_", "XDG_CONFIG"))}
    cordon.env["HOME"] = str(home)
    return home


@needs("git")
def test_git_with_the_callers_name(work, cordon, git_home):
    work.write("file", "one\n")
    log = work("git init -q . && git add file && git commit -qm first && echo two >> file && git commit -qam second && "
               "git log --format='%an <%ae> %s'")
    assert log == "Ada Example <ada@example.org> second\nAda Example <ada@example.org> first\n"
    assert work("git status --porcelain; git diff HEAD~1 --stat | tail -1").strip().startswith("1 file changed")
    # Later commands, too: .git/config is there now, and protected.
    assert work("git checkout -q -b topic && git tag v1 && git gc -q && git fsck && git branch --show-current") == "topic\n"
    outside = subprocess.run(["git", "-C", cordon.workspace, "log", "--format=%ae"], env=cordon.env, text=True,
                             capture_output=True, check=True)
    assert outside.stdout == "ada@example.org\n" * 2
    assert work.names() == [".git", "file"]


@needs("git")
def test_git_gets_the_identity_and_nothing_that_runs(work, git_home):
    """A comment names the settings that were left out, without their values."""
    listing = work("git config --list --show-origin; cat ~/.gitconfig 2>/dev/null; grep -v '^#' /etc/gitconfig; true")
    assert "Ada Example" in listing and "ada@example.org" in listing
    for secret in ("hunter2token", "secret-token-file", "evil", "leak", "insteadof"):
        assert secret not in listing.lower()
    comment = work("grep '^#' /etc/gitconfig")
    assert {"alias.leak", "core.hookspath", "core.pager", "credential.helper", "url.insteadof"} <= set(comment.split())
    for secret in ("hunter2token", "secret-token-file", "evil", "leaked"):
        assert secret not in comment.lower()


@needs("git")
def test_git_clones_a_local_repository(work, cordon, git_home, tmp_path):
    source = tmp_path / "source"
    for line in (["init", "-q", source], ["-C", source, "commit", "-q", "--allow-empty", "-m", "begun"]):
        subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *line], env=cordon.env, check=True)
    assert work(f"git clone -q {source} copy && git -C copy log --format=%s", "--read", source) == "begun\n"
    assert work("git clone -q copy again && git -C again rev-list --count HEAD") == "1\n"


# ---- Python ----------------------------------------------------------------------------------------------------------

def test_python_venv_and_pip(work, cordon):
    system_path(cordon)
    work.write("script.py", "import sys, json\nprint(json.dumps([sys.prefix != sys.base_prefix, sys.argv[1:]]))\n")
    if subprocess.run(["/usr/bin/python3", "-c", "import ensurepip"], capture_output=True).returncode:
        pytest.skip("cannot: python3-venv: no ensurepip")
    made = work("python3 -m venv env && . env/bin/activate && python script.py a 'b c' && pip --version && "
                "pip list --disable-pip-version-check")
    assert '[true, ["a", "b c"]]' in made and str(cordon.workspace / "env") in made
    assert work.names() == ["env", "script.py"]
    # It is a whole environment outside as well.
    assert subprocess.check_output([cordon.workspace / "env/bin/python", "-c", "print(1)"], text=True) == "1\n"


MULTIPROCESSING = """
import concurrent.futures, multiprocessing, multiprocessing.shared_memory, queue, sqlite3, subprocess, tempfile, threading

def square(number):
    return number * number

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            assert pool.map(square, range(20)) == [n * n for n in range(20)], method
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert sum(pool.map(square, range(10))) == 285
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(square, range(10))) == 285
    shared = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    shared.buf[0] = 7
    shared.close(), shared.unlink()
    lock, values = multiprocessing.Lock(), multiprocessing.Queue()
    with lock:
        values.put("through a queue")
    assert values.get() == "through a queue"
    with multiprocessing.Manager() as manager:
        manager.dict()["key"] = 1
    database = sqlite3.connect("data.sqlite")
    database.execute("create table t (n integer, s text)")
    database.executemany("insert into t values (?, ?)", [(n, str(n)) for n in range(1000)])
    database.commit()
    print(database.execute("select sum(n), count(*) from t").fetchone())
    database.execute("pragma journal_mode=wal")
    with tempfile.NamedTemporaryFile() as scratch:
        print(scratch.name.startswith("/tmp/"))
    print(subprocess.run(["sh", "-c", "echo child"], capture_output=True, text=True).stdout, end="")
"""


def test_python_processes_threads_and_databases(work, cordon):
    system_path(cordon)
    work.write("many.py", MULTIPROCESSING)
    assert work("python3 many.py") == "(499500, 1000)\nTrue\nchild\n"


# ---- Node.js ---------------------------------------------------------------------------------------------------------

NODE = """
const { Worker, isMainThread, parentPort } = require('worker_threads');
const { execFileSync } = require('child_process');
const http = require('http'), fs = require('fs'), os = require('os');
if (!isMainThread) { parentPort.postMessage('from a thread'); } else {
  console.log(execFileSync('echo', ['from a child']).toString().trim());
  console.log(os.homedir() === process.env.HOME, os.tmpdir());
  new Worker(__filename).on('message', text => {
    console.log(text);
    const server = http.createServer((request, response) => response.end('served')).listen(0, '127.0.0.1', () =>
      http.get({ port: server.address().port }, response => {
        response.on('data', data => console.log(data.toString()));
        response.on('end', () => server.close());
      }));
  });
}
"""


@needs("node")
def test_node(work, cordon):
    system_path(cordon)
    work.write("script.js", NODE)
    assert work("node script.js") == "from a child\ntrue /tmp\nfrom a thread\nserved\n"


@needs("node", "npm")
@pytest.mark.parametrize("session", [(), ("--session", "npm")], ids=["one-off", "session"])
def test_npm_install_leaves_only_what_npm_means_to(work, cordon, tmp_path, session):
    system_path(cordon)
    package = tmp_path / "package"
    package.mkdir()
    (package / "package.json").write_text(json.dumps({
        "name": "greeter", "version": "1.2.3", "main": "index.js", "bin": {"greet": "cli.js"},
        "scripts": {"install": "node -e \"require('fs').writeFileSync('built', process.env.npm_lifecycle_event)\""}}))
    (package / "index.js").write_text("module.exports = name => `hello, ${name}`;\n")
    (package / "cli.js").write_text("#!/usr/bin/env node\nconsole.log(require('./index')(process.argv[2]));\n")
    (package / "cli.js").chmod(0o755)
    with tarfile.open(cordon.workspace / "greeter.tgz", "w:gz") as archive:
        archive.add(package, "package")
    work.write("package.json", json.dumps({"name": "project", "version": "1.0.0", "private": True}))
    # What is cached goes into the home then, and not into a layer over the host's cache.
    options = (*session, "--no-caches", "--workspace", cordon.workspace)
    work("npm install --no-audit --no-fund --offline ./greeter.tgz", *options)
    assert work.names() == ["greeter.tgz", "node_modules", "package-lock.json", "package.json"]
    assert sorted(path.name for path in (cordon.workspace / "node_modules").iterdir()) == \
        [".bin", ".package-lock.json", "greeter"]
    assert (cordon.workspace / "node_modules/greeter/built").read_text() == "install"
    assert work("npx --offline greet you", *options) == "hello, you\n"
    assert work("node -p \"require('greeter')('all')\"", *options) == "hello, all\n"
    assert not [path for path in cordon.workspace.rglob("*") if path.name in (".npm", ".cache", "_logs", "_cacache")]
    cached = work("ls -A ~", *options)
    assert (".npm" in cached) == bool(session), "a session keeps its home, a one-off does not"


# ---- other languages and tools ---------------------------------------------------------------------------------------

@needs("perl")
def test_perl(work):
    work.write("script.pl", "use strict; use warnings; use File::Temp; use POSIX ();\n"
               "my ($file, $name) = File::Temp::tempfile(); print $file join(',', map { $_ ** 2 } 1 .. 5); close $file;\n"
               "open my $in, '<', $name or die $!; print <$in>, \"\\n\";\n"
               "my $pid = fork // die; if (!$pid) { exec 'sh', '-c', 'exit 3' } waitpid $pid, 0; print $? >> 8, \"\\n\";\n")
    assert work("perl script.pl") == "1,4,9,16,25\n3\n"


@needs("sqlite3")
def test_sqlite(work):
    assert work("sqlite3 db 'create table t(x); insert into t values (1),(2),(39); select sum(x) from t;' && "
                "sqlite3 db .dump | sqlite3 copy && sqlite3 copy 'pragma integrity_check; select count(*) from t;'") == \
        "42\nok\n3\n"
    assert work.names() == ["copy", "db"]


def test_tar_and_find(work, cordon):
    work("mkdir -p a/b/c && for n in 1 2 3; do echo $n > a/b/c/$n; done; ln -s c/1 a/b/link; ln a/b/c/2 a/hard; "
         "chmod 751 a/b; tar czf all.tgz a && mkdir out && tar xzf all.tgz -C out && diff -r a out/a && "
         "find out -type f -links 2 | sort > links; find a -name '[12]' -printf '%f\\n' | sort >> links")
    assert (cordon.workspace / "links").read_text() == "out/a/b/c/2\nout/a/hard\n1\n2\n"
    assert (cordon.workspace / "out/a/b").stat().st_mode & 0o777 == 0o751


def test_ps_sees_its_own_only(work):
    listing = work("sleep 60 & until pgrep -x sleep > /dev/null; do :; done; ps -eo pid,comm; ps aux | wc -l; pgrep -c sleep; "
                   "uptime > /dev/null; free > /dev/null; kill %1 2> /dev/null || kill $!")
    processes = [line.split() for line in listing.splitlines() if re.fullmatch(r"\s*\d+ \S+", line)]
    assert {"sleep", "ps"} <= {name for _, name in processes} and len(processes) <= 6
    assert all(int(pid) < 100 for pid, _ in processes)
    assert "python3" not in listing and "pytest" not in listing


def setuid_programs():
    paths = [shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin") for name in ("sudo", "su", "mount", "passwd")]
    return [path for path in paths if path and os.stat(path).st_mode & 0o4000]


@pytest.mark.parametrize("program", ["sudo", "setuid"])
def test_sudo_is_refused(cordon, program):
    system_path(cordon)
    if program == "sudo" and not shutil.which("sudo"):
        pytest.skip("cannot: sudo: not installed")
    name = "sudo" if program == "sudo" else os.path.basename(setuid_programs()[0])
    error = refused(cordon, "--", name, "id", status=126)
    assert error["class"] == "program_not_allowed" and error["subject"].endswith("/" + name) and error["remediation"]
    # Started by a program inside it is inert.
    done = cordon("run", "-c", f"{name} -c id 2>&1; {name} id 2>&1", input="\n")
    assert done.returncode != 0 and "uid=0" not in done.stdout


@needs("java")
def test_java(work, cordon):
    system_path(cordon)
    work.write("Hello.java", "import java.util.stream.*;\npublic class Hello { public static void main(String[] a) {\n"
               "System.out.println(IntStream.range(0, 1000).parallel().sum() + \" \" + a[0] + \" \" + "
               "System.getProperty(\"java.io.tmpdir\")); } }\n")
    assert "openjdk" in work("java -version 2>&1").lower()
    assert work("java Hello.java one") == "499500 one /tmp\n"
    assert work.names() == ["Hello.java"]


@needs("strace")
def test_strace_of_an_own_child(work):
    trace = work("strace -f -o trace sh -c 'cat /dev/null; exit 0' && grep -c execve trace")
    assert int(trace) >= 2


@needs("gdb", "gcc")
def test_gdb_of_an_own_child(work):
    work.write("prog.c", "int answer(int x) { return x + 2; }\nint main(void) { return answer(40) - 42; }\n")
    output = work("gcc -g -O0 -o prog prog.c && gdb -nx -batch -ex 'break answer' -ex run -ex 'print x' -ex finish "
                  "-ex continue ./prog 2>&1")
    assert "$1 = 40" in output and "Value returned is $2 = 42" in output and "exited normally" in output


# ---- shells ----------------------------------------------------------------------------------------------------------

def test_a_long_shell_script(work, cordon, tmp_path):
    script = (DATA / "exercise.sh").read_text()
    assert script.count("\n") >= 200
    work.write("exercise.sh", script)
    bare = subprocess.run(["bash", "exercise.sh"], cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=30, env={"PATH": cordon.env["PATH"], "HOME": str(tmp_path)})
    assert bare.returncode == 0 and bare.stdout.endswith("done\n"), bare
    assert work("bash exercise.sh") == bare.stdout
    assert work.names() == ["exercise.sh"]


def test_an_interactive_shell(terminal):
    session = terminal("run", "--tty", "--env", "PS1=inside> ", "--", "bash", "--norc", "--noprofile", "--noediting",
                       "-i")
    session.expect("inside> ")
    session.type("sleep 100 & jobs -l | tr -d 0-9\n")
    session.expect("Running")
    session.type("kill %1; wait %1 2> /dev/null; echo status $?\n")
    session.expect("status 143")
    session.type("sh -c 'echo going; exec sleep 100'\n")
    session.expect("going\r\n")
    session.type("\x1a")
    session.expect("Stopped")
    session.type("bg; kill $!; fg 2> /dev/null; echo $((6 * 7)) answer\n")
    session.expect("42 answer")
    session.type("exit 9\n")
    assert session.end() == 9


# ---- what programs ask of descriptors, by ioctl ----------------------------------------------------------------------

TERMINALS = """
import fcntl, os, pty, struct, termios, tty
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
print(os.get_terminal_size(slave), os.isatty(master), os.ttyname(slave) != "")
tty.setraw(slave)
termios.tcdrain(slave), termios.tcflush(slave, termios.TCIOFLUSH), termios.tcflow(slave, termios.TCOON), termios.tcsendbreak(slave, 0)
fcntl.ioctl(master, termios.TIOCPKT, struct.pack("i", 1))
os.write(slave, b"four")
print(os.read(master, 9))
reader, writer = os.pipe()
os.write(writer, b"four")
print(struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"0000"))[0])
fcntl.ioctl(slave, termios.TIOCEXCL), fcntl.ioctl(slave, termios.TIOCNXCL)
fcntl.ioctl(slave, termios.FIOCLEX), fcntl.ioctl(slave, termios.FIONCLEX)
fcntl.ioctl(slave, termios.FIONBIO, struct.pack("i", 1)), fcntl.ioctl(slave, termios.FIOASYNC, struct.pack("i", 0))
print(os.get_blocking(slave), os.get_inheritable(slave))
print(pty.spawn(["sh", "-c", "stty raw; stty sane; stty size >/dev/null && tput -T xterm cols >/dev/null && tty -s"]))
"""


def test_terminals_of_its_own(work):
    work.write("terminals.py", TERMINALS)
    assert work("/usr/bin/python3 terminals.py").splitlines() == [
        "os.terminal_size(columns=101, lines=33) True True", "b'\\x00four'", "4", "False True", "0"]


INTERFACES = """
import array, fcntl, socket, struct
any_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
room = array.array("B", bytes(4096))
length = struct.unpack("iP", fcntl.ioctl(any_socket, 0x8912, struct.pack("iP", len(room), room.buffer_info()[0])))[0]  # SIOCGIFCONF
print(bytes(room[:length])[:2], socket.if_nameindex()[0], socket.if_nametoindex("lo"))
for request in (0x8913, 0x8915, 0x891b, 0x8921, 0x8927, 0x8942):  # flags, address, mask, MTU, hardware, queue
    fcntl.ioctl(any_socket, request, struct.pack("16s16x", b"lo"))
"""


@needs("mount-namespace")
def test_interfaces_are_listed_as_old_programs_do(work):
    work.write("interfaces.py", INTERFACES)
    assert work("/usr/bin/python3 interfaces.py") == "b'lo' (1, 'lo') 1\n"


@needs("lsattr")
def test_files_are_cloned_and_described(work, cordon):
    work.write("file", "content\n")
    work("cp --reflink=auto file copy && cp --sparse=always file sparse && cmp file copy && cmp file sparse")
    # As outside, on whatever filesystem this is.
    bare = subprocess.run(["lsattr", "-v", "file"], cwd=cordon.workspace, capture_output=True, text=True)
    done = cordon("run", "--", "lsattr", "-v", "file")
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.stderr


@pytest.mark.parametrize("words, keys", [
    pytest.param(["vim", "-u", "NONE", "file"], "oline from inside\x1b:wq\r", id="vim", marks=missing("vim")),
    pytest.param(["less", "file"], "q", id="less", marks=missing("less")),
    pytest.param(["tmux", "-f", "/dev/null", "new-session", "cat file; read line; echo $line >file"],
                 "line from inside\r", id="tmux", marks=missing("tmux")),
    pytest.param(["script", "-qc", "cat file; read line; echo $line >file", "/dev/null"], "line from inside\r",
                 id="script", marks=missing("script")),
])
def test_programs_that_take_the_terminal(terminal, cordon, work, words, keys):
    work.write("file", "the first line\n")
    session = terminal("run", "--tty", "--env", "TERM=xterm", "--env", "LC_ALL=C.UTF-8", "--", *words)
    session.expect("the first line")
    session.type(keys)
    assert session.end() == 0
    assert words[0] == "less" or "line from inside" in (cordon.workspace / "file").read_text()


# ---- network and sockets of its own ----------------------------------------------------------------------------------

SERVER = """
import http.server, os, subprocess, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("you asked for " + self.path).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for host in ("127.0.0.1", "localhost"):
    subprocess.run(["curl", "-sS", "--noproxy", "*", "-w", "\\n", f"http://{host}:{server.server_port}/{host}"], check=True)
"""


@needs("curl")
def test_curl_to_its_own_loopback(work, cordon):
    system_path(cordon)
    work.write("server.py", SERVER)
    assert work("python3 server.py") == "you asked for /127.0.0.1\nyou asked for /localhost\n"


SOCKETS = """
import os, socket, sys
path = sys.argv[1]
server = socket.socket(socket.AF_UNIX, int(sys.argv[2]))
server.bind(path)
if server.type == socket.SOCK_DGRAM:
    if os.fork() == 0:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"a datagram", path)
        os._exit(0)
    print(server.recv(100).decode())
else:
    server.listen()
    if os.fork() == 0:
        client = socket.socket(socket.AF_UNIX, server.type)
        client.connect(path)
        reader, writer = os.pipe()
        os.write(writer, b"through a passed descriptor")
        socket.send_fds(client, [b"x"], [reader])
        os._exit(0)
    connection = server.accept()[0]
    _, [fd], _, _ = socket.recv_fds(connection, 1, 1)
    print(os.read(fd, 100).decode())
os.wait()
"""


@pytest.mark.parametrize("place", ["", "/tmp/"], ids=["workspace", "tmp"])
def test_unix_sockets_between_own_processes(work, cordon, place, request):
    system_path(cordon)
    work.write("sockets.py", SOCKETS)
    # The address of a socket is short: the workspace is the working directory.
    assert work(f"for kind in 1 5 2; do python3 sockets.py {place}s$kind $kind; done; rm -f s1 s5 s2") == \
        "through a passed descriptor\nthrough a passed descriptor\na datagram\n"


# ---- a lot of data ---------------------------------------------------------------------------------------------------

def test_fifty_megabytes_through_cat(cordon):
    block = os.urandom(1 << 20)
    done = cordon("run", "--max-output", "64M", "--", "cat", input=block * 50, text=False, timeout=60)
    assert done.returncode == 0 and len(done.stdout) == 50 << 20
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(block * 50).digest()


def test_a_large_input_is_hashed_inside(cordon, tmp_path):
    block = os.urandom(1 << 20)
    with open(tmp_path / "input", "wb") as file:
        for _ in range(50):
            file.write(block)
    with open(tmp_path / "input", "rb") as file:
        done = cordon("run", "--", "sha256sum", stdin=file, timeout=60)
    assert done.stdout.split()[0] == hashlib.sha256(block * 50).hexdigest()


def test_output_is_safe_for_any_byte(cordon):
    data = bytes(range(256)) * 300
    work = cordon.workspace / "bytes"
    work.write_bytes(data)
    assert cordon("run", "--", "cat", "bytes", text=False).stdout == data
    assert cordon("run", "-c", "cat bytes >&2", text=False).stderr == data
    told = result(cordon, "--", "cat", "bytes")
    assert told["stdout_bytes"] == len(data) and not told["truncated"]


def test_files_belong_to_the_caller(work, cordon):
    work("umask; touch file; mkdir dir; ln -s file link; mkfifo fifo; cp file dir/; chmod 4755 file; id -u")
    for path in cordon.workspace.rglob("*"):
        info = path.lstat()
        assert (info.st_uid, info.st_gid) == (os.geteuid(), os.getegid()), path
    if IS_ROOT:
        assert work("id -u") != "0\n"
