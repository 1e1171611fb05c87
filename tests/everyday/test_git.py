"""A day's work with git, inside."""
import pathlib
import subprocess

import pytest

from lab import needs

NODE = pathlib.Path(__file__).resolve().parents[2] / "build/everyday/node"


@pytest.fixture
def upstream(work, tmp_path):
    """A repository of the host's with two commits, granted read-only."""
    place = tmp_path / "upstream"
    env = {"HOME": str(work.home), "PATH": "/usr/bin:/bin"}
    for line in ("git init -q {0}", "echo one >{0}/file", "git -C {0} add file", "git -C {0} commit -qm one",
                 "echo two >>{0}/file", "git -C {0} commit -qam two"):
        subprocess.run(line.format(place), shell=True, check=True, env=env)
    return place


@pytest.fixture
def clone(work, upstream):
    work(f"git clone -q {upstream} project", "--read", upstream)
    return upstream


@needs("git")
def test_clone_branch_and_merge(work, clone):
    said = work("cd project; git checkout -qb feature; echo three >>file; git commit -qam three; git checkout -q main; "
                "echo other >other; git add other; git commit -qm other; git merge -q --no-edit feature; git log --format=%s | sort; "
                "git status --short; git fsck --strict")
    assert said.split("\n")[:5] == ["Merge branch 'feature'", "one", "other", "three", "two"]
    # The repository is whole outside, too.
    subprocess.run(["git", "-c", "safe.directory=*", "-C", work.workspace / "project", "fsck", "--strict"], check=True,
                   capture_output=True)


@needs("git")
def test_worktree(work, clone):
    assert work("cd project; git worktree add -q ../second -b second; cd ../second; echo more >more; git add more; git commit -qm more; "
                "cd ../project; git log -1 --format=%s second; git worktree remove ../second; ls ..") == "more\nproject\n"


@needs("git")
def test_interactive_rebase(work, clone):
    """The second of three commits goes into the first; the editor is a program inside."""
    said = work("""cd project
for name in a b c; do echo $name >$name; git add $name; git commit -qm "add $name"; done
GIT_SEQUENCE_EDITOR="sed -i '2s/^pick/fixup/'" git rebase -q -i HEAD~3
git log --format=%s -3; git show --stat --format= HEAD~1 | grep -c '|'; ls""")
    assert said == "add c\nadd a\ntwo\n2\na\nb\nc\nfile\n"


@needs("git")
def test_stash(work, clone):
    assert work("cd project; echo changed >>file; echo new >new; git stash -q -u; cat file; ls; git stash pop -q; tail -1 file; cat new; "
                "git stash list") == "one\ntwo\nfile\nchanged\nnew\n"


@needs("git")
def test_submodule_of_a_clone(work, upstream, tmp_path):
    """Made outside, worked in inside. `git submodule update` writes the module's configuration, which is protected."""
    outer, env = work.workspace / "outer", {"HOME": str(work.home), "PATH": "/usr/bin:/bin"}
    for line in (f"git init -q {outer}",
                 f"git -C {outer} -c protocol.file.allow=always submodule --quiet add {upstream} module",
                 f"git -C {outer} commit -qm module"):
        subprocess.run(line, shell=True, check=True, env=env)
    said = work("cd outer; git submodule status | wc -l; cd module; echo more >more; git add more; git commit -qm more; cd ..; "
                "git status --short; git commit -qam bump; git submodule status; git -C module log -1 --format=%s")
    assert said.split("\n")[0] == "1" and " M module" in said and said.endswith("more\n")


@needs("git")
def test_submodule_update_and_a_recursive_clone(work, upstream, tmp_path):
    """A repository that has a submodule: cloned inside with it, and brought up to date where it was cloned without."""
    outer, env = tmp_path / "outer", {"HOME": str(work.home), "PATH": "/usr/bin:/bin"}
    for line in (f"git init -q {outer}",
                 f"git -C {outer} -c protocol.file.allow=always submodule --quiet add {upstream} module",
                 f"git -C {outer} commit -qm module"):
        subprocess.run(line, shell=True, check=True, env=env)
    grants = ["--read", upstream, "--read", outer]
    allow = "git -c protocol.file.allow=always"
    assert work(f"{allow} clone -q --recurse-submodules {outer} whole; cat whole/module/file", *grants) == "one\ntwo\n"
    assert work(f"{allow} clone -q {outer} bare; cd bare; {allow} submodule --quiet update --init; cat module/file; git submodule status",
                *grants).startswith("one\ntwo\n ")


@needs("git", "git-lfs")
def test_lfs(work):
    """A user with `git lfs install`: what is large is stored by git-lfs, by its filter and its hooks, and comes
    back."""
    env = {"HOME": str(work.home), "PATH": "/usr/bin:/bin"}
    subprocess.run(["git", "lfs", "install"], check=True, env=env, capture_output=True)
    said = work("git init -q project; cd project; git lfs track '*.bin' >/dev/null; echo large >x.bin; git add .; git commit -qm one; "
                "git cat-file blob HEAD:x.bin | head -1; git lfs ls-files -n; rm x.bin; git checkout -q .; cat x.bin; git status --short")
    assert said == "version https://git-lfs.github.com/spec/v1\nx.bin\nlarge\n", said


HOOK = """repos:
- repo: local
  hooks:
  - id: no-tabs
    name: no tabs
    language: system
    entry: ./no-tabs
    files: file
"""


@needs("git", "pre-commit")
def test_pre_commit(work, upstream):
    """Its hook was installed outside, by a person; inside it runs, and cannot be changed."""
    project, env = work.workspace / "project", {"HOME": str(work.home), "PATH": "/usr/bin:/bin"}
    for line in (f"git clone -q {upstream} {project}", f"cd {project} && pre-commit install"):
        subprocess.run(line, shell=True, check=True, env=env, capture_output=True)
    (project / ".pre-commit-config.yaml").write_text(HOOK)
    (project / "no-tabs").write_text("#!/bin/sh\n! grep -l \"$(printf '\\t')\" \"$@\"\n")
    (project / "no-tabs").chmod(0o755)
    said = work("cd project; git add .pre-commit-config.yaml no-tabs; echo three >>file; git add file; git commit -qm three 2>&1; "
                "printf '\\tfour\\n' >>file; git add file; git commit -qm four >log 2>&1 && echo passed; cat log; git log -1 --format=%s; "
                "echo >>.git/hooks/pre-commit || echo kept")
    assert "passed\n" not in said.replace("Passed", "") and "no tabs" in said and "Failed" in said and said.endswith("three\nkept\n"), said


@needs("git", "node-packages")
def test_husky(work, upstream):
    """Set up outside: git's hooks are then in the working tree, and run inside as they do outside."""
    project, node = work.workspace / "project", NODE / "node_modules"
    env = {"HOME": str(work.home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    for line in (f"git clone -q {upstream} {project}", f"cd {project} && node {node}/husky/bin.js",
                 f"cd {project} && echo 'grep -q three file' >.husky/pre-commit"):
        subprocess.run(line, shell=True, check=True, env=env, capture_output=True)
    said = work("cd project; echo two >>file; git commit -qam two 2>&1 && echo passed; echo three >>file; git commit -qam three 2>&1; "
                "git log -1 --format=%s")
    assert "passed" not in said and said.endswith("three\n"), said
