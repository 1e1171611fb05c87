"""HOME is HOME: a private home at the path of the caller's own, with workspace, grants and toolchains in their places in it."""
import json
import os

import pytest

from lab import drivers

LOOK = 'echo "$HOME"; ls -A ~; echo x > ~/.history; mkdir -p ~/.cache/tool; cat "$1/file"'


@pytest.fixture
def home(cordon, tmp_path):
    """A home with a project in it, a secret, and a directory that may be granted."""
    path = tmp_path / "home" / "ada"
    for name in ("src/project", "data", ".config"):
        (path / name).mkdir(parents=True)
        (path / name / "file").write_text(f"{name}\n")
    (path / "secret").write_text("secret\n")
    cordon.env["HOME"] = str(path)
    cordon.workspace = path / "src/project"
    return path


def tree(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*"))


@drivers("namespaces", "bwrap")
@pytest.mark.parametrize("view", ["system", "host-readonly"])
def test_it_is_at_the_callers_path_and_private(cordon, home, driver, view):
    before = tree(home)
    done = cordon("run", "--quiet", "--driver", driver, "--view", view, "--read", home / "data", "-c", LOOK + '; pwd; cat file; touch new', "-",
                  home / "data")
    assert done.stdout.splitlines()[0] == str(home) and done.returncode == 0, done
    assert set(done.stdout.splitlines()[1:-3]) == {"data", "src"} and done.stdout.endswith(f"data\n{home}/src/project\nsrc/project\n"), done
    assert tree(home) == sorted([*before, "src/project/new"])


@drivers("landlock", "local")
def test_without_mounts_it_is_elsewhere(cordon, home, driver):
    before = tree(home)
    done = cordon("run", "--quiet", "--driver", driver, "-c", 'echo "$HOME"; echo "$TMPDIR"; echo x > ~/.history && echo x > "$TMPDIR/y"')
    inside, temporary = done.stdout.split()
    assert done.returncode == 0 and tree(home) == before, done
    assert not inside.startswith(str(home)) and temporary != "/tmp" and not os.path.exists(inside), done


def test_of_a_session_it_is_kept(cordon, home):
    assert cordon("session", "new", "s", "--workspace", ".", "--read", "~/data").returncode == 0
    words = "run", "--session", "s", "-c"
    assert cordon(*words, "echo kept > ~/.history; ls ~/data ~/src/project").returncode == 0
    assert cordon(*words, "cat ~/.history; cat ~/src/project/file ~/data/file").stdout == "kept\nsrc/project\ndata\n"
    assert not (home / ".history").exists()
    assert cordon("run", "-c", "ls -A ~").stdout == "src\n"


def test_a_grant_by_a_link_is_there_by_both_names(cordon, home, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models/file").write_text("model\n")
    (home / "models").symlink_to(tmp_path / "models")
    line = f'cat ~/models/file "{tmp_path}/models/file"'
    assert cordon("run", "--read", "~/models", "-c", line).stdout == "model\nmodel\n"
    assert cordon("session", "new", "s", "--workspace", ".", "--read", "~/models").returncode == 0
    for _ in range(2):
        assert cordon("run", "--session", "s", "-c", line).stdout == "model\nmodel\n"


PLANT = {"a link out": "mv ~/src ~/moved && ln -s / ~/src", "a link to a secret": "mv ~/src ~/moved && ln -s {outside} ~/src",
         "a file": "mv ~/src ~/moved && echo x > ~/src", "a link in the middle": "mv ~/data ~/d2; mkdir ~/data && ln -s {outside} ~/data/deep",
         "a fifo": "mv ~/src ~/moved && mkfifo ~/src"}


@pytest.mark.parametrize("what", PLANT)
def test_what_lies_where_mounts_go_is_moved_aside(cordon, home, tmp_path, what):
    outside = tmp_path / "outside"
    (home / "data/deep/er").mkdir(parents=True)
    (home / "data/deep/er/file").write_text("deeper\n")
    outside.mkdir()
    assert cordon("session", "new", "s", "--workspace", ".", "--read", "~/data/deep/er").returncode == 0
    words = "run", "--session", "s", "-c"
    assert cordon(*words, PLANT[what].format(outside=outside)).returncode == 0
    done = cordon(*words, "cat ~/src/project/file ~/data/deep/er/file; pwd; ls -A ~ ~/data")
    assert done.stdout.startswith(f"src/project\ndeeper\n{home}/src/project\n") and "cordon-aside-1" in done.stdout, done
    assert tree(outside) == [] and (home / "src/project/file").read_text() == "src/project\n"
    # Nothing is moved twice.
    assert cordon(*words, "ls -A ~ ~/data").stdout.count("cordon-aside") == 1


@pytest.mark.parametrize("value, inside", [("/", "/home/cordon"), ("/etc/passwd", "/home/cordon"), ("/usr", "/home/cordon"), ("here", "/home/cordon"),
                                           ("/nonexistent/of/anybody", "/nonexistent/of/anybody"), ("/tmp", "/home/cordon")])
def test_a_home_that_cannot_be_one(cordon, home, value, inside):
    done = cordon("run", "-c", "echo $HOME; cd ~ && echo x > y && ls -A && grep ^$(id -un): /etc/passwd | cut -d: -f6", env={**cordon.env, "HOME": value})
    assert done.stdout == f"{inside}\ny\n{inside}\n", done
    assert not os.path.exists("/nonexistent")


def test_a_home_that_is_the_workspace_is_refused(cordon, home):
    error = cordon.refused("--", "true", env={**cordon.env, "HOME": str(cordon.workspace)})
    assert error["class"] == "capability_denied" and "home" in error["reason"]


def test_a_home_behind_a_link(cordon, home, tmp_path):
    (tmp_path / "link").symlink_to(home)
    done = cordon("run", "-c", 'echo "$HOME"; cd; pwd -P; cat src/project/file', env={**cordon.env, "HOME": str(tmp_path / "link")})
    assert done.stdout == f"{tmp_path}/link\n{home}\nsrc/project\n", done


def test_toolchains_are_in_their_places(cordon, home):
    (home / ".cargo/bin").mkdir(parents=True)
    (home / ".cargo/bin/tool").write_text("#!/bin/sh\necho tool\n")
    (home / ".cargo/bin/tool").chmod(0o755)
    cordon.env["PATH"] = f"{home}/.cargo/bin:{os.environ['PATH']}"
    for session in ([], ["--session", "s", "--workspace", cordon.workspace]) * 2:
        done = cordon("run", *session, "-c", "tool; mkdir -p ~/.cargo/registry && ! echo x > ~/.cargo/bin/tool && ! rm ~/.cargo/bin/tool && ! mv ~/.cargo/bin ~/x")
        assert done.returncode == 0 and done.stdout == "tool\n", done
    assert (home / ".cargo/bin/tool").read_text() == "#!/bin/sh\necho tool\n"


def test_what_is_set_by_name_is_the_callers(cordon, home):
    env = {**cordon.env, "FOO_A": "1", "FOO_B": "2", "FOOD": "3", "LD_PRELOAD": ""}
    line = 'echo "$HOME $TMPDIR $USER $FOO_A $FOO_B $FOOD"'
    done = cordon("run", "--env", "HOME=/tmp/x", "--env", "TMPDIR=/dev/shm", "--env", "USER=me", "--pass-env", "FOO_*", "-c", line, env=env)
    assert done.stdout == "/tmp/x /dev/shm me 1 2 \n", done
    done = cordon("run", "--net", "example.org:443", "--env", "NO_PROXY=internal", "-c", 'echo "$NO_PROXY,$no_proxy,$HTTPS_PROXY"')
    assert done.stdout.startswith("internal,,http://"), done
    for word in ("*", "A*B", "LD_*", "CORDON_*"):
        assert cordon.refused("--pass-env", word, "--", "true")["class"] == "invalid_request"
    assert cordon.refused("--env", "CORDON_NETWORK=all", "--", "true")["class"] == "invalid_request"


def test_a_profile_hides_what_a_prefix_passes(cordon, home):
    done = cordon("profile", "--pass-env", "FOO_*", "--", "true", env={**cordon.env, "FOO_KEY": "hunter2"})
    assert "hunter2" not in done.stdout and "FOO_KEY=" in json.dumps(json.loads(done.stdout)["environment"])


def test_what_is_on_the_path_is_never_writable(cordon, home, tmp_path):
    """Whatever is granted: a program there would run when a person types its name. What the workspace has on PATH is its own."""
    for name in ("tools/bin", "tools/lib", "src/project/.venv/bin"):
        (home / name).mkdir(parents=True)
    (home / "tools/bin/tool").write_text("#!/bin/sh\n")
    (home / "link").symlink_to("tools/bin")
    cordon.env["PATH"] = f"{home}/link:{home}/missing:{cordon.workspace}/.venv/bin:{os.environ['PATH']}"
    line = ("echo x > ~/tools/lib/file && echo x > .venv/bin/x && ! echo x > ~/tools/bin/git && ! echo x > ~/tools/bin/tool && ! mv ~/tools/bin ~/tools/b"
            " && ! ln -s /bin/sh ~/tools/bin/ls")
    done = cordon("run", "--write", "~/tools", "-c", line)
    assert done.returncode == 0, done
    assert tree(home / "tools") == ["bin", "bin/tool", "lib", "lib/file"]
    for path in ("~/tools/bin", "~/tools/bin/tool", "~/link"):
        error = cordon.refused("--write", path, "--", "true")
        assert error["class"] == "capability_denied" and "PATH" in error["reason"], error
    for driver in ("landlock", "bwrap"):
        assert cordon("run", "--driver", driver, "--write", "~/tools", "--", "true").returncode == 125
    assert cordon("session", "new", "s", "--workspace", ".", "--write", "~/tools").returncode == 0
    assert cordon("run", "--session", "s", "-c", line).returncode == 0
    assert tree(home / "tools") == ["bin", "bin/tool", "lib", "lib/file"]


def test_settings_of_git_that_run_nothing_hold_inside(cordon, home):
    (home / ".gitconfig").write_text("""[user]
\tname = Ada
\temail = ada@example.org
[init]
\tdefaultBranch = trunk
[alias]
\tst = status --short
\tboom = !touch boom
[core]
\tpager = touch pager
[credential "https://token:hunter2@example.org"]
\thelper = store
[commit]
\tgpgSign = true
""")
    line = ("git init -q repository && cd repository && echo x > y && git add y && git st && git commit -qm one && git log --format='%an %s' &&"
            " git branch; git boom; cat /etc/gitconfig")
    env = {key: value for key, value in cordon.env.items() if not key.startswith(("GIT_", "XDG_CONFIG"))}
    done = cordon("run", "-c", line, env=env)
    assert done.stdout.startswith("A  y\nAda one\n* trunk\n"), done
    assert "hunter2" not in done.stdout and not list(home.rglob("boom")) and not list(home.rglob("pager")), done
    left, = [line for line in done.stdout.splitlines() if line.startswith("# alias.")]
    assert left == "# alias.boom core.pager credential.helper", done


def test_a_program_of_the_home_is_not_replaced_by_one_of_the_private_home(cordon, home, tmp_path):
    """What a rule or a person judged is the host's; under its name commands could put another."""
    (home / "bin").mkdir()
    (home / "bin/deploy").write_text("#!/bin/sh\necho the owners\n")
    (home / "bin/deploy").chmod(0o755)
    config = tmp_path / "configuration/cordon/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[[policy.rules]]\ntool = "run"\nmatch = "{home}/bin/*"\ndecision = "allow"\n')
    cordon.env |= {"XDG_CONFIG_HOME": str(tmp_path / "configuration"), "PATH": f"{home}/bin:{os.environ['PATH']}"}
    words = "run", "--session", "s", "--workspace", cordon.workspace
    plant = "mkdir -p ~/bin && printf '#!/bin/sh\\necho planted\\n' > ~/bin/deploy && chmod +x ~/bin/deploy"
    assert cordon(*words, "-c", plant).returncode == 0
    done = cordon(*words, "--", "deploy")
    assert "planted" not in done.stdout and done.returncode != 0, done
    done = cordon("run", "--workspace", cordon.workspace, "--read", home / "bin", "--", "deploy")
    assert done.stdout == "the owners\n", done
