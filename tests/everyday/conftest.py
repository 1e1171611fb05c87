"""The fixtures of these tests are those of tests/e2e, and what they share."""
import importlib.util
import pathlib
import sys

import pytest

E2E = pathlib.Path(__file__).resolve().parent.parent / "e2e"
sys.path.insert(0, str(E2E))
spec = importlib.util.spec_from_file_location("e2e_conftest", E2E / "conftest.py")
e2e = importlib.util.module_from_spec(spec)
spec.loader.exec_module(e2e)
cordon, workspace, terminal = e2e.cordon, e2e.workspace, e2e.terminal


@pytest.fixture
def work(cordon, tmp_path):
    """work(line) runs a shell line inside that must succeed, and returns what it printed. The caller's home is a fresh
    one with a name for git, and PATH is the system's: what the person at this machine has installed is another
    matter."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ada Example\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n")
    for name in [name for name in cordon.env if name.startswith(("GIT_", "PYENV", "CARGO", "RUSTUP", "GO", "npm_"))]:
        del cordon.env[name]
    cordon.env.update(HOME=str(home), PATH="/usr/local/bin:/usr/bin:/bin", LC_ALL="C.UTF-8")

    def run(line, *options, timeout=300, **more):
        done = cordon("run", *options, "-c", "set -e\n" + line, timeout=timeout, **more)
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def write(name, text):
        path = cordon.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path
    run.write, run.home, run.workspace = write, home, cordon.workspace
    return run
