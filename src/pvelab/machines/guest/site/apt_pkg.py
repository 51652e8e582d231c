"""The lower half of python3-apt: versions, configuration, and which version would be installed."""

from __future__ import annotations

import fnmatch
import importlib
import sys
from typing import Any

# In a guest this is a module of its own, and the rest is in a place that only the lab knows.
_HOME = __name__.partition(".site.")[0] if ".site." in __name__ else "guest"
if _HOME == "guest":
    sys.path.append("/run/lab/lib")
packages: Any = importlib.import_module(f"{_HOME}.packages")

__all__ = [
    "CURSTATE_CONFIG_FILES",
    "CURSTATE_INSTALLED",
    "CURSTATE_NOT_INSTALLED",
    "Error",
    "Policy",
    "config",
    "get_architectures",
    "init",
    "init_config",
    "init_system",
    "upstream_version",
    "version_compare",
]

CURSTATE_NOT_INSTALLED = 0
CURSTATE_UNPACKED = 1
CURSTATE_CONFIG_FILES = 5
CURSTATE_INSTALLED = 6
VERSION = "2.6.1"


class Error(SystemError):
    """Something that apt refuses."""


class Configuration(dict[str, str]):
    """The configuration of apt, by name."""

    def find(self, key: str, default: str = "") -> str:
        """Return a value."""
        return self.get(key, default)

    def find_file(self, key: str, default: str = "") -> str:
        """Return a path."""
        return self.get(key, default)

    def find_dir(self, key: str, default: str = "") -> str:
        """Return a folder."""
        return self.get(key, default)

    def find_b(self, key: str, default: bool = False) -> bool:
        """Return a switch."""
        return self.get(key, "1" if default else "0") in ("1", "true", "yes")

    def find_i(self, key: str, default: int = 0) -> int:
        """Return a number."""
        return int(self.get(key, default))

    def set(self, key: str, value: str) -> None:
        """Set a value."""
        self[key] = value

    def value_list(self, key: str) -> list[str]:
        """Return the values of a list."""
        return [self[key]] if key in self else []


config = Configuration(
    {
        "APT::Architecture": "amd64",
        "Dir": "/",
        "Dir::Etc::sourcelist": "/etc/apt/sources.list",
        "Dir::Etc::sourceparts": "/etc/apt/sources.list.d/",
        "Dir::Etc::preferences": "/etc/apt/preferences",
        "Dir::Etc::preferencesparts": "/etc/apt/preferences.d/",
        "Dir::State::lists": "/var/lib/apt/lists/",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache::archives": "/var/cache/apt/archives/",
    }
)


def init() -> None:
    """Do nothing: there is nothing to read first."""


init_config = init
init_system = init


def version_compare(left: str, right: str) -> int:
    """Compare two versions: below, at or above zero."""
    return int(packages.compare_versions(left, right))


def upstream_version(version: str) -> str:
    """Return a version without epoch and revision."""
    plain = version.split(":", 1)[-1]
    return plain.rpartition("-")[0] or plain


def get_architectures() -> list[str]:
    """Return the architectures of the guest."""
    return ["amd64"]


class LowVersion:
    """A version in the lower half."""

    def __init__(self, text: str) -> None:
        self.ver_str = text


class LowPackage:
    """A package in the lower half."""

    def __init__(self, name: str, record: dict[str, Any], candidate: str | None) -> None:
        self.name = name
        self.candidate = candidate
        states = {"ii": CURSTATE_INSTALLED, "rc": CURSTATE_CONFIG_FILES}
        self.current_state = states.get(str(record.get("state")), CURSTATE_NOT_INSTALLED)
        there = self.current_state == CURSTATE_INSTALLED
        self.current_ver = LowVersion(str(record["version"])) if there else None
        self.selected_state = 2 if record.get("held") else 1
        self.has_versions = candidate is not None
        self.has_provides = False


class Policy:
    """Which version would be installed: the only one that there is, if it is not pinned away."""

    def __init__(self, _cache: object = None) -> None:
        self._pins: dict[str, str] = {}

    def read_pinfile(self, _path: str) -> bool:
        """Read nothing: preferences change nothing where there is one version."""
        return True

    read_pindir = read_pinfile

    def create_pin(self, kind: str, name: str, data: str, _priority: int) -> None:
        """Ask for a version."""
        if kind == "Version":
            self._pins[name] = data

    def get_candidate_ver(self, package: LowPackage) -> LowVersion | None:
        """Return the version that would be installed."""
        pinned = self._pins.get(package.name)
        have = package.current_ver
        if pinned is not None and have is not None and fnmatch.fnmatch(have.ver_str, pinned):
            return have
        return None if package.candidate is None else LowVersion(package.candidate)
