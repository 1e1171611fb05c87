"""Every wall is proved twice: the attempt is contained, and it succeeds where the wall has been left out.

The programs are named by CORDON_BIN or CORDON, and CORDON_UNWALLED_BIN or CORDON_UNWALLED; otherwise they are
build/cordon and build/cordon-unwalled beside the sources. The table is walls_rows.py."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from walls_lab import DRIVERS, Lab, WAYS, WITHOUT  # noqa: E402
from walls_rows import CONTAINED, ROWS, is_of_sessions  # noqa: E402
from walls_world import World  # noqa: E402

ROOT = pathlib.Path(os.environ.get("CORDON_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
PROGRAM = os.environ.get("CORDON_BIN") or os.environ.get("CORDON") or str(ROOT / "build/cordon")
UNWALLED = os.environ.get("CORDON_UNWALLED_BIN") or os.environ.get("CORDON_UNWALLED") or str(ROOT / "build/cordon-unwalled")
BUILD = pathlib.Path(os.environ.get("CORDON_BUILD") or pathlib.Path(UNWALLED).resolve().parent)
CALLER = "root" if os.geteuid() == 0 else "user"
BY_NAME = {row.name: row for row in ROWS}


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("walls"), PROGRAM)
    yield Lab(world, PROGRAM, UNWALLED, str(BUILD / "tests/walls/session-run"))
    world.close()


@functools.lru_cache(None)
def lack(probe):
    done = subprocess.run([ROOT / "tests/support/probe", probe], capture_output=True, text=True)
    return f"cannot: {probe}: {done.stdout.strip()}" if done.returncode else None


def require(probe):
    if probe and lack(probe):
        pytest.skip(lack(probe))


def expected(row, driver):
    if row.shown:
        return "escaped", None
    if driver == "namespaces" or driver in WAYS:
        # A session's commands have one /tmp.
        return "escaped" if row.how == "next" and driver == "session" else "contained", None
    column = getattr(row, driver)
    if column == CONTAINED:
        return "contained", None
    answer, why, only = column
    return ("escaped" if answer == "escapes" and only in (None, CALLER) else "contained" if answer == "escapes"
            else answer), why


@pytest.mark.parametrize("driver", (*DRIVERS, *WAYS))
@pytest.mark.parametrize("name", BY_NAME)
def test_contained(lab, name, driver):
    row = BY_NAME[name]
    if driver == "bwrap":
        require("bwrap")
    wanted, why = expected(row, driver)
    answer, said = lab.answer(row, driver)
    assert answer == wanted, f"{' '.join(row.words)}: {said}"
    if answer == "refused":
        assert any(r["row"] == "denial" and r["error"]["class"] == why for r in ledger(lab)), why


@pytest.mark.parametrize("name", BY_NAME)
def test_escapes_without_its_wall(lab, name):
    row = BY_NAME[name]
    require(row.needs)
    if row.only and row.only.split(":")[0] != CALLER:
        pytest.skip(f"cannot: {row.only}")
    answer, said = lab.answer(row, row.without)
    assert answer == "escaped", f"{' '.join(row.words)} without {row.without}: {said}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [row.name for row in ROWS if is_of_sessions(row)])
def test_escapes_without_its_wall_in_a_session(lab, name, way):
    row = BY_NAME[name]
    require(row.needs)
    if row.only and row.only.split(":")[0] != CALLER:
        pytest.skip(f"cannot: {row.only}")
    answer, said = lab.answer(row, f"{way}{WITHOUT}{row.without}")
    assert answer == "escaped", f"{' '.join(row.words)}, {way}, without {row.without}: {said}"


def admissions():
    """What the other drivers' columns say that `isolation` says: (driver, wall, word)."""
    found = set()
    for row in ROWS:
        for driver in DRIVERS[1:]:
            answer, why, only = getattr(row, driver) if getattr(row, driver) != CONTAINED else ("", "", None)
            if answer == "escapes" and only in (None, CALLER):
                found |= {(driver, wall, "none") for wall in re.findall(r"(\w+) is none", why)}
                found |= {(driver, wall, "not") for wall in re.findall(r"(\w+) says so", why)}
    return sorted(found)


