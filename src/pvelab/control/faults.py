"""`/_lab/faults`: calls, tasks, guests, storages and nodes that go wrong on purpose."""

from __future__ import annotations

from typing import Any

from pvelab.faults.kinds import COLLECTION, KINDS, add_fault, remove_fault
from pvelab.server.control import ControlCall, control

__all__ = ["clear_faults", "describe_kinds", "list_faults", "order_fault", "withdraw_fault"]


@control("GET /faults")
def list_faults(call: ControlCall) -> Any:
    """List the faults in force, with how many calls each has seen and struck."""
    rules = call.world.faults.rules()
    found = []
    for name, document in call.world.store.items(COLLECTION).items():
        _, seen, struck = rules.get(name, (None, None, None))
        counts = {} if seen is None else {"seen": seen, "struck": struck}
        found.append({**document, **counts})
    return {"faults": found}


@control("GET /faults/kinds")
def describe_kinds(_call: ControlCall) -> Any:
    """List the kinds of faults, and the parameters of each."""
    return {
        "kinds": {
            name: {
                "help": kind.help,
                "fields": {
                    key: {"help": field.help, "type": field.type.__name__, "required": field.required}
                    for key, field in kind.fields.items()
                },
            }
            for name, kind in KINDS.items()
        }
    }


@control("POST /faults")
def order_fault(call: ControlCall) -> Any:
    """Add a fault."""
    return dict(add_fault(call.world, call.params))


@control("DELETE /faults/{name}")
def withdraw_fault(call: ControlCall) -> Any:
    """Remove a fault, and undo what it does."""
    remove_fault(call.world, str(call.params["name"]))
    return {"removed": [call.params["name"]]}


@control("DELETE /faults")
def clear_faults(call: ControlCall) -> Any:
    """Remove all faults."""
    names = list(call.world.store.items(COLLECTION))
    for name in names:
        remove_fault(call.world, name)
    return {"removed": names}
