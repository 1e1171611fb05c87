"""What a person has installed under their home keeps working inside, read-only and without its credentials."""
import os
import pathlib
import pwd
import subprocess

import pytest

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
HOME = pathlib.Path(pwd.getpwuid(os.geteuid()).pw_dir)


@pytest.fixture
def home(cordon, tmp_path):
    """A person's home, with nothing in it yet; and none of our own settings."""
    place = tmp_path / "person"
    place.mkdir()
    keep = ("LANG", "LC_ALL", "TERM")
    cordon.env = {"HOME": str(place), "PATH": SYSTEM_PATH, "XDG_DATA_HOME": cordon.env["XDG_DATA_HOME"],
                  **{key: os.environ[key] for key in keep if key in os.environ}}
    return place


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run(cordon, line, *options):
    done = cordon("run", *options, "-c", line)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- faked -----------------------------------------------------------------------------------------------------------

def fake_nvm(home):
    root = home / ".nvm"
    script(root / "nvm.sh", "nvm() { :; }\n")
    node = root / "versions/node/v99.1.0"
    script(node / "bin/node", "#!/bin/sh\necho v99.1.0 \"$@\"\n. \"$(dirname \"$0\")/../lib/part.sh\"\n")
    script(node / "lib/part.sh", "echo library found\n")
    (node / "lib/node_modules/npm/bin").mkdir(parents=True)
    script(node / "lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\n")
    (node / "bin/npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    (node / "etc").mkdir()
    (node / "etc/npmrc").write_text("//registry/:_authToken=hunter2\n")
    (root / ".npmrc").write_text("//registry/:_authToken=hunter2\n")
    (home / ".npmrc").write_text("//registry/:_authToken=hunter2\n")
    return node / "bin"


def test_a_faked_nvm(cordon, home):
    place = fake_nvm(home)
    cordon.env.update(PATH=f"{place}:{SYSTEM_PATH}", NVM_DIR=str(home / ".nvm"))
    assert run(cordon, "node hello; npm install; command -v node; echo $NVM_DIR") == \
        f"v99.1.0 hello\nlibrary found\nv99.1.0 {place}/npm install\nlibrary found\n{place}/node\n{home}/.nvm\n"


def test_a_faked_nvm_is_read_only_and_keeps_its_secrets(cordon, home):
    place = fake_nvm(home)
    cordon.env["PATH"] = f"{place}:{SYSTEM_PATH}"
    done = cordon("run", "-c", f"cat {home}/.npmrc {home}/.nvm/.npmrc {place}/../etc/npmrc; grep -rs hunter2 {home}; "
                               f"echo x > {place}/node; rm {place}/npm; touch {home}/.nvm/new; ls -A {home}")
    assert "hunter2" not in done.stdout and done.stdout == ".nvm\n", done
    assert (place / "npm").is_symlink() and (place / "node").read_text().startswith("#!/bin/sh\necho v99")
    assert not (home / ".nvm/new").exists()


def test_toolchains_are_chosen(cordon, home):
    place = fake_nvm(home)
    script(home / ".pyenv/versions/9.9/bin/python9", "#!/bin/sh\necho python 9\n")
    script(home / ".pyenv/libexec/pyenv", "#!/bin/sh\n")
    cordon.env["PATH"] = f"{place}:{home}/.pyenv/versions/9.9/bin:{SYSTEM_PATH}"
    line = "node; python9; true"
    both = "v99.1.0\nlibrary found\npython 9\n"
    assert run(cordon, line) == both
    assert run(cordon, line, "--toolchain", "pyenv", "--toolchain", "nvm") == both
    assert run(cordon, line, "--toolchain", "pyenv").endswith("python 9\n") and \
        "v99" not in run(cordon, line, "--toolchain", "pyenv")
    without = run(cordon, line, "--toolchain", "none")
    assert "v99" not in without and "python 9" not in without
    assert run(cordon, f"ls -A {home} 2>/dev/null; true", "--toolchain", "none") == ""
    assert run(cordon, "ls -A / | tr '\\n' ' '", "--view", "bare", "--read", "/usr", "--read", "/bin", "--read", "/lib",
               "--read", "/lib64").find("person") < 0


# name: (what makes it, PATH inside the home, a command by name, what it prints)
LAYOUTS = {
    "volta": (["bin/volta", "tools/image/node/1/bin/node"], ".volta/bin", "volta"),
    "deno": (["bin/deno"], ".deno/bin", "deno"), "bun": (["bin/bun"], ".bun/bin", "bun"),
    "rbenv": (["libexec/rbenv", "versions/3/bin/ruby9", "shims/ruby9"], ".rbenv/shims", "ruby9"),
    "asdf": (["installs/x/1/bin/x9", "shims/x9"], ".asdf/shims", "x9"),
    "cargo": (["bin/cargo9"], ".cargo/bin", "cargo9"),
    "go": (["bin/tool9"], "go/bin", "tool9"),
    "sdkman": (["candidates/java/current/bin/java9"], ".sdkman/candidates/java/current/bin", "java9"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_other_layouts_by_name_through_path(cordon, home, name):
    files, along, command = LAYOUTS[name]
    root = home / along.split("/")[0]
    for file in files:
        script(root / file, f"#!/bin/sh\necho {name} ran\n")
    cordon.env["PATH"] = f"{home / along}:{SYSTEM_PATH}"
    assert run(cordon, f"{command}; echo x > {home / along}/{command}; true") == f"{name} ran\n"
    assert (home / along / command).read_text() == f"#!/bin/sh\necho {name} ran\n"


def test_what_tools_write_goes_to_the_private_home(cordon, home):
    script(home / ".cargo/bin/cargo9", "#!/bin/sh\nmkdir -p $CARGO_HOME/registry && echo $CARGO_HOME\n")
    (home / ".cargo/credentials.toml").write_text("token = 'hunter2'\n")
    cordon.env["PATH"] = f"{home}/.cargo/bin:{SYSTEM_PATH}"
    assert run(cordon, f"cargo9; ls -A {home}/.cargo") == f"{home}/.cargo\nbin\nregistry\n"
    assert sorted(path.name for path in (home / ".cargo").iterdir()) == ["bin", "credentials.toml"]


# ---- real ------------------------------------------------------------------------------------------------------------

def test_a_real_toolchain(cordon):
    """Whichever this person has; where there is none, one is made of the system's own interpreter, as pyenv lays it
    out."""
    ours = {**os.environ, "XDG_DATA_HOME": cordon.env["XDG_DATA_HOME"], "HOME": str(HOME)}
    tried = 0
    pythons = sorted((HOME / ".pyenv/versions").glob("*/bin/python3"))
    if pythons:
        tried += 1
        line = ("import sys, ssl, sqlite3, ctypes, hashlib, zlib; print(sys.prefix)")
        done = cordon("run", "--", pythons[-1], "-c", line, env=ours)
        assert done.stdout == f"{pythons[-1].parents[1]}\n", done.stderr
        ours["PATH"] = f"{pythons[-1].parent}:{SYSTEM_PATH}"
        (cordon.workspace / "script.py").write_text("import venv, sys\nvenv.create('env', with_pip=False)\nprint('made')\n")
        done = cordon("run", "-c", "python3 script.py && env/bin/python -c 'import sys; print(sys.base_prefix)'",
                      env=ours)
        assert done.stdout == f"made\n{pythons[-1].parents[1]}\n", done.stderr
    if (HOME / ".cargo/bin/cargo").exists() and (HOME / ".rustup/toolchains").is_dir():
        tried += 1
        ours["PATH"] = f"{HOME}/.cargo/bin:{SYSTEM_PATH}"
        done = cordon("run", "--memory", "8G", "-c",
                      "cargo new -q --vcs none hello && cd hello && cargo run -q --offline && cargo --version",
                      env=ours, timeout=120)
        assert done.stdout.startswith("Hello, world!\ncargo "), done.stderr
    if not tried:
        place = cordon.workspace.parent / "person"
        root = place / ".pyenv/versions/3.0-system"
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", root], check=True)
        script(place / ".pyenv/libexec/pyenv", "#!/bin/sh\n")
        ours.update(HOME=str(place), PATH=f"{root}/bin:{SYSTEM_PATH}")
        done = cordon("run", "--", "python3", "-c", "import sys; print(sys.prefix)", env=ours)
        assert done.stdout == f"{root}\n", done.stderr
