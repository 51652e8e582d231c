"""Where the secrets of a cluster are, and whether git holds that file."""

from __future__ import annotations

import enum
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.directories import find_git_top
from stackyard.clients.git.index_file import find_git_folder, read_index_file
from stackyard.sources.site.document import format_path

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["SecretPlace", "check_secret_place", "find_secret_place"]

IN_GIT = Kind(
    code="W-CLUSTER-SECRETS-IN-GIT",
    summary="Git holds secrets of the cluster in clear",
    remedy="Move them to cluster.sops.yaml, replace every one of them, and remove the old ones from history.",
    severity=Severity.WARNING,
)


class SecretPlace(enum.StrEnum):
    """Where secrets are."""

    NONE = "none"
    ENCRYPTED = "encrypted"
    LOCAL = "local"
    COMMITTED = "committed"


def find_secret_place(read: ClusterInput) -> SecretPlace:
    """Return where the secrets are: encrypted, in clear on this machine alone, or in clear in git."""
    clear = read.secret_names - set(read.places.secrets)
    if not clear:
        return SecretPlace.ENCRYPTED if read.secret_names else SecretPlace.NONE
    return SecretPlace.COMMITTED if _is_tracked(read.files[0]) else SecretPlace.LOCAL


def check_secret_place(read: ClusterInput, found: Diagnostics) -> None:
    """Warn where git holds secrets in clear."""
    if find_secret_place(read) is SecretPlace.COMMITTED:
        clear = sorted(read.secret_names - set(read.places.secrets))
        file = format_path(read.files[0])
        found.add(IN_GIT, f"{file} is in git and has `{clear[0]}` in clear.", read.places.key_place(clear[0]))


def _is_tracked(file: Path) -> bool:
    """Return whether the index of git has a file; an index that cannot be read has none."""
    absolute = Path(os.path.abspath(file))
    top = find_git_top(absolute.parent)
    git_folder = None if top is None else find_git_folder(top)
    index = None if git_folder is None else read_index_file(git_folder)
    return top is not None and index is not None and absolute.relative_to(top).as_posix() in index.files
