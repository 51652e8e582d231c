"""Prove every kind of the built-in provider against the real bpg/proxmox, and publish the table.

    STACKYARD_TEST_BPG=PATH python -m scripts.provider_parity [--write]

Runs `tests/e2e/test_provider_kinds.py` under every engine that is there, and prints the table of kinds, or
writes it into docs/reference/provider.md. A cell names the engines under which its check passed, or says why
there is nothing to prove. The exit status is 1 if a check failed or was skipped.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as Xml

from tests.support.kinds import find_cases
from tests.support.parity import COLUMNS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "provider.md"
BEGIN, END = "<!-- Made by scripts/provider_parity.py; do not edit. -->\n", "<!-- end of the table -->\n"
TESTS = "tests/e2e/test_provider_kinds.py"
_TURNS = re.compile(
    r"leaves_alone\[(?P<engine>\w+)-(?P<check>apply-(?:ours/plan-bpg|bpg/plan-ours))-(?P<case>[^]]+)\]"
)
_LIFE = re.compile(r"goes_through_its_life(?P<engine>_under_terraform)?\[(?P<case>[^]]+)\]")


def run_tests() -> tuple[dict[tuple[str, str], set[str]], int]:
    """Return the engines under which each check of each case passed, and the status of the run."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-m", "", f"--junitxml={report}", TESTS]
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        tests = Xml.parse(report).iter("testcase")  # noqa: S314 - what pytest has just written
        passed: dict[tuple[str, str], set[str]] = defaultdict(set)
        for test in tests:
            bad = any(test.find(name) is not None for name in ("failure", "error", "skipped"))
            status = 1 if bad else status
            if not bad and (found := _read_name(test.get("name", ""))):
                case, check, engine = found
                passed[case, check].add(engine)
    return passed, status


def _read_name(name: str) -> tuple[str, str, str] | None:
    if turns := _TURNS.search(name):
        return turns["case"], turns["check"], turns["engine"]
    if life := _LIFE.search(name):
        return life["case"], "life", "terraform" if life["engine"] else "tofu"
    return None


def make_table(passed: dict[tuple[str, str], set[str]]) -> str:
    """Return the table, one row for each kind."""
    lines = [f"| kind | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    rows = []
    for case in find_cases():
        for kind in case.kinds:
            cells = [
                ", ".join(sorted(passed[case.id, check]))
                if case.proves(kind, column)
                else case.nothing.get(f"{kind} {column}", "")
                for column, check in COLUMNS.items()
            ]
            rows.append(f"| `{kind}` | {' | '.join(cells)} |")
    return "\n".join([*lines, *sorted(rows)]) + "\n"


def main() -> int:
    """Run the tests and show or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write it into docs/reference/provider.md")
    given = parser.parse_args()
    if not os.environ.get("STACKYARD_TEST_BPG"):
        parser.error("STACKYARD_TEST_BPG must name the binary of bpg/proxmox")
    passed, status = run_tests()
    table = make_table(passed)
    if given.write and status == 0:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
    else:
        sys.stdout.write(table)
    return status


if __name__ == "__main__":
    sys.exit(main())
