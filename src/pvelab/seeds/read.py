"""Finding and reading a seed: by its name, or in a file of JSON or YAML."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pvelab.seeds.big import big
from pvelab.seeds.check import SeedError, parse_seed
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import DocumentLimits
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.errors import Location
from stackyard.base.files import read_text

if TYPE_CHECKING:
    from pvelab.seeds.model import Seed

__all__ = ["decode_seed", "is_seed_file", "load_seed", "seed_names"]

# An export of a large cluster has as much.
_LIMITS = DocumentLimits(size=256 * 2**20, values=5_000_000)
_YAML = (".yaml", ".yml")
_ENDINGS = (".json", *_YAML)
# What is created by a rule instead of being read from a file.
_MADE = {"big": big}


def is_seed_file(name: str) -> bool:
    """Return whether a seed is named by its file: everything with a slash, `.json`, `.yaml` or `.yml` is."""
    return "/" in name or name.endswith(_ENDINGS)


def seed_names() -> list[str]:
    """Return the names of the seeds that come with the lab."""
    return sorted({*_list_shipped(), *_MADE})


def load_seed(name: str) -> Seed:
    """Return a seed by its name, or from a file of JSON or YAML.

    Raises:
        SeedError: There is no such seed, or it is wrong.
        FileError: The file cannot be read.
    """
    if is_seed_file(name):
        return parse_seed(
            decode_seed(read_text(Path(name)), name), name=Path(name).stem, where=Location(name)
        )
    if name in _MADE:
        return _MADE[name]()
    file = _list_shipped().get(name)
    if file is None:
        raise SeedError(
            f"There is no seed '{name}'; there are {', '.join(seed_names())}, or name a file of JSON or YAML."
        )
    text = (resources.files(__package__) / "shipped" / file).read_text()
    return parse_seed(decode_seed(text, file), name=name)


def decode_seed(text: str, name: str) -> Any:
    """Return what is in a file, which is YAML if its name says so and JSON otherwise.

    Raises:
        SeedError: It is neither.
    """
    if not name.endswith(_YAML):
        try:
            return parse_json(text, _LIMITS)
        except JsonError as err:
            place = Location(name, err.lineno, err.colno)
            raise SeedError(f"{name} is not JSON: {err.msg}.", where=place) from err
    try:
        return parse_yaml(text, _LIMITS) or {}
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        place = Location(name) if mark is None else Location(name, mark.line + 1, mark.column + 1)
        problem = getattr(err, "problem", None) or "it cannot be read"
        raise SeedError(f"{name} is not YAML: {problem}.", where=place) from err


def _list_shipped() -> dict[str, str]:
    """Return the seeds in files of this package: the file by the name."""
    found = (resources.files(__package__) / "shipped").iterdir()
    return {file.name.rpartition(".")[0]: file.name for file in found if file.name.endswith(_ENDINGS)}
