"""From a file, a text or a name to a manifest; everything that is wrong with it is found at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.manifest.build import build, build_flat
from stackyard.sources.manifest.checks import check_manifest, check_nodes_alone
from stackyard.sources.manifest.levels import convert_levels
from stackyard.sources.site.damaged import LostPaths, keep_valid
from stackyard.sources.site.document import parse_document, read_document
from stackyard.sources.site.entities.manifests import Level, ManifestV1, ManifestV2, manifest_model
from stackyard.sources.site.findings import add_findings
from stackyard.sources.site.scope import divide
from stackyard.sources.site.tree import LoadedFile, validate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site.document import Document, Key, LocatedValues
    from stackyard.sources.site.load import Site

__all__ = [
    "ManifestNotFoundError",
    "ManifestRequest",
    "check_damaged",
    "convert",
    "find_manifest",
    "read_manifest",
]

_JSON_NAME = "--manifest-json"
# Which one is meant where none is named: the site's own, else the one that every such site has.
_DEFAULTS = ("default", "n2-quick")


class ManifestNotFoundError(InvalidInputError):
    """A manifest is named that the site does not have."""

    code = "E-MANIFEST-NAME"
    summary = "There is no such manifest"
    default_remedy = "Correct the name; `stackyard manifest list` shows what there is."


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRequest:
    """Which manifest is meant: a text before a file before a name, and the default where none is said."""

    name: str | None = None
    file: str | None = None
    text: str | None = None


def find_manifest(site: Site, wanted: ManifestRequest) -> Manifest:
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


def read_manifest(
    site: Site, loaded: LoadedFile[ManifestV1 | ManifestV2], found: Diagnostics
) -> Manifest | None:
    """Return a file as a manifest; nothing, and findings, where it contradicts itself or the site."""
    current = convert(site, loaded, found)
    if current is None:
        _check_references(site, loaded, found)
        return None
    manifest = build(current.model, current.places, found)
    if manifest is not None:
        check_manifest(site, manifest, found)
    else:
        check_nodes_alone(site, build_flat(current.model, current.places), found)
    return manifest


def check_damaged(site: Site, name: str, found: Diagnostics) -> None:
    """Check what is left of a manifest whose file is not valid: what its nodes refer to."""
    left = site.damaged.get("manifests", {}).get(name)
    if left is not None:
        _check_references(site, left, found)


def _check_references(site: Site, left: LoadedFile[Any], found: Diagnostics) -> None:
    """Check what nodes or levels refer to, of a manifest that is not valid or has no equal in version 2."""
    of_nodes = Diagnostics()
    if isinstance(left.model, ManifestV1):
        left = _levels_as_nodes(site, left, of_nodes)
    build(left.model, left.places, of_nodes)
    check_nodes_alone(site, build_flat(left.model, left.places), of_nodes)
    told = {one.where for one in found.errors}
    found.extend(finding for finding in of_nodes if finding.where not in told)


def _levels_as_nodes(site: Site, left: LoadedFile[Any], found: Diagnostics) -> LoadedFile[Any]:
    """Return the levels that are left of a manifest as the nodes of one, as far as they have an equal."""
    levels = tuple(Level.model_construct(**entry) for entry in left.places.data["levels"])
    document = convert_levels(left.model.model_copy(update={"levels": levels}), left.places, site, found)
    places = _LevelLocations(left.places, document)
    return LoadedFile(name=left.name, places=places, model=ManifestV2.model_construct(name=str(left.name)))


def convert(
    site: Site, loaded: LoadedFile[ManifestV1 | ManifestV2], found: Diagnostics
) -> LoadedFile[ManifestV2] | None:
    """Return a manifest in version 2, whichever it is written in."""
    model = loaded.model
    if isinstance(model, ManifestV2):
        return LoadedFile(name=loaded.name, places=loaded.places, model=model)
    before = len(found.errors)
    document = convert_levels(model, loaded.places, site, found)
    if len(found.errors) > before:
        return None
    places = _LevelLocations(loaded.places, document)
    try:
        return LoadedFile(name=loaded.name, places=places, model=ManifestV2.model_validate(document))
    except ValidationError as err:
        add_findings(err, places, found, model=ManifestV2)
        return None


class _LevelLocations:
    """The places of nodes that are written as levels."""

    def __init__(self, places: LocatedValues, data: dict[str, Any]) -> None:
        self._places = places
        self.data = data
        # As the nodes call it.
        lost: LostPaths = getattr(places, "lost", LostPaths())
        self.lost = LostPaths(map(_as_node, lost.paths))

    @property
    def path(self) -> str:
        return self._places.path

    def place(self, keys: Sequence[Key] = ()) -> Location:
        return self._places.place(_as_level(keys))

    def key_place(self, keys: Sequence[Key]) -> Location:
        return self._places.key_place(_as_level(keys))


def _as_level(keys: Sequence[Key]) -> Sequence[Key]:
    return _rename_keys(keys, {"nodes": "levels", "preset": "vm_preset"})


def _as_node(keys: Sequence[Key]) -> tuple[Key, ...]:
    return _rename_keys(keys, {"levels": "nodes", "vm_preset": "preset"})


def _rename_keys(keys: Sequence[Key], names: Mapping[Key, str]) -> tuple[Key, ...]:
    """Return the place of a level, or of one of its own keys, in the words of the other version."""
    if not keys or keys[0] not in ("nodes", "levels"):
        return tuple(keys)
    return (*(names.get(key, key) for key in keys[:3]), *keys[3:])


def _load(
    site: Site, wanted: ManifestRequest, found: Diagnostics
) -> LoadedFile[ManifestV1 | ManifestV2] | None:
    if wanted.text is not None:
        return _validate(site, parse_document(wanted.text, _JSON_NAME, found), found)
    if wanted.file is not None:
        return _validate(site, read_document(Path(wanted.file), found), found)
    name = wanted.name or next((name for name in _DEFAULTS if name in site.manifests), None)
    if name is None:
        raise UsageError("No manifest is named (-M), and the site has no default.")
    loaded = site.manifests.get(name)
    if loaded is not None:
        return loaded
    if name not in site.broken["manifests"]:
        raise ManifestNotFoundError(
            f"There is no manifest '{name}' in {site.root}.{did_you_mean(name, site.manifests)}"
        )
    found.extend(divide(site, (("manifests", name),))[0])
    check_damaged(site, name, found)
    return None


def _validate(
    site: Site, document: Document | None, found: Diagnostics
) -> LoadedFile[ManifestV1 | ManifestV2] | None:
    if document is None:
        return None
    kind = manifest_model(document.data)
    model = validate(kind, document, found)
    if model is not None:
        return LoadedFile(name=model.name, places=document, model=model)
    left, partial = keep_valid(kind, document)
    _check_references(site, LoadedFile(name=_JSON_NAME, places=left, model=partial), found)
    return None
