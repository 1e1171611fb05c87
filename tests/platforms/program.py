"""cordon.exe as people use it, under wine. The shipped program refuses to start anything there, since wine accepts settings that it
does not enforce; what commands do is tried with cordon-unwalled.exe, which leaves out the walls that are named to it and is never
shipped."""
import json
import re
import shutil
import time

# Of what the Windows driver requires, what does not read back under wine, in the order in which the driver asks for it.
OF_WINE = ["filesystem", "network", "ipc", "privileges", "spawn", "lifetime", "limit_memory", "limit_processes", "limit_cpu"]
# What it takes to have a command ask for that wall.
ASKING = {"network": [], "spawn": ["--no-spawn"], "limit_memory": ["--memory", "1g"], "limit_processes": ["--processes", "40"],
          "limit_cpu": ["--cpu", "50%"], "programs": ["--program", "C:\\windows\\system32\\hostname.exe"]}
PATIENCE = 60
# Commands that the program has not on Windows, and how each ends: a hook that fails must end with 2, or agents take it for consent.
MISSING = {"serve": 125, "rpc": 125, "exec-server": 125, "agent": 125, "setup": 125, "shell": 125, "hook": 2}


class Program:
    OF_WINE = OF_WINE

    def __init__(self, wine, target, case):
        self.wine, self.target, self.case = wine, target, case
        self.place = wine.place / "program"
        self.project = self.place / "project"
        self.child = wine.path(self.place / "child.exe")

    def build(self):
        """Whether there is something to try."""
        self.project.mkdir(parents=True)
        troubles = {
            "cordon.exe": self.target.program(self.place / "cordon.exe"),
            "cordon-unwalled.exe": self.target.unwalled(self.place / "cordon-unwalled.exe"),
            "child.exe": self.target.link(self.place / "child.exe", ["-municode", "tests/platforms/windows/child.c"]),
        }
        for name, trouble in troubles.items():
            self.case(f"windows-x86_64: {name} links with no undefined symbol", trouble)
        self.wine.own(self.place)
        if any(troubles.values()):
            return False
        # As long as one process is there, wine's own ones stay, and the next program need not wait for them.
        self.wine.keep([self.child, "sleep"])
        return True

    def cordon(self, *words, walled=False, out=OF_WINE, stdin=None, timeout=120):
        """(status, stdout, stderr)"""
        name = "cordon.exe" if walled else "cordon-unwalled.exe"
        return self.wine.streams([self.wine.path(self.place / name), *words], timeout, {"CORDON_UNWALL": ",".join(out)}, stdin, self.project)

    def run(self, *words, options=(), **more):
        return self.cordon("run", *options, "--", self.child, *words, **more)

    def check(self, name, *wanted):
        """Each of `wanted`: (what it is, what was found, what was to be found: a value, a compiled pattern or True)."""
        wrong = [f"{what}: {found!r}, not {want!r}" for what, found, want in wanted
                 if not (want.search(found) if isinstance(want, re.Pattern) else found == want)]
        self.case(f"wine: program: {name}", "\n".join(wrong))

    def all(self):
        for name in ("words", "missing", "refusals", "doctor", "commands", "input", "output", "time", "stalled", "tree", "handles", "text", "long_paths",
                     "environment", "result", "sessions", "files", "outside", "paths", "ledger"):
            getattr(self, name)()

    # ---- without a command ------------------------------------------------------------------------------------------

    def words(self):
        self.check("version and help", ("version", self.cordon("version", walled=True)[1], re.compile(r"^cordon \d")),
                   ("help", self.cordon("help", walled=True)[1], re.compile(r"(?s)Usage:.*run a command inside the walls")),
                   ("an unknown word", self.cordon("rum", walled=True)[::2], (2, "cordon: unknown command (rum)\n"
                    "  fix: did you mean cordon run? To run a program: cordon run -- PROGRAM\n")))
        shown = self.cordon("config", "show", "--workspace", self.wine.path(self.project), walled=True)
        self.check("the configuration", ("status", shown[0], 0), ("driver", shown[1], re.compile(r'(?m)^driver = "windows"')),
                   ("the user's file", shown[1], re.compile(r"(?m)^# user: /c/users/\w+/\.config/cordon/config\.toml")))
        profile = self.cordon("profile", "--", "hostname", walled=True)
        self.check("a profile without running anything", ("status", profile[0], 0),
                   ("driver", json.loads(profile[1] or "{}").get("driver"), "windows"))

    def missing(self):
        for word, status in MISSING.items():
            found = self.cordon(word, walled=True)
            self.check(f"{word} is not there, and fails closed", ("status", found[0], status),
                       ("words", found[2].splitlines()[:1], [f"cordon: cordon {word} is not there on Windows ({word})"]))
        job = self.cordon("job", "start", "--session", "s", "--", "hostname", walled=True)
        self.check("no job is started", ("status", job[0], 125), ("words", job[2], re.compile("job start is not there on Windows")))

    def refusals(self):
        """As it is shipped it starts nothing here; and each setting that does not read back is named, where all others are left out."""
        found = self.cordon("run", "--json", "--net", "all", "--", self.child, "exit", "0", walled=True)
        error = json.loads(found[1] or "{}").get("error", {})
        self.check("the shipped program refuses under wine", ("status", found[0], 125), ("class", error.get("class"), "spawn_sandbox_unavailable"),
                   ("wall", error.get("boundary"), "filesystem"), ("platform", error.get("platform"), "windows"))
        for wall in [*OF_WINE, "programs"]:
            found = self.cordon("run", "--json", *ASKING.get(wall, ["--net", "all"]), "--", self.child, "exit", "0", out=[name for name in OF_WINE if name != wall])
            error = json.loads(found[1] or "{}").get("error", {})
            self.check(f"refused for {wall}", ("status", found[0], 125), ("class", error.get("class"), "spawn_sandbox_unavailable"),
                       ("wall", error.get("boundary"), wall), ("step", error.get("step"), "run"))
        hosts = self.cordon("run", "--json", "--net", "example.org:443", "--", self.child, "exit", "0", out=[name for name in OF_WINE if name != "network"])
        self.check("refused for a listed host", ("status", hosts[0], 125), ("wall", json.loads(hosts[1] or "{}").get("error", {}).get("boundary"), "network"))
        tty = self.cordon("run", "--tty", "--", self.child, "exit", "0")
        self.check("no terminal is given", ("status", tty[0], 125), ("words", tty[2], re.compile("gives a command no terminal")))

    def doctor(self):
        status, text, _ = self.cordon("doctor", "--json", walled=True)
        report = json.loads(text or "{}")
        driver = (report.get("drivers") or [{}])[0]
        walls = {row["wall"]: row for row in driver.get("walls", [])}
        held = sorted(name for name, row in walls.items() if row["holds"])
        self.check("doctor tells which walls hold", ("status", status, 1), ("drivers", [row["name"] for row in report.get("drivers", [])], ["windows", "wsl"]),
                   ("works", driver.get("works"), False), ("holds", report.get("holds"), False),
                   ("those that hold", held, ["descriptors", "limit_output", "limit_time", "terminal"]),
                   ("those that do not read back", sorted(name for name, row in walls.items() if not row["holds"] and row["can_hold"]),
                    sorted(OF_WINE)))
        words = self.cordon("doctor", walled=True)[1]
        self.check("doctor, for people", ("begins", words, re.compile("^cordon run does not work here as it is: .*Low")),
                   ("system", words, re.compile(r"(?m)^Windows \d+\.\d+")))

    # ---- commands ---------------------------------------------------------------------------------------------------

    def commands(self):
        for status in (0, 1, 7, 255):
            self.check(f"exit status {status}", ("status", self.run("exit", str(status))[0], status))
        self.check("a program that is not there", ("status", self.cordon("run", "--", "no-such-program")[0], 127))
        (self.project / "script.bat").write_text("echo no\n")
        self.wine.own(self.project)
        batch = self.cordon("run", "--", "./script.bat")
        self.check("a batch file is refused", ("status", batch[0], 126), ("words", batch[2], re.compile("batch file")))
        self.check("a crash ends with the code of Windows", ("status", self.run("crash")[0] != 0, True))

    def input(self):
        text = "".join(f"line {i}\n" for i in range(5000))
        self.check("input is carried", ("output", self.run("copy", stdin=text)[1].replace("\r", ""), text))
        self.check("without input", ("output", self.run("copy", options=["--no-stdin"], stdin="x")[:2], (0, "")))

    def output(self):
        self.check("both streams", ("streams", self.run("say", "a", "b")[:2], (0, "a\r\nb\r\n")))
        self.check("stderr is handed on", ("stderr", self.run("say", "a", options=["--quiet"])[2], "on stderr\r\n"))
        self.check("a million bytes", ("length", len(self.run("flood")[1]), 1000000))
        cut = json.loads(self.run("flood", options=["--json", "--max-output", "1000"])[1])
        self.check("what is kept is limited, what there was is counted", ("bytes", cut["stdout_bytes"], 1000000), ("kept", len(cut["stdout"]) < 1100, True),
                   ("truncated", cut["truncated"], True))

    def time(self):
        begun = time.monotonic()
        result = json.loads(self.run("sleep", options=["--json", "--timeout", "1s"])[1] or "{}")
        self.check("a timeout", ("timed_out", result.get("timed_out"), True), ("ended_by", result.get("ended_by"), "time"),
                   ("bounded", time.monotonic() - begun < 60, True))
        self.check("its status", ("status", self.run("sleep", options=["--timeout", "1s"])[0], 124))

    def stalled(self):
        """A reader that does not read holds up output, and no timeout."""
        with self.wine.begin([self.wine.path(self.place / "cordon-unwalled.exe"), "run", "--timeout", "2s", "--", self.child, "drown", "pid.txt"],
                             {"CORDON_UNWALL": ",".join(OF_WINE)}, self.project) as running:
            pid, until = "", time.monotonic() + PATIENCE
            while time.monotonic() < until and (not pid or self.wine.run([self.child, "alive", pid])[0]):
                pid = pid or (self.project / "pid.txt").exists() and (self.project / "pid.txt").read_text()
                time.sleep(0.1)
            alive = self.wine.run([self.child, "alive", pid or "0"])[0]
            status = running.poll()
            running.communicate()
        self.check("a stalled reader holds up no timeout", ("pid", bool(pid), True), ("alive", alive, 0), ("cordon still writes", status, None),
                   ("status", running.returncode, 124))

    def tree(self):
        """What a command starts ends with it: by itself, and by a timeout."""
        for name, words, options in (("its end", ["tree"], []), ("a timeout", ["tree", "stay"], ["--timeout", "2s"])):
            pid = self.run(*words, options=options)[1].strip()
            alive = self.wine.run([self.child, "alive", pid or "0"])[0]
            self.check(f"nothing is left after {name}", ("pid", pid.isdigit(), True), ("alive", alive, 0))
        self.check("no breakaway", ("status", self.run("escape")[0], 0))

    def handles(self):
        """A handle that cordon inherits is not the command's."""
        hand = [self.child, "hand"]
        self.check("the test hands one on", ("status", self.wine.run([*hand, self.child, "handle"])[0], 1))
        status = self.wine.streams([*hand, self.wine.path(self.place / "cordon-unwalled.exe"), "run", "--", self.child, "handle"], 120,
                                   {"CORDON_UNWALL": ",".join(OF_WINE)}, None, self.project)[0]
        self.check("and it is not the command's", ("status", status, 0))

    def text(self):
        words = ["grüße", "日本語", "a b", 'say "hi"', "back\\slash\\", "", "tab\there", "%PATH%", "*"]
        self.check("arguments are passed as they are", ("output", self.run("say", *words)[1], "".join(f"{word}\r\n" for word in words)))
        place = self.project / "größe 日本"
        place.mkdir()
        self.wine.own(self.project)
        found = self.run("where", options=["--cwd", place.name])
        self.check("a directory with such a name", ("status", found[0], 0), ("where", found[1], self.wine.path(place)))

    def long_paths(self):
        place = self.project
        for i in range(14):
            place = place / f"a-directory-with-a-long-name-{i}"
        place.mkdir(parents=True)
        self.wine.own(self.project)
        self.check("the path is longer than 260", ("length", len(str(place)) > 400, True))
        deep = str(place.relative_to(self.project))
        wrote = self.cordon("file", "write", "--workspace", self.wine.path(self.project), f"{deep}/file.txt", "--content", "deep")
        self.check("a file beneath it", ("status", wrote[0], 0), ("content", (place / "file.txt").exists() and (place / "file.txt").read_text(), "deep"))
        # wine itself starts no program by a longer path than 260.
        shutil.copy(self.place / "child.exe", self.project / "near.exe")
        self.wine.own(self.project)
        self.check("a program by a relative path", ("status", self.cordon("run", "--", "./near.exe", "exit", "9")[0], 9))

    def environment(self):
        def value(name, *options):
            return self.run("variable", name, options=list(options))[1]
        scratch = re.compile(r"^C:\\users\\\w+\\\.local\\share\\cordon\\scratch\\[0-9A-Z]{26}$")
        self.check("what a command finds", ("TEMP", value("TEMP"), scratch), ("USERPROFILE", value("USERPROFILE"), scratch),
                   ("PATH", value("PATH"), re.compile(r"(?i)^C:\\windows\\system32;C:\\windows")), ("SystemRoot", value("SystemRoot").lower(), "c:\\windows"),
                   ("CORDON_SANDBOX", value("CORDON_SANDBOX"), "windows"), ("CORDON_WORKSPACE", value("CORDON_WORKSPACE"), self.wine.path(self.project)))
        self.check("names are compared without case", ("one of two", value("fOO", "--env", "foo=1", "--env", "FOO=2"), "2"),
                   ("passed on", value("WineDebug", "--pass-env", "winedebug"), "-all"), ("not passed on", value("WINEDEBUG"), ""))
        self.check("what makes a program load others is refused", ("status", self.run("exit", "0", options=["--env", "node_options=x"])[0], 125))

    def result(self):
        status, text, _ = self.run("say", "x", options=["--json"])
        result = json.loads(text or "{}")
        self.check("--json", ("status", status, 0), ("exit_code", result.get("exit_code"), 0), ("stdout", result.get("stdout"), "x\r\n"),
                   ("stderr", result.get("stderr"), "on stderr\r\n"), ("driver", result.get("driver"), "windows"), ("ended_by", result.get("ended_by"), "exit"),
                   ("descriptors", result.get("isolation", {}).get("descriptors"), "handle list, pipes"),
                   ("masked_names", result.get("isolation", {}).get("masked_names"), "none"), ("audit_id", len(result.get("audit_id", "")), 26))

    # ---- sessions, files, the ledger --------------------------------------------------------------------------------

    def sessions(self):
        new = self.cordon("session", "new", "s-1", "--json")
        workspace = json.loads(new[1] or "{}").get("workspace", "")
        where = self.cordon("run", "--session", "s-1", "--", self.child, "where")
        self.check("a session, and a command in it", ("status", new[0], 0), ("status", where[0], 0),
                   ("where", where[1].replace("\\", "/").lower(), workspace.lower().replace("/c/", "c:/", 1)))
        self.check("what one writes the next one finds", ("write", self.cordon("run", "--session", "s-1", "--", self.child, "write", "left.txt", "x")[0], 0),
                   ("read", self.cordon("file", "read", "--session", "s-1", "left.txt")[1], "x"))
        self.check("another session has another workspace", ("new", self.cordon("session", "new", "s-2")[0], 0),
                   ("read", self.cordon("file", "read", "--session", "s-2", "left.txt")[0] != 0, True))
        shown, listed = self.cordon("session", "show", "s-1"), self.cordon("session", "list")
        self.check("show and list", ("state", shown[1], re.compile(r"(?m)^state +active")), ("list", sorted(re.findall(r"(?m)^s-\d", listed[1])), ["s-1", "s-2"]))
        pause, paused = self.cordon("session", "pause", "s-1"), self.cordon("run", "--json", "--session", "s-1", "--", self.child, "exit", "0")
        self.check("a paused session refuses", ("pause", pause[0], 0), ("class", json.loads(paused[1])["error"]["class"], "session_paused"),
                   ("resume", self.cordon("session", "resume", "s-1")[0], 0), ("then", self.cordon("run", "--session", "s-1", "--", self.child, "exit", "3")[0], 3))
        end, ended = self.cordon("session", "end", "s-1"), self.cordon("run", "--json", "--session", "s-1", "--", self.child, "exit", "0")
        self.check("an ended session refuses for good", ("end", end[0], 0), ("class", json.loads(ended[1])["error"]["class"], "session_ended"))
        self.check("and is removed, with its workspace", ("rm", self.cordon("session", "rm", "s-1")[0], 0),
                   ("show", self.cordon("session", "show", "s-1")[0] != 0, True), ("gone", self.wine.unix(workspace).exists(), False))

    def files(self):
        def file(*words, **more):
            return self.cordon("file", words[0], "--session", "f", *words[1:], **more)
        self.cordon("session", "new", "f")
        self.check("write and read", ("write", file("mkdir", "a")[0] or file("write", "a/grüße.txt", "--content", "one\ntwo\n")[0], 0),
                   ("read", file("read", "a/grüße.txt")[1], "one\ntwo\n"))
        self.check("edit", ("edit", file("edit", "a/grüße.txt", "--old", "two", "--new", "three")[0], 0), ("read", file("read", "a/grüße.txt")[1], "one\nthree\n"))
        self.check("list", ("list", file("list", "a")[1], re.compile(r"file +10 +'grüße\.txt'")))
        self.check("grep and glob", ("grep", file("grep", "thr")[1], re.compile("grüße.txt.*three")), ("find", file("find", "--glob", "**/*.txt")[1], re.compile("a/grüße.txt")))
        self.check("stat", ("stat", file("stat", "a/grüße.txt")[0], 0))
        self.check("mkdir, rename and remove", ("mkdir", file("mkdir", "b")[0], 0), ("rename", file("rename", "a/grüße.txt", "b/x.txt")[0], 0),
                   ("read", file("read", "b/x.txt")[1], "one\nthree\n"), ("remove", file("remove", "b/x.txt")[0], 0), ("then", file("read", "b/x.txt")[0] != 0, True))

    def outside(self):
        """Nothing outside of the workspace is read or written, however it is named."""
        secret = self.place / "outside.txt"
        secret.write_text("secret")
        self.wine.own(secret)
        for name in ("../outside.txt", "..\\outside.txt", str(secret), f"/z{secret}", self.wine.path(secret), "a/../../outside.txt", "c:outside.txt", "file.txt:stream",
                     "nul", "\\\\?\\Z:\\x"):
            read = self.cordon("file", "read", "--workspace", self.wine.path(self.project), name)
            write = self.cordon("file", "write", "--workspace", self.wine.path(self.project), name, "--content", "x")
            self.check(f"{name.replace(str(self.place), '...')} is refused", ("read", read[0] != 0 and "secret" not in read[1], True), ("write", write[0] != 0, True),
                       ("content", secret.read_text(), "secret"))
        cwd = self.run("where", options=["--cwd", ".."])
        self.check("nor is it a working directory", ("status", cwd[0], 125))
        for place in ("C:\\", "C:\\windows", "C:\\Windows\\System32", "C:\\users"):
            self.check(f"{place} is no workspace", ("status", self.run("exit", "0", options=["--workspace", place])[0], 125))

    def paths(self):
        """As people write them on Windows; and what cannot be one is refused, with the reason."""
        def config(text):
            path = self.place / "c.toml"
            path.write_text(f"[capabilities]\nfs_read = ['{text}']\n")
            self.wine.own(path)
            return self.cordon("config", "check", self.wine.path(path))
        for text in ("C:\\windows", "C:/windows", "/c/windows", "~/notes"):
            self.check(f"{text} in a configuration", ("status", config(text)[0], 0))
        for text, why in {"\\\\server\\share": "another machine", "C:windows": "drive without a slash", "/data": "names no drive", "C:\\a\\con": "device",
                          "C:\\a\\b.": "dot or space", "notes": "neither absolute"}.items():
            found = config(text)
            self.check(f"{text} in a configuration is refused", ("status", found[0], 1), ("reason", found[1] + found[2], re.compile(why)))
        manifest = self.place / "tool.toml"
        manifest.write_text("[capabilities.spawn]\nprograms = ['C:\\windows\\system32\\hostname.exe']\nfs_read = ['\\\\server\\x']\n")
        self.wine.own(manifest)
        found = self.cordon("manifest", "check", self.wine.path(manifest))
        self.check("and in a manifest", ("status", found[0] != 0, True), ("reason", found[1] + found[2], re.compile("another machine")))

    def ledger(self):
        before = self.run("exit", "5", options=["--json"])
        id = json.loads(before[1])["audit_id"]
        tail = self.cordon("audit", "tail", "--json")
        rows = [json.loads(line) for line in tail[1].splitlines()]
        own = [row["row"] for row in rows if row.get("id") == id]
        self.check("a command has an intent row and a result row", ("rows", own, ["intent", "result"]))
        refused = self.cordon("run", "--json", "--", self.child, "exit", "0", walled=True)
        last = json.loads(self.cordon("audit", "tail", "--json")[1].splitlines()[-1])
        self.check("a refusal has a row, too", ("status", refused[0], 125), ("row", last.get("row"), "denial"))
        intact = self.cordon("audit", "verify")
        self.check("the ledger verifies", ("status", intact[0], 0), ("words", intact[1], re.compile("^intact: ")))
        day = sorted(self.wine.data().glob("ledger/*.jsonl"))[-1]
        text = day.read_bytes()
        day.write_bytes(text.replace(b'"exit_code":5', b'"exit_code":0'))
        self.check("a changed row is found", ("changed", day.read_bytes() != text, True), ("status", self.cordon("audit", "verify")[0] != 0, True))
        day.write_bytes(text)
        self.check("and gone when it is put back", ("status", self.cordon("audit", "verify")[0], 0))
