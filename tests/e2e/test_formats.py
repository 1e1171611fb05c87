"""Records of other versions: those that commit 0ba1cfe wrote (data/format-1), and those of a version to come."""
import hashlib
import json
import shutil

import pytest

from conftest import PATIENCE
from lab import ROOT, wait_until

SAMPLES = ROOT / "tests/e2e/data/format-1"
JOB = "01M7RA1VCNMSQ15C2RC85V47KK"


def place(cordon, kind):
    return cordon.data / "cordon" / kind / hashlib.sha256(b'"old"').hexdigest()[:32]


def put_samples(cordon):
    cordon("run", "--session", "another", "--", "true")
    for directory, name in ((place(cordon, "sessions"), "session.json"), (place(cordon, "jobs") / JOB, "job.json")):
        directory.mkdir(parents=True, mode=0o700)
        directory.parent.chmod(0o700)
        shutil.copy(SAMPLES / name, directory / name)
        (directory / name).chmod(0o600)
    return place(cordon, "sessions") / "session.json"


def test_a_session_that_an_older_version_has_made(cordon):
    record = put_samples(cordon)
    before = json.loads(record.read_text())
    told = json.loads(cordon("session", "show", "old", "--json").stdout)
    assert told["state"] == "active" and told["baseline"]["fs_read"] == ["/usr"]
    done = cordon("run", "--session", "old", "--", "true")
    assert done.returncode == 0, done.stderr
    jobs = json.loads(cordon("job", "list", "--session", "old", "--json").stdout)["jobs"]
    assert [(job["id"], job["state"]) for job in jobs] == [(JOB, "ended")]
    assert cordon("session", "pause", "old").returncode == 0
    after = json.loads(record.read_text())
    assert set(after) == set(before) and after["version"] == 1, "the older version reads what this one writes"
    assert cordon("session", "end", "old").returncode == 0 and cordon("session", "rm", "old").returncode == 0


def test_a_session_that_a_newer_version_has_made(cordon):
    record = put_samples(cordon)
    written = json.loads(record.read_text())
    record.write_text(json.dumps({**written, "version": 2, "reader": 1, "more": {"what": "ever"}}))
    assert cordon("run", "--session", "old", "--", "true").returncode == 0
    for newer in ({"version": 9, "reader": 3}, {"version": 3}):
        record.write_text(json.dumps({**written, **newer}))
        assert cordon("run", "--session", "old", "--", "true").returncode == 125
    record.write_text(json.dumps({**written, "version": 9, "reader": 9}))
    refused = cordon("run", "--session", "old", "--", "true")
    assert refused.returncode == 125 and "newer version" in refused.stderr, refused
    assert record.exists()


def test_what_a_newer_version_says_more_is_kept(cordon):
    record = put_samples(cordon)
    written = json.loads(record.read_text())
    more = {**written, "version": 3, "reader": 1, "more": {"what": "ever"},
            "denials": [{"hash": "h", "reason": None, "time": written["created"], "by": "somebody"}]}
    record.write_text(json.dumps(more))
    assert cordon("session", "update", "old", "--label", "a=b").returncode == 0
    after = json.loads(record.read_text())
    assert after == {**more, "changed": after["changed"], "labels": {"a": "b"}}
    assert cordon("session", "update", "old", "--label", "a=").returncode == 0
    assert "labels" not in json.loads(record.read_text())


def test_what_a_newer_version_says_more_of_what_may_be_reached_is_passed_over_and_kept(cordon):
    """Within a version, at any depth; without a reader it is refused, since it might be a restriction."""
    record = put_samples(cordon)
    written = json.loads(record.read_text())
    baseline = {**written["baseline"], "more": ["x"], "limits": {**written["baseline"]["limits"], "more": 5}}
    record.write_text(json.dumps({**written, "baseline": baseline}))
    assert cordon("session", "show", "old").returncode == 125
    record.write_text(json.dumps({**written, "version": 2, "reader": 1, "baseline": baseline}))
    assert cordon("run", "--session", "old", "--", "true").returncode == 0
    assert cordon("session", "pause", "old").returncode == 0
    after = json.loads(record.read_text())
    assert (after["version"], after["reader"], after["baseline"]["more"]) == (2, 1, ["x"])


def test_a_record_that_the_first_version_would_not_understand_says_so(cordon):
    put_samples(cordon)
    for words, version in ((["--read", "/usr"], 1), (["--publish", "18080:80"], 2),
                           (["--publish", "18080:80", "--label", "a=b"], 2)):
        cordon("session", "new", "made", *words)
        [record] = [path for path in (cordon.data / "cordon/sessions").glob("*/session.json")
                    if json.loads(path.read_text())["id"] == "made"]
        written = json.loads(record.read_text())
        assert written["version"] == version and written.get("reader", version) == version, (words, written)
        assert cordon("session", "show", "made").returncode == 0
        assert cordon("session", "end", "made").returncode == 0 and cordon("session", "rm", "made").returncode == 0
    # One that gets a port later needs the newer reader from then on.
    cordon("session", "new", "made", "--label", "a=b")
    [record] = [path for path in (cordon.data / "cordon/sessions").glob("*/session.json")
                if json.loads(path.read_text())["id"] == "made"]
    assert (json.loads(record.read_text())["version"], json.loads(record.read_text())["reader"]) == (1, 1)
    assert cordon("session", "update", "made", "--publish", "18080:80").returncode == 0
    assert (json.loads(record.read_text())["version"], json.loads(record.read_text())["reader"]) == (2, 2)


