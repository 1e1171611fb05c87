"""The same as ../agent.c, over the socket of `cordon serve`: Python's standard library alone.

    python3 client.py ~/.local/share/cordon/daemon.sock
"""
import json
import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
lines, events, count = connection.makefile("rw"), [], 0


def read():
    said = json.loads(lines.readline())
    if said.get("method") == "process.event":
        events.append(said["params"])
    return said


def call(method, **params):
    global count
    count += 1
    print(json.dumps({"jsonrpc": "2.0", "id": count, "method": method, "params": params}), file=lines, flush=True)
    while True:
        said = read()
        if said.get("id") == count:
            if "error" in said:
                sys.exit(said["error"]["message"])
            return said["result"]


def follow(line, **settings):
    process = call("process.start", argv=["sh", "-c", line], environment=[f"PATH={os.environ['PATH']}"],
                   settings={"session": "client-python", "ask": True, **settings})["id"]
    while True:
        while not events:
            read()
        event = events.pop(0)["event"]
        if event["event"] == "asks":
            call("approvals.answer", card=event["card"], hash=event["hash"], answer="once")
        elif event.get("data") == "sleeping\n":
            call("process.cancel", id=process, grace_ms=2000)
        elif event["event"] == "output":
            print(event["data"], end="")
        elif event["event"] == "ended":
            if event["result"]["ended_by"] != "exit":
                print(event["result"]["ended_by"])
            return


follow("echo ran", read="/var/tmp")
follow("echo sleeping; exec sleep 1000")
