"""Which place a user means: `state:NAME`, a file, `http(s)://...`, `s3://bucket/key`."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from stackyard.base.errors import UsageError

__all__ = ["AddressKind", "BackendAddress", "parse_address"]


class AddressKind(enum.StrEnum):
    """The kinds of places."""

    STORE = "state"
    FILE = "file"
    HTTP = "http"
    S3 = "s3"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendAddress:
    """A place as a user names it.

    Attributes:
        kind: What it is.
        text: The name of a state, the path of a file, or the whole address.
    """

    kind: AddressKind
    text: str

    @property
    def is_many(self) -> bool:
        """Whether it means all states below a prefix: `state:`, `state:prod/`."""
        return self.kind is AddressKind.STORE and (not self.text or self.text.endswith("/"))


def parse_address(text: str) -> BackendAddress:
    """Read an address.

    Raises:
        UsageError: It is none.
    """
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "state":
        return BackendAddress(kind=AddressKind.STORE, text=rest)
    if scheme in ("http", "https") and rest.startswith("//"):
        return BackendAddress(kind=AddressKind.HTTP, text=text)
    if scheme == "s3" and rest.startswith("//"):
        return BackendAddress(kind=AddressKind.S3, text=text)
    if colon and scheme == "file" and rest:
        return BackendAddress(kind=AddressKind.FILE, text=rest)
    # A bare word could be a state as well as a file; a path has a slash or an ending.
    if not ("/" in text or "." in text) or "://" in text:
        raise UsageError(
            f"{text!r} is no place: write state:NAME, a path such as ./terraform.tfstate, http(s)://... or"
            " s3://bucket/key."
        )
    return BackendAddress(kind=AddressKind.FILE, text=text)
