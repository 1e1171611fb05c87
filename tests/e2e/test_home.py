"""HOME is HOME: a private home at the path of the caller's own, with workspace, grants and toolchains in their places
in it."""
import json
import os
import shutil

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
    done = cordon("run", "--quiet", "--driver", driver, "--view", view, "--read", home / "data", "-c",
                  LOOK + '; pwd; cat file; touch new', "-", home / "data")
    assert done.stdout.splitlines()[0] == str(home) and done.returncode == 0, done
    assert set(done.stdout.splitlines()[1:-3]) == {"data", "src"} and done.stdout.endswith(f"data\n{home}/src/project\nsrc/project\n"), done
    assert tree(home) == sorted([*before, "src/project/new"])


@drivers("landlock", "local")
def test_without_mounts_it_is_elsewhere(cordon, home, driver):
    before = tree(home)
    done = cordon("run", "--quiet", "--driver", driver, "-c",
                  'echo "$HOME"; echo "$TMPDIR"; echo x > ~/.history && echo x > "$TMPDIR/y"')
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


PLANT = {"a link out": "mv ~/src ~/moved && ln -s / ~/src",
         "a link to a secret": "mv ~/src ~/moved && ln -s {outside} ~/src",
         "a file": "mv ~/src ~/moved && echo x > ~/src",
         "a link in the middle": "mv ~/data ~/d2; mkdir ~/data && ln -s {outside} ~/data/deep",
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


@pytest.mark.parametrize("value, inside", [("/", "/home/cordon"), ("/etc/passwd", "/home/cordon"),
                                           ("/usr", "/home/cordon"), ("here", "/home/cordon"),
                                           ("/nonexistent/of/anybody", "/nonexistent/of/anybody"),
                                           ("/tmp", "/home/cordon")])
def test_a_home_that_cannot_be_one(cordon, home, value, inside):
    done = cordon("run", "-c", "echo $HOME; cd ~ && echo x > y && ls -A && grep ^$(id -un): /etc/passwd | cut -d: -f6",
                  env={**cordon.env, "HOME": value})
    assert done.stdout == f"{inside}\ny\n{inside}\n", done
    assert not os.path.exists("/nonexistent")
    # What is replaced is said where a command fails, and always in a result.
    env = {**cordon.env, "HOME": value}
    told = [denial["what"] for denial in json.loads(cordon("run", "--json", "--", "true", env=env).stdout)["denials"]]
    assert told == ([value] if inside == "/home/cordon" else []), told
    assert ("HOME names no directory that can be a home inside" in cordon("run", "--", "false",
                                                                          env=env).stderr) == bool(told)
    assert cordon("run", "--", "true", env=env).stderr == ""


def test_a_home_that_is_the_workspace_is_refused(cordon, home):
    error = cordon.refused("--", "true", env={**cordon.env, "HOME": str(cordon.workspace)})
    assert error["class"] == "capability_denied" and "home" in error["reason"]


def test_a_home_behind_a_link(cordon, home, tmp_path):
    (tmp_path / "link").symlink_to(home)
    done = cordon("run", "-c", 'echo "$HOME"; cd; pwd -P; cat src/project/file',
                  env={**cordon.env, "HOME": str(tmp_path / "link")})
    assert done.stdout == f"{tmp_path}/link\n{home}\nsrc/project\n", done


def test_toolchains_are_in_their_places(cordon, home):
    (home / ".cargo/bin").mkdir(parents=True)
    (home / ".cargo/bin/tool").write_text("#!/bin/sh\necho tool\n")
    (home / ".cargo/bin/tool").chmod(0o755)
    cordon.env["PATH"] = f"{home}/.cargo/bin:{os.environ['PATH']}"
    for session in ([], ["--session", "s", "--workspace", cordon.workspace]) * 2:
        done = cordon("run", *session, "-c",
                      "tool; mkdir -p ~/.cargo/registry && ! echo x > ~/.cargo/bin/tool && ! rm ~/.cargo/bin/tool && ! mv ~/.cargo/bin ~/x")
        assert done.returncode == 0 and done.stdout == "tool\n", done
    assert (home / ".cargo/bin/tool").read_text() == "#!/bin/sh\necho tool\n"


def test_what_is_set_by_name_is_the_callers(cordon, home):
    env = {**cordon.env, "FOO_A": "1", "FOO_B": "2", "FOOD": "3", "LD_PRELOAD": ""}
    line = 'echo "$HOME $TMPDIR $USER $FOO_A $FOO_B $FOOD"'
    done = cordon("run", "--env", "HOME=/tmp/x", "--env", "TMPDIR=/dev/shm", "--env", "USER=me", "--pass-env", "FOO_*",
                  "-c", line, env=env)
    assert done.stdout == "/tmp/x /dev/shm me 1 2 \n", done
    done = cordon("run", "--net", "example.org:443", "--env", "NO_PROXY=internal", "-c",
                  'echo "$NO_PROXY,$no_proxy,$HTTPS_PROXY"')
    assert done.stdout.startswith("internal,,http://"), done
    for word in ("*", "A*B", "LD_*", "CORDON_*"):
        assert cordon.refused("--pass-env", word, "--", "true")["class"] == "invalid_request"
    assert cordon.refused("--env", "CORDON_NETWORK=all", "--", "true")["class"] == "invalid_request"


def test_a_profile_hides_what_a_prefix_passes(cordon, home):
    done = cordon("profile", "--pass-env", "FOO_*", "--", "true", env={**cordon.env, "FOO_KEY": "hunter2"})
    assert "hunter2" not in done.stdout and "FOO_KEY=" in json.dumps(json.loads(done.stdout)["environment"])


def test_what_is_on_the_path_is_never_writable(cordon, home, tmp_path):
    """Whatever is granted: a program there would run when a person types its name. An environment of Python in the
    workspace is its own."""
    for name in ("tools/bin", "tools/lib", "src/project/.venv/bin"):
        (home / name).mkdir(parents=True)
    for name in ("pyvenv.cfg", "bin/activate"):
        (home / "src/project/.venv" / name).touch()
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


def test_what_is_on_the_path_is_not_writable_in_the_workspace(cordon, home):
    """A tree of settings whose programs are on PATH: what a command put there would run outside."""
    project = cordon.workspace
    for name in ("bin", "deep/tools", "node_modules/.bin", "lib"):
        (project / name).mkdir(parents=True)
    (project / "bin/tool").write_text("#!/bin/sh\n")
    (project / "deep/link").symlink_to("tools")
    cordon.env["PATH"] = f"{project}/bin:{project}/deep/link:{project}/node_modules/.bin:{os.environ['PATH']}"
    line = ("echo x >lib/x && echo x >node_modules/.bin/x && ! echo x >bin/ls && ! echo x >bin/tool && ! mv bin b && ! echo x >deep/tools/ls"
            " && ! ln -sfn /tmp deep/link && ! touch deep/new && ! { touch pyvenv.cfg; touch bin/activate; }")
    for session in ([], ["--session", "s", "--workspace", project]) * 2:
        done = cordon("run", *session, "-c", line)
        assert done.returncode == 0, done
    (project / "pyvenv.cfg").unlink()
    assert tree(project) == ["bin", "bin/tool", "deep", "deep/link", "deep/tools", "file", "lib", "lib/x",
                             "node_modules", "node_modules/.bin", "node_modules/.bin/x"]
    assert (project / "deep/link").readlink().name == "tools"
    for driver in ("landlock", "bwrap"):
        assert cordon("run", "--driver", driver, "--", "true").returncode == 125


@pytest.mark.parametrize("entry", ["bin", "link/sub", "link"])
def test_a_directory_of_the_path_is_no_workspace(cordon, home, entry):
    (home / "bin/sub").mkdir(parents=True)
    (home / "bin/link").symlink_to("sub")
    (home / "link").symlink_to("bin")
    cordon.env["PATH"] = f"{home}/{entry if entry == 'bin' else 'link/link'}:{os.environ['PATH']}"
    for place in (["bin"] if entry == "bin" else ["bin", "bin/sub"]):
        error = cordon.refused("--workspace", home / place, "-c", "echo x >ls")
        assert error["class"] == "capability_denied" and "PATH" in error["reason"] and str(home / place) == error["subject"], error
    assert not list(home.rglob("ls"))


@pytest.mark.parametrize("line", [
    "echo x >bin/ls", "touch bin/ls", "cp file bin/ls", "echo x >~/tools/bin/ls", "mv bin b",
    # By a path from there, and on standard output, as ninja hands on what compilers say.
    "cd bin && touch ls", "cd bin && touch ls 2>&1"])
def test_a_write_to_the_path_is_named_with_its_reason(cordon, home, line):
    (home / "tools/bin").mkdir(parents=True)
    (cordon.workspace / "bin").mkdir()
    cordon.env["PATH"] = f"{home}/tools/bin:{cordon.workspace}/bin:{os.environ['PATH']}"
    done = cordon("run", "--write", "~/tools", "-c", line)
    said, = [line for line in done.stderr.splitlines() if line.startswith("cordon: ")]
    assert "a directory of PATH stays as it is" in said and "--write" not in said and "/bin (" in said, done


def without_git_settings(cordon, **more):
    return {key: value for key, value in cordon.env.items()
            if not key.startswith(("GIT_", "XDG_CONFIG"))} | {"GIT_CONFIG_NOSYSTEM": "1"} | more


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
    env = without_git_settings(cordon)
    done = cordon("run", "-c", line, env=env)
    assert done.stdout.startswith("A  y\nAda one\n* trunk\n"), done
    assert "hunter2" not in done.stdout and not list(home.rglob("boom")) and not list(home.rglob("pager")), done
    left, = [line for line in done.stdout.splitlines() if line.startswith("# alias.")]
    assert left == "# alias.boom core.pager credential.helper commit.gpgsign", done
    assert "commit.gpgsign" in cordon("doctor", env=env).stdout
    done = cordon("run", "--", "git", "boom", env=env)
    assert done.returncode and "cordon: alias.boom (filesystem): the git configuration of the user has it" in done.stderr, done
    assert "cordon: " not in cordon("run", "--", "git", "bo", env=env).stderr


def test_the_hosts_own_settings_of_git_go_by_the_same_table(cordon, home, tmp_path):
    (tmp_path / "system").write_text("[user]\n\tname = Host\n[init]\n\tdefaultBranch = trunk\n[core]\n\teditor = touch editor\n[pull]\n\tff = only\n")
    (home / ".gitconfig").write_text("[init]\n\tdefaultBranch = mine\n")
    env = without_git_settings(cordon, GIT_CONFIG_NOSYSTEM="0", GIT_CONFIG_SYSTEM=str(tmp_path / "system"))
    done = cordon("run", "-c", "git config user.name; git config init.defaultBranch; git config pull.ff; git config core.editor; cat /etc/gitconfig", env=env)
    assert done.stdout.startswith("Host\nmine\nonly\n") and "\n# core.editor\n" in done.stdout, done


LFS = """[filter "lfs"]
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge -- %f
\trequired = true
"""
FAKE_LFS = """#!/bin/sh
case $1 in clean) tr a-z A-Z ;; smudge) tr A-Z a-z ;; esac
"""


@pytest.mark.parametrize("is_shown, stored", [(True, "WORK"), (False, "work")])
def test_git_lfs_works_where_it_is_and_its_filter_goes_where_it_is_not(cordon, home, is_shown, stored):
    program = home / (".cargo/bin" if is_shown else "elsewhere") / "git-lfs"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_LFS)
    program.chmod(0o755)
    (home / ".gitconfig").write_text(LFS + "[user]\n\tname = Ada\n\temail = a@b.example\n")
    # The system may have git-lfs, too: then it is not on this PATH.
    env = without_git_settings(cordon, PATH=str(program.parent))
    line = (f"PATH={program.parent}:/usr/bin:/bin; git init -q r && cd r && echo '*.bin filter=lfs' > .gitattributes && echo work > x.bin && git add . && git commit -qm one &&"
            " git cat-file blob HEAD:x.bin && rm x.bin && git checkout -q . && cat x.bin")
    done = cordon("run", "--", "/bin/sh", "-c", line, env=env)
    assert done.stdout == f"{stored}\nwork\n" and done.returncode == 0, done
    settings, doctor = cordon("run", "--", "/bin/cat", "/etc/gitconfig",
                              env=env).stdout, cordon("doctor", env=env).stdout
    assert ("filter.required" in settings) == (not is_shown) and ("filter.required" in doctor) == (not is_shown), (settings, doctor)


