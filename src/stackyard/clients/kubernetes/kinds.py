"""Which kinds of objects an API server has, and where: discovery."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from stackyard.base.backoff import Backoff
from stackyard.clients.kubernetes.failures import KindUnknownError, ObjectMissingError, Request

if TYPE_CHECKING:
    from stackyard.clients.kubernetes.references import ObjectReference
    from stackyard.clients.kubernetes.transport import Transport

__all__ = ["Discovery", "ResourceKind"]

# The API server does not say when it serves a definition that it has accepted; it takes a second at most.
_SOON = Backoff(first_s=0.05, longest_s=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """A kind of objects that the API server has.

    Attributes:
        api_version: Its group and version, such as `apps/v1`.
        kind: Its name, such as `Deployment`.
        plural: Its name in paths, such as `deployments`.
        is_namespaced: Whether its objects are in namespaces.
    """

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of all its objects, of those of a namespace, or of one.

        An object of the whole cluster has no namespace, whatever a manifest says.
        """
        path = version_path(self.api_version)
        if self.is_namespaced and namespace:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{self.plural}"
        return f"{path}/{quote(name, safe='')}" if name else path


def version_path(api_version: str) -> str:
    """Return the path below which the kinds of a group and version are."""
    return f"/{'apis' if '/' in api_version else 'api'}/{quote(api_version)}"


class Discovery:
    """Finds kinds, and remembers those found."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._known: dict[tuple[str, str], ResourceKind] = {}

    async def find_kind(self, api_version: str, kind: str, *, patience_s: float = 0.0) -> ResourceKind:
        """Return where the objects of a kind are.

        Args:
            api_version: Its group and version.
            kind: Its name.
            patience_s: How long to wait for a kind whose definition was just accepted.

        Raises:
            KindUnknownError: There is no such kind.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        for pause_s in _SOON:
            if found := self._known.get((api_version, kind)):
                return found
            await self._read(api_version)
            if (api_version, kind) not in self._known:
                if loop.time() + pause_s > until:
                    break
                await asyncio.sleep(pause_s)
        raise KindUnknownError(api_version, kind)

    async def find_path(self, reference: ObjectReference) -> str:
        """Return the path of an object.

        Raises:
            KindUnknownError: There is no such kind.
        """
        kind = await self.find_kind(reference.api_version, reference.kind)
        return kind.path(reference.namespace, reference.name)

    async def _read(self, api_version: str) -> None:
        try:
            answer = await self._transport.send(Request("GET", version_path(api_version)))
        except ObjectMissingError:
            return
        for row in answer.document.get("resources") or ():
            # Those with a slash are parts of others: `deployments/status`.
            if isinstance(row, dict) and "/" not in str(row.get("name", "/")):
                found = ResourceKind(
                    api_version=api_version,
                    kind=str(row.get("kind")),
                    plural=str(row["name"]),
                    is_namespaced=bool(row.get("namespaced")),
                )
                self._known[(api_version, found.kind)] = found
