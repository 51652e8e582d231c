"""The outcome of a run in the published form: the schema that scripts of the seed read, and the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.operator.outcome import RunOutcome

__all__ = ["result_document"]


def result_document(outcome: RunOutcome) -> dict[str, Any]:
    """Return the one JSON object of a run: `scenario`, `success`, `phases`, `context`, and every node.

    `error` is there only where the run failed. `context` has the address and the id of each node as
    `NAME_ip` and `NAME_vm_id`, of the first one as `vm_ip` and `vm_id`, and all ids in `provisioned_vms`.
    """
    document: dict[str, Any] = {
        "scenario": outcome.verb.value,
        "success": outcome.success,
        "duration_seconds": round(outcome.duration_s, 2),
        "phases": [phase.as_json() for phase in outcome.phases],
        "context": _context(outcome),
        "manifest": outcome.manifest,
        "host": outcome.host,
        "started_at": outcome.started_at,
        "nodes": [node.as_json() for node in outcome.nodes],
        "orphans": list(outcome.orphans),
        "logs": list(outcome.logs),
    }
    return document if outcome.error is None else {**document, "error": outcome.error}


def _context(outcome: RunOutcome) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in outcome.nodes:
        if node.address is not None:
            found.setdefault("vm_ip", node.address)
            found[f"{node.name}_ip"] = node.address
        if node.vm_id is not None:
            found.setdefault("vm_id", node.vm_id)
            found[f"{node.name}_vm_id"] = node.vm_id
    made = [{"name": node.name, "vmid": node.vm_id} for node in outcome.nodes if node.vm_id is not None]
    return {**found, "provisioned_vms": made} if made else found