IGNORED = ("git init -q repository && cd repository && touch kept left.orig && git add -A && git status --porcelain")


@pytest.mark.parametrize("setting, name", [("[core]\n\texcludesFile = ~/.gitignore_global\n", ".gitignore_global"),
                                           ("", ".config/git/ignore")])
def test_what_git_ignores_everywhere_is_ignored_inside(cordon, home, setting, name):
    env = without_git_settings(cordon)
    (home / ".gitconfig").write_text(setting)
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("*.orig\n")
    assert cordon("run", "-c", IGNORED, env=env).stdout == "A  kept\n"
    assert "left out" not in cordon("doctor", env=env).stdout
    # A link could lead to a secret, and what is larger than any such list is none.
    for text in (None, "*.orig\n" * 5000):
        file.unlink()
        file.write_text(text) if text else file.symlink_to(home / "other")
        (home / "other").write_text("*.orig\n")
        done = cordon("run", "-c", IGNORED + "; ls /etc/gitignore", env=env)
        assert done.stdout == "A  kept\nA  left.orig\n", done
        shutil.rmtree(cordon.workspace / "repository", ignore_errors=True)


def test_who_commits_in_this_directory(cordon, home):
    env = {key: value for key, value in cordon.env.items() if not key.startswith(("GIT_", "XDG_CONFIG"))}
    (home / "work.inc").write_text("[user]\n\temail = ada@work.example\n")
    for condition, email in ((f"gitdir:{cordon.workspace}/", "ada@work.example"),
                             (f"gitdir/i:{str(cordon.workspace).upper()}/", "ada@work.example"),
                             (f"gitdir:{cordon.workspace.name}/", "ada@work.example"),
                             ("gitdir:~/other/", "ada@home.example"), (f"onbranch:main", "ada@home.example")):
        (home / ".gitconfig").write_text(f'[user]\n\tname = Ada\n\temail = ada@home.example\n[includeIf "{condition}"]\n\tpath = work.inc\n')
        done = cordon("run", "-c", "git config user.name; git config user.email", env=env)
        assert done.stdout == f"Ada\n{email}\n", (condition, done)


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
