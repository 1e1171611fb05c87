"""Secrets in what commands are started with and in what they write: hidden, reported or blocked, the same at every
door, and never in a row of the ledger."""
import base64
import hashlib
import json
import os
import pathlib
import subprocess

import pytest

from conftest import PATIENCE, wait_until
from lab import result, rows, rows_of  # noqa: F401

# Put together here, so that no scanner takes this file for a leak.
TOKEN = "ghp" + "_R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK"
OWN = "correct7horse+battery"


@pytest.fixture
def secret(cordon, workspace):
    """A file with a token, another with the caller's own secret, which is in the caller's environment."""
    cordon.env["MY_TOKEN"] = OWN
    (workspace / "token").write_text(f"a {TOKEN} b\n")
    (workspace / "own").write_text(f"a {OWN} b\n")
    return cordon


def everything(data):
    """All that cordon keeps, but what commands wrote themselves."""
    return b"".join(path.read_bytes() for path in pathlib.Path(data).rglob("*")
                    if path.is_file() and os.access(path, os.R_OK))


def test_a_result_has_no_secret_in_it(secret):
    told = result(secret, "-c", "cat token; cat own >&2")
    assert told["stdout"] == "a [REDACTED:github-token] b\n" and told["stderr"] == "a [REDACTED:MY_TOKEN] b\n"
    assert (told["stdout_bytes"], told["stderr_bytes"]) == (len(TOKEN) + 5, len(OWN) + 5)
    assert [(each["kind"], each["name"], each["where"], each["layer"], each["offset"], each["action"])
            for each in told["secrets"]] == [
        ("github-token", "github-token", "stdout", "raw", 2, "redact"),
        ("own", "MY_TOKEN", "stderr", "raw", 2, "redact")]
    denial, = told["denials"]
    assert denial["wall"] == "secrets" and "github-token" in denial["what"] and "--secrets report" in denial["grant"]
    row, = [row for row in rows_of(secret, told["audit_id"]) if row["row"] == "result"]
    assert [each["fingerprint"] for each in row["secrets"]] == [each["fingerprint"] for each in told["secrets"]]
    # The hash is of what was delivered.
    assert row["stdout"]["sha256"] == hashlib.sha256(told["stdout"].encode()).hexdigest()
    kept = everything(secret.data)
    assert TOKEN.encode() not in kept and OWN.encode() not in kept


def test_the_same_secret_has_the_same_fingerprint(secret, workspace):
    (workspace / "encoded").write_text(base64.b64encode(f"x {TOKEN}".encode()).decode())
    first, second = result(secret, "cat", "token"), result(secret, "cat", "encoded")
    assert second["secrets"][0]["layer"] == "base64" and TOKEN not in second["stdout"]
    assert first["secrets"][0]["fingerprint"] == second["secrets"][0]["fingerprint"]
    key = secret.data / "cordon/secrets.key"
    assert key.stat().st_size == 32 and key.stat().st_mode & 0o777 == 0o600


def test_plain_run_changes_nothing(secret):
    done = secret("run", "cat", "token", "own")
    assert done.returncode == 0 and done.stdout == f"a {TOKEN} b\na {OWN} b\n" and done.stderr == ""
    row = [row for row in rows(secret) if row["row"] == "result"][-1]
    assert [(each["name"], each["action"]) for each in row["secrets"]] == [("github-token", "report"),
                                                                           ("MY_TOKEN", "report")]


def test_plain_run_redacts_on_request_as_output_comes(secret):
    # The second half comes much later than what is held may be held: what came first is there by then, the rest never.
    process = secret.popen("run", "--secrets", "redact", "sh", "-c",
                           f"printf 'first %.8s' '{OWN}'; read go; printf %s '{OWN[8:]}'; echo .",
                           stdin=subprocess.PIPE)
    os.set_blocking(process.stdout.fileno(), False)
    seen = b""

    def look():
        nonlocal seen
        seen += process.stdout.read() or b""
        return seen == b"first " + OWN[:8].encode()
    assert wait_until(look), seen
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    os.set_blocking(process.stdout.fileno(), True)
    assert seen + process.stdout.read() == b"first " + OWN[:8].encode() + b"[REDACTED:MY_TOKEN].\n"
    process.stdout.close()
    process.stderr.close()


