"""Writing and comparing the YAML of Talos: the same documents always become the same bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from yaml.resolver import Resolver

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["PlainText", "keep_plain", "write_documents"]

# Numbers that older YAML does not know, and that Talos' reader does.
_NEWER_NUMBER = re.compile(r"[-+]?0o[0-7_]+")
_TEXT = "tag:yaml.org,2002:str"


class PlainText(str):
    """A value that is written without quotes, as it was: its meaning depends on the field of Talos."""

    __slots__ = ()


def keep_plain(text: str) -> str:
    """Return text that stood without quotes; if that says more than the text, it stays without them."""
    is_doubtful = _resolve(text) != _TEXT or _NEWER_NUMBER.fullmatch(text) is not None
    return PlainText(text) if is_doubtful else text


def write_documents(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return documents as YAML, keys in their order."""
    texts = (
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=2**30, allow_unicode=True)
        for document in documents
    )
    return "---\n".join(texts)


class _Dumper(yaml.CSafeDumper):
    """Writes text of several lines as a block, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write a value that is there twice in both places: Talos' users read it."""
        del data
        return True


def _resolve(text: str) -> str:
    resolved: str = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
    return resolved


_RESOLVER: Any = Resolver()


def _write_text(dumper: Any, text: str) -> Any:
    if isinstance(text, PlainText):
        return dumper.represent_scalar(_resolve(text), str(text))
    if _NEWER_NUMBER.fullmatch(text):
        return dumper.represent_scalar(_TEXT, text, style="'")
    return dumper.represent_scalar(_TEXT, text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(PlainText, _write_text)
