"""A package and its versions."""

from __future__ import annotations

import importlib
import sys
from typing import Any

# In a guest this is a module of its own, and the rest is in a place that only the lab knows.
_HOME = __name__.partition(".site.")[0] if ".site." in __name__ else "guest"
if _HOME == "guest":
    sys.path.append("/run/lab/lib")
packages: Any = importlib.import_module(f"{_HOME}.packages")

__all__ = ["Origin", "Package", "Version"]


class Origin:
    """Where a version comes from."""

    origin = "Debian"
    label = "Debian"
    archive = "stable"
    codename = "bookworm"
    component = "main"
    site = "mirror.lab"
    trusted = True


class Version:
    """One version of a package."""

    def __init__(self, package: Package, version: str) -> None:
        self.package = package
        self.version = version

    def __str__(self) -> str:
        """Return the version as text."""
        return self.version

    def __eq__(self, other: object) -> bool:
        """Return whether two are the same."""
        return isinstance(other, Version) and (self.package.name, self.version) == (
            other.package.name,
            other.version,
        )

    def __hash__(self) -> int:
        """Allow it in sets."""
        return hash((self.package.name, self.version))

    @property
    def architecture(self) -> str:
        """For which machine."""
        known = self.package.known
        return str(known.architecture) if known else "amd64"

    @property
    def section(self) -> str:
        """The section of the archive."""
        known = self.package.known
        return str(known.section) if known else "misc"

    @property
    def origins(self) -> list[Origin]:
        """Where it comes from."""
        return [Origin()]

    @property
    def summary(self) -> str:
        """One line on it."""
        known = self.package.known
        return str(known.summary) if known else self.package.name

    description = summary
    priority = "optional"

    @property
    def installed_size(self) -> int:
        """In bytes."""
        known = self.package.known
        return int(known.size) * 1024 if known else 0

    @property
    def is_installed(self) -> bool:
        """Whether it is the one that is there."""
        return self.package.installed == self

    @property
    def source_name(self) -> str:
        """The name of its source."""
        return self.package.name


class Package:
    """A package, installed or not."""

    def __init__(self, name: str, known: Any, record: dict[str, Any]) -> None:
        self.name = self.shortname = name
        self.known = known
        self.record = record
        self.wish = ""

    def __str__(self) -> str:
        """Return its name."""
        return self.name

    @property
    def fullname(self) -> str:
        """Its name."""
        return self.name

    @property
    def is_installed(self) -> bool:
        """Whether it is there."""
        return self.record.get("state") == "ii"

    @property
    def installed(self) -> Version | None:
        """The version that is there."""
        return Version(self, str(self.record["version"])) if self.is_installed else None

    @property
    def candidate(self) -> Version | None:
        """The version that would be installed."""
        return None if self.known is None else Version(self, str(self.known.version))

    @property
    def versions(self) -> list[Version]:
        """All versions that are known."""
        found = [one for one in (self.candidate, self.installed) if one is not None]
        return list(dict.fromkeys(found))

    @property
    def is_upgradable(self) -> bool:
        """Whether a later version can be had."""
        if self.installed is None or self.candidate is None:
            return False
        return bool(packages.compare_versions(self.candidate.version, self.installed.version) > 0)

    @property
    def is_auto_installed(self) -> bool:
        """Whether it is there because of others."""
        return bool(self.record.get("auto"))

    @property
    def is_auto_removable(self) -> bool:
        """Whether nothing needs it any more."""
        return self.name in packages.list_unneeded()

    @property
    def has_config_files(self) -> bool:
        """Whether only its configuration is left."""
        return self.record.get("state") == "rc"

    @property
    def installed_files(self) -> list[str]:
        """The files that it brought."""
        if self.has_config_files:
            return ["/etc"]
        return list(packages.files_of(self.name)) if self.is_installed else []

    @property
    def marked_install(self) -> bool:
        """Whether it is going to be installed."""
        return self.wish == "install"

    @property
    def marked_delete(self) -> bool:
        """Whether it is going to be removed."""
        return self.wish == "delete"

    def mark_install(self, *_: object, **__: object) -> None:
        """Have it installed by `commit`."""
        self.wish = "install"

    def mark_upgrade(self, *_: object, **__: object) -> None:
        """Have it upgraded by `commit`."""
        self.wish = "install"

    def mark_delete(self, *_: object, **__: object) -> None:
        """Have it removed by `commit`."""
        self.wish = "delete"

    def mark_keep(self) -> None:
        """Leave it as it is."""
        self.wish = ""
