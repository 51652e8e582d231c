"""Every node and object has one file: what two files describe would be changed back and forth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.hypervisor.node_names import choose_node_file, list_node_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts

__all__ = ["check_owners", "find_cluster"]

TWICE = Kind(
    code="E-HYPERVISOR-TWICE",
    summary="Something is described twice",
    remedy="Keep one of the two places.",
)
UNKNOWN_NODE = Kind(
    code="E-HYPERVISOR-NODE",
    summary="The site does not know a node",
    remedy="Correct the name, or add nodes/NAME.yaml (`stackyard connect` writes it).",
)
SEVERAL_NODES = Kind(
    code="E-HYPERVISOR-NODES",
    summary="It is not clear which node is meant",
    remedy="Write the name of the file of `nodes/` in place of what Proxmox calls the node.",
)


def check_owners(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check that nodes are known and have one file, and that nothing is in two places."""
    _check_nodes(files, site, found)
    owners: dict[tuple[str | None, str, str], tuple[HypervisorFile, Entry]] = {}
    for file in files:
        for entry in file.entries:
            # Two clusters may have objects of the same name.
            whose = file.name if file.is_node else find_cluster(file, site)
            first, other = owners.setdefault((whose, entry.key.type, entry.name), (file, entry))
            if other is not entry and first.is_node == file.is_node:
                detail = f"`{entry.section.name}` has {entry.name!r} here and in {first.place(other)}."
                found.add(TWICE, detail, file.place(entry), also=(first.place(other),))


def _check_nodes(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    seen: dict[str, HypervisorFile] = {}
    for file in files:
        key = "node" if file.is_node else "api"
        said = getattr(file.model, key, None)
        if said is None:
            continue
        known = site.nodes
        if known is not None and said not in {*known, *known.values()}:
            meant = did_you_mean(said, known.values())
            detail = f"There is no node '{said}' in nodes/.{meant}"
            found.add(UNKNOWN_NODE, detail, file.places.place((key,)))
            continue
        same = list_node_files(known or {}, said)
        if len(same) > 1 and file.name not in same:
            detail = f"{len(same)} nodes are called '{said}': {', '.join(sorted(same))} of nodes/."
            found.add(SEVERAL_NODES, detail, file.places.place((key,)))
            continue
        first = seen.setdefault(_find_file(file, said, site) or said, file) if file.is_node else file
        if first is not file:
            where = first.places.place(("node",))
            detail = f"The node '{said}' has a file already: {where}."
            found.add(TWICE, detail, file.places.place(("node",)), also=(where,))


def find_cluster(file: HypervisorFile, site: SiteFacts) -> str | None:
    """Return what tells the cluster of a file from others: the node whose API is used."""
    return _find_file(file, getattr(file.model, "api", None), site)


def _find_file(file: HypervisorFile, said: str | None, site: SiteFacts) -> str | None:
    """Return the file of a node in `nodes/`; what is said where that is not known."""
    return None if said is None else choose_node_file(site.nodes or {}, file.name, said) or said
