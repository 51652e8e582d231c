"""The kinds of faults that can be ordered: what each needs to be told, and what it does to the lab.

A fault is a document `faults/<name>` with its `kind` and fields. Some kinds are rules that strike calls,
tasks or agents (see `faults`); they follow the documents, so that they are in force again after a restart.
The others change the lab when they are added (a node goes down) and change it back when they are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.faults.changes import (
    bring_node_up,
    expire_tickets,
    lock_guest,
    lose_quorum,
    regain_quorum,
    take_node_down,
    unlock_guest,
)
from pvelab.faults.cut_off import follow_network, leave_network
from pvelab.faults.factory import WAYS, factory_rule
from pvelab.faults.faults import FaultRule, Point, Strike
from pvelab.faults.storages import empty_storage, fill_storage, part_storage, rejoin_storage
from pvelab.faults.talos import TALOS_WAYS, check_address, talos_call_rule
from pvelab.faults.truenas import TRUENAS_WAYS, truenas_rule
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.faults.faults import Faults
    from pvelab.world.store import Document, Store
    from pvelab.world.world import World

__all__ = ["COLLECTION", "KINDS", "FaultKind", "Field", "add_fault", "follow_faults", "remove_fault"]

COLLECTION = "faults"

Change = Callable[["World", "Document"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A parameter of a fault."""

    type: type[str] | type[int] | type[float]
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()

    def read(self, value: Any) -> str | int | float:
        """Return a value in its type.

        Raises:
            ValueError: It is none, with what is expected.
        """
        try:
            found = self.type(value)
        except (TypeError, ValueError) as err:
            raise ValueError(f"must be {'text' if self.type is str else 'a number'}") from err
        if isinstance(found, float | int) and found < 0:
            raise ValueError("must not be less than 0")
        if self.choices and found not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """A kind of fault.

    Attributes:
        help: What it does.
        fields: Its parameters.
        rule: Makes the rule that it is, for those that strike.
        apply: Changes the lab, for those that do.
        lift: Changes it back.
    """

    help: str
    fields: Mapping[str, Field] = field(default_factory=dict)
    rule: Callable[[Document], FaultRule] | None = None
    apply: Change | None = None
    lift: Change | None = None


def follow_faults(store: Store, faults: Faults) -> None:
    """Keep the rules in force the same as the documents."""

    def observe(key: str, _old: Document | None, new: Document | None) -> None:
        kind = None if new is None else KINDS[str(new["kind"])]
        if new is None or kind is None or kind.rule is None:
            faults.remove(key)
        else:
            faults.add(key, kind.rule(new))

    store.watch(COLLECTION, observe)


def add_fault(world: World, given: Mapping[str, Any]) -> Document:
    """Add a fault, in the running transaction, and return it as it is kept.

    Raises:
        PveError: It lacks something or has too much (400), or cannot be.
    """
    document = _read(given)
    name = str(document.get("name") or _free_name(world, str(document["kind"])))
    if world.store.get(COLLECTION, name) is not None:
        raise PveError(f"there is a fault '{name}' already", status=409)
    kind = KINDS[str(document["kind"])]
    kept = {**document, "name": name}
    if kind.apply is not None:
        kind.apply(world, kept)
    world.store.put(COLLECTION, name, kept)
    return kept


def remove_fault(world: World, name: str) -> None:
    """Remove a fault and undo what it does, in the running transaction.

    Raises:
        PveError: There is none of that name (404).
    """
    document = world.store.get(COLLECTION, name)
    if document is None:
        raise PveError(f"there is no fault '{name}'", status=404)
    world.store.delete(COLLECTION, name)
    kind = KINDS[str(document["kind"])]
    if kind.lift is not None:
        kind.lift(world, document)


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = KINDS.get(str(given.get("kind", "")))
    if kind is None:
        raise PveError(f"'kind' must be one of {', '.join(KINDS)}", status=400)
    document: dict[str, Any] = {"kind": given["kind"]}
    problems = [f"there is no field '{key}'" for key in given if key not in ("kind", "name", *kind.fields)]
    if given.get("name"):
        document["name"] = str(given["name"])
    for key, expected in kind.fields.items():
        if given.get(key) is None:
            problems += [f"'{key}' is needed: {expected.help}"] if expected.required else []
            continue
        try:
            document[key] = expected.read(given[key])
        except ValueError as err:
            problems.append(f"'{key}' {err}")
    if problems:
        raise PveError(f"a fault of kind '{given['kind']}': {'; '.join(problems)}", status=400)
    return document


