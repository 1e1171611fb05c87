"""The mounts of the private root and their attributes, also of what is mounted beneath a grant; started without
clone3."""
import os

import pytest

from old_kernel_lab import IS_ROOT, needs

# A mount namespace of our own to put mounts in, as the same user; then the privileges that took are dropped again.
OWN_MOUNTS = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-current-user", "--keep-caps",
                                                     "--mount"]
DROP = [] if IS_ROOT else ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
WRITABLE_PLACES = {"/proc", "/tmp", "/run", "/var/tmp", "/dev/shm", "/dev/pts", os.path.realpath(os.environ["HOME"]),
                   "/tmp/home"}
NODES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}


def mounted(script, *before):
    return [*OWN_MOUNTS, "sh", "-ec", script + '\nexec "$@"', "-", *DROP, *before]


def mounts(lab, before, *words):
    """{mount point: its own options, as a set} as the command sees it, the topmost one of each."""
    # At first the host's root may still be on its way out, beneath /proc where nothing leads.
    script = "while cut -d' ' -f5 /proc/self/mountinfo | grep -q ^/proc/directory; do sleep 0.02; done\ncat /proc/self/mountinfo"
    options = {}
    for line in lab.result(before, *words, "-c", script)["stdout"].splitlines():
        fields = line.split()
        options[fields[4].replace("\\040", " ")] = set(fields[5].split(",")) - {"idmapped"}
    return options


@pytest.fixture
def calls(without):
    needs("mount-namespace")
    return without("clone3:ENOSYS")


def test_attributes(lab, calls):
    seen = mounts(lab, calls, "--no-caches", "--read", lab.given)
    for path, options in seen.items():
        assert "nosuid" in options or path in NODES, path
        assert "nodev" in options or path in NODES | {"/dev/pts"}, path
        # In the workspace, directories that lead to such a name are mounts only so that they stay where they are.
        covered = path.endswith((".env", ".ssh", "key", "/.git/config", "/.git/hooks"))
        writable = path in WRITABLE_PLACES | NODES or (path.startswith(str(lab.workspace)) and not covered)
        assert writable or "ro" in options, path
    assert "rw" in seen[str(lab.workspace)] and "ro" in seen[str(lab.given)] and "ro" in seen["/"]
    for name in (".env", ".ssh", "src/deep/.env", "kept/key", ".git/config", ".git/hooks"):
        assert "ro" in seen[f"{lab.workspace}/{name}"], name


def test_of_etc_only_what_is_public(lab, calls, tmp_path):
    """By classic calls no owners are mapped: a root caller's command is root there."""
    ssl = tmp_path / "ssl"
    (ssl / "private").mkdir(parents=True)
    for name in ("private/key", "own", "public"):
        (ssl / name).write_text(f"{name}\n")
    (ssl / "own").chmod(0o600)
    (ssl / "public").chmod(0o644)
    (ssl / "private").chmod(0o700)
    ssl.chmod(0o755)
    before = mounted(f"mount --bind {ssl} /etc/ssl", *calls)
    assert lab.result(before, "-c", "cd /etc/ssl; cat private/key own public; true")["stdout"] == "public\n"


def test_program_list(lab, calls):
    needs("landlock")
    words = [word for name in ("sh", "cut", "grep", "sleep", "cat") for word in ("--program", f"/bin/{name}")]
    seen = mounts(lab, calls, *words)
    assert all("noexec" in seen[path] for path in ("/", "/tmp", "/dev/shm", str(lab.workspace)))
    done = lab.run(calls, "run", "--json", *words, "--", "/bin/ls")
    assert done.returncode == 126, done


