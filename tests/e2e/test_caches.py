"""Package caches of the host: readable inside, written to a layer of the session's, never changed by a command."""
import json
import os
import socket
import subprocess

import pytest

from conftest import PATIENCE, wait_until
from lab import missing, needs

pytestmark = missing("mount-namespace")

# Where each is on the host, and inside.
CACHES = {
    "npm": (".npm/_cacache", ".npm/_cacache"), "pip": (".cache/pip", ".cache/pip"), "uv": (".cache/uv", ".cache/uv"),
    "cargo": (".cargo/registry", ".cargo/registry"), "cargo-git": (".cargo/git", ".cargo/git"),
    "go": ("go/pkg/mod", "go/pkg/mod"), "go-build": (".cache/go-build", ".cache/go-build"),
    "maven": (".m2/repository", ".m2/repository"), "gradle": (".gradle/caches", ".gradle/caches"),
    "gradle-wrapper": (".gradle/wrapper/dists", ".gradle/wrapper/dists"), "ccache": (".ccache", ".cache/ccache"),
}


@pytest.fixture
def home(tmp_path, cordon):
    path = tmp_path / "home"
    path.mkdir()
    cordon.env["HOME"] = str(path)
    for name in ["XDG_CACHE_HOME", "CARGO_HOME", "GOPATH", "GOMODCACHE", "CCACHE_DIR"]:
        cordon.env.pop(name, None)
    return path


@pytest.fixture
def daemon(home, cordon):
    """`cordon serve`, with that home."""
    process = cordon.popen("serve", text=True)
    assert "listening" in process.stdout.readline()
    yield process
    process.terminate()
    assert process.wait(PATIENCE) == 0
    process.communicate()


def fill(home, names=CACHES):
    for name in names:
        (home / CACHES[name][0] / "kept").mkdir(parents=True)
        (home / CACHES[name][0] / "kept/package").write_text(f"of {name}\n")


def picture(root):
    """Everything about a tree that a command could have changed."""
    return {str(path.relative_to(root)): (path.lstat().st_mode, path.lstat().st_uid, path.lstat().st_mtime_ns,
                                          path.lstat().st_ctime_ns, path.read_bytes() if path.is_file() else None)
            for path in sorted(root.rglob("*"))}


def test_every_cache_is_read_and_its_layer_written(cordon, home):
    fill(home)
    before = picture(home)
    for name, (_, inside) in CACHES.items():
        script = (f'cd "$HOME/{inside}" && cat kept/package && echo new > fresh && echo changed > kept/package && cat kept/package '
                  '&& rm -r kept && ls')
        done = cordon("run", "--", "sh", "-c", script)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"of {name}\nchanged\nfresh\n", "")
    assert picture(home) == before


def test_a_cache_of_the_host_with_hostile_content(cordon, home, tmp_path):
    """Whoever wrote it: it leads nowhere, opens nothing and gives nothing, and the rest of it works."""
    fill(home, ["npm"])
    cache, secret = home / CACHES["npm"][0], tmp_path / "secret"
    secret.write_text("hidden\n")
    (cache / "link").symlink_to(secret)
    (cache / "up").symlink_to("../../..")
    (cache / "loop").symlink_to("loop")
    os.mkfifo(cache / "fifo")
    (cache / "closed").mkdir(0)
    (cache / "unreadable").write_text("x")
    (cache / "unreadable").chmod(0)
    (cache / "setuid").write_text("#!/bin/sh\nid -u\n")
    (cache / "setuid").chmod(0o6755)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(cache / "socket"))
        server.listen()
        if os.geteuid() == 0:
            os.mknod(cache / "device", 0o20666, os.makedev(1, 5))  # /dev/zero
        before = {path.name: path.lstat().st_mode for path in cache.iterdir()}
        done = cordon("run", "-c", "cd ~/.npm/_cacache; cat kept/package; cat link up/secret loop; head -c 1 device | wc -c; ls up; "
                      'python3 -c "import socket; socket.socket(socket.AF_UNIX).connect(\'socket\'); print(\'connected\')"; '
                      "test \"$(./setuid)\" = \"$(id -u)\" && echo own; echo new > fresh && rm link fifo && cat fresh")
    assert done.stdout.startswith("of npm\n0\n") and done.stdout.endswith("own\nnew\n"), done
    assert "hidden" not in done.stdout + done.stderr and "connected" not in done.stdout and "secret" not in done.stdout, done
    assert {path.name: path.lstat().st_mode for path in cache.iterdir()} == before
    (cache / "closed").chmod(0o700)


