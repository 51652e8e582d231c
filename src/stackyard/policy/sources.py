"""Sources of modules: paths, addresses of a registry, and everything else."""

from __future__ import annotations

import enum
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.sources.stacks.code_reader import CodeReader

__all__ = ["SourceKind", "classify", "local_folder", "registry_address"]

_LOCAL = ("./", "../", "/")
_PART = r"[0-9A-Za-z](?:[0-9A-Za-z_-]{0,62}[0-9A-Za-z])?"
_REGISTRY = re.compile(
    rf"(?:(?P<host>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*(?::\d+)?)/)?{_PART}/{_PART}/[0-9a-z]{{1,64}}(?://.*)?"
)
# OpenTofu takes these as git repositories, although they look like the host of a registry.
_GIT_HOSTS = ("github.com", "bitbucket.org", "gitlab.com")
_ARCHIVE = re.compile(
    r"\.(?:zip|tar|tgz|tbz2|txz|tar\.(?:gz|bz2|xz|zst))(?:$|[?/])|[?&]archive=", re.IGNORECASE
)


class SourceKind(enum.Enum):
    """What a source is; the value says it in words."""

    LOCAL = "a path"
    REGISTRY = "an address of a registry"
    GIT = "a git repository"
    BUCKET = "a bucket"
    ARCHIVE = "an archive"
    HTTP = "an HTTP address"
    OTHER = "an address that is neither a path nor one of a registry"


def classify(source: str) -> SourceKind:
    """Return what a source is."""
    lower = source.lower()
    if source.startswith(_LOCAL) or source in (".", ".."):
        return SourceKind.LOCAL
    if (
        lower.startswith(("s3::", "gcs::"))
        or ".amazonaws.com/" in lower
        or "storage.googleapis.com/" in lower
    ):
        return SourceKind.BUCKET
    host = lower.partition("/")[0]
    if (
        lower.startswith(("git::", "git@", "ssh://", "git://", "hg::"))
        or host in _GIT_HOSTS
        or ".git" in lower
    ):
        return SourceKind.GIT
    if _ARCHIVE.search(lower):
        return SourceKind.ARCHIVE
    if lower.startswith(("http://", "https://", "http::", "https::")):
        return SourceKind.HTTP
    match = _REGISTRY.fullmatch(source)
    parts = source.partition("//")[0].split("/")
    # Three parts with a host in front name a repository of it, not a registry.
    if match is not None and ("." not in parts[0] or len(parts) == 4):
        return SourceKind.REGISTRY
    return SourceKind.OTHER


def registry_address(source: str) -> str:
    """Return the address of a module without a folder inside it, in one spelling."""
    text = source.partition("//")[0].lower()
    return text.removeprefix("registry.opentofu.org/").removeprefix("registry.terraform.io/")


def local_folder(reader: CodeReader, folder: str, source: str | None) -> str | None:
    """Return where a local module really is, from the top of the tree; None for everything else.

    Args:
        reader: Knows the links of the tree.
        folder: The folder of the code that calls it, from the top of the tree.
        source: As the code has it.
    """
    if source is None or classify(source) is not SourceKind.LOCAL:
        return None
    top = reader.tree.top
    real = reader.real(os.path.normpath(os.path.join(top, folder, source)))
    if real == top:
        return ""
    return real[len(top) + 1 :] if real.startswith(f"{top}/") else None
