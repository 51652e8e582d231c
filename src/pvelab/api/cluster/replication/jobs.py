"""Replication jobs: `/cluster/replication`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.replication.replicas import replicatable_volumes
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.cluster.jobs import REPLICATION, REPLICATION_STATE
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["create_job", "delete_job", "list_jobs", "read_job", "update_job"]

_LOCK = "file-replication_cfg"
_KIND = Kind(
    name="local",
    required=frozenset(("target",)),
    optional=frozenset(("disable", "comment", "rate", "schedule", "remove_job", "source")),
    fixed=frozenset(("target",)),
)


@route("GET /cluster/replication")
def list_jobs(call: Call) -> Any:
    """List the jobs of guests that the caller may see."""
    return [
        _format_job(ident, job)
        for ident, job in sorted(_jobs(call).items())
        if call.may(f"/vms/{job['guest']}", "VM.Audit")
    ]


@route("GET /cluster/replication/{id}")
def read_job(call: Call) -> Any:
    """Read one job."""
    job = _jobs(call).get(call.params["id"])
    if job is None:
        raise PveError(f"no such replication job '{call.params['id']}'")
    call.check(f"/vms/{job['guest']}", "VM.Audit")
    return {**_format_job(call.params["id"], job), "digest": SectionFile(call.store, REPLICATION).digest}


@route("POST /cluster/replication")
def create_job(call: Call) -> Any:
    """Add a job for a guest with volumes that can be replicated."""
    ident, params = call.params["id"], call.params
    vmid = int(ident.split("-")[0])
    call.check(f"/vms/{vmid}", "VM.Replicate")
    guest = call.world.guests.get(vmid)
    if guest is None:
        raise PveError(f"Guest '{vmid}' does not exist.")
    if params["target"] not in call.world.cluster.nodes():
        raise PveError(f"Target '{params['target']}' does not exist.")
    source = str(guest["node"])
    if params.get("source", source) != source:
        raise PveError(
            f"Source '{params['source']}' does not match current node of guest '{vmid}' ({source})"
        )
    if params["target"] == source:
        raise PveError("Source and target must not be identical")
    if not replicatable_volumes(call.world, guest):
        raise PveError("No replicatable volumes found")
    given = {key: value for key, value in params.items() if key not in ("id", "type")}
    with call.world.cluster.lock_file(_LOCK):
        if ident in _jobs(call):
            raise PveError(f"replication job '{ident}' already exists")
        section = {**_KIND.validate({"source": source, **given}, create=True), "guest": vmid}
        for other, job in _jobs(call).items():
            if other != ident and job["guest"] == vmid and job["target"] == params["target"]:
                target = f"local/{params['target']}"
                raise PveError(f"replication job for guest '{vmid}' to target '{target}' already exists")
        SectionFile(call.store, REPLICATION).put(ident, section)


@route("PUT /cluster/replication/{id}")
def update_job(call: Call) -> Any:
    """Change a job."""
    ident = call.params["id"]
    call.check(f"/vms/{ident.split('-')[0]}", "VM.Replicate")
    with call.world.cluster.lock_file(_LOCK):
        file = SectionFile(call.store, REPLICATION)
        file.check_digest(call.params.get("digest"))
        old = _require(call, ident)
        given = {key: value for key, value in call.params.items() if key not in ("id", "digest", "delete")}
        changes = _KIND.validate(given, create=False)
        # Here, what is both set and removed is removed.
        file.put(ident, _KIND.without({**old, **changes}, split_list(call.params.get("delete", "")), {}))


@route("DELETE /cluster/replication/{id}")
def delete_job(call: Call) -> Any:
    """Mark a job for removal, which the scheduler does a little later; or remove it by force."""
    ident = call.params["id"]
    call.check(f"/vms/{ident.split('-')[0]}", "VM.Replicate")
    with call.world.cluster.lock_file(_LOCK):
        file = SectionFile(call.store, REPLICATION)
        if call.params.get("force"):
            if call.params.get("keep"):
                raise bad_parameter("keep", "conflicts with parameter 'force'")
            file.remove(ident)
            call.store.delete(REPLICATION_STATE, ident)
            return
        mark = "local" if call.params.get("keep") else "full"
        file.put(ident, {**_require(call, ident), "remove_job": mark})


def _jobs(call: Call) -> Mapping[str, Document]:
    return SectionFile(call.store, REPLICATION).all()


def _require(call: Call, ident: str) -> Document:
    found = _jobs(call).get(ident)
    if found is None:
        raise PveError(f"no such job '{ident}'")
    return found


def _format_job(ident: str, job: Document) -> dict[str, Any]:
    return {**job, "id": ident, "jobnum": int(ident.split("-")[1])}
