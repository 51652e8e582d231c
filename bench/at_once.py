"""A provider that answers at once: the least that an engine with one takes."""

from __future__ import annotations

from typing import Any

from stackyard.provider import servicer
from stackyard.provider.messages import pb

__all__ = ["install"]


class _AtOnce(servicer.Servicer):
    """Gives every object back as it came, without looking into it."""

    async def ConfigureProvider(self, request: Any) -> Any:  # noqa: N802
        return pb.ConfigureProvider.Response()

    async def ValidateResourceConfig(self, request: Any) -> Any:  # noqa: N802
        return pb.ValidateResourceConfig.Response()

    async def UpgradeResourceState(self, request: Any) -> Any:  # noqa: N802
        state = pb.DynamicValue(json=request.raw_state.json)
        return pb.UpgradeResourceState.Response(upgraded_state=state)

    async def ReadResource(self, request: Any) -> Any:  # noqa: N802
        return pb.ReadResource.Response(new_state=request.current_state, private=request.private)

    async def PlanResourceChange(self, request: Any) -> Any:  # noqa: N802
        return pb.PlanResourceChange.Response(planned_state=request.proposed_new_state)

    async def ApplyResourceChange(self, request: Any) -> Any:  # noqa: N802
        return pb.ApplyResourceChange.Response(new_state=request.planned_state)


def install() -> None:
    """Let what is served from now on answer at once."""
    vars(servicer)["Servicer"] = _AtOnce
