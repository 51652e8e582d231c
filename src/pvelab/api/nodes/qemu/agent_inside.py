"""What the guest agent does inside a VM: programs, files, passwords, sleep."""

from __future__ import annotations

import base64
import binascii
import os
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.agent import refuse_suspending, require_agent
from pvelab.machines.machine import Execution, MachineError
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.ssh.shell.streams import BytesSource, CaptureSink, Streams
from pvelab.world.guests.executions import ExecutionOutcome

if TYPE_CHECKING:
    from pvelab.machines.machine import GuestMachine
    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["execute", "read_file", "read_status", "set_password", "suspend_guest", "write_file"]

_AT = "/nodes/{node}/qemu/{vmid}/agent"
_MOST_READ = 16 * 2**20
# What the agent keeps of the output of a program.
_MOST_OUTPUT = 16 * 2**20
_SIGNALS_FROM = 128
_KILLED = _SIGNALS_FROM + 9
_SILENT = "QEMU guest agent is not running"


@route(f"POST {_AT}/exec")
async def execute(call: Call) -> Any:
    """Run a program in the guest and answer its process number."""
    guest, machine = await _machine(call)
    command = [str(word) for word in call.params["command"]]
    given = call.params.get("input-data")
    if not command and given is None:
        raise PveError("command or input-data (or both) required")
    if not command:
        raise PveError("Agent error: Parameter 'path' is missing")
    stdin = str(given or "").encode("latin-1", "replace")

    async def program() -> ExecutionOutcome:
        out, err = CaptureSink(), CaptureSink()
        streams = Streams(stdin=BytesSource(stdin), stdout=out, stderr=err)
        try:
            status = await machine.run(Execution(argv=tuple(command)), streams)
        except MachineError:
            # The guest stopped meanwhile, and the program with it.
            return ExecutionOutcome(status=_KILLED, stdout=out.data, stderr=err.data)
        return ExecutionOutcome(status=status, stdout=out.data, stderr=err.data)

    return {"pid": call.world.executions.start(int(guest["vmid"]), program)}


@route(f"GET {_AT}/exec-status")
async def read_status(call: Call) -> Any:
    """Answer how far a program is, and what it wrote once it has ended."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    require_agent(call.world, guest)
    pid, executions = int(call.params["pid"]), call.world.executions
    if not executions.is_known(call.vmid, pid):
        raise PveError(f"Agent error: PID {pid} does not exist")
    outcome = executions.collect(call.vmid, pid)
    if outcome is None:
        return {"exited": 0}
    answer: dict[str, Any] = {"exited": 1}
    if outcome.status > _SIGNALS_FROM:
        answer["signal"] = outcome.status - _SIGNALS_FROM
    else:
        answer["exitcode"] = outcome.status
    for key, data in (("out", outcome.stdout), ("err", outcome.stderr)):
        if data:
            answer[f"{key}-data"] = _text(data[:_MOST_OUTPUT])
        if len(data) > _MOST_OUTPUT:
            answer[f"{key}-truncated"] = 1
    return answer


@route(f"GET {_AT}/file-read")
async def read_file(call: Call) -> Any:
    """Read a file of the guest."""
    _, machine = await _machine(call)
    path, count = str(call.params["file"]), int(call.params.get("count", _MOST_READ))
    offset = int(call.params.get("offset", 0))
    try:
        content = await machine.read_file(path, offset + count + 1)
    except OSError as err:
        raise _not_opened(path, "r", err) from err
    except MachineError as err:
        raise PveError(_SILENT) from err
    except ValueError as err:
        raise PveError("Agent error: can't read from file") from err
    wanted = content[offset : offset + count]
    plain = call.params.get("decode", 1)
    answer: dict[str, Any] = {
        "content": _text(wanted) if plain else base64.b64encode(wanted).decode(),
        "bytes-read": len(wanted),
    }
    return answer | ({"truncated": 1} if len(content) > offset + count else {})


@route(f"POST {_AT}/file-write")
async def write_file(call: Call) -> Any:
    """Write a file of the guest."""
    _, machine = await _machine(call)
    path, text = str(call.params["file"]), str(call.params["content"])
    if call.params.get("encode", 1):
        content = text.encode()
    else:
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as err:
            raise PveError("Agent error: Invalid parameter 'buf-b64'") from err
    try:
        await machine.write_file(path, content)
    except OSError as err:
        raise _not_opened(path, "wb", err) from err
    except MachineError as err:
        raise PveError(_SILENT) from err
    except ValueError as err:
        raise PveError("Agent error: can't write to file") from err


@route(f"POST {_AT}/set-user-password")
async def set_password(call: Call) -> Any:
    """Give a user of the guest another password, as the agent does: by telling `chpasswd`."""
    _, machine = await _machine(call)
    name, password = str(call.params["username"]), str(call.params["password"])
    if "\n" in f"{name}{password}" or ":" in name:
        raise PveError("Agent error: forbidden characters in raw password")
    options = ("-e",) if call.params.get("crypted") else ()
    out, err = CaptureSink(), CaptureSink()
    streams = Streams(stdin=BytesSource(f"{name}:{password}\n".encode()), stdout=out, stderr=err)
    try:
        status = await machine.run(Execution(argv=("chpasswd", *options)), streams)
    except MachineError as problem:
        raise PveError(_SILENT) from problem
    if status:
        raise PveError(f"Agent error: child process has failed to set user password: {status}")
    return {"result": {}}


@route(f"POST {_AT}/suspend-disk", f"POST {_AT}/suspend-hybrid", f"POST {_AT}/suspend-ram")
def suspend_guest(call: Call) -> Any:
    """Refuse, as agents of guests without the tools for it do."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    require_agent(call.world, guest)
    return refuse_suspending(call.world, guest)


async def _machine(call: Call) -> tuple[Document, GuestMachine]:
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    require_agent(call.world, guest)
    try:
        machine = await call.world.machines.of(guest)
        await machine.boot()
    except MachineError as err:
        raise PveError(_SILENT) from err
    return guest, machine


def _not_opened(path: str, mode: str, err: OSError) -> PveError:
    reason = os.strerror(err.errno) if err.errno else str(err)
    return PveError(f"Agent error: failed to open file '{path}' (mode: '{mode}'): {reason}")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
