"""What a lane found: cases, read from TAP (our C and script tests) or JUnit (pytest); the verdict on skips, and on
cases that fail once."""
import functools
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

AGAIN_MAX = 3  # more that fail in one lane are no accident
MUST_WORK = os.environ.get("CORDON_MUST_WORK") == "1"


class Case:
    def __init__(self, name, outcome, detail="", again=None):
        self.name, self.outcome, self.detail = name, outcome, detail
        self.again, self.unsteady = again, False  # again() runs it by itself and gives the cases found; None: it counts once


def read_tap(text, returncode, name):
    """cmocka writes a skip as `not ok N # SKIP name`, and a reason only if the test printed `# skip: reason` before."""
    cases, plan, notes = [], None, []
    for line in text.splitlines():
        planned = re.match(r"1\.\.(\d+)", line)
        result = re.match(r"(not )?ok\b\s*\d*\s*-?\s*(.*)", line)
        if planned:
            plan = int(planned[1])
        elif result:
            title, skip, reason = re.match(r"(.*?)\s*(#\s*SKIP\b\s*(.*))?$", result[2], re.I).groups()
            if skip:
                said = [note[len("# skip:"):].strip() for note in notes if note.startswith("# skip:")]
                cases.append(Case(f"{name}: {title or reason}", "skipped",
                                  said[-1] if said else reason if title else ""))
            else:
                cases.append(Case(f"{name}: {title}", "failed" if result[1] else "passed", "\n".join(notes)))
            notes = []
        else:
            notes.append(line)
            if cases and cases[-1].outcome == "failed":  # cmocka explains after the line, scripts before
                cases[-1].detail += "\n" + line
    failed = any(case.outcome == "failed" for case in cases)
    if returncode != 0 and not failed:
        cases.append(Case(name, "failed", "\n".join(notes[-60:] + [f"ended with status {returncode}"])))
    elif plan != len(cases) and not (plan == 0 and cases):
        cases.append(Case(name, "failed", "\n".join(notes[-60:] + [f"planned {plan} cases, reported {len(cases)}"])))
    return cases


def read_junit(path, returncode, name, output, again=None):
    """pytest: status 0 is all well, 1 is failures that the file lists; anything else, and an empty run, is a failure.
    again(NODE), if given, runs one of them by itself."""
    cases = []
    try:
        rows = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        return [Case(name, "failed", f"no report: {error}\n{output[-4000:]}")]
    for row in rows:
        title = f"{row.get('classname')}: {row.get('name')}"
        wrong = [child for child in row if child.tag in ("failure", "error")]
        skip = row.find("skipped")
        if wrong:
            cases.append(Case(title, "failed", (wrong[0].text or wrong[0].get("message") or "")[-4000:],
                              functools.partial(again, f"{row.get('file')}::{row.get('name')}") if again else None))
        elif skip is not None:
            cases.append(Case(title, "skipped", skip.get("message") or ""))
        else:
            cases.append(Case(title, "passed"))
    if returncode not in (0, 1) or not cases or (returncode == 1 and all(c.outcome != "failed" for c in cases)):
        cases.append(Case(name, "failed", f"pytest ended with status {returncode}\n{output[-4000:]}"))
    return cases


def judge_skips(cases, probe, prefix=(), env=None):
    """Only `cannot: PROBE: why`, confirmed by that probe in the lane's own context, is a skip the machine forces."""
    answers = {}
    for case in cases:
        if case.outcome != "skipped":
            continue
        said = re.match(r"(?:Skipped: )?cannot: ([\w-]+): ", case.detail)
        if said and said[1] not in answers:
            answers[said[1]] = subprocess.run([*prefix, probe, said[1]], stdin=subprocess.DEVNULL,
                                              capture_output=True, text=True, env={**os.environ, **(env or {})})
        answer = answers[said[1]] if said else None
        if answer is not None and answer.returncode == 1:
            case.detail += f" (probed: {answer.stdout.strip()})"
        elif MUST_WORK:
            why = "no reason of the form `cannot: PROBE: why`" if not said else \
                  "the probe says that this machine can" if answer.returncode == 0 else "there is no such probe"
            case.outcome, case.detail = "failed", f"skipped with CORDON_MUST_WORK=1: {case.detail or 'no reason'}: {why}"
    return cases


def passes_twice(case):
    return all({one.outcome for one in case.again()} in ({"passed"}, {"passed", "skipped"}) for _ in range(2))


def try_again(cases, wait_for_others=lambda: False):
    """A failed case that may be run again and passes twice by itself is unsteady, not failed: a loaded machine must not
    hide what the other cases say. It stays marked, to be mended. What a sanitizer found is there whenever it shows.
    Others that take what is left of the machine are only waited for where it does not: they may take minutes."""
    wrong = [case for case in cases if case.outcome == "failed" and case.again]
    if len(wrong) <= AGAIN_MAX:
        for case in wrong:
            if re.search(r"Sanitizer|: runtime error: ", case.detail):
                continue
            if passes_twice(case) or (wait_for_others() and passes_twice(case)):
                case.outcome, case.unsteady = "passed", True
    return cases
