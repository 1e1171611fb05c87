"""`cordon url check`: what a URL leads to, as people and as programs see it. Names are resolved by the tests' own name
server in a network namespace of its own; nothing outside it is asked."""
import json
import pathlib
import subprocess

import pytest

from conftest import PROGRAM
from lab import IS_ROOT, needs

WORLD = pathlib.Path(__file__).parent / "data/name-world.py"
KEYS = {"url", "allowed", "class", "why", "host", "port", "addresses"}


def check(cordon, url, *words):
    """The answer, in both forms."""
    done = cordon("url", "check", "--json", *words, "--", url)
    value = json.loads(done.stdout)
    assert set(value) == KEYS and value["url"] == url and done.stderr == "", done
    assert done.returncode == (0 if value["allowed"] else 1)
    assert value["allowed"] == (value["why"] == "") == (value["class"] is None)
    human = cordon("url", "check", *words, "--", url)
    assert human.returncode == done.returncode and human.stderr == ""
    assert human.stdout.startswith("allowed: " if value["allowed"] else "refused: ")
    return value


LITERALS = [
    ("http://8.8.8.8/", None), ("https://[2606:4700::1111]:8443/a?b", None), ("http://8.8.8.8./", None),
    ("http://127.0.0.1:8080/", "loopback"), ("http://10.1.2.3/", "private"),
    ("http://169.254.169.254/latest/meta-data/", "metadata"), ("http://[::1]/", "loopback"),
    ("http://[::ffff:10.0.0.1]/", "private"), ("http://[64:ff9b::7f00:1]/", "loopback"),
    ("http://[64:ff9b::808:808]/", None), ("http://[2002:a00:1::]/", "private"),
    ("http://[fd00:ec2::254]/", "metadata"), ("http://0.0.0.0/", "unspecified"), ("http://198.18.0.1/", "benchmarking"),
    ("http://metadata.google.internal/", "metadata"),
]


@pytest.mark.parametrize("url,why", LITERALS)
def test_addresses(cordon, url, why):
    value = check(cordon, url)
    assert value["allowed"] == (why is None), value
    assert why is None or (why in value["why"] and value["class"] == "capability_denied")
    assert value["host"] and all(set(each) == {"address", "allowed", "why"} for each in value["addresses"])


MALFORMED = ["", "example.com", "ftp://8.8.8.8/", "file:///etc/passwd", "http:8.8.8.8", "http://", "http://me@8.8.8.8/",
             "http://8.8.8.8\\@127.0.0.1/", "http://8.8.8.8/#a", "http://8.8.8.8/a b", "http://8.8.8.8/\n",
             "http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://010.0.0.1/", "http://%31.1.1.1/",
             "http://bücher.example/", "http://[fe80::1%25lo]/", "http://8.8.8.8:0/", "http://8.8.8.8:99999/",
             "http://a..b/", "http://" + "a" * 9000]


@pytest.mark.parametrize("url", MALFORMED)
def test_what_is_no_url(cordon, url):
    value = check(cordon, url)
    assert not value["allowed"] and value["class"] == "invalid_request"
    assert value["host"] is None and value["port"] is None and value["addresses"] == []


def test_what_is_shown_cannot_move_the_cursor(cordon):
    done = cordon("url", "check", "http://a\x1b[2J\u202e.com/")
    assert done.returncode == 1 and "\x1b" not in done.stdout and "\u202e" not in done.stdout


def test_usage(cordon):
    for words in ([], ["check"], ["look", "http://8.8.8.8"], ["check", "http://8.8.8.8", "b"],
                  ["check", "--net", "all", "http://a"]):
        done = cordon("url", *words)
        assert done.returncode == 2 and done.stderr.startswith("cordon: "), (words, done)
    assert cordon("url", "--help").returncode == 0


