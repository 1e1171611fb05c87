"""`cordon wsl` where there is no Windows: refused, in one line. What it does on Windows is tried in tests/platforms/,
against a stand-in."""
import json
import re

import pytest

from conftest import ROOT

ACTIONS = [("setup", "/rootfs.tar", "0" * 64), ("status",), ("reset",)]


@pytest.mark.parametrize("words", ACTIONS)
def test_refused_in_one_line(cordon, words):
    done = cordon("wsl", *words)
    assert done.returncode == 125 and done.stdout == "", done
    assert done.stderr.count("\n") == 1 and "not Windows" in done.stderr, done


@pytest.mark.parametrize("words", ACTIONS)
def test_refused_for_a_program(cordon, words):
    done = cordon("wsl", *words, "--json")
    assert done.returncode == 125 and done.stderr == "", done
    assert json.loads(done.stdout)["error"]["class"] == "spawn_sandbox_unavailable"


@pytest.mark.parametrize("words", [(), ("setup",), ("setup", "/rootfs.tar"), ("status", "x"),
                                   ("reset", "cordon-sandbox"), ("remake",)])
def test_bad_words(cordon, words):
    assert cordon("wsl", *words).returncode == 2


def test_the_driver_is_no_driver_here(cordon):
    done = cordon("run", "--json", "--driver", "wsl", "--", "true")
    assert done.returncode != 0 and json.loads(done.stdout)["error"]["class"] != "internal", done


def test_what_the_distro_is_asked_for_is_understood(cordon, tmp_path):
    """The options that src/driver/wsl/text.c writes, all of them, and its configuration."""
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "work/a [1].txt").write_text("hidden")
    config = tmp_path / "config.toml"
    config.write_text(f'[capabilities]\ndeny = ["{tmp_path}/work/a \\\\[1\\\\].txt", ]\nprotect = [".git/hooks", ]\n')
    config.chmod(0o600)
    text = (ROOT / "src/driver/wsl/text.c").read_text()
    written = set(re.findall(r'[ "](--[a-z][a-z-]+)',
                             text)) | {f"--{name}" for name in re.findall(r'add_number\(text, "([a-z-]+)"', text)}
    words = ["--quiet", "--no-ask", "--no-daemon", "--config", str(config), "--workspace", str(tmp_path / "work"),
             "--cwd", str(tmp_path / "work/sub"), "--net", "none", "--spawn", "--timeout", "20000ms", "--memory",
             "1073741824", "--cpu", "100", "--processes", "64", "--disk", "1073741824", "--tmp", "67108864",
             "--open-files", "256", "--env", "A=it's"]
    assert written <= {word for word in words if word.startswith("--")} | {"--no-spawn"}, written
    done = cordon("run", *words, "--", "sh", "-c", "pwd; echo \"$A\"; cat '../a [1].txt'")
    assert done.stdout == f"{tmp_path}/work/sub\nit's\n" and done.returncode == 1, done