@pytest.mark.parametrize("driver,wall,word", admissions())
def test_what_does_not_hold_is_said(lab, driver, wall, word):
    if driver == "bwrap":
        require("bwrap")
    options = [] if wall != "programs" else ["--program", str(lab.world.attempt)]
    argv = lab.argv(driver, lab.world.workspace(), options, ["hello"])
    argv.insert(2, "--json")
    done = subprocess.run(argv, env=lab.world.env, cwd=lab.world.base, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    said = json.loads(done.stdout)["isolation"][wall]
    assert said == word if word == "none" else word in said, said


# ---- refusals --------------------------------------------------------------------------------------------------------

def ledger(lab):
    files = sorted((lab.world.data / "cordon/ledger").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def refuse(lab, *words, status=125):
    """The error of a run that must be refused; its ledger row is checked."""
    done = subprocess.run([PROGRAM, "run", "--json", *map(str, words)], env=lab.world.env, cwd=lab.world.workspace(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert done.returncode == status, done
    error = json.loads(done.stdout)["error"]
    rows = [row for row in ledger(lab) if row["id"] == error["audit_id"] and row["row"] == "denial"]
    assert len(rows) == 1, (error, rows)
    return error


@pytest.mark.parametrize("key", "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH PYTHONPATH "
                         "PYTHONSTARTUP NODE_OPTIONS RUBYOPT PERL5OPT PERL5LIB BASH_ENV ENV GCONV_PATH ld_preload".split())
def test_a_variable_that_loads_code_is_refused(lab, key):
    error = refuse(lab, "--env", f"{key}=x", "--", "true")
    assert error["class"] == "invalid_request" and key in error["subject"] + error["reason"]


def test_a_setuid_program_is_refused(lab):
    error = refuse(lab, "--read", lab.world.tools, "--", lab.world.names["setuid"], status=126)
    assert error["class"] == "program_not_allowed" and error["boundary"] == "privileges"


def test_a_program_with_file_capabilities_is_refused(lab):
    if CALLER != "root":
        pytest.skip("cannot: root: only root can give a file capabilities")
    error = refuse(lab, "--read", lab.world.tools, "--", lab.world.names["capable"], status=126)
    assert error["class"] == "program_not_allowed" and error["boundary"] == "privileges"


def test_a_list_of_programs_is_refused_where_it_cannot_be_held(lab):
    require("bwrap")
    error = refuse(lab, "--driver", "bwrap", "--program", "/bin/sh", "-c", ":")
    assert error["class"] == "spawn_sandbox_unavailable"


@pytest.mark.parametrize("path", ["/", "/proc", "/dev", "/sys", "/run", "{data}/cordon"])
def test_a_grant_that_would_be_the_wall_itself_is_refused(lab, path):
    error = refuse(lab, "--write", path.format(**lab.world.names), "--", "true")
    assert error["class"] == "capability_denied"


# ---- what must still work --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("driver", DRIVERS)
def test_threads_work_where_no_process_can_be_made(lab, driver):
    if driver == "bwrap":
        require("bwrap")
    ws = lab.world.workspace()
    status, output, errors = lab.run(driver, ws, ["--no-spawn"], ["--inline", "thread"])
    assert output.startswith("thread\tcontained"), (status, output, errors)


@pytest.mark.parametrize("driver", DRIVERS)
def test_nothing_is_left_in_the_workspace(lab, driver):
    if driver == "bwrap":
        require("bwrap")
    ws = lab.world.workspace()

    def tree():
        return sorted((str(path.relative_to(ws)), path.lstat().st_mode, path.lstat().st_uid) for path in ws.rglob("*"))
    before = tree()
    status, output, errors = lab.run(driver, ws, [], ["stat", "."])
    assert status == 0 and tree() == before, (output, errors)


def test_a_planted_hook_is_named_and_kept_in_quarantine(lab):
    ws = lab.world.workspace()
    before = set((lab.world.data / "cordon/quarantine").glob("*/*")) if (lab.world.data / "cordon/quarantine").exists() else set()
    argv = lab.argv("namespaces", ws, [], ["plant", str(ws / "new/.git/hooks/pre-commit")])
    argv.insert(2, "--json")
    done = subprocess.run(argv, env=lab.world.env, cwd=ws, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    denials = json.loads(done.stdout)["denials"]
    assert [denial["what"] for denial in denials] == [str(ws / "new/.git/hooks/pre-commit")]
    kept = set((lab.world.data / "cordon/quarantine").glob("*/*")) - before
    assert len(kept) == 1 and "evil" in kept.pop().read_text()


def test_there_are_enough_rows():
    assert len(ROWS) >= 100 and {"read", "write", "environment", "processes", "privileges", "kernel", "ipc", "network",
                                 "terminal", "descriptors", "leftovers"} <= {row.category for row in ROWS}
