"""Two commands of one session, whose walls are up already: what one has, the other cannot reach, neither beside it nor after it.
The attempts are those of tests/walls/. That each of them can succeed is seen where both are one command."""
import random
import re
import subprocess

import pytest

from lab import ROOT, leftovers, missing, wait_until  # noqa: F401
from warm_lab import Warm, parts

pytestmark = missing("gcc", "mount-namespace")
TEXT, NAME = "secret-of-the-other", "cordon-neighbour"
SHARED = ("warm",)  # by design: a session's commands have one loopback, so that a server of one is there for the next

# name: (words, in braces what the other one told; where it succeeds beside the other, by design)
ATTACKS = {
    "see": (["see", "{pid}"], ()),
    "cmdline": (["read", "/proc/{pid}/cmdline", TEXT], ()),
    "environ": (["read", "/proc/{pid}/environ", "PATH"], ()),
    "maps": (["read", "/proc/{pid}/maps", "attempt"], ()),
    "memory": (["memory", "{pid}", "{address}", TEXT], ()),
    "vm-read": (["vm-read", "{pid}", "{address}", TEXT], ()),
    "fd": (["read", "/proc/{pid}/fd/{fd}", TEXT], ()),
    "take-fd": (["take-fd", "{pid}", "{fd}", TEXT], ()),
    "root": (["read", f"/proc/{{pid}}/root/tmp/{NAME}", TEXT], ()),
    "cwd": (["list", "/proc/{pid}/cwd", "file"], ()),
    "signal": (["signal", "{pid}"], ()),
    "pidfd": (["pidfd-signal", "{pid}"], ()),
    "trace": (["trace", "{pid}"], ()),
    "renice": (["renice", "{pid}"], ()),
    "limits": (["limits-of", "{pid}"], ()),
    "shm": (["shm", "{key}", TEXT], ()),
    "sem": (["sem", "{key}"], ()),
    "msg": (["msg", "{key}"], ()),
    "mq": (["mq", NAME], ()),
    "dev-shm": (["read", f"/dev/shm/{NAME}", TEXT], ()),
    "tmp": (["read", f"/tmp/{NAME}", TEXT], ()),
    "tmp-list": (["list", "/tmp", NAME], ()),
    "watch": (["watch", f"/tmp/{NAME}"], ()),
    "unix": (["unix", f"/tmp/{NAME}.sock", TEXT], ()),
    "abstract": (["abstract", NAME, TEXT], ("unscoped",)),
    "tcp": (["tcp", "127.0.0.1", "{port}", TEXT], SHARED),
    "udp": (["udp", "127.0.0.1", "{port}", TEXT], SHARED),
    "port": (["port-taken", "{port}"], SHARED),
    **{f"namespace-{kind}": (["namespace", kind, f"{{ns_{kind}}}"], ()) for kind in ("pid", "mnt", "ipc", "user", "cgroup")},
    **{f"namespace-{kind}": (["namespace", kind, f"{{ns_{kind}}}"], SHARED) for kind in ("net", "uts")},
}
# No command of cordon's may do this to any process, not even to its own; the rows of tests/walls show that it can be done.
NEVER = {"vm-read", "take-fd", "limits", "mq"}
STAND = '"$0" "$@" > /tmp/said & until grep -q standing /tmp/said; do sleep 0.01; done;'
WAYS = {"warm": {}, "parked": {"fresh": "true"}}


@pytest.fixture(scope="module")
def attempt(tmp_path_factory):
    program = tmp_path_factory.mktemp("attempt") / "attempt"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-static", "-pthread", "-o", program,
                    *sorted((ROOT / "tests/walls").glob("attempt*.c"))], check=True)
    return program


@pytest.fixture
def warm(cordon, attempt, leftovers):  # noqa: F811
    (cordon.workspace / "file").write_text("")
    process = Warm(cordon)
    process.session("s", read=str(attempt.parent), processes="100")
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
        words += ["--", *(word.format(**known) for word in ATTACKS[name][0])]
    return words[1:]


def answers(names, result):
    lines = [line.split("\t") for line in result["stdout"].splitlines() if line.count("\t") == 2]
    assert [line[0] for line in lines] == [ATTACKS[name][0][0] for name in names], result
    return {name: (line[1], line[2]) for name, line in zip(names, lines)}


def is_scoped(warm):
    """Landlock keeps a command from the abstract sockets of others since its sixth version."""
    found = re.search(r"Landlock ABI (\d+)", warm.run("/bin/true")["isolation"]["filesystem_second"])
    return bool(found) and int(found[1]) >= 6


