"""FIFOs: a read-only mount does not keep a command from writing to one, so in what is granted to be read they are
hidden. In what is granted to be written they work."""
import os

import pytest

from lab import drivers

WRITE = 'echo "$1" | timeout 10 tee -a "$2" >/dev/null'


@pytest.fixture
def fifo():
    """fifo(path) makes one; fifo.written() is what came out of all of them."""
    readers = []

    def make(path):
        os.mkfifo(path)
        path.chmod(0o666)
        readers.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        return path

    def written():
        found = b""
        for reader in readers:
            try:
                found += os.read(reader, 4096)
            except BlockingIOError:
                pass
        return found.decode()
    make.written = written
    yield make
    for reader in readers:
        os.close(reader)


def write(cordon, driver, path, *options):
    return cordon("run", "--driver", driver, *options, "--", "sh", "-c", WRITE, "-", "text", path)


@drivers("namespaces", "landlock", "bwrap")
@pytest.mark.parametrize("name", ["fifo", "deep/er/fifo", ".git/config"])
def test_one_in_a_directory_to_be_read_cannot_be_written(cordon, fifo, tmp_path, driver, name):
    granted = tmp_path / "granted"
    (granted / name).parent.mkdir(parents=True)
    path = fifo(granted / name)
    for _ in range(2):  # the second time it is known
        write(cordon, driver, path, "--read", granted)
        assert fifo.written() == ""


@drivers("namespaces", "landlock", "bwrap", "local")
def test_one_in_a_directory_to_be_written_works(cordon, fifo, tmp_path, driver):
    granted, inner = tmp_path / "granted", tmp_path / "granted/inner"
    inner.mkdir(parents=True)
    done = write(cordon, driver, fifo(cordon.workspace / "fifo"))
    assert done.returncode == 0 and fifo.written() == "text\n", done
    done = write(cordon, driver, fifo(granted / "fifo"), "--write", granted)
    assert done.returncode == 0 and fifo.written() == "text\n", done
    # A directory to be written in one to be read.
    done = write(cordon, driver, fifo(inner / "fifo"), "--read", granted, "--write", inner)
    assert done.returncode == 0 and fifo.written() == "text\n", done
    write(cordon, driver, granted / "fifo", "--read", granted, "--write", inner)
    assert fifo.written() == ("text\n" if driver == "local" else "")
    script = "mkfifo made && { cat made & echo through >made; wait; }"
    assert cordon("run", "--driver", driver, "-c", script).stdout == "through\n"


@drivers("namespaces", "bwrap")
def test_one_in_a_directory_to_be_read_in_the_workspace_cannot_be_written(cordon, fifo, driver):
    inner = cordon.workspace / "inner"
    inner.mkdir()
    write(cordon, driver, fifo(inner / "fifo"), "--read", inner)
    assert fifo.written() == ""


@drivers("namespaces", "bwrap")
def test_one_that_becomes_to_be_read_is_hidden_then(cordon, fifo, tmp_path, driver):
    """What was found in a directory is known by the next command, which may have it with less."""
    granted = tmp_path / "granted"
    granted.mkdir()
    path = fifo(granted / "fifo")
    write(cordon, driver, path, "--write", granted)
    assert fifo.written() == "text\n"
    write(cordon, driver, path, "--read", granted)
    assert fifo.written() == ""
    write(cordon, driver, path, "--write", granted)
    assert fifo.written() == "text\n"
