"""The other form of the object: committed files, one top-level key each, joined when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.files import read_text
from stackyard.sources.deployment.store import ObjectMissingError
from stackyard.sources.deployment.text import ObjectText, is_comment, parse

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DomainTwiceError", "read_domains"]


class DomainTwiceError(InvalidInputError):
    """Two committed files have the same top-level key; joining them would keep one and drop the other."""

    code = "E-DEPLOYMENT-DOMAIN"
    summary = "A domain is in more than one file"
    default_remedy = "Keep each top-level key in one file."


def read_domains(folder: Path) -> ObjectText:
    """Read the files of a folder as one object.

    Raises:
        ObjectMissingError: There is no such folder, or no file in it.
        DomainTwiceError: A domain is in two files.
        InvalidInputError: A file is empty, cut off, or means more than one thing.
    """
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not paths:
        raise ObjectMissingError(f"There is no *.json in {folder}.", where=Location(str(folder)))
    data: dict[str, Any] = {}
    homes: dict[str, Path] = {}
    for path in paths:
        for key, value in parse(read_text(path), str(path)).data.items():
            if key in homes and not is_comment(key):
                raise DomainTwiceError(
                    f"`{key}` is in {homes[key]} and in {path}.", where=Location(str(path))
                )
            homes[key] = path
            data[key] = value
    text = orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()
    return ObjectText(text, f"{folder}/*.json", data)
