"""Of /etc a command sees what every user may read by its mode bits, whatever its caller could read besides."""
import fcntl
import os
import pathlib
import stat
import subprocess
import tempfile

import pytest

from lab import IS_ROOT, drivers, needs

# A mount namespace with another directory at /etc/ssl, as the same user; what that took is dropped again.
MOUNTED = [*(["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-current-user", "--keep-caps",
                                                     "--mount"]),
           "sh", "-ec", 'mount --bind "$1" "$2"; shift 2; exec "$@"', "-"]
DROP = [] if IS_ROOT else ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
GROUP, STRANGER = 54321, 65533
FILES = {"openssl.cnf": 0o644, "certs/ca.crt": 0o444, "certs/deep/other.crt": 0o644,
         "private/key.pem": 0o640, "certs/leaf.key": 0o640, "certs/deep/own.key": 0o640, "entered/known": 0o644,
         "listed/known": 0o644}
DIRECTORIES = {"": 0o755, "certs": 0o755, "certs/deep": 0o755, "private": 0o710, "entered": 0o711, "listed": 0o754}
PUBLIC = {"openssl.cnf", "certs/ca.crt", "certs/deep/other.crt", "certs/link"}
LOOK = 'cd /etc/ssl && for name in "$@"; do cat "$name" >/dev/null 2>&1 && echo "$name"; done; true'


@pytest.fixture
def ssl(tmp_path):
    """A directory like /etc/ssl: some of it is for its owner and one group."""
    path = tmp_path / "ssl"
    for name in DIRECTORIES:
        (path / name).mkdir(parents=True, exist_ok=True)
    for name, mode in FILES.items():
        (path / name).write_text(f"{name}\n")
        (path / name).chmod(mode)
    (path / "certs/link").symlink_to("deep/other.crt")
    (path / "certs/secret").symlink_to("../private/key.pem")
    for name, mode in reversed(DIRECTORIES.items()):
        (path / name).chmod(mode)
        if IS_ROOT:
            os.chown(path / name, 0, GROUP)
    for name in FILES:
        if IS_ROOT:
            os.chown(path / name, 0, GROUP)
    yield path
    for name in DIRECTORIES:
        (path / name).chmod(0o700)


def run(cordon, source, *words, target="/etc/ssl"):
    argv = [*MOUNTED, source, target, *DROP, *cordon.argv(*words)]
    return subprocess.run(argv, env=cordon.env, cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)


def seen(cordon, ssl, *options):
    """The names of the files that can be read inside."""
    names = [*FILES, "certs/link", "certs/secret"]
    done = run(cordon, ssl, "run", *options, "--", "sh", "-c", LOOK, "-", *names)
    assert done.returncode == 0, done
    return set(done.stdout.splitlines())


@drivers("namespaces", "landlock", "bwrap")
def test_what_only_its_owner_or_group_may_read_is_not_there(cordon, ssl, driver):
    assert seen(cordon, ssl, "--driver", driver) == PUBLIC


@needs("root")
@drivers("namespaces", "landlock", "bwrap")
def test_a_supplementary_group_gives_nothing(cordon, ssl, tmp_path, driver):
    """The group that may read a private key, as ssl-cert may."""
    cordon.data.mkdir(exist_ok=True)
    for path in (cordon.data, cordon.workspace):
        os.chown(path, STRANGER, STRANGER)
    for path in (tmp_path, *tmp_path.parents):
        if not stat.S_IMODE(path.stat().st_mode) & 0o001:
            path.chmod(path.stat().st_mode | 0o055)
    member = [*MOUNTED, ssl, "/etc/ssl", "setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", f"--groups={GROUP}",
              "--inh-caps=-all"]
    cordon.env["HOME"] = str(cordon.data)

    def look(*before):
        return subprocess.run([*member, *before, "sh", "-c", LOOK, "-", *FILES, "certs/link", "certs/secret"],
                              env=cordon.env, cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True).stdout.splitlines()
    assert set(look()) == {*FILES, "certs/link", "certs/secret"}  # without cordon it can be read
    assert set(look(*cordon.argv("run", "--quiet", "--driver", driver, "--"))) == PUBLIC


@drivers("namespaces", "landlock", "bwrap")
def test_an_entry_that_is_private_itself_is_not_there(cordon, ssl, driver):
    ssl.chmod(0o750)
    done = run(cordon, ssl, "run", "--driver", driver, "--", "cat", "/etc/ssl/openssl.cnf")
    assert done.returncode != 0 and done.stdout == "", done


