"""examples/*.c do what their first comment says, against the public header and the library alone."""
import subprocess

import pytest

from lab import ROOT, embed, leftovers, ledger_files, missing, rows  # noqa: F401

pytestmark = missing("gcc", "unsanitized", "mount-namespace")


@pytest.fixture
def example(cordon, tmp_path, leftovers):
    """example(name) runs it in the workspace and returns what it printed."""
    def run(name):
        program = embed(ROOT / f"examples/{name}.c", tmp_path, "shared")
        done = subprocess.run([program], env=cordon.env, cwd=cordon.workspace, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == "", done
        return done.stdout
    return run


def promised(name):
    """What the example's comment says it prints."""
    comment = (ROOT / f"examples/{name}.c").read_text().split("*/")[0]
    return "".join(line.removeprefix(" *     ") + "\n" for line in comment.split(":\n *\n")[-1].splitlines()
                   if line.strip() != "")


def test_every_example_is_short_and_run():
    tests = open(__file__).read()
    for path in (ROOT / "examples").glob("*.c"):
        assert len(path.read_text().splitlines()) <= (150 if path.stem == "agent" else 80)
        assert f'"{path.stem}"' in tests, path


def test_agent(example):
    assert example("agent") == promised("agent")


def test_run(cordon, example):
    assert example("run") == promised("run")
    assert [row["row"] for row in rows(cordon)] == ["intent", "result"]


def test_url(example):
    assert example("url") == promised("url")


def test_loop(cordon, example):
    assert example("loop") == promised("loop")
    assert sorted(row["row"] for row in rows(cordon)) == ["intent"] * 3 + ["result"] * 3


def test_current(cordon, example):
    assert example("current") == promised("current")
    assert sorted(row["session"] for row in rows(cordon) if row["row"] == "result") == ["ada", "ada", "bob", "bob"]


def test_session(cordon, example):
    assert example("session") == promised("session")
    kinds = [row["row"] for row in rows(cordon)]
    assert kinds.count("intent") == kinds.count("result") == 2 and kinds.count("denial") == 1
    # Nothing of it is left but what the ledger says.
    assert not list((cordon.data / "cordon/sessions").iterdir()) and not list((cordon.data / "cordon/workspaces").iterdir())


def test_approver(cordon, example):
    assert example("approver") == promised("approver")
    assert [row["row"] for row in rows(cordon)] == ["session", "approval", "intent", "result", "approval", "denial"]


def test_config(cordon, example):
    assert example("config") == promised("config")


def test_audit(cordon, example):
    assert example("audit") == promised("audit")
    # Of a ledger that was changed it says so.
    path = ledger_files(cordon)[0]
    path.write_text(path.read_text().replace('"exit_code":0', '"exit_code":1'))
    assert example("audit").startswith("the ledger was changed: {")
