"""Killed at any moment, under load: the ledger verifies, the sessions load, no approval is lost or doubled."""
import concurrent.futures
import json
import random
import subprocess
import threading
import time

import pytest

from lab import ledger_files, leftovers  # noqa: F401

KILLS = 200
WORKERS = 4
SESSIONS = 3


@pytest.fixture
def asking(cordon, tmp_path):
    """Directories to ask for; whatever is asked for waits for `cordon approvals`."""
    place = tmp_path / "config/cordon"
    place.mkdir(parents=True)
    (place / "config.toml").write_text('[approval]\nqueue = true\ntimeout = "20s"\n')
    cordon.env["XDG_CONFIG_HOME"] = str(place.parent)
    wanted = [tmp_path / f"wanted{n}" for n in range(6)]
    for path in wanted:
        path.mkdir()
    return wanted


class Answerer(threading.Thread):
    """Approves what waits, now and then killed while it does; knows which answers were taken."""
    def __init__(self, cordon, dice):
        super().__init__()
        self.cordon, self.dice, self.stopping, self.taken = cordon, dice, threading.Event(), {}

    def run(self):
        while not self.stopping.is_set():
            listed = self.cordon("approvals", "list", "--json")
            for card in json.loads(listed.stdout)["approvals"]:
                scope = self.dice.choice(["--for-session", "--once"])
                process = self.cordon.popen("approvals", "approve", card["id"], scope)
                if self.dice.random() < 0.3:
                    time.sleep(self.dice.uniform(0, 0.006))
                    process.kill()
                process.communicate()
                if process.returncode == 0:
                    self.taken[card["id"]] = scope
            time.sleep(0.005)


def killed_run(cordon, wanted, seed):
    """One run, killed at a random moment, or left to end by itself."""
    dice = random.Random(seed)
    words = ["run", "--session", f"s{dice.randrange(SESSIONS)}"]
    if dice.random() < 0.4:
        words += ["--write", str(dice.choice(wanted))]
    process = cordon.popen(*words, "-c", "echo $$ > last; cat last > /dev/null", stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    # Mostly while it starts; some are left long enough to be answered and to run.
    time.sleep(dice.expovariate(1 / 0.012) if dice.random() < 0.9 else dice.uniform(0.2, 0.6))
    killed = process.poll() is None
    if killed:
        process.kill()
    process.wait(60)
    return killed


def whole_rows(cordon):
    """A line that was torn stays in the file, with a row after it that says so."""
    for path in ledger_files(cordon):
        for line in path.read_text(errors="replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                pass


def test_killed_at_random_moments(cordon, asking, leftovers):
    dice = random.Random(20261115)
    answerer = Answerer(cordon, random.Random(7))
    answerer.start()
    kills, seed = 0, 0
    try:
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            while (kills < KILLS or not answerer.taken) and seed < 8 * KILLS:
                batch = [pool.submit(killed_run, cordon, asking, dice.random()) for _ in range(WORKERS * 4)]
                kills += sum(run.result() for run in batch)
                seed += len(batch)
    finally:
        answerer.stopping.set()
        answerer.join()
    assert kills >= KILLS

    # Sessions load and work; opening them settles what the dead left behind.
    for n in range(SESSIONS):
        assert cordon("run", "--session", f"s{n}", "--", "true").returncode == 0
    assert json.loads(cordon("approvals", "list", "--json").stdout)["approvals"] == []
    sessions = json.loads(cordon("session", "list", "--json").stdout)["sessions"]
    assert len(sessions) == SESSIONS and {session["state"] for session in sessions} == {"active"}

    # The ledger stands, torn lines repaired and noted.
    verdict = cordon("audit", "verify", "--json")
    assert verdict.returncode == 0, verdict.stdout

    # Every answer that was taken has its one row; every grant its one approval for the session, and none is there
    # twice.
    settled = [row for row in whole_rows(cordon) if row["row"] == "approval"]
    ids = [row["id"] for row in settled]
    assert len(ids) == len(set(ids)), "no approval twice"
    assert set(answerer.taken) <= set(ids), "none lost"
    granted = [grant["approval"] for session in sessions
               for grant in json.loads(cordon("session", "show", session["id"], "--json").stdout)["grants"]]
    assert len(granted) == len(set(granted)), "no grant twice"
    for_session = {card for card, scope in answerer.taken.items() if scope == "--for-session"}
    assert for_session <= set(granted), "no grant lost"
    assert answerer.taken, "something was asked and answered"
