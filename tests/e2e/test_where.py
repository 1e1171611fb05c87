"""Where a command works: the git working tree around the caller's directory, and the repository of a linked worktree or
submodule."""
import json
import os
import subprocess

import pytest

from lab import IS_ROOT, drivers, needs

IDENTITY = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def git(where, *words):
    subprocess.run(["git", "-c", "protocol.file.allow=always", *words], cwd=where, check=True, capture_output=True,
                   env={**os.environ, **IDENTITY})


@pytest.fixture
def project(cordon):
    """A repository with one commit, and directories in it."""
    path = cordon.workspace / "project"
    (path / "deep/er").mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    (path / "file").write_text("one\n")
    git(path, "add", "file")
    git(path, "commit", "-q", "-m", "one")
    return path


def run(cordon, where, *words, **options):
    return cordon("run", *words, cwd=where, **options)


def remark(done):
    return [line for line in done.stderr.splitlines() if line.startswith("cordon: ")]


@drivers("namespaces", "landlock", "bwrap")
def test_the_workspace_is_the_top_and_the_cwd_stays(cordon, project, driver):
    line = 'pwd; echo "$CORDON_WORKSPACE"; cat ../../file; echo two > ../../file; git status --short'
    done = run(cordon, project / "deep/er", "--quiet", "--driver", driver, "-c", line)
    assert done.stdout == f"{project}/deep/er\n{project}\none\n M ../../file\n", done
    assert (project / "file").read_text() == "two\n"


def test_a_named_workspace_is_no_more_than_that(cordon, project):
    done = run(cordon, project / "deep/er", "--workspace", ".", "-c", 'pwd; echo "$CORDON_WORKSPACE"; cat ../../file')
    assert done.stdout == f"{project}/deep/er\n" * 2 and done.returncode != 0, done


def test_cwd_is_named_from_here(cordon, project):
    assert run(cordon, project / "deep", "--cwd", "er", "--", "pwd").stdout == f"{project}/deep/er\n"
    assert run(cordon, project / "deep", "--cwd", "..", "--", "pwd").stdout == f"{project}\n"
    assert run(cordon, project / "deep", "--cwd", project / "deep/er", "--", "pwd").stdout == f"{project}/deep/er\n"
    assert run(cordon, project / "deep", "--cwd", "../..", "--", "pwd").returncode == 125


def test_a_session_has_its_own_workspace_all_the_same(cordon, project):
    assert not run(cordon, project / "deep", "--session", "a", "--", "pwd").stdout.startswith(str(project))


def test_protected_names_at_the_top_are_protected(cordon, project):
    done = run(cordon, project / "deep", "-c", "echo x >> ../.git/config; echo x > ../.git/hooks/pre-commit")
    assert done.returncode != 0 and "x" not in (project / ".git/config").read_text().splitlines(), done


def test_a_home_that_is_a_working_tree_is_not_the_workspace(cordon, project):
    done = run(cordon, project / "deep/er", "-c", 'echo "$CORDON_WORKSPACE"; exit 3',
               env={**cordon.env, "HOME": str(project)})
    assert done.stdout == f"{project}/deep/er\n", done
    assert any(str(project) in line and "home directory" in line for line in remark(done)), done
    done = run(cordon, project / "deep/er", "-c", 'echo "$CORDON_WORKSPACE"; exit 3',
               env={**cordon.env, "HOME": str(project / "deep")})
    assert done.stdout == f"{project}/deep/er\n" and not remark(done), done


@needs("root")
def test_a_top_of_another_user_is_not_the_workspace(cordon, project):
    os.chown(project, 65533, 65533)
    done = run(cordon, project / "deep", "-c", 'echo "$CORDON_WORKSPACE"; exit 3')
    assert done.stdout == f"{project}/deep\n" and any("another user" in line for line in remark(done)), done


def test_a_top_with_cordons_data_in_it_is_not_the_workspace(cordon, project):
    done = run(cordon, project / "deep", "-c", 'echo "$CORDON_WORKSPACE"; exit 3',
               env={**cordon.env, "XDG_DATA_HOME": str(project / "data")})
    assert done.stdout == f"{project}/deep\n" and any("own data" in line for line in remark(done)), done


