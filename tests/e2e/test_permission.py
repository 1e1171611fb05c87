"""What a session may have: its baseline, what was granted, what the configuration and a manifest say; and that a
one-off has what it asks for. The questions themselves are in test_approvals.py."""
import concurrent.futures
import json
import os
import shutil
import socket

import pytest

from lab import refused, result, rows


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "outside"
    path.mkdir()
    (path / "file").write_text("seen\n")
    return path


@pytest.fixture
def configure(cordon, tmp_path):
    """configure(text): the user's configuration from now on."""
    place = tmp_path / "config/cordon"
    place.mkdir(parents=True)
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")

    def write(text):
        fresh = place / "new"
        fresh.write_text(text)
        fresh.replace(place / "config.toml")
    return write


# ---- baseline and asking ---------------------------------------------------------------------------------------------

def test_a_one_off_has_what_it_asks_for_and_a_session_must_be_allowed_it(cordon, outside):
    assert cordon("run", "--read", outside, "--", "cat", outside / "file").stdout == "seen\n"
    error = refused(cordon, "--session", "s", "--read", outside, "--", "cat", outside / "file")
    assert (error["class"], error["step"]) == ("capability_denied", "capability")
    assert str(outside) in error["subject"] and error["remediation"]
    assert cordon("run", "--session", "s", "--", "true").returncode == 0, "asking in vain pauses nothing"


@pytest.mark.parametrize("words", [["--write", "OUTSIDE"], ["--net", "all"], ["--timeout", "5m"], ["--memory", "4G"],
                                   ["--processes", "65"], ["--max-output", "2M"], ["--device", "/dev/null"]],
                         ids=lambda words: words[0])
def test_what_exceeds_the_baseline_is_refused_in_a_session(cordon, outside, words):
    words = [str(outside) if word == "OUTSIDE" else word for word in words]
    assert refused(cordon, "--session", "s", *words, "--", "true")["class"] == "capability_denied"
    assert cordon("run", *words, "--", "true").returncode == 0


@pytest.mark.parametrize("words", [["--timeout", "5s"], ["--memory", "1G"], ["--processes", "8"], ["--net", "none"],
                                   ["--no-spawn"], ["--program", "/usr/bin/true"], ["--max-output", "1k"]],
                         ids=lambda words: words[0])
def test_less_than_the_baseline_needs_no_asking(cordon, words):
    assert cordon("run", "--session", "s", *words, "--", "/usr/bin/true").returncode == 0


def test_a_session_has_no_weaker_walls_than_the_configuration_gives(cordon, configure, outside):
    """Nobody would be asked about a driver that holds nothing, or a view of everything."""
    for words in (["--driver", "local"], ["--driver", "landlock"], ["--driver", "auto"], ["--view", "host-readonly"]):
        error = refused(cordon, "--session", "s", *words, "--", "cat", outside / "file")
        assert (error["class"], error["boundary"], error["subject"]) == ("capability_denied", "policy", words[0][2:])
        assert "sandbox." + words[0][2:] in error["remediation"]
    for words in (["--driver", "namespaces"], ["--view", "system"], ["--toolchain", "none"]):
        assert cordon("run", "--session", "s", *words, "--", "true").returncode == 0
    configure('[sandbox]\ndriver = "local"\nview = "host-readonly"\ntoolchains = ["cargo"]\n')
    for words in (["--driver", "local"], ["--driver", "namespaces"], ["--view", "system"], ["--toolchain", "cargo"]):
        assert cordon("run", "--session", "s", *words, "--", "true").returncode == 0, words
    assert refused(cordon, "--session", "s", "--toolchain", "go", "--", "true")["subject"] == "toolchain"
    assert refused(cordon, "--session", "s", "--driver", "landlock", "--", "true")["subject"] == "driver"


def test_no_network_is_none_whatever_the_baseline(cordon, configure, tmp_path):
    configure('[capabilities]\nnetwork = "all"\n')
    for words in ([], ["--session", "s"]):
        assert cordon("run", *words, "-c", "echo $CORDON_NETWORK").stdout == "all\n"
        told = result(cordon, *words, "--net", "none", "-c", "echo $CORDON_NETWORK")
        assert told["stdout"] == "none\n" and told["isolation"]["network"] != "none"
    done = cordon("session", "new", "t", "--net", "none")
    assert done.returncode == 125 and "[[session]]" in done.stderr


