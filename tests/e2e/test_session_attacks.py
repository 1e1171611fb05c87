"""Commands of two sessions of one process: what one has, the other cannot reach, neither beside it nor after it. The
same for two commands of one session that asked for a sandbox of their own (fresh). The attempts are those of
tests/walls/. That each of them can succeed is seen where both are one command."""
import random
import re
import subprocess

import pytest

from lab import ROOT, leftovers, missing, wait_until  # noqa: F401
from library_lab import Library, parts

pytestmark = missing("gcc", "mount-namespace")
TEXT, NAME = "secret-of-the-other", "cordon-neighbour"

# name: the words, in braces what the other one told
ATTACKS = {
    "see": ["see", "{pid}"],
    "cmdline": ["read", "/proc/{pid}/cmdline", TEXT],
    "environ": ["read", "/proc/{pid}/environ", "PATH"],
    "maps": ["read", "/proc/{pid}/maps", "attempt"],
    "memory": ["memory", "{pid}", "{address}", TEXT],
    "vm-read": ["vm-read", "{pid}", "{address}", TEXT],
    "fd": ["read", "/proc/{pid}/fd/{fd}", TEXT],
    "take-fd": ["take-fd", "{pid}", "{fd}", TEXT],
    "root": ["read", f"/proc/{{pid}}/root/tmp/{NAME}", TEXT],
    "cwd": ["list", "/proc/{pid}/cwd", "file"],
    "signal": ["signal", "{pid}"],
    "pidfd": ["pidfd-signal", "{pid}"],
    "trace": ["trace", "{pid}"],
    "renice": ["renice", "{pid}"],
    "limits": ["limits-of", "{pid}"],
    "shm": ["shm", "{key}", TEXT],
    "sem": ["sem", "{key}"],
    "msg": ["msg", "{key}"],
    "mq": ["mq", NAME],
    "dev-shm": ["read", f"/dev/shm/{NAME}", TEXT],
    "tmp": ["read", f"/tmp/{NAME}", TEXT],
    "tmp-list": ["list", "/tmp", NAME],
    "watch": ["watch", f"/tmp/{NAME}"],
    "unix": ["unix", f"/tmp/{NAME}.sock", TEXT],
    "abstract": ["abstract", NAME, TEXT],
    "tcp": ["tcp", "127.0.0.1", "{port}", TEXT],
    "udp": ["udp", "127.0.0.1", "{port}", TEXT],
    "port": ["port-taken", "{port}"],
    **{f"namespace-{kind}": ["namespace", kind, f"{{ns_{kind}}}"] for kind in ("pid", "mnt", "ipc", "user", "cgroup")},
    **{f"namespace-{kind}": ["namespace", kind, f"{{ns_{kind}}}"] for kind in ("net", "uts")},
}
# No command of cordon's may do this to any process, not even to its own; the rows of tests/walls show that it can be
# done.
NEVER = {"vm-read", "take-fd", "limits", "mq"}
STAND = '"$0" "$@" > /tmp/said & until grep -q standing /tmp/said; do sleep 0.01; done;'
WAYS = {"sessions": ({"session": "s"}, {"session": "t"}), "fresh": ({"fresh": "true"}, {"fresh": "true"})}


@pytest.fixture(scope="module")
def attempt(tmp_path_factory):
    program = tmp_path_factory.mktemp("attempt") / "attempt"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-static", "-pthread", "-o", program,
                    *sorted((ROOT / "tests/walls").glob("attempt*.c"))], check=True)
    return program


@pytest.fixture
def library(cordon, attempt, leftovers):  # noqa: F811
    (cordon.workspace / "file").write_text("")
    process = Library(cordon)
    for name in ("s", "t"):
        process.session(name, read=str(attempt.parent), processes="100")
    yield process
    process.close()


def stand_words():
    """Of the one that is attacked, and what the attacker knows beforehand."""
    key, port = random.randrange(1 << 20, 1 << 30), random.randrange(20000, 30000)
    return ["--inline", "stand", TEXT, str(key), NAME, str(port)], {"key": str(key), "port": str(port)}