def test_a_job_that_only_a_newer_version_can_use_is_named_ended_and_removed(cordon):
    put_samples(cordon)
    record = place(cordon, "jobs") / JOB / "job.json"
    written = json.loads(record.read_text())
    record.write_text(json.dumps({**written, "version": 2, "reader": 1, "more": {"what": "ever"}}))
    assert json.loads(cordon("job", "poll", JOB,
                             "--json").stdout)["state"] == "ended", "what it says more is passed over"
    record.write_text(json.dumps({"version": 9, "id": JOB, "session": "old", "else": True}))
    [listed] = json.loads(cordon("job", "list", "--session", "old", "--json").stdout)["jobs"]
    assert (listed["id"], listed["state"], listed["exit_code"]) == (JOB, "newer", None)
    assert JOB in cordon("job", "list").stdout and "newer" in cordon("job", "list").stdout
    assert json.loads(cordon("job", "poll", JOB, "--json").stdout)["state"] == "newer"
    assert cordon("job", "wait", JOB).returncode != 2 and cordon("job", "kill", JOB).returncode == 0
    record.write_text("{")
    refused = cordon("job", "poll", JOB)
    assert refused.returncode == 125 and "damaged" in refused.stderr and "session rm" in refused.stderr, refused
    assert cordon("session", "end", "old").returncode == 0 and cordon("session", "rm", "old").returncode == 0
    assert not record.exists()


@pytest.fixture
def asking(cordon, tmp_path):
    """A command that asks, and the file of its question."""
    config = tmp_path / "config/cordon/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[approval]\nqueue = true\n")
    cordon.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    process = cordon.popen("run", "--session", "s", "--read", "/etc/shadow", "--", "true")
    assert wait_until(lambda: json.loads(cordon("approvals", "list", "--json").stdout)["approvals"])
    yield process, next((cordon.data / "cordon/approvals").glob("*/card.json"))
    process.terminate()
    process.communicate(timeout=PATIENCE)


def test_a_question_that_only_a_newer_version_understands_is_named_and_can_be_denied(cordon, asking):
    process, card = asking
    written = json.loads(card.read_text())
    assert written["version"] == 1 and "reader" not in written
    replace(card, {**written, "version": 2, "reader": 1, "more": 1, "excess": {**written["excess"], "more": ["x"]}})
    [listed] = json.loads(cordon("approvals", "list", "--json").stdout)["approvals"]
    assert listed["id"] == written["id"] and listed["content"]["program"], "what it says more is passed over"
    replace(card, {"version": 9, "id": written["id"], "hash": written["hash"], "session": "s", "otherwise": True})
    [listed] = json.loads(cordon("approvals", "list", "--json").stdout)["approvals"]
    assert listed["id"] == written["id"] and "newer version" in listed["content"]["text"]
    assert written["id"] in cordon("approvals", "list").stdout
    refused = cordon("approvals", "approve", written["id"], "--once")
    assert refused.returncode == 125 and "newer version" in refused.stderr, refused
    assert cordon("approvals", "deny", written["id"]).returncode == 0
    assert process.wait(PATIENCE) == 125


def replace(path, record):
    beside = path.parent.parent / "beside"
    beside.write_text(json.dumps(record))
    beside.chmod(0o600)
    beside.rename(path)


def test_rows_say_their_version_and_older_ones_are_read(cordon):
    """The ledger begins with rows that have none (data/format-1/ledger): their chain and head hold, and newer ones go
    on with it."""
    for day in (SAMPLES / "ledger").iterdir():
        target = cordon.data / "cordon/ledger" / day.name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy(day, target)
        target.chmod(0o600)
    for directory in (cordon.data / "cordon", cordon.data / "cordon/ledger"):
        directory.chmod(0o700)
    assert cordon("audit", "verify").returncode == 0, cordon("audit", "verify").stdout
    assert cordon("run", "--", "true").returncode == 0
    assert cordon("audit", "verify").returncode == 0, cordon("audit", "verify").stdout
    rows = [json.loads(line) for line in cordon("audit", "query", "--json").stdout.splitlines()]
    old, new = [row for row in rows if "version" not in row], [row for row in rows if "version" in row]
    assert [row["row"] for row in old] == ["begin", "intent", "result"] and {row["version"] for row in new} == {1}
    assert [row["row"] for row in new][-2:] == ["intent", "result"] and len(old) + len(new) == len(rows)


def test_a_session_that_only_a_newer_version_can_use_is_named_ended_and_removed(cordon):
    record = put_samples(cordon)
    newer = {**json.loads(record.read_text()), "version": 9, "reader": 9, "grants": "otherwise"}
    record.write_text(json.dumps(newer))
    listed = {each["id"]: each["state"] for each in json.loads(cordon("session", "list", "--json").stdout)["sessions"]}
    assert listed == {"another": "active", "old": "newer"}
    for words in (["session", "show", "old"], ["session", "pause", "old"],
                  ["session", "update", "old", "--label", "a=b"]):
        refused = cordon(*words)
        assert refused.returncode == 125 and "newer version of cordon" in refused.stderr, refused
    assert json.loads(record.read_text()) == newer
    assert cordon("session", "rm", "old").returncode == 125, "it has not ended"
    done = cordon("session", "end", "old")
    assert done.returncode == 0, done.stderr
    ended = json.loads(record.read_text())
    assert ended == {**newer, "state": "ended", "why": None, "changed": ended["changed"]}
    done = cordon("session", "rm", "old")
    assert done.returncode == 0 and not record.exists(), done.stderr