def test_what_a_session_was_given_when_it_was_made(cordon, outside):
    assert cordon("session", "new", "s", "--read", outside, "--timeout", "5m").returncode == 0
    assert cordon("run", "--session", "s", "--", "cat", outside / "file").stdout == "seen\n"
    assert cordon("run", "--session", "s", "--timeout", "4m", "--", "true").returncode == 0
    for words in (["--write", outside], ["--timeout", "6m"]):
        assert refused(cordon, "--session", "s", *words, "--", "true")["class"] == "capability_denied"
    assert cordon("session", "new", "strict", "--no-spawn").returncode == 0
    assert cordon("run", "--session", "strict", "-c", "/usr/bin/true & wait").returncode != 0
    assert refused(cordon, "--session", "strict", "--spawn", "--", "true")["class"] == "capability_denied"


def test_a_link_in_what_was_granted_grants_nothing(cordon, outside, tmp_path):
    """Within is judged by what a path really is."""
    granted = tmp_path / "granted"
    granted.mkdir()
    (granted / "inside").mkdir()
    (granted / "link").symlink_to(outside)
    assert cordon("session", "new", "s", "--read", granted).returncode == 0
    assert cordon("run", "--session", "s", "--read", granted / "inside", "--", "true").returncode == 0
    assert refused(cordon, "--session", "s", "--read", granted / "link", "--", "true")["class"] == "capability_denied"
    assert refused(cordon, "--session", "s", "--read", granted / "../outside", "--",
                   "true")["class"] == "capability_denied"


def test_a_link_that_a_command_left_does_not_choose_whatever_leads_to_it(cordon, configure, outside, tmp_path):
    """A person names it by a link of their own, which leads to, or through, what the command left."""
    (tmp_path / "current").symlink_to(cordon.workspace)
    (tmp_path / "corpus").symlink_to(tmp_path / "current/data")
    inside = cordon.workspace / "real"
    inside.mkdir()
    names = [tmp_path / "current/data", tmp_path / "corpus", cordon.workspace / "real/../data"]
    assert cordon("run", "--", "ln", "-s", outside, "data").returncode == 0
    for name in names:
        for option in ("--read", "--write"):
            error = refused(cordon, option, name, "--", "cat", outside / "file")
            assert error["class"] == "capability_denied" and "symbolic link" in error["reason"], (option, name)
    configure(f'[capabilities]\nfs_read = ["{tmp_path}/corpus"]\n')
    assert refused(cordon, "--session", "s", "--workspace", cordon.workspace, "--",
                   "true")["class"] == "capability_denied"
    configure("")
    assert cordon("run", "--", "ln", "-sfn", "real", "data").returncode == 0
    assert cordon("run", "--read", tmp_path / "corpus", "--", "true").returncode == 0, "it stays inside"


def test_a_link_that_a_command_left_does_not_choose_which_socket_is_granted(cordon, tmp_path):
    host = tmp_path / "host.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(host))
        assert cordon("run", "--", "ln", "-s", host, "dev.sock").returncode == 0
        error = refused(cordon, "--socket", cordon.workspace / "dev.sock", "--", "true")
        assert error["class"] == "capability_denied" and "symbolic link" in error["reason"]
        assert cordon("run", "--socket", host, "--", "true").returncode == 0


def test_a_workspace_that_became_a_link(cordon, outside, tmp_path):
    place = tmp_path / "project"
    place.mkdir()
    assert cordon("run", "--session", "s", "--workspace", place, "-c", "touch here").returncode == 0
    assert cordon("run", "--session", "s", "--", "ls").stdout == "here\n", "the session keeps its workspace"
    place.rename(tmp_path / "moved")
    place.symlink_to(outside)
    error = refused(cordon, "--session", "s", "--", "touch", "made")
    assert error["class"] in ("capability_denied", "invalid_request") and error["step"] == "session"
    error = refused(cordon, "--session", "s", "--workspace", place, "--", "touch", "made")
    assert error["class"] in ("capability_denied", "invalid_request")
    assert not (outside / "made").exists()