def told_in(said):
    assert "standing" in said, said
    return dict(pair.split("=", 1) for pair in re.search(r"pid=.*", said)[0].split() if "=" in pair)


def words_of(names, known):
    words = []
    for name in names:
        words += ["--", *(word.format(**known) for word in ATTACKS[name])]
    return words[1:]


def answers(names, result):
    lines = [line.split("\t") for line in result["stdout"].splitlines() if line.count("\t") == 2]
    assert [line[0] for line in lines] == [ATTACKS[name][0] for name in names], result
    return {name: (line[1], line[2]) for name, line in zip(names, lines)}


@pytest.mark.parametrize("way", WAYS)
def test_beside_each_other(library, attempt, way):
    one, other = WAYS[way]
    words, known = stand_words()
    stand = library.start(attempt, *words, **one)
    library.wait_said(stand, "standing")
    known.update(told_in(library.said[stand]))
    names = list(ATTACKS)
    attack = library.run(attempt, *words_of(names, known), **other)
    for name, (answer, said) in answers(names, attack).items():
        assert answer == "contained", (name, said)
    # Signals to everybody reach nobody else; the other one is alive and was not touched.
    library.run(attempt, "signal-all", **other)
    library.ask("signal", name=stand, signal=10)
    library.wait_said(stand, "hit 10")
    assert library.said[stand].count("hit") == 1
    library.ask("forget", name=stand)


@pytest.mark.parametrize("way", WAYS)
def test_signals_reach_all_of_one_command(library, attempt, way):
    """The attempt above can succeed: here the other one is of the same command."""
    words, _ = stand_words()
    line = f'{STAND} "$0" signal-all; until grep -q hit /tmp/said; do sleep 0.01; done; cat /tmp/said'
    done = library.run("/bin/sh", "-c", line, attempt, *words, **WAYS[way][0])
    assert "hit 23" in done["stdout"], done


@pytest.mark.parametrize("way", WAYS)
def test_within_one_command(library, attempt, way):
    """What the other command was kept from, a process of the same one is not."""
    words, known = stand_words()
    names = [name for name in ATTACKS if name not in NEVER]
    known.update({key: f"${key}" for key in ("pid", "fd", "address", *(f"ns_{kind}" for kind in
                                             ("pid", "mnt", "ipc", "user", "cgroup", "net", "uts")))})
    line = (STAND + """ for pair in $(tr ' ' '\\n' < /tmp/said | grep =); do eval "${pair%%=*}='${pair#*=}'"; done; """
            "exec \"$0\" " + " ".join(word if word == "--" else f'"{word}"' for word in words_of(names, known)))
    done = library.run("/bin/sh", "-c", line, attempt, *words, **WAYS[way][0])
    found = answers(names, done)
    assert {name: answer for name, answer in found.items() if answer[0] != "escaped"} == {}, done


@pytest.mark.parametrize("way", WAYS)
def test_after_each_other(library, attempt, way):
    """A command that leaves a process, which has left its session and its parents, leaves nothing of it."""
    one, other = WAYS[way]
    words, known = stand_words()
    leave = """setsid "$0" "$@" > /tmp/said & until grep -q standing /tmp/said; do sleep 0.01; done; cat /tmp/said
               (setsid sh -c 'sleep 1000' &) ; touch locked; exec 9< locked; flock 9; setsid sleep 1001 &"""
    left = library.run("/bin/sh", "-c", leave, attempt, *words, **one)
    assert left["exit_code"] == 0, left
    known.update(told_in(left["stdout"]))
    # The number of a namespace that is gone may be another's by now.
    names = [name for name in ATTACKS if not name.startswith("namespace-")]
    attack = library.run(attempt, *words_of(names, known), **other)
    for name, (answer, said) in answers(names, attack).items():
        assert answer == "contained", (name, said)
    assert library.run("/usr/bin/flock", "-n", "locked", "true", **other)["exit_code"] == 0
    assert wait_until(lambda: not parts(library)["commands"]), parts(library)
