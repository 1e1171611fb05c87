"""What is made from the tables: the manual page and the completions."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM, ROOT

SOURCES = ["door/cli/generate.c", "door/cli/command.c", "door/cli/completion-bash.c", "door/cli/completion-fish.c",
           "door/cli/completion-zsh.c", "door/cli/config-rows.c", "door/cli/options.c", "door/cli/roff.c",
           "base/arena.c", "base/error.c", "base/json.c", "base/text.c", "base/utf8.c"]


def options_of(cordon, command):
    """As help prints them."""
    return re.findall(r"^ +(?:-\w, )?(--[\w-]+)", cordon("help", command).stdout, re.M)


@pytest.fixture(scope="module")
def generate(tmp_path_factory):
    """The build's own generator; compiled here, so that it need not be where the tests are."""
    path = tmp_path_factory.mktemp("generate") / "generate"
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}/include", "-o", path,
                    *(ROOT / "src" / name for name in SOURCES)], check=True)
    return lambda *words: subprocess.run([path, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def page(generate, tmp_path_factory):
    path = tmp_path_factory.mktemp("man") / "cordon.1"
    path.write_text(generate("man", ROOT / "docs/cordon.1.in"))
    return path


@pytest.mark.skipif(not shutil.which("groff"), reason="cannot: groff: not installed")
def test_the_manual_renders_without_a_warning(page):
    for each in (page, ROOT / "docs/cordon-manifest.5"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", each], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == ""


def test_the_manual_is_complete(cordon, page):
    text = page.read_text()
    plain = text.replace("\\-", "-")
    sections = re.findall(r"^\.SH (.*)$", text, re.M)
    assert sections == ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS", "ERRORS",
                        "ENVIRONMENT", "THE DAEMON", "FILES", "EXAMPLES", "NOTES", "SEE ALSO"]
    assert "@" not in text and "cordon " + cordon("version").stdout.split()[1] in text
    for option in options_of(cordon, "run"):
        assert f"\\fB{option}\\fR" in plain, option
    for status in ("124", "125", "126", "127"):
        assert f".B {status}\n" in text


def complete(script, words, cwd="/"):
    """What bash would offer for the last of the words."""
    lines = [f"source {script}", "COMP_WORDS=(" + " ".join(f"'{word}'" for word in words) + ")",
             f"COMP_CWORD={len(words) - 1}", "compopt() { :; }", "_cordon", 'printf "%s\\n" "${COMPREPLY[@]}"']
    done = subprocess.run(["bash", "--norc", "-c", "\n".join(lines)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split()


@pytest.fixture
def bash_script(cordon, tmp_path):
    path = tmp_path / "completion.bash"
    path.write_text(cordon("completion", "bash").stdout)
    return path


COMPLETIONS = [
    (["cordon", "pro"], {"profile"}),
    (["cordon", "url", "c"], {"check"}),
    (["cordon", "run", "--vi"], {"--view"}),
    (["cordon", "run", "--view", ""], {"system", "host-readonly", "bare"}),
    (["cordon", "run", "--view", "=", "h"], {"host-readonly"}),
    (["cordon", "run", "--view", "="], {"system", "host-readonly", "bare"}),
    (["cordon", "run", "--driver", "land"], {"landlock"}),
    (["cordon", "run", "--read", "/etc/passw"], {"/etc/passwd"}),
    (["cordon", "run", "--json", "--workspace", "/usr/shar"], {"/usr/share"}),
    (["cordon", "run", "--view", "bare", "--dri"], {"--driver"}),
    (["cordon", "run", "--", "--vi"], set()),
    (["cordon", "run", "--pass-env", "PWD_NOT_SET"], set()),
    (["cordon", "run", "--timeout", ""], set()),
    (["cordon", "run", "--", "cat", "/etc/passw"], {"/etc/passwd"}),
    (["cordon", "run", "cat", "/etc/passw"], {"/etc/passwd"}),
    (["cordon", "doctor", "--"], {"--config", "--json", "--help"}),
    (["cordon", "manifest", ""], {"check"}),
    (["cordon", "manifest", "check", "/etc/passw"], {"/etc/passwd"}),
    (["cordon", "completion", ""], {"bash", "zsh", "fish"}),
    (["cordon", "help", "do"], {"doctor"}),
]


@pytest.mark.parametrize("words, offered", COMPLETIONS, ids=[" ".join(words) for words, _ in COMPLETIONS])
def test_bash_completes(bash_script, words, offered):
    found = set(complete(bash_script, words))
    assert found - {"/etc/passwd-"} == offered


def test_bash_completes_every_option(cordon, bash_script):
    subprocess.run(["bash", "-n", bash_script], check=True)
    for command in ("run", "profile", "doctor"):
        assert set(options_of(cordon, command)) == set(complete(bash_script, ["cordon", command, "--"]))
    assert "ls" in complete(bash_script, ["cordon", "run", "--", "ls"])


def test_completions_installed_are_those_printed(cordon, generate):
    for shell in ("bash", "zsh", "fish"):
        assert generate(shell) == cordon("completion", shell).stdout


def test_zsh_knows_every_option(cordon):
    script = cordon("completion", "zsh").stdout
    assert script.startswith("#compdef cordon\n")
    for option in options_of(cordon, "run"):
        assert re.search(rf"'\*?{option}=?\[", script), option


@pytest.mark.skipif(not shutil.which("zsh"), reason="cannot: zsh: not installed")
def test_zsh_reads_it(cordon, tmp_path):
    path = tmp_path / "_cordon"
    path.write_text(cordon("completion", "zsh").stdout)
    subprocess.run(["zsh", "-n", path], check=True)


def test_examples_of_the_help_parse(cordon):
    """Every example of run and profile is taken, as a profile; its paths may not exist here."""
    for command in ("run", "profile"):
        for line in re.findall(r"^  (cordon .*)$", cordon("help", command).stdout, re.M):
            line = re.sub(r"^cordon \w+", f'"{PROGRAM}" profile --json', line)
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=cordon.workspace,
                                  env=cordon.env)
            assert "unknown option" not in done.stdout and "needs a value" not in done.stdout, line


@pytest.mark.skipif(not shutil.which("fish"), reason="cannot: fish: not installed")
@pytest.mark.parametrize("line, offered", [
    ("cordon pro", {"profile"}), ("cordon session p", {"pause"}),
    ("cordon run --view ", {"system", "host-readonly", "bare"}), ("cordon run --driver land", {"landlock"}),
    ("cordon doctor --js", {"--json"}), ("cordon completion f", {"fish"}),
    ("cordon run --view bare -- /usr/bin/tru", {"/usr/bin/true"}),
    ("cordon run --timeout 5s /usr/bin/tru", {"/usr/bin/true"}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_fish_completes(cordon, tmp_path, line, offered):
    path = tmp_path / "cordon.fish"
    path.write_text(cordon("completion", "fish").stdout)
    done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"], capture_output=True,
                          text=True, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)})
    assert done.stderr == "" and {row.partition("\t")[0] for row in done.stdout.splitlines()} >= offered
    assert all(row.partition("\t")[0].startswith(line.split(" ")[-1]) for row in done.stdout.splitlines())


@pytest.mark.skipif(not shutil.which("fish"), reason="cannot: fish: not installed")
def test_fish_completes_every_option(cordon, tmp_path):
    path = tmp_path / "cordon.fish"
    path.write_text(cordon("completion", "fish").stdout)
    for command in ("run", "profile", "doctor"):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C 'cordon {command} --'"],
                              capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)})
        assert set(options_of(cordon, command)) <= {row.partition("\t")[0] for row in done.stdout.splitlines()}
