"""A system that has no driver: the same program, built with driver/none in place of driver/linux. No command runs, and
the refusal says why; what starts nothing works."""
import json
import os
import platform

import pytest

from conftest import ROOT


@pytest.fixture
def without(cordon):
    return lambda *words: cordon(*words, executable=os.path.join(os.environ.get("CORDON_BUILD") or ROOT / "build",
                                                                 "cordon-none"))


@pytest.mark.parametrize("words", [["--", "true"], ["--net", "all", "--", "true"], ["--driver", "auto", "--", "true"],
                                   ["--driver", "none", "--", "true"]])
def test_no_command_runs(without, words):
    done = without("run", "--json", *words)
    error = json.loads(done.stdout)["error"]
    assert done.returncode != 0 and error["class"] == "spawn_sandbox_unavailable", done
    assert platform.system() in error["reason"] and error["boundary"] == "filesystem" and error["remediation"]


def test_a_file_is_not_made(without, tmp_path):
    witness = tmp_path / "witness"
    assert without("run", "--workspace", str(tmp_path), "--", "touch", str(witness)).returncode != 0
    assert not witness.exists()


def test_a_driver_of_another_system_is_none(without):
    done = without("run", "--json", "--driver", "namespaces", "--", "true")
    error = json.loads(done.stdout)["error"]
    assert error["class"] == "invalid_request" and error["remediation"] == "choose one of: auto none disabled"


def test_doctor_says_so(without):
    done = without("doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["holds"] is False and report["default_driver"] == "none"
    [driver] = report["drivers"]
    assert driver["works"] is False and driver["error"]["class"] == "spawn_sandbox_unavailable"
    assert "none" in without("doctor").stdout


def test_what_starts_nothing_works(without):
    assert without("version").returncode == 0
    assert without("config", "check").returncode == 0
    refused = json.loads(without("run", "--json", "--", "true").stdout)["error"]
    assert without("audit", "verify").returncode == 0
    assert refused["audit_id"] in without("audit", "query", "--json").stdout
    assert without("session", "list").returncode == 0
