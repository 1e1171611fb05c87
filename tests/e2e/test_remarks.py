"""What cordon says besides a command's own output: each refusal once, with the option that allows it, and never where a
program would take it for output."""
import json
import os
import subprocess

import pytest

from conftest import PROGRAM
from lab import result

OFFLINE = "getent hosts packages.example"


def remarks(text):
    return [line for line in text.splitlines() if line.startswith("cordon: ")]


@pytest.fixture
def shown(terminal):
    """What a person sees, and the status."""
    def run(*words):
        started = terminal(*words)
        status = started.end()
        return started.output.decode().replace("\r", ""), status
    return run


@pytest.fixture
def hidden(cordon):
    (cordon.workspace / ".env").write_text("SECRET=1\n")


def test_a_command_that_failed(cordon):
    done = cordon("run", "-c", f"{OFFLINE}; exit 3")
    assert done.returncode == 3 and remarks(done.stderr) == [
        "cordon: no network access (tried: packages.example). To allow it: --net packages.example:443"], done


def test_a_command_that_succeeded_is_passed_over_but_on_a_terminal(cordon, shown):
    line = f"{OFFLINE}; true"
    assert cordon("run", "-c", line).stderr == ""
    # The result has it all the same.
    assert result(cordon, "-c", line)["denials"][0]["what"] == "packages.example"
    out, status = shown("run", "--no-tty", "-c", line)
    assert status == 0 and len(remarks(out)) == 1 and "--net packages.example:443" in out, out


def test_quiet(cordon, hidden):
    assert cordon("run", "--quiet", "--", "cat", ".env", "/srv/none").stderr.count("cordon: ") == 0


