"""libcordon in programs of other people's: each of library/*.c is compiled against the public header and linked."""
import pathlib
import subprocess

import pytest

from lab import ROOT, drivers, embed, leftovers, needs, rows  # noqa: F401

SOURCES = pathlib.Path(__file__).parent / "library"
# Some have tests of their own, which look at more.
PROGRAMS = sorted(path.stem for path in SOURCES.glob("*.c") if path.stem not in ("conversations", "threads", "egress"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compiled(name, kind) is the program, made once."""
    place, made = tmp_path_factory.mktemp("library"), {}

    def make(name, kind="static"):
        if (name, kind) not in made:
            made[name, kind] = embed(SOURCES / f"{name}.c", place, kind)
        return made[name, kind]
    return make


def run(cordon, program, **more):
    source = cordon.data.parent / "input"
    source.write_bytes(b"x" * 300_000)
    env = {**cordon.env, "WORKSPACE": str(cordon.workspace), "INPUT": str(source), **more}
    done = subprocess.run([program], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0 and done.stdout == "fine\n", (done.returncode, done.stdout, done.stderr)
    return done


@needs("gcc", "unsanitized")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(cordon, compiled, leftovers, name):
    run(cordon, compiled(name))


@needs("gcc", "unsanitized")
@pytest.mark.parametrize("name", ["sync", "misuse"])
def test_program_with_the_shared_library(cordon, compiled, leftovers, name):
    run(cordon, compiled(name, "shared"))


@needs("gcc", "unsanitized")
@drivers("landlock", "local", "bwrap")
@pytest.mark.parametrize("name", ["sync", "threads"])
def test_program_on_other_drivers(cordon, compiled, leftovers, name, driver):
    run(cordon, compiled(name), DRIVER=driver)


@needs("gcc", "unsanitized")
@drivers("landlock", "local")  # bubblewrap passes no signal on
def test_events_on_other_drivers(cordon, compiled, leftovers, driver):
    run(cordon, compiled("events"), DRIVER=driver)


@needs("gcc", "unsanitized")
def test_the_ledger_has_every_run(cordon, compiled, leftovers):
    run(cordon, compiled("threads"))
    seen = {}
    for row in rows(cordon):
        seen.setdefault(row["id"], []).append(row["row"])
    assert len(seen) == 16 * 8 + 1 and all(kinds == ["intent", "result"] for kinds in seen.values())


@needs("gcc", "unsanitized")
def test_the_ledger_has_every_session(cordon, compiled, leftovers):
    run(cordon, compiled("conversations"))
    seen, sessions = {}, {}
    for row in rows(cordon):
        seen.setdefault(row["id"], []).append(row["row"])
        if row["row"] == "result":
            sessions[row["session"]] = sessions.get(row["session"], 0) + 1
    assert sessions == {"first": 1, **{f"thread/{i}": 20 for i in range(8)}}
    assert sum(kinds == ["intent", "result"] for kinds in seen.values()) == 8 * 20 + 1
    assert [kinds for kinds in seen.values() if kinds != ["intent", "result"]] == [["session"]] * 9


@needs("gcc")
def test_the_header_stands_alone(tmp_path):
    source = tmp_path / "it.c"
    source.write_text("#include <cordon.h>\nint main(void) { return cordon_class_name(CORDON_OK) == 0; }\n")
    for words in (["-std=c99", "-pedantic"], ["-std=c11", "-pedantic"], ["-std=c2x"]):
        subprocess.run(["cc", *words, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include", source], check=True)
    if subprocess.run(["sh", "-c", "command -v c++"], capture_output=True).returncode == 0:
        subprocess.run(["c++", "-x", "c++", "-fsyntax-only", "-Wall", "-Werror", "-I", ROOT / "include", source], check=True)
