"""Reading YAML as Talos does: `off` is text, and numbers in other forms stay as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import Location
from stackyard.secrets.layout import Branch, Layout, Leaf, Listing, Node
from stackyard.talosconfig.deletes import DIRECTIVE
from stackyard.talosconfig.yamlform import keep_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Places", "read_layout"]

# Programs that fill in variables need the sign twice.
_ESCAPED = f"${DIRECTIVE}"


def read_layout(layout: Layout, path: str) -> Iterator[tuple[dict[str, Any], Places]]:
    """Yield the documents of a file, each with the places of its values."""
    for document in layout.documents:
        places: dict[tuple[str | int, ...], Location] = {}
        yield _read_node(document.root, layout, path, (), places), Places(path, places)


class Places:
    """Knows where the values of a document are."""

    def __init__(self, path: str, places: dict[tuple[str | int, ...], Location]) -> None:
        self._path, self._places = path, places

    def __call__(self, *keys: str | int) -> Location:
        """Return where the value of some keys and indexes is, or the nearest thing around it."""
        for length in range(len(keys), -1, -1):
            if keys[:length] in self._places:
                return self._places[keys[:length]]
        return Location(self._path)


def _read_node(
    node: Node,
    layout: Layout,
    path: str,
    keys: tuple[str | int, ...],
    places: dict[tuple[str | int, ...], Location],
) -> Any:
    places.setdefault(keys, node.place.location(path))
    match node:
        case Leaf():
            return _read_leaf(node, layout)
        case Listing():
            return [
                _read_node(item.node, layout, path, (*keys, at), places) for at, item in enumerate(node.items)
            ]
        case Branch():
            values = {}
            for entry in node.entries:
                key = DIRECTIVE if entry.key == _ESCAPED else entry.key
                places[*keys, key] = entry.place.location(path)
                values[key] = _read_node(entry.node, layout, path, (*keys, key), places)
            return _merge_anchors(values)


def _merge_anchors(values: dict[str, Any]) -> dict[str, Any]:
    """Apply a merge key of YAML: what is written out wins, then the first of several mappings."""
    sources = values.pop("<<", [])
    for source in sources if isinstance(sources, list) else [sources]:
        for key, value in source.items() if isinstance(source, dict) else ():
            values.setdefault(key, value)
    return values


def _read_leaf(leaf: Leaf, layout: Layout) -> Any:
    value, written = leaf.value, layout.text[leaf.start : leaf.end]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and written == str(value):
        return value
    if isinstance(value, str) and written != value:
        # In quotes, or a block.
        return value
    return keep_plain(written)
