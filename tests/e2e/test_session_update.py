"""session.update: labels, idle expiry, grants and what takes them back; by the command line and by the protocol."""
import json
import os
import time

from conftest import PATIENCE
from lab import rows, wait_until
from test_protocol import event, rpc, start  # noqa: F401
from test_serve import daemon  # noqa: F401


def session(cordon, *words):
    done = cordon("session", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def names(answer):
    return sorted(each["id"] for each in answer["sessions"])


def age(cordon, seconds):
    """As if the session had been used so long ago."""
    past = time.time() - seconds
    for path in (cordon.data / "cordon/sessions").glob("*/*"):
        os.utime(path, (past, past))


def test_labels(rpc, cordon):  # noqa: F811
    made = rpc.call("session.new", id="a", labels={"tenant": "x", "kind": "build"})["result"]
    assert made["labels"] == {"kind": "build", "tenant": "x"}
    rpc.call("session.new", id="b", labels={"tenant": "x"})
    rpc.call("session.new", id="c")
    assert names(rpc.call("session.list", labels={"tenant": "x"})["result"]) == ["a", "b"]
    assert names(rpc.call("session.list", labels={"tenant": "x", "kind": "build"})["result"]) == ["a"]
    assert names(rpc.call("session.list")["result"]) == ["a", "b", "c"]
    changed = rpc.call("session.update", id="a", labels={"kind": None, "more": "y"})["result"]
    assert changed["labels"] == {"more": "y", "tenant": "x"}
    row = [row for row in rows(cordon) if row.get("change") == "updated"][-1]
    assert row["labels"] == changed["labels"] and row["session"] == "a"
    for labels in ({"n": 3}, {"": "x"}, {"n" * 65: "x"}, {"n": "x" * 257}, {"n": "a\nb"},
                   {f"n{i}": "x" for i in range(32)}):
        assert rpc.call("session.update", id="a", labels=labels)["error"]["data"]["class"] == "invalid_request", labels
    assert rpc.call("session.show", id="a")["result"]["labels"] == changed["labels"]
    assert rpc.call("session.update", id="gone", labels={})["error"]["data"]["audit_id"]


def test_what_is_granted_and_taken_back(rpc, cordon, tmp_path_factory):  # noqa: F811
    place = tmp_path_factory.mktemp("granted")
    (place / "file").write_text("content")
    reads = f"cat {place}/file"

    def status():
        return event(rpc, start(rpc, reads), "ended")[0]["result"]["exit_code"]
    rpc.call("session.new", id="s")
    assert status() != 0
    granted = rpc.call("session.update", id="s", grant={"read": [str(place)]})["result"]
    assert [grant["capabilities"]["fs_read"] for grant in granted["grants"]] == [[str(place)]] and status() == 0
    card = granted["grants"][0]["approval"]
    assert rpc.call("session.update", id="s", revoke=["gone"])["error"]["data"]["class"] == "not_found"
    assert rpc.call("session.update", id="s", revoke=[card])["result"]["grants"] == [] and status() != 0
    told = [(row["change"], row["approval"]) for row in rows(cordon) if row.get("change") in ("granted", "revoked")]
    assert told == [("granted", card), ("revoked", card)]
    for grant in ({}, {"memory": "1G"}, {"read": "/gone/away"}, {"workspace": str(place)}, {"program": "/bin/sh"},
                  {"no-spawn": True}):
        assert rpc.call("session.update", id="s",
                        grant=grant)["error"]["data"]["class"] in ("invalid_request", "capability_denied"), grant
    assert rpc.call("session.show", id="s")["result"]["grants"] == []


def test_a_session_that_was_idle_has_ended(cordon):
    session(cordon, "new", "s", "--idle-expiry", "60s")
    assert session(cordon, "show", "s")["idle_expiry_s"] == 60
    age(cordon, 50)
    assert cordon("run", "--session", "s", "--", "true").returncode == 0
    age(cordon, 50)
    running = cordon.popen("run", "--session", "s", "-c", "echo up; read line", stdin=-1, text=True)
    assert running.stdout.readline() == "up\n"
    age(cordon, 90)
    assert session(cordon, "list")["sessions"][0]["state"] == "active", "a command runs"
    running.communicate("\n", timeout=PATIENCE)
    assert session(cordon, "list")["sessions"][0]["state"] == "active", "it has just ended"
    age(cordon, 61)
    refused = cordon("run", "--session", "s", "--", "true")
    assert refused.returncode == 125 and "no command for 60 s" in refused.stderr
    assert session(cordon, "list")["sessions"][0]["state"] == "ended"
    ended = [row for row in rows(cordon) if row.get("change") == "ended"]
    assert [row["why"] for row in ended] == ["no command for 60 s"]


def test_it_ends_when_sessions_are_listed_and_never_with_never(cordon):
    session(cordon, "new", "s", "--idle-expiry", "60s")
    session(cordon, "new", "stays", "--idle-expiry", "60s")
    session(cordon, "update", "stays", "--idle-expiry", "never")
    age(cordon, 61)
    assert {each["id"]: each["state"]
            for each in session(cordon, "list")["sessions"]} == {"s": "ended", "stays": "active"}


def test_the_sandbox_of_an_idle_session_is_lowered(cordon, daemon):  # noqa: F811
    daemon.start()
    with daemon.rpc() as connection:
        connection.call("session.new", id="s", idle_expiry_s=60)
        event(connection, start(connection, "true"), "ended")
        assert connection.call("session.show", id="s")["result"]["sandbox"]["up"]
        age(cordon, 61)
        assert wait_until(lambda: connection.call("session.show", id="s")["result"]["sandbox"] is None)
        assert connection.call("session.show", id="s")["result"]["state"] == "ended"


def test_the_command_line(cordon, tmp_path_factory):
    place = tmp_path_factory.mktemp("granted")
    session(cordon, "new", "s", "--label", "tenant=x", "--label", "kind=build")
    granted = session(cordon, "update", "s", "--label", "kind=", "--read", place)
    assert granted["labels"] == {"tenant": "x"} and granted["grants"][0]["capabilities"]["fs_read"] == [str(place)]
    assert names(session(cordon, "list", "--label",
                         "tenant=x")) == ["s"] and names(session(cordon, "list", "--label", "tenant=y")) == []
    shown = cordon("session", "show", "s").stdout
    assert "label       tenant=x\n" in shown and str(place) in shown
    assert session(cordon, "update", "s", "--revoke", granted["grants"][0]["approval"])["grants"] == []
    assert cordon("session", "update", "s", "--label", "x").returncode == 125
    assert cordon("session", "update", "s", "--idle-expiry", "soon").returncode == 125
