"""Which clusters a repository has: that of its top, and those below `clusters/`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.directories import find_git_top
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.base.files import read_text
from stackyard.sources.site.document import format_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "CLUSTERS",
    "DEFAULT_NAME",
    "ClusterFolder",
    "ClusterNotFoundError",
    "find_cluster",
    "find_clusters",
    "is_cluster_name",
]

CLUSTERS = "clusters"
DEFAULT_NAME = "kubernetes"
_FILES = ("cluster.yaml", "cluster.toml")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

SAME_NAME = Kind(
    code="E-CLUSTER-SAME-NAME",
    summary="Two clusters of the repository have the same name",
    remedy="Give one of them another `cluster_name`; the name also finds its state.",
)


class ClusterNotFoundError(InvalidInputError):
    """There is no cluster here, or none of the name."""

    code = "E-CLUSTER-NOT-FOUND"
    summary = "There is no such cluster"
    default_remedy = (
        "Go to the folder with cluster.yaml or cluster.toml, or start one: `stackyard cluster init`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFolder:
    """A cluster that was found, and not yet read.

    Attributes:
        name: Its name.
        folder: Its folder.
        where: The file that it was found by.
    """

    name: str
    folder: Path
    where: Path


def find_clusters(start: str | Path | None = None) -> Mapping[str, ClusterFolder]:
    """Return the clusters of the repository around a folder, by name; only their names are read.

    That is the cluster of the folder or of the nearest one above it, up to the top of the git repository, and
    those in the folders of `clusters/` beside or above. Without a repository, only the folder itself counts.

    Args:
        start: Where to look from; the current folder when absent.

    Raises:
        InvalidInputError: Two clusters have the same name.
    """
    found = Diagnostics()
    clusters: dict[str, ClusterFolder] = {}
    for folder, file in _list_folders(Path(os.path.abspath(start or "."))):
        one = ClusterFolder(name=_read_name(file) or name_of_folder(folder), folder=folder, where=file)
        if (other := clusters.get(one.name)) is not None:
            detail = f"`{one.name}` is in {format_path(folder)} and in {format_path(other.folder)}."
            place, first = Location(format_path(file)), Location(format_path(other.where))
            found.add(SAME_NAME, detail, place, also=(first,))
        clusters.setdefault(one.name, one)
    found.raise_errors("The repository")
    return MappingProxyType(clusters)


def find_cluster(name: str | None = None, start: str | Path | None = None) -> ClusterFolder:
    """Return a cluster by its name; without one, the only one there is, or that of the folder.

    Raises:
        ClusterNotFoundError: There is none, or there are several.
        InvalidInputError: Two clusters have the same name.
    """
    from stackyard.base.suggestions import did_you_mean  # lazy: for an error

    here = Path(os.path.abspath(start or "."))
    known = find_clusters(here)
    if name is not None and name in known:
        return known[name]
    if name is None:
        of_folder = [one for one in known.values() if one.folder == here]
        if len(known) == 1 or of_folder:
            return (of_folder or list(known.values()))[0]
        if known:
            raise ClusterNotFoundError(
                f"There are several: {', '.join(sorted(known))}.",
                remedy="Name one, as in `stackyard cluster show NAME` and `stackyard infra plan --cluster "
                "NAME`, or go to its folder.",
            )
        raise ClusterNotFoundError(f"Neither {here} nor a folder above it has one.")
    listed = (
        f" There are: {', '.join(sorted(known))}."
        if known
        else f" Neither {here} nor a folder above it has any."
    )
    raise ClusterNotFoundError(f"There is no cluster `{name}`.{did_you_mean(name, known)}{listed}")


def is_cluster_name(text: str) -> bool:
    """Return whether a cluster can be called so."""
    return _NAME.fullmatch(text) is not None


def name_of_folder(folder: Path) -> str:
    """Return what a cluster is called whose file gives no name."""
    absolute = Path(os.path.abspath(folder))
    is_below = absolute.parent.name == CLUSTERS and is_cluster_name(absolute.name)
    return absolute.name if is_below else DEFAULT_NAME


def _list_folders(here: Path) -> Iterator[tuple[Path, Path]]:
    above = [here, *here.parents]
    around = above[: above.index(find_git_top(here) or here) + 1]
    seen: set[Path] = set()
    nearest = next(((folder, file) for folder in around if (file := _cluster_file(folder))), None)
    below = [
        (folder, file)
        for outer in around
        for folder in sorted((outer / CLUSTERS).glob("*/"))
        if (file := _cluster_file(folder))
    ]
    for folder, file in [*([nearest] if nearest else []), *below]:
        if folder not in seen:
            seen.add(folder)
            yield folder, file


def _cluster_file(folder: Path) -> Path | None:
    return next((folder / name for name in _FILES if (folder / name).exists()), None)


def _read_name(file: Path) -> str | None:
    """Return the name that a file gives; None where it gives none, or cannot be read: loading it says why."""
    try:
        text = read_text(file)
    except FileError:
        return None
    if file.suffix == ".toml":
        return _read_toml_name(text)
    if "cluster_name" not in text:
        return None
    from stackyard.sources.site.document import parse_document  # lazy: for files with a name

    document = parse_document(text, str(file), Diagnostics())
    return _valid(document.data.get("cluster_name")) if document is not None else None


def _read_toml_name(text: str) -> str | None:
    if "[cluster]" not in text:
        return None
    import tomllib  # lazy: for files with a name

    try:
        table = tomllib.loads(text).get("cluster")
    except (ValueError, RecursionError):
        return None
    return _valid(table.get("name")) if isinstance(table, dict) else None


def _valid(name: object) -> str | None:
    return name if isinstance(name, str) and is_cluster_name(name) else None
