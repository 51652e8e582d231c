"""The installed distributions that stackyard needs to run, and the files of each that are of use there."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stackyard.operator.delegation.parts import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["package_parts", "runtime_distributions"]

_NAME = "stackyard"
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?$")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")

# Sources of compiled modules, type stubs and tests are of no use to a program that only runs.
_UNUSED_SUFFIXES = frozenset({".c", ".cc", ".h", ".hpp", ".pxd", ".pxi", ".pyi", ".pyx", ".pyc"})
_UNUSED_FOLDERS = frozenset({"__pycache__", "test", "tests", "testing"})
# Of what describes a distribution these say where it was installed from.
_UNUSED_NOTES = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})


def runtime_distributions() -> tuple[importlib.metadata.Distribution, ...]:
    """Return what has to be installed for stackyard to run, itself left out, by name.

    No extra is among them: an inner run reaches the store through its channel, not through a client of it.

    Raises:
        PackageNotFoundError: Something that is needed is not installed.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(_NAME, frozenset[str]())]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        entry = waiting.pop()
        if entry in seen:
            continue
        seen.add(entry)
        name, extras = entry
        distribution = found.setdefault(name, importlib.metadata.distribution(name))
        waiting += _needs(distribution, extras)
    return tuple(found[name] for name in sorted(found) if name != _NAME)


def _needs(
    distribution: importlib.metadata.Distribution, extras: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Return what a distribution needs.

    A condition on Python or the platform is not worked out: what it asks for is taken where it is installed.
    """
    for text in distribution.requires or ():
        match = _REQUIREMENT.match(text)
        if match is None:
            continue
        name, wanted, condition = match.groups()
        extra = _EXTRA.search(condition or "")
        if extra is not None and extra[1] not in extras:
            continue
        if condition and not _is_installed(name):
            continue
        yield _normal(name), frozenset(word.strip() for word in (wanted or "").split(",") if word.strip())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def package_parts(
    distributions: Iterable[importlib.metadata.Distribution], below: PurePosixPath
) -> Iterator[Part]:
    """Return the files of distributions that are needed to run them."""
    for distribution in distributions:
        for file in distribution.files or ():
            if ".." in file.parts or file.is_absolute() or not _is_used(file):
                continue
            source = Path(str(distribution.locate_file(file)))
            if source.is_file():
                yield Part(path=below / PurePosixPath(*file.parts), source=source)


def _is_used(file: importlib.metadata.PackagePath) -> bool:
    if file.suffix in _UNUSED_SUFFIXES or file.name in _UNUSED_NOTES:
        return False
    return not _UNUSED_FOLDERS & set(file.parts[:-1])
