"""The objects of a folder of a repository: plain manifests, kustomization.yaml with resources, SOPS."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

import yaml

from pvelab.kubernetes.decrypt import DecryptionFailure, decrypt_document
from pvelab.kubernetes.gitsource import SourceFailure
from stackyard.base.documents.yamltext import parse_yaml, parse_yaml_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.kubernetes.gitsource import FetchedSource

__all__ = ["build_objects"]

_ENDINGS = (".yaml", ".yml")
_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_FIRST = ("Namespace", "CustomResourceDefinition")
# What is read of a kustomization.yaml; anything else would change objects, and is refused.
_READ = frozenset(("apiVersion", "kind", "metadata", "resources", "namespace"))


async def build_objects(
    source: FetchedSource, spec: Mapping[str, Any], secret: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the objects of a Kustomization, definitions and namespaces first.

    Args:
        source: The revision.
        spec: The Kustomization's spec.
        secret: The secret with the age key, where it names one.

    Raises:
        SourceFailure: They cannot be built, with the reason.
    """
    path = posixpath.normpath(str(spec.get("path") or ".")).lstrip("/")
    found = await source.list_files("" if path == "." else path)
    if not found:
        message = f"kustomization path not found: stat /tmp/kustomization/{path}: no such file or directory"
        raise SourceFailure("ArtifactFailed", message)
    folder = "" if path == "." else path
    objects: list[dict[str, Any]] = []
    try:
        for document in _read_folder(found, folder):
            objects.append(_decrypt(document, spec, secret))
    except yaml.YAMLError as err:
        raise SourceFailure("BuildFailed", f"kustomize build failed: {err}") from err
    namespace = spec.get("targetNamespace")
    for obj in objects:
        if namespace and obj.get("kind") not in _FIRST:
            obj["metadata"]["namespace"] = namespace
    return sorted(objects, key=lambda obj: obj.get("kind") not in _FIRST)


def _read_folder(found: Mapping[str, bytes], folder: str) -> list[dict[str, Any]]:
    for name in _NAMES:
        if (text := found.get(posixpath.join(folder, name))) is not None:
            return _read_kustomization(found, folder, text)
    names = [name for name in sorted(found) if _is_below(name, folder) and name.endswith(_ENDINGS)]
    # A folder with a kustomization.yaml of its own is one resource.
    nested = sorted({posixpath.dirname(name) for name in names if posixpath.basename(name) in _NAMES})
    documents = [part for inner in nested for part in _read_folder(found, inner)]
    for name in names:
        if not any(_is_below(name, inner) for inner in nested):
            documents += _read_file(found[name], name)
    return documents


def _read_kustomization(found: Mapping[str, bytes], folder: str, text: bytes) -> list[dict[str, Any]]:
    document = parse_yaml(text)
    if not isinstance(document, dict) or set(document) - _READ:
        unread = ", ".join(sorted(set(document or {}) - _READ)) or "nothing"
        raise SourceFailure(
            "BuildFailed", f"the lab reads resources of a kustomization.yaml only, not {unread}"
        )
    documents: list[dict[str, Any]] = []
    for entry in document.get("resources") or ():
        path = posixpath.normpath(posixpath.join(folder, str(entry)))
        if path in found:
            documents += _read_file(found[path], path)
        elif any(_is_below(name, path) for name in found):
            documents += _read_folder(found, path)
        else:
            message = (
                f"kustomize build failed: accumulating resources from '{entry}': no such file or directory"
            )
            raise SourceFailure("BuildFailed", message)
    if namespace := document.get("namespace"):
        for obj in documents:
            obj["metadata"]["namespace"] = namespace
    return documents


def _is_below(name: str, folder: str) -> bool:
    return not folder or name.startswith(f"{folder}/")


def _read_file(data: bytes, name: str) -> list[dict[str, Any]]:
    documents = [document for _, document in parse_yaml_documents(data.decode()) if document is not None]
    for document in documents:
        if not isinstance(document, dict) or not (document.get("metadata") or {}).get("name"):
            raise SourceFailure("BuildFailed", f"kustomize build failed: {name} is not a Kubernetes object")
    return documents


def _decrypt(
    document: dict[str, Any], spec: Mapping[str, Any], secret: Mapping[str, Any] | None
) -> dict[str, Any]:
    if "sops" not in document:
        return document
    if (spec.get("decryption") or {}).get("provider") != "sops":
        return document
    try:
        return decrypt_document(document, dict((secret or {}).get("data") or {}))
    except DecryptionFailure as err:
        kind, name = document.get("kind"), document["metadata"].get("name")
        raise SourceFailure("BuildFailed", f"{kind}/{name} decryption failed: {err}") from err
