"""Taking guests over: the file of the env and the state of its target, both or neither.

The file is written first: a run that is killed right then leaves entries without a state, for which a plan
wants to make guests whose ids are taken, and the guard refuses; the same import again goes on from there.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import events, files
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.engine import statefile
from stackyard.path.importing.trial import changes_of, read_plan_document, require_nothing
from stackyard.path.run import open_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.path.importing.trial import ProvenState
    from stackyard.path.run import Run, RunSettings
    from stackyard.path.target import Resolved

__all__ = ["EnvText", "join_states", "take"]

# Files of a site are for everybody who may read the folder.
_READABLE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvText:
    """The file of an env as it is and as it should be; `before` is None where there is none yet."""

    path: Path
    before: str | None
    after: str

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Write the file; put it back when the block fails, unless somebody else has changed it since.

        Raises:
            FileError: It cannot be written.
        """
        if self.before == self.after:
            yield
            return
        mode = _READABLE if self.before is None else self.path.stat().st_mode & 0o777
        self.path.parent.mkdir(exist_ok=True)
        files.replace_file(self.path, self.after.encode(), mode=mode)
        is_done = False
        try:
            yield
            is_done = True
        finally:
            if not is_done:
                self._put_back(mode)

    def _put_back(self, mode: int) -> None:
        if not self.path.exists() or files.read_text(self.path) != self.after:
            return
        if self.before is None:
            self.path.unlink()
        else:
            files.replace_file(self.path, self.before.encode(), mode=mode)


async def take(
    resolved: Resolved,
    settings: RunSettings,
    text: EnvText,
    proven: ProvenState,
    *,
    emit: events.Emit = events.ignore,
) -> None:
    """Write the file of an env and the state of its target, and prove that the plan for the guests is empty.

    Args:
        resolved: The target as the new file says it.
        settings: How to run.
        text: The file.
        proven: The guests as the state should have them.
        emit: Takes the events.

    Raises:
        ImportDiffersError: The plan is not empty; the file and the state are as they were.
        StateLockedError: Another run holds the state; the file is as it was.
        TofuError: Anything else that the engine reports.
    """
    addresses = [f"{row['type']}.{row['name']}" for row in proven.document["resources"]]
    async with open_run(resolved, settings, emit=emit) as run:
        with text.write():
            with events.step(emit, "take", f"Writing {text.path.name} and the state"):
                before = run.states.contents.read(resolved.target.state_name)
                known = None if before is None else before.body.data
                await statefile.state_push(run.workdir, join_states(known, proven))
            await _prove(run, addresses)


async def _prove(run: Run, addresses: Sequence[str]) -> None:
    is_proved = False
    try:
        with events.step(run.emit, "plan", f"Planning {run.resolved.target}"):
            document = await read_plan_document(run)
        require_nothing(changes_of(document, addresses), str(run.resolved.target))
        is_proved = True
    finally:
        if not is_proved:
            await statefile.state_rm(run.workdir, tuple(addresses))


def join_states(before: bytes | None, proven: ProvenState) -> bytes:
    """Return the state of a target with imported guests in it.

    Args:
        before: The state as it is; None where there is none yet.
        proven: The guests.
    """
    if before is None:
        return orjson.dumps({**proven.document, "serial": 1})
    document: dict[str, Any] = parse_json(before, LARGE)
    new = {(row["type"], row["name"]): row for row in proven.document["resources"]}
    kept = [row for row in document["resources"] if (row["type"], row["name"]) not in new]
    return orjson.dumps(
        {
            **document,
            "serial": document["serial"] + 1,
            "resources": [*kept, *new.values()],
            "outputs": _join_outputs(document.get("outputs") or {}, proven.document.get("outputs") or {}),
        }
    )


def _join_outputs(ours: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return outputs with those of new guests: objects that have one more attribute for each."""
    result = dict(ours)
    for name, output in new.items():
        known = ours.get(name)
        if known is None:
            result[name] = output
            continue
        (_, old_types), (_, new_types) = known["type"], output["type"]
        result[name] = {
            **known,
            "value": {**known["value"], **output["value"]},
            "type": ["object", {**old_types, **new_types}],
        }
    return result
