"""The document of a proposed change of a state: what moves, from which version, and the plan after it.

It names addresses and actions, and no value of any attribute, so that it can be committed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.errors import FileError, InvalidInputError, Location, UsageError
from stackyard.engine.changes import Action
from stackyard.path.stacks.state_change.operation import StateOperation, operation_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.path.stacks.plan import StackPlan

__all__ = [
    "FORM",
    "PlanAfter",
    "StateChange",
    "StateChangeFileError",
    "StateVersion",
    "parse_change",
    "plan_after_of",
    "read_change_file",
]

FORM = "state-change/1"
ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_DIGEST = re.compile(r"[0-9a-f]{64}|")
_COUNTED = {
    Action.CREATE: ("add",),
    Action.UPDATE: ("change",),
    Action.DELETE: ("remove",),
    Action.REPLACE: ("add", "remove"),
    Action.FORGET: ("forget",),
}


class StateChangeFileError(InvalidInputError):
    """A file that should describe a change of a state does not, or was edited into nonsense."""

    code = "E-STATE-CHANGE-FILE"
    summary = "This file is no change of a state"
    default_remedy = "Propose the change again with `stackyard stack state`, and commit the file as written."


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVersion:
    """The version of a state that a change was made from; all empty where there was none.

    Attributes:
        lineage: Which state.
        serial: Which version of it.
        digest: The SHA-256 of its bytes.
    """

    lineage: str = ""
    serial: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAfter:
    """What a plan says once the change is made.

    Attributes:
        counts: How many resources it adds, changes, removes and forgets.
        changes: The action for each address that it touches, sorted.
        outputs: The outputs that it changes.
        refused: What the guard would refuse of it.
    """

    counts: Mapping[str, int]
    changes: tuple[tuple[str, str], ...] = ()
    outputs: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether it changes nothing."""
        return not self.changes and not self.outputs

    def document(self) -> dict[str, Any]:
        """Return it as a document has it."""
        return {
            "counts": dict(self.counts),
            "changes": [{"address": address, "action": action} for address, action in self.changes],
            "outputs": list(self.outputs),
            "refused": list(self.refused),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A proposed change.

    Attributes:
        id: What it is called by.
        stack: The stack, `NAME` or `NAME@WORKSPACE`.
        operation: What is done.
        state: The version that it was made from.
        result: The digest of what the state holds after it; empty for an import, which looks at the world.
        moved: From and to, for each instance that gets another address.
        added: Instances that come into the state.
        removed: Instances that leave the state, and stay as they are.
        plan: The plan after it.
        proposed_by: Who proposed it.
        proposed_at: When, in UTC.
        commit: The commit of the checkout; `-dirty` behind it where files differ.
    """

    id: str
    stack: str
    operation: StateOperation
    state: StateVersion
    result: str
    moved: tuple[tuple[str, str], ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    plan: PlanAfter
    proposed_by: str
    proposed_at: str
    commit: str = ""

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "form": FORM,
            "id": self.id,
            "stack": self.stack,
            "operation": self.operation.document(),
            "state": asdict(self.state),
            "result": self.result,
            "moved": [{"from": before, "to": after} for before, after in self.moved],
            "added": list(self.added),
            "removed": list(self.removed),
            "plan": self.plan.document(),
            "proposed_by": self.proposed_by,
            "proposed_at": self.proposed_at,
            "commit": self.commit,
        }

    @property
    def digest(self) -> str:
        """What an approval is bound to: every word of the document."""
        return hashlib.sha256(orjson.dumps(self.document(), option=orjson.OPT_SORT_KEYS)).hexdigest()

    def encode(self, *, is_json: bool) -> bytes:
        """Return it as the text of a file."""
        if is_json:
            return orjson.dumps(self.document(), option=orjson.OPT_INDENT_2) + b"\n"
        text: str = yaml.safe_dump(self.document(), sort_keys=False, allow_unicode=True, width=120)
        return text.encode()


def plan_after_of(made: StackPlan) -> PlanAfter:
    """Return what of a plan a document has."""
    counts = dict.fromkeys(("add", "change", "remove", "forget"), 0)
    touched = []
    for change in made.changes.planned:
        if change.action in (Action.NOTHING, Action.READ) and change.is_nothing:
            continue
        touched.append((change.address, change.action.value))
        for name in _COUNTED.get(change.action, ()):
            counts[name] += 1
    return PlanAfter(
        counts=counts,
        changes=tuple(sorted(touched)),
        outputs=tuple(sorted(map(str, made.changes.outputs))),
        refused=tuple(finding.detail for finding in made.verdict.refused),
    )


def read_change_file(path: Path) -> tuple[StateChange, bytes]:
    """Read a change from a file, YAML or JSON; return its bytes too.

    Raises:
        StateChangeFileError: It is none.
        FileError: It cannot be read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(SMALL.size + 1)
    except (OSError, ValueError) as err:
        raise FileError.from_os_error(err, "read", path) from err
    where = Location(str(path))
    if len(data) > SMALL.size:
        raise StateChangeFileError(f"{path} has more than {SMALL.size} bytes.", where=where)
    try:
        said = parse_json(data, SMALL) if data.lstrip().startswith(b"{") else parse_yaml(data, SMALL)
    except (JsonError, yaml.YAMLError, ValueError) as err:
        raise StateChangeFileError(f"{path} is neither JSON nor YAML: {err}", where=where) from err
    try:
        return parse_change(said), data
    except StateChangeFileError as err:
        raise StateChangeFileError(f"{path}: {err.detail}", where=where) from err


def parse_change(said: Any) -> StateChange:
    """Read a change from what JSON or YAML gave.

    Raises:
        StateChangeFileError: It is none.
    """
    if not isinstance(said, dict) or said.get("form") != FORM:
        raise StateChangeFileError(f"It does not begin with `form: {FORM}`.")
    try:
        return _read(said)
    except UsageError as err:
        raise StateChangeFileError(err.detail) from err
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise StateChangeFileError(f"A field is missing or wrong: {err}.") from err


def _read(said: Mapping[str, Any]) -> StateChange:
    known = {"form", "plan", *(one.name for one in fields(StateChange))}
    if set(said) != known:
        raise ValueError(f"it has exactly {', '.join(sorted(known))}")
    state, plan = said["state"], said["plan"]
    version = StateVersion(
        lineage=_text(state["lineage"]),
        serial=_number(state["serial"]),
        digest=_fit(_DIGEST, state["digest"]),
    )
    after = PlanAfter(
        counts={_text(name): _number(count) for name, count in plan["counts"].items()},
        changes=tuple((_text(one["address"]), Action(one["action"]).value) for one in plan["changes"]),
        outputs=_texts(plan["outputs"]),
        refused=_texts(plan["refused"]),
    )
    return StateChange(
        id=_fit(ID, said["id"]),
        stack=_text(said["stack"]),
        operation=operation_of(said["operation"]),
        state=version,
        result=_fit(_DIGEST, said["result"]),
        moved=tuple((_text(one["from"]), _text(one["to"])) for one in said["moved"]),
        added=_texts(said["added"]),
        removed=_texts(said["removed"]),
        plan=after,
        proposed_by=_text(said["proposed_by"]),
        proposed_at=_text(said["proposed_at"]),
        commit=_text(said["commit"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:60]} is no text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError("a list is needed")
    return tuple(map(_text, values))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{str(value)[:60]} is no number")
    return value


def _fit(form: re.Pattern[str], value: Any) -> str:
    if not form.fullmatch(_text(value)):
        raise ValueError(f"`{value[:60]}` has another form")
    return str(value)
