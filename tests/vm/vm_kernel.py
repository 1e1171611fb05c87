"""Kernels of other releases, from Debian's packages: downloaded once, unpacked, never installed."""
import lzma
import os
import pathlib
import re
import shutil
import subprocess

PACKAGES = {"6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64"}


class Missing(Exception):
    """It cannot be had here."""


def run(*argv, **more):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, argv))}: {(done.stderr.strip() or str(done.returncode)).splitlines()[-1]}")
    return done.stdout


def download(package, place):
    """The lists that name packages may be older than what they name."""
    try:
        run("apt-get", "download", package, cwd=place)
    except Missing:
        if os.geteuid() != 0:
            raise
        run("apt-get", "update")
        run("apt-get", "download", package, cwd=place)


def kernel(version, cache):
    """(the kernel, the directory of its modules); kept under `cache`."""
    place = cache / f"linux-{version}"
    if not (place / "complete").exists():
        depends = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", "--no-recommends", PACKAGES[version]))
        if not depends:
            raise Missing(f"{PACKAGES[version]} depends on no kernel")
        place.mkdir(parents=True, exist_ok=True)
        download(depends[1], place)
        [package] = place.glob("*.deb")
        run("dpkg-deb", "-x", package, place)
        package.unlink()
        (place / "complete").touch()
    [image] = (place / "boot").glob("vmlinu*")
    [modules] = (place / "lib/modules").iterdir()
    return image, pathlib.Path(modules)


def module(path):
    """A module's bytes, as it is or compressed."""
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def lacking(versions, cache):
    """What is missing to run these kernels, or None."""
    missing = [name for name in ("qemu-system-x86_64", "busybox", "apt-get", "dpkg-deb") if not shutil.which(name)]
    if missing:
        return f"no {missing[0]} on PATH"
    try:
        for version in versions:
            kernel(version, cache)
    except (Missing, OSError) as error:
        return str(error)
    return None
