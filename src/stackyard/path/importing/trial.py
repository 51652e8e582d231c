"""The proof that a plan for guests that are there is empty, in a state of its own that nobody sees.

The engine imports the guests by `import` blocks while it may change nothing of them (`ignore_changes = all`),
so that the cluster is only read. An imported state lacks what only the provider knows (timeouts, how to stop
a guest): the values that a plan would give those are put into it. A later plan reads every guest again,
so that whatever Proxmox has otherwise than the configuration says shows as a change.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import events, files
from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import StackyardError
from stackyard.desired import Container, Desired, Vm
from stackyard.engine import statefile, tofu
from stackyard.engine.changes import UNKNOWN, Action, read_changes
from stackyard.engine.version import EngineBrokenError
from stackyard.guard.subjects import describe, is_guest
from stackyard.path import plan
from stackyard.path.adjustments import list_expected_values
from stackyard.path.run import open_run
from stackyard.render.names import label
from stackyard.render.protection import FIREWALL_ALIAS, list_protection
from stackyard.render.references import CONTAINER, VM, address_of
from stackyard.sources.store import ChosenStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.desired import Guest
    from stackyard.engine.changes import Change
    from stackyard.path.run import Run, RunSettings
    from stackyard.path.target import Resolved

__all__ = [
    "ImportDiffersError",
    "ProvenState",
    "apply_imports",
    "changes_of",
    "complete_state",
    "describe_differences",
    "more_files",
    "prove",
    "read_plan_document",
    "read_state",
    "require_nothing",
]

DIFFERS = Kind(
    code="E-IMPORT-DIFFERS",
    summary="A guest or object is not what its entry would make it",
    remedy="Change it by hand so that it can be said, or leave it out: a guest with a filter, an object of "
    "a cluster with --leave SECTION.NAME.",
)


class ImportDiffersError(StackyardError):
    """A plan for what is imported would change it; the file and the state are as they were."""

    code = "E-IMPORT-NOT-EMPTY"
    summary = "The plan after the import is not empty"
    default_remedy = "Read the differences; change what differs by hand, or leave it out."

    def __init__(self, detail: str, changes: Sequence[Change]) -> None:
        super().__init__(detail)
        self.changes = tuple(changes)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every difference."""
        return tuple(
            Diagnostic(kind=DIFFERS, detail=text)
            for change in self.changes
            for text in describe_differences(change)
        )


def describe_differences(change: Change) -> Iterator[str]:
    """Return what a plan would change, a sentence for each."""
    who = describe(change)
    # What is only found out by a change says nothing about the reason for it.
    differences = [one for one in change.differences if one.after is not UNKNOWN]
    if not differences:
        yield f"{who}: the plan would {change.action.value} it."
    for one in differences:
        forces = ", for which it would be replaced" if one.forces_replace else ""
        yield f"{who}: `{one.name}` is {one.before!r} and would become {one.after!r}{forces}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenState:
    """The state of guests for which a plan is empty; its representation shows nothing of it."""

    document: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Proven({len(self.document.get('resources', ()))} guests)"


async def prove(
    resolved: Resolved, settings: RunSettings, guests: Sequence[Guest], *, emit: events.Emit = events.ignore
) -> ProvenState:
    """Import guests into a state that is thrown away, and show that a plan for them is empty.

    Args:
        resolved: The target; what else it has does not matter.
        settings: How to run.
        guests: The guests as they should be described.
        emit: Takes the events.

    Raises:
        ImportDiffersError: The plan would change some of them.
        TofuError: Anything that the engine reports.
    """
    alone = [guest.model_copy(update={"depends_on": ()}) for guest in guests]
    desired = Desired(
        vms=tuple(guest for guest in alone if isinstance(guest, Vm)),
        containers=tuple(guest for guest in alone if isinstance(guest, Container)),
    )
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        elsewhere = dataclasses.replace(settings, store=ChosenStore(base=Path(folder)))
        trial = dataclasses.replace(resolved, desired=desired)
        async with open_run(trial, elsewhere, emit=emit) as run:
            title = f"Importing {len(guests)} guests into a trial state"
            with events.step(emit, "import", title), _import_blocks(run, alone):
                await apply_imports(run)
                await _tell_pools(run, alone)
                await _write_aliases(run, alone)
            with events.step(emit, "prove", "Proving that the plan is empty"):
                document = await read_plan_document(run)
                await complete_state(run, document)
                document = await read_plan_document(run)
                require_nothing(read_changes(document).planned, str(resolved.target))
            found = read_state(run)
    return ProvenState(document={**found, "outputs": _outputs(document)})


