"""ioctl requests by what is granted, and those that get past names: a btrfs snapshot shows a tree without its masks,
fscrypt hides what is planted until a key comes back. Each on a filesystem of its own, in a file, which only root can
mount; commands run as root and as an ordinary user."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import PROGRAM
from lab import drivers, needs

UNWALLED = os.environ.get("CORDON_UNWALLED") or f"{PROGRAM}-unwalled"
NOBODY = 65534
BTRFS = ["mkfs.btrfs", "-q"], 128
FSCRYPT = ["mkfs.ext4", "-q", "-O", "encrypt"], 16
# Mounts in a namespace that ends with the command; the loop device goes with it.
ENTER = ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
         'mount -o loop "$1" "$2"; cd "$2"; shift 2; exec "$@"', "-"]

REQUEST = """
import errno, fcntl, os, struct
def ask(what, fd, request, data):
    try:
        fcntl.ioctl(fd, request, data)
        print(what, "done")
    except OSError as error:
        print(what, errno.errorcode[error.errno])
here = os.open(".", os.O_RDONLY)
"""
SNAPSHOT = REQUEST + """
ask("snapshot", here, 0x50009417, bytearray(struct.pack("=qQQ32x4040s", here, 0, 0, b"snap")))
for path in (".env", "snap/.env"):
    try:
        print(path, open(path).read().strip())
    except OSError as error:
        print(path, "unreadable")
"""
ENCRYPT = REQUEST + """
key = bytearray(struct.pack("=II32xII32x64s", 2, 0, 64, 0, b"k" * 64))
ask("add", here, 0xc0506617, key)
os.makedirs("hidden", exist_ok=True)
hidden = os.open("hidden", os.O_RDONLY)
ask("encrypt", hidden, 0x800c6613, bytearray(struct.pack("=BBBBB3x16s", 2, 1, 4, 3, 0, bytes(key[8:24]))))
ask("remove", here, 0xc0406618, bytearray(key[:40]) + bytearray(24))
"""


class Disk:
    def __init__(self, place, make, megabytes, uid):
        self.uid, self.image, self.tree, self.data = uid, place / "image", place / "tree", place / "data"
        self.image.touch()
        os.truncate(self.image, megabytes << 20)
        subprocess.run([*make, self.image], check=True, stdout=subprocess.DEVNULL)
        for directory in (self.tree, self.data):
            directory.mkdir()
            os.chown(directory, uid, uid)
        self.host("sh", "-c", f"echo secret >.env; chown {uid}:{uid} . .env")

    def host(self, *words):
        return subprocess.run([*ENTER, self.image, self.tree, *words], check=True, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True).stdout

    def run(self, driver, script, unwall=None):
        """What a command printed that runs a Python script inside."""
        user = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups",
                "--inh-caps=-all"] if self.uid else []
        settings = [f"XDG_DATA_HOME={self.data}", f"XDG_CONFIG_HOME={self.data}/none", f"HOME={self.data}"]
        settings += [f"CORDON_UNWALL={unwall}"] if unwall else []
        told = json.loads(self.host(*user, "env", *settings, UNWALLED if unwall else PROGRAM, "run", "--json",
                                    "--no-daemon", "--driver", driver, "--workspace", self.tree, "--",
                                    "/usr/bin/python3", "-c", script))
        assert told["exit_code"] == 0, told
        return told["stdout"]


@pytest.fixture(params=[0, NOBODY], ids=["root", "user"])
def disk(request):
    """disk(how to make the filesystem, megabytes). Not below pytest's own directory, which no other user may enter."""
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"cordon-test-ioctls-{os.getpid()}-"))
    place.chmod(0o755)
    yield lambda make, megabytes: Disk(place, make, megabytes, request.param)
    shutil.rmtree(place)


def lines(*words):
    return "".join(word + "\n" for word in words)


@needs("loop-btrfs", "mount-namespace")
def test_a_snapshot_shows_what_is_masked_without_the_filter(disk):
    said = disk(*BTRFS).run("namespaces", SNAPSHOT, unwall="kernel_surface")
    assert said == lines("snapshot done", ".env unreadable", "snap/.env secret")


@drivers("namespaces", "bwrap", "landlock")
@needs("loop-btrfs")
def test_a_snapshot_is_refused(disk, driver):
    btrfs = disk(*BTRFS)
    shown = "secret" if driver == "landlock" else "unreadable"  # which masks no names
    assert btrfs.run(driver, SNAPSHOT) == lines("snapshot ENOTTY", f".env {shown}", "snap/.env unreadable")
    assert btrfs.host("ls") == ""


@needs("loop-fscrypt", "mount-namespace")
def test_names_can_be_encrypted_without_the_filter(disk):
    ext4 = disk(*FSCRYPT)
    said = ext4.run("namespaces", ENCRYPT, unwall="kernel_surface")
    # The kernel asks for the directory's owner, and root's is another one where the mount maps ids.
    assert said == lines("add done", "encrypt done" if ext4.uid else "encrypt EACCES", "remove done")


@drivers("namespaces", "bwrap", "landlock")
@needs("loop-fscrypt")
def test_encryption_is_refused(disk, driver):
    assert disk(*FSCRYPT).run(driver, ENCRYPT) == lines("add ENOTTY", "encrypt ENOTTY", "remove ENOTTY")


# ---- devices ---------------------------------------------------------------------------------------------------------

# KVM_GET_API_VERSION, TIOCSTI and FS_IOC_SETFLAGS on a descriptor that is none: EBADF if the kernel is asked.
DEVICE = REQUEST + """
for request in (0xae00, 0x5412, 0x40086602):
    ask(hex(request), 99, request, 0)
"""


@drivers("namespaces", "bwrap", "landlock")
@needs("kvm")
def test_a_granted_device_adds_its_requests_and_no_others(cordon, driver):
    script = ["--driver", driver, "--", "/usr/bin/python3", "-c", DEVICE]
    refused = lines("0x5412 ENOTTY", "0x40086602 ENOTTY")
    for options, said in (([], "0xae00 ENOTTY"), (["--device", "/dev/null"], "0xae00 ENOTTY"),
                          (["--device", "/dev/kvm"], "0xae00 EBADF")):
        done = cordon("run", *options, *script)
        assert done.stdout == lines(said) + refused, (options, done)
