"""All packages that are known to the guest."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from .package import Package

if TYPE_CHECKING:
    from collections.abc import Iterator

# In a guest this is a module of its own, and the rest is in a place that only the lab knows.
_HOME = __name__.partition(".site.")[0] if ".site." in __name__ else "guest"
if _HOME == "guest":
    sys.path.append("/run/lab/lib")
packages: Any = importlib.import_module(f"{_HOME}.packages")
accounts: Any = importlib.import_module(f"{_HOME}.accounts")
apt_pkg: Any = importlib.import_module("apt_pkg" if _HOME == "guest" else f"{_HOME}.site.apt_pkg")

__all__ = ["Cache", "FetchCancelledException", "FetchFailedException", "FilteredCache", "LockFailedException"]


class FetchCancelledException(IOError):
    """A download was broken off."""


class FetchFailedException(IOError):
    """A download failed."""


class LockFailedException(IOError):
    """Someone else is changing packages."""


class UntrustedException(FetchFailedException):
    """What was downloaded is not signed."""


class Cache:
    """The packages by name."""

    def __init__(self, progress: object = None, rootdir: object = None, memonly: bool = False) -> None:
        del progress, rootdir, memonly
        self._found: dict[str, Package] = {}
        self._cache = _LowCache(self)
        self.open()

    def open(self, progress: object = None) -> None:
        """Read everything again."""
        del progress
        known, have = packages.catalogue(), packages.list_installed()
        names = dict.fromkeys([*known, *have])
        self._found = {name: Package(name, known.get(name), have.get(name, {})) for name in names}

    def update(self, *_: object, **__: object) -> bool:
        """Do nothing: the catalogue is all there is."""
        shim: Any = importlib.import_module(f"{_HOME}.shim_apt")
        saved, sys.stdout = sys.stdout, sys.stderr
        try:
            shim._update()
        finally:
            sys.stdout = saved
        return True

    def commit(self, *_: object, **__: object) -> bool:
        """Make true what was marked."""
        wanted = [one.name for one in self if one.marked_install]
        gone = [one.name for one in self if one.marked_delete]
        with accounts.lock_records("dpkg"):
            if wanted:
                packages.apply(packages.plan_install(wanted, {}))
            if gone:
                packages.apply(packages.plan_remove(gone))
        self.open()
        return True

    def get_changes(self) -> list[Package]:
        """Return what is marked."""
        return [one for one in self if one.wish]

    def upgrade(self, dist_upgrade: bool = False) -> None:
        """Mark what can be upgraded."""
        del dist_upgrade
        for one in self:
            if one.is_upgradable:
                one.mark_upgrade()

    def clear(self) -> None:
        """Forget what was marked."""
        for one in self:
            one.mark_keep()

    def close(self) -> None:
        """Do nothing."""

    def keys(self) -> list[str]:
        """Return all names."""
        return list(self._found)

    def is_virtual_package(self, _name: str) -> bool:
        """Tell that there are none."""
        return False

    def get_providing_packages(self, _name: str, **_options: object) -> list[Package]:
        """Return nothing: there are no virtual packages."""
        return []

    def __getitem__(self, name: str) -> Package:
        """Return a package.

        Raises:
            KeyError: It is not known.
        """
        plain = name.partition(":")[0]
        if plain not in self._found:
            raise KeyError(f"The cache has no package named {name!r}")
        return self._found[plain]

    def __contains__(self, name: str) -> bool:
        """Return whether a package is known."""
        return name.partition(":")[0] in self._found

    def __iter__(self) -> Iterator[Package]:
        """Yield all packages."""
        return iter(self._found.values())

    def __len__(self) -> int:
        """Return how many are known."""
        return len(self._found)

    def __enter__(self) -> Cache:
        """Use it in a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the block."""


class FilteredCache(Cache):
    """The same: nothing is filtered."""


class _LowCache:
    """The lower half of the cache."""

    def __init__(self, upper: Cache) -> None:
        self._upper = upper

    def __getitem__(self, name: str) -> Any:
        found = self._upper[name]
        candidate = found.candidate
        return apt_pkg.LowPackage(found.name, found.record, None if candidate is None else candidate.version)
