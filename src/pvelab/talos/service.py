"""The gRPC services of a Talos machine: who calls, which machine is meant, and what answers.

A call names other machines in its metadata: `node` one, whose answer is passed on, `nodes` several, whose
answers are merged, each with the name that the caller used. Maintenance mode ignores both.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from grpclib.exceptions import StreamTerminatedError
from multidict import MultiDict

from pvelab.faults.faults import Point
from pvelab.server.problems import defect
from pvelab.talos import cosi, maintenance, secured
from stackyard.talosapi.messages import pb
from stackyard.talosapi.methods import MACHINE_METHODS_WITHOUT_MESSAGES, METHODS, Method, Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pvelab.talos.machine import TalosMachine

__all__ = ["MaintenanceService", "SecuredService", "TalosService"]

_NOT_IN_MAINTENANCE = ("Version", "Reset", "Upgrade", "MetaWrite", "MetaDelete")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    roles: frozenset[str]
    nodes: tuple[str, ...] = ()
    node: str | None = None


class TalosService:
    """What answers on port 50000.

    Args:
        machine: The machine that it is of.
    """

    def __init__(self, machine: TalosMachine) -> None:
        self.machine = machine
        self._under_way: set[asyncio.Task[Any]] = set()

    def __mapping__(self) -> dict[str, Handler]:
        """Return the handlers by the path of the method; grpclib asks for them."""
        found = {path: self._handler(method) for path, method in METHODS.items()}
        for name in MACHINE_METHODS_WITHOUT_MESSAGES:
            path = f"/machine.MachineService/{name}"
            found[path] = Handler(
                _refuse_with(self.refusal(name)), Cardinality.UNARY_STREAM, pb.Empty, pb.Empty
            )
        return found

    async def drain(self) -> None:
        """Wait until short calls have been answered; streams without an end are cut later."""
        if self._under_way:
            await asyncio.wait(set(self._under_way))

    def answers(self, method: Method, request: Any, caller: _Caller) -> AsyncIterator[Any]:
        """Return what a call is answered with."""
        raise NotImplementedError

    def refusal(self, name: str) -> str:
        """Return what is said to a call of a method that is not answered."""
        return f"the lab does not answer {name}"

    def _handler(self, method: Method) -> Handler:
        async def handle(stream: Any) -> None:
            task = asyncio.current_task()
            if task is not None and not method.streams_out:
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            if method.streams_in:
                request: Any = [message async for message in stream]
            else:
                request = await stream.recv_message()
            try:
                if self._is_struck("before", method):
                    _break(stream)
                    return
                is_lost = self._is_struck("after", method)
                async for message in self.answers(method, request, _caller(stream)):
                    if not is_lost:
                        await stream.send_message(message)
                if is_lost:
                    _break(stream)
            except (GRPCError, StreamTerminatedError):
                raise
            except Exception as err:
                raise GRPCError(Status.UNKNOWN, defect(method.path, err).text) from err

        kinds = {
            (False, False): Cardinality.UNARY_UNARY,
            (False, True): Cardinality.UNARY_STREAM,
            (True, False): Cardinality.STREAM_UNARY,
            (True, True): Cardinality.STREAM_STREAM,
        }
        kind = kinds[method.streams_in, method.streams_out]
        return Handler(handle, kind, method.request, method.response)

    def _is_struck(self, when: str, method: Method) -> bool:
        faults = self.machine.world.faults
        return faults.strike(Point.TALOS, when, method.name, str(self.machine.vmid)) is not None


def _break(stream: Any) -> None:
    """Break the connection of a call: its caller gets no answer, and no status either."""
    stream._stream.connection.close()


class MaintenanceService(TalosService):
    """A machine without a configuration: everybody may read, and apply one."""

    def answers(self, method: Method, request: Any, caller: _Caller) -> AsyncIterator[Any]:
        """Answer the few methods that there are; all other ones say so."""
        del caller
        if method.service == "cosi.resource.State":
            return cosi.ANSWERS[method.name](self.machine, request, is_admin=False)
        answer = maintenance.ANSWERS.get(method.name)
        if answer is not None:
            return answer(self.machine, request)
        if method.service != "machine.MachineService":
            raise GRPCError(Status.UNIMPLEMENTED, f"unknown service {method.service}")
        raise GRPCError(Status.UNIMPLEMENTED, self.refusal(method.name))

    def refusal(self, name: str) -> str:
        """Say what Talos says in maintenance mode."""
        if name in _NOT_IN_MAINTENANCE:
            return "API is not implemented in maintenance mode"
        return f"method {name} not implemented"


class SecuredService(TalosService):
    """A machine with a configuration: callers have certificates, and roles in them."""

    def answers(self, method: Method, request: Any, caller: _Caller) -> AsyncIterator[Any]:
        """Check who calls, find the machines that are meant, and let them answer."""
        if not caller.roles & method.roles:
            raise GRPCError(Status.PERMISSION_DENIED, "not authorized")
        if caller.node is not None:
            return _answer(self._find(caller.node), method, request, caller)
        if not caller.nodes:
            return _answer(self.machine, method, request, caller)
        if method.service == "cosi.resource.State":
            text = "one-2-many proxying is not supported for COSI methods"
            raise GRPCError(Status.INVALID_ARGUMENT, text)
        return self._ask_many(method, request, caller)

    async def _ask_many(self, method: Method, request: Any, caller: _Caller) -> AsyncIterator[Any]:
        merged = []
        for name in caller.nodes:
            try:
                async for message in _answer(self._find(name), method, request, caller):
                    if method.streams_out:
                        message.metadata.hostname = name
                        yield message
                    else:
                        merged += [_named(one, name) for one in message.messages]
            except GRPCError as err:
                merged.append(_failed(method, name, err))
                if method.streams_out:
                    yield merged.pop()
        if not method.streams_out:
            yield method.response(messages=merged)

    def _find(self, address: str) -> TalosMachine:
        target = self.machine.guests.at(address)
        if target is not None and target is self.machine:
            return target
        if not self.machine.is_control_plane:
            raise GRPCError(Status.PERMISSION_DENIED, "no request forwarding")
        if target is None or not target.is_open or not _shares_cluster(self.machine, target):
            text = f'connection error: desc = "transport: Error while dialing: dial tcp {address}:50000: '
            raise GRPCError(Status.UNAVAILABLE, f'{text}connect: connection refused"')
        return target


def _answer(machine: TalosMachine, method: Method, request: Any, caller: _Caller) -> AsyncIterator[Any]:
    if method.service == "cosi.resource.State":
        is_admin = Role.ADMIN in caller.roles
        return cosi.ANSWERS[method.name](machine, request, is_admin=is_admin)
    answer = secured.ANSWERS.get(method.name)
    if answer is None:
        raise GRPCError(Status.UNIMPLEMENTED, f"the lab does not answer {method.name}")
    return answer(machine, request)


def _caller(stream: Any) -> _Caller:
    certificate: Mapping[str, Any] = stream.peer.cert() or {}
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    roles = frozenset(str(value) for name, value in subject if name == "organizationName")
    metadata = stream.metadata or MultiDict()
    nodes = tuple(str(one) for one in metadata.getall("nodes", ()))
    return _Caller(roles=roles, nodes=nodes, node=metadata.get("node"))


def _shares_cluster(one: TalosMachine, other: TalosMachine) -> bool:
    # A machine of another cluster (or in maintenance mode) would not let this one in.
    return one.config is not None and other in one.list_members()


def _named(message: Any, name: str) -> Any:
    message.metadata.hostname = name
    return message


def _failed(method: Method, name: str, err: GRPCError) -> Any:
    kind = method.response if method.streams_out else getattr(pb, method.response.DESCRIPTOR.name[:-8])
    status = pb.Status(code=err.status.value, message=err.message or "")
    text = f"rpc error: code = {_code_name(err.status)} desc = {err.message}"
    return kind(metadata=pb.Metadata(hostname=name, error=text, status=status))


def _code_name(status: Status) -> str:
    return "".join(part.title() for part in status.name.split("_"))


def _refuse_with(text: str) -> Callable[[Any], Any]:
    async def refuse(stream: Any) -> None:
        del stream
        raise GRPCError(Status.UNIMPLEMENTED, text)

    return refuse
