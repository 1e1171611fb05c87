"""libcordon in programs of other people's: each of library/*.c is compiled against the public header and linked."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from lab import ROOT, drivers, embed, leftovers, needs, rows  # noqa: F401

SOURCES = pathlib.Path(__file__).parent / "library"
# Some have tests of their own, which look at more.
PROGRAMS = sorted(path.stem for path in SOURCES.glob("*.c")
                  if path.stem not in ("conversations", "threads", "egress", "environments", "shells", "shell-changes",
                                    "changes", "valgrind", "undumpable"))


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
@pytest.mark.parametrize("name", ["sync", "threads", "unstepped"])
def test_program_on_other_drivers(cordon, compiled, leftovers, name, driver):
    run(cordon, compiled(name), DRIVER=driver)


@needs("gcc", "unsanitized")
@drivers("landlock", "local")  # bubblewrap passes no signal on
def test_events_on_other_drivers(cordon, compiled, leftovers, driver):
    run(cordon, compiled("events"), DRIVER=driver)


# What a command sees of who asked: PATH, what is passed on, a program from a toolchain, git's identity, the manifest's
# `~`.
SEEN = 'echo "$PATH $LANG $COLOUR"; tool; for file in /etc/gitconfig "$1"; do while read -r line; do echo "$line"; done < $file; done'


def person(place, name, **more):
    """The environment of somebody who has a home in `place`, with a toolchain, a name and a declared file in it."""
    home = place / name
    (home / "go/bin").mkdir(parents=True)
    (home / "go/bin/tool").write_text(f"#!/bin/sh\necho the tool of {name}\n")
    (home / "go/bin/tool").chmod(0o755)
    (home / ".gitconfig").write_text(f"[user]\n\tname = {name}\n\temail = {name}@example.com\n")
    (home / "declared").write_text(f"declared by {name}\n")
    return {"HOME": str(home), "PATH": f"{home}/go/bin:/usr/bin:/bin", "GOPATH": f"{home}/go", "COLOUR": name, **more}


@needs("gcc", "unsanitized")
def test_each_request_has_an_environment_of_its_own(cordon, compiled, leftovers, tmp_path):
    manifest = tmp_path / "manifest.toml"
    manifest.write_text('name = "shell"\n'
                        '[capabilities.spawn]\nprograms = ["/bin/sh", "~/go/bin/tool"]\nfs_read = ["~/declared"]\n')
    manifest.chmod(0o600)
    people = [person(tmp_path, "anna", LANG="C.UTF-8"), person(tmp_path, "bert", GIT_AUTHOR_NAME="Bert B."),
              {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}]
    common = {name: cordon.env[name] for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    blocks, each = [], []
    for number, environment in enumerate(people):
        blocks.append(tmp_path / f"environment-{number}")
        blocks[-1].write_bytes(b"".join(f"{name}={value}\0".encode()
                                        for name, value in {**environment, **common}.items()))
        asked = [] if environment["HOME"] == "/nonexistent" else ["--manifest", manifest]
        each.append(cordon("run", "--pass-env", "COLOUR", *asked, "--", "/bin/sh", "-c", SEEN, "sh",
                           environment["HOME"] + "/declared", env={**environment, **common}).stdout)
    env = {**cordon.env, **people[0], "WORKSPACE": str(cordon.workspace), "SEEN": SEEN, "MANIFEST": str(manifest)}
    done = subprocess.run([compiled("environments"), *blocks], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(each)
    assert "the tool of anna" in each[0] and '"anna"' in each[0] and "declared by anna" in each[0]
    assert "the tool of bert" in each[1] and "Bert B." in each[1] and "declared by bert" in each[1] and "anna" not in each[1]
    assert "anna" not in each[2] and "bert" not in each[2]


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
    source.write_text("#include <cordon-internal.h>\nint main(void) { return cordon_class_name(CORDON_OK) == 0; }\n")
    for words in (["-std=c99", "-pedantic"], ["-std=c11", "-pedantic"], ["-std=c2x"]):
        subprocess.run(["cc", *words, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include", source],
                       check=True)
    if subprocess.run(["sh", "-c", "command -v c++"], capture_output=True).returncode == 0:
        subprocess.run(["c++", "-x", "c++", "-fsyntax-only", "-Wall", "-Werror", "-I", ROOT / "include", source],
                       check=True)


@needs("gcc", "unsanitized")
@drivers()
def test_a_caller_whose_memory_nobody_may_read(cordon, compiled, leftovers, driver):
    run(cordon, compiled("undumpable"), **({} if driver == "namespaces" else {"DRIVER": driver}))


@needs("gcc", "unsanitized", "root")
@drivers()
def test_a_caller_that_was_root(compiled, driver):
    """It drops its privileges without executing anything. Its directories are where its user gets to."""
    owner = 65432
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        program = shutil.copy(compiled("undumpable"), place)
        for name in ("workspace", "data", "configuration"):
            os.mkdir(f"{place}/{name}")
            os.chown(f"{place}/{name}", owner, owner)
        os.chmod(place, 0o755)
        env = {"PATH": "/usr/bin:/bin", "HOME": f"{place}/data", "XDG_DATA_HOME": f"{place}/data", "BECOME": str(owner),
               "XDG_CONFIG_HOME": f"{place}/configuration", "WORKSPACE": f"{place}/workspace",
               **({} if driver == "namespaces" else {"DRIVER": driver})}
        done = subprocess.run([program], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0 and done.stdout == "fine\n", (done.returncode, done.stdout, done.stderr)
        assert os.stat(f"{place}/workspace/made").st_uid == owner


@needs("gcc", "unsanitized", "valgrind")
def test_a_caller_under_valgrind_is_told_why(cordon, compiled, leftovers):
    """What starts nothing works; what would is refused for the reason that there is, before valgrind ends the
    program."""
    for driver in (None, "landlock", "local", "bwrap"):
        env = {**cordon.env, "WORKSPACE": str(cordon.workspace), **({"DRIVER": driver} if driver else {})}
        done = subprocess.run(["valgrind", "-q", "--error-exitcode=9", compiled("valgrind", "shared")], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0 and done.stdout == "fine\n", (driver, done.returncode, done.stdout, done.stderr)


@needs("gcc", "unsanitized")
def test_what_changes_between_two_commands_counts(cordon, compiled, leftovers, tmp_path):
    (tmp_path / "home").mkdir()
    run(cordon, compiled("changes"), PLACE=str(tmp_path / "home"), XDG_CONFIG_HOME=str(tmp_path / "configuration"))
