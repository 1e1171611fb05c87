"""What guests are made of, from Debian's packages: downloaded once, unpacked, never installed; and cordon built for the
other architecture."""
import collections
import lzma
import os
import pathlib
import re
import shutil
import subprocess

Arch = collections.namedtuple("Arch", "debian qemu console results ended compiler libraries lacking")
# Emulated, a string instruction takes as long for a byte as for eight of them: without `erms` kernel and libc choose
# eight.
ARCHES = {
    "x86_64": Arch("amd64", ["qemu-system-x86_64", "-machine", "q35", "-cpu", "max,erms=off,fsrm=off", "-device",
                             "isa-serial,chardev=results,index=1",
                             "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"], "ttyS0", "/dev/ttyS1", 1, "cc", None,
                   set()),
    # A machine of this kind is turned off, which says nothing about how it ended: only what came back does.
    "aarch64": Arch("arm64", ["qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72", "-device",
                              "pci-serial,chardev=results"],
                    "ttyAMA0", "/dev/ttyS0", 0, "aarch64-linux-gnu-gcc", pathlib.Path("/usr/aarch64-linux-gnu/lib"),
                    {"x86_64", "ia32", "x32"}),
}
# (architecture, release) -> the package that depends on it
KERNELS = {
    ("x86_64", (6, 1)): "linux-image-cloud-amd64",
    ("x86_64", (6, 12)): "linux-image-6.12-cloud-amd64",
    ("aarch64", (6, 1)): "linux-image-cloud-arm64",
}
# Disks in files, and quotas on them.
MODULES = ["loop", "quota_tree", "quota_v2"]
# For a build for another architecture: what meson.build asks for.
LIBRARIES = ["libjansson-dev", "libjansson4", "libsodium-dev", "libsodium23", "libc-ares-dev", "libc-ares2",
             "libssl-dev", "libssl3", "libevent-dev", "libevent-core-2.1-7", "libcmocka-dev", "libcmocka0",
             "libseccomp-dev", "libseccomp2"]
CROSS = """[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
objcopy = 'aarch64-linux-gnu-objcopy'
pkgconfig = 'pkg-config'
[built-in options]
c_args = ['-I{0}/usr/include/aarch64-linux-gnu']
[properties]
sys_root = '{0}'
pkg_config_libdir = '{0}/usr/lib/aarch64-linux-gnu/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""


class Missing(Exception):
    """It cannot be had here."""


def run(*argv, **more):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          **more)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, argv))}: {((done.stderr or done.stdout).strip() or str(done.returncode)).splitlines()[-1]}")
    return done.stdout


class Apt:
    """Debian's packages of an architecture. One that is not this machine's has lists of its own, so that nothing here
    changes."""
    def __init__(self, arch, cache):
        self.options, self.foreign, self.fresh = [], os.uname().machine != arch, False
        if self.foreign:
            own = cache / f"apt-{arch}"
            for name in ("state/lists/partial", "cache/archives/partial"):
                (own / name).mkdir(parents=True, exist_ok=True)
            (own / "status").touch()
            debian = ARCHES[arch].debian  # as whoever we are: apt's own user cannot reach these lists
            for name, value in {"APT::Architecture": debian, "APT::Architectures": debian, "Dir::State": own / "state",
                                "Dir::Cache": own / "cache", "Dir::State::status": own / "status",
                                "APT::Sandbox::User": "root"}.items():
                self.options += ["-o", f"{name}={value}"]

    def update(self):
        """Other lists than Debian's may fail for an architecture they do not have; what counts is what can be
        downloaded."""
        if not self.fresh and (self.foreign or os.geteuid() == 0):
            subprocess.run(["apt-get", *map(str, self.options), "update"], stdin=subprocess.DEVNULL,
                           capture_output=True)
        self.fresh = True

    def unpack(self, place, packages, resolve=False):
        """resolve: not the package, but the kernel it depends on. Lists may be older than what they name: asked again
        then."""
        complete, wanted = place / "complete", " ".join(packages)
        if complete.exists() and complete.read_text() == wanted:
            return
        for attempt in range(2):
            try:
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir(parents=True)
                if resolve:
                    said = run("apt-cache", *self.options, "depends", "--no-recommends", *packages)
                    packages = re.findall(r"Depends: (linux-image-\S+)", said)[:1] or packages
                run("apt-get", *self.options, "download", *packages, cwd=place)
                break
            except Missing:
                if attempt:
                    raise
                self.update()
        for package in place.glob("*.deb"):
            run("dpkg-deb", "-x", package, place)
            package.unlink()
        complete.write_text(wanted)


def kernel(arch, release, cache):
    """(the kernel, its modules by name); kept under `cache`."""
    place = cache / f"linux-{arch}-{'.'.join(map(str, release))}"
    Apt(arch, cache).unpack(place, [KERNELS[arch, release]], resolve=True)
    [image] = (place / "boot").glob("vmlinu*")
    modules = {}
    for name in MODULES:
        [module] = (place / "lib/modules").rglob(f"{name}.ko*")
        modules[name] = lzma.decompress(module.read_bytes()) if module.suffix == ".xz" else module.read_bytes()
    return image, modules


def busybox(arch, cache):
    if arch == os.uname().machine:
        return shutil.which("busybox")
    Apt(arch, cache).unpack(cache / f"busybox-{arch}", ["busybox-static"])
    return cache / f"busybox-{arch}/bin/busybox"


def programs(arch, root, build, cache):
    """Where cordon is, built for this architecture."""
    if arch == os.uname().machine:
        return build
    sysroot, own = cache / f"sysroot-{arch}", cache / f"build-{arch}"
    Apt(arch, cache).unpack(sysroot, LIBRARIES)
    if not (own / "build.ninja").exists():
        (cache / f"{arch}.ini").write_text(CROSS.format(sysroot.resolve()))
        run("meson", "setup", own, root, "--cross-file", cache / f"{arch}.ini", "-Dtests=true", "-Ddebug=false")
    run("ninja", "-C", own, "cordon", "cordon-unwalled", "tests/walls/session-run")
    return own


def quota_disk(options, megabytes, place):
    """An ext4 filesystem in a file."""
    with open(place, "wb") as disk:
        disk.truncate(megabytes << 20)
    run(shutil.which("mkfs.ext4", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or "mkfs.ext4", *options, place)
    return place.read_bytes()


def lacking(arch, release, cache):
    """What is missing to run this kernel, or None."""
    missing = [name for name in (ARCHES[arch].qemu[0], ARCHES[arch].compiler, "busybox", "apt-get", "dpkg-deb")
               if not shutil.which(name)]
    if missing:
        return f"no {missing[0]} on PATH"
    try:
        kernel(arch, release, cache)
        busybox(arch, cache)
    except (Missing, OSError) as error:
        return str(error)
    return None