def test_a_block_fails_and_passes_nothing_on(secret):
    done = secret("run", "--json", "--secrets", "block", "-c", "echo before; cat own; echo after")
    told = json.loads(done.stdout)
    assert done.returncode == 125 and told["error"]["class"] == "leak_blocked" and told["error"]["boundary"] == "secrets"
    assert "after" not in told["stdout"] and OWN not in done.stdout
    row = [row for row in rows(secret) if row["row"] == "result"][-1]
    assert row["secrets"][0]["action"] == "block"


def test_own_secrets_do_not_leave_by_arguments(secret):
    done = secret("run", "--json", "echo", OWN)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 125 and error["class"] == "leak_blocked" and error["subject"] == "argument 1"
    assert "MY_TOKEN" in error["reason"] and OWN not in done.stdout + done.stderr
    assert [row for row in rows(secret) if row["row"] == "denial"][-1]["error"]["class"] == "leak_blocked"
    encoded = base64.b64encode(OWN.encode()).decode()
    assert json.loads(secret("run", "--json", "--session", "s", "echo",
                             encoded).stdout)["error"]["class"] == "leak_blocked"
    assert OWN.encode() not in everything(secret.data)
    # Another kind is only noted; a plain run is not kept from it.
    assert result(secret, "true", TOKEN)["secrets"][0]["where"] == "argument 1"
    assert secret("run", "echo", OWN).stdout == f"{OWN}\n"


def test_an_own_secret_within_another_kind_does_not_leave_either(secret, tmp_path):
    """A file of AWS, both halves of a key: the kind is only reported, what is the caller's own is not."""
    own = "kRJ7pQ2xVb9mYt4LwZc6Hn1sDf8gA5uE3oTiKy0W"
    secret.env["AWS_SECRET_ACCESS_KEY"] = own
    text = f"aws_access_key_id = AKIA{'Q3ZP7KX2MWN5TRLV'}\naws_secret = {own}\n"
    error = json.loads(secret("run", "--json", "echo", text).stdout)["error"]
    assert error["class"] == "leak_blocked" and "AWS_SECRET_ACCESS_KEY" in error["reason"], error
    assert file_tool(secret, "write", "creds", "--content",
                     text)["class"] == "leak_blocked" and not (secret.workspace / "creds").exists()
    # In output, too, where the kind is one to report.
    config = tmp_path / "config.toml"
    config.write_text('[secrets]\nreport = ["aws-key"]\n')
    (secret.workspace / "creds").write_text(text)
    told = result(secret, "--config", config, "cat", "creds")
    assert told["stdout"] == text.replace(own, "[REDACTED:AWS_SECRET_ACCESS_KEY]")
    assert [(one["kind"], one["action"]) for one in told["secrets"]] == [("aws-key", "report"), ("own", "redact")]
    alone = result(secret, "-c", f"tail -c {len(own) + 1} creds")
    assert alone["secrets"][0]["fingerprint"] == told["secrets"][1]["fingerprint"]
    assert own.encode() not in everything(secret.data)


def test_what_is_given_by_name_is_exempt(secret):
    for option in (["--pass-env", "MY_TOKEN"], ["--env", f"OTHER={OWN}"]):
        told = result(secret, *option, "cat", "own")
        assert told["stdout"] == f"a {OWN} b\n" and "secrets" not in told
    assert result(secret, "--env", f"T={TOKEN}", "-c", "echo $T")["stdout"] == TOKEN + "\n"