def test_a_session_has_one_workspace(cordon, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert cordon("run", "--session", "s", "--workspace", cordon.workspace, "--", "true").returncode == 0
    assert refused(cordon, "--session", "s", "--workspace", other, "--", "true")["class"] == "invalid_request"
    assert cordon("run", "--session", "own", "--", "true").returncode == 0
    assert refused(cordon, "--session", "own", "--workspace", other, "--", "true")["class"] == "invalid_request"


# ---- states ----------------------------------------------------------------------------------------------------------

def test_a_paused_and_an_ended_session_run_nothing(cordon):
    assert cordon("run", "--session", "s", "--", "true").returncode == 0
    assert cordon("session", "pause", "s", "--why", "lunch").returncode == 0
    error = refused(cordon, "--session", "s", "--", "touch", "made")
    assert error["class"] == "session_paused" and "lunch" in error["reason"] and error["step"] == "session"
    assert cordon("session", "resume", "s").returncode == 0
    assert cordon("run", "--session", "s", "-c", "[ ! -e made ]").returncode == 0
    assert cordon("session", "end", "s").returncode == 0
    assert refused(cordon, "--session", "s", "--", "true")["class"] == "session_ended"
    assert cordon("session", "rm", "s").returncode == 0
    assert cordon("run", "--session", "s", "-c", "ls").stdout == ""


def test_64_processes_begin_one_session(cordon):
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        runs = [pool.submit(cordon, "run", "--session", "new", "-c", f"pwd; echo {n} > {n}", timeout=120)
                for n in range(64)]
        done = [run.result() for run in runs]
    assert [run.returncode for run in done] == [0] * 64, [run.stderr for run in done if run.returncode]
    place, = {run.stdout for run in done}
    # The workspace is the home, too, with mount points for package caches.
    assert sorted(int(name) for name in os.listdir(place.strip()) if not name.startswith(".")) == list(range(64))
    assert len(list((cordon.data / "cordon/workspaces").iterdir())) == 1
    assert len(json.loads(cordon("session", "list", "--json").stdout)["sessions"]) == 1
    kinds = [row["row"] for row in rows(cordon)]
    assert (kinds.count("session"), kinds.count("intent"), kinds.count("result")) == (1, 64, 64)
    assert cordon("audit", "verify").returncode == 0


# ---- configuration ---------------------------------------------------------------------------------------------------

def test_switched_off_means_nothing_runs_and_nothing_is_made(cordon, configure):
    configure("[sandbox]\nenabled = false\n")
    for words in (["run", "--", "touch", "made"], ["run", "--session", "s", "--", "touch", "made"],
                  ["profile", "--", "true"], ["session", "new", "s"], ["approvals", "list"],
                  ["approvals", "deny", "01AAAAAAAAAAAAAAAAAAAAAAAA"]):
        done = cordon(words[0], "--json", *words[1:]) if words[0] == "run" else cordon(*words)
        assert done.returncode == 125 and "switched off" in done.stdout + done.stderr, (words, done)
    assert json.loads(cordon("run", "--json", "--", "true").stdout)["error"]["class"] == "sandbox_disabled"
    assert not cordon.data.exists() and list(cordon.workspace.iterdir()) == []


def test_the_baseline_is_the_configuration_s(cordon, configure, outside):
    configure(f'[capabilities]\nfs_read = ["{outside}"]\n[limits]\ntime = "5m"\nprocesses = 5\n[env]\npassthrough = ["SEEN"]\n'
              '[env.set]\nGIVEN = "value"\n')
    cordon.env["SEEN"] = "passed"
    told = result(cordon, "--session", "s", "--timeout", "4m", "-c", f"cat {outside}/file; echo $SEEN $GIVEN")
    assert told["stdout"] == "seen\npassed value\n"
    assert refused(cordon, "--session", "s", "--processes", "6", "--", "true")["class"] == "capability_denied"
    assert "value" not in json.dumps(rows(cordon)), "what is set is the child's alone"


def test_a_profile_hides_what_was_configured_or_passed_on(cordon, configure):
    configure('[env]\npassthrough = ["SEEN"]\n[env.set]\nGIVEN = "out-of-sight"\n')
    cordon.env.update(SEEN="out-of-sight", ASKED="out-of-sight")
    done = cordon("profile", "--env", "OWN=typed", "--pass-env", "ASKED", "--", "true")
    assert done.returncode == 0 and "out-of-sight" not in done.stdout
    told = json.loads(done.stdout)["environment"]
    assert {"GIVEN=(hidden)", "SEEN=(hidden)", "ASKED=(hidden)", "OWN=typed"} <= set(told)


def test_a_change_takes_effect_for_the_next_command(cordon, configure, outside):
    configure(f'[capabilities]\nfs_read = ["{outside}"]\n')
    assert cordon("run", "--session", "s", "--", "cat", outside / "file").stdout == "seen\n"
    configure("")
    assert cordon("run", "--session", "s", "--", "cat", outside / "file").returncode != 0


def test_an_invalid_file_leaves_the_last_good_one_in_force_and_says_so_once(cordon, configure, outside):
    configure(f'[capabilities]\nfs_read = ["{outside}"]\n')
    assert cordon("run", "--", "cat", outside / "file").stdout == "seen\n"
    configure('[capabilities]\nfs_raed = ["/"]\n')
    told = result(cordon, "--", "cat", outside / "file")
    assert told["stdout"] == "seen\n" and "config.toml:2:1" in told["note"] and "fs_read" in told["note"]
    assert [row["row"] for row in rows(cordon)].count("config") == 1
    assert "note" not in result(cordon, "--", "cat", outside / "file")
    assert [row["row"] for row in rows(cordon)].count("config") == 1


def test_an_invalid_file_that_was_never_good_refuses(cordon, configure):
    configure("[capabilities\n")
    error = refused(cordon, "--", "touch", "made")
    assert error["class"] == "config_invalid" and "config.toml:1:" in error["subject"]
    assert list(cordon.workspace.iterdir()) == []


def test_a_project_can_only_narrow(cordon, outside):
    (cordon.workspace / ".cordon.toml").write_text("[limits]\nprocesses = 7\n[capabilities]\nspawn = false\n")
    assert cordon("run", "-c", "/usr/bin/true & wait").returncode != 0
    other = cordon.workspace.parent / "other"
    other.mkdir()
    (other / ".cordon.toml").write_text(f'\n[capabilities]\nfs_read = ["{outside}"]\n')
    error = refused(cordon, "--workspace", other, "--", "cat", outside / "file")
    assert error["class"] == "config_invalid" and ".cordon.toml:3:1" in error["subject"]


def test_read_only_wins_over_writable(cordon, configure, outside):
    (outside / "data").mkdir()
    configure(f'[capabilities]\nread_only = ["{outside}/data"]\n')
    done = cordon("run", "--write", outside, "-c", f"touch {outside}/made; touch {outside}/data/made")
    assert done.returncode != 0 and (outside / "made").exists() and not (outside / "data/made").exists()
    done = cordon("run", "--write", outside, "-c", f"mv {outside}/data {outside}/away")
    assert done.returncode != 0 and (outside / "data").is_dir()


def test_read_only_by_another_name(cordon, configure, tmp_path):
    (cordon.workspace / "data").mkdir()
    (tmp_path / "current").symlink_to(cordon.workspace)
    configure(f'[capabilities]\nread_only = ["{tmp_path}/current/data", "{tmp_path}/missing"]\n')
    assert cordon("run", "--", "touch", "data/made").returncode != 0
    assert not (cordon.workspace / "data/made").exists()


def test_a_workspace_root_of_ones_own(cordon, configure, tmp_path):
    root = tmp_path / "roots"
    root.mkdir()
    configure(f'[sandbox]\nworkspace_root = "{root}"\n')
    assert cordon("run", "--session", "a", "-c", "echo secret > file").returncode == 0
    [place] = root.iterdir()
    assert (place / "file").read_text() == "secret\n" and place.stat().st_mode & 0o7777 == 0o700
    assert cordon("run", "--session", "b", "--", "cat", place / "file").returncode != 0
    for grant in (place, root, tmp_path):
        assert refused(cordon, "--read", grant, "--workspace", cordon.workspace, "--",
                       "true")["class"] == "capability_denied"
        assert refused(cordon, "--workspace", grant, "--", "true")["class"] == "capability_denied"
    assert cordon("session", "new", "c", "--workspace", place).returncode == 125
    # By a link it is the same place.
    (tmp_path / "link").symlink_to(root)
    configure(f'[sandbox]\nworkspace_root = "{tmp_path}/link"\n')
    assert cordon("run", "--session", "d", "-c", "pwd").stdout.startswith(str(root)), "as it really is"
    for grant in (place, root):
        assert refused(cordon, "--read", grant, "--workspace", cordon.workspace, "--",
                       "true")["class"] == "capability_denied"
        assert refused(cordon, "--workspace", grant, "--", "true")["class"] == "capability_denied"


def test_a_view_of_the_whole_host_cannot_hide_that_root(cordon, configure, tmp_path):
    (tmp_path / "roots").mkdir()
    configure(f'[sandbox]\nworkspace_root = "{tmp_path}/roots"\nview = "host-readonly"\n')
    error = refused(cordon, "--session", "a", "--", "true")
    assert error["class"] == "spawn_sandbox_unavailable" and error["subject"] == f"{tmp_path}/roots"


def test_a_project_that_switches_off_is_obeyed_and_recorded(cordon):
    (cordon.workspace / ".cordon.toml").write_text("[sandbox]\nenabled = false\n")
    assert refused(cordon, "--", "touch", "made")["class"] == "sandbox_disabled"


def test_tools_come_first_and_are_read_only(cordon, configure, tmp_path):
    tools = tmp_path / "tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin/ls").write_text("#!/bin/sh\necho mine\n")
    (tools / "bin/ls").chmod(0o755)
    configure(f'[tools]\ndir = "{tools}"\n')
    assert cordon("run", "--", "ls").stdout == "mine\n"
    assert cordon("run", "-c", f"echo x > {tools}/bin/ls").returncode != 0
    assert (tools / "bin/ls").read_text().startswith("#!")