def test_nothing_in_a_pipe_that_is_shared(cordon):
    """2>&1 into a program that reads: what is in it is the command's alone, as long as it succeeds."""
    for status in (0, 1):
        done = subprocess.run([PROGRAM, "run", "-c", f"git init -q new{status}; {OFFLINE}; echo out; exit {status}"],
                              cwd=cordon.workspace, env=cordon.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        assert done.returncode == status and done.stdout.startswith("out\n") and (done.stdout == "out\n") == (status == 0), done


def test_an_ordinary_clone_makes_no_noise(cordon, shown):
    subprocess.run("git init -q one && cd one && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 1",
                   shell=True, check=True, cwd=cordon.workspace)
    done = cordon("run", "--", "git", "clone", "-q", "one", "two")
    assert (done.returncode, done.stderr) == (0, ""), done
    out, status = shown("run", "--no-tty", "--", "git", "clone", "-q", "one", "three")
    assert status == 0 and remarks(out) == [], out
    assert result(cordon, "--", "git", "init", "-q", "four")["denials"], "the result names what appeared"


def test_what_was_moved_away_is_always_told(cordon):
    done = cordon("run", "-c", "git init -q new && echo true > new/.git/hooks/pre-commit && chmod +x new/.git/hooks/pre-commit")
    assert done.returncode == 0 and len(remarks(done.stderr)) == 1 and "moved to quarantine" in done.stderr, done


@pytest.mark.parametrize("command, path, option", [
    (["cat", "/srv/none"], "/srv/none", "--read /srv/none"),
    (["ls", "/home/nobody-here/x"], "/home/nobody-here/x", "--read /home/nobody-here/x"),
    (["/usr/bin/python3", "-c", "open('/mnt/in.csv')"], "/mnt/in.csv", "--read /mnt/in.csv"),
    (["cat", "/tmp/of-the-host"], "/tmp/of-the-host", "--read /tmp/of-the-host"),
    (["cat", "../sibling/x"], "SIBLING/x", "--read SIBLING/x"),
    (["touch", "/srv/y"], "/srv/y", "--write /srv"),
    (["env", "LC_ALL=C.UTF-8", "mkdir", "/srv/data/foo"], "/srv/data/foo", "--write /srv/data"),
    (["sh", "-c", "echo > /var/lib/foo"], "/var/lib/foo", "--write /var/lib"),
    (["cat", "/etc/apt/sources.list"], "/etc/apt/sources.list",
     "sandbox.etc adds; allowed by --read /etc/apt/sources.list"),
    (["sh", "-c", "echo 'dial unix /var/run/docker.sock: connect: no such file or directory' >&2; exit 1"],
     "/var/run/docker.sock", "--socket /var/run/docker.sock"),
    (["touch", "/etc/x"], "/etc/x", "read-only inside"),
    (["sh", "-c", "echo > /usr/x"], "/usr/x", "read-only inside"),
])
def test_a_file_that_was_not_granted(cordon, command, path, option):
    path, option = (text.replace("SIBLING", f"{cordon.workspace.parent}/sibling") for text in (path, option))
    done = cordon("run", "--", *command)
    said = remarks(done.stderr)
    assert done.returncode and len(said) == 1 and said[0].startswith(f"cordon: {path} (filesystem): ") and option in said[0], done


@pytest.mark.parametrize("program", [["cat"], ["python3", "-c", "import sys; open(sys.argv[1])"]])
def test_a_path_with_blanks(cordon, program):
    said, = remarks(cordon("run", "--", *program, "/srv/My Files/in put").stderr)
    assert said.endswith("; allowed by --read '/srv/My Files/in put'"), said


def test_whether_it_is_there_is_not_told(cordon, tmp_path):
    """What is refused must not tell the command what there is."""
    (tmp_path / "present").write_text("x")
    for words in (f"cat: {tmp_path}/", "cat: ../", "touch: cannot touch '/srv/"):
        told = [result(cordon, "-c", f"echo \"{words}{name}: No such file or directory\" >&2; exit 1")["denials"]
                for name in ("present", "missing")]
        assert told[0] and json.dumps(told[0]).replace("present", "missing") == json.dumps(told[1]), words


@pytest.mark.parametrize("path", ["/home", "~", "/"])
def test_no_grant_of_all_homes_is_named(cordon, path):
    said = remarks(cordon("run", "-c", f"echo ls: cannot open directory {os.path.expanduser(path)}x: Permission denied >&2; exit 1".replace("x:", ":")).stderr)
    assert all("--read" not in line for line in said), said


def test_a_program_that_is_not_granted(cordon, tmp_path):
    program = tmp_path / "tool/x"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = cordon("run", "--", program)
    assert done.returncode == 127 and "--read" in done.stderr and "check PATH" not in done.stderr, done


def test_names_that_are_hidden_are_told_where_that_explains_something(cordon, hidden):
    """A program may say nothing of a file that it did not find: `DATABASE_URL is missing`."""
    assert remarks(cordon("run", "-c", "cat .env; true").stderr) == []
    for line in ("cat .env", "echo cannot parse .env >&2; exit 1", "echo open: Permission denied >&2; exit 1",
                 "echo DATABASE_URL is missing >&2; exit 1", "exit 1"):
        said = remarks(cordon("run", "-c", line).stderr)
        assert len(said) == 1 and f"--read {cordon.workspace}/.env" in said[0], (line, said)
        assert ("may be why" in said[0]) == (".env" not in line), (line, said)
    (cordon.workspace / "b").mkdir()
    (cordon.workspace / "b/.env").write_text("SECRET=1\n")
    assert "so is 1 more" in cordon("run", "-c", "echo Permission denied >&2; exit 1").stderr


def test_a_signal_is_a_reason_of_its_own(cordon, hidden):
    assert remarks(cordon("run", "-c", "kill -TERM $$").stderr) == []
    assert len(remarks(cordon("run", "-c", "echo open .env >&2; kill -TERM $$").stderr)) == 1


def test_one_denial_hides_no_other(cordon, hidden, tmp_path):
    """What the network, a limit and a name refused, each once; nor does a remark about the workspace itself hide
    them."""
    files = "python3 -c 'import os\nwhile True: os.dup(0)'"
    for line in ("cat .env", files, f"cat .env; {files}"):
        walls = ["network"] + ["limit_files"] * (files in line) + ["masked_names"]
        denials = result(cordon, "--open-files", "64", "-c", f"{OFFLINE}; {line}")["denials"]
        assert sorted(denial["wall"] for denial in denials) == sorted(walls), (line, denials)
    (cordon.workspace / ".git").write_text(f"gitdir: {tmp_path}/elsewhere/worktrees/x\n")
    denials = result(cordon, "--open-files", "64", "-c", f"touch /usr/x; {files}")["denials"]
    assert sorted(denial["wall"] for denial in denials) == ["filesystem", "filesystem", "limit_files",
                                                            "masked_names"], denials


@pytest.mark.parametrize("said, grant", [
    ("ssh: Could not resolve hostname git.example: Name or service not known", "--net git.example:22"),
    ("ssh: connect to host git.example port 2222: Connection refused", "--net git.example:2222"),
    ("curl: (7) Failed to connect to localhost port 8123 after 0 ms: Could not connect to server",
     "--net localhost:8123")])
def test_a_port_that_the_command_names(cordon, said, grant):
    for words in ([], ["--net", "other.example:443"]):
        for before in ("getent hosts git.example;",) if "port" not in said else ("",):
            done = cordon("run", *words, "-c", f"{before} echo '{said}' >&2; exit 1")
            assert [grant in line for line in remarks(done.stderr)] == [True], (words, before, done)


def test_a_path_that_is_empty_and_a_session_that_is_not_there(cordon):
    assert "the path is empty" in cordon("run", "--write", "", "--", "true").stderr
    done = cordon("cache", "clear", "--session", "nope")
    assert done.returncode and "nope" in done.stderr and "no such session" in done.stderr, done


@pytest.mark.parametrize("path", ["/srv/.env", "/srv/x/.ssh/id_rsa", "/srv/server.key"])
def test_no_grant_is_named_for_a_secret(cordon, path):
    """What a command prints must not have a person grant a key."""
    done = cordon("run", "-c", f"echo cat: {path}: No such file or directory >&2; exit 1")
    assert remarks(done.stderr) == [], done


def test_what_a_command_makes_up_is_no_option(cordon):
    done = cordon("run", "-c", "echo 'cat: /srv/$(reboot);x: No such file or directory' >&2; exit 1")
    assert all("reboot" not in line for line in remarks(done.stderr)), done


def test_where_it_was_granted_nothing_is_said(cordon, tmp_path):
    done = cordon("run", "--read", tmp_path, "-c", f"cat {tmp_path}/none; cat /usr/none; cat ./none")
    assert done.returncode == 1 and remarks(done.stderr) == [], done


@pytest.mark.parametrize("command, kept", [
    ("mv library other", "library/.git/config"), ("rm -rf library", "library/.git/config"),
    ("rm library/.git/hooks/x", "library/.git/hooks"), ("echo x > .git/hooks/pre-commit", ".git/hooks"),
    ("git worktree remove tree", "tree/.git"), ("git config core.editor vi", ".git/config"),
    ("python3 -c \"import os; os.rename('library', 'other')\"", "library/.git/config")])
def test_what_is_kept_as_it_is(cordon, command, kept):
    """Once, by its name, and not as if a grant would help."""
    for line in ("git init -q . && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m one",
                 "git init -q library && touch library/.git/hooks/x && git worktree add -q tree && rm -r .git/hooks/*"):
        subprocess.run(line, shell=True, cwd=cordon.workspace, env=cordon.env, check=True, capture_output=True)
    done = cordon("run", "-c", f"rm -f .git/index.lock; {command}")
    said = remarks(done.stderr)
    assert done.returncode and len(said) == 1 and said[0].startswith(f"cordon: {cordon.workspace}/{kept} (protected_names): "), done
    assert "--write" not in said[0], said


def test_doctor_leads_with_one_sentence(cordon):
    done, told = cordon("doctor"), json.loads(cordon("doctor", "--json").stdout)
    first, second = done.stdout.splitlines()[:2]
    assert second == "" and first.endswith(".")
    driver, = (each for each in told["drivers"] if each["name"] == told["default_driver"])
    if driver["holds"] and driver["listed_hosts"]["holds"]:
        assert first.startswith("Everything works here")
        assert ("without a control group" in first) == (not told["limits"]["place"])
    else:
        assert "o fix" in first


def test_doctor_names_git_settings_that_are_left_out(cordon, tmp_path):
    """Once, and not with each command; by their names, since a value may be a secret."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[credential]\n\thelper = store --file=/secret/place\n[pull]\n\trebase = true\n")
    cordon.env |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    done = cordon("doctor")
    assert "left out: credential.helper\n" in done.stdout and "/secret/place" not in done.stdout and "pull.rebase" not in done.stdout
    assert json.loads(cordon("doctor", "--json").stdout)["git_settings_left_out"] == "credential.helper"
    (home / ".gitconfig").write_text("[pull]\n\trebase = true\n")
    assert "left out" not in cordon("doctor").stdout


def test_an_option_is_one_word_of_a_shell(cordon):
    """A command chooses names, and a person copies the option."""
    name = ".env.$(touch pwned) --net all"
    (cordon.workspace / name).write_text("SECRET=1\n")
    said = cordon("run", "-c", f"cat '{name}'").stderr
    option = said.partition("; allowed by ")[2].strip()
    words = subprocess.run(["sh", "-c", f'printf "%s\\n" {option}'], cwd=cordon.workspace, capture_output=True,
                           text=True).stdout
    assert words == f"--read\n{cordon.workspace / name}\n" and not (cordon.workspace / "pwned").exists()
