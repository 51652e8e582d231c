"""Package files, which a guest of the lab cannot install."""

from __future__ import annotations

__all__ = ["DebPackage"]


class DebPackage:
    """A package file."""

    missing_deps: tuple[str, ...] = ()
    _failure_string = "a guest of the lab installs packages of its catalogue only"

    def __init__(self, filename: str = "", cache: object = None) -> None:
        del cache
        self.filename = filename
        self.pkgname = filename.rpartition("/")[2].partition("_")[0]

    def check(self) -> bool:
        """Refuse."""
        return False

    def __getitem__(self, field: str) -> str:
        """Return what little is known of it."""
        return self.pkgname if field == "Package" else ""