def _free_name(world: World, kind: str) -> str:
    taken = world.store.items(COLLECTION)
    return next(name for number in range(1, len(taken) + 2) if (name := f"{kind}-{number}") not in taken)


# --- Rules


def _call_rule(document: Document) -> FaultRule:
    points = {"auth": Point.BEFORE_AUTH, "after": Point.AFTER_WORK}
    point = points.get(str(document.get("when")), Point.BEFORE_WORK)
    kind = document["kind"]
    strike = Strike(
        delay_s=float(document.get("seconds", 0.0)),
        status=int(document["status"]) if kind == "answer" else None,
        reason=str(document.get("reason", "")),
        drop=kind == "drop",
    )
    return _rule(document, point, strike, method=str(document.get("method", "*")).upper())


def _task_rule(document: Document) -> FaultRule:
    strike = Strike(reason=str(document["text"]))
    return _rule(document, Point.TASK, strike, method=str(document.get("task", "*")))


def _agent_rule(document: Document) -> FaultRule:
    return _rule(document, Point.AGENT, Strike(), method="*")


def _rule(document: Document, point: Point, strike: Strike, *, method: str) -> FaultRule:
    return FaultRule(
        point=point,
        strike=strike,
        method=method,
        path=str(document.get("path", document.get("id", document.get("vmid", "*")))),
        node=str(document.get("node", "*")),
        nth=int(document.get("nth", 0)),
        probability=float(document.get("probability", 1.0)),
        times=int(document.get("times", 0)),
        step=int(document.get("step", 1)),
    )


_NODE = Field(type=str, help="only on this node")
_STRIKES = {
    "node": _NODE,
    "nth": Field(type=int, help="only the nth one that fits, from 1"),
    "probability": Field(type=float, help="how likely one that fits is struck, from 0 to 1"),
    "times": Field(type=int, help="how many are struck before the fault is spent; no end when absent"),
}
_CALLS = {
    "method": Field(type=str, help="only calls of this method: GET, POST, PUT, DELETE, or SSH for commands"),
    "path": Field(type=str, help="only paths (or commands) that fit this pattern: /nodes/*/qemu/*/clone"),
    **_STRIKES,
}
_WHEN = Field(type=str, help="before (default) the work is done, or after it", choices=("before", "after"))
_VMID = Field(type=int, help="the guest", required=True)
_STORAGE = {"storage": Field(type=str, help="which one", required=True), "node": _NODE}

