"""Manifests of nodes as levels, each inside the one before: the form of the first version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.sources.manifest.levels import MAKES_PVE, PRESET_PREFIX
from stackyard.sources.manifest.model import NodeType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.manifest.model import Manifest, Node
    from stackyard.sources.site.load import Site

__all__ = ["as_levels"]

NOT_LINEAR = Kind(
    code="E-MANIFEST-NOT-LINEAR",
    summary="A manifest is not one guest inside the other",
    remedy="Keep it as nodes (`schema_version: 2`), or take apart what is side by side.",
)
NOT_A_LEVEL = Kind(
    code="E-MANIFEST-NOT-A-LEVEL",
    summary="A node says what a level cannot say",
    remedy="Keep the manifest as nodes (`schema_version: 2`), or put it into a template of the site.",
)
_SAID = ("vmid", "image", "disk")
_ARGUMENTS = ("--local", "--skip-preflight")
_DEFAULT_MODE, _DEFAULT_POSTURE = "push", "dev"


def as_levels(manifest: Manifest, site: Site) -> dict[str, Any]:
    """Return a manifest of version 1 that means the same.

    Raises:
        InvalidInputError: Its nodes are not one inside the other, or say more than levels can; every
            reason is given.
    """
    found = Diagnostics()
    for kind, text, index in (*_not_linear(manifest), *_not_levels(manifest)):
        keys = () if index is None else ("nodes", index)
        found.add(kind, text, manifest.places.place(keys))
    found.raise_errors(f"The manifest '{manifest.name}'")
    document: dict[str, Any] = {"schema_version": 1, "name": manifest.name}
    if manifest.description is not None:
        document["description"] = manifest.description
    document["levels"] = [_level(node, site) for node in manifest.create_order]
    said = manifest.settings.model_dump(exclude_unset=True)
    return {**document, "settings": said} if said else document


def _not_linear(manifest: Manifest) -> Iterator[tuple[Kind, str, int | None]]:
    for scope, nodes in manifest.scopes.items():
        if len(nodes) > 1:
            names = ", ".join(node.name for node in nodes)
            where = f"inside of {scope.parent}" if scope.parent else "on the host"
            yield NOT_LINEAR, f"{names} are side by side {where}.", nodes[1].index


def _not_levels(manifest: Manifest) -> Iterator[tuple[Kind, str, int | None]]:
    if manifest.default_mode != _DEFAULT_MODE:
        yield NOT_A_LEVEL, f"Its guests configure themselves (`{manifest.default_mode}`).", None
    if manifest.posture != _DEFAULT_POSTURE:
        yield NOT_A_LEVEL, f"It names the posture '{manifest.posture}'.", None
    for node in manifest.nodes:
        more = sorted(set(node.entry) - {*_SAID, "preset", "template"})
        if node.type is NodeType.CT:
            more.insert(0, "type: ct")
        if node.scope.host is not None:
            more.append("host")
        if node.mode != manifest.default_mode:
            more.append("execution")
        if more:
            yield NOT_A_LEVEL, f"'{node.name}' says {', '.join(f'`{key}`' for key in more)}.", node.index
        if ("preset" in node.entry) == ("template" in node.entry):
            yield NOT_A_LEVEL, f"'{node.name}' says not one of `preset` and `template`.", node.index


def _level(node: Node, site: Site) -> dict[str, Any]:
    level: dict[str, Any] = {"name": node.name}
    if "preset" in node.entry:
        level["vm_preset"] = _short(str(node.entry["preset"]), site)
    else:
        level["template"] = node.entry["template"]
    level |= {key: node.entry[key] for key in _SAID if key in node.entry}
    if node.type is NodeType.PVE:
        level |= {"post_scenario": MAKES_PVE, "post_scenario_args": list(_ARGUMENTS)}
    return level


def _short(preset: str, site: Site) -> str:
    """Return a preset as version 1 calls it, without `vm-`, unless that is another one."""
    short = preset.removeprefix(PRESET_PREFIX)
    known = site.presets.get(short)
    is_other = known is not None and known.model != site.presets[preset].model
    return preset if is_other else short
