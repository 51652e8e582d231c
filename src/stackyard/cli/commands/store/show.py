"""`stackyard store show`: which store is used, and what is in it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import StackyardError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.words import size
from stackyard.cli.commands.store.open_site import site_option, store_here
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.clients.objects import Objects
    from stackyard.sources.store import ChosenStore, StoreIdentity

__all__ = ["show"]

_TITLES = {
    "heads": "states",
    "data": "versions of states",
    "targets": "applied targets",
    "journal": "guests that are being created",
    "guests": "host keys and first-boot tokens of guests, encrypted",
    "operator": "nodes of manifests",
    "operator-locks": "leases of manifests",
    "cluster-etcd": "which node formed the etcd of a cluster",
    "cluster-locks": "leases of clusters",
    "inventory": "inventories",
    "plans": "saved plans, encrypted",
    "state-changes": "proposed changes of states, encrypted",
    "kept-states": "states of other backends before a change, encrypted",
    "records": "records of runs",
    "run-events": "events of runs",
    "runs": "runs in progress",
    "run-control": "requests to cancel a run",
    "run-owners": "principals that started runs",
    "controller": "certificate, key and tokens of the controller, encrypted",
    "ssh": "SSH key of the site, encrypted, and host keys of nodes",
    "system": "identity of the store, principals of the state service",
}


@click.command("show", cls=Command)
@site_option
def show(site: str | None) -> Result:
    """Show which store the site uses, what it holds, and whether this machine has the site key.

    It also shows where the store is set: site.yaml, stackyard.yaml, STACKYARD_STORE, or the default.
    """
    from stackyard.sources.store.identity import read_identity  # lazy: only when this verb runs

    chosen = store_here(site)
    with contextlib.closing(_open(chosen)) as objects:
        identity = read_identity(objects)
        kinds = _count(objects)
    document: dict[str, Any] = {
        "store": chosen.label,
        "chosen_by": chosen.chosen_by,
        "is_shared": chosen.is_shared,
        "local_folder": str(chosen.base),
        "keys": [] if identity is None else list(identity.keys),
        "key_here": _describe_key(chosen, identity),
        "moved_to": None if identity is None else identity.moved_to or None,
        "moving_to": None if identity is None else identity.moving_to or None,
        "contents": [
            {"kind": kind, "what": _TITLES.get(kind, kind), "objects": count, "bytes": total}
            for kind, (count, total) in sorted(kinds.items())
        ],
    }
    return Result(document=document, show=lambda writer: _show(writer, document))


def _open(chosen: ChosenStore) -> Objects:
    from stackyard.clients.objects import MemoryObjects  # lazy: only when this verb runs
    from stackyard.clients.objects.open_store import DATABASE  # lazy: as above

    if chosen.address is None and not (chosen.folder / DATABASE).exists():
        return MemoryObjects()
    return chosen.open_as_is()


def _count(objects: Objects) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    after = ""
    while entries := objects.list("", after=after):
        for entry in entries:
            kind = entry.key.partition("/")[0]
            count, total = found.get(kind, (0, 0))
            found[kind] = (count + 1, total + entry.size)
        after = entries[-1].key
    return found


def _describe_key(chosen: ChosenStore, identity: StoreIdentity | None) -> dict[str, Any]:
    from stackyard.sources.store.keys import read_keys  # lazy: cryptography costs 50 ms

    try:
        found = read_keys(chosen)
    except StackyardError as err:
        return {"id": None, "where": None, "fits": False, "error": err.detail}
    known = set() if identity is None else set(identity.keys)
    if found is None:
        return {"id": None, "where": None, "fits": not known, "error": None}
    fits = not known or bool(known & set(found.ids))
    return {"id": found.ids[0], "where": found.where, "fits": fits, "error": None}


def _show(writer: TextWriter, document: Mapping[str, Any]) -> None:
    writer.line(f"The store is {document['store']} (set by {document['chosen_by']}).")
    if document["moved_to"]:
        writer.line(f"It was moved to {document['moved_to']}.", style="red")
    if document["moving_to"]:
        writer.line(f"It is being moved to {document['moving_to']}.", style="yellow")
    key = document["key_here"]
    if key["error"]:
        writer.line(f"The site key cannot be used: {key['error']}", style="red")
    elif key["id"] is None:
        text = "The site has no key yet." if key["fits"] else "This machine does not have the site key"
        writer.line(f"{text} {', '.join(document['keys'])}".rstrip(), style=None if key["fits"] else "red")
    else:
        fits = "" if key["fits"] else f", but the store needs {', '.join(document['keys'])}"
        writer.line(f"The site key is {key['id']}, from {key['where']}{fits}.")
    if not document["contents"]:
        writer.line("The store is empty.")
        return
    rows = [
        (f"{one['kind']}/", one["what"], str(one["objects"]), size(one["bytes"]))
        for one in document["contents"]
    ]
    writer.table(("prefix", "holds", "objects", "size"), rows)
