"""The same as ../agent.c, in Python by ctypes: nothing but the standard library.

    python3 agent.py
"""
import ctypes
import ctypes.util
import json
import os
import select
import sys

lib = ctypes.CDLL(os.environ.get("LIBCORDON") or ctypes.util.find_library("cordon"))
lib.free = ctypes.CDLL(None).free
lib.free.argtypes = [ctypes.c_void_p]
pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
for name, result, *arguments in [
        ("cordon_error_new", pointer), ("cordon_error_text", text, pointer, text),
        ("cordon_open", ctypes.c_int, pointer, pointer, pointer), ("cordon_unref", None, pointer),
        ("cordon_call", ctypes.c_int, pointer, text, text, pointer, pointer),
        ("cordon_value_json", pointer, pointer, text), ("cordon_value_unref", None, pointer),
        ("cordon_process_attach", ctypes.c_int, pointer, text, ctypes.c_uint64, ctypes.c_uint64, pointer, pointer),
        ("cordon_process_fd", ctypes.c_int, pointer), ("cordon_process_next", ctypes.c_int, pointer, pointer, pointer),
        ("cordon_process_unref", None, pointer)]:
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments
error = lib.cordon_error_new()


def must(result):
    if result < 0:
        sys.exit(lib.cordon_error_text(error, b"reason").decode())


def take(value):
    """The value as Python has it; released."""
    raw = lib.cordon_value_json(value, b"")
    told = json.loads(ctypes.string_at(raw))
    lib.free(raw)
    lib.cordon_value_unref(value)
    return told


class Cordon:
    def __init__(self):
        self.handle = pointer()
        must(lib.cordon_open(None, ctypes.byref(self.handle), error))

    def call(self, method, **params):
        value = pointer()
        must(lib.cordon_call(self.handle, method.encode(), json.dumps(params).encode(), ctypes.byref(value), error))
        return take(value)

    def events(self, process):
        """The events of a process, until its end."""
        handle, value = pointer(), pointer()
        must(lib.cordon_process_attach(self.handle, process.encode(), 0, 0, ctypes.byref(handle), error))
        while True:
            must(lib.cordon_process_next(handle, ctypes.byref(value), error))
            if not value:
                select.select([lib.cordon_process_fd(handle)], [], [])
                continue
            event = take(value)
            yield event
            if event["event"] == "ended":
                return lib.cordon_process_unref(handle)


def follow(cordon, line, **settings):
    process = cordon.call("process.start", argv=["sh", "-c", line], environment=[f"PATH={os.environ['PATH']}"],
                          settings={"session": "agent-py", "ask": True, **settings})["id"]
    for event in cordon.events(process):
        if event["event"] == "asks":
            cordon.call("approvals.answer", card=event["card"], hash=event["hash"], answer="once")
        elif event.get("data") == "sleeping\n":
            cordon.call("process.cancel", id=process, grace_ms=2000)
        elif event["event"] == "output":
            print(event["data"], end="")
        elif event["event"] == "ended" and event["result"]["ended_by"] != "exit":
            print(event["result"]["ended_by"])


cordon = Cordon()
follow(cordon, "echo ran", read="/var/tmp")
follow(cordon, "echo sleeping; exec sleep 1000")
lib.cordon_unref(cordon.handle)
