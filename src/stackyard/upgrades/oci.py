"""OCI registries: the tags of a repository are the versions of a provider or module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from yarl import URL

from stackyard.upgrades.fetch import Fetched, SourceError, require_ok
from stackyard.upgrades.versions import parse_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.engine.version import Version
    from stackyard.upgrades.addresses import ProviderAddress
    from stackyard.upgrades.cli_config import CliConfig
    from stackyard.upgrades.fetch import Fetcher

__all__ = ["OciMirror", "OciRegistry", "Repository", "parse_oci_source"]

_MOST_PAGES = 50
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_ARCHIVE = "archive/zip"
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_HOST = re.compile(r"[0-9A-Za-z.-]+(?::\d{1,5})?")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_NEXT = re.compile(r'<([^>]*)>\s*;\s*rel="?next"?')
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_OCI = "oci://"


class Repository(NamedTuple):
    """A repository of a registry."""

    host: str
    name: str

    def __str__(self) -> str:
        return f"{self.host}/{self.name}"


def parse_repository(text: str) -> Repository:
    """Return the repository that a text names.

    Raises:
        SourceError: It names none.
    """
    host, _, name = text.partition("/")
    if not _HOST.fullmatch(host) or not _REPOSITORY.fullmatch(name):
        raise SourceError("the name of an OCI repository is not valid")
    return Repository(host, name)


def parse_oci_source(source: str) -> Repository | None:
    """Return the repository of a module's source, None where it is no such source."""
    if not source.startswith(_OCI):
        return None
    return parse_repository(source.removeprefix(_OCI).partition("?")[0].partition("//")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class OciRegistry:
    """Asks OCI registries, with the user's login or without one.

    Attributes:
        fetcher: Asks them.
        config: The logins.
    """

    fetcher: Fetcher
    config: CliConfig

    async def versions(self, repository: Repository) -> tuple[Version, ...]:
        """Return the tags of a repository that are versions.

        Raises:
            SourceError: The registry cannot say, or has no such repository.
        """
        url: URL | None = _api(repository) / "tags" / "list" % {"n": 1000}
        tags: list[Any] = []
        for _ in range(_MOST_PAGES):
            if url is None:
                break
            fetched = await self._get(repository, url)
            if fetched.status == HTTPStatus.NOT_FOUND:
                raise SourceError(f"{repository.host} has no repository {repository.name}")
            require_ok(fetched)
            answer = fetched.json()
            found = answer.get("tags") if isinstance(answer, dict) else None
            tags += found if isinstance(found, list) else []
            url = _next_page(fetched)
        # A tag cannot have the plus sign of a version.
        return parse_versions(one.replace("_", "+") if isinstance(one, str) else one for one in tags)

    async def manifest(self, repository: Repository, reference: str) -> Mapping[str, Any]:
        """Return a manifest.

        Raises:
            SourceError: The registry cannot say.
        """
        fetched = await self._get(repository, _api(repository) / "manifests" / reference)
        require_ok(fetched)
        answer = fetched.json()
        return answer if isinstance(answer, dict) else {}

    async def _get(self, repository: Repository, url: URL) -> Fetched:
        login = self.config.login(*repository)
        accept = f"{_INDEX}, {_MANIFEST}, application/json"
        fetched = await self.fetcher.get(url, accept=accept, authorization=login)
        challenge = fetched.headers.get("WWW-Authenticate", "")
        if fetched.status != HTTPStatus.UNAUTHORIZED or not challenge.lower().startswith("bearer "):
            return fetched
        said = dict(_CHALLENGE.findall(challenge))
        try:
            realm = URL(said.get("realm", ""))
        except ValueError as err:
            raise SourceError(f"{repository.host} names no valid address for tokens") from err
        asked = realm.update_query({key: said[key] for key in ("service", "scope") if key in said})
        answer = await self.fetcher.get_json(asked, authorization=login)
        token = (answer.get("token") or answer.get("access_token")) if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise SourceError(f"{repository.host} gives no token")
        return await self.fetcher.get(url, accept=accept, authorization=f"Bearer {token}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OciMirror:
    """A mirror of providers in an OCI registry.

    Attributes:
        registry: Asks the registry.
        template: The name of a repository, with `${hostname}`, `${namespace}` and `${type}`.
    """

    registry: OciRegistry
    template: str

    @property
    def lock_arguments(self) -> tuple[str, ...] | None:
        """None: the engine has no argument to lock from here."""
        return None

    def title(self, address: ProviderAddress) -> str:
        """Return what to call it."""
        return f"OCI registry {self._text(address)}"

    async def versions(self, address: ProviderAddress) -> tuple[Version, ...]:
        """Return the versions of a provider.

        Raises:
            SourceError: The registry cannot say.
        """
        return await self.registry.versions(parse_repository(self._text(address)))

    async def platforms(self, address: ProviderAddress, version: Version) -> frozenset[str]:
        """Return the platforms that a version is there for.

        Raises:
            SourceError: The registry cannot say.
        """
        return frozenset(await self._manifests(address, version))

    async def digests(self, address: ProviderAddress, version: Version) -> dict[str, str]:
        """Return the SHA-256 of the archive for each platform.

        Raises:
            SourceError: The registry cannot say.
        """
        repository = parse_repository(self._text(address))
        found = {}
        for platform, reference in (await self._manifests(address, version)).items():
            manifest = await self.registry.manifest(repository, reference)
            layers = manifest.get("layers")
            for layer in layers if isinstance(layers, list) else ():
                match = _DIGEST.fullmatch(str(layer.get("digest"))) if isinstance(layer, dict) else None
                if match is not None and layer.get("mediaType") == _ARCHIVE:
                    found[platform] = match[1]
        return found

    async def _manifests(self, address: ProviderAddress, version: Version) -> dict[str, str]:
        repository = parse_repository(self._text(address))
        index = await self.registry.manifest(repository, str(version))
        listed = index.get("manifests")
        found = {}
        for one in listed if isinstance(listed, list) else ():
            platform = one.get("platform") if isinstance(one, dict) else None
            digest = str(one.get("digest")) if isinstance(one, dict) else ""
            if isinstance(platform, dict) and _DIGEST.fullmatch(digest):
                found[f"{platform.get('os')}_{platform.get('architecture')}"] = digest
        return found

    def _text(self, address: ProviderAddress) -> str:
        parts = {"hostname": address.host, "namespace": address.namespace, "type": address.type}
        return re.sub(r"\$\{\s*(\w+)\s*\}", lambda found: parts.get(found[1], ""), self.template)


def _api(repository: Repository) -> URL:
    return URL(f"https://{repository.host}/v2/{repository.name}")


def _next_page(fetched: Fetched) -> URL | None:
    """Return the address of the next page; one of another server is not followed."""
    match = _NEXT.search(fetched.headers.get("Link", ""))
    if match is None:
        return None
    try:
        url = fetched.url.join(URL(match[1]))
    except ValueError:
        return None
    return url if url.origin() == fetched.url.origin() else None
