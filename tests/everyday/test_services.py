"""Servers of the host's that a command was granted by their port, and a browser."""
import contextlib
import glob
import os
import pathlib
import socket
import subprocess
import time

import pytest

from lab import IS_ROOT, needs

PATIENCE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def served(port, argv, **options):
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        deadline = time.monotonic() + PATIENCE
        while not answers(port):
            assert process.poll() is None and time.monotonic() < deadline, f"{argv[0]} does not answer"
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


@needs("redis-server")
def test_redis_on_the_hosts_loopback(work, cordon, tmp_path):
    port = free_port()
    with served(port, ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]):
        assert work(f"redis-cli -p {port} set name value; redis-cli -p {port} get name", "--net", f"localhost:{port}") == "OK\nvalue\n"
        done = cordon("run", "--", "redis-cli", "-p", str(port), "get", "name")
        assert done.returncode != 0 and "value" not in done.stdout


@pytest.fixture
def postgres(tmp_path):
    """A server of its own, on a free port. It does not run as root: then it is nobody's."""
    programs = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"] if IS_ROOT else []
    place = tmp_path / "postgres"
    place.mkdir(mode=0o700)
    if IS_ROOT:
        os.chown(place, 65534, 65534)
        for parent in list(place.parents)[:3]:
            if parent.is_relative_to(tmp_path.parents[1]):
                parent.chmod(parent.stat().st_mode | 0o011)
    port = free_port()
    subprocess.run([*become, programs / "initdb", "-D", place, "-A", "trust", "-U", "ada", "--no-sync"], check=True, capture_output=True, cwd="/")
    with served(port, [*become, programs / "postgres", "-D", place, "-p", str(port), "-k", place, "-c", "fsync=off"], cwd="/"):
        yield port


@needs("postgres", "psql")
def test_postgres_on_the_hosts_loopback(work, postgres):
    line = f"psql -X -h 127.0.0.1 -p {postgres} -U ada -d postgres -Atc"
    deadline = time.monotonic() + PATIENCE  # it answers before it takes queries
    while subprocess.run(f"{line} 'select 1'", shell=True, capture_output=True).returncode and time.monotonic() < deadline:
        time.sleep(0.1)
    assert work(f"{line} 'create table t (n int)'; {line} 'insert into t select generate_series(1, 10)'; {line} 'select sum(n) from t'",
                "--net", f"localhost:{postgres}") == "CREATE TABLE\nINSERT 0 10\n55\n"


@needs("chromium")
def test_a_screenshot_by_chromium(work):
    """A page that a server inside has; the browser cannot have a sandbox of its own inside, and needs none."""
    work.write("page/index.html", "<body style='background:#0a0'><h1>hello</h1><script>document.title = 'ready'</script></body>\n")
    work("/usr/bin/python3 -m http.server -b 127.0.0.1 -d page 8123 2>/dev/null & "
         "while ! /usr/bin/python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8123))' 2>/dev/null; do sleep 0.1; done; "
         "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --window-size=200,100 "
         "--screenshot=shot.png http://127.0.0.1:8123/ 2>log || { cat log >&2; exit 1; }",
         "--processes", "1000", "--memory", "4G", "--timeout", "200s")
    shot = (work.workspace / "shot.png").read_bytes()
    assert shot.startswith(b"\x89PNG") and len(shot) > 300
