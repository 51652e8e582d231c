"""What is asked of the operator, as one plain value that the command line makes and delegation sends on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.path.settings import QUEUE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["VerbRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbRequest:
    """What to do with which manifest, and how.

    Attributes:
        name: The manifest by its name in the site.
        file: The manifest as a file.
        text: The manifest as JSON or YAML text; it goes before the file, and that before the name.
        host: The host for the nodes that name none; the only one of the site when absent.
        site: The folder of the site; found from here upwards when absent.
        provider: The Proxmox provider, by its word.
        depth: How many levels of nodes, of which the first is one; all when absent.
        targets: These nodes alone, with what they need; all when empty.
        vm_ids: Ids for nodes, in place of those of the manifest.
        parallel: How many nodes or resources at once; the default of the engine when absent.
        skip_preflight: Whether to begin without looking at the host first.
        lock_wait_s: How long to wait for a state that another run holds.
        timeouts: Seconds by phases, in place of what the site says.
        report_dir: Where reports go; to `reports` in the site when absent.
        confirmed: The guests that the user agreed to destroy; if others would be destroyed too, nothing is.
            All when absent.
        is_delegated: Whether an outer operator asks: it keeps the reports and asks no questions here.
    """

    name: str | None = None
    file: str | None = None
    text: str | None = None
    host: str | None = None
    site: str | None = None
    provider: str = "builtin"
    depth: int | None = None
    targets: tuple[str, ...] = ()
    vm_ids: Mapping[str, int] = field(default_factory=dict)
    parallel: int | None = None
    skip_preflight: bool = False
    lock_wait_s: float = QUEUE_S
    timeouts: Mapping[str, float] = field(default_factory=dict)
    report_dir: str | None = None
    confirmed: frozenset[str] | None = None
    is_delegated: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        plain: dict[str, Any] = {"confirmed": None if self.confirmed is None else sorted(self.confirmed)}
        plain |= {"targets": list(self.targets), "vm_ids": dict(self.vm_ids), "timeouts": dict(self.timeouts)}
        return {**dataclasses.asdict(self), **plain}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> VerbRequest:
        """Return what `as_json` gave."""
        targets = tuple(str(name) for name in document.get("targets", ()))
        vm_ids = {str(name): int(vm_id) for name, vm_id in dict(document.get("vm_ids", {})).items()}
        timeouts = {str(name): float(said) for name, said in dict(document.get("timeouts", {})).items()}
        said = document.get("confirmed")
        confirmed = None if said is None else frozenset(map(str, said))
        lists = {"targets": targets, "vm_ids": vm_ids, "timeouts": timeouts, "confirmed": confirmed}
        return cls(**{**document, **lists})
