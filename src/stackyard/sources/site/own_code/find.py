"""Which folders of own code a site has, and what is wrong with them without asking an engine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.errors import FileError, Location
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.site.own_code.blocks import is_code
from stackyard.sources.site.own_code.folder import CodeFolder, read_code_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stackyard.base.diagnostics import Diagnostics

__all__ = [
    "ENV_SUFFIX",
    "EXTRA",
    "GIVEN_VARIABLES",
    "GUESTS_OUTPUT",
    "OWN",
    "SiteCode",
    "find_own_code",
    "list_env_folders",
]

ENVS = "envs"
# `envs/dev.tf/` is the code of the env `dev`.
ENV_SUFFIX = ".tf"
# The names of the two modules, and of the folder for all envs.
OWN, EXTRA = "own", "extra"
# What every module is passed that declares it.
GIVEN_VARIABLES = ("guests", "env")
# The output that every configuration has.
GUESTS_OUTPUT = "guests"

MISPLACED = Kind(
    code="E-OWN-CODE-FILE",
    summary="A file of OpenTofu code would not be read",
    remedy="Move it into a folder: envs/NAME.tf/ for one env, extra/ for all.",
)
NO_ENV = Kind(
    code="E-OWN-CODE-ENV",
    summary="Own code belongs to no env",
    remedy="Write the file of the env; or rename the folder, or remove it.",
)
NO_CODE = Kind(
    code="E-OWN-CODE-EMPTY",
    summary="A folder for own code has none",
    remedy="Write a file *.tf, *.tofu or *.tf.json into it, or remove it.",
)
UNREADABLE = Kind(
    code="E-OWN-CODE-READ",
    summary="Own code cannot be read",
    remedy="Check that you may read the folder and every file in it.",
)
NO_VALUE = Kind(
    code="E-OWN-CODE-VARIABLE",
    summary="A variable of own code has no value",
    remedy="Give it a `default`; or put its value into secrets.yaml under `variables`.",
)
OUTPUT_TWICE = Kind(
    code="E-OWN-CODE-OUTPUT",
    summary="An env has two outputs of one name",
    remedy="Rename the output of your own code.",
)
NOT_READ = Kind(
    code="W-OWN-CODE-TFVARS",
    summary="A file of variables is not read",
    remedy="Write the values as defaults, or into secrets.yaml under `variables`; then remove the file.",
    severity=Severity.WARNING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteCode:
    """The own code of a site.

    Attributes:
        by_env: The folder of each env that has one.
        extra: The folder for all envs.
        paths: Kind and name of the file that each place is part of, as `Site.paths` has them.
        without_env: Names of folders for which there is no env.
    """

    by_env: Mapping[str, CodeFolder] = field(default_factory=dict)
    extra: CodeFolder | None = None
    paths: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    without_env: frozenset[str] = frozenset()

    def of(self, env: str) -> tuple[CodeFolder, ...]:
        """Return the folders that join the configuration of an env."""
        own = self.by_env.get(env)
        return tuple(folder for folder in (own, self.extra) if folder is not None)

    @property
    def folders(self) -> tuple[CodeFolder, ...]:
        """All of them."""
        return (*self.by_env.values(), *(() if self.extra is None else (self.extra,)))


def list_env_folders(root: Path) -> dict[str, str]:
    """Return the folders of code of single envs: the name of the env, and of the folder below `envs`."""
    try:
        with os.scandir(root / ENVS) as entries:
            names = sorted(
                one.name for one in entries if one.name.endswith(ENV_SUFFIX) and one.name[0] != "."
            )
    except OSError:
        # Whoever reads the envs reports it.
        return {}
    return {name.removesuffix(ENV_SUFFIX): name for name in names if (root / ENVS / name).is_dir()}


def find_own_code(root: Path, prefix: str, envs: Collection[str], found: Diagnostics) -> SiteCode:
    """Find the own code of a site; everything that is wrong becomes a finding.

    Args:
        root: The folder of the site.
        prefix: What findings put before a path.
        envs: The names of all envs, readable or not.
        found: Takes the findings.
    """
    reader = _Reader(root, prefix, found)
    by_env = {}
    folders = list_env_folders(root)
    for name, folder in folders.items():
        path = f"{ENVS}/{folder}"
        if name not in envs:
            detail = f"{path} holds code of the env '{name}', and there is no {ENVS}/{name}.yaml."
            reader.paths[f"{prefix}{path}"] = (ENVS, name)
            found.add(NO_ENV, f"{detail}{did_you_mean(name, envs)}", Location(f"{prefix}{path}"))
        elif (read := reader.read(OWN, path, (ENVS, name))) is not None:
            by_env[name] = read
    reader.report_files(ENVS)
    has_extra = (root / EXTRA).is_dir() and any(map(is_code, os.listdir(root / EXTRA)))
    extra = reader.read(EXTRA, EXTRA, (EXTRA, EXTRA)) if has_extra else None
    code = SiteCode(
        by_env=by_env, extra=extra, paths=reader.paths, without_env=frozenset(folders.keys() - set(envs))
    )
    _check_outputs(code, found)
    return code


class _Reader:
    """Reads folders of code, and keeps which file of the site each of their files belongs to."""

    def __init__(self, root: Path, prefix: str, found: Diagnostics) -> None:
        self._root = root
        self._prefix = prefix
        self._found = found
        self.paths: dict[str, tuple[str, str]] = {}

    def read(self, label: str, path: str, file: tuple[str, str]) -> CodeFolder | None:
        shown = f"{self._prefix}{path}"
        self.paths[shown] = file
        try:
            code = read_code_folder(label, self._root / path, shown)
            names = os.listdir(self._root / path)
        except FileError as err:
            self._found.add(UNREADABLE, err.detail, Location(shown))
            return None
        self.paths |= {f"{shown}/{name}": file for name in names}
        if not code.files:
            self._found.add(NO_CODE, f"{path} has no file that is read as code.", Location(shown))
            return None
        for name in sorted(names):
            if name.removesuffix(".json").endswith(".tfvars"):
                self._found.add(NOT_READ, f"{path}/{name} is not read.", Location(f"{shown}/{name}"))
        return code

    def report_files(self, folder: str) -> None:
        """Report code that is directly in a folder of YAML files."""
        for name in _list_plain_files(self._root / folder):
            if is_code(name):
                shown = f"{self._prefix}{folder}/{name}"
                stem = name.partition(ENV_SUFFIX)[0].removesuffix(".tofu")
                self.paths[shown] = (ENVS, stem)
                where = Location(shown)
                detail = f"{folder}/{name} is a file, and own code is read from folders: "
                self._found.add(MISPLACED, f"{detail}{folder}/{stem}{ENV_SUFFIX}/main.tf.", where)


def _list_plain_files(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entry.name for entry in entries if not entry.is_dir())
    except OSError:
        return


def _check_outputs(code: SiteCode, found: Diagnostics) -> None:
    """Report outputs that an env would have twice."""
    common = {} if code.extra is None else {one.name: one for one in code.extra.outputs}
    for folder in code.folders:
        for output in folder.outputs:
            other = common.get(output.name)
            if output.name == GUESTS_OUTPUT:
                detail = f"Every env has an output `{output.name}` already: what its guests are."
                found.add(OUTPUT_TWICE, detail, output.where)
            elif folder.label == OWN and other is not None:
                found.add(OUTPUT_TWICE, f"`{output.name}` is also at {other.where}.", output.where)


def check_variables(code: SiteCode, values: Collection[str], found: Diagnostics) -> None:
    """Report variables that would have no value.

    Args:
        code: The own code of a site.
        values: The names of the variables that the secrets have values for.
        found: Takes the findings.
    """
    for folder in code.folders:
        for variable in folder.variables:
            has_value = variable.has_default or variable.name in (*GIVEN_VARIABLES, *values)
            if not has_value:
                meant = did_you_mean(variable.name, (*GIVEN_VARIABLES, *values))
                detail = f"`{variable.name}` has no default, and no value is passed.{meant}"
                found.add(NO_VALUE, detail, variable.where)
