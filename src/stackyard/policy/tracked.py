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
    from collections.abc import Iterator, Mapping
    from pathlib import PurePosixPath

    from stackyard.secrets.sops.config import SopsConfig
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["TrackedProblem", "scan_tracked"]

_SOPS_CONFIG = ".sops.yaml"
_LARGEST_BYTES = 2 * 2**20
_REGULAR_FILES = (0o100644, 0o100755)
# By their names alone: what is wrong with a file, and what to do.
_NAMES = (
    (re.compile(r".*\.tfstate(?:\..*)?|\.terraform\.tfstate\.lock\.info"), "a state of OpenTofu"),
    (re.compile(r".*\.tfplan|tfplan"), "a plan of OpenTofu"),
    (re.compile(r".*\.(?:dec|decrypted|plain|clear)(?:\.[^.]+)?"), "a decrypted file, by its name"),
    (
        re.compile(r".*\.(?:p12|pfx|jks|keystore)|\.?vault[-_]pass(?:word)?(?:\.txt)?"),
        "key material, by its name",
    ),
)
_ENVIRONMENT = re.compile(r"\.env(?:\..+)?|.+\.env")
_EXAMPLE = re.compile(r".*[._-](?:example|sample|template|dist|tpl|j2)")
_VALUE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*\S", re.MULTILINE)
_SECRET_KEY = re.compile(r"PASS|SECRET|TOKEN|KEY|CREDENTIAL|AUTH", re.IGNORECASE)
_STATE_SIGNS = ('"terraform_version"', '"lineage"')
_HEAD = 4096
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
    return [
        TrackedProblem(path, line, detail, remedy)
        for path in sorted(files)
        for line, detail, remedy in known[path] or ()
    ]


async def _scan_contents(
    top: str, files: Mapping[str, str], rules: Mapping[str, str]
) -> dict[str, list[tuple[int, str, str]]]:
    from stackyard.clients import git  # lazy: processes, for files that are new
    from stackyard.secrets.check.promises import configs_of  # lazy: as above

    repository = await git.require_repository(Path(top))
    texts = await repository.contents({*files.values(), *rules.values()}, largest_bytes=_LARGEST_BYTES)
    configs = configs_of({path: texts[blob] for path, blob in rules.items() if blob in texts})
    return {path: list(_judge(path, texts.get(blob), configs)) for path, blob in files.items()}


def _judge(
    path: str, text: str | None, configs: Mapping[PurePosixPath, SopsConfig]
) -> Iterator[tuple[int, str, str]]:
    from stackyard.secrets.check.scan import check_texts  # lazy: for files that are new

    name = path.rpartition("/")[2]
    what = next((what for pattern, what in _NAMES if pattern.fullmatch(name)), "")
    if not what and text is not None:
        what = _recognise(text)
    if what and not (what.startswith("a decrypted") and text is not None and _is_encrypted(path, text)):
        yield 1, f"git tracks {what}.", _REMOVE
        return
    if text is None:
        return
    found = check_texts({path: text}, configs)
    for one in found:
        yield (one.where.line or 1 if one.where else 1), one.detail, one.kind.remedy
    if not found and _is_open_environment(name, path, text):
        yield 1, "git tracks a file of environment variables with values in clear.", _REMOVE


def _recognise(text: str) -> str:
    """Return what a content is, whatever its name says; empty where nothing is wrong with it."""
    head = text[:_HEAD]
    if head.lstrip()[:1] == "{" and all(sign in head for sign in _STATE_SIGNS):
        return "a state of OpenTofu, by its content"
    if head.startswith("PK\x03\x04") and "tfplan" in head[:200]:
        return "a plan of OpenTofu, by its content"
    return ""


def _is_encrypted(path: str, text: str) -> bool:
    from stackyard.base.errors import InvalidInputError  # lazy: for few files
    from stackyard.secrets.base import SecretsKind  # lazy: as above
    from stackyard.secrets.protected_file import detect  # lazy: as above

    try:
        return detect(text.encode(), path).kind is not SecretsKind.PLAIN
    except InvalidInputError:
        return False


def _is_open_environment(name: str, path: str, text: str) -> bool:
    from stackyard.secrets.check.patterns import ALLOWED  # lazy: for few files

    if not _ENVIRONMENT.fullmatch(name) or _EXAMPLE.fullmatch(name) or ALLOWED in text:
        return False
    keys = _VALUE.findall(text)
    # A name such as `build.env` says less than `.env`: its keys decide.
    is_plain = name.startswith(".env") or any(_SECRET_KEY.search(key) for key in keys)
    return bool(keys) and is_plain and not _is_encrypted(path, text)
