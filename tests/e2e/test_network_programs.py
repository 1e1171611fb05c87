"""Programs as people use them, with the one way out: each reaches the host that is listed, with proxy variables or
without any setting, and no other. Real clients and real servers, in a world of their own (network_lab.py)."""
import base64
import hashlib
import io
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import tarfile

import pytest

from lab import IS_ROOT, drivers, missing
from network_lab import net, world  # noqa: F401

DATA = pathlib.Path(__file__).parent / "data"
SSHD = "/usr/sbin/sshd"


# ---- servers ---------------------------------------------------------------------------------------------------------

def serve_ssh(world, place):
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name], check=True,
                       stdin=subprocess.DEVNULL)
    settings = {"HostKey": place / "host", "AuthorizedKeysFile": place / "user.pub", "PidFile": "none", "UsePAM": "no",
                "StrictModes": "no", "PermitRootLogin": "yes", "PasswordAuthentication": "no",
                "ListenAddress": "0.0.0.0:22"}
    world.start(SSHD, "-D", "-e", "-f", "/dev/null",
                *(word for key, value in settings.items() for word in ("-o", f"{key}={value}")),
                stderr=subprocess.DEVNULL)
    key = (place / "host.pub").read_text()
    (place / "known").write_text(f"good.test {key}other.test {key}")


def serve_git(world, place):
    repository, env = place / "project", {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null",
                                          "GIT_CONFIG_SYSTEM": "/dev/null"}
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q", repository], ["-C", repository, *author, "commit", "-q", "--allow-empty", "-m",
                                               "first"]):
        subprocess.run(["git", *words], check=True, env=env)
    world.start("/usr/lib/git-core/git-daemon", "--export-all", f"--base-path={place}", "--listen=0.0.0.0",
                "--port=9418", repository, stderr=subprocess.DEVNULL)


def serve_postgres(world, place):
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    data = place / "cluster"
    data.mkdir(mode=0o700)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if IS_ROOT else []  # it refuses to be root
    if IS_ROOT:
        os.chown(data, 65534, 65534)
    made = world.run(*other, programs / "initdb", "-N", "-A", "trust", "-U", "keeper", "-E", "UTF8", "--locale=C", "-D",
                     data)
    assert made.returncode == 0, made
    settings = {"listen_addresses": "0.0.0.0", "unix_socket_directories": "", "fsync": "off", "shared_buffers": "1MB",
                "max_connections": "10", "logging_collector": "off", "autovacuum": "off"}
    (data / "pg_hba.conf").write_text("host all all all trust\n")
    world.start(*other, programs / "postgres", "-D", data,
                *(word for key, value in settings.items() for word in ("-c", f"{key}={value}")),
                stderr=subprocess.DEVNULL)