@contextlib.contextmanager
def _import_blocks(run: Run, guests: Sequence[Guest]) -> Iterator[None]:
    """Ask the engine to import guests, and forbid it to change any, for the length of the block."""
    imports = [{"to": address_of(guest), "id": f"{guest.node}/{guest.vm_id}"} for guest in guests]
    kept: dict[str, Any] = {}
    for guest in guests:
        kind = CONTAINER if isinstance(guest, Container) else VM
        kept.setdefault(kind, {})[label(guest.key)] = {"lifecycle": {"ignore_changes": "all"}}
        for part in list_protection(guest):
            is_written = part.type == FIREWALL_ALIAS
            # None of it as yet where bpg cannot import it; else it would be made.
            ours: dict[str, Any] = {"count": 0} if is_written else {"lifecycle": {"ignore_changes": "all"}}
            kept.setdefault(part.type, {})[part.label] = ours
            if not is_written:
                imports.append({"to": part.address, "id": part.import_id})
    wanted = {"imports.tf.json": {"import": imports}, "imports_override.tf.json": {"resource": kept}}
    if run.served is not None:
        # What Proxmox does not keep is spelled as in the configuration: bpg compares the texts.
        run.served.expected.update(list_expected_values(run.rendered, {"import": imports}))
    with more_files(run, wanted):
        yield


@contextlib.contextmanager
def more_files(run: Run, wanted: Mapping[str, Any]) -> Iterator[None]:
    """Have more files in the folder of the engine for the length of the block."""
    try:
        for name, content in wanted.items():
            files.replace_file(run.workdir.folder / name, orjson.dumps(content))
        yield
    finally:
        for name in wanted:
            (run.workdir.folder / name).unlink(missing_ok=True)


async def apply_imports(run: Run) -> None:
    """Perform the import blocks in the folder of the engine, where they change nothing.

    Raises:
        ImportDiffersError: They would.
    """
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        path = Path(folder) / "plan"
        options = tofu.PlanOptions(parallelism=run.settings.parallelism)
        await tofu.plan(run.workdir, path, options=options)
        changes = await plan.changes_of(run, path)
        # Nothing may be done to a guest here, whatever a provider makes of the rule not to.
        require_nothing(changes.planned, str(run.resolved.target))
        await tofu.apply(run.workdir, path, parallelism=run.settings.parallelism)


async def _tell_pools(run: Run, guests: Sequence[Guest]) -> None:
    """Put the pools of containers into the state: no provider reads them, and all go by them."""
    pools = {address_of(one): one.pool for one in guests if isinstance(one, Container) and one.pool}
    if pools:
        await _edit(run, {address: {"pool_id": pool} for address, pool in pools.items()})


async def _write_aliases(run: Run, guests: Sequence[Guest]) -> None:
    """Put aliases of firewalls into the state; the next plan reads them, as it does everything there."""
    found = [
        (part, guest)
        for guest in guests
        for part in list_protection(guest)
        if part.type == FIREWALL_ALIAS and guest.firewall is not None
    ]
    if not found:
        return
    document = read_state(run)
    provider = document["resources"][0]["provider"]
    for part, guest in found:
        said = {
            name: part.arguments.get(name) for name in ("name", "cidr", "comment", "vm_id", "container_id")
        }
        attributes = {**said, "id": said["name"], "node_name": guest.node}
        document["resources"].append(
            {
                "mode": "managed",
                "type": part.type,
                "name": part.label,
                "provider": provider,
                "instances": [{"schema_version": 0, "attributes": attributes, "sensitive_attributes": []}],
            }
        )
    document["serial"] += 1
    await statefile.state_push(run.workdir, orjson.dumps(document))


