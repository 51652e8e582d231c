"""The records that the verbs of `stackyard runs` read, and how they show them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.cli.commands.state.words import instant
from stackyard.cli.unstored import warn_of_unstored_states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects
    from stackyard.state.run_records import RecordedRun

__all__ = ["STYLES", "open_store", "run_document", "versions_text"]

STYLES = {
    "done": "green",
    "failed": "red",
    "refused": "red",
    "lost": "red",
    "unreadable": "red",
    "stopped": "yellow",
}


@contextlib.contextmanager
def open_store() -> Iterator[Objects]:
    """Give the store of the site here, for the length of a block, also while it is moved.

    Raises:
        StoreError: The store cannot be used.
    """
    from stackyard.sources.site.store_choice import find_store  # lazy: only when a verb runs

    store = find_store()
    warn_of_unstored_states(store.base)
    with contextlib.closing(store.read_as_is()) as objects:
        yield objects


def run_document(run: RecordedRun) -> dict[str, Any]:
    """Return the JSON view of a run."""
    return {
        "id": run.id,
        "verb": run.verb,
        "target": run.target,
        "state": run.state,
        "by": run.by,
        "machine": run.machine,
        "version": run.version,
        "commit": run.commit or None,
        "started_at": instant(run.started_at),
        "finished_at": instant(run.finished_at),
        "duration_s": None if run.duration_s is None else round(run.duration_s, 3),
        "outcome": run.outcome.value,
        "error": run.error,
        "state_before": run.before or None,
        "state_after": run.after or None,
        "counts": {name: dict(counts) for name, counts in run.counts.items()},
        "notes": dict(run.notes),
    }


def versions_text(run: RecordedRun) -> str:
    """Return how the version of the state changed, for a person."""
    before, after = (version.rpartition("/")[2] for version in (run.before, run.after))
    if run.before == run.after:
        return f"serial {after}" if after else "-"
    return f"serial {before or '-'} -> {after or '-'}"
