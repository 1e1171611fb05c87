"""A command's walls are those that its own walk decides on: whatever changed since the command before, in a process
that stays it has what it would have as the first of its process. Each scene is played both ways, and must end the
same."""
import os
import re
import shutil
import threading
import subprocess

import pytest

from conftest import Cordon
from lab import IS_ROOT, missing
from library_lab import Library

pytestmark = missing("mount-namespace")
CONFIG = "[core]\n\tbare = false\n"
DENIED = "Permission denied"


def write(path, text="old\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def replace(path, text="new secret\n"):
    """As an editor saves."""
    os.replace(write(path.with_name("saving"), text), path)


def remake(path, text="new secret\n"):
    path.unlink()
    write(path, text)


def move_away(path, text="new secret\n"):
    """Out of the workspace, on the same filesystem: whatever lies over it goes along."""
    os.rename(path, path.parents[1] / f"away-{os.urandom(4).hex()}" if path.parent.name == "workspace" else
              path.parents[2] / f"away-{os.urandom(4).hex()}")
    write(path, text)


def exchange(one, other):
    os.rename(one, one.with_name("between"))
    os.rename(other, one)
    os.rename(one.with_name("between"), other)


def replace_tree(path, name, text):
    shutil.move(path, path.with_name(path.name + "-before"))
    write(path / name, text)


def repository(ws):
    write(ws / "r/.git/config", CONFIG)
    write(ws / "r/.git/HEAD", "ref: refs/heads/main\n")
    write(ws / "r/.git/hooks/pre-commit", "#!/bin/sh\n")


# name: (what is there, what is done between two commands, by whom: a function of the workspace or a line that a command
# runs, the line whose outcome counts, what it must say)
SCENES = {
    "a-secret-is-saved": (lambda ws: write(ws / ".env"), lambda ws: replace(ws / ".env"), "cat .env", DENIED),
    "a-secret-is-made-again": (lambda ws: write(ws / ".env"), lambda ws: remake(ws / ".env"), "cat .env", DENIED),
    "a-secret-is-moved-away": (lambda ws: write(ws / ".env"), lambda ws: move_away(ws / ".env"), "cat .env", DENIED),
    "a-deep-secret-is-saved": (lambda ws: write(ws / "a/b/.env"), lambda ws: replace(ws / "a/b/.env"), "cat a/b/.env",
                               DENIED),
    "the-directory-of-a-secret-is-replaced": (lambda ws: write(ws / "a/b/.env"),
                                              lambda ws: replace_tree(ws / "a", "b/.env", "new secret\n"),
                                              "cat a/b/.env a-before/b/.env", f"{DENIED}.*{DENIED}"),
    "the-directory-of-a-secret-is-moved-away": (lambda ws: write(ws / "a/.env"), lambda ws: move_away(ws / "a/.env"),
                                                "cat a/.env", DENIED),
    "a-hidden-directory-is-made-again": (lambda ws: write(ws / ".ssh/id_ed25519"), lambda ws: (
        shutil.rmtree(ws / ".ssh"), write(ws / ".ssh/id_ed25519", "new secret\n")), "cat .ssh/id_ed25519", DENIED),
    "two-hidden-things-change-places": (lambda ws: (write(ws / "a/.ssh/x"), write(ws / "b/.aws/x"), repository(ws)),
                                        lambda ws: (
        exchange(ws / "a/.ssh", ws / "r/.git/hooks"), write(ws / "a/.ssh/x", "new secret\n")), "cat a/.ssh/x", DENIED),
    "a-secret-appears": (lambda ws: None, lambda ws: write(ws / "conf/.env", "new secret\n"), "cat conf/.env", DENIED),
    "a-command-makes-a-secret": (lambda ws: None, "mkdir conf; echo new secret > conf/.env; cat conf/.env",
                                 "cat conf/.env", DENIED),
    "a-secret-goes": (lambda ws: write(ws / ".env"), lambda ws: (ws / ".env").unlink(), "cat .env", "No such file"),
    "a-secret-gets-another-name": (lambda ws: write(ws / ".env"), lambda ws: os.rename(ws / ".env", ws / "plain"),
                                   "cat plain", "old"),
    "a-configuration-of-git-is-written": (repository, lambda ws: replace(ws / "r/.git/config", CONFIG),
                                          "echo evil >> r/.git/config", "Read-only|denied|cannot create"),
    "a-repository-is-cloned": (lambda ws: None, repository, "echo evil >> r/.git/config",
                               "Read-only|denied|cannot create"),
    "a-command-clones-a-repository": (lambda ws: subprocess.run(["git", "init", "-q", ws / "from"], check=True),
                                      "git clone -q from mine 2>&1; ls mine/.git/config",
                                      "echo evil >> mine/.git/config", "Read-only|denied|cannot create"),
    "hooks-are-made-again": (repository, lambda ws: (shutil.rmtree(ws / "r/.git/hooks"),
                                                     write(ws / "r/.git/hooks/pre-push")),
                             "echo evil >> r/.git/hooks/pre-push", "Read-only|denied|cannot create"),
    "what-was-kept-in-its-place-becomes-hooks": (lambda ws: (repository(ws), os.rename(ws / "r/.git", ws / "r/git"),
                                                             write(ws / "r/git/hooks/.env")),
                                                 lambda ws: os.rename(ws / "r/git", ws / "r/.git"),
                                                 "echo evil >> r/.git/hooks/pre-push",
                                                 "Read-only|denied|cannot create"),
    "a-command-cannot-move-a-secret": (lambda ws: write(ws / "a/.env"), "mv a b; mv a/.env plain; rm -rf a",
                                       "cat a/.env b/.env plain", f"{DENIED}.*No such file.*No such file"),
    "the-workspace-is-another-one": (lambda ws: write(ws / "file"), lambda ws: replace_tree(ws, "file", "another\n"),
                                     "cat file", None),
    "a-link-leads-elsewhere": (lambda ws: (write(ws / "one/.env"), write(ws / "two/x", "new secret\n"),
                                           (ws / "link").symlink_to("one")),
                               lambda ws: ((ws / "link").unlink(), os.rename(ws / "two/x", ws / "two/.env"),
                                           (ws / "link").symlink_to("two")),
                               "cat link/.env", DENIED),
    "a-directory-becomes-a-link": (lambda ws: (write(ws / "a/.env"), write(ws.parent / "outside/.env", "new secret\n")),
                                   lambda ws: (
        shutil.rmtree(ws / "a"), (ws / "a").symlink_to(ws.parent / "outside")), "cat a/.env", "No such file|denied"),
    "nothing-changes": (lambda ws: write(ws / ".env"), lambda ws: None, "cat .env", DENIED),
}


def play(place, scene, one=True, fresh=False):
    """What the last command said. one: all commands are run by one process."""
    prepare, change, line, _ = scene
    place.mkdir()
    cordon = Cordon(place / "workspace", place / "data")
    cordon.workspace.mkdir()
    prepare(cordon.workspace)
    library = Library(cordon)
    settings = {"fresh": "true"} if fresh else {}
    try:
        library.session("s")
        library.shell("true", **settings)
        if isinstance(change, str):
            library.shell(change, **settings)
        else:
            change(cordon.workspace)
        if not one:
            library.close()
            library = Library(cordon)
        second = library.shell(line, **settings)
    finally:
        library.close()
    said = second["error"]["class"] if "error" in second else f"{second['exit_code']} {second['stdout']}{second['stderr']}"
    return said.replace("\n", " ").replace(str(place), "")


@pytest.mark.parametrize("name", SCENES)
def test_the_next_command_has_the_walls_of_now(tmp_path, name):
    scene = SCENES[name]
    plain = play(tmp_path / "two", scene, one=False)
    assert scene[3] is None or re.search(scene[3], plain), plain
    for kind in ("session", "fresh"):
        said = play(tmp_path / kind, scene, fresh=kind == "fresh")
        assert said == plain and "secret" not in said, (kind, said, plain)


def test_the_network_is_what_the_walk_came_to(cordon, tmp_path):
    """Where the configuration or the session says otherwise than the request."""
    host, config = os.readlink("/proc/self/ns/net"), tmp_path / "local.toml"
    config.write_text('[sandbox]\ndriver = "local"\n')
    for path, own in ((config, False), (None, True)):
        library = Library(cordon, path)
        try:
            library.session("all" + str(own), net="all")
            for session, has_own in ((None, own), (None, own), ("all" + str(own), False), (None, own)):
                done = library.shell("readlink /proc/self/ns/net", session=session,
                                     workspace=[] if session else str(cordon.workspace))
                assert done.get("exit_code") == 0 and (done["stdout"].strip() != host) == has_own, (path, session, done)
        finally:
            library.close()


def test_a_secret_that_is_saved_again_and_again(cordon):
    """While walls are raised its mask may be gone: then the command is started anew, and fails for that at most where
    it was tried a few times."""
    over = threading.Event()

    def save():
        while not over.wait(0.002):
            replace(cordon.workspace / ".env")
    editor = threading.Thread(target=save)
    library = Library(cordon)
    try:
        library.session("s")
        write(cordon.workspace / ".env")
        editor.start()
        done = [library.shell("true", processes=str(20 + i)) for i in range(24)]
    finally:
        over.set()
        editor.join()
        library.close()
    assert {each["error"]["class"] for each in done if "error" in each} <= {"session_busy"}, done
    assert any("error" not in each for each in done), done


# ---- what people decide ----------------------------------------------------------------------------------------------

WAYS = {"session": {}, "fresh": {"fresh": "true"}}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def outside(tmp_path):
    return write(tmp_path / "outside/file", "granted\n").parent


def test_a_grant_for_the_session(cordon, outside, way):
    library = Library(cordon)
    try:
        library.session("s")
        library.shell("true", **way)
        look = f"cat {outside}/file"
        assert "No such file" in library.shell(look, **way)["stderr"]
        library.ask("approve", answer="once")
        assert library.shell(look, read=str(outside), **way)["stdout"] == "granted\n"
        assert "No such file" in library.shell(look, **way)["stderr"], "it was for that command"
        library.ask("approve", answer="session")
        assert library.shell(look, read=str(outside), **way)["stdout"] == "granted\n"
        library.ask("approve", answer="denied")
        for _ in range(2):
            done = library.shell(look, read=str(outside), **way)
            assert done["stdout"] == "granted\n", done
            assert library.shell(look, **way)["stdout"] == "granted\n", "it need not be asked for again"
        # What it was given for is another one now.
        replace_tree(outside, "file", "not granted\n")
        assert "not granted" not in str(library.shell(look, read=str(outside), **way))
        assert "No such file" in library.shell(look, **way)["stderr"]
    finally:
        library.close()


# (a configuration, the line whose outcome counts, what it says with that configuration and without)
SETTINGS = [
    ('[capabilities]\ndeny = ["*.hidden"]\n', "cat a.hidden", DENIED, "text"),
    ('[capabilities]\nread_only = ["{ws}/sub"]\n', "echo x > sub/made", "Read-only", "0 "),
    ('[capabilities]\nfs_read = ["{outside}"]\n', "cat {outside}/file", "granted", "No such file"),
    ('[capabilities]\nspawn = false\n', "/bin/echo one; /bin/echo two", "denied|not permitted|Cannot fork|fork", "two"),
    ('[limits]\nopen_files = 64\n', "ulimit -n", "64", "1024"),
    ('[sandbox]\nview = "bare"\n', "cat a.hidden", "program_not_found|No such file", "text"),
]


@pytest.mark.parametrize("text,line,with_it,without", SETTINGS,
                         ids=[row[0].split("\n")[1].split(" ")[0] for row in SETTINGS])
def test_a_configuration_that_changes(cordon, outside, way, text, line, with_it, without):
    write(cordon.workspace / "a.hidden", "text\n")
    (cordon.workspace / "sub").mkdir()
    names = {"ws": cordon.workspace, "outside": outside}
    config = write(cordon.data.parent / "config.toml", "# nothing\n")
    library = Library(cordon, config=config)
    try:
        library.session("s")
        for now, wanted in (("# nothing\n", without), (text.format(**names), with_it), ("# nothing\n", without),
                            (text.format(**names), with_it)):
            replace(config, now)
            for _ in range(2):
                done = library.shell(line.format(**names), **way)
                said = done["error"]["class"] if "error" in done else f"{done['exit_code']} {done['stdout']}{done['stderr']}"
                assert re.search(wanted, said), (now, said)
                (cordon.workspace / "sub/made").unlink(missing_ok=True)
    finally:
        library.close()


@pytest.mark.skipif(not IS_ROOT, reason="cannot: root: only root mounts what others see")
def test_mounts_of_the_host_that_change(cordon, way):
    """In a namespace of its own, lest the machine's have it."""
    inner = cordon.workspace / "inner"
    inner.mkdir()
    library = Library(cordon, prefix=["unshare", "--mount", "--propagation", "private"])

    def host(*words):
        subprocess.run(["nsenter", "-t", str(library.process.pid), "-m", *map(str, words)], check=True)
    try:
        library.session("s")
        library.shell("true", **way)
        host("mount", "-t", "tmpfs", "none", inner)
        host("sh", "-c", f"echo mounted > {inner}/file; echo secret > {inner}/.env")
        for _ in range(2):
            assert library.shell("cat inner/file", **way)["stdout"] == "mounted\n"
            assert DENIED in library.shell("cat inner/.env", **way)["stderr"]
        host("umount", inner)
        assert "No such file" in library.shell("cat inner/file", **way)["stderr"]
        host("mount", "-t", "tmpfs", "none", inner)
        host("sh", "-c", f"echo again > {inner}/file")
        assert library.shell("cat inner/file", **way)["stdout"] == "again\n"
    finally:
        library.close()


def test_tools_that_are_another_directory(cordon, way):
    tools = write(cordon.data.parent / "tools/tool", "of then\n").parent
    config = write(cordon.data.parent / "config.toml", f'[tools]\ndir = "{tools}"\n')
    library = Library(cordon, config=config)
    try:
        library.session("s")
        library.shell("true", **way)
        assert library.shell(f"cat {tools}/tool", **way)["stdout"] == "of then\n"
        replace_tree(tools, "tool", "of now\n")
        assert library.shell(f"cat {tools}/tool", **way)["stdout"] == "of now\n"
    finally:
        library.close()


def test_what_another_process_does_to_the_session(cordon, way):
    """Somebody at a terminal, it counts for the next command."""
    library = Library(cordon)
    elsewhere = cordon.data.parent / "elsewhere"
    write(elsewhere / "file", "elsewhere\n")
    write(cordon.workspace / "file", "here\n")

    def said():
        done = library.shell("cat file", **way)
        return done["error"]["class"] if "error" in done else done["stdout"]

    def people(*words):
        done = cordon("session", *words)
        assert done.returncode == 0, done
    try:
        library.session("s")
        for action, then in (("pause", "session_paused"), ("resume", "here\n"), ("pause", "session_paused"),
                             ("resume", "here\n"), ("end", "session_ended")):
            library.shell("true", **way)
            people(action, "s")
            assert said() == then, action
        library.shell("true", session="other")
        people("rm", "s")
        people("new", "s", "--workspace", str(elsewhere))
        for _ in range(3):
            assert said() == "elsewhere\n"
    finally:
        library.close()