async def read_plan_document(run: Run) -> Mapping[str, Any]:
    """Return the engine's JSON of a plan for a target; it holds every secret in clear."""
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        path = Path(folder) / "plan"
        options = tofu.PlanOptions(parallelism=run.settings.parallelism)
        # What it says of the changes that are not made yet would only frighten.
        await tofu.plan(run.workdir, path, options=options)
        return await tofu.show_plan(run.workdir, path)


def changes_of(document: Mapping[str, Any], addresses: Sequence[str]) -> tuple[Change, ...]:
    """Return what a plan does to these addresses."""
    wanted = set(addresses)
    return tuple(change for change in read_changes(document).planned if change.address in wanted)


def require_nothing(changes: Sequence[Change], target: str) -> None:
    """Refuse a plan that does anything.

    Raises:
        ImportDiffersError: With everything that it does.
    """
    found = [change for change in changes if change.action not in (Action.NOTHING, Action.READ)]
    if found:
        word = "guest" if all(map(is_guest, found)) else "object"
        those = f"a{'n' if word == 'object' else ''} {word}" if len(found) == 1 else f"{len(found)} {word}s"
        raise ImportDiffersError(f"A plan for {target} would change {those} that should be imported.", found)


async def complete_state(
    run: Run, plan: Mapping[str, Any], secrets: Mapping[str, frozenset[str]] = types.MappingProxyType({})
) -> None:
    """Put into the state what a plan would put there without touching a guest, and secrets.

    Nobody can read a secret, so the one that the user names is taken to be the one that is there.
    """
    changes = {entry["address"]: entry["change"] for entry in plan.get("resource_changes", ())}
    updates = {
        address: _fill_unknown(change["after"], change.get("after_unknown"), change["before"])
        for address, change in changes.items()
        if change["actions"] == ["update"]
    }
    for address, names in secrets.items():
        if changes.get(address, {}).get("actions") not in (None, ["update"], ["no-op"]):
            updates[address] = {name: changes[address]["after"][name] for name in names}
    if updates:
        await _edit(run, updates)


async def _edit(run: Run, attributes: Mapping[str, Mapping[str, Any]]) -> None:
    """Put attributes into the state, by address."""
    document = read_state(run)
    for resource in document["resources"]:
        for instance in resource["instances"]:
            instance["attributes"] |= attributes.get(f"{resource['type']}.{resource['name']}", {})
    document["serial"] += 1
    await statefile.state_push(run.workdir, orjson.dumps(document))


def read_state(run: Run) -> dict[str, Any]:
    """Return the state of a run that has imported something."""
    content = run.states.contents.read(run.resolved.target.state_name)
    if content is None:
        raise EngineBrokenError("The engine imported guests and has no state of them.")
    document: dict[str, Any] = parse_json(content.body.data, LARGE)
    return document


def _fill_unknown(after: Any, unknown: Any, before: Any) -> Any:
    """Return what a value will be; what nobody knows yet is as it was."""
    if unknown is True:
        return before
    if isinstance(after, dict) or isinstance(unknown, dict):
        keys = {**(after or {}), **(unknown if isinstance(unknown, dict) else {})}
        return {key: _fill_unknown(_at(after, key), _at(unknown, key), _at(before, key)) for key in keys}
    if isinstance(after, list) and isinstance(unknown, list):
        return [
            _fill_unknown(one, _at(unknown, place), _at(before, place)) for place, one in enumerate(after)
        ]
    return after


def _at(tree: Any, key: str | int) -> Any:
    if isinstance(tree, dict):
        return tree.get(key)
    if isinstance(tree, list) and isinstance(key, int) and key < len(tree):
        return tree[key]
    return None


def _outputs(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs as a state keeps them."""
    planned = plan.get("planned_values", {}).get("outputs", {})
    return {
        name: {"value": output["value"], "type": output["type"]}
        for name, output in planned.items()
        if "value" in output and "type" in output
    }
