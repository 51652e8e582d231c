"""Make dist/: what a release publishes, and what install.sh fetches.

The wheel, the source distribution, the pinned requirements with their hashes (of the core, and of what each
extra adds to it), install.sh itself, and SHA256SUMS of them all. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUMS = "SHA256SUMS"
_BLOCK = re.compile(r"^([a-z0-9][a-z0-9._-]*)==.*?(?=^[a-z0-9]|\Z)", re.MULTILINE | re.DOTALL)
_OURS = "stackyard (pyproject.toml)"


def main(arguments: list[str]) -> int:
    """Write the folder; return 1 where the sources have changes that no commit has."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder (default: dist)")
    parser.add_argument("--allow-changes", action="store_true", help="also release what is not committed")
    chosen = parser.parse_args(arguments)
    if not chosen.allow_changes and _has_changes():
        sys.stderr.write("release: there are changes that are not committed; commit them first.\n")
        return 1
    shutil.rmtree(chosen.out, ignore_errors=True)
    chosen.out.mkdir(parents=True)
    build(ROOT, chosen.out)
    write_requirements(ROOT, chosen.out)
    shutil.copy(ROOT / "install.sh", chosen.out)
    write_sums(chosen.out)
    sys.stdout.write("".join(f"{path}\n" for path in sorted(chosen.out.iterdir())))
    return 0


def build(root: Path, out: Path) -> None:
    """Build the wheel and the source distribution, with what is installed here and without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    # What is in an archive must not depend on who builds it, nor when.
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1580601600", "PYTHONHASHSEED": "0"}
    subprocess.run(command, cwd=root, env=env, stdout=subprocess.DEVNULL, check=True)


def write_requirements(root: Path, out: Path) -> None:
    """Write requirements.txt of the core, and requirements-EXTRA.txt of what each extra adds to it."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lock = (root / "requirements.lock").read_text()
    core = locked(lock, project["dependencies"])
    (out / "requirements.txt").write_text("".join(core.values()))
    extras = {name: wanted for name, wanted in project["optional-dependencies"].items() if name != "dev"}
    extras["all"] = [one for name, wanted in extras.items() if name != "all" for one in wanted]
    for name, wanted in extras.items():
        more = {key: text for key, text in locked(lock, wanted).items() if key not in core}
        (out / f"requirements-{name}.txt").write_text("".join(more.values()))


def locked(lock: str, requirements: list[str]) -> dict[str, str]:
    """Return the parts of a lock file that some requirements need, by name."""
    blocks = {match[1]: match[0] for match in _BLOCK.finditer(lock)}
    needs: dict[str, set[str]] = {}
    for name, text in blocks.items():
        for line in text.splitlines():
            parent = line.strip().removeprefix("# via").removeprefix("#").strip()
            if line.lstrip().startswith("#") and parent and parent != _OURS:
                needs.setdefault(parent, set()).add(name)
    waiting = [re.split(r"[<>=~! \[;]", one)[0] for one in requirements]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, ())
    plain = {name: re.sub(r"^ *#.*\n", "", blocks[name], flags=re.MULTILINE) for name in sorted(found)}
    return {name: text if text.endswith("\n") else f"{text}\n" for name, text in plain.items()}


def write_sums(out: Path) -> None:
    """Write the SHA-256 of each file, as `sha256sum` writes it."""
    names = sorted(path.name for path in out.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (out / SUMS).write_text("".join(lines))


def _has_changes() -> bool:
    done = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=False)
    return bool(done.stdout.strip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