@drivers("namespaces", "landlock", "bwrap")
def test_what_is_granted_by_name_is_there(cordon, ssl, driver):
    """--deny has *.pem by default; a grant by this very path shows the file."""
    done = run(cordon, ssl, "run", "--driver", driver, "--read", "/etc/ssl/private/key.pem", "--", "cat",
               "/etc/ssl/private/key.pem", "/etc/ssl/openssl.cnf")
    assert done.stdout == "private/key.pem\nopenssl.cnf\n", done
    done = run(cordon, ssl, "run", "--driver", driver, "--read", "/etc/ssl/private/key.pem", "--", "cat",
               "/etc/ssl/certs/leaf.key")
    assert done.stdout == "", done


@drivers("landlock")
def test_a_file_of_the_hosts_own_that_is_private_is_not_readable(cordon, tmp_path, driver):
    """Other drivers show a file of the command's own in its place."""
    group = tmp_path / "group"
    group.write_text("ada:x:1:\n")
    group.chmod(0o644)
    words = "run", "--driver", driver, "--", "cat", "/etc/group"
    assert run(cordon, group, *words, target="/etc/group").stdout == "ada:x:1:\n"
    group.chmod(0o640)
    assert run(cordon, group, *words, target="/etc/group").stdout == ""


@needs("certificates")
@drivers("namespaces", "landlock", "bwrap")
def test_certificates_of_this_machine_are_there(cordon, driver):
    bundle = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    done = cordon("run", "--driver", driver, "--", "cat", bundle)
    assert done.stdout == bundle.read_text()
    assert cordon("run", "--driver", driver, "--", "ls", "/etc/ssl/private").stdout == ""


# ---- the table, and what the configuration adds ----------------------------------------------------------------------

FAKE = ["java-99-openjdk/security.conf", "maven/m2.conf", "chromium.d/flags", "pki/tls/cert.pem", "fonts/fonts.conf",
        "default/cacerts", "shadow", "sudoers", "machine-id", "myapp/config", "myapp/secret", "default/myapp",
        "ssl/certs/ca.crt"]
SHOWN = {"java-99-openjdk/security.conf", "maven/m2.conf", "chromium.d/flags", "pki/tls/cert.pem", "fonts/fonts.conf",
         "default/cacerts", "ssl/certs/ca.crt"}


@pytest.fixture
def etc(tmp_path):
    """A directory in the place of /etc; the loader's files are the host's."""
    path = tmp_path / "etc"
    path.mkdir(mode=0o755)
    for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache", "ld.so.conf"):
        if os.path.exists(f"/etc/{name}"):
            (path / name).write_bytes(pathlib.Path("/etc", name).read_bytes())
    for name in FAKE:
        (path / name).parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        (path / name).write_text(f"{name}\n")
        (path / name).chmod(0o600 if name == "myapp/secret" else 0o644)
    for parent in (path, *path.rglob("*")):
        if parent.is_dir():
            parent.chmod(0o755)
    return path


def configure(cordon, directory, text):
    file = directory / "configuration/cordon/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    cordon.env["XDG_CONFIG_HOME"] = str(directory / "configuration")


def shown(cordon, etc, *options):
    done = run(cordon, etc, "run", "--quiet", *options, "--", "sh", "-c", LOOK.replace("/etc/ssl", "/etc"), "-", *FAKE,
               target="/etc")
    assert done.returncode == 0, done
    return set(done.stdout.splitlines())


@drivers("namespaces", "landlock", "bwrap")
def test_what_programs_need_of_etc_is_there(cordon, etc, driver):
    assert shown(cordon, etc, "--driver", driver) == SHOWN


@drivers("namespaces", "landlock", "bwrap")
def test_the_configuration_adds_to_etc(cordon, etc, driver):
    """But not what only its owner may read."""
    configure(cordon, etc.parent, '[sandbox]\netc = ["/etc/my*", "/etc/default/myapp", "/etc/shadow"]\n')
    (etc / "shadow").chmod(0o640)
    assert shown(cordon, etc, "--driver", driver) == SHOWN | {"myapp/config", "default/myapp"}


def test_a_path_outside_etc_is_refused(cordon, tmp_path):
    configure(cordon, tmp_path, '[sandbox]\netc = ["/usr"]\n')
    done = cordon("run", "--", "true")
    assert done.returncode == 125 and "not beneath /etc" in done.stderr, done


