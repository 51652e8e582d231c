"""The plugin protocol, version 6: messages in, `Operations` on plain values, messages out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.provider import values, wire
from stackyard.provider.messages import pb
from stackyard.provider.operations import Change
from stackyard.provider.private_data import read_private, write_private
from stackyard.provider.problems import Problem
from stackyard.provider.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.registry import KnownDataSource, KnownResource, Registry
    from stackyard.provider.sessions import Sessions

__all__ = ["Servicer"]

_ORPHANS_S = 120.0
_CAPABILITIES = pb.ServerCapabilities(
    plan_destroy=False, get_provider_schema_optional=True, move_resource_state=True
)


class Servicer:
    """Answers the engine.

    Args:
        registry: What the provider has.
        sessions: What it works with, for each configuration.
        environment: Where settings come from that the configuration leaves out.
    """

    def __init__(self, registry: Registry, sessions: Sessions, environment: Mapping[str, str]) -> None:
        self._registry = registry
        self._sessions = sessions
        self._environment = environment
        # Work of which no one will hear the end, because the engine has gone away.
        self._orphans: set[asyncio.Future[Any]] = set()

    async def finish(self, timeout_s: float) -> None:
        """Wait for what is still being applied although the engine has gone away."""
        if self._orphans:
            await asyncio.wait(self._orphans, timeout=timeout_s)

    def _resource(self, name: str) -> KnownResource:
        return self._registry.resources[name]

    def _data_source(self, name: str) -> KnownDataSource:
        return self._registry.data_sources[name]

    async def GetMetadata(self, request: Any) -> Any:  # noqa: N802, D102
        return pb.GetMetadata.Response(
            server_capabilities=_CAPABILITIES,
            resources=[pb.GetMetadata.ResourceMetadata(type_name=name) for name in self._registry.resources],
            data_sources=[
                pb.GetMetadata.DataSourceMetadata(type_name=name) for name in self._registry.data_sources
            ],
        )

    async def GetProviderSchema(self, request: Any) -> Any:  # noqa: N802, D102
        registry = self._registry
        return pb.GetProviderSchema.Response(
            provider=wire.read_schema_message(registry.provider_message),
            resource_schemas={
                name: wire.read_schema_message(data) for name, data in registry.resources.messages()
            },
            data_source_schemas={
                name: wire.read_schema_message(data) for name, data in registry.data_sources.messages()
            },
            server_capabilities=_CAPABILITIES,
        )

    async def ValidateProviderConfig(self, request: Any) -> Any:  # noqa: N802, D102
        return pb.ValidateProviderConfig.Response()

    async def ConfigureProvider(self, request: Any) -> Any:  # noqa: N802, D102
        # What a killed engine left at work must have ended before the next one looks at what is there.
        await self.finish(_ORPHANS_S)
        config = wire.read_dynamic(request.config) or {}
        # An endpoint that another resource will tell: the first call that needs it says so.
        is_known = config.get("endpoint") is not values.UNKNOWN
        try:
            await self._sessions.configure(read_settings(config, self._environment) if is_known else None)
        except StackyardError as err:
            detail = f"{err.detail}\n\n{err.remedy}"
            problem = Problem(summary=f"{err.summary} ({err.code})", detail=detail)
            return pb.ConfigureProvider.Response(diagnostics=[wire.diagnostic(problem)])
        return pb.ConfigureProvider.Response()

    async def ValidateResourceConfig(self, request: Any) -> Any:  # noqa: N802, D102
        config = wire.read_dynamic(request.config)
        found = self._sessions.operations.validate(
            self._resource(request.type_name), request.type_name, config
        )
        return pb.ValidateResourceConfig.Response(diagnostics=wire.diagnostics(found))

    async def ValidateDataResourceConfig(self, request: Any) -> Any:  # noqa: N802, D102
        config = wire.read_dynamic(request.config)
        found = self._sessions.operations.validate(
            self._data_source(request.type_name), request.type_name, config
        )
        return pb.ValidateDataResourceConfig.Response(diagnostics=wire.diagnostics(found))

    async def UpgradeResourceState(self, request: Any) -> Any:  # noqa: N802, D102
        known = self._resource(request.type_name)
        if request.version > known.schema.version or not request.raw_state.json:
            problem = Problem(
                summary="The stored state cannot be read",
                detail=f"The state of {request.type_name} was written by a provider of another time.",
            )
            return pb.UpgradeResourceState.Response(diagnostics=[wire.diagnostic(problem)])
        state = known.schema.block.complete(values.decode_json(request.raw_state.json))
        return pb.UpgradeResourceState.Response(upgraded_state=wire.dynamic(state))

    async def ReadResource(self, request: Any) -> Any:  # noqa: N802, D102
        known, state = self._resource(request.type_name), wire.read_dynamic(request.current_state)
        result = await self._sessions.operations.read(
            known, request.type_name, state, read_private(request.private)
        )
        return pb.ReadResource.Response(
            new_state=wire.dynamic(result.state),
            diagnostics=wire.diagnostics(result.problems),
            # What the older SDK remembers (timeouts, versions) is none of ours, and is passed on as it is.
            private=request.private if known.schema.sdk else write_private(result.private),
        )

    async def PlanResourceChange(self, request: Any) -> Any:  # noqa: N802, D102
        known = self._resource(request.type_name)
        proposed = wire.read_dynamic(request.proposed_new_state)
        if proposed is None:
            return pb.PlanResourceChange.Response(
                planned_state=request.proposed_new_state, planned_private=request.prior_private
            )
        change = Change(
            config=wire.read_dynamic(request.config),
            prior=wire.read_dynamic(request.prior_state),
            proposed=proposed,
            private=read_private(request.prior_private),
        )
        result = self._sessions.operations.plan(known, change)
        return pb.PlanResourceChange.Response(
            planned_state=wire.dynamic(result.state),
            requires_replace=[wire.path_message(path) for path in result.replace],
            planned_private=request.prior_private,
            diagnostics=wire.diagnostics(result.problems),
            legacy_type_system=known.schema.sdk,
        )

    async def ApplyResourceChange(self, request: Any) -> Any:  # noqa: N802, D102
        known = self._resource(request.type_name)
        prior, planned = wire.read_dynamic(request.prior_state), wire.read_dynamic(request.planned_state)
        config = wire.read_dynamic(request.config)
        # The engine may go away while we work; what was begun is brought to an end that is known.
        work = asyncio.ensure_future(
            self._sessions.operations.apply(known, request.type_name, prior, planned, config)
        )
        try:
            result = await asyncio.shield(work)
        except asyncio.CancelledError:
            self._orphans.add(work)
            work.add_done_callback(self._orphans.discard)
            raise
        return pb.ApplyResourceChange.Response(
            new_state=wire.dynamic(result.state),
            private=request.planned_private,
            diagnostics=wire.diagnostics(result.problems),
            legacy_type_system=known.schema.sdk,
        )

    async def ImportResourceState(self, request: Any) -> Any:  # noqa: N802, D102
        known = self._resource(request.type_name)
        result = self._sessions.operations.identify(known, request.type_name, request.id)
        if result.state is None:
            return pb.ImportResourceState.Response(diagnostics=wire.diagnostics(result.problems))
        imported = pb.ImportResourceState.ImportedResource(
            type_name=request.type_name,
            state=wire.dynamic(result.state),
            private=write_private(result.private) if known.schema.sdk else b"",
        )
        return pb.ImportResourceState.Response(imported_resources=[imported])

    async def MoveResourceState(self, request: Any) -> Any:  # noqa: N802, D102
        known = self._resource(request.target_type_name)
        is_same_kind = request.source_type_name in known.kind.names
        if not is_same_kind or not request.source_provider_address.endswith("/bpg/proxmox"):
            problem = Problem(
                summary="The state cannot be moved",
                detail=f"{request.source_type_name} is not another name of {request.target_type_name}.",
            )
            return pb.MoveResourceState.Response(diagnostics=[wire.diagnostic(problem)])
        state = known.schema.block.complete(values.decode_json(request.source_state.json))
        return pb.MoveResourceState.Response(
            target_state=wire.dynamic(state), target_private=request.source_private
        )

    async def ReadDataSource(self, request: Any) -> Any:  # noqa: N802, D102
        known, config = self._data_source(request.type_name), wire.read_dynamic(request.config)
        result = await self._sessions.operations.read_data(known, request.type_name, config)
        return pb.ReadDataSource.Response(
            state=wire.dynamic(result.state), diagnostics=wire.diagnostics(result.problems)
        )

    async def GetFunctions(self, request: Any) -> Any:  # noqa: N802, D102
        return pb.GetFunctions.Response()

    async def CallFunction(self, request: Any) -> Any:  # noqa: N802, D102
        return pb.CallFunction.Response(error=pb.FunctionError(text=f"there is no function {request.name}"))

    async def StopProvider(self, request: Any) -> Any:  # noqa: N802, D102
        self._sessions.stop()
        return pb.StopProvider.Response()
