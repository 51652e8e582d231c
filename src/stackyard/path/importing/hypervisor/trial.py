"""The proof that a plan for objects of a cluster or a node is empty, in a state that is thrown away."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.engine import statefile
from stackyard.engine.changes import read_changes
from stackyard.path.adjustments import list_expected_values
from stackyard.path.importing.trial import (
    ProvenState,
    apply_imports,
    complete_state,
    more_files,
    read_plan_document,
    read_state,
    require_nothing,
)
from stackyard.path.run import open_run
from stackyard.path.settings import ProviderChoice
from stackyard.render.networks import APPLIER
from stackyard.render.objects import address_of_object
from stackyard.sources.store import ChosenStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.path.run import Run, RunSettings
    from stackyard.path.target import Resolved

__all__ = ["prove_objects"]


async def prove_objects(
    resolved: Resolved,
    settings: RunSettings,
    import_ids: Mapping[str, str],
    *,
    emit: events.Emit = events.ignore,
) -> ProvenState:
    """Import objects of a cluster into a state that is thrown away, and show that a plan is empty.

    The built-in provider imports them, whichever one plans later: bpg/proxmox cannot import all kinds, and
    its states are the same. Where it plans later, its plan has to be empty as well.

    Args:
        resolved: The target with the objects alone.
        settings: How to run.
        import_ids: The ids to import by, by address.
        emit: Takes the events.

    Raises:
        ImportDiffersError: The plan would change some of them.
        TofuError: Anything that the engine reports.
    """
    secrets = {address_of_object(one.key): frozenset(one.secrets) for one in resolved.desired.objects}
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        elsewhere = dataclasses.replace(
            settings, store=ChosenStore(base=Path(folder)), provider=ProviderChoice.BUILT_IN
        )
        async with open_run(resolved, elsewhere, emit=emit) as run:
            title = f"Importing {len(import_ids)} objects into a trial state"
            with events.step(emit, "import", title), _object_blocks(run, import_ids):
                await apply_imports(run)
            with events.step(emit, "prove", "Proving that the plan is empty"):
                document = await read_plan_document(run)
                await _add_appliers(run, document)
                await complete_state(run, document, secrets)
                document = await read_plan_document(run)
                require_nothing(read_changes(document).planned, str(resolved.target))
            proven = ProvenState(document=read_state(run))
        if settings.provider is ProviderChoice.BPG:
            theirs = dataclasses.replace(elsewhere, provider=ProviderChoice.BPG)
            async with open_run(resolved, theirs, emit=emit) as run:
                with events.step(emit, "prove", "Proving that the plan of bpg/proxmox is empty"):
                    document = await read_plan_document(run)
                    require_nothing(read_changes(document).planned, str(resolved.target))
    return proven


@contextlib.contextmanager
def _object_blocks(run: Run, import_ids: Mapping[str, str]) -> Iterator[None]:
    """Ask the engine to import objects, and forbid it to change any, for the length of the block."""
    imports = [{"to": address, "id": given} for address, given in import_ids.items()]
    kept: dict[str, Any] = {}
    for address in import_ids:
        kind, _, name = address.partition(".")
        kept.setdefault(kind, {})[name] = {"lifecycle": {"ignore_changes": "all"}}
    # What puts changes into force is an act: there is nothing to import, and it must not happen here.
    rendered = parse_json(run.rendered.files["main.tf.json"], LARGE)["resource"]
    kept |= (
        {APPLIER: {name: {"count": 0} for name in rendered.get(APPLIER, ())}} if APPLIER in rendered else {}
    )
    wanted = {"imports.tf.json": {"import": imports}, "imports_override.tf.json": {"resource": kept}}
    if run.served is not None:
        run.served.expected.update(list_expected_values(run.rendered, {"import": imports}))
    with more_files(run, wanted):
        yield


async def _add_appliers(run: Run, plan: Mapping[str, Any]) -> None:
    """Put into the state what applies changes of the SDN, as if it had done so for what is there."""
    new = [
        entry
        for entry in plan.get("resource_changes", ())
        if entry["type"] == APPLIER and entry["change"]["actions"] == ["create"]
    ]
    if not new:
        return
    document = read_state(run)
    provider = document["resources"][0]["provider"]
    for entry in new:
        values = {**entry["change"]["after"], "id": str(time.time_ns() // 1_000_000)}
        document["resources"].append(
            {
                "mode": "managed",
                "type": APPLIER,
                "name": entry["name"],
                "provider": provider,
                "instances": [{"schema_version": 0, "attributes": values, "sensitive_attributes": []}],
            }
        )
    document["serial"] += 1
    await statefile.state_push(run.workdir, orjson.dumps(document))
