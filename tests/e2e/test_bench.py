"""The bench suite runs and says what it found; what it finds is not judged here."""
import os
import pathlib
import re
import subprocess

import pytest

from lab import ROOT, missing, needs

pytestmark = missing("gcc", "unsanitized", "mount-namespace")
BUILD = os.environ.get("CORDON_BUILD") or str(ROOT / "build")


def bench(place, **settings):
    return subprocess.run([ROOT / "bench/run"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                          env={**os.environ, "BUILD": BUILD, "BENCH_RUNS": "3", "BENCH_RESULTS": str(place),
                               **settings})


def test_it_measures_and_writes_a_table_and_a_chart(tmp_path):
    before = set(pathlib.Path("/tmp").glob("cordon-bench.*"))
    done = bench(tmp_path / "results", BENCH_ONLY="commands")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "results/results.md").read_text()
    assert done.stdout == text and sorted(path.name for path in (tmp_path / "results").iterdir()) == ["results.md", "results.png"]
    for subject in ("/bin/true", "no-op", "bash -c :"):
        for way in ("bare", "cordon library, one-shot", "cordon run, one-shot"):
            found = re.search(rf"^\| `{re.escape(subject)}` \| {way} \| ([\d,.]+) \| ([\d,.]+) \| ([\d,.]+) \| ([\d.]+) ", text, re.MULTILINE)
            p50, p90, p99, ratio = (float(number.replace(",", "")) for number in found.groups())
            assert 0 < p50 <= p90 <= p99 and (ratio == 1) == (way == "bare"), found.group()
    assert re.search(r"^\| `/bin/true`, cordon library, session, idle \| [\d.]+ × bare \| ≤ 1.25 × bare \| (met|\*\*NOT MET\*\*) \|$", text, re.MULTILINE)
    assert (tmp_path / "results/results.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert set(pathlib.Path("/tmp").glob("cordon-bench.*")) <= before


def test_it_measures_a_busy_machine_and_processor_time(tmp_path):
    done = bench(tmp_path / "results", BENCH_ONLY="busy rate")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| `/bin/true`, cordon library, session, busy \| [\d.]+ × bare \| ≤ 1.40 × bare \|",
                     done.stdout, re.MULTILINE)
    rows = re.findall(r"^\| `(/bin/true|no-op)` \| ([^|]+) \| ([\d,.]+) \| ([\d.]+) \| ([\d,.]+) \| ([\d,.]+) \| ([\d.]+) \| ([\d,.]+) \|$",
                      done.stdout, re.MULTILINE)
    assert {"bare", "cordon library, one-shot", "cordon library, session"} <= {row[1] for row in rows}, done.stdout
    assert all(float(rate.replace(",", "")) > 0 for row in rows for rate in (row[2], row[5]))


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "bench").glob("*.c")))
def test_the_programs_fit_the_sources(name):
    done = subprocess.run(["cc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
                           "-Iinclude", "-Isrc", "-Itests", f"bench/{name}.c"], cwd=ROOT, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


def test_it_measures_the_doors_for_agents(tmp_path):
    done = bench(tmp_path / "results", BENCH_ONLY="agents")
    assert done.returncode == 0, done.stderr
    for what, unit in (("`cordon mcp`, start to first answer", "× cordon version"),
                       ("`shell` of `cordon mcp`", "× library, session"), ("`cordon hook`", "ms")):
        assert re.search(rf"^\| {re.escape(what)} \| [\d.]+ {unit} \| ≤ ", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^\| errors of 200 calls at once \| 0 \| ≤ 0 \| met \|$", done.stdout, re.MULTILINE), done.stdout


def test_it_measures_the_scanner(tmp_path):
    """Beside others, where they are installed; what it adds to a command; and what it takes for a secret, which is
    counted elsewhere."""
    done = bench(tmp_path / "results", BENCH_ONLY="secrets scanning")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| secrets, raw layer on text \| [\d.]+ GB/s \| ≥ 10 GB/s \|", done.stdout,
                     re.MULTILINE), done.stdout
    beside = r"[\d.]+ ×" if os.path.exists("/usr/include/hs/hs.h") else "—"
    assert re.search(rf"^\| secrets, raw layer on near misses, against Hyperscan \| {beside} \| ≥ 0.80 × \|",
                     done.stdout, re.MULTILINE), done.stdout
    for size in ("1 MiB", "100 MiB"):
        for output in ("not searched", "report", "redact"):
            assert re.search(rf"^\| {size} \| {output} \| [\d.,]+ \|", done.stdout, re.MULTILINE), done.stdout


def test_a_part_that_breaks_is_told(tmp_path):
    done = bench(tmp_path / "results", BENCH_ONLY="sessions", BENCH_SESSIONS="nonsense")
    assert done.returncode == 1 and "broken: sessions" in done.stderr
    assert "this part broke: ValueError" in (tmp_path / "results/results.md").read_text()


def test_an_unknown_part_is_refused(tmp_path):
    done = bench(tmp_path / "results", BENCH_ONLY="nonsense")
    assert done.returncode == 1 and "The parts: commands " in done.stderr and not (tmp_path / "results").exists()


def test_the_page_has_the_figures_of_the_run_that_is_kept():
    done = subprocess.run([ROOT / "bench/publish", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def soak(*words):
    """What a soak that finds nothing wrong says."""
    # In mounts of its own: others' mounts on this machine would give its sessions further mount namespaces.
    private = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else []
    done = subprocess.run([*private, ROOT / "bench/soak", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, env={**os.environ, "BUILD": BUILD})
    assert done.returncode == 0 and "nothing is wrong" in done.stdout, done.stdout + done.stderr
    ran = re.search(r"intact; ([\d,]+) of ([\d,]+) commands that ran have their rows", done.stdout)
    assert ran and ran.group(1) == ran.group(2) != "0"
    found = re.findall(r"^(.*?) +([\d,]+) +([\d,]+) +([\d,]+)$", done.stdout, re.MULTILINE)
    assert {"descriptors", "processes below it"} <= {name for name, *_ in found}
    return done.stdout


def test_a_soak_of_the_library_finds_everything_as_it_was():
    assert "20 commands ran in 2 sessions by library" in soak("--commands", "10", "--sessions", "2", "--by", "library")


def test_a_daemon_that_is_killed_loses_nothing_of_the_ledger():
    told = soak("--minutes", "0.02", "--sessions", "2", "--kill", "--every", "0.3", "0.5")
    assert int(re.search(r"the daemon was killed (\d+) times", told).group(1)) > 0


def test_it_measures_what_answers_without_a_network(tmp_path):
    done = bench(tmp_path / "results", BENCH_ONLY="offline")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| no network, answered at once, adds \| -?[\d.,]+ µs \| ≤ 150 µs \| (met|\*\*NOT MET\*\*) \|$",
                     done.stdout, re.MULTILINE), done.stdout


@needs("strace", "git")
def test_the_cost_of_renames_is_counted_again(tmp_path):
    done = subprocess.run([ROOT / "tools/rename-cost", "--cordon", pathlib.Path(BUILD, "cordon"), "--renames", "50",
                           "--", "sh", "-c", "touch a; mv a b; mv b c; sleep 0.1"], cwd=tmp_path, capture_output=True,
                          text=True, env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("renames of the command  2\n"), done.stdout
    assert re.search(r"^a rename +[\d.]+ us; in a git working tree [\d.]+ us$", done.stdout, re.MULTILINE), done.stdout