def serve_package(world, place):
    """A registry with one package in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in (("package.json", '{"name": "small", "version": "1.0.0"}'),
                           ("index.js", "module.exports = 42")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    path = "/small/-/small-1.0.0.tgz"
    digest = base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    version = {"name": "small", "version": "1.0.0",
               "dist": {"tarball": f"http://registry.test{path}", "integrity": f"sha512-{digest}"}}
    about = {"name": "small", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    for where, data in ((path, packed.getvalue()), ("/small", json.dumps(about).encode())):
        file = place / "served"
        file.write_bytes(data)
        world.ask("serve", where, str(file))


def build_resolver(world, place):
    subprocess.run(["cc", "-static", "-O1", "-Wall", "-Werror", DATA / "own-resolver.c", "-o", place / "own-resolver"],
                   check=True)


# What a program needs: (a function that makes it, the port to wait for).
SERVERS = {"sshd": (serve_ssh, 22), "git-daemon": (serve_git, 9418), "postgres": (serve_postgres, 5432),
           "npm": (serve_package, None), "gcc": (build_resolver, None)}


@pytest.fixture(scope="module")
def served(world):
    """Makes what a program needs, once."""
    made = set()

    def serve(name):
        if name in SERVERS and name not in made:
            made.add(name)
            SERVERS[name][0](world, world.directory)
            assert SERVERS[name][1] is None or world.ask("wait", SERVERS[name][1]), f"no {name}"
    return serve


# ---- programs --------------------------------------------------------------------------------------------------------

USER = pwd.getpwuid(os.getuid()).pw_name
SSH = (f"ssh -F none -o BatchMode=yes -o IdentityFile=$PWD/user -o UserKnownHostsFile=$PWD/known -o ConnectTimeout=30 {USER}@%s "
       "echo reached")
URLLIB = "/usr/bin/python3 -c 'import sys,urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).read())'"
NPM = "npm install --registry=http://%s/ --no-audit --no-fund --no-update-notifier --fetch-retries=0 small && node -p 'require(\"small\")'"
# (what it is called, the command with the host in it, the ports it needs, what it prints, what must be here)
PROGRAMS = [
    ("getent", "getent hosts %s", [80], " good.test", []),
    ("curl", "curl -sSf --max-time 30 http://%s/a", [80], '"path": "/a"', ["curl"]),
    ("curl-noproxy", "curl -sSf --max-time 30 --noproxy '*' http://%s/a", [80], '"path": "/a"', ["curl"]),
    ("curl-tls", "curl -sSf --max-time 30 --cacert ca.crt https://%s/a", [443], '"path": "/a"', ["curl"]),
    ("curl-tls-noproxy", "curl -sSf --max-time 30 --cacert ca.crt --noproxy '*' https://%s/a", [443], '"path": "/a"',
     ["curl"]),
    ("curl-socks", "curl -sSf --max-time 30 -x socks5h://198.18.0.1:3128 http://%s/a", [80], '"path": "/a"', ["curl"]),
    ("ssh", SSH, [22], "reached", ["ssh", "sshd"]),
    ("git", "rm -rf copy; git clone git://%s/project copy && git -C copy log --format=%%s", [9418], "first",
     ["git", "git-daemon"]),
    ("psql", "psql -h %s -U keeper -d postgres -Atc 'select 6*7'", [5432], "42", ["psql", "postgres"]),
    ("nc", "echo hello | nc -N -w 30 %s 7", [7], "hello", ["nc"]),
    ("own-resolver", "./own-resolver %s 7", [7], "hello", ["gcc"]),
    ("urllib", f"{URLLIB} http://%s/a", [80], '"path": "/a"', []),
    ("urllib-tls", f"SSL_CERT_FILE=ca.crt {URLLIB} https://%s/a", [443], '"path": "/a"', []),
    ("npm", NPM, [80], "42", ["npm", "node"]),
]
FILES = ["ca.crt", "user", "known", "own-resolver"]


def rows_of_programs():
    return [pytest.param(*row, id=row[0], marks=missing(*row[4])) for row in PROGRAMS]


@drivers("namespaces", "bwrap")
@pytest.mark.parametrize("name,command,ports,printed,needed", rows_of_programs())
def test_reaches_the_listed_host_and_no_other(net, served, driver, name, command, ports, printed, needed):
    for each in needed:
        served(each)
    for file in FILES:
        if (net.world.directory / file).exists():
            shutil.copy(net.world.directory / file, net.workspace / file)
    good = "registry.test" if name == "npm" else "good.test"
    net.driver = driver
    net.world.seen()
    script = f"{command % good} && echo && echo done; {command % 'other.test'}; echo $?; true"
    value = net.inside("sh", "-c", script, net=[f"{good}:{port}" for port in ports])
    lines = value["stdout"].splitlines()
    assert printed in value["stdout"] and "done" in lines, value
    assert lines[-1] != "0", "the other host was reached"
    assert not [each for each in net.world.seen() if each[1] == "93.184.216.35"]
    decisions = {(row["host"], row["decision"]) for row in net.connections()}
    assert (good, "allowed") in decisions or name == "getent", net.connections()
    assert "other.test" in {host for host, decision in decisions if decision == "denied"}, net.connections()
