"""What of cordon's own decides about the next command stays as it is, wherever it lies and whatever leads to it."""
import fcntl
import os
import pathlib

import pytest

from lab import drivers, needs, refused, result


@pytest.fixture
def dots(cordon, tmp_path):
    """A workspace in which the user's configuration lies, by a link and a link to a link."""
    own = cordon.workspace / "own"
    own.mkdir()
    (own / "config.toml").write_text("[limits]\n")
    (cordon.workspace / "hop").symlink_to("own")
    (tmp_path / "config").mkdir()
    (tmp_path / "config/cordon").symlink_to(cordon.workspace / "hop")
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    return own / "config.toml"


@needs("mount-namespace")
def test_the_configuration_in_a_workspace_cannot_be_changed_or_replaced(cordon, dots, tmp_path):
    told = result(cordon, "--write", tmp_path / "config", "-c",
                  f"printf x >own/config.toml; rm -f own/config.toml; mv own away; mv hop away; "
                  f"ln -sfn /tmp hop; mv {tmp_path}/config/cordon {tmp_path}/config/away; ln own/config.toml second; echo y >own/other; true")
    assert told["exit_code"] == 0 and told["denials"] == []
    assert dots.read_text() == "[limits]\n" and os.readlink(cordon.workspace / "hop") == "own"
    assert (tmp_path / "config/cordon").is_symlink() and not (cordon.workspace / "second").exists()
    assert sorted(os.listdir(dots.parent)) == ["config.toml", "other"]


@needs("mount-namespace")
def test_one_that_is_named_or_a_manifest(cordon):
    config, manifest = cordon.workspace / "c.toml", cordon.workspace / "m.toml"
    config.write_text("")
    manifest.write_text("name = \"t\"\n[capabilities.spawn]\nprograms = [\"/bin/sh\"]\n")
    done = cordon("run", "--config", config, "--manifest", "m.toml", "--", "/bin/sh", "-c",
                  "echo >c.toml; echo >m.toml")
    assert done.stderr.count("Read-only") == 2, done.stderr


@drivers("landlock", "bwrap")
def test_a_driver_that_cannot_keep_it_is_refused(cordon, dots, driver):
    error = cordon.refused("--driver", driver, "--", "true")
    assert error["class"] == "spawn_sandbox_unavailable" and error["step"] == "profile" and driver in error["reason"]
    assert error["subject"] == str(cordon.workspace / "hop")


@drivers("landlock")
def test_a_driver_without_a_private_root_shows_nothing_around_cordons_data(cordon, driver, tmp_path):
    """Read access is enough to read the ledger's key, and to lock the ledger's files against all other commands."""
    (tmp_path / "beside").mkdir()
    for words, subject in ((["--read", cordon.data], cordon.data), (["--read", tmp_path], tmp_path),
                           (["--view", "host-readonly"], "/")):
        error = refused(cordon, "--driver", driver, *words, "--", "true")
        assert error["class"] == "spawn_sandbox_unavailable" and error["step"] == "profile" and driver in error["reason"]
        assert error["subject"] == str(subject) and error["boundary"] == "filesystem" and "--driver namespaces" in error["remediation"]
    assert result(cordon, "--driver", driver, "--read", tmp_path / "beside", "--", "true")["exit_code"] == 0


@needs("mount-namespace")
def test_a_private_root_hides_cordons_data_in_what_is_read(cordon, tmp_path):
    told = result(cordon, "--read", cordon.data, "-c", f"ls {cordon.data}/cordon/ledger")
    assert told["exit_code"] != 0 and told["stdout"] == ""


@drivers("landlock")
def test_a_lock_on_the_place_of_temporary_files_is_not_waited_for_for_ever(cordon, driver):
    assert result(cordon, "--driver", driver, "--", "true")["exit_code"] == 0
    lock = os.open(cordon.data / "cordon/scratch", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    error = refused(cordon, "--driver", driver, "--", "true", timeout=60)
    assert error["class"] == "internal" and error["subject"].startswith(str(cordon.data / "cordon/scratch")), error
    os.close(lock)


def test_without_walls_a_change_is_told(cordon, dots):
    told = result(cordon, "--driver", "local", "-c", "echo >>own/config.toml")
    assert [denial["what"] for denial in told["denials"]] == [str(dots)]


def test_what_is_not_there_would_be_the_commands_to_make(cordon, dots):
    dots.unlink()
    error = cordon.refused("--", "true")
    assert error["class"] == "capability_denied" and error["subject"] == str(dots)
    dots.write_text("")
    assert cordon.refused("--write", dots, "--", "true")["class"] == "capability_denied"


@needs("mount-namespace")
def test_a_daemon_that_knows_where_it_lies_hears_that_it_lies_elsewhere(cordon, tmp_path):
    """What is kept of the answer is no longer the answer, and walls that are up are not those that are wanted."""
    own, link = cordon.workspace / "own/config.toml", tmp_path / "config/cordon"
    for path in (own.parent, link.parent, tmp_path / "far"):
        path.mkdir()
    own.write_text("[limits]\n")
    (tmp_path / "far/config.toml").write_text("[limits]\n")
    link.symlink_to(tmp_path / "far")
    cordon.env["XDG_CONFIG_HOME"] = str(link.parent)
    daemon = cordon.popen("serve", text=True)
    assert "listening" in daemon.stdout.readline()
    run = ["run", "--session", "s", "--workspace", cordon.workspace, "-c"]
    for _ in range(4):
        assert cordon(*run, "echo '[limits]' >own/config.toml").returncode == 0
    link.unlink()
    link.symlink_to(own.parent)
    done = cordon(*run, "echo x >own/config.toml; mv own away")
    daemon.terminate()
    daemon.communicate()
    assert "Read-only" in done.stderr and own.read_text() == "[limits]\n", done


@needs("mount-namespace")
def test_the_way_to_cordons_data_stays(cordon, tmp_path):
    outer, real = tmp_path / "outer", tmp_path / "real"
    (outer / "deep").mkdir(parents=True)
    real.mkdir()
    (outer / "deep/link").symlink_to(real)
    cordon.env["XDG_DATA_HOME"] = str(outer / "deep/link")
    assert result(cordon, "-c", "true")["exit_code"] == 0
    done = cordon("run", "--write", outer, "--write", real, "-c",
                  f"mv {outer}/deep {outer}/away; mv {outer}/deep/link {outer}/away; "
                  f"mv {real}/cordon {real}/away")
    assert done.stderr.count("busy") == 3, done.stderr


@needs("mount-namespace")
def test_a_second_name_outside_is_told(cordon, dots, tmp_path):
    dots.unlink()
    outside = tmp_path / "outside.toml"
    outside.write_text("")
    os.link(outside, cordon.workspace / "second")
    told = result(cordon, "--config", outside, "-c", "echo >>second")
    assert [pathlib.Path(denial["what"]) for denial in told["denials"]] == [outside]
