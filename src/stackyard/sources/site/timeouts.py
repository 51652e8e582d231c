"""How long each phase of a run of a manifest may take: one table, which a site and a run can change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stackyard.base.errors import UsageError
from stackyard.base.suggestions import did_you_mean

__all__ = ["TIMEOUTS", "Timeout", "Timeouts", "find_phase", "read_timeouts"]


@dataclass(frozen=True, slots=True)
class Timeout:
    """The time of a phase.

    Attributes:
        what: What has to be done within it.
        default_s: Seconds; none where nothing ends it, or where it is counted from the manifest.
    """

    what: str
    default_s: float | None = None


TIMEOUTS: Mapping[str, Timeout] = {
    "provision": Timeout("OpenTofu makes and changes the guests of a host"),
    "wait_address": Timeout("a guest runs and reports its address (`verify.timeout_s` of the guest)", 300.0),
    "wait_ssh": Timeout("a guest lets us in over SSH", 180.0),
    "wait_first_boot": Timeout("its first boot is done, with the spec that it fetches", 900.0),
    "apply_spec": Timeout("a spec is applied", 1800.0),
    "setup_pve": Timeout("Proxmox VE is installed on a node of type `pve` that has none", 1200.0),
    "delegate": Timeout("a node does what is inside of it; counted from its nodes where nobody says it"),
    "destroy": Timeout("OpenTofu destroys the guests of a host"),
}
# Other words for them: the phases as reports name them, and those of homestak.
_OTHER_WORDS = {
    "create_guest": "provision",
    "provision_vm": "provision",
    "wait_ip": "wait_address",
    "verify_ssh": "wait_ssh",
    "wait_spec": "wait_first_boot",
    "pve-setup": "setup_pve",
    "ensure_pve": "setup_pve",
    "subtree_delegation": "delegate",
    "destroy_guest": "destroy",
    "destroy_vm": "destroy",
}


def find_phase(name: str) -> str | None:
    """Return a phase by its name or another word for it; None where there is none."""
    found = _OTHER_WORDS.get(name, name)
    return found if found in TIMEOUTS else None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """What a run, else the site, says of phases; the table holds for the others."""

    said: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Mapping[str, float], run: Mapping[str, float]) -> Timeouts:
        """Return what counts: a run before its site."""
        named = {**site, **run}
        return cls({known: named[name] for name in named if (known := find_phase(name)) is not None})

    def seconds(self, name: str, *, buffer_s: float = 0.0) -> float | None:
        """Return the time of a phase: what is said, exactly; else the table's, with the buffer on top."""
        if name in self.said:
            return self.said[name]
        default_s = TIMEOUTS[name].default_s
        return None if default_s is None else default_s + buffer_s


def read_timeouts(words: Iterable[str]) -> dict[str, float]:
    """Return `PHASE=SECONDS` by phases.

    Raises:
        UsageError: One is something else, or there is no such phase.
    """
    found: dict[str, float] = {}
    for word in words:
        name, _, said = word.partition("=")
        known = find_phase(name)
        if known is None:
            raise UsageError(
                f"There is no phase `{name}` for --timeout.{did_you_mean(name, TIMEOUTS)}",
                remedy=f"It is one of {', '.join(TIMEOUTS)}: --timeout provision=300.",
            )
        try:
            found[known] = float(said)
        except ValueError:
            found[known] = 0.0
        if not 0 < found[known] < float("inf"):
            raise UsageError(f"`--timeout {word}` is not PHASE=SECONDS, such as --timeout provision=300.")
    return found