def test_a_one_off_leaves_nothing_and_sees_nothing_of_another(cordon, home):
    fill(home, ["npm"])
    cordon("run", "--", "sh", "-c", "echo x > ~/.npm/_cacache/poison")
    done = cordon("run", "--", "sh", "-c", "ls ~/.npm/_cacache")
    assert done.stdout == "kept\n"
    assert not (cordon.data / "cordon/layers").exists()


def test_what_a_session_writes_stays_and_no_other_sees_it(cordon, home):
    fill(home, ["go", "pip"])
    before = picture(home)
    assert cordon("run", "--session", "one", "--", "sh", "-c",
                  "echo poison > ~/go/pkg/mod/kept/package; rm ~/.cache/pip/kept/package").returncode == 0
    seen = "cat ~/go/pkg/mod/kept/package; ls ~/.cache/pip/kept"
    assert cordon("run", "--session", "one", "--", "sh", "-c", seen).stdout == "poison\n"
    assert cordon("run", "--session", "two", "--", "sh", "-c", seen).stdout == "of go\npackage\n"
    assert cordon("run", "--", "sh", "-c", seen).stdout == "of go\npackage\n"
    assert picture(home) == before


def test_commands_of_a_session_beside_each_other_have_a_layer_each_and_then_the_first_again(cordon, home, workspace):
    fill(home, ["npm"])
    first = cordon.popen("run", "--session", "s", "--workspace", workspace, "--", "sh", "-c",
                         "echo 1 > ~/.npm/_cacache/mine; echo > up; while [ ! -e go ]; do sleep 0.05; done; ls ~/.npm/_cacache", text=True)
    assert wait_until((workspace / "up").exists)
    # Without a daemon it has a sandbox of its own; then, too, no upper directory is mounted twice.
    beside = cordon("run", "--session", "s", "--fresh", "--", "sh", "-c",
                    "ls ~/.npm/_cacache; grep -c upperdir /proc/self/mountinfo")
    assert beside.stdout == "kept\n1\n"
    (workspace / "go").touch()
    assert first.communicate(timeout=60)[0] == "kept\nmine\n"
    after = cordon("run", "--session", "s", "--", "sh", "-c", "ls ~/.npm/_cacache")
    assert after.stdout == "kept\nmine\n", after.stderr


def test_the_supervisor_is_killed_and_the_layer_is_free_once_nothing_of_the_command_is_left(cordon, home, workspace):
    fill(home, ["npm"])
    first = cordon.popen("run", "--session", "s", "--workspace", workspace, "--", "sh", "-c",
                         "echo 1 > ~/.npm/_cacache/mine; echo > up; sleep 600")
    assert wait_until((workspace / "up").exists)
    first.kill()
    first.communicate()

    def has_it():
        return cordon("run", "--session", "s", "--", "sh", "-c", "ls ~/.npm/_cacache").stdout == "kept\nmine\n"
    assert wait_until(has_it)


def test_by_setting_the_layer_is_the_workspaces(cordon, home, workspace, tmp_path):
    fill(home, ["npm"])
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "config.toml").write_text('[sandbox]\ncaches = "workspace"\n')
    config = ["--config", tmp_path / "config.toml"]
    cordon("run", *config, "--", "sh", "-c", "echo x > ~/.npm/_cacache/ours")
    assert cordon("run", *config, "--session", "s", "--workspace", workspace, "--", "sh", "-c",
                  "ls ~/.npm/_cacache").stdout == "kept\nours\n"
    assert cordon("run", *config, "--workspace", other, "--", "sh", "-c", "ls ~/.npm/_cacache").stdout == "kept\n"
    listed = json.loads(cordon("cache", "list", "--json", *config).stdout)
    assert {layer["workspace"] for layer in listed["layers"]} == {str(workspace), str(other)}
    assert json.loads(cordon("cache", "clear", "--json", "--workspace", ".",
                             *config).stdout) == {"removed": 1, "in_use": 0}
    assert cordon("run", *config, "--", "sh", "-c", "ls ~/.npm/_cacache").stdout == "kept\n"