def test_a_mount_ends_the_search(cordon, project):
    mounted = ["unshare", *([] if IS_ROOT else ["--user", "--map-current-user", "--keep-caps"]), "--mount", "sh", "-ec",
               'mount --bind deep deep; cd deep; exec "$@"', "-",
               *([] if IS_ROOT else ["setpriv", "--inh-caps=-all", "--ambient-caps=-all"])]
    done = subprocess.run([*mounted, *cordon.argv("run", "-c", 'echo "$CORDON_WORKSPACE"')], env=cordon.env,
                          cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.stdout == f"{project}/deep\n", done


# ---- linked worktrees and submodules ---------------------------------------------------------------------------------

@pytest.fixture
def tree(project):
    git(project, "worktree", "add", "-q", "../tree")
    return project.parent / "tree"


COMMIT = ("set -e; git log --oneline; echo x > new; git add new; git -c user.name=a -c user.email=b@c commit -qm two; git branch other;"
          " git status --short")


@drivers("namespaces", "landlock", "bwrap")
def test_git_works_in_a_linked_worktree(cordon, project, tree, driver):
    (tree / "sub").mkdir()
    done = run(cordon, tree / "sub", "--quiet", "--driver", driver, "-c", COMMIT)
    assert done.returncode == 0, done
    log = subprocess.run(["git", "log", "--format=%s", "tree"], cwd=project, capture_output=True, text=True, check=True)
    assert log.stdout == "two\none\n"


@pytest.mark.parametrize("what", ["config", "hooks/pre-commit", "worktrees/tree/gitdir", "worktrees/tree/commondir"])
def test_its_repository_has_the_same_protections(cordon, project, tree, what):
    file = project / ".git" / what
    before = file.read_bytes() if file.exists() else None
    done = run(cordon, tree, "-c", f'echo "#!/bin/sh" > "{file}" && chmod +x "{file}"')
    assert (file.read_bytes() if file.exists() else None) == before, done


def test_nothing_beside_its_repository_comes_along(cordon, project, tree):
    done = run(cordon, tree, "-c", f'ls -A "{project}"; cat "{project}/file"; echo x > "{project}/x"')
    assert done.stdout == ".git\n" and not (project / "x").exists(), done


def test_of_a_session_too(cordon, project, tree):
    done = cordon("run", "--session", "s", "--workspace", tree, "-c", COMMIT)
    assert done.returncode == 0, done


def test_git_works_in_a_submodule(cordon, project, tmp_path):
    git(cordon.workspace, "clone", "-q", project, "library")
    git(project, "submodule", "add", "-q", str(cordon.workspace / "library"), "deep/library")
    done = run(cordon, project / "deep/library", "--quiet", "-c", COMMIT + '; echo "$CORDON_WORKSPACE"')
    assert done.returncode == 0 and done.stdout.endswith(f"{project}/deep/library\n"), done
    hook = project / ".git/modules/deep/library/hooks/pre-commit"
    run(cordon, project / "deep/library", "-c", f'echo x > "{hook}"; chmod +x "{hook}"')
    assert not hook.exists()


def test_a_worktree_whose_repository_does_not_name_it_gets_nothing(cordon, project, tree):
    """A directory that says it were the worktree."""
    thief = cordon.workspace / "thief"
    thief.mkdir()
    (thief / ".git").write_text((tree / ".git").read_text())
    done = run(cordon, thief, "-c", f'ls "{project}/.git"; git log')
    assert done.returncode != 0 and done.stdout == "", done
    assert any(f"{thief}/.git" in line and "another directory" in line for line in remark(done)), done


def test_a_worktree_that_names_any_directory_gets_nothing(cordon, project, tree, tmp_path):
    secret = cordon.workspace / "secret"
    secret.mkdir()
    (secret / "file").write_text("secret\n")
    for text in (f"gitdir: {secret}\n", "gitdir: /\n", f"gitdir: {secret}/missing\n", f"gitdir: {project}/.git\n"):
        (tree / ".git").write_text(text)
        done = run(cordon, tree, "-c", f'cat "{secret}/file"; ls "{project}"')
        assert done.stdout == "" and remark(done), (text, done)


@needs("root")
def test_a_repository_of_another_user_gets_nothing(cordon, project, tree):
    os.chown(project / ".git", 65533, 65533)
    done = run(cordon, tree, "-c", f'ls "{project}/.git"')
    assert done.stdout == "" and any("another user" in line for line in remark(done)), done


# ---- paths as people write them --------------------------------------------------------------------------------------

def test_relative_paths_and_the_home(cordon, project, tmp_path):
    home = tmp_path / "someone"
    (home / "data").mkdir(parents=True)
    (home / "data/file").write_text("data\n")
    (cordon.workspace / "beside").mkdir()
    (cordon.workspace / "beside/file").write_text("beside\n")
    env = {**cordon.env, "HOME": str(home)}
    line = f'cat "{home}/data/file" "{cordon.workspace}/beside/file"'
    done = run(cordon, project / "deep", "--read", "~/data", "--read", "../../beside", "-c", line, env=env)
    assert done.stdout == "data\nbeside\n", done
    done = run(cordon, project, "--write", "../beside", "-c", f'echo new > "{cordon.workspace}/beside/file"', env=env)
    assert done.returncode == 0 and (cordon.workspace / "beside/file").read_text() == "new\n", done
    assert run(cordon, project, "--read", "~/missing", "--", "true", env=env).returncode == 125
    assert run(cordon, project, "--workspace", "~/data", "--", "pwd", env=env).stdout == f"{home}/data\n"
    env["HOME"] = "somewhere"
    done = run(cordon, project, "--read", "~/data", "--", "true", env=env)
    assert done.returncode == 125 and "HOME" in done.stderr, done


def test_of_a_session_that_is_made(cordon, project):
    (cordon.workspace / "beside").mkdir()
    assert cordon("session", "new", "--read", "../beside", "--workspace", ".", "s", cwd=project).returncode == 0
    shown = json.loads(cordon("session", "show", "--json", "s").stdout)
    assert shown["workspace"] == str(project) and str(cordon.workspace / "beside") in json.dumps(shown), shown


@pytest.mark.parametrize("command, default", [
    ("run", "the git working tree around the current directory"),
    ("session", "one that cordon makes"),
    ("mcp", "the current directory"),
])
def test_the_help_says_so(cordon, command, default):
    text = " ".join(cordon(command, "--help").stdout.split())
    _, _, workspace = text.partition("--workspace DIR ")
    assert f"(default: {default})" in workspace.partition(" --")[0], text
    assert command != "run" or "The workspace is the git working tree around the current directory" in text
