"""The version of what is built: from the tag of git, or as a source distribution says."""

from __future__ import annotations

import re
import subprocess
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What comes next, where there is no tag yet; with neither tag nor git it is all that is known.
NEXT = "0.1.0"
_TAG = re.compile(r"v(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?-(\d+)-g([0-9a-f]+)(-dirty)?")


def find_version(root: Path = ROOT) -> str:
    """Return the version: `1.2.3` at the tag v1.2.3, `1.2.4.dev5+g0123abc` five commits after it."""
    described = root / "PKG-INFO"
    if described.is_file():
        return HeaderParser().parsestr(described.read_text(encoding="utf-8"), headersonly=True)["Version"]
    if not (root / ".git").exists():
        return f"{NEXT}.dev0"
    match = _find_tag(root)
    if match is None:
        count, commit = _git(root, "rev-list", "--count", "HEAD"), _git(root, "rev-parse", "--short", "HEAD")
        is_dirty = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
        return f"{NEXT}.dev{count or 0}" + (f"+g{commit}{'.dirty' if is_dirty else ''}" if commit else "")
    major, minor, patch, early, distance, commit, dirty = match.groups()
    if distance == "0" and not dirty:
        return f"{major}.{minor}.{patch}{early or ''}"
    coming = f"{major}.{minor}.{patch}{early}" if early else f"{major}.{minor}.{int(patch) + 1}"
    return f"{coming}.dev{distance}+g{commit}{'.dirty' if dirty else ''}"


def _find_tag(root: Path) -> re.Match[str] | None:
    """Return what git says of the nearest tag that is a version; patterns of git match others too."""
    words = ["describe", "--tags", "--long", "--dirty", "--match", "v[0-9]*.[0-9]*.[0-9]*"]
    while (said := _git(root, *words)) is not None:
        if (match := _TAG.fullmatch(said)) is not None:
            return match
        name = re.sub(r"-\d+-g[0-9a-f]+(-dirty)?$", "", said)
        words += ["--exclude", re.sub(r"[\\*?\[]", r"\\\g<0>", name)]
    return None


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