def test_a_name_may_be_at_a_private_address(cordon, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[network]\nprivate_hosts = ["a.test:80"]\nnames = { "a.test" = "10.1.0.7", "b.test" = "10.1.0.7" }\n')
    for url, allowed in (("http://a.test/", True), ("http://a.test:81/", False), ("http://b.test/", False)):
        assert check(cordon, url, "--config", file)["allowed"] == allowed, url


def test_exemptions_come_from_the_configuration(cordon, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[network]\nallow_private = ["10.1.0.0/16", "::1"]\n')
    for url, allowed in (("http://10.1.2.3/", True), ("http://10.2.0.1/", False), ("http://[::1]/", True),
                         ("http://127.0.0.1/", False), ("http://[::ffff:10.1.2.3]/", False)):
        assert check(cordon, url, "--config", file)["allowed"] == allowed, url
    shown = json.loads(cordon("config", "show", "--json", "--config", file).stdout)
    assert ["10.1.0.0/16", "::1"] in [each["value"] for each in shown["settings"]]
    for wrong in ("8.8.8.8", "10.0.0.1/8", "0.0.0.0/0", "example.com", "10.1/16"):
        file.write_text(f'[network]\nallow_private = ["{wrong}"]\n')
        done = cordon("url", "check", "--json", "--config", file, "http://8.8.8.8/")
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 125 and error["class"] == "config_invalid", done
        assert error["subject"] == f"{file}:2:18" and wrong in error["reason"], error


def test_a_project_can_only_narrow_the_exemptions(cordon, tmp_path):
    user = tmp_path / "config.toml"
    user.write_text('[network]\nallow_private = ["10.1.0.0/16", "10.2.0.0/16"]\n')
    project = cordon.workspace / ".cordon.toml"
    for text, status in (('["10.1.0.0/16"]', 0), ('[]', 0), ('["10.3.0.0/16"]', 1)):
        project.write_text(f"[network]\nallow_private = {text}\n")
        assert cordon("config", "check", "--config", user, project).returncode == status, text


def test_switched_off(cordon, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[sandbox]\nenabled = false\n")
    done = cordon("url", "check", "--json", "--config", file, "http://8.8.8.8/")
    assert done.returncode == 125 and json.loads(done.stdout)["error"]["class"] == "sandbox_disabled"


# (name, whether it is allowed, its addresses, the class, a part of why)
NAMES = [
    ("good.test", True, ["93.184.216.34", "2606:2800:220::1"], None, ""),
    ("GOOD.Test.", True, ["93.184.216.34", "2606:2800:220::1"], None, ""),
    ("private.test", False, ["10.0.0.1"], "capability_denied", "10.0.0.1 is private"),
    ("mixed.test", False, ["93.184.216.34", "10.0.0.1"], "capability_denied", "10.0.0.1 is private"),
    ("mapped.test", False, ["::ffff:169.254.169.254"], "capability_denied", "metadata"),
    ("metadata.google.internal", False, [], "capability_denied", "metadata"),
    ("listed.test", False, ["10.9.8.7"], "capability_denied", "private"),
    ("public-listed.test", True, ["8.8.4.4"], None, ""),
    ("localhost", False, ["127.0.0.1"], "capability_denied", "loopback"),
    ("a.localhost", False, ["127.0.0.1", "::1"], "capability_denied", "loopback"),
    ("good", False, [], "network_unreachable", "no such name"),  # no search domains
    ("nothing.test", False, [], "network_unreachable", "no such name"),
    ("empty.test", False, [], "network_unreachable", "no such name"),
    ("many.test", False, None, "limit_exceeded", "more addresses"),  # over TCP
]


@needs("mount-namespace")
def test_names(cordon, tmp_path):
    prefix = ["unshare", "--net", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--net",
                                                              "--mount"]
    world = tmp_path / "world"
    world.mkdir()
    requests = [["url", "check", *form, f"https://{name}/"] for name, *_ in NAMES for form in ([], ["--json"])]
    done = subprocess.run([*prefix, "/usr/bin/python3", WORLD, world, PROGRAM], env=cordon.env, cwd=cordon.workspace,
                          text=True, input="".join(json.dumps(words) + "\n" for words in requests), capture_output=True,
                          timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests), done
    for (name, allowed, addresses, kind, why), human, machine in zip(NAMES, answers[::2], answers[1::2]):
        value = json.loads(machine[1])
        assert machine[0] == human[0] == (0 if allowed else 1), (name, human, machine)
        assert value["allowed"] == allowed and value["class"] == kind and why in value["why"], value
        assert addresses is None or [each["address"] for each in value["addresses"]] == addresses, value
        assert value["host"] == name.lower().rstrip(".") and value["port"] == 443
        assert (("allowed: " if allowed else "refused: ") + f"https://{name}/") in human[1], human
        for address in addresses or []:
            assert address in human[1]
        if name == "many.test":
            assert why in human[1]
