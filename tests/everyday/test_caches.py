"""Package managers, inside, without a network, on what the host has in its caches. Each cache is filled by the tool
itself on the host, from servers and repositories that are gone, or out of sight, by the time it is used inside."""
import base64
import functools
import hashlib
import http.server
import io
import json
import pathlib
import subprocess
import tarfile
import threading
import zipfile

import pytest

from lab import needs


@pytest.fixture
def host(work, cordon):
    """host(line) runs a shell line on the host, as the same person, in the workspace."""
    def run(line, **variables):
        done = subprocess.run(["sh", "-ec", line], cwd=work.workspace, env={**cordon.env, **variables},
                              capture_output=True, text=True)
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
    return run


@pytest.fixture
def unchanged(work):
    """What there is in the caches when this is called is there, and nothing else, in the end."""
    seen = {}

    def remember():
        for path in work.home.rglob("*"):
            if path.is_file():
                seen[path] = path.read_bytes()
    yield remember
    assert seen and all(path.read_bytes() == content for path, content in seen.items())
    assert {path for path in work.home.rglob("*") if path.is_file()} == set(seen)


def serve(directory):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=directory)
    handler.log_message = lambda *words: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@needs("node", "npm")
def test_npm_ci_of_what_was_installed_on_the_host(work, host, unchanged, tmp_path):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps({"name": "greeter", "version": "1.0.0"}),
                           "index.js": "module.exports = 'hello';\n"}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    registry = tmp_path / "registry"
    registry.mkdir()
    server = serve(registry)
    address = f"http://127.0.0.1:{server.server_port}"
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(content.getvalue()).digest()).decode()
    (registry / "greeter.tgz").write_bytes(content.getvalue())
    (registry / "greeter").write_text(json.dumps({"name": "greeter", "dist-tags": {"latest": "1.0.0"},
                                                  "versions": {"1.0.0": {
        "name": "greeter", "version": "1.0.0",
        "dist": {"tarball": f"{address}/greeter.tgz", "integrity": integrity}}}}))
    work.write("package.json", json.dumps({"name": "p", "version": "1.0.0", "dependencies": {"greeter": "^1.0.0"}}))
    work.write(".npmrc", f"registry={address}/\n")
    host("npm install --no-audit --no-fund && rm -r node_modules")
    server.shutdown()
    server.server_close()
    unchanged()
    assert work("npm ci --offline --no-audit --no-fund >/dev/null; node -p 'require(\"greeter\")'") == "hello\n"


BACKEND = """import zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "greeter-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as archive:
        archive.writestr("greeter.py", "word = 'hello'\\n")
        archive.writestr("greeter-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: greeter\\nVersion: 1.0\\n")
        archive.writestr("greeter-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("greeter-1.0.dist-info/RECORD", "")
    return name
"""


@needs("python3-venv")
def test_pip_installs_the_wheel_that_the_host_built(work, host, unchanged, tmp_path):
    """The archive cannot be built inside any more; the wheel made of it is in the cache."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    archive_path = work.workspace / "greeter-1.0.tar.gz"
    with tarfile.open(archive_path, "w:gz") as archive:
        for name, text in {"pyproject.toml": project, "backend.py": "import os\nassert os.environ['MAY_BUILD']\n"
                           + BACKEND}.items():
            member = tarfile.TarInfo(f"greeter-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    host(f"/usr/bin/python3 -m venv env; env/bin/pip -q install 'greeter @ file://{archive_path}'; rm -r env",
         MAY_BUILD="1")
    assert list((work.home / ".cache/pip").rglob("*.whl"))
    unchanged()
    assert work(f"/usr/bin/python3 -m venv env; env/bin/pip -q install 'greeter @ file://{archive_path}'; "
                "env/bin/python -c 'import greeter; print(greeter.word)'") == "hello\n"


@needs("go")
def test_go_builds_with_a_module_that_the_host_has(work, host, unchanged, tmp_path):
    proxy = tmp_path / "proxy/example.org/words/@v"
    proxy.mkdir(parents=True)
    (proxy / "list").write_text("v1.0.0\n")
    (proxy / "v1.0.0.info").write_text('{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}')
    (proxy / "v1.0.0.mod").write_text("module example.org/words\n\ngo 1.19\n")
    with zipfile.ZipFile(proxy / "v1.0.0.zip", "w") as archive:
        archive.writestr("example.org/words@v1.0.0/go.mod", "module example.org/words\n\ngo 1.19\n")
        archive.writestr("example.org/words@v1.0.0/words.go",
                         'package words\n\nfunc Greeting() string { return "hello" }\n')
    work.write("go.mod", "module example.org/hello\n\ngo 1.19\n\nrequire example.org/words v1.0.0\n")
    work.write("main.go", 'package main\n\nimport (\n\t"fmt"\n\n\t"example.org/words"\n)\n\nfunc main() { fmt.Println(words.Greeting()) }\n')
    host("go mod download example.org/words; go mod tidy; go build -o /dev/null .", GOPROXY=f"file://{tmp_path}/proxy",
         GONOSUMDB="*", GONOSUMCHECK="1", GOFLAGS="-mod=mod", GOSUMDB="off")
    unchanged()
    assert work("go build -o hello . && ./hello", "--memory", "4G", "--processes", "500") == "hello\n"
    # Its directories are read-only, as those that it makes itself.
    subprocess.run(["chmod", "-R", "u+w", work.home], check=True)


@needs("system-cargo", "git")
def test_cargo_builds_with_a_crate_that_the_host_has(work, host, unchanged, tmp_path):
    crate = tmp_path / "words"
    (crate / "src").mkdir(parents=True)
    (crate / "Cargo.toml").write_text('[package]\nname = "words"\nversion = "0.1.0"\nedition = "2021"\n')
    (crate / "src/lib.rs").write_text('pub fn greeting() -> &\'static str { "hello" }\n')
    host(f"git init -q {crate}; git -C {crate} add .; git -C {crate} commit -qm words")
    work.write("Cargo.toml",
               f'[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nwords = {{ git = "file://{crate}" }}\n')
    work.write("src/main.rs", 'fn main() { println!("{}", words::greeting()); }\n')
    host("cargo fetch")
    unchanged()
    assert work("cargo run -q --offline", "--processes", "500") == "hello\n"


@needs("mvn")
def test_maven_reads_a_parent_that_the_host_has(work, unchanged):
    parent = work.home / ".m2/repository/org/example/parent/1"
    parent.mkdir(parents=True)
    (parent / "parent-1.pom").write_text("<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>parent</artifactId>"
                                         "<version>1</version><packaging>pom</packaging></project>\n")
    work.write("pom.xml", "<project><modelVersion>4.0.0</modelVersion><parent><groupId>org.example</groupId><artifactId>parent</artifactId>"
               "<version>1</version></parent><artifactId>hello</artifactId><packaging>pom</packaging></project>\n")
    unchanged()
    options = "--processes", "500", "--memory", "4G"
    assert "BUILD SUCCESS" in work("mvn -o -B validate", *options)
    assert pathlib.Path(parent / "parent-1.pom").exists()
    done = work("mvn -o -B validate || echo failed", "--no-caches", *options)
    assert "failed" in done  # without the cache there is no parent
