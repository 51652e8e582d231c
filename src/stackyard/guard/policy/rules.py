"""The rule files of a stack: which there are, and which packages they make up.

A rule folder holds `.rego` files, and data for them in `.json` and `.yaml` files. Files called `*_test.rego`
are tests of the rules for `opa test`, and are not read. Everything is read here and handed to OPA as copies,
so that a link or an odd name leads nowhere else.
"""

from __future__ import annotations

import enum
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.base.errors import Location
from stackyard.guard.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["RULES", "RuleFile", "RuleSet", "Subject", "read_rules"]

RULES = Kind(
    code="E-POLICY-RULES",
    summary="The rules for plans cannot be used",
    remedy="Correct the rules; nothing is applied that they have not judged.",
)

# The package that holds the rules for plans; others are for what rules share.
_ROOT = "stackyard"
# The one below it that holds the rules for the code of a repository: no plan is judged by them.
_REPOSITORY = "stackyard.repository"
_PACKAGE = re.compile(
    r"(?:\s+|#[^\n]*(?:\n|\Z))*+package\s+([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[ \t\r]*(?=\n|#|\Z)"
)
_RULE_SUFFIX = ".rego"
_TEST_SUFFIX = "_test.rego"
_DATA_SUFFIXES = (".json", ".yaml", ".yml")
_LARGEST_FILE_BYTES = 4 * 2**20
_MOST_FILES = 2000


class Subject(enum.Enum):
    """What rules judge."""

    PLAN = "plans"
    REPOSITORY = "repositories"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """One file of a rule folder.

    Attributes:
        path: Where it is.
        data: What is in it.
        package: The package of a file of rules; empty for data.
    """

    path: Path
    data: bytes = field(repr=False)
    package: str = ""

    @property
    def copy_suffix(self) -> str:
        """How the name of its copy ends."""
        return self.path.suffix.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The files of all rule folders.

    Attributes:
        files: What OPA reads.
        problems: Why they cannot be used.
        subject: What is judged: the packages for something else are only read.
    """

    files: tuple[RuleFile, ...]
    problems: tuple[Finding, ...] = ()
    subject: Subject = Subject.PLAN

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages whose rules judge the subject."""
        return self.packages_for(self.subject)

    def packages_for(self, subject: Subject) -> tuple[str, ...]:
        """Return the packages whose rules judge something."""
        ours = {one.package for one in self.files if _is_ours(one.package)}
        wants_repository = subject is Subject.REPOSITORY
        return tuple(sorted(one for one in ours if _is_below(one, _REPOSITORY) == wants_repository))

    def first_file(self, package: str) -> Location | None:
        """Return a file of a package."""
        found = next((one for one in self.files if one.package == package), None)
        return None if found is None else Location(str(found.path))


def read_rules(folders: Sequence[Path], subject: Subject = Subject.PLAN) -> RuleSet:
    """Read the rule folders; what is wrong with them is part of the answer, all of it at once."""
    files: list[RuleFile] = []
    problems: list[Finding] = []
    for folder in folders:
        found = [_read(path) for path in _list_files(folder)]
        files += (one for one in found if isinstance(one, RuleFile))
        bad = [one for one in found if isinstance(one, Finding)]
        problems += bad
        if not bad and not any(isinstance(one, RuleFile) and one.package for one in found):
            problems.append(_problem("There is no file with rules (*.rego) in this folder.", folder))
    if len(files) > _MOST_FILES:
        problems.append(_problem(f"There are {len(files)} files of rules; {_MOST_FILES} are the most."))
    rules = RuleSet(files=tuple(files), problems=tuple(problems), subject=subject)
    if not problems and not any(rules.packages_for(one) for one in Subject):
        first = next((one.path for one in files if one.package), None)
        problems.append(
            _problem(f"No file is in the package `{_ROOT}` or one below it: nothing would be judged.", first)
        )
    return RuleSet(files=tuple(files), problems=tuple(problems), subject=subject)


def _list_files(folder: Path) -> Iterator[Path | Finding]:
    if not folder.is_dir():
        yield _problem("There is no such folder of rules.", folder)
        return
    errors: list[OSError] = []
    for here, below, names in os.walk(folder, onerror=errors.append):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in below:
            if (Path(here) / name).is_symlink():
                yield _problem(
                    "A rule folder must not hold links: this one is not followed.", Path(here, name)
                )
        for name in sorted(names):
            is_rule = name.endswith(_RULE_SUFFIX) and not name.endswith(_TEST_SUFFIX)
            if not name.startswith(".") and (is_rule or name.lower().endswith(_DATA_SUFFIXES)):
                yield Path(here) / name
    for err in errors:
        yield _problem(f"It cannot be read: {err.strerror}.", Path(os.fsdecode(err.filename or folder)))


def _read(path: Path | Finding) -> RuleFile | Finding:
    if isinstance(path, Finding):
        return path
    if path.is_symlink() or not path.is_file():
        return _problem("A rule folder must hold plain files only: this one is not read.", path)
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST_FILE_BYTES + 1)
    except OSError as err:
        return _problem(f"It cannot be read: {err.strerror}.", path)
    if len(data) > _LARGEST_FILE_BYTES:
        return _problem(f"It is larger than {_LARGEST_FILE_BYTES} bytes.", path)
    if not path.name.endswith(_RULE_SUFFIX):
        return RuleFile(path=path, data=data)
    match = _PACKAGE.match(data.decode(errors="replace"))
    if match is None:
        detail = f"It does not begin with a package of plain words, such as `package {_ROOT}.tags`."
        return _problem(detail, path, line=1)
    return RuleFile(path=path, data=data, package=match[1])


def _is_ours(package: str) -> bool:
    return _is_below(package, _ROOT)


def _is_below(package: str, root: str) -> bool:
    return package == root or package.startswith(f"{root}.")


def _problem(detail: str, path: Path | None = None, line: int | None = None) -> Finding:
    where = None if path is None else Location(str(path), line)
    return Finding(kind=RULES, detail=detail, where=where)