def test_no_caches_by_option_by_setting_and_in_a_bare_view(cordon, home, tmp_path):
    fill(home, ["npm"])
    (tmp_path / "config.toml").write_text('[sandbox]\ncaches = "none"\n')
    for option in ["--no-caches"], ["--config", tmp_path / "config.toml"]:
        done = cordon("run", *option, "--", "sh", "-c", "ls -A ~")
        assert (done.returncode, done.stdout) == (0, "")
    mounts = json.loads(cordon("profile", "--view", "bare", "--", "sh").stdout)["mounts"]
    assert [mount for mount in mounts if mount["kind"] == "layer"] == []


def test_a_session_that_is_called_like_a_workspace(cordon, home, workspace, tmp_path):
    fill(home, ["npm"])
    (tmp_path / "config.toml").write_text('[sandbox]\ncaches = "workspace"\n')
    assert cordon("run", "--config", tmp_path / "config.toml", "--", "sh", "-c",
                  "echo x > ~/.npm/_cacache/ours").returncode == 0
    for name in str(workspace), f"workspace {workspace}":
        assert cordon("run", "--session", name, "--", "sh", "-c", "ls ~/.npm/_cacache").stdout == "kept\n"


def test_list_and_clear(cordon, home):
    fill(home, ["npm", "maven"])
    cordon("run", "--session", "one", "--", "sh", "-c",
           "dd if=/dev/zero of=$HOME/.m2/repository/big bs=1024 count=200 2>/dev/null")
    cordon("run", "--session", "two", "--", "sh", "-c", "echo x > ~/.m2/repository/small")
    listed = json.loads(cordon("cache", "list", "--json").stdout)
    assert listed["caches"] == [{"name": "npm", "host": str(home / ".npm/_cacache"), "inside": "~/.npm/_cacache"},
                                {"name": "maven", "host": str(home / ".m2/repository"), "inside": "~/.m2/repository"}]
    sizes = {layer["session"]: layer["bytes"] for layer in listed["layers"]}
    assert sizes["one"] > 200 * 1024 > sizes["two"] and not any(layer["in_use"] for layer in listed["layers"])
    assert cordon("cache", "clear", "--session", "one").returncode == 0
    assert cordon("run", "--session", "one", "--", "sh", "-c", "ls ~/.m2/repository").stdout == "kept\n"
    assert "small" in cordon("run", "--session", "two", "--", "sh", "-c", "ls ~/.m2/repository").stdout
    both = cordon("cache", "clear", "--session", "one", "--workspace", ".", "--json")
    assert both.returncode == 125 and json.loads(both.stdout)["error"]["class"] == "invalid_request"


def test_clear_leaves_what_runs_and_removal_of_a_session_takes_its_layers(cordon, home, workspace):
    fill(home, ["npm"])
    running = cordon.popen("run", "--session", "s", "--workspace", workspace, "--", "sh", "-c",
                           "echo > up; cat; cat ~/.npm/_cacache/kept/package", text=True, stdin=subprocess.PIPE)
    assert wait_until((workspace / "up").exists)
    assert json.loads(cordon("cache", "clear", "--json").stdout) == {"removed": 0, "in_use": 1}
    assert json.loads(cordon("cache", "list", "--json").stdout)["layers"][0]["in_use"]
    assert running.communicate("", timeout=60)[0] == "of npm\n"
    assert cordon("session", "end", "s").returncode == 0 and cordon("session", "rm", "s").returncode == 0
    assert list((cordon.data / "cordon/layers").iterdir()) == []


