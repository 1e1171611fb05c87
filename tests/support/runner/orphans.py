"""What tests leave running: for the runner, and for the tests of what a command leaves."""
import ctypes
import os
import pathlib


def adopt_orphans():
    """Whatever a test leaves running becomes our child, so that it can be named and ended."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def children():
    """Of all threads. Those of one that ends meanwhile become another's, which may have been asked before."""
    while True:
        try:
            return {int(pid) for task in pathlib.Path("/proc/self/task").iterdir()
                    for pid in (task / "children").read_text().split()}
        except (FileNotFoundError, ProcessLookupError):
            continue


def living_children():
    """Our living children as {pid: command}; the dead ones among the adopted are reaped."""
    living = {}
    for pid in children():
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            continue
        if state in "ZX":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        else:
            living[pid] = command or "?"
    return living