# ---- tool policy -----------------------------------------------------------------------------------------------------

def rule(tool, match, decision):
    return f'[[policy.rules]]\ntool = "{tool}"\nmatch = "{match}"\ndecision = "{decision}"\n'


def test_rules_decide_by_the_program_that_is_found(cordon, configure):
    real = os.path.realpath(shutil.which("cat", path="/usr/bin:/bin"))
    configure(rule("run", real, "deny"))
    for words in (["cat"], [real], ["/bin/../bin/cat"]):
        error = refused(cordon, "--", *words)
        assert (error["class"], error["boundary"], error["step"]) == ("capability_denied", "policy", "capability")
        assert "config.toml:1" in error["remediation"]
    assert cordon("run", "--", "true").returncode == 0


def own_program(directory, name):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text("#!/bin/sh\necho mine\n")
    (directory / name).chmod(0o755)
    return directory / name


def test_what_was_judged_is_what_starts(cordon, configure, tmp_path, outside):
    """A PATH of the request's own decides what starts, so it decides what is judged."""
    own = own_program(cordon.workspace / "bin", "cat")
    words = ["--env", f"PATH={own.parent}", "--", "cat"]
    assert cordon("run", *words).stdout == "mine\n"
    configure(rule("run", own, "deny"))
    assert refused(cordon, *words)["subject"] == str(own)
    configure(rule("run", "/usr/bin/cat", "allow") + rule("run", "**", "deny"))
    assert refused(cordon, *words)["subject"] == str(own)
    configure(rule("run", "/usr/bin/cat", "deny"))
    assert cordon("run", *words).stdout == "mine\n", "the rule is about another one"
    configure(f'[env]\nset = {{ PATH = "{own.parent}" }}\n' + rule("run", own, "deny"))
    assert refused(cordon, "--", "cat")["subject"] == str(own)
    tools = own_program(tmp_path / "tools/bin", "cat")
    configure(f'[tools]\ndir = "{tmp_path}/tools"\n' + rule("run", tools, "deny"))
    assert refused(cordon, "--", "cat")["subject"] == str(tools)
    # Nor does what a manifest declares for one program go to another of its name.
    configure("")
    error = refused(cordon, "--manifest", manifest(tmp_path, outside), *words, "x", status=126)
    assert error["class"] == "program_not_allowed"


