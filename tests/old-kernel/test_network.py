"""A network of listed hosts where a part of it is missing: IPv6, which it can do without, and netlink, which it
cannot."""
import pytest

from old_kernel_lab import needs

NETLINK, IPV6 = "socket/0:0x10", "socket/0:0x8"  # by the bits of the address family


@pytest.fixture
def hosts(lab, tmp_path):
    """The options for a network of listed hosts."""
    path = tmp_path / "hosts.toml"
    path.write_text('[capabilities]\nnetwork = ["example.com:443", "*.example.org:8443"]\n')
    return ["--config", path]


@pytest.mark.parametrize("rules, names", [
    (f"{NETLINK}:EPERM", "addresses of its proxy"), (f"{NETLINK}:EAFNOSUPPORT", "addresses of its proxy"),
    ("bind:EPERM", "cannot listen")])
def test_refused(lab, without, hosts, rules, names):
    needs("mount-namespace")
    lab.unavailable(without(rules), *hosts, boundary="network", names=names, fix="--net none")


@pytest.mark.parametrize("rules, names", [("setns:EPERM", "setns"), ("clone/0:0x40000000:EPERM", "ended before")])
def test_refused_by_bubblewrap(lab, without, hosts, rules, names):
    needs("bwrap")
    lab.unavailable(without(rules), *hosts, "--driver", "bwrap", boundary="network", names=names, fix="--net none")


@pytest.mark.parametrize("driver", ["landlock", "local"])
def test_refused_without_a_namespace(lab, hosts, driver):
    needs("landlock")
    lab.unavailable([], *hosts, "--driver", driver, boundary="network", names=driver, fix="namespaces")


@pytest.mark.parametrize("rules", [f"{IPV6}:EAFNOSUPPORT", "clone3:ENOSYS"])
@pytest.mark.parametrize("view", [[], ["--view", "host-readonly"], ["--read", "/etc"]], ids=" ".join)
def test_names_lead_to_the_proxy(lab, without, hosts, rules, view):
    needs("mount-namespace")
    script = "cat /etc/resolv.conf; cat /proc/net/fib_trie; (echo x >/etc/resolv.conf) 2>/dev/null && echo written"
    document = lab.result(without(rules), *hosts, *view, "-c", script)
    assert document["isolation"]["network"] == "network namespace, proxy"
    lines = document["stdout"].splitlines()
    assert lines[0] == "nameserver 198.18.0.1" and "written" not in lines, document
    assert any(line.split()[:2] == ["+--", "198.18.0.0/15"] or line.split()[-1:] == ["198.18.0.1"]
               for line in lines), document
