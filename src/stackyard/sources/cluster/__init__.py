"""Talos clusters: `cluster.yaml` with `nodes.yaml`, or `cluster.toml`, read, checked and resolved.

`load_cluster` reads a folder and returns a frozen `Cluster`, or an error that carries every problem with its
place. `find_clusters` finds the clusters of a repository. Nothing here renders, and nothing asks a network.

The names below are imported when they are used: pydantic takes longer to load than a small command runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.sources.cluster.load import load_cluster, open_cluster
    from stackyard.sources.cluster.names import find_cluster, find_clusters

__all__ = ["find_cluster", "find_clusters", "load_cluster", "open_cluster"]

_PLACES = {"find_cluster": "names", "find_clusters": "names", "load_cluster": "load", "open_cluster": "load"}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: most of the package is used without these names

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