def test_what_a_cache_cannot_be(cordon, home, workspace, tmp_path):
    """A link to the home or to a place of secrets, a file, what can be written already: none is shown as a cache."""
    (home / ".ssh").mkdir()
    (home / ".ssh/id_ed25519").write_text("secret")
    (home / ".cache").mkdir()
    (home / ".cache/pip").symlink_to(home)
    (home / ".cache/uv").symlink_to(home / ".ssh")
    (home / ".npm").mkdir()
    (home / ".npm/_cacache").write_text("a file")
    inside = workspace / "maven"
    inside.mkdir()
    (home / ".m2").mkdir()
    (home / ".m2/repository").symlink_to(inside)
    (home / ".cargo").mkdir()
    (home / ".cargo/registry").symlink_to("nowhere")
    assert json.loads(cordon("cache", "list", "--json").stdout)["caches"] == [
        {"name": "maven", "host": str(inside), "inside": "~/.m2/repository"}]
    done = cordon("run", "--", "sh", "-c", "ls -A ~; grep -c overlay /proc/self/mountinfo")
    assert done.stdout == "0\n"


def test_a_link_leads_to_the_cache_and_a_variable_names_it(cordon, home, tmp_path):
    for name in "npm", "modules":
        (tmp_path / name).mkdir()
        (tmp_path / name / "package").write_text(name)
    (home / ".npm").mkdir()
    (home / ".npm/_cacache").symlink_to(tmp_path / "npm")
    cordon.env["GOMODCACHE"] = str(tmp_path / "modules")
    done = cordon("run", "--", "sh", "-c",
                  "cat ~/.npm/_cacache/package ~/go/pkg/mod/package; echo x > ~/go/pkg/mod/new")
    assert (done.returncode, done.stdout) == (0, "npmmodules"), done.stderr
    assert [path.name for path in (tmp_path / "modules").iterdir()] == ["package"]


def test_the_configuration_of_an_old_ccache_is_hidden(cordon, home):
    fill(home, ["ccache"])
    (home / ".ccache/ccache.conf").write_text("secondary_storage = redis://user:password@host\n")
    done = cordon("run", "--", "sh", "-c",
                  "cat ~/.cache/ccache/ccache.conf; mv ~/.cache/ccache/ccache.conf x; cat ~/.cache/ccache/kept/package")
    assert done.stdout == "of ccache\n"
    for _ in range(2):  # one that took away what it could of it is no obstacle to the next
        assert cordon("run", "--session", "s", "--", "sh", "-c",
                      "rm -rf ~/.cache/ccache/*; ls -A ~/.cache/ccache").returncode == 0


