"""Shell lines as commands of one session: what they print and how they end, compared with a bare shell, and with the
same line as the only command of a session."""
import pathlib
import subprocess

import pytest

from lab import embed, leftovers, needs  # noqa: F401

HERE = pathlib.Path(__file__).parent
LINES = (HERE / "data/shell-lines").read_bytes().rstrip(b"\n").split(b"\n%%\n")
INPUT = b"one\ntwo\nthree"
# What depends on the machine around a sandbox, and is no matter of the shell: compared between the two that are inside.
INSIDE_ONLY = (b"env | ", b"ulimit ", b"/etc/passwd", b"SHLVL", b"echo *[", b"~root",
               b"Sig???")  # what it inherits, too


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return embed(HERE / "library/shells.c", tmp_path_factory.mktemp("shells"))


@needs("gcc", "unsanitized", "mount-namespace")
def test_a_line_sees_what_changed_since_the_last_one(cordon, leftovers, tmp_path):
    program = embed(HERE / "library/shell-changes.c", tmp_path)
    done = subprocess.run([program], env={**cordon.env, "WORKSPACE": str(cordon.workspace)}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr


def told(cordon, program, shell, how, lines):
    """(status, stdout, stderr) of each line."""
    source, given = cordon.data.parent / "input", cordon.data.parent / "lines"
    source.write_bytes(INPUT)
    given.write_bytes(b"".join(line + b"\0" for line in lines))
    data = cordon.data.parent / ("data-" + how + shell.replace("/", "-"))
    env = {**cordon.env, "XDG_DATA_HOME": str(data), "WORKSPACE": str(cordon.workspace), "INPUT": str(source)}
    done = subprocess.run([program, shell, given], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    results, rest = [], done.stdout
    while rest:
        head, rest = rest.split(b"\n", 1)
        code, signal, out, err = map(int, head.split())
        results.append((code if code >= 0 else -signal, rest[:out], rest[out:out + err]))
        rest = rest[out + err:]
    assert len(results) == len(lines)
    return results


def bare(cordon, shell, line, locale):
    done = subprocess.run([shell, "-c", line], input=INPUT, capture_output=True, cwd=cordon.workspace,
                          env={"PATH": "/usr/bin:/bin", "HOME": "/", "LC_ALL": locale})
    return done.returncode, done.stdout, done.stderr


def compare(cordon, program, shell, lines, locale="C.UTF-8"):
    """A shell that is started behind the same walls is asked where a bare one cannot tell, and now and then."""
    cordon.env["LC_ALL"] = locale
    inside = [line for number, line in enumerate(lines) if number % 4 == 0 or any(word in line for word in INSIDE_ONLY)]
    few = dict(zip(inside, told(cordon, program, shell, "few", inside)))
    wrong = []
    for line, one in zip(lines, told(cordon, program, shell, "all", lines)):
        outside = few[line] if any(word in line for word in INSIDE_ONLY) else bare(cordon, shell, line, locale)
        if one != outside or one != few.get(line, one):
            wrong.append((line, one, few.get(line), outside))
    assert not wrong, "\n".join(map(str, wrong))


@needs("gcc", "unsanitized", "mount-namespace")
@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_every_line_does_what_it_does_in_a_bare_shell(cordon, program, leftovers, shell):
    # bash has more of everything.
    compare(cordon, program, shell, LINES if shell == "bash" else LINES[::2])


@needs("gcc", "unsanitized", "mount-namespace")
def test_names_and_sizes(cordon, program, leftovers):
    lines = [b":", b"echo $0", b"", b" ", b"echo '" + bytes(byte for byte in range(1, 256) if byte != 39) + b"'",
             b"echo " + b"y" * 20000]
    for shell in ("/bin/sh", "sh", "/bin/bash"):
        compare(cordon, program, shell, lines)


@needs("gcc", "unsanitized", "mount-namespace")
def test_what_it_said_when_it_started_is_not_lost(cordon, program, leftovers):
    compare(cordon, program, "bash", [b":", b"echo out; echo err >&2"], locale="xx_XX.UTF-8")
    assert b"cannot change locale" in bare(cordon, "bash", ":", "xx_XX.UTF-8")[2]
