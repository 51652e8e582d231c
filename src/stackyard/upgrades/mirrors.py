"""Mirrors of providers: folders, and servers that have the same files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yarl import URL

from stackyard.upgrades.fetch import SourceError
from stackyard.upgrades.versions import parse_versions

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.engine.version import Version
    from stackyard.upgrades.addresses import ProviderAddress
    from stackyard.upgrades.cli_config import CliConfig
    from stackyard.upgrades.fetch import Fetcher

__all__ = ["FilesystemMirror", "NetworkMirror"]

_PLATFORM = re.compile(r"[a-z0-9]+_[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemMirror:
    """A folder with `HOST/NAMESPACE/TYPE`, and in it archives, or folders of versions and platforms.

    Attributes:
        folder: The folder.
    """

    folder: Path

    @property
    def lock_arguments(self) -> tuple[str, ...]:
        """What makes the engine lock from here."""
        return (f"-fs-mirror={self.folder.absolute()}",)

    def title(self, address: ProviderAddress) -> str:
        """Return what to call it."""
        del address
        return f"filesystem mirror {self.folder}"

    def has(self, address: ProviderAddress) -> bool:
        """Return whether there is a folder of a provider."""
        return self.folder.joinpath(*address).is_dir()

    async def versions(self, address: ProviderAddress) -> tuple[Version, ...]:
        """Return the versions of a provider."""
        return parse_versions(version for version, _ in self._packages(address))

    async def platforms(self, address: ProviderAddress, version: Version) -> frozenset[str]:
        """Return the platforms that a version is there for."""
        return frozenset(
            platform for found, platform in self._packages(address) if parse_versions([found]) == (version,)
        )

    def _packages(self, address: ProviderAddress) -> list[tuple[str, str]]:
        folder = self.folder.joinpath(*address)
        packed = re.compile(
            rf"terraform-provider-{re.escape(address.type)}_([^_]+)_([a-z0-9]+_[a-z0-9]+)\.zip"
        )
        found = []
        for name in _list(folder):
            if match := packed.fullmatch(name):
                found.append((match[1], match[2]))
            elif parse_versions([name]):
                found += [(name, inner) for inner in _list(folder / name) if _PLATFORM.fullmatch(inner)]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMirror:
    """A server that has `HOST/NAMESPACE/TYPE/index.json` below an address.

    Attributes:
        fetcher: Asks it.
        url: The address.
        config: Tokens.
    """

    fetcher: Fetcher
    url: str
    config: CliConfig

    @property
    def lock_arguments(self) -> tuple[str, ...]:
        """What makes the engine lock from here."""
        return (f"-net-mirror={self.url.rstrip('/')}/",)

    def title(self, address: ProviderAddress) -> str:
        """Return what to call it."""
        del address
        return f"network mirror {_host(self.url)}"

    async def versions(self, address: ProviderAddress) -> tuple[Version, ...]:
        """Return the versions of a provider; none where the mirror does not have it.

        Raises:
            SourceError: The mirror cannot say.
        """
        return parse_versions(await self._keys(address, "index.json", "versions"))

    async def platforms(self, address: ProviderAddress, version: Version) -> frozenset[str]:
        """Return the platforms that a version is there for.

        Raises:
            SourceError: The mirror cannot say.
        """
        found = await self._keys(address, f"{version}.json", "archives")
        return frozenset(one for one in found if _PLATFORM.fullmatch(one))

    async def _keys(self, address: ProviderAddress, file: str, key: str) -> list[str]:
        try:
            url = URL(self.url.rstrip("/") + "/").joinpath(*address, file)
        except ValueError as err:
            raise SourceError("the address of a network mirror is not valid") from err
        if url.user is not None or url.password is not None:
            # The engine takes the address as an argument, which others on this machine can read.
            raise SourceError("the address of a network mirror has a login in it: use a credentials block")
        token = self.config.tokens.get(_host(self.url))
        answer: Any = await self.fetcher.get_json(url, authorization=f"Bearer {token}" if token else None)
        inner = answer.get(key) if isinstance(answer, dict) else None
        return list(inner) if isinstance(inner, dict) else []


def _host(url: str) -> str:
    try:
        found = URL(url)
    except ValueError:
        return "without a valid address"
    return found.host_port_subcomponent or "without a host"


def _list(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as err:
        raise SourceError(f"{folder} cannot be read: {os.strerror(err.errno or 0)}") from err