@pytest.mark.parametrize("way", WAYS)
def test_beside_each_other(warm, attempt, way):
    settings = WAYS[way]
    words, known = stand_words()
    warm.ready(**settings)
    stand = warm.start(attempt, *words, **settings)
    warm.wait_said(stand, "standing")
    known.update(told_in(warm.said[stand]))
    names = list(ATTACKS)
    warm.await_place()
    attack = warm.run(attempt, *words_of(names, known), **settings)
    assert attack["place"] == "taken", attack
    shared = {way} | ({"unscoped"} if way == "warm" and not is_scoped(warm) else set())
    for name, (answer, said) in answers(names, attack).items():
        wanted = "escaped" if shared & set(ATTACKS[name][1]) else "contained"
        assert answer == wanted, (name, said)
    # Signals to everybody reach nobody else; the other one is alive and was not touched.
    warm.run(attempt, "signal-all", **settings)
    warm.ask("signal", name=stand, signal=10)
    warm.wait_said(stand, "hit 10")
    assert warm.said[stand].count("hit") == 1
    warm.ask("forget", name=stand)


@pytest.mark.parametrize("way", WAYS)
def test_signals_reach_all_of_one_command(warm, attempt, way):
    """The attempt above can succeed: here the other one is of the same command."""
    words, _ = stand_words()
    line = f'{STAND} "$0" signal-all; until grep -q hit /tmp/said; do sleep 0.01; done; cat /tmp/said'
    done = warm.run("/bin/sh", "-c", line, attempt, *words, **WAYS[way])
    assert "hit 23" in done["stdout"], done


@pytest.mark.parametrize("way", WAYS)
def test_within_one_command(warm, attempt, way):
    """What the other command was kept from, a process of the same one is not."""
    words, known = stand_words()
    names = [name for name in ATTACKS if name not in NEVER]
    known.update({key: f"${key}" for key in ("pid", "fd", "address", *(f"ns_{kind}" for kind in
                                             ("pid", "mnt", "ipc", "user", "cgroup", "net", "uts")))})
    line = (STAND + """ for pair in $(tr ' ' '\\n' < /tmp/said | grep =); do eval "${pair%%=*}='${pair#*=}'"; done; """
            "exec \"$0\" " + " ".join(word if word == "--" else f'"{word}"' for word in words_of(names, known)))
    done = warm.run("/bin/sh", "-c", line, attempt, *words, **WAYS[way])
    found = answers(names, done)
    assert {name: answer for name, answer in found.items() if answer[0] != "escaped"} == {}, done


@pytest.mark.parametrize("way", WAYS)
def test_after_each_other(warm, attempt, way):
    """A command that leaves a process, which has left its session and its parents, leaves nothing of it."""
    settings = WAYS[way]
    words, known = stand_words()
    leave = """setsid "$0" "$@" > /tmp/said & until grep -q standing /tmp/said; do sleep 0.01; done; cat /tmp/said
               (setsid sh -c 'sleep 1000' &) ; touch locked; exec 9< locked; flock 9; setsid sleep 1001 &"""
    left = warm.run("/bin/sh", "-c", leave, attempt, *words, **settings)
    assert left["exit_code"] == 0, left
    known.update(told_in(left["stdout"]))
    warm.await_place()
    # The number of a namespace that is gone may be another's by now.
    names = [name for name in ATTACKS if not name.startswith("namespace-")]
    attack = warm.run(attempt, *words_of(names, known), **settings)
    assert attack["place"] == "taken"
    for name, (answer, said) in answers(names, attack).items():
        assert answer == "contained", (name, said)
    assert warm.run("/usr/bin/flock", "-n", "locked", "true", **settings)["exit_code"] == 0
    # What is left has its parent among the places that wait.
    assert wait_until(lambda: len(parts(warm)["commands"]) <= len(parts(warm)["inits"])), parts(warm)


# A filter that allows everything, with a listener for what it would tell: and what descriptors there are before.
LISTEN = """
import ctypes, errno, os, platform
print(*sorted(os.listdir("/proc/self/fd"))[:-1])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
program = Program(1, bytes([6, 0, 0, 0, 0, 0, 255, 127]))
libc = ctypes.CDLL(None, use_errno=True)
got = libc.syscall({"x86_64": 317, "aarch64": 277}[platform.machine()], 1, 8, ctypes.byref(program))
print("had one" if got >= 0 else errno.errorcode[ctypes.get_errno()])
"""


@pytest.mark.parametrize("way", [*WAYS, "cold"])
def test_the_listener_is_inits(cordon, leftovers, way):  # noqa: F811
    """Where walls stay up init has the one that there can be, of the command's filter; the command has no descriptor of it."""
    warm = Warm(cordon, cold=way == "cold")
    try:
        warm.session("s")
        for _ in range(2):  # whose place was made for it, and had waited
            result = warm.run("/usr/bin/python3", "-c", LISTEN, **WAYS.get(way, {}))
            assert result["stdout"].splitlines() == ["0 1 2", "had one" if way == "cold" else "EBUSY"], result
    finally:
        warm.close()