def test_a_link_does_not_lead_past_a_rule(cordon, configure, tmp_path):
    """Rules hold for both names: what was called, and what it leads to."""
    own = own_program(tmp_path / "programs", "tool-1.2")
    (own.parent / "tool").symlink_to("tool-1.2")
    words = ["--read", own.parent, "--env", f"PATH={own.parent}", "--", "tool"]
    assert cordon("run", *words).stdout == "mine\n"
    for match in (own.parent / "tool", own, "tool", "tool-*"):
        configure(rule("run", match, "deny"))
        assert refused(cordon, *words)["class"] == "capability_denied", match
    configure(rule("run", own.parent / "tool", "allow") + rule("run", own, "deny"))
    assert refused(cordon, *words)["class"] == "capability_denied", "the stricter counts"


def test_a_program_that_is_only_there_inside_is_judged(cordon, configure):
    """The session's home is another directory than the caller's, at the same path."""
    script = "mkdir -p ~/bin && printf '#!/bin/sh\\necho mine\\n' >~/bin/onlyhere && chmod +x ~/bin/onlyhere && echo $HOME"
    home = cordon("run", "--session", "s", "--workspace", cordon.workspace, "-c", script).stdout.strip()
    assert home != str(cordon.workspace) and not os.path.exists(f"{home}/bin/onlyhere")
    for words in (["--env", f"PATH={home}/bin", "--", "onlyhere"], ["--", f"{home}/bin/onlyhere"]):
        configure(rule("run", "/usr/**", "deny"))
        assert cordon("run", "--session", "s", *words).stdout == "mine\n"
        for match, decision in ((f"{home}/bin/*", "deny"), ("onlyhere", "ask"), ("/**", "deny")):
            configure(rule("run", match, decision))
            assert refused(cordon, "--session", "s", *words)["class"] == "capability_denied", (words, match)