def test_submounts(lab, calls):
    """What is mounted beneath a grant is as read-only as the grant; what it had already (noexec, locked here) stays."""
    needs("mount-namespace")
    given, ws = lab.given, lab.workspace
    script = f"""
mkdir -p {given}/sub '{given}/a b' {given}/stack {ws}/sub
mount -t tmpfs tmpfs {given}/sub
mkdir {given}/sub/deep; mount -t tmpfs -o noexec tmpfs {given}/sub/deep
mount -t tmpfs tmpfs '{given}/a b'
mount -t tmpfs tmpfs {given}/stack; mkdir {given}/stack/hidden; mount -t tmpfs tmpfs {given}/stack/hidden
mount -t tmpfs tmpfs {given}/stack
mount -t tmpfs -o nosymfollow tmpfs {ws}/sub
chmod 777 {given}/sub {given}/sub/deep '{given}/a b' {given}/stack {ws}/sub
echo secret >{ws}/sub/.env"""
    before = mounted(script, *calls)
    seen = mounts(lab, before, "--read", given)
    for path in ("sub", "sub/deep", "a b", "stack"):
        assert {"ro", "nosuid", "nodev"} <= seen[f"{given}/{path}"], path
    assert "noexec" in seen[f"{given}/sub/deep"] and "noexec" not in seen[f"{given}/sub"]
    assert {"rw", "nosuid", "nodev", "nosymfollow"} <= seen[f"{ws}/sub"]
    writes = f"for p in sub sub/deep 'a b' stack; do echo x >\"{given}/$p/planted\" && echo through; done; " \
             "echo x >sub/new && cat sub/new; cat sub/.env"
    document = lab.result(mounted(script, *calls), "--read", given, "-c", writes)
    assert document["stdout"] == "x\n", document


def test_many_mounts(lab, calls):
    """The table of mounts is as long as it is."""
    needs("mount-namespace")
    count = 150
    script = f"mkdir -p {lab.given}/m; mount -t tmpfs tmpfs {lab.given}/m; i=0\n" \
             f"while [ $i -lt {count} ]; do mkdir {lab.given}/m/$i; mount -t tmpfs tmpfs {lab.given}/m/$i; i=$((i + 1)); done"
    seen = mounts(lab, mounted(script, *calls), "--read", lab.given)
    below = [options for path, options in seen.items() if path.startswith(f"{lab.given}/m/")]
    assert len(below) == count and all({"ro", "nosuid", "nodev"} <= options for options in below)


def test_later_mounts_do_not_arrive(lab, calls):
    """What is mounted on the host while the command runs stays outside."""
    (lab.given / "late").mkdir()
    script = f"""
mount --make-rshared /
"$@" &
while [ ! -e {lab.workspace}/started ]; do sleep 0.01; done
mount -t tmpfs tmpfs {lab.given}/late; : >{lab.given}/late/arrived; : >{lab.workspace}/go
wait $!
exit"""
    inside = f": >started; while [ ! -e go ]; do sleep 0.01; done; ls {lab.given}/late; ls {lab.given}"
    document = lab.result(mounted(script, *calls), "--read", lab.given, "-c", inside)
    assert document["stdout"] == "kept\nlate\n"


def test_replaced_grant(lab, calls):
    """A link that is granted is shown as what it led to, not as what it leads to."""
    (lab.workspace.parent / "alias").symlink_to(lab.given)
    document = lab.result(calls, "--read", lab.workspace.parent / "alias", "-c",
                          f"cat {lab.workspace.parent}/alias/kept; ls {lab.outside}")
    assert document["stdout"] == "kept\n"


def test_nothing_of_it_stays(lab, calls):
    """Neither on the host's table of mounts nor in the workspace."""
    before = open("/proc/self/mountinfo").read()
    listed = sorted(os.listdir(lab.workspace))
    lab.result(calls, "--read", lab.given, "--", "true")
    assert open("/proc/self/mountinfo").read() == before
    assert sorted(os.listdir(lab.workspace)) == listed


@pytest.mark.parametrize("session", [[], ["--session", "s"]])
def test_caches_without_overlayfs(lab, without, tmp_path, session):
    """The option that overlayfs needs in a user namespace is not there before Linux 5.11: then a cache is a private
    directory."""
    needs("mount-namespace")
    cache = tmp_path / "home/.npm/_cacache"
    (cache / "kept").mkdir(parents=True)
    lab.env["HOME"] = str(tmp_path / "home")
    words = [*session, "--workspace", lab.workspace, "-c"] if session else ["-c"]
    script = "cd ~/.npm/_cacache && grep -c upperdir /proc/self/mountinfo; ls; mkdir -p new && echo package > new/one && cat new/one"
    assert lab.result([], *words, script)["stdout"] == "1\nkept\npackage\n"
    bare = without("fsconfig/1=0:EINVAL")
    seen = lab.result(bare, *words, script)["stdout"]
    assert seen == ("0\nnew\npackage\n" if session else "0\npackage\n")
    # What a session wrote stays; of the host's cache nothing has changed.
    assert lab.result(bare, *words, "ls ~/.npm/_cacache")["stdout"] == ("new\n" if session else "")
    assert [path.name for path in cache.rglob("*")] == ["kept"]
