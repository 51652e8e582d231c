"""`cosi.resource.State` of a Talos machine: its resources, read and watched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status

from pvelab.talos.definitions import DEFINITIONS
from pvelab.talos.resources import Resource, list_resources
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pvelab.talos.machine import TalosMachine

__all__ = ["ANSWERS"]

_EVENTS = pb.WatchEvent.EventType


async def _get(machine: TalosMachine, request: Any, *, is_admin: bool) -> AsyncIterator[Any]:
    _check(request.type, is_admin=is_admin)
    found = _list(machine, request, None).get(request.id)
    if found is None:
        name = f"{request.type}({request.namespace}/{request.id}@undefined)"
        raise GRPCError(Status.NOT_FOUND, f"resource {name} doesn't exist")
    yield pb.GetResponse(resource=_message(machine, found))


async def _list_all(machine: TalosMachine, request: Any, *, is_admin: bool) -> AsyncIterator[Any]:
    _check(request.type, is_admin=is_admin)
    for one in _list(machine, request, request.options.id_query.regexp).values():
        yield pb.ListResponse(resource=_message(machine, one))


async def _watch(machine: TalosMachine, request: Any, *, is_admin: bool) -> AsyncIterator[Any]:
    _check(request.type, is_admin=is_admin)
    is_one = request.WhichOneof("selector") == "id"
    pattern = f"^{re.escape(request.id)}$" if is_one else request.options.id_query.regexp
    # The watch has begun: clients take no event for it.
    yield pb.WatchResponse()
    changed, known = machine.changed, _list(machine, request, pattern)
    if is_one and not known:
        # The first event of a single resource says that there is none.
        gone = pb.Resource(
            metadata=pb.ResourceMetadata(
                namespace=request.namespace,
                type=request.type,
                id=request.id,
                version="undefined",
                phase="running",
            )
        )
        yield pb.WatchResponse(event=[pb.WatchEvent(resource=gone, event_type=_EVENTS.DESTROYED)])
    elif is_one or request.options.bootstrap_contents:
        made = [pb.WatchEvent(resource=_message(machine, one)) for one in known.values()]
        for response in _responses(made, request):
            yield response
    if request.options.bootstrap_contents and not is_one:
        yield pb.WatchResponse(event=[pb.WatchEvent(event_type=_EVENTS.BOOTSTRAPPED)])
    while True:
        # What changes while an event is being sent is seen in the next round.
        await changed.wait()
        changed, now = machine.changed, _list(machine, request, pattern)
        for response in _responses(_differences(machine, known, now), request):
            yield response
        known = now


def _differences(machine: TalosMachine, old: dict[str, Resource], new: dict[str, Resource]) -> list[Any]:
    found = []
    for name, one in new.items():
        if name not in old:
            found.append(pb.WatchEvent(resource=_message(machine, one), event_type=_EVENTS.CREATED))
        elif old[name] != one:
            before, after = _message(machine, old[name]), _message(machine, one)
            found.append(pb.WatchEvent(resource=after, old=before, event_type=_EVENTS.UPDATED))
    for name, one in old.items():
        if name not in new:
            found.append(pb.WatchEvent(resource=_message(machine, one), event_type=_EVENTS.DESTROYED))
    return found


def _responses(events: list[Any], request: Any) -> list[Any]:
    if request.options.aggregated:
        return [pb.WatchResponse(event=events)] if events else []
    return [pb.WatchResponse(event=[event]) for event in events]


def _refuse_writing(_machine: TalosMachine, _request: Any, *, is_admin: bool) -> AsyncIterator[Any]:
    del is_admin
    raise GRPCError(Status.PERMISSION_DENIED, "write access is not allowed")


def _check(kind: str, *, is_admin: bool) -> None:
    definition = DEFINITIONS.get(kind)
    if definition is None:
        raise GRPCError(Status.PERMISSION_DENIED, f'resource type "{kind}" is not supported')
    if definition.sensitive and not is_admin:
        raise GRPCError(Status.PERMISSION_DENIED, "not authorized")


def _list(machine: TalosMachine, request: Any, pattern: str | None) -> dict[str, Resource]:
    if request.namespace != DEFINITIONS[request.type].namespace:
        return {}
    try:
        wanted = re.compile(pattern or "")
    except re.error as err:
        raise GRPCError(Status.INVALID_ARGUMENT, f"failed to compile regexp: {err}") from err
    return {one.id: one for one in list_resources(machine, request.type) if wanted.search(one.id)}


def _message(machine: TalosMachine, resource: Resource) -> Any:
    return resource.message(1, float(machine.state.get("since", 0.0)))


ANSWERS: dict[str, Callable[..., AsyncIterator[Any]]] = {
    "Get": _get,
    "List": _list_all,
    "Watch": _watch,
    "Create": _refuse_writing,
    "Update": _refuse_writing,
    "Destroy": _refuse_writing,
}
