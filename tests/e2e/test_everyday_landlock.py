"""Programs of every day under the driver landlock: files are moved and linked between the directories of a workspace.

A root caller's command may change no mode, owner or time under this driver (docs/SECURITY.md), so what needs that is
for ordinary users only."""
import subprocess

import pytest

from lab import IS_ROOT, lack, missing, needs

pytestmark = missing("landlock")

IDENTITY = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_CONFIG_GLOBAL": "/dev/null"}

RENAME = """python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs('a/deep'); os.mkdir('b')
open('a/file', 'w').write('text')
os.rename('a/file', 'b/file')
os.rename('a/deep', 'b/deep')
os.link('b/file', 'a/name')
os.symlink('../b/file', 'a/link')
assert os.path.samefile('a/name', 'b/file') and open('a/link').read() == 'text'
open('a/other', 'w').write('other')
assert libc.renameat2(-100, b'a/other', -100, b'b/file', 2) == 0, os.strerror(ctypes.get_errno())
assert open('b/file').read() == 'other' and open('a/other').read() == 'text'
END"""

BUILD_CACHE = """set -e
mkdir -p target/tmp target/debug/deps target/debug/incremental/s-working
echo object > target/tmp/lib.o
python3 -c "import os; os.rename('target/tmp/lib.o', 'target/debug/deps/lib.o')"
ln target/debug/deps/lib.o target/debug/lib.o
python3 -c "import os; os.rename('target/debug/incremental/s-working', 'target/done')"
test target/debug/lib.o -ef target/debug/deps/lib.o && test -d target/done"""

PACKAGES = """set -e
mkdir -p node_modules/.staging/left-pad/lib
echo 'exports = 1' > node_modules/.staging/left-pad/lib/index.js
python3 -c "import os; os.rename('node_modules/.staging/left-pad', 'node_modules/left-pad')"
mkdir node_modules/.bin && ln -s ../left-pad/lib/index.js node_modules/.bin/left-pad
grep -q exports node_modules/.bin/left-pad"""

FROM_TEMPORARY = """set -e
file=$(mktemp) && echo text > "$file" && mv "$file" taken && grep -qx text taken
python3 -c "import os, shutil, tempfile; d = tempfile.mkdtemp(); os.mkdir(d + '/made'); shutil.move(d + '/made', 'made')"
test -d made"""

GIT = """set -e
git init -q -b main repo && cd repo
mkdir one two && echo 1 > one/file && git add . && git commit -qm first
git mv one/file two/file && git commit -qm moved
git checkout -q -b topic HEAD~1 && echo 2 > other && git add other && git commit -qm topic
git rebase -q main && test -f two/file && git stash list && git gc -q && git fsck
git worktree add -q ../tree main && cd .. && git clone -q repo copy && git -C copy log --format=%s topic | head -1 | grep -qx topic"""

VENV = "python3 -m venv --without-pip env && env/bin/python -c 'import sys; assert sys.prefix.endswith(\"env\")'"

TAR = """set -e
mkdir -p in/a in/b out && echo 1 > in/a/file && ln in/a/file in/b/file && tar cf all.tar in && tar xf all.tar -C out
test out/in/a/file -ef out/in/b/file"""

COMPILE = """set -e
mkdir src obj && echo 'int main(void) { return 0; }' > src/main.c && gcc -c -o obj/main.o src/main.c && gcc -o program obj/main.o
./program && cp -a obj copied && mv program obj/program && obj/program"""

FOR_ALL = [("rename", RENAME, []), ("build-cache", BUILD_CACHE, []), ("packages", PACKAGES, []),
           ("from-temporary", FROM_TEMPORARY, [])]
FOR_USERS = [("git", GIT, ["git"]), ("venv", VENV, []), ("tar", TAR, []), ("compile", COMPILE, ["gcc"])]


@pytest.mark.parametrize("line, programs", [pytest.param(line, programs, id=name)
                                            for name, line, programs in FOR_ALL + ([] if IS_ROOT else FOR_USERS)])
def test_everyday_things_work(cordon, line, programs):
    for program in programs:
        if lack(program):
            pytest.skip(lack(program))
    cordon.env.update(IDENTITY)
    words = [word for name in IDENTITY for word in ("--pass-env", name)]
    done = cordon("run", "--driver", "landlock", *words, "-c", line)
    assert done.returncode == 0, (done.stdout, done.stderr)


@needs("user", "unsanitized")
def test_a_sandbox_inside_a_sandbox_moves_files_too(cordon, tmp_path):
    """Each layer must allow it: two of the outer cordon, two of the inner one."""
    program = tmp_path / "cordon"
    subprocess.run(["cp", cordon.argv()[0], program], check=True)
    inner = f"XDG_DATA_HOME=$TMPDIR/data {program} run --quiet --driver landlock --workspace {cordon.workspace} -c \"$LINE\""
    done = cordon("run", "--driver", "landlock", "--read", program, "--env", f"LINE={RENAME}", "-c", inner)
    assert done.returncode == 0, (done.stdout, done.stderr)