def test_programs_of_this_machine_find_their_configuration(cordon):
    for program, words in {"mvn": ["--version"], "java": ["-version"], "fc-list": []}.items():
        if pathlib.Path("/usr/bin", program).exists() and subprocess.run([f"/usr/bin/{program}", *words],
                                                                         capture_output=True).returncode == 0:
            done = cordon("run", "--", program, *words)
            assert done.returncode == 0, done


# ---- places of the command's own -------------------------------------------------------------------------------------

PLACES = """
set -e
for place in /run /run/user/$(id -u) /var/tmp /tmp /dev/shm; do
    echo mine > "$place/$1"
    cp /bin/true "$place/$1-run"; chmod +x "$place/$1-run"; "$place/$1-run"
done
[ "$(stat -c %a /run/user/$(id -u))" = 700 ]
ls -A /run
"""


@drivers("namespaces", "bwrap")
@pytest.mark.parametrize("view", ["system", "host-readonly", "bare"])
def test_run_and_var_tmp_are_private_and_writable(cordon, driver, view):
    name = f"cordon-{os.getpid()}"
    bare = ["--read", "/usr", "--read", "/bin", "--read", "/lib", "--read", "/lib64"] if view == "bare" else []
    done = cordon("run", "--quiet", "--driver", driver, "--view", view, *bare, "--", "sh", "-c", PLACES, "-", name)
    assert done.returncode == 0, done
    assert set(done.stdout.split()) - {"systemd"} == {"user", name, f"{name}-run"}
    assert not [place for place in ("/run", "/var/tmp", "/tmp", "/dev/shm") if os.path.exists(f"{place}/{name}")]


@drivers("namespaces", "bwrap")
def test_var_tmp_is_writable_around_a_grant(cordon, tmp_path, driver):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as granted:
        pathlib.Path(granted, "file").write_text("granted\n")
        done = cordon("run", "--quiet", "--driver", driver, "--read", granted, "--", "sh", "-c",
                      'cat "$1/file" && ls -A /var/tmp && echo > /var/tmp/x && ! echo > "$1/file" 2>/dev/null', "-",
                      granted)
        assert done.returncode == 0 and done.stdout == f"granted\n{os.path.basename(granted)}\n", done
        assert not os.path.exists("/var/tmp/x")


# ---- what is not held, as SECURITY.md says ---------------------------------------------------------------------------

WATCH = """
import ctypes, os, subprocess
libc = ctypes.CDLL(None)
fd = libc.inotify_init()
assert libc.inotify_add_watch(fd, b"/usr/bin", 0x20) > 0
print("watching", flush=True)
seen = b""
while b"tsort" not in seen:
    seen += os.read(fd, 65536)
print("seen")
"""


@drivers("namespaces", "landlock", "bwrap")
def test_programs_started_outside_show(cordon, driver):
    process = cordon.popen("run", "--quiet", "--driver", driver, "--", "/usr/bin/python3", "-c", WATCH, text=True)
    assert process.stdout.readline() == "watching\n"
    subprocess.run(["/usr/bin/tsort", "/dev/null"], check=True)
    assert process.communicate(timeout=60)[0] == "seen\n"


@drivers("namespaces", "landlock", "bwrap")
def test_locks_of_others_show(cordon, driver):
    inside = "run", "--quiet", "--driver", driver, "--", "flock", "--nonblock", "/usr/bin/tsort", "true"
    assert cordon(*inside).returncode == 0
    with open("/usr/bin/tsort", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert cordon(*inside).returncode == 1


def test_private_roots_are_bounded(cordon):
    """What is granted elsewhere has a root of its own, of which the fixed part is kept; beyond a bound it is made in
    memory each time."""
    places = iter(["/var/cache", "/var/lib", "/var/spool", "/var/opt", "/var/mail"])

    def run():
        return cordon("run", "--read", next(places), "-c", "echo x > y && cat /etc/passwd y | tail -1").stdout
    assert run() == "x\n"
    roots = cordon.data / "cordon/roots"
    there = len(list(roots.iterdir()))
    assert run() == "x\n" and len(list(roots.iterdir())) == there + 1
    for number in range(255 - there):
        (roots / f"{number:032x}").mkdir()
    assert run() == run() == "x\n" and len(list(roots.iterdir())) == 256
    # What was not used for a month makes room.
    os.utime(roots / f"{0:032x}", (0, 0))
    assert run() == "x\n" and len(list(roots.iterdir())) == 256 and not (roots / f"{0:032x}").exists()
