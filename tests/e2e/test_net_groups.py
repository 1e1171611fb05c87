"""Groups of hosts: --net takes them by name; cordon net list says what they stand for here."""
import json
import os

import pytest

from lab import refused, refused_unwalked
from test_host_services import ASK, Service


@pytest.fixture
def service():
    made = Service("granted")
    yield made
    made.close()


@pytest.fixture
def configured(cordon, tmp_path):
    """A home and a configuration of the test's own, and no variable that says otherwise."""
    for name in list(cordon.env):
        if name.lower().startswith(("npm_config", "pip_", "uv_", "go", "cargo")):
            del cordon.env[name]
    home = tmp_path / "home"
    (home / ".config/cordon").mkdir(parents=True)
    cordon.env |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}

    def configure(text):
        (home / ".config/cordon/config.toml").write_text(text)
    configure.home = home
    return configure


def groups(cordon):
    done = cordon("net", "list", "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return {group["name"]: group for group in json.loads(done.stdout)["groups"]}


def test_what_ships_and_what_the_configuration_adds(cordon, configured):
    assert {"github.com:443", "github.com:22"} <= set(groups(cordon)["forges"]["hosts"])
    configured('[network.groups]\nforges = ["git.example.com:443"]\nwork = ["*.work.example.com:443", "10.0.0.1:80"]\n')
    after = groups(cordon)
    assert after["work"]["hosts"] == ["*.work.example.com:443", "10.0.0.1:80"]
    assert {"github.com:443", "git.example.com:443"} <= set(after["forges"]["hosts"])
    shown = cordon("net", "list")
    assert "work\n  *.work.example.com:443\n  10.0.0.1:80\n" in shown.stdout
    told = json.loads(cordon("config", "show", "--json").stdout)["settings"]
    assert [row["value"] for row in told if row["key"] == "network.groups"] == [
        {"forges": ["git.example.com:443"], "work": ["*.work.example.com:443", "10.0.0.1:80"]}]


def test_registries_are_those_of_the_tools_configuration(cordon, configured):
    (configured.home / ".npmrc").write_text("registry=https://user:word@npm.example.com/all/\n//npm.example.com/:_authToken=abc\n")
    (configured.home / ".config/pip").mkdir()
    (configured.home / ".config/pip/pip.conf").write_text("[global]\nindex-url = https://pip.example.com:8443/simple\n")
    found = groups(cordon)
    assert found["npm"]["hosts"] == ["npm.example.com:443"] and found["npm"]["sources"] == [str(configured.home / ".npmrc")]
    assert found["pip"]["hosts"] == ["pip.example.com:8443"]
    assert {"npm.example.com:443", "pip.example.com:8443"} <= set(found["packages"]["hosts"])
    assert "word" not in json.dumps(found) and "abc" not in json.dumps(found)


def test_a_command_has_the_hosts_of_its_groups(cordon, configured, service):
    configured(f'network.groups.mine = ["localhost:{service.port}"]\n')
    done = cordon("run", "--net", "mine", "--net", "example.com:443", "--", "/usr/bin/python3", "-c", ASK,
                  f"127.0.0.1:{service.port}")
    assert done.stdout == f"127.0.0.1:{service.port} granted heard ping\n", done
    profile = json.loads(cordon("profile", "--net", "mine", "--", "true").stdout)
    assert f"localhost:{service.port}" in json.dumps(profile)
    # A session keeps what the group stood for when it was made.
    made = json.loads(cordon("session", "new", "grouped", "--net", "mine", "--json").stdout)
    configured("")
    assert made["baseline"]["hosts"] == [f"localhost:{service.port}"]
    done = cordon("run", "--session", "grouped", "--", "/usr/bin/python3", "-c", ASK, f"127.0.0.1:{service.port}")
    assert "granted heard ping" in done.stdout, done
    cordon("session", "end", "grouped")


@pytest.mark.parametrize("value, reason, remedy", [
    ("forge", "there is no group", "did you mean forges?"),
    ("localhost", "there is no group", "HOST:PORT"),
    ("example.com", "must be none, all, HOST:PORT or a group", "example.com:443"),
    ("Forges", "must be none, all, HOST:PORT or a group", ""),
    ("go", "names a registry", "network.groups.go"),
])
def test_a_group_that_is_not_there(cordon, configured, value, reason, remedy):
    cordon.env["PATH"] = "/usr/bin:/bin"
    if value == "go" and os.path.exists("/usr/local/go/go.env"):
        value, remedy = "cargo", "network.groups.cargo"
    error = (refused_unwalked if reason.startswith("must be") else refused)(cordon, "--net", value, "--", "true")
    assert error["class"] == "invalid_request" and reason in error["reason"] and remedy in error["remediation"], error


def test_groups_stand_with_hosts_and_not_with_none_and_all(cordon, configured):
    for other in ("none", "all"):
        for words in (["--net", "forges", "--net", other], ["--net", other, "--net", "forges"]):
            assert "cannot be combined with none or all" in refused_unwalked(cordon, *words, "--", "true")["reason"]


@pytest.mark.parametrize("text, reason", [
    ('network.groups = ["a:1"]\n', "table of groups"),
    ('network.groups.all = ["a.example.com:1"]\n', "none and all are no groups"),
    ('network.groups."A b" = ["a.example.com:1"]\n', "a group's name"),
    ('network.groups.x = "a.example.com:1"\n', "must be a list"),
    ('network.groups.x = ["a.example.com"]\n', "not HOST:PORT"),
])
def test_groups_of_the_configuration_that_are_none(cordon, configured, text, reason):
    configured(text)
    done = cordon("config", "check")
    assert done.returncode == 1 and reason in done.stdout + done.stderr, done


def test_a_project_defines_no_groups(cordon, configured):
    (cordon.workspace / ".cordon.toml").write_text('network.groups.forges = ["evil.example.com:443"]\n')
    error = refused(cordon, "--net", "forges", "--", "true")
    assert error["class"] == "config_invalid" and "cannot be set by a project" in error["reason"], error


def test_the_tree_names_no_registry(cordon, configured):
    """Where no tool is there to ask, nothing is known: no host of a registry ships with cordon."""
    cordon.env["PATH"] = str(configured.home)
    shipped = {name: group for name, group in groups(cordon).items() if not group["sources"]}
    hosts = " ".join(host for group in shipped.values() for host in group["hosts"])
    for word in ("npm", "pypi", "pythonhosted", "crates", "proxy.golang", "registry", "maven", "rubygems", "index."):
        assert word not in hosts
