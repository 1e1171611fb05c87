"""What `make release` makes: cordon.exe out of the zip under wine, the packages for npm in an empty prefix, as
an ordinary user. What is for macOS is looked at and not run."""
import json
import os
import re
import shutil
import struct
import subprocess
import tarfile
import zipfile

MACH_O, EXECUTE = 0xfeedfacf, 2
PROCESSORS = {"macos-x86_64": 0x01000007, "macos-arm64": 0x0100000c}
FILES = [("LICENSE", 0o644), ("NOTICES", 0o644), ("README.md", 0o644), ("cordon", 0o755), ("cordon-proxy", 0o755), ("cordon-shell", 0o777)]
PLATFORMS = ["linux-x64", "darwin-x64", "darwin-arm64", "win32-x64"]


class Release:
    def __init__(self, wine, target, case, root, build):
        self.wine, self.target, self.case, self.root, self.build = wine, target, case, root, build
        self.out, self.again = target.place.parent / "release", target.place.parent / "release-again"
        self.version = re.search(r"^ +version: '(.*?)'", (root / "meson.build").read_text(), re.M)[1]
        self.place = wine.place / "release"

    def check(self, name, *wanted):
        """Each of `wanted`: (what it is, what was found, what was to be found: a value, or a compiled pattern)."""
        wrong = [f"{what}: {found!r}, not {want!r}" for what, found, want in wanted
                 if not (want.search(found) if isinstance(want, re.Pattern) else found == want)]
        self.case(f"release: {name}", "\n".join(wrong))

    def all(self):
        if self.made():
            self.macos()
            self.windows()
            self.npm()

    def made(self):
        trouble = self.target.program(self.target.place / "cordon.exe") + self.target.proxy_program(self.target.place / "cordon-proxy.exe")
        for output, umask in ((self.out, 0o022), (self.again, 0o077)):
            shutil.rmtree(output, ignore_errors=True)
            done = subprocess.run([self.root / "packaging/release/build", self.build, output], umask=umask,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            trouble += done.stdout if done.returncode else ""
        self.case("release: archives and packages are made", trouble)
        if trouble:
            return False
        archives = ("macos-arm64.tar.gz", "macos-x86_64.tar.gz", "windows-x86_64.zip")
        wanted = [f"cordon-{self.version}-{name}" for name in archives] + [
            f"cordon-sandbox-{name}{self.version}.tgz" for name in ("", *(f"{name}-" for name in PLATFORMS))]
        first, second = ({path.name: path.read_bytes() for path in place.iterdir()} for place in (self.out, self.again))
        self.check("all of them, and nothing else", ("files", sorted(first), sorted(wanted)))
        self.check("made again, they are the same bytes",
                   ("files that differ", [name for name in first if second.get(name) != first[name]], []))
        shutil.rmtree(self.again)
        return True

    def macos(self):
        for name, processor in PROCESSORS.items():
            place = f"cordon-{self.version}"
            with tarfile.open(self.out / f"{place}-{name}.tar.gz") as archive:
                modes = {row.name: row.mode for row in archive}
                links = {row.name: row.linkname for row in archive if not row.isfile()}
                headers = [struct.unpack("<IIII", archive.extractfile(f"{place}/{program}").read(16)) for program in ("cordon", "cordon-proxy")]
            self.check(f"{name}: the programs are for that processor (compiled only: nothing here runs them)",
                       ("files", modes, {f"{place}/{file}": mode for file, mode in FILES}),
                       ("links", links, {f"{place}/cordon-shell": "cordon"}),
                       *((what, header[at], wanted) for header in headers
                         for what, at, wanted in (("format", 0, MACH_O), ("processor", 1, processor), ("kind", 3, EXECUTE))))

    def windows(self):
        self.place.mkdir()
        with zipfile.ZipFile(self.out / f"cordon-{self.version}-windows-x86_64.zip") as archive:
            archive.extractall(self.place)
        self.wine.own(self.place)
        place = self.place / f"cordon-{self.version}"
        linux = (place / "cordon-linux").read_bytes()[:20]
        self.check("the zip has the program for Linux that WSL takes",
                   ("format", linux[:4], b"\x7fELF"), ("processor", linux[18], 62),
                   ("files", sorted(os.listdir(place)), ["LICENSE", "NOTICES", "README.md", "cordon-linux", "cordon-proxy.exe", "cordon.exe"]),
                   ("notices", (place / "NOTICES").read_text(), re.compile("^======== libsodium$", re.M)))
        words = [self.wine.path(place / "cordon.exe"), "doctor", "--json"]
        status, text, _ = self.wine.streams(words, 120, {}, None, place)
        report = json.loads(text or "{}")
        self.check("wine: cordon.exe out of the zip, and its doctor",
                   ("status", status, 1), ("holds", report.get("holds"), False),
                   ("drivers", [row["name"] for row in report.get("drivers", [])], ["windows", "wsl"]))

    # ---- npm --------------------------------------------------------------------------------------------------------

    def words(self, *argv):
        return [*self.wine.user, "env", "-i", f"PATH={os.environ['PATH']}", f"HOME={self.home}",
                "npm_config_update_notifier=false", *map(str, argv)]

    def run(self, *argv):
        """(status, stdout, stderr)"""
        done = subprocess.run(self.words(*argv), cwd=self.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=120)
        return done.returncode, done.stdout, done.stderr

    def npm(self):
        self.home = self.wine.place / "npm"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        packages = [f"../cordon-sandbox-{name}{self.version}.tgz" for name in ("", "linux-x64-")]
        for name in packages:
            shutil.copy(self.out / name[3:], self.home)
        (self.project / "package.json").write_text('{"name": "project", "private": true}\n')
        self.wine.own(self.home)
        installed = self.run("npm", "install", "--offline", "--no-audit", "--no-fund", *packages)
        modules = self.project / "node_modules"
        carrier = modules / "cordon-sandbox-linux-x64"
        found = sorted(path.name for path in modules.glob("[!.]*"))
        self.check("npm installs two packages into an empty prefix, without a network",
                   ("npm", installed[0] and installed, 0),
                   ("packages", found, ["cordon-sandbox", "cordon-sandbox-linux-x64"]))
        if installed[0]:
            return
        self.check("npx cordon run -- true", ("all of it", self.run("npx", "cordon", "run", "--", "true"), (0, "", "")))
        found = self.run("npx", "cordon", "run", "-c", "echo out; echo err >&2; exit 7")
        self.check("streams and the exit status pass through", ("all of it", found, (7, "out\n", "err\n")))
        found = self.run("npx", "--", "cordon", "run", "--", "printf", "%s|", "a b", "$HOME", "", "*")
        self.check("arguments stay as they are", ("output", found[1], "a b|$HOME||*|"))
        self.shell(carrier)
        self.signals(modules / ".bin/cordon", carrier / "cordon")
        self.missing(modules / ".bin/cordon", carrier)

    def shell(self, carrier):
        """What cordon setup writes into an agent's settings, and that it runs."""
        done = self.run(carrier / "cordon", "setup", "claude")
        settings = json.loads((self.home / ".claude/settings.json").read_text()) if done[0] == 0 else {}
        shell = settings.get("env", {}).get("CLAUDE_CODE_SHELL_PREFIX")
        self.check("an agent is set up with the shell of the package",
                   ("setup", done[0] and done, 0), ("shell", shell, str(carrier / "cordon-shell")))
        for words in (["echo $1 \"a  b\"; exit 7"], ["-c", "echo $1 \"a  b\"; exit 7", "sh", "x"], ["-l", "-c", "echo \"a  b\"; exit 7"]):
            # By a process of the same user: the agent is the one that calls, and its directory is the workspace.
            found = self.run("sh", "-c", '"$@"; exit $?', "sh", carrier / "cordon-shell", *words)
            self.check(f"and it runs a script: {' '.join(words)}", ("status", found[0], 7), ("output", found[1][-5:], "a  b\n"))

    def signalled(self, program, signal, text):
        started = subprocess.Popen(self.words(program, "run", "-c", text), cwd=self.project, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        started.stdout.readline()
        started.send_signal(signal)
        try:
            output = started.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, 9)
            output = started.communicate()[0] + b"ended after 20 s"
        return started.returncode, output

    def signals(self, script, program):
        for name, signal in (("SIGTERM", 15), ("SIGINT", 2), ("SIGUSR1", 10)):
            trap = f"trap 'echo trapped; exit 9' {name[3:]}; echo ready; while :; do sleep 0.1; done"
            status, output = self.signalled(script, signal, trap)
            self.check(f"{name} reaches a command that catches it",
                       ("status", status, 9), ("output", output[-8:], b"trapped\n"))
        text = "echo ready; exec sleep 60"
        self.check("SIGTERM ends a command as it does without npm",
                   ("status", self.signalled(script, 15, text)[0], self.signalled(program, 15, text)[0]))
        program.rename(program.parent / "kept")
        program.write_text("#!/bin/sh\nkill -TERM $$\n")
        program.chmod(0o755)
        self.check("a program that a signal ended is told as that", ("status", self.signalled(script, 0, "")[0], -15))
        (program.parent / "kept").rename(program)

    def missing(self, script, carrier):
        text = ("cordon: the package cordon-sandbox-linux-x64 is missing, which carries the program: "
                f"npm install cordon-sandbox-linux-x64@{self.version}\n")
        (carrier / "cordon").chmod(0o644)
        found = self.run(script, "run", "--", "true")
        self.check("a program that cannot be started", ("status", found[0], 125),
                   ("words", found[2], re.compile(r"^cordon: \S+/cordon cannot be started: EACCES\n$")))
        self.check("a hook that cannot be started refuses",
                   ("all of it", self.run(script, "hook", "claude"), (2, "", found[2])))
        (carrier / "cordon").write_text("#!/bin/sh\n[ $1 = hook ] && kill -KILL $$\nexit 1\n")
        (carrier / "cordon").chmod(0o755)
        self.check("a hook that fails in any way refuses", ("a signal", self.run(script, "hook", "claude")[0], 2),
                   ("of others", self.run(script, "run")[0], 1))
        shutil.rmtree(carrier)
        self.check("a program that is missing", ("all of it", self.run(script, "run", "--", "true"), (125, "", text)),
                   ("by npx", self.run("npx", "cordon", "run", "--", "true")[::2], (125, text)))
        self.check("a hook whose program is missing refuses",
                   ("all of it", self.run(script, "hook", "claude"), (2, "", text)))
        (script.parent.parent / "cordon-sandbox/package.json").write_text('{"optionalDependencies": {}}')
        self.check("a system that there is no package for", ("all of it", self.run(script, "run", "--", "true"),
                   (125, "", "cordon: there is no package with the program for linux on x64\n")))