def test_a_socket_and_a_fifo_in_a_cache_lead_to_nobody(cordon, home):
    """Their names are there; who listens on the host is not reached by them."""
    fill(home, ["npm"])
    place = home / ".npm/_cacache"
    os.mkfifo(place / "fifo")
    reader = os.open(place / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(place, os.O_RDONLY)  # the whole path may be too long for an address
        listener.bind(f"/proc/self/fd/{here}/socket")
        listener.listen()
        listener.settimeout(0)
        line = "import os, socket; s = socket.socket(socket.AF_UNIX); os.chdir(os.path.expanduser('~/.npm/_cacache')); print(s.connect_ex('socket') != 0)"
        done = cordon("run", "-c", f'python3 -c "{line}"; (echo through > ~/.npm/_cacache/fifo) & sleep 0.3; kill $! 2>/dev/null; echo over')
        assert done.stdout == "True\nover\n", done.stderr
        with pytest.raises(BlockingIOError):
            listener.accept()
        os.close(here)
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_grant_of_the_cache_is_a_grant(cordon, home):
    fill(home, ["npm"])
    done = cordon("run", "--write", home / ".npm/_cacache", "--", "sh", "-c", "echo granted > ~/.npm/_cacache/direct")
    assert done.returncode == 0 and (home / ".npm/_cacache/direct").read_text() == "granted\n"


def test_a_session_that_ruined_its_layer_can_be_cleared(cordon, home):
    fill(home, ["npm"])
    ruin = "cd ~/.npm/_cacache && mkdir -p a/b && chmod 0 a/b kept && ln -s / link && mkfifo pipe && chmod 0 . "
    assert cordon("run", "--session", "s", "--", "sh", "-c", ruin).returncode == 0
    assert cordon("run", "--session", "s", "--", "true").returncode == 0
    assert json.loads(cordon("cache", "clear", "--json").stdout)["in_use"] == 0
    assert cordon("run", "--session", "s", "--", "sh", "-c", "ls ~/.npm/_cacache").stdout == "kept\n"


def test_the_place_of_a_cache_is_kept_where_a_command_put_a_link(cordon, home, workspace, tmp_path):
    """In the session's home, which commands write to: no link is followed to a mount point."""
    cordon("run", "--session", "s", "--workspace", workspace, "--", "sh", "-c",
           f"ln -s {tmp_path} ~/.npm; mkdir ~/.cache; ln -s /etc ~/.cache/pip")
    fill(home, ["npm", "pip"])
    done = cordon("run", "--session", "s", "--", "sh", "-c",
                  "cat ~/.npm/_cacache/kept/package ~/.cache/pip/kept/package")
    assert done.stdout == "of npm\nof pip\n"
    assert not (tmp_path / "_cacache").exists()


def test_the_limit_on_disk_space_counts_layers(cordon, home):
    fill(home, ["npm"])
    done = cordon("run", "--session", "s", "--disk", "8M", "--json", "--", "sh", "-c",
                  "cat /dev/zero > ~/.npm/_cacache/flood & sleep 60; wait")
    assert json.loads(done.stdout)["limit_hit"] == "disk"


def test_a_layer_in_memory_is_as_large_as_tmp(cordon, home):
    fill(home, ["npm"])
    done = cordon("run", "--tmp", "4M", "--", "sh", "-c", "dd if=/dev/zero of=$HOME/.npm/_cacache/flood bs=1M count=16")
    assert done.returncode != 0 and "No space left" in done.stderr


@needs("root")
def test_caches_on_other_filesystems(cordon, home, tmp_path):
    """One in memory, one read-only; data on a filesystem that cannot be an upper one."""
    for name in "npm", "maven":
        (home / CACHES[name][0]).mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", home / CACHES[name][0]], check=True)
    try:
        for name in "npm", "maven":
            (home / CACHES[name][0] / "package").write_text(name)
        subprocess.run(["mount", "-o", "remount,ro", home / CACHES["maven"][0]], check=True)
        for words in [], ["--session", "s"]:
            done = cordon("run", *words, "--", "sh", "-c",
                          "cat ~/.npm/_cacache/package ~/.m2/repository/package; echo x > ~/.npm/_cacache/new && echo x > ~/.m2/repository/new")
            assert (done.returncode, done.stdout) == (0, "npmmaven"), done.stderr
        assert [path.name for path in (home / ".npm/_cacache").iterdir()] == ["package"]
    finally:
        for name in "npm", "maven":
            subprocess.run(["umount", home / CACHES[name][0]], check=True)


@needs("root")
def test_a_data_directory_that_cannot_hold_layers(cordon, home, tmp_path):
    """Another overlay cannot be an upper directory: then the layer is in memory, and the cache is read and written all
    the same."""
    fill(home, ["npm"])
    for name in "lower", "upper", "work":
        (tmp_path / name).mkdir()
    cordon.data.mkdir()
    subprocess.run(["mount", "-t", "overlay", "-o",
                    f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work", "overlay",
                    cordon.data], check=True)
    try:
        for words in [], ["--session", "s"]:
            done = cordon("run", *words, "--", "sh", "-c",
                          "cat ~/.npm/_cacache/kept/package; echo x > ~/.npm/_cacache/new; ls ~/.npm/_cacache")
            assert (done.returncode, done.stdout) == (0, "of npm\nkept\nnew\n"), done.stderr
        assert not list((tmp_path / "upper").rglob("npm/upper/new"))
    finally:
        subprocess.run(["umount", cordon.data], check=True)
    assert [path.name for path in (home / ".npm/_cacache").iterdir()] == ["kept"]


@needs("ccache")
def test_ccache_hits_what_the_host_compiled(cordon, home, workspace):
    (workspace / "one.c").write_text("int one(void) { return 1; }\n")
    environment = {**cordon.env, "CCACHE_DIR": str(home / ".cache/ccache"), "CCACHE_NODIRECT": "1"}
    subprocess.run(["ccache", "cc", "-c", "one.c", "-o", "one.o"], check=True, cwd=workspace, env=environment)
    before = picture(home)
    done = cordon("run", "--", "sh", "-c", "CCACHE_NODIRECT=1 ccache cc -c one.c -o two.o && ccache --print-stats")
    counts = dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    assert done.returncode == 0 and int(counts["preprocessed_cache_hit"]) >= 1, (done.stdout, done.stderr)
    assert picture(home) == before


def test_a_cache_in_the_search_path_is_not_writable_on_the_host(cordon, home):
    """Whatever is granted: what is run from there outside is as it was."""
    fill(home, ["npm"])
    tool = home / ".npm/_cacache/tool"
    tool.write_text("#!/bin/sh\necho genuine\n")
    tool.chmod(0o755)
    cordon.env["PATH"] += f":{tool.parent}"
    assert cordon("run", "--", "sh", "-c", f"echo 'echo forged' > {tool}; sh {tool}").stdout == "forged\n"
    assert subprocess.run(["tool"], env=cordon.env, capture_output=True, text=True).stdout == "genuine\n"


def test_a_session_that_stays_up_keeps_its_layer_across_a_grant(cordon, home, workspace, tmp_path, daemon):
    """In a daemon a session has one sandbox: what is granted later makes another view of it, with the very same
    layer."""
    fill(home, ["npm"])
    more = tmp_path / "more"
    more.mkdir()
    words = ["run", "--session", "s", "--workspace", workspace]
    assert cordon(*words, "--", "sh", "-c", "echo 1 > ~/.npm/_cacache/first").returncode == 0
    second = cordon(*words, "--", "sh", "-c", "ls ~/.npm/_cacache")
    assert second.stdout == "first\nkept\n", second.stderr
    fill(home, ["pip"])  # another cache: another view
    third = cordon(*words, "--", "sh", "-c",
                   "ls ~/.npm/_cacache; echo 2 > ~/.npm/_cacache/second; cat ~/.cache/pip/kept/package")
    assert third.stdout == "first\nkept\nof pip\n", third.stderr
    assert cordon(*words, "--", "sh", "-c", "ls ~/.npm/_cacache").stdout == "first\nkept\nsecond\n"


def test_with_a_terminal_and_in_a_view_of_the_whole_host(cordon, home):
    fill(home, ["npm"])
    line = "cat ~/.npm/_cacache/kept/package; echo x > ~/.npm/_cacache/new; ls ~/.npm/_cacache; ls /dev/null; grep -c npm/disk /proc/self/mounts"
    for words in [], ["--session", "s"]:
        for more in [], ["--view", "host-readonly"]:
            if words and more:
                continue  # more than the session's own view
            done = cordon("run", *words, *more, "-c", line)
            assert done.stdout.splitlines()[:4] == ["of npm", "kept", "new", "/dev/null"], (words, more, done.stderr)
        # Nothing of what the mount is made of can be seen, but for its own words.
        told = cordon("run", *words, "-c",
                      "grep -v overlay /proc/self/mountinfo | grep -E 'lower|disk|layers' || echo none")
        assert told.stdout == "none\n"


def test_by_the_table_of_methods(cordon, home, daemon):
    fill(home, ["npm"])
    cordon("run", "--session", "s", "--", "sh", "-c", "echo x > ~/.npm/_cacache/mine")

    def call(method, **params):
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
        return json.loads(cordon("rpc", "--host", cordon.data / "cordon/daemon.sock", input=line).stdout)["result"]
    listed = call("cache.list")
    assert [cache["name"] for cache in listed["caches"]] == ["npm"] and [layer["session"]
                                                                         for layer in listed["layers"]] == ["s"]
    # The session's sandbox is up, and has it.
    assert call("cache.clear", session="s") == {"removed": 0, "in_use": 1}