KINDS: Mapping[str, FaultKind] = {
    "answer": FaultKind(
        help="Calls are answered with an error instead of being done.",
        fields={
            "status": Field(type=int, help="the HTTP status", required=True),
            "reason": Field(
                type=str, help="the reason phrase, which is the text of the error", required=True
            ),
            "seconds": Field(type=float, help="wait this long before"),
            "when": Field(
                type=str,
                help="auth: before the caller is known; before (default); after: when the work is done",
                choices=("auth", "before", "after"),
            ),
            **_CALLS,
        },
        rule=_call_rule,
    ),
    "delay": FaultKind(
        help="Calls take longer.",
        fields={
            "seconds": Field(type=float, help="how much longer", required=True),
            "when": _WHEN,
            **_CALLS,
        },
        rule=_call_rule,
    ),
    "drop": FaultKind(
        help="The connection is cut without an answer.",
        fields={
            "when": _WHEN,
            "seconds": Field(type=float, help="wait this long before"),
            **_CALLS,
        },
        rule=_call_rule,
    ),
    "task": FaultKind(
        help="Tasks fail in the middle of their work.",
        fields={
            "text": Field(type=str, help="what goes wrong: the exit status of the task", required=True),
            "task": Field(type=str, help="only tasks of this type: qmclone, vzcreate, download"),
            "id": Field(type=str, help="only tasks of this guest (or storage)"),
            "step": Field(
                type=int, help="which step of the work fails, from 1 (default); 0: all is done first"
            ),
            **_STRIKES,
        },
        rule=_task_rule,
    ),
    "agent-silent": FaultKind(
        help="The guest agent never answers.",
        fields={"vmid": Field(type=int, help="only that of this guest"), **_STRIKES},
        rule=_agent_rule,
    ),
    "factory": FaultKind(
        help="Requests to the image factory of the lab go wrong.",
        fields={
            "how": Field(type=str, help="what goes wrong", required=True, choices=WAYS),
            "seconds": Field(type=float, help="slow: how long an answer takes (default: 30)"),
            "path": Field(type=str, help="only paths that fit this pattern: /image/*.iso"),
            "method": Field(type=str, help="only this method: GET, HEAD, POST"),
            **{name: field for name, field in _STRIKES.items() if name != "node"},
        },
        rule=factory_rule,
    ),
    "talos": FaultKind(
        help="A Talos machine goes wrong for as long as the fault is there.",
        fields={
            "how": Field(
                type=str,
                help="never-boots; install-hangs; disk-lost: at its next reboot; etcd-slow: to start;"
                " certificate-expired; clock-skew; unreachable: it answers nobody; partition: it answers"
                " clients, and no other machine; api-away: no Kubernetes API",
                required=True,
                choices=TALOS_WAYS,
            ),
            "vmid": Field(type=int, help="only that of this guest"),
            "seconds": Field(
                type=float, help="etcd-slow: how much longer (30); clock-skew: by how much (7200)"
            ),
        },
    ),
    "talos-call": FaultKind(
        help="Calls of the Talos API have no answer: the connection breaks.",
        fields={
            "method": Field(type=str, help="which one: ApplyConfiguration, Bootstrap", required=True),
            "when": _WHEN,
            "vmid": Field(type=int, help="only calls to this guest"),
            **{name: field for name, field in _STRIKES.items() if name != "node"},
        },
        rule=talos_call_rule,
    ),
    "address-taken": FaultKind(
        help="Another machine answers at an address, as at one that a cluster shares.",
        fields={
            "address": Field(type=str, help="which one, of 127.0.0.0/8", required=True),
            "port": Field(type=int, help="at which port (default: 6443)"),
        },
        apply=check_address,
    ),
    "truenas": FaultKind(
        help="Calls to the TrueNAS of the lab go wrong.",
        fields={
            "how": Field(
                type=str,
                help="down: it does not answer; lost-answer: the call is done, and the connection breaks",
                required=True,
                choices=TRUENAS_WAYS,
            ),
            "path": Field(type=str, help="only methods or paths that fit this pattern: pool.dataset.create"),
            "nth": _STRIKES["nth"],
            "times": _STRIKES["times"],
        },
        rule=truenas_rule,
    ),
    "lock": FaultKind(
        help="A guest keeps a lock, as after a backup that was killed.",
        fields={"vmid": _VMID, "lock": Field(type=str, help="which one: backup (default), clone, migrate")},
        apply=lock_guest,
        lift=unlock_guest,
    ),
    "storage-full": FaultKind(
        help="A storage has no space left.",
        fields=_STORAGE,
        apply=fill_storage,
        lift=empty_storage,
    ),
    "storage-offline": FaultKind(
        help="The server of a storage (nfs, cifs, iscsi) does not answer.",
        fields=_STORAGE,
        apply=part_storage,
        lift=rejoin_storage,
    ),
    "node-down": FaultKind(
        help="A node cannot be reached.",
        fields={
            "node": Field(type=str, help="which one", required=True),
            "reason": Field(type=str, help="No route to host (default), Connection refused, ..."),
        },
        apply=take_node_down,
        lift=bring_node_up,
    ),
    "network-cuts": FaultKind(
        help="A node is reached only while an interface that is up has its address.",
        fields={"node": Field(type=str, help="which one", required=True)},
        apply=follow_network,
        lift=leave_network,
    ),
    "quorum-lost": FaultKind(
        help="The cluster has no quorum: nothing can be changed.", apply=lose_quorum, lift=regain_quorum
    ),
    "tickets-expired": FaultKind(
        help="All tickets handed out so far are refused; who logs in again gets a good one.",
        apply=expire_tickets,
    ),
}
