"""Manifests of the first version: levels inside each other, as nodes with parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.document import Key, LocatedValues
    from stackyard.sources.site.entities.manifests import Level, ManifestV1
    from stackyard.sources.site.load import Site

__all__ = ["MAKES_PVE", "PRESET_PREFIX", "convert_levels"]

NOT_CONVERTIBLE = Kind(
    code="E-MANIFEST-LEVEL",
    summary="A level of an old manifest has no equal in the new form",
    remedy="Write the manifest with `schema_version: 2` and `nodes`.",
)
MAKES_PVE = "pve-setup"
# What homestak's own manifests pass to it. It runs on the new node itself, which is looked at anyway.
_PVE_SETUP_ARGS = frozenset(
    ("--local", "--skip-preflight", "--verbose", "-v", "--yes", "-y", "--json-output")
)
PRESET_PREFIX = "vm-"


def convert_levels(old: ManifestV1, places: LocatedValues, site: Site, found: Diagnostics) -> dict[str, Any]:
    """Return a manifest of version 2 that means the same; what has no equal becomes findings.

    Each level is one node, so that the nodes are in the order of the levels.
    """
    nodes: list[dict[str, Any]] = []
    for index, level in enumerate(old.levels):
        is_outer = index + 1 < len(old.levels)
        node = _node(level, ("levels", index), places, site, found)
        is_pve = is_outer or level.post_scenario == MAKES_PVE
        node["type"] = "pve" if is_pve else node.get("type", "vm")
        if nodes:
            node["parent"] = nodes[-1]["name"]
        nodes.append(node)
    document: dict[str, Any] = {"schema_version": 2, "name": old.name}
    if old.description is not None:
        document["description"] = old.description
    document["pattern"] = "tiered" if len(nodes) > 1 else "flat"
    document["nodes"] = nodes
    said = old.settings.model_dump(exclude_unset=True)
    return {**document, "settings": said} if said else document


def _node(
    level: Level, path: tuple[Key, ...], places: LocatedValues, site: Site, found: Diagnostics
) -> dict[str, Any]:
    node: dict[str, Any] = {"name": level.name}
    if level.env is not None:
        node = _from_env(level, path, places, site, found)
    elif level.template is not None:
        node["template"] = level.template
    elif level.vm_preset is not None:
        node["preset"] = _preset(level.vm_preset, site)
    for key in ("vmid", "image", "disk"):
        if getattr(level, key) is not None:
            node[key] = getattr(level, key)
    _check_scenario(level, path, places, found)
    return node


def _check_scenario(level: Level, path: tuple[Key, ...], places: LocatedValues, found: Diagnostics) -> None:
    """Check that what a level runs is what a node of type `pve` gets anyway."""
    if level.post_scenario not in (None, MAKES_PVE):
        detail = f"'{level.name}' runs the scenario '{level.post_scenario}', and nodes run only {MAKES_PVE}."
        found.add(NOT_CONVERTIBLE, detail, places.place((*path, "post_scenario")))
        return
    other = [arg for arg in level.post_scenario_args if arg not in _PVE_SETUP_ARGS]
    if other:
        detail = f"'{level.name}' passes {' '.join(other)} to its scenario, and nodes pass nothing."
        found.add(NOT_CONVERTIBLE, detail, places.place((*path, "post_scenario_args")))


def _preset(name: str, site: Site) -> str:
    """Return a preset as version 2 calls it: the first version left `vm-` out."""
    longer = f"{PRESET_PREFIX}{name}"
    return longer if name not in site.presets and longer in site.presets else name


def _from_env(
    level: Level, path: tuple[Key, ...], places: LocatedValues, site: Site, found: Diagnostics
) -> dict[str, Any]:
    """Return the one guest of an env, moved by the offset of the level."""
    env = site.envs.get(level.env or "")
    entries = [] if env is None else env.places.data["vms"]
    if env is None or len(entries) != 1:
        said = "there is no such env" if env is None else f"that env has {len(entries)} guests"
        detail = f"'{level.name}' is the one guest of the env '{level.env}', and {said}."
        found.add(NOT_CONVERTIBLE, detail, places.place((*path, "env")))
        return {"name": level.name}
    node = {**entries[0], "name": level.name}
    for key in ("key", "node"):
        node.pop(key, None)
    vmid = node.pop("vm_id", None) or node.get("vmid") or env.model.vmid_base
    if vmid is not None:
        node["vmid"] = vmid + (level.vmid_offset or 0)
    return node
