"""How long the rules for modules and stacks take on 1,000 modules, on top of the start of the program.

Each round measures beside it what cannot be left out: the start of the program, and every file of the same
repository read, numbered as git does and parsed into a tree.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.policy_large import write_large_policy

from bench.figure import Figure

_MODULES = 1000
_ROUNDS = 5
_OURS = [sys.executable, "-m", "stackyard", "policy", "check"]
_VERSION = [sys.executable, "-m", "stackyard", "--version"]
_PARSE = """
import hashlib, pathlib, tree_sitter, tree_sitter_hcl
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_hcl.language()))
for folder in ("modules", "stacks"):
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            hashlib.sha1(data).digest()
            if path.suffix == ".tf":
                parser.parse(data)
"""
# On top of the floors, which take a third of a second: the whole command takes less than two seconds.
_COLD_S = 1.6
_WARM_S = 0.4


def measure() -> list[Figure]:
    """Time the check, cold and warm."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        folder = Path(name) / "repository"
        write_large_policy(folder, _MODULES)
        best = dict.fromkeys(("version", "parse", "cold", "warm"), float("inf"))
        for _ in range(_ROUNDS):
            best["version"] = min(best["version"], _run(_VERSION, folder))
            best["parse"] = min(best["parse"], _run([sys.executable, "-c", _PARSE], folder))
            shutil.rmtree(folder / ".stackyard", ignore_errors=True)
            best["cold"] = min(best["cold"], _run(_OURS, folder))
            best["warm"] = min(best["warm"], _run(_OURS, folder))
    floor = best["version"] + best["parse"]
    return [
        Figure(
            name=f"check the rules on {_MODULES} modules, cold",
            measured_s=best["cold"],
            floor_name="start + read and parse",
            floor_s=floor,
            aim_ratio=1.0,
            allowance_s=_COLD_S,
        ),
        Figure(
            name=f"check the rules on {_MODULES} modules, warm",
            measured_s=best["warm"],
            floor_name="`--version`",
            floor_s=best["version"],
            aim_ratio=1.0,
            allowance_s=_WARM_S,
        ),
    ]


def _run(argv: list[str], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
