"""Kubernetes objects in YAML files, with the file and line of each that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from stackyard.base import files
from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.documents.yamltext import parse_yaml_documents
from stackyard.base.errors import Location
from stackyard.clients.kubernetes.references import ManifestError, refer_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["parse_manifests", "read_manifests"]

_NOT_AN_OBJECT = Kind(
    code="E-KUBERNETES-MANIFEST",
    summary="A document is not a Kubernetes object",
    remedy="Give it `apiVersion`, `kind` and `metadata.name`, or remove it.",
)


def read_manifests(path: Path) -> tuple[dict[str, Any], ...]:
    """Read the objects of a file; see `parse_manifests`.

    Raises:
        FileError: The file cannot be read.
        ManifestError: It is not YAML, has no object, or a document that is none.
    """
    return parse_manifests(files.read_text(path), str(path))


def parse_manifests(text: str, source: str = "the manifests") -> tuple[dict[str, Any], ...]:
    """Read the objects of a text with any number of YAML documents; lists of objects are taken apart.

    Args:
        text: The text. Empty documents are left out.
        source: What the text is, for errors.

    Raises:
        ManifestError: It is not YAML, has no object, or a document that is none.
    """
    found: list[dict[str, Any]] = []
    wrong: list[Diagnostic] = []
    try:
        for line, document in parse_yaml_documents(text):
            for obj in _take_apart(document):
                try:
                    refer_to(obj if isinstance(obj, Mapping) else {})
                except ManifestError as err:
                    where = Location(source, line)
                    wrong.append(Diagnostic(kind=_NOT_AN_OBJECT, detail=err.detail, where=where))
                else:
                    found.append(dict(obj))
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark
        where = Location(source, None if mark is None else mark.line + 1)
        raise ManifestError(f"{source} is not YAML: {err.problem}.", where=where) from None
    except yaml.YAMLError as err:
        raise ManifestError(f"{source} is not YAML: {err}.", where=Location(source)) from None
    if wrong:
        raise ManifestError(f"{source} has documents that are not Kubernetes objects.", tuple(wrong))
    if not found:
        raise ManifestError(f"{source} has no Kubernetes object.", where=Location(source))
    return tuple(found)


def _take_apart(document: Any) -> Iterator[Any]:
    if document is None:
        return
    items = document.get("items") if isinstance(document, Mapping) else None
    if isinstance(items, list) and document.get("kind") == "List":
        yield from items
    else:
        yield document
