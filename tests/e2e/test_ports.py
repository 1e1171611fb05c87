"""Ports of a session's sandbox that a client opens and closes: port.open, port.list, port.close."""
import os
import socket

from lab import rows, wait_until
from test_protocol import event, rpc, start  # noqa: F401
from test_publish import ECHO, PYTHON, ask, free_port
from test_serve import daemon  # noqa: F401


def serve(rpc, port=8000, session="s", address="127.0.0.1", **settings):  # noqa: F811
    answer = rpc.call("process.start", argv=[PYTHON, "-c", ECHO, address, str(port)],
                      settings={"session": session, **settings}, environment=[f"PATH={os.environ['PATH']}"])
    process, output = answer["result"]["id"], b""
    while b"ready" not in output:
        _, more = event(rpc, process, "output")
        output += more
    return process


def refused(rpc, method, **params):  # noqa: F811
    return rpc.call(method, **params)["error"]["data"]


def test_a_port_is_opened_listed_and_closed(rpc, cordon):  # noqa: F811
    process = serve(rpc)
    port = rpc.call("port.open", session="s", port=8000)["result"]
    assert port == {"id": port["id"], "session": "s", "host": "127.0.0.1", "host_port": port["host_port"], "port": 8000,
                    "url": f"http://127.0.0.1:{port['host_port']}"}
    assert ask(port["host_port"]) == b"ping"
    named = free_port()
    other = rpc.call("port.open", session="s", port=8000, host_port=named)["result"]
    assert other["host_port"] == named and ask(named, b"more") == b"more"
    assert sorted(each["id"] for each in rpc.call("port.list")["result"]["ports"]) == sorted([port["id"], other["id"]])
    assert rpc.call("port.list", session="other")["result"] == {"ports": []}
    assert len(rpc.call("session.show", id="s")["result"]["sandbox"]["ports"]) == 2
    assert rpc.call("port.close", id=port["id"])["result"] == {}
    assert wait_until(lambda: ask(port["host_port"]) == "ConnectionRefusedError") and ask(named) == b"ping"
    assert refused(rpc, "port.close", id=port["id"])["class"] == "not_found"
    told = [row for row in rows(cordon) if row.get("change", "").startswith("port ")]
    assert [(row["change"], row["port_id"], row["port"]) for row in told] == [
        ("port opened", port["id"], 8000), ("port opened", other["id"], 8000), ("port closed", port["id"], 8000)]
    assert wait_until(lambda: any(row.get("way") == "published" and row["port"] == 8000 for row in rows(cordon)))
    rpc.call("process.cancel", id=process)
    rpc.call("session.end", id="s")
    assert rpc.call("port.list")["result"] == {"ports": []} and wait_until(lambda: ask(named) == "ConnectionRefusedError")


def test_what_cannot_be_opened(rpc, cordon):  # noqa: F811
    error = refused(rpc, "port.open", session="s", port=8000)
    assert error["class"] == "not_found" and error["audit_id"]
    event(rpc, start(rpc, "true"), "ended")
    with socket.create_server(("127.0.0.1", 0)) as held:
        taken = held.getsockname()[1]
        error = refused(rpc, "port.open", session="s", port=8000, host_port=taken)
    assert error["class"] == "invalid_request" and error["reason"].startswith(f"port {taken} of this machine is in use")
    assert "host_port" in error["remediation"] and rpc.call("port.list")["result"] == {"ports": []}
    assert refused(rpc, "port.open", session="s", port=0)["reason"].startswith("a port is a number")
    assert rpc.call("port.open", session="s", port=70000)["error"]["code"] == -32602
    assert all(rpc.call("port.open", session="s", port=8000)["result"] for _ in range(16))
    assert refused(rpc, "port.open", session="s", port=8000)["class"] == "limit_exceeded"
    denials = [row for row in rows(cordon) if row["row"] == "denial"]
    assert {row["action"] for row in denials} == {"port open"} and len(denials) == 4


def test_nothing_is_opened_in_the_network_of_the_machine(rpc, cordon):  # noqa: F811
    rpc.call("session.new", id="all", settings={"net": "all"})
    event(rpc, start(rpc, "true", session="all"), "ended")
    error = refused(rpc, "port.open", session="all", port=8000)
    assert error["class"] == "invalid_request" and error["boundary"] == "network" and "network of this machine" in error["reason"]
