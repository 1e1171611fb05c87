"""examples/languages: the same agent in each language, by the library or over the socket."""
import os
import pathlib
import shutil
import subprocess

from conftest import PATIENCE
from lab import ROOT, missing, needs
from test_serve import daemon  # noqa: F401

pytestmark = missing("gcc", "unsanitized")
BUILD = pathlib.Path(os.environ.get("CORDON_BUILD") or ROOT / "build")
PLACE = ROOT / "examples/languages"
WANTED = "ran\ncancel\n"


def run(cordon, *argv, **more):
    env = {**cordon.env, "LD_LIBRARY_PATH": str(BUILD), "LIBCORDON": str(BUILD / "libcordon.so.0"), **more}
    done = subprocess.run(argv, env=env, cwd=cordon.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=2 * PATIENCE)
    assert (done.returncode, done.stdout) == (0, WANTED), done


@needs("g++")
def test_cpp(cordon, tmp_path):
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", PLACE / "agent.cpp",
                    "-o", tmp_path / "agent", BUILD / "libcordon.so.0"], check=True)
    run(cordon, tmp_path / "agent")


def test_python_by_the_library(cordon):
    run(cordon, "/usr/bin/python3", PLACE / "agent.py")


def test_python_by_the_socket(cordon, daemon):  # noqa: F811
    daemon.start()
    run(cordon, "/usr/bin/python3", PLACE / "client.py", cordon.data / "cordon/daemon.sock")


@needs("node")
def test_node_by_the_socket(cordon, daemon):  # noqa: F811
    daemon.start()
    run(cordon, shutil.which("node", path="/usr/local/bin:/usr/bin:/bin"), PLACE / "client.mjs",
        cordon.data / "cordon/daemon.sock")


@needs("rustc")
def test_rust(cordon, tmp_path):
    os.symlink(BUILD / "libcordon.so.0", tmp_path / "libcordon.so")
    made = subprocess.run(["rustc", PLACE / "agent.rs", "-L", tmp_path, "-l", "cordon", "-o", tmp_path / "agent"],
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    run(cordon, tmp_path / "agent")


@needs("go")
def test_go(cordon, tmp_path):
    os.symlink(BUILD / "libcordon.so.0", tmp_path / "libcordon.so")
    (tmp_path / "cordon.pc").write_text(f"Name: cordon\nDescription: here\nVersion: 0\nCflags: -I{ROOT}/include\nLibs: -L{tmp_path} -lcordon\n")
    env = {**os.environ, "PKG_CONFIG_PATH": str(tmp_path), "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod",
           "HOME": str(tmp_path), "GOTOOLCHAIN": "local", "GO111MODULE": "off"}
    made = subprocess.run(["go", "build", "-o", tmp_path / "agent", PLACE / "agent.go"], env=env, capture_output=True,
                          text=True)
    assert made.returncode == 0, made.stderr
    run(cordon, tmp_path / "agent")
