"""One guest: its archive, its steps, qemu, and what came back.

A guest runs two scripts of steps, one as an ordinary user and one as root, and sends what each step said through its
second serial port. It is judged here. The emulator only ever emulates: KVM is not used."""
import io
import subprocess
import tarfile
import zlib

# Two emulated processors once in a while never get past the kernel's first lines, or one has no time for the other's
# timer (which the kernel need not check). That is the emulator's, and is tried again; a guest that came as far as its
# first process is not.
BOOTS, BOOT_PATIENCE, PATIENCE = 3, 180, 1800
UP = "guest: up"
QEMU = ["-accel", "tcg,thread=multi", "-m", "1024", "-smp", "2", "-nodefaults", "-no-user-config", "-display", "none",
        "-no-reboot"]
# norandmaps: code that is where it was in the process before need not be translated again, which is a quarter of all
# the work.
WORDS = "quiet panic=-1 secretmem.enable=1 no_timer_check norandmaps"
OWNERS = {"user": 1000, "root": 0}


def quote(word):
    """A word for the guest's shell. @NAME@ is what the guest calls so."""
    pieces = ("'" + str(word).replace("'", "'\\''") + "'").split("@")
    return "".join(piece if i % 2 == 0 else f"'\"${piece}\"'" for i, piece in enumerate(pieces))


class Steps:
    """What one caller does, in order. The same code asks twice: first the steps are written down, then, with what came
    back, they are answered. A step is known by its words, so one that is not asked again is no trouble for others."""
    def __init__(self, who, answers=None):
        self.who, self.answers, self.lines, self.last = who, answers, [], ""

    def shell(self, line):
        self.lines.append(line)

    def keep(self, way, cwd, words, context=""):
        """Writes a step down, and returns a reader of what it left: its status, and what it said."""
        line = " ".join(map(quote, [cwd, *words]))
        name = f"{zlib.crc32(f'{context} {line}'.encode()):08x}"
        line = f"{way} {name} {line}"
        if line not in self.lines:
            self.shell(line)
        return name, lambda suffix: self.answers.get(f"{self.who}/{name}.{suffix}")

    def step(self, argv, env, cwd, way="step", before=()):
        """(status, output, errors); before there are answers, of a command that said nothing. No answer: status
        None."""
        self.last, read = self.keep(way, cwd, [*before, "busybox", "env", "-i",
                                               *(f"{key}={value}" for key, value in env.items()), *argv])
        if self.answers is None:
            return 0, "", ""
        if read("status") is None:
            return None, "", f"the guest did not answer step {self.last}"
        return int(read("status").split()[0]), read("out") or "", read("err") or ""

    def after(self, *words):
        """A command of the guest's about the last step: its lines, or None as long as there are no answers."""
        _, read = self.keep("step", "/", ["guest", *words], self.last)
        return None if self.answers is None else (read("out") or "").splitlines()


def read_results(path):
    """By name. What came before it broke off is kept."""
    answers = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as tar:
            for member in tar:
                if member.isfile():
                    answers[member.name.removeprefix("./")] = tar.extractfile(member).read().decode(errors="replace")
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        pass
    return answers


def boot(argv, ended, console):
    """(what is wrong or None, whether the kernel came as far as our first process)."""
    console.unlink(missing_ok=True)

    def is_up():
        return console.exists() and UP in console.read_text(errors="replace")
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as qemu:
        for patience in (BOOT_PATIENCE, PATIENCE):
            try:
                _, errors = qemu.communicate(timeout=patience)
                return None if qemu.returncode == ended else f"qemu ended with {qemu.returncode}: {errors.strip()}", is_up()
            except subprocess.TimeoutExpired:
                if not is_up():
                    break
        qemu.kill()
        return "the guest did not " + (f"end within {BOOT_PATIENCE + PATIENCE} s" if is_up()
                                       else f"boot within {BOOT_PATIENCE} s"), is_up()


def run(arch, kernel, archive, place, words=""):
    """(what came back by name, what is wrong with the guest or None)."""
    place.mkdir(parents=True, exist_ok=True)
    archive.write(place / "initrd")
    argv = [arch.qemu[0], *QEMU, "-chardev", f"file,id=results,path={place / 'results'}", "-serial",
            f"file:{place / 'console'}", *arch.qemu[1:], "-kernel", kernel, "-initrd", place / "initrd", "-append",
            f"console={arch.console} {WORDS} {words}"]
    for _ in range(BOOTS):
        trouble, booted = boot([str(word) for word in argv], arch.ended, place / "console")
        if booted:
            break
    answers = read_results(place / "results")
    if not trouble and "complete" not in answers:
        trouble = "what came back is not whole"
    if trouble:
        trouble += "\n" + (place / "console").read_text(errors="replace")[-3000:]
    return answers, trouble
