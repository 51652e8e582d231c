"""Write what the present program makes as the fixtures that later commits are compared with.

python -m tests.compatibility.record [AREA ...], where an area is the middle of a test file: rendered, lab...
Read tests/compatibility/README.md first: a kept file changes for a listed rename and for nothing else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.compatibility.golden import RECORDING

HERE = Path(__file__).parent


def record(areas: list[str]) -> int:
    """Run the tests of these areas, or of all, so that they write in place of comparing."""
    files = [str(path) for path in sorted(HERE.glob("test_*.py")) if _is_meant(path, areas)]
    os.environ[RECORDING] = "1"
    return int(pytest.main(["-q", "-p", "no:randomly", "-p", "no:xdist", *files]))


def _is_meant(path: Path, areas: list[str]) -> bool:
    return not areas or any(area in path.stem for area in areas)


if __name__ == "__main__":
    sys.exit(record(sys.argv[1:]))
