"""A day's work with git, inside."""
import subprocess

import pytest

from lab import needs


@pytest.fixture
def upstream(work, tmp_path):
    """A repository of the host's with two commits, granted read-only."""
    place = tmp_path / "upstream"
    env = {"HOME": str(work.home), "PATH": "/usr/bin:/bin"}
    for line in ("git init -q {0}", "echo one >{0}/file", "git -C {0} add file", "git -C {0} commit -qm one", "echo two >>{0}/file",
                 "git -C {0} commit -qam two"):
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
    subprocess.run(["git", "-c", "safe.directory=*", "-C", work.workspace / "project", "fsck", "--strict"], check=True, capture_output=True)


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
    for line in (f"git init -q {outer}", f"git -C {outer} -c protocol.file.allow=always submodule --quiet add {upstream} module",
                 f"git -C {outer} commit -qm module"):
        subprocess.run(line, shell=True, check=True, env=env)
    said = work("cd outer; git submodule status | wc -l; cd module; echo more >more; git add more; git commit -qm more; cd ..; "
                "git status --short; git commit -qam bump; git submodule status; git -C module log -1 --format=%s")
    assert said.split("\n")[0] == "1" and " M module" in said and said.endswith("more\n")
