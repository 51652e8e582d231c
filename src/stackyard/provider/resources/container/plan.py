"""What a plan for a container depends on beyond single attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.problems import AttributeValueError, Problem
from stackyard.provider.resources.container.blocks import block, has, is_clone
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.plan import PlanDraft

__all__ = ["check", "plan"]


def check(config: Object) -> Iterator[Problem]:
    """Give what is wrong with a configuration as a whole."""
    if is_clone(config) and has(block(config, "initialization"), "user_account"):
        yield Problem(
            path=("initialization",),
            detail="Proxmox sets the password and the keys of `initialization.user_account` only when it "
            "makes a container from a template; a `clone` has those of its source.",
        )


def plan(planned: PlanDraft) -> None:
    """Adjust a plan."""
    values, prior = planned.values, planned.prior
    if isinstance(values.get("description"), str):
        values["description"] = _as_kept(values["description"])
    if prior is None:
        _check_beginning(planned)
        return
    if values.get("template") is True and prior.get("template"):
        values["started"] = prior.get("started")
    _keep_disk(planned, prior)
    _keep_initialization(values, prior)
    if planned.is_imported or _is_imported(prior):
        _keep_beginning(planned, prior)
    number = values.get("vm_id")
    if number is UNKNOWN or str(number) != str(prior.get("id")):
        planned.replace.append(("vm_id",))


def _as_kept(text: str) -> str:
    """Return a description as Proxmox keeps it: a line of its own at the end."""
    return text.strip().replace("\r\n", "\n") + "\n" if text else ""


def _check_beginning(planned: PlanDraft) -> None:
    values = planned.values
    if values.get("clone") or values.get("operating_system"):
        return
    raise AttributeValueError(
        "A container begins with a template (`operating_system`) or as a copy of another one (`clone`), and "
        "this one has neither; one that is there already is imported, and then needs none.",
        ("operating_system",),
    )


def _keep_disk(planned: PlanDraft, prior: Object) -> None:
    values = planned.values
    before, after = block(prior, "disk"), block(values, "disk")
    if before and not has(values, "disk") and values.get("disk") is not UNKNOWN:
        flags = ("acl", "quota", "replicate", "mount_options")
        if not any(before.get(name) for name in flags):
            # Whoever says nothing about the disk wants the one that is there.
            values["disk"] = prior["disk"]
        return
    if not before or not after:
        return
    if is_clone(values) and block(planned.config, "disk").get("datastore_id") is None:
        after["datastore_id"] = before.get("datastore_id")
        planned.replace[:] = [path for path in planned.replace if path != ("disk", 0, "datastore_id")]
    old, new = before.get("size"), after.get("size")
    if isinstance(old, int) and isinstance(new, int) and new < old:
        if is_clone(values) and block(planned.config, "disk").get("size") is None:
            after["size"] = old
        else:
            # Proxmox makes no disk smaller.
            planned.replace.append(("disk", 0, "size"))


def _keep_initialization(values: Object, prior: Object) -> None:
    before, after = block(prior, "initialization"), block(values, "initialization")
    own_name = f"CT{prior.get('id')}"
    if before and not has(values, "initialization") and values.get("initialization") is not UNKNOWN:
        said = {name: value for name, value in before.items() if value}
        if said.keys() <= {"hostname"} and said.get("hostname", own_name) == own_name:
            values["initialization"] = prior["initialization"]
        return
    if not before or not after:
        return
    if not after.get("hostname") and (is_clone(values) or before.get("hostname") == own_name):
        # The name of its source, or the one that Proxmox gives where nobody gave one.
        after["hostname"] = before.get("hostname")
    dns = block(after, "dns")
    if not before.get("dns") and after.get("dns") and not any(dns.values()):
        after["dns"] = before.get("dns") or []


def _is_imported(prior: Object) -> bool:
    """Tell whether nobody knows what a container began with, since it was there before its state."""
    return not prior.get("clone") and not block(prior, "operating_system").get("template_file_id")


def _keep_beginning(planned: PlanDraft, prior: Object) -> None:
    """Leave alone what counts only when a container is made."""
    values = planned.values
    if not planned.is_configured("pool_id"):
        values["pool_id"] = prior.get("pool_id")
    values["clone"] = prior.get("clone") or []
    before, after = block(prior, "operating_system"), block(values, "operating_system")
    if after:
        after["template_file_id"] = before.get("template_file_id")
        if not before:
            values["operating_system"] = []
    else:
        values["operating_system"] = prior.get("operating_system") or []
    account: Any = block(prior, "initialization").get("user_account") or []
    if block(values, "initialization"):
        block(values, "initialization")["user_account"] = account
    beginning = (("clone",), ("operating_system",), ("initialization", 0, "user_account"))
    planned.replace[:] = [
        path for path in planned.replace if not any(path[: len(one)] == one for one in beginning)
    ]
