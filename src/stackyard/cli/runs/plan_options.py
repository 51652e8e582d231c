"""What the options of plan and apply ask for, for targets of every kind."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from stackyard.guard import Allowances, Permit
from stackyard.guard.addresses import split_names
from stackyard.guard.destruction import ALLOW_DESTROY, ALLOW_DISK_LOSS
from stackyard.guard.hypervisor.lockout import ALLOW_LOCKOUT
from stackyard.guard.hypervisor.management import ALLOW_MANAGEMENT_NETWORK
from stackyard.guard.interruption import ALLOW_NETWORK_RELOAD, ALLOW_REBOOT
from stackyard.guard.moves import ALLOW_MIGRATE
from stackyard.guard.policy.verdict import ALLOW_POLICY
from stackyard.path.credentials.findings import RENEW_TOKEN
from stackyard.path.plan_request import PlanRequest
from stackyard.path.settings import QUEUE_S, ProviderChoice, RunSettings, read_cli_config_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.sources.store import ChosenStore

__all__ = [
    "allowances",
    "list_recreated_guests",
    "make_plan_request",
    "repeat_with_permits",
    "settings_of",
]

_PERMITS = {
    "allow_destroy": ALLOW_DESTROY,
    "allow_disk_loss": ALLOW_DISK_LOSS,
    "allow_reboot": ALLOW_REBOOT,
    "allow_migrate": ALLOW_MIGRATE,
    "allow_network_reload": ALLOW_NETWORK_RELOAD,
    "allow_management_network": ALLOW_MANAGEMENT_NETWORK,
    "allow_lockout": ALLOW_LOCKOUT,
    "allow_policy": ALLOW_POLICY,
    "renew_token": RENEW_TOKEN,
}


def list_recreated_guests(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the guests that the user wants to be created again."""
    return frozenset(name for names in values.get("recreate", ()) for name in split_names(names))


def allowances(values: Mapping[str, Any], *, everything: bool = False) -> Allowances:
    """Return what the user named."""
    permits = {
        Permit(option=option, name=name)
        for parameter, option in _PERMITS.items()
        for names in values.get(parameter, ())
        for name in split_names(names)
    }
    return Allowances(permits=frozenset(permits), everything=everything)


def make_plan_request(values: Mapping[str, Any]) -> PlanRequest:
    """Return what the options ask of a plan; options that a command does not have ask for nothing."""
    return PlanRequest(
        allowances=allowances(values),
        accept_renames=values.get("accept_renames", False),
        adopt=values.get("adopt", False),
        recreate=list_recreated_guests(values),
        are_names_first=True,
    )


def settings_of(values: Mapping[str, Any], store: ChosenStore) -> RunSettings:
    """Return how to run.

    Args:
        values: The options.
        store: Where what runs leave for the next is kept.
    """
    return RunSettings(
        store=store,
        provider=ProviderChoice(values["provider"]),
        is_provider_given=values.get("is_provider_given", True),
        cli_config=read_cli_config_path(),
        parallelism=values["parallelism"],
        lock_wait_s=QUEUE_S if values["lock_wait"] is None else values["lock_wait"],
    )


def repeat_with_permits(permits: Sequence[Permit]) -> str | None:
    """Return how to repeat the command with the options that permit what the guard refused."""
    if not permits:
        return None
    names: dict[str, list[str]] = {}
    for permit in permits:
        names.setdefault(permit.option, []).append(permit.name)
    options = [word for option, given in names.items() for word in (option, ",".join(given))]
    words = sys.argv[1:]
    # Arguments after `--` are for the engine.
    end = words.index("--") if "--" in words else len(words)
    command = shlex.join(["stackyard", *words[:end], *options, *words[end:]])
    return f"Correct the input; or, where every one of these is meant, repeat with: {command}"
