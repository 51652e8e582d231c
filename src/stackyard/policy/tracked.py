"""What git tracks and must not: states, plans, decrypted files, keys and secrets in clear.

The content of the index counts, which is what would be committed, and not that of the working tree. What was
found in a content is kept in the cache, so that only what is new is read.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import PurePosixPath

    from stackyard.secrets.sops.config import SopsConfig
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["TrackedProblem", "scan_tracked"]

_SOPS_CONFIG = ".sops.yaml"
_REGULAR_FILES = (0o100644, 0o100755)
_DECRYPTED = re.compile(r".*\.(?:dec|decrypted|plain|clear)(?:\.[^.]+)?")
_VALUE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*\S", re.MULTILINE)
_REMOVE = "Remove it with `git rm --cached`, add it to .gitignore, and replace what was ever pushed."


class TrackedProblem(NamedTuple):
    """A tracked file that must not be, from the top of the tree."""

    path: str
    line: int
    detail: str
    remedy: str


async def scan_tracked(repository: StackRepository) -> list[TrackedProblem] | None:
    """Look through the tracked files of a repository; None where there is no git.

    Raises:
        GitError: git cannot be run, or does not trust the repository.
        SopsConfigError: A `.sops.yaml` is not valid.
    """
    tree = repository.tree
    if not tree.is_git:
        return None
    if tree.index is None:
        from stackyard.clients.git.compare import Comparison  # lazy: only for an index that git has to list

        tree.index = await Comparison(top=Path(tree.top)).list_index()
    files = {
        path: one.blob
        for path, one in tree.index.files.items()
        if path.startswith(repository.prefix) and one.mode in _REGULAR_FILES and one.blob
    }
    rules = {
        path: one.blob for path, one in tree.index.files.items() if path.rpartition("/")[2] == _SOPS_CONFIG
    }
    sign = hashlib.sha256(repr(sorted(rules.items())).encode()).hexdigest()[:16] if rules else ""
    cache = repository.cache.policy
    known = {path: cache.get(f"tracked:{sign}:{path}:{blob}") for path, blob in files.items()}
    new = {path: files[path] for path, row in known.items() if not isinstance(row, list)}
    if new:
        for path, row in (await _scan_contents(tree.top, new, rules)).items():
            known[path] = row
            cache.put(f"tracked:{sign}:{path}:{new[path]}", row)
    found = [path for path in sorted(files) if known[path]]
    allowed = await _list_allowed(tree.top, found)
    return [
        TrackedProblem(path, line, detail, remedy)
        for path in found
        if path not in allowed
        for line, detail, remedy in known[path] or ()
    ]


async def _list_allowed(top: str, paths: Sequence[str]) -> frozenset[str]:
    """Return the files that `.gitattributes` allows as they are."""
    if not paths:
        return frozenset()
    from stackyard.clients import git  # lazy: processes, for files with findings
    from stackyard.secrets.check.scan import ATTRIBUTE  # lazy: as above

    return await (await git.require_repository(Path(top))).list_marked(paths, ATTRIBUTE)


async def _scan_contents(
    top: str, files: Mapping[str, str], rules: Mapping[str, str]
) -> dict[str, list[tuple[int, str, str]]]:
    from stackyard.clients import git  # lazy: processes, for files that are new
    from stackyard.secrets.check.promises import configs_of  # lazy: as above
    from stackyard.secrets.check.scan import LARGEST_BYTES  # lazy: as above

    repository = await git.require_repository(Path(top))
    texts = await repository.contents({*files.values(), *rules.values()}, largest_bytes=LARGEST_BYTES)
    configs = configs_of({path: texts[blob] for path, blob in rules.items() if blob in texts})
    return {path: list(_judge(path, texts.get(blob), configs)) for path, blob in files.items()}


def _judge(
    path: str, text: str | None, configs: Mapping[PurePosixPath, SopsConfig]
) -> Iterator[tuple[int, str, str]]:
    from stackyard.secrets.check.scan import check_file  # lazy: for files that are new

    found = check_file(path, text, configs)
    for one in found:
        yield (one.where.line or 1 if one.where else 1), one.detail, one.kind.remedy
    if found:
        return
    name = path.rpartition("/")[2]
    if _DECRYPTED.fullmatch(name) and (text is None or not _is_encrypted(path, text)):
        yield 1, "git tracks a decrypted file, by its name.", _REMOVE
    elif text is not None and _is_open_environment(name, path, text):
        yield 1, "git tracks a file of environment variables with values in clear.", _REMOVE


def _is_encrypted(path: str, text: str) -> bool:
    from stackyard.base.errors import InvalidInputError  # lazy: for few files
    from stackyard.secrets.base import SecretsKind  # lazy: as above
    from stackyard.secrets.protected_file import detect  # lazy: as above

    try:
        return detect(text.encode(), path).kind is not SecretsKind.PLAIN
    except InvalidInputError:
        return False


def _is_open_environment(name: str, path: str, text: str) -> bool:
    """Return whether a file called `.env` sets anything: it is there for what must not be shared."""
    from stackyard.secrets.check.file_forms import is_environment  # lazy: for few files
    from stackyard.secrets.check.patterns import ALLOWED  # lazy: as above

    if not name.startswith(".env") or not is_environment(name) or ALLOWED in text:
        return False
    return _VALUE.search(text) is not None and not _is_encrypted(path, text)