def test_the_configuration_chooses_by_kind(secret, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[secrets]\nreport = ["github-token"]\nblock = ["own"]\n')
    assert TOKEN in result(secret, "--config", config, "cat", "token")["stdout"]
    assert json.loads(secret("run", "--json", "--config", config, "cat",
                             "own").stdout)["error"]["class"] == "leak_blocked"
    config.write_text('secrets.output = "redact"\n')
    error = json.loads(secret("run", "--json", "--config", config, "--secrets", "report", "true").stdout)["error"]
    assert error["class"] == "capability_denied" and "secrets.output" in error["reason"]
    config.write_text('secrets.block = ["github-tokens"]\n')
    error = json.loads(secret("run", "--json", "--config", config, "true").stdout)["error"]
    assert error["class"] == "config_invalid" and "github-token" in error["remediation"]


def test_a_job_has_no_secret_in_its_output(secret):
    job = secret("job", "start", "--session", "s", "--workspace", secret.workspace, "--", "cat", "token",
                 "own").stdout.strip()
    assert secret("job", "wait", job).returncode == 0
    shown = secret("job", "tail", job).stdout
    assert shown == "a [REDACTED:github-token] b\na [REDACTED:MY_TOKEN] b\n"
    kept = everything(secret.data)
    assert TOKEN.encode() not in kept and OWN.encode() not in kept


def test_a_jobs_own_words_are_kept_without_secrets(secret):
    """A kind that is only reported, and what was given by name, is the job's to have, and not its record's; an own
    secret is no job's."""
    started = secret("job", "start", "--session", "s", "--workspace", secret.workspace, "--env", f"MINE={OWN[::-1]}",
                     "--", "sh", "-c", f"test {TOKEN} = $0", TOKEN)
    assert secret("job", "wait", started.stdout.strip()).returncode == 0, started
    listed = secret("job", "list", "--json").stdout
    assert TOKEN not in listed and "[REDACTED:github-token]" in listed and TOKEN.encode() not in everything(secret.data)
    done = secret("job", "start", "--session", "s", "--", "echo", OWN)
    assert done.returncode == 125 and "MY_TOKEN" in done.stderr and OWN.encode() not in everything(secret.data)


def test_a_daemon_looks_for_the_secrets_of_its_client(secret):
    env = {name: value for name, value in secret.env.items() if name != "MY_TOKEN"}
    daemon = secret.popen("serve", env=env)
    try:
        assert wait_until(lambda: (secret.data / "cordon/daemon.sock").exists())
        done = secret("run", "--session", "s", "--workspace", secret.workspace, "cat", "own")
        assert done.returncode == 0 and done.stdout == "a [REDACTED:MY_TOKEN] b\n", done
    finally:
        daemon.terminate()
        daemon.communicate(timeout=PATIENCE)


def test_it_is_told_that_some_secrets_are_not_looked_for(secret):
    assert result(secret, "cat", "own")["denials"][0]["note"] == "1 secret replaced by [REDACTED:name]"
    secret.env.update({f"S{i}_TOKEN": f"Zx{i}#kQ2vLm7!" for i in range(4100)})
    note, = [each for each in result(secret, "true")["denials"] if each["what"] == "own secrets"]
    assert note["wall"] == "secrets" and "not looked for" in note["note"] and "4096" in note["note"]


def test_what_is_hidden_is_not_told_as_a_cut(secret):
    """A pipe has what was kept, which is shorter here, and longer there, than what was written."""
    for text, shown in ((f"a {TOKEN} b\n", "a [REDACTED:github-token] b\n"),
                        (f"a {OWN} b\n", "a [REDACTED:MY_TOKEN] b\n")):
        (secret.workspace / "one").write_text(text)
        done = secret("run", "--session", "s", "--workspace", secret.workspace, "cat", "one")
        assert (done.stdout, done.stderr) == (shown, ""), done
    # A cut is one.
    (secret.workspace / "many").write_text(f"a {OWN} b\n" * 4000)
    done = secret("run", "--session", "s", "--workspace", secret.workspace, "--max-output", "4K", "cat", "many")
    assert "standard output cut: " in done.stderr and OWN not in done.stdout, done


def test_a_flood_is_redacted_with_true_totals(secret):
    (secret.workspace / "many").write_text(f"a {TOKEN} b\n" * 4000)
    told = result(secret, "--max-output", "64K", "cat", "many")
    assert told["stdout_bytes"] == 4000 * (len(TOKEN) + 5) and told["truncated"] and TOKEN not in told["stdout"]
    assert told["secrets_found"] == 4000 and len(told["secrets"]) <= 64


def test_little_real_text_is_taken_for_a_secret(tmp_path):
    """A sample of what is installed; tools/secrets-rate does it for everything. A key that a package documents is
    one."""
    root = pathlib.Path(os.environ.get("CORDON_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
    program = tmp_path / "rate"
    sources = [path for path in sorted((root / "src/secrets").glob("*.c"))
               if not path.name.startswith(("credential", "guard", "own", "screen"))]
    subprocess.run(["cc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", f"-I{root}/include", f"-I{root}/src", f"-I{root}/bench",
                    f"{root}/bench/secrets.c", f"{root}/bench/sample.c", *sources, f"{root}/src/base/utf8.c",
                    "-lsodium", "-lm", "-o", program],
                   check=True)
    paths, size = [], 0
    for directory, _, names in os.walk("/usr/share"):
        for name in sorted(names):
            path = pathlib.Path(directory, name)
            if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK) and path.stat().st_size < 1 << 20 and "\n" not in str(path):
                paths.append(str(path))
                size += path.stat().st_size
        if size > 30 << 20:
            break
    done = subprocess.run([program, "rate"], input="\n".join(paths) + "\n", capture_output=True, text=True, check=True)
    found = sum(int(line.split("\t")[1]) for line in done.stdout.splitlines() if not line.startswith("bytes"))
    assert found <= 2 + size / 1e8, done.stdout


# ---- file tools --------------------------------------------------------------------------------------------------

KEY = "-----BEGIN PRIVATE KEY-----\n" + "".join(f"MC4CAQAwBQYDK2VwBCIEIJ9nWq3xTz7LkVb2Rm8Yc5Hd1Ps6Gf0Ja4Ne9Uo3Ki{i}Q\n"
                                                for i in range(6)) + "-----END PRIVATE KEY-----\n"


def file_tool(cordon, *words, **more):
    """What the tool returns, as an object; or its error."""
    done = cordon("file", *words, "--workspace", cordon.workspace, "--json", **more)
    told = json.loads(done.stdout)
    return told.get("error", told)


def test_what_a_file_tool_returns_has_no_secret_in_it(secret):
    told = file_tool(secret, "read", "token")
    assert told["content"] == "a [REDACTED:github-token] b\n"
    assert [(each["kind"], each["where"], each["layer"], each["offset"], each["action"])
            for each in told["secrets"]] == [
        ("github-token", "content", "raw", 2, "redact")]
    denial, = told["denials"]
    assert denial["wall"] == "secrets" and denial["what"] == "content: github-token" and "--secrets report" in denial["grant"]
    row, = [row for row in rows_of(secret, told["audit_id"]) if row["row"] == "result"]
    assert row["secrets"][0]["fingerprint"] == told["secrets"][0]["fingerprint"] and row["denials"][0]["wall"] == "secrets"
    assert file_tool(secret, "read", "own")["content"] == "a [REDACTED:MY_TOKEN] b\n"
    assert base64.b64decode(file_tool(secret, "send", "own")["content"]) == b"a [REDACTED:MY_TOKEN] b\n"
    told = file_tool(secret, "grep", "a")
    assert sorted(match["text"] for match in told["matches"]) == ["a [REDACTED:MY_TOKEN] b",
                                                                  "a [REDACTED:github-token] b"]
    # As the caller reads it: content is what is on standard output, and what was hidden is not.
    done = secret("file", "read", "token", "--workspace", secret.workspace)
    assert done.stdout == "a [REDACTED:github-token] b\n" and "github-token" in done.stderr and TOKEN not in done.stderr
    kept = everything(secret.data)
    assert TOKEN.encode() not in kept and OWN.encode() not in kept


def test_a_part_of_a_secret_is_not_shown_either(secret):
    (secret.workspace / "notes").write_text("first\n" + KEY + "last\n")
    whole = file_tool(secret, "read", "notes")["content"]
    # A line of the answer is a line of the file.
    assert whole.splitlines() == ["first", "[REDACTED:private-key]"] + [""] * 7 + ["last"]
    for first in range(2, 9):
        told = file_tool(secret, "read", "notes", "--offset", str(first), "--limit", "1", "--numbers")
        assert told["content"] == f"{first:6}\t[REDACTED:private-key]\n" and told["secrets"][0]["offset"] == 6, told
    told = file_tool(secret, "read", "notes", "--bytes", "--offset", "100", "--limit", "50")
    assert told["content"].startswith("[REDACTED:private-key]")
    told = file_tool(secret, "grep", "MC4C")
    assert [match["text"] for match in told["matches"]] == ["[REDACTED:private-key]"] * 6 and len(told["secrets"]) == 1


def test_names_of_files_are_searched_too(secret):
    (secret.workspace / f"d-{TOKEN}").write_text("needle\n")
    told = file_tool(secret, "list")
    assert "d-[REDACTED:github-token]" in [entry["name"] for entry in told["entries"]] and TOKEN not in json.dumps(told)
    told = file_tool(secret, "grep", "needle")
    assert told["matches"][0]["path"].endswith("d-[REDACTED:github-token]") and TOKEN not in json.dumps(told)


def test_a_binary_file_with_a_secret_is_not_sent(secret):
    (secret.workspace / "picture.png").write_bytes(b"\x89PNG\0" + TOKEN.encode() + b"\0")
    error = file_tool(secret, "send", "picture.png")
    assert error["class"] == "leak_blocked" and TOKEN not in json.dumps(error)
    assert [row for row in rows(secret) if row["row"] == "denial"][-1]["secrets"][0]["name"] == "github-token"
    assert TOKEN.encode() in base64.b64decode(file_tool(secret, "send", "picture.png", "--secrets",
                                                        "report")["content"])


def test_the_policy_of_file_tools_is_that_of_output(secret, tmp_path):
    told = file_tool(secret, "read", "token", "--secrets", "report")
    assert TOKEN in told["content"] and told["secrets"][0]["action"] == "report" and not told["denials"]
    error = file_tool(secret, "read", "token", "--secrets", "block")
    assert error["class"] == "leak_blocked" and error["boundary"] == "secrets"
    config = tmp_path / "config.toml"
    config.write_text('secrets.block = ["github-token"]\n')
    assert file_tool(secret, "grep", "a", "--config", config)["class"] == "leak_blocked"
    row = [row for row in rows(secret) if row["row"] == "denial"][-1]
    assert "block" in [each["action"] for each in row["secrets"]] and row["error"]["class"] == "leak_blocked"


def test_a_file_that_was_read_with_a_secret_hidden_is_not_written_back(secret):
    """The secret would be lost. A mark that is the file's own content is no such thing."""
    for name, mark in (("token", "[REDACTED:github-token]"), ("own", "[REDACTED:MY_TOKEN]")):
        before = (secret.workspace / name).read_text()
        shown = file_tool(secret, "read", name)["content"]
        for words in (["write", name, "--content", shown], ["write", "new", "--content", shown],
                      ["edit", name, "--old", " b", "--new", mark]):
            error = file_tool(secret, *words)
            assert error["class"] == "leak_blocked" and error["boundary"] == "secrets" and "would be lost" in error["reason"], words
            assert "--secrets report" in error["remediation"]
        error = file_tool(secret, "edit", name, "--old", mark + " b", "--new", "x")
        assert error["class"] == "not_found" and "beside" in error["remediation"]
        assert (secret.workspace / name).read_text() == before and not (secret.workspace / "new").exists()
        assert file_tool(secret, "edit", name, "--old", " b", "--new", " c")["replaced"] == 1
        assert (secret.workspace / name).read_text() == before.replace(" b", " c")
    (secret.workspace / "docs").write_text("It says [REDACTED:github-token] then.\n")
    assert file_tool(secret, "write", "docs", "--content", "It says: [REDACTED:github-token].")["size"] > 0
    assert file_tool(secret, "write", "note", "--content", "[REDACTED:nothing] [REDACTED:")["size"] > 0
    # Asked for by name, it is as any text.
    assert file_tool(secret, "write", "note", "--content", "[REDACTED:github-token]", "--secrets", "report")["size"] > 0


def test_own_secrets_are_not_handed_to_a_file_tool(secret):
    for words in (["write", "new", "--content", f"x {OWN} y"], ["edit", "token", "--old", "a", "--new", OWN],
                  ["grep", OWN], ["write", f"name-{OWN}", "--content", "x"]):
        error = file_tool(secret, *words)
        assert error["class"] == "leak_blocked" and OWN not in json.dumps(error), words
    assert not (secret.workspace / "new").exists() and TOKEN in (secret.workspace / "token").read_text()
    assert OWN.encode() not in everything(secret.data)
    # Another kind is noted: a person may want a test's token written.
    assert file_tool(secret, "write", "new", "--content", TOKEN)["secrets"][0]["where"] == "the content"


# ---- rows --------------------------------------------------------------------------------------------------------

def test_no_row_has_a_secret_that_was_used_for_something_else(secret):
    (secret.workspace / OWN).mkdir()
    for words in (["./" + OWN], ["--cwd", OWN, "pwd"], ["--net", f"{OWN.replace('+', '-')}.example.com:443", "true"],
                  [f"{TOKEN}"]):
        secret("run", "--json", *words)
        secret("run", *words)
    assert OWN.encode() not in everything(secret.data) and TOKEN.encode() not in everything(secret.data)
    programs = [row["program"] for row in rows(secret) if row["row"] in ("intent", "denial") and "program" in row]
    assert "./[REDACTED:MY_TOKEN]" in programs and "[REDACTED:github-token]" in programs
    assert any(row["row"] == "intent" and row["cwd"].endswith("/[REDACTED:MY_TOKEN]") for row in rows(secret))
    # Nor what the command has by name: what it then asks for is not for the ledger, nor for the agent.
    done = secret("run", "--json", "--pass-env", "MY_TOKEN", "--", "./" + OWN + "/x")
    assert OWN not in done.stdout
    assert OWN.encode() not in everything(secret.data)
