"""A control group of version 2 for one test, and who is in what cordon makes beneath it."""
import contextlib
import errno
import glob
import os
import tempfile
import time

PATIENCE = 60


def leaves(path):
    return glob.glob(f"{path}/cordon-*")


def members(path):
    found = []
    for leaf in leaves(path):
        with contextlib.suppress(OSError):  # its command ended just now
            with open(f"{leaf}/cgroup.procs") as file:
                found += [int(pid) for pid in file.read().split()]
    return found


def is_removed(path):
    try:
        os.rmdir(path)
    except FileNotFoundError:  # by the next command, which sweeps what a killed cordon left
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


@contextlib.contextmanager
def own_group():
    """Its controllers may all be elsewhere. What a killed cordon left in it goes with it, once nobody is in there."""
    root = "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
    path = tempfile.mkdtemp(prefix="test-cordon-", dir=root)
    try:
        yield path
    finally:
        until = time.monotonic() + PATIENCE
        while not all([is_removed(leaf) for leaf in leaves(path)] + [is_removed(path)]) and time.monotonic() < until:
            time.sleep(0.01)
        assert not os.path.exists(path), f"somebody stays in {path}"
