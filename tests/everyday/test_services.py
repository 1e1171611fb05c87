"""Servers of the host's that a command was granted by their port, and a browser."""
import contextlib
import glob
import os
import pathlib
import socket
import subprocess
import time
import urllib.request

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
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               **options)
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
    with served(port, ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
                       str(tmp_path)]):
        assert work(f"redis-cli -p {port} set name value; redis-cli -p {port} get name", "--net",
                    f"localhost:{port}") == "OK\nvalue\n"
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
    subprocess.run([*become, programs / "initdb", "-D", place, "-A", "trust", "-U", "ada", "--no-sync"], check=True,
                   capture_output=True, cwd="/")
    with served(port, [*become, programs / "postgres", "-D", place, "-p", str(port), "-k", place, "-c", "fsync=off"],
                cwd="/"):
        yield port


@needs("postgres", "psql")
def test_postgres_on_the_hosts_loopback(work, postgres):
    line = f"psql -X -h 127.0.0.1 -p {postgres} -U ada -d postgres -Atc"
    deadline = time.monotonic() + PATIENCE  # it answers before it takes queries
    while subprocess.run(f"{line} 'select 1'", shell=True,
                         capture_output=True).returncode and time.monotonic() < deadline:
        time.sleep(0.1)
    assert work(f"{line} 'create table t (n int)'; {line} 'insert into t select generate_series(1, 10)'; {line} 'select sum(n) from t'",
                "--net", f"localhost:{postgres}") == "CREATE TABLE\nINSERT 0 10\n55\n"


@needs("chromium")
def test_a_screenshot_by_chromium(work):
    """A page that a server inside has; the browser cannot have a sandbox of its own inside, and needs none."""
    work.write("page/index.html",
               "<body style='background:#0a0'><h1>hello</h1><script>document.title = 'ready'</script></body>\n")
    work("/usr/bin/python3 -m http.server -b 127.0.0.1 -d page 8123 2>/dev/null & "
         "while ! /usr/bin/python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8123))' 2>/dev/null; do sleep 0.1; done; "
         "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --window-size=200,100 "
         "--screenshot=shot.png http://127.0.0.1:8123/ 2>log || { cat log >&2; exit 1; }",
         "--processes", "1000", "--memory", "4G", "--timeout", "200s")
    shot = (work.workspace / "shot.png").read_bytes()
    assert shot.startswith(b"\x89PNG") and len(shot) > 300


@pytest.fixture
def https(tmp_path, work):
    """A server of the host's that speaks TLS with a certificate of a local authority, which is in the workspace."""
    for line in ("openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority",
                 "openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
                 "printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' >names",
                 "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
                 "cat server.pem server.key >both.pem; mkdir page; echo hello >page/index.html"):
        subprocess.run(line, shell=True, check=True, cwd=tmp_path, capture_output=True)
    work.write("ca.pem", (tmp_path / "ca.pem").read_text())
    port = free_port()
    serve = ("import functools, http.server, ssl, sys; s = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), "
             "functools.partial(http.server.SimpleHTTPRequestHandler, directory='page')); c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); "
             "c.load_cert_chain('both.pem'); s.socket = c.wrap_socket(s.socket, server_side=True); s.serve_forever()")
    with served(port, ["/usr/bin/python3", "-c", serve, str(port)], cwd=tmp_path):
        yield port


@needs("python3-requests")
def test_requests_with_certifi(work, https):
    """The bundle of a venv's certifi is a *.pem that is no secret; with the local authority added to it the server is
    known."""
    work.write("ask.py", """import certifi, requests, sys
bundle = open(certifi.where()).read()
open("bundle.pem", "w").write(bundle + open("ca.pem").read())
url = "https://localhost:" + sys.argv[1] + "/"
print(requests.get(url, verify="bundle.pem").text.strip())
try:
    requests.get(url)
except requests.exceptions.SSLError:
    print("unknown to certifi alone")
""")
    said = work(f"/usr/bin/python3 -m venv --system-site-packages env; to=$(echo env/lib/python3*/site-packages)/cacert.pem; "
                f"cp \"$(env/bin/python -c 'import certifi; print(certifi.where())')\" $to; wc -l <$to; env/bin/python ask.py {https}",
                "--net", f"localhost:{https}")
    lines = said.splitlines()
    assert int(lines[0]) > 1000 and lines[1:] == ["hello", "unknown to certifi alone"], said


@needs("node-packages")
def test_a_vite_server_is_published(work, cordon):
    """A browser outside sees what is edited inside."""
    work.write("index.html", "<body><script type=module src=/main.js></script></body>\n")
    work.write("main.js", "document.title = 'first'\n")
    work.write("package.json", '{"name": "page", "type": "module"}\n')
    port, node = free_port(), pathlib.Path(__file__).resolve().parents[2] / "build/everyday/node/node_modules"
    process = cordon.popen("run", "--publish", f"{port}:5173", "--read", node, "--", "node", node / "vite/bin/vite.js",
                           "--strictPort", text=True)

    def page(path):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{path}",
                                                                  timeout=20) as answer:
            return answer.read().decode()
        return ""
    try:
        deadline = time.monotonic() + PATIENCE
        while "/@vite/client" not in page("/"):
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            time.sleep(0.2)
        assert "first" in page("/main.js")
        work.write("main.js", "document.title = 'second'\n")
        while "second" not in page("/main.js"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        process.terminate()
        process.communicate()
