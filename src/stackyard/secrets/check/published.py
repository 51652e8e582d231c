"""Which of many files must not be published: work that may take long or crash, for a process of its own."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.secrets.check.patterns import find_secrets
from stackyard.secrets.check.scan import holds_secret
from stackyard.secrets.sops.config import SopsConfig, parse_config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.git.history import Candidate

__all__ = ["find_secret_candidates", "read_rules"]

# Rules that cannot be read: each file below them may be one that they say is encrypted.
_EVERY_FILE = ({"path_regex": ".*"},)


def find_secret_candidates(candidates: Sequence[Candidate], rules: Mapping[str, bytes]) -> list[bool]:
    """Tell of each candidate whether it holds a secret in clear, or something that must be encrypted.

    Args:
        candidates: Versions of files, and texts of commits and tags.
        rules: The `.sops.yaml` that hold for them, by their paths. One that cannot be read counts as one that
            says that everything is encrypted.
    """
    configs = read_rules(rules)
    return [_is_secret(one, configs) for one in candidates]


def read_rules(rules: Mapping[str, bytes]) -> dict[PurePosixPath, SopsConfig]:
    """Return every `.sops.yaml` by the folder that it counts for."""
    return {PurePosixPath(path).parent: _config(path, content) for path, content in rules.items()}


def _config(path: str, content: bytes) -> SopsConfig:
    try:
        return parse_config(content.decode(), Path(path))
    except (StackyardError, ValueError, RecursionError):
        return SopsConfig(path=Path(path), rules=_EVERY_FILE)


def _is_secret(candidate: Candidate, configs: Mapping[PurePosixPath, SopsConfig]) -> bool:
    text = candidate.content.decode(errors="replace")
    if not candidate.path:
        return any(True for _ in find_secrets(text))
    path = candidate.path.encode("utf-8", "surrogateescape").decode(errors="replace")
    try:
        return holds_secret(path, text, configs)
    except (StackyardError, ValueError, RecursionError):
        # What cannot be checked is not known to be clean.
        return True
