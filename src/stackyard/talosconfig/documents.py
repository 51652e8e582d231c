"""A machine configuration as documents, and patches with the places of their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.secrets.formats.yaml_layout import parse_yaml
from stackyard.secrets.layout import SecretsSyntaxError
from stackyard.talosconfig.reading import read_layout
from stackyard.talosconfig.yamlform import write_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "MAIN",
    "DocumentKey",
    "MachineConfig",
    "MachineConfigError",
    "Patch",
    "key_of",
    "name_document",
    "parse_config",
]

# The kind of the document with `machine` and `cluster`, which says none.
MAIN = ""
DocumentKey = tuple[str, str]


class MachineConfigError(InvalidInputError):
    """A machine configuration cannot be read: not YAML, or not documents of Talos."""

    code = "E-TALOS-CONFIG"
    summary = "The machine configuration cannot be read"
    default_remedy = "Give the YAML of a machine configuration, as `talosctl get machineconfig` shows it."


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineConfig:
    """The configuration of one machine; its representation shows nothing, because it has secrets.

    Attributes:
        documents: Its documents, the main one first.
        redactor: Hides the secrets that it was made of, from the bundle and from encrypted patches.
    """

    documents: tuple[Mapping[str, Any], ...] = field(repr=False)
    redactor: Redactor = field(default=NOTHING_SECRET, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The YAML that Talos takes; the same documents always give the same text."""
        return write_documents(self.documents)

    def find(self, kind: str, name: str = "") -> Mapping[str, Any] | None:
        """Return a document; the main one has the kind `MAIN`."""
        return next((one for one in self.documents if key_of(one) == (kind, name)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One document of a patch file.

    Attributes:
        path: The file.
        data: The document.
        place: Returns where the value of some keys and indexes is.
        secrets: What is encrypted in its file; nothing of a plain file.
    """

    path: str
    data: Mapping[str, Any] = field(repr=False)
    place: Callable[..., Location] = field(repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def key_of(document: Mapping[str, Any]) -> DocumentKey:
    """Return what makes a document the same as another: its kind and name."""
    return str(document.get("kind") or MAIN), str(document.get("name") or "") if "kind" in document else ""


def name_document(key: DocumentKey) -> str:
    """Return the words for a document in messages."""
    kind, name = key
    return f"{kind} {name}".strip() if kind else "the main document"


def parse_config(text: str, path: str = "the machine configuration") -> MachineConfig:
    """Read a machine configuration, such as one that a node returned.

    Raises:
        MachineConfigError: It is not YAML, or not documents with keys.
    """
    try:
        documents = [document for document, _ in read_layout(parse_yaml(text, path), path) if document]
    except SecretsSyntaxError as err:
        raise MachineConfigError(err.detail, where=err.where) from err
    if not documents:
        raise MachineConfigError(f"{path} has no documents with keys.", where=Location(path))
    return MachineConfig(documents=tuple(documents))
