"""Secrets in what commands are started with and in what they write: hidden, reported or blocked, the same at every door, and never
in a row of the ledger."""
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
    assert [(each["kind"], each["name"], each["where"], each["layer"], each["offset"], each["action"]) for each in told["secrets"]] == [
        ("github-token", "github-token", "stdout", "raw", 2, "redact"), ("own", "MY_TOKEN", "stderr", "raw", 2, "redact")]
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
    assert [(each["name"], each["action"]) for each in row["secrets"]] == [("github-token", "report"), ("MY_TOKEN", "report")]


def test_plain_run_redacts_on_request_as_output_comes(secret):
    # The second half comes much later than what is held may be held: what came first is there by then, the rest never.
    process = secret.popen("run", "--secrets", "redact", "sh", "-c", f"printf 'first %.8s' '{OWN}'; read go; printf %s '{OWN[8:]}'; echo .",
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
    assert json.loads(secret("run", "--json", "--session", "s", "echo", encoded).stdout)["error"]["class"] == "leak_blocked"
    assert OWN.encode() not in everything(secret.data)
    # Another kind is only noted; a plain run is not kept from it.
    assert result(secret, "true", TOKEN)["secrets"][0]["where"] == "argument 1"
    assert secret("run", "echo", OWN).stdout == f"{OWN}\n"


def test_what_is_given_by_name_is_exempt(secret):
    for option in (["--pass-env", "MY_TOKEN"], ["--env", f"OTHER={OWN}"]):
        told = result(secret, *option, "cat", "own")
        assert told["stdout"] == f"a {OWN} b\n" and "secrets" not in told
    assert result(secret, "--env", f"T={TOKEN}", "-c", "echo $T")["stdout"] == TOKEN + "\n"


def test_the_configuration_chooses_by_kind(secret, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[secrets]\nreport = ["github-token"]\nblock = ["own"]\n')
    assert TOKEN in result(secret, "--config", config, "cat", "token")["stdout"]
    assert json.loads(secret("run", "--json", "--config", config, "cat", "own").stdout)["error"]["class"] == "leak_blocked"
    config.write_text('secrets.output = "redact"\n')
    error = json.loads(secret("run", "--json", "--config", config, "--secrets", "report", "true").stdout)["error"]
    assert error["class"] == "capability_denied" and "secrets.output" in error["reason"]
    config.write_text('secrets.block = ["github-tokens"]\n')
    error = json.loads(secret("run", "--json", "--config", config, "true").stdout)["error"]
    assert error["class"] == "config_invalid" and "github-token" in error["remediation"]


def test_a_job_has_no_secret_in_its_output(secret):
    job = secret("job", "start", "--session", "s", "--workspace", secret.workspace, "--", "cat", "token", "own").stdout.strip()
    assert secret("job", "wait", job).returncode == 0
    shown = secret("job", "tail", job).stdout
    assert shown == "a [REDACTED:github-token] b\na [REDACTED:MY_TOKEN] b\n"
    kept = everything(secret.data)
    assert TOKEN.encode() not in kept and OWN.encode() not in kept


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


def test_a_flood_is_redacted_with_true_totals(secret):
    (secret.workspace / "many").write_text(f"a {TOKEN} b\n" * 4000)
    told = result(secret, "--max-output", "64K", "cat", "many")
    assert told["stdout_bytes"] == 4000 * (len(TOKEN) + 5) and told["truncated"] and TOKEN not in told["stdout"]
    assert told["secrets_found"] == 4000 and len(told["secrets"]) <= 64


def test_little_real_text_is_taken_for_a_secret(tmp_path):
    """A sample of what is installed; tools/secrets-rate does it for everything. A key that a package documents is one."""
    root = pathlib.Path(os.environ.get("CORDON_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
    program = tmp_path / "rate"
    sources = [path for path in sorted((root / "src/secrets").glob("*.c")) if path.name not in ("guard.c", "own.c")]
    subprocess.run(["cc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", f"-I{root}/include", f"-I{root}/src", f"-I{root}/bench",
                    f"{root}/bench/secrets.c", f"{root}/bench/sample.c", *sources, f"{root}/src/base/utf8.c", "-lsodium", "-lm", "-o", program],
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
