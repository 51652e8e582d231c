"""Settings of a node that a call always replaces as a whole, and that no node can be without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.kinds import DataSource, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.schema import Rule
    from stackyard.provider.values import Object

__all__ = ["WholeSettings"]

# One answer serves all reads of a refresh.
_AGE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSettings:
    """Settings that one call reads and one call replaces; they stay when the resource goes.

    Attributes:
        name: The last part of their path, and the end of their ids.
        params: Returns the parameters of the call that replaces them.
        values: Returns the attributes in an answer.
        posted: Whether a POST replaces them, not a PUT.
    """

    name: str
    params: Callable[[Object], Mapping[str, Any]]
    values: Callable[[Mapping[str, Any]], Object]
    posted: bool = False

    def resource(self, *, rules: Mapping[str, Rule]) -> Resource:
        """Return the resource of these settings."""
        return Resource(
            names=(f"proxmox_virtual_environment_{self.name}",),
            create=self.set,
            read=self.read,
            update=self._update,
            delete=_leave,
            identify=lambda node: {"id": self._id(node), "node_name": node},
            rules=rules,
        )

    def data_source(self) -> DataSource:
        """Return the data source of these settings."""
        return DataSource(names=(f"proxmox_virtual_environment_{self.name}",), read=self.read)

    async def set(self, work: Work, planned: Object) -> Object:
        """Replace the settings."""
        call = work.client.post if self.posted else work.client.put
        await call(self._path(planned), dict(self.params(planned)))
        state = {**planned, "id": self._id(planned["node_name"])}
        work.keep(state)
        return await self.read(work, state)

    async def read(self, work: Work, state: Object) -> Object:
        """Return the settings as they are; a node that is gone is an error, as for everything of it."""
        found = await work.client.get(self._path(state), max_age_s=_AGE_S)
        return {**state, "id": self._id(state["node_name"]), **self.values(found)}

    async def _update(self, work: Work, prior: Object, planned: Object) -> Object:
        return await self.set(work, planned)

    def _path(self, state: Object) -> str:
        return f"/nodes/{proxmox.quote(state['node_name'])}/{self.name}"

    def _id(self, node: str) -> str:
        return f"{node}_{self.name}"


async def _leave(work: Work, state: Object) -> None:
    """Leave the settings as they are: there is nothing to go back to."""
