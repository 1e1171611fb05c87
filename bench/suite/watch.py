"""What a program and everything below it hold of the machine, to be compared before and after."""
import os
import pathlib
import re

from report import grep


def parents():
    """{pid: parent} of every process, threads not counted; the dead ones among them are left out."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state not in "ZX":
            found[int(path.parent.name)] = int(parent)
    return found


def below(pid, of=None):
    """The living processes below one."""
    of, found = of or parents(), [pid]
    for parent in found:
        found += [child for child, its in of.items() if its == parent]
    return found[1:]


def status(pid, key):
    """A number of /proc/PID/status; 0 where it is gone."""
    try:
        return int(grep(f"/proc/{pid}/status", rf"^{key}:\s+(\d+)", "0"))
    except OSError:
        return 0


def pss_kb(pid):
    """What it has of memory, its share of what is shared; 0 where it is gone, None where we may not know."""
    try:
        return int(grep(f"/proc/{pid}/smaps_rollup", r"^Pss:\s+(\d+)", "0"))
    except PermissionError:
        return None
    except OSError:
        return 0


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def links(pid):
    """What its descriptors are."""
    return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]


def namespaces(pids, kind):
    """How many different ones; those of processes that we may not look at are not counted."""
    found = set()
    for pid in pids:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
        except OSError:
            pass
    return len(found)


def memory_kb(key):
    return int(grep("/proc/meminfo", rf"^{key}:\s+(\d+)", "0"))


def groups():
    """(where, the maker's pid) of each control group of cordon's: the pid is in the name. They come and go while we
    look."""
    for place, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            maker = re.match(r"cordon-(\d+)-", name)
            if maker:
                yield os.path.join(place, name), int(maker.group(1))


def orphaned_groups():
    """Those beneath our own whose maker is gone. Others live on this machine, too."""
    own = tuple(line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup"))
    return {path for path, maker in groups() if not os.path.exists(f"/proc/{maker}")
            and os.path.dirname(path).endswith(own)}


def look(pid):
    """Everything of one program, by name. What cannot be known is None."""
    children = below(pid)
    return {
        "memory of the process, kB": status(pid, "VmRSS"),
        "memory of all below it, kB": sum(status(child, "VmRSS") for child in children),
        "threads": status(pid, "Threads"),
        "descriptors": descriptors(pid),
        "processes below it": len(children),
        "descriptors of these": sum(descriptors(child) or 0 for child in children),
        "mounts of the host": len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()),
        "mount namespaces": namespaces(children, "mnt"),
        "network namespaces": namespaces(children, "net"),
        "control groups": sum(maker == pid for _, maker in groups()),
    }
