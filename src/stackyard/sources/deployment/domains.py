"""The other form of the object: committed files, one top-level key each, joined when they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.files import read_text
from stackyard.sources.deployment.store import ObjectMissingError
from stackyard.sources.deployment.text import ObjectText, is_comment, parse

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Domain", "DomainTwiceError", "read_domain_files", "read_domains"]


class DomainTwiceError(InvalidInputError):
    """Two committed files have the same top-level key; joining them would keep one and drop the other."""

    code = "E-DEPLOYMENT-DOMAIN"
    summary = "A domain is in more than one file"
    default_remedy = "Keep each top-level key in one file."


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What a committed file has under one of its top-level keys, and where."""

    value: Any
    where: Location


def read_domains(folder: Path) -> ObjectText:
    """Read the files of a folder as one object.

    Raises:
        ObjectMissingError: There is no such folder, or no file in it.
        DomainTwiceError: A domain is in two files.
        InvalidInputError: A file is empty, cut off, or means more than one thing.
    """
    data = {key: domain.value for key, domain in read_domain_files(folder).items()}
    text = orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()
    return ObjectText(text, f"{folder}/*.json", data)


def read_domain_files(folder: Path) -> dict[str, Domain]:
    """Read the files of a folder; return what is under each top-level key, with its place.

    Raises:
        ObjectMissingError: There is no such folder, or no file in it.
        DomainTwiceError: A domain is in two files.
        InvalidInputError: A file is empty, cut off, or means more than one thing.
    """
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not paths:
        raise ObjectMissingError(f"There is no *.json in {folder}.", where=Location(str(folder)))
    found: dict[str, Domain] = {}
    for path in paths:
        text = parse(read_text(path), str(path))
        for key, value in text.data.items():
            if key in found and not is_comment(key):
                raise DomainTwiceError(
                    f"`{key}` is in {found[key].where.path} and in {path}.", where=Location(str(path))
                )
            found[key] = Domain(value=value, where=text.place((key,)))
    return found
