"""From a file, a text or a name to a manifest; everything that is wrong with it is found at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stackyard.diagnostics import Diagnostics
from stackyard.errors import InvalidInputError, UsageError
from stackyard.manifest.building import build, build_flat
from stackyard.manifest.checks import check_manifest, check_nodes_alone
from stackyard.manifest.levels import converted
from stackyard.site.document import parse_document, read_document
from stackyard.site.entities.manifests import ManifestV1, ManifestV2, manifest_model
from stackyard.site.findings import add_findings, meant
from stackyard.site.scope import divide
from stackyard.site.tree import Loaded, validated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.errors import Location
    from stackyard.manifest.model import Manifest
    from stackyard.site.document import Document, Key, Places
    from stackyard.site.load import Site

__all__ = ["ManifestNotFoundError", "Wanted", "check_damaged", "convert", "find_manifest", "read_manifest"]

_JSON_NAME = "--manifest-json"
# Which one is meant where none is named: the site's own, else the one that every such site has.
_DEFAULTS = ("default", "n2-quick")


class ManifestNotFoundError(InvalidInputError):
    """A manifest is named that the site does not have."""

    code = "E-MANIFEST-NAME"
    summary = "There is no such manifest"
    default_remedy = "Correct the name; `stackyard manifest list` shows what there is."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which manifest is meant: a text before a file before a name, and the default where none is said."""

    name: str | None = None
    file: str | None = None
    text: str | None = None


def find_manifest(site: Site, wanted: Wanted) -> Manifest:
    """Return the manifest that is meant, checked against the site.

    Raises:
        ManifestNotFoundError: The site has no such manifest.
        UsageError: None is named, and the site has no default.
        InvalidInputError: Something is wrong with it; the error carries every problem.
    """
    found = Diagnostics()
    loaded = _load(site, wanted, found)
    manifest = None if loaded is None else read_manifest(site, loaded, found)
    found.raise_errors("The manifest")
    if manifest is None:
        raise InvalidInputError("The manifest cannot be read.")
    return manifest


def read_manifest(site: Site, loaded: Loaded[ManifestV1 | ManifestV2], found: Diagnostics) -> Manifest | None:
    """Return a file as a manifest; nothing, and findings, where it contradicts itself or the site."""
    current = convert(site, loaded, found)
    manifest = None if current is None else build(current.model, current.places, found)
    if manifest is not None:
        check_manifest(site, manifest, found)
    elif current is not None:
        check_nodes_alone(site, build_flat(current.model, current.places), found)
    return manifest


def check_damaged(site: Site, name: str, found: Diagnostics) -> None:
    """Check what is left of a manifest whose file is not valid: what its nodes refer to."""
    left = site.damaged.get("manifests", {}).get(name)
    if left is None or "nodes" not in type(left.model).model_fields:
        return
    of_nodes = Diagnostics()
    build(left.model, left.places, of_nodes)
    check_nodes_alone(site, build_flat(left.model, left.places), of_nodes)
    found.extend(finding for finding in of_nodes if finding.where not in {one.where for one in found.errors})


def convert(
    site: Site, loaded: Loaded[ManifestV1 | ManifestV2], found: Diagnostics
) -> Loaded[ManifestV2] | None:
    """Return a manifest in version 2, whichever it is written in."""
    model = loaded.model
    if isinstance(model, ManifestV2):
        return Loaded(name=loaded.name, places=loaded.places, model=model)
    before = len(found.errors)
    document = converted(model, loaded.places, site, found)
    if len(found.errors) > before:
        return None
    places = _LevelPlaces(loaded.places, document)
    try:
        return Loaded(name=loaded.name, places=places, model=ManifestV2.model_validate(document))
    except ValidationError as err:
        add_findings(err, places, found, model=ManifestV2)
        return None


class _LevelPlaces:
    """The places of nodes that are written as levels."""

    def __init__(self, places: Places, data: dict[str, Any]) -> None:
        self._places = places
        self.data = data

    @property
    def path(self) -> str:
        return self._places.path

    def place(self, keys: Sequence[Key] = ()) -> Location:
        return self._places.place(_as_level(keys))

    def key_place(self, keys: Sequence[Key]) -> Location:
        return self._places.key_place(_as_level(keys))


def _as_level(keys: Sequence[Key]) -> Sequence[Key]:
    return ("levels", *keys[1:]) if keys and keys[0] == "nodes" else keys


def _load(site: Site, wanted: Wanted, found: Diagnostics) -> Loaded[ManifestV1 | ManifestV2] | None:
    if wanted.text is not None:
        return _validated(parse_document(wanted.text, _JSON_NAME, found), found)
    if wanted.file is not None:
        return _validated(read_document(Path(wanted.file), found), found)
    name = wanted.name or next((name for name in _DEFAULTS if name in site.manifests), None)
    if name is None:
        raise UsageError("No manifest is named (-M), and the site has no default.")
    loaded = site.manifests.get(name)
    if loaded is not None:
        return loaded
    if name not in site.broken["manifests"]:
        raise ManifestNotFoundError(
            f"There is no manifest '{name}' in {site.root}.{meant(name, site.manifests)}"
        )
    found.extend(divide(site, (("manifests", name),))[0])
    check_damaged(site, name, found)
    return None


def _validated(document: Document | None, found: Diagnostics) -> Loaded[ManifestV1 | ManifestV2] | None:
    if document is None:
        return None
    model = validated(manifest_model(document.data), document, found)
    return None if model is None else Loaded(name=model.name, places=document, model=model)