def test_a_rule_that_asks_is_a_refusal_where_nobody_can_be_asked(cordon, configure):
    configure(rule("run", "/**", "ask"))
    assert refused(cordon, "--", "true")["class"] == "capability_denied"
    configure(rule("run", "/**/true", "allow") + rule("run", "/**", "ask"))
    assert cordon("run", "--", "true").returncode == 0


def test_a_driver_that_holds_no_writes_is_asked_about_where_paths_are_limited(cordon, configure, outside):
    """Judged by the walls: local holds none of them."""
    configure(f'[policy]\nallowed_paths = ["{outside}"]\n')
    assert cordon("run", "--", "true").returncode == 0
    error = refused(cordon, "--driver", "local", "--", "true")
    assert error["class"] == "capability_denied"
    assert cordon("run", "--driver", "landlock", "--", "true").returncode == 0


@pytest.mark.parametrize("driver", ["namespaces", "landlock", "bwrap", "local"])
def test_what_a_driver_says_of_writes_is_what_it_does(cordon, configure, outside, driver):
    configure(f'[policy]\nallowed_paths = ["{outside}"]\n')
    asked = cordon("run", "--driver", driver, "--", "true").returncode == 125
    configure("")
    told = result(cordon, "--driver", driver, "--", "true")
    assert asked == (told["isolation"].get("filesystem", "none") == "none")


# ---- manifests -------------------------------------------------------------------------------------------------------

def manifest(tmp_path, outside, *extra):
    path = tmp_path / "tool.toml"
    path.write_text('\n'.join(['name = "show"', '[capabilities.spawn]', 'programs = ["/usr/bin/cat"]',
                               'argv = [["{file}"]]', f'fs_read = ["{outside}"]', *extra]) + "\n")
    return path


def test_a_manifest_grants_what_it_declares_to_the_command_it_describes(cordon, outside, tmp_path):
    tool = manifest(tmp_path, outside)
    assert cordon("run", "--manifest", tool, "--", "cat", outside / "file").stdout == "seen\n"
    for words in (["cat"], ["cat", "-n"], ["cat", ""], ["cat", "a", "b"], ["ls", "x"], ["sh", "-c", "cat x"]):
        error = refused(cordon, "--manifest", tool, "--", *words, status=126)
        assert error["class"] == "program_not_allowed", (words, error)
    assert cordon("profile", "--manifest", tool, "--", "cat").returncode == 126


def test_a_manifest_in_a_session_asks(cordon, outside, tmp_path):
    tool = manifest(tmp_path, outside)
    assert refused(cordon, "--session", "s", "--manifest", tool, "--", "cat",
                   outside / "file")["class"] == "capability_denied"
    assert cordon("session", "new", "t", "--read", outside).returncode == 0
    assert cordon("run", "--session", "t", "--manifest", tool, "--", "cat", outside / "file").stdout == "seen\n"
