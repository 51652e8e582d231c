"""What protects a branch of GitHub: its own protection, and the rulesets that hold for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import (
    as_list,
    as_object,
    read_flag,
    read_number,
    read_object,
    read_text,
)
from stackyard.clients.forge.failures import ForgeNotFoundError, ForgeRefusedError, ForgeUnauthorizedError
from stackyard.clients.forge.model import Protection
from stackyard.clients.forge.texts import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.forge.transport import Transport

__all__ = ["protect_branch", "read_protection"]

# What is switched on and off for itself, and stays as it is.
_SWITCHES = (
    "required_linear_history",
    "allow_force_pushes",
    "allow_deletions",
    "block_creations",
    "required_conversation_resolution",
    "lock_branch",
    "allow_fork_syncing",
)
_REVIEW_SWITCHES = ("require_code_owner_reviews", "require_last_push_approval")


async def read_protection(
    transport: Transport, repository: str, branch: str, rules: Sequence[Mapping[str, Any]]
) -> Protection | None:
    """Return what the protection of a branch and the rulesets for it require together; None for nothing.

    Args:
        transport: The way to the forge.
        repository: The path of the repository in the interface.
        branch: The branch.
        rules: The rules of rulesets that hold for it.

    Raises:
        ForgeError: There is no answer, or it is an error.
    """
    own = await _find_own(transport, repository, branch, has_rules=bool(rules))
    if own is None and not rules:
        return None
    found = [] if own is None else [_read_own(branch, own)]
    found += [_read_rule(branch, rule) for rule in rules]
    return Protection(
        branch=branch,
        blocks_pushes=any(one.blocks_pushes for one in found),
        # A ruleset lets those pass whom it names.
        binds_admins=await _binds_all(transport, repository, own, rules),
        checks=tuple(dict.fromkeys(check for one in found for check in one.checks)),
        approvals=max(one.approvals for one in found),
        dismisses_stale=any(one.dismisses_stale for one in found),
        requires_up_to_date=any(one.requires_up_to_date for one in found),
    )


async def protect_branch(transport: Transport, repository: str, protection: Protection) -> None:
    """Set the protection of a branch itself; what it has besides this stays.

    Raises:
        ForgeRefusedError: It names no check, and GitHub wants names.
        ForgeError: There is no answer, or it is an error.
    """
    if protection.requires_all_checks and not protection.checks:
        raise ForgeRefusedError(
            "GitHub requires checks by their names.", remedy="Name the checks that a change must pass."
        )
    own = await _find_own(transport, repository, protection.branch) or {}
    document: dict[str, Any] = {
        "required_status_checks": _require_checks(own, protection),
        "enforce_admins": protection.binds_admins,
        "required_pull_request_reviews": _require_reviews(own, protection),
        "restrictions": _name_actors(read_object(own, "restrictions")) if own.get("restrictions") else None,
    }
    document |= {name: read_flag(own, name, "enabled") for name in _SWITCHES if name in own}
    path = f"{repository}/branches/{quote(protection.branch)}/protection"
    await transport.send("PUT", path, document)


async def _find_own(
    transport: Transport, repository: str, branch: str, *, has_rules: bool = False
) -> dict[str, Any] | None:
    path = f"{repository}/branches/{quote(branch)}"
    try:
        answer = await transport.get(f"{path}/protection")
    except ForgeNotFoundError as err:
        # It may be the branch that is not there, or GitHub hides it from a token that may not see it.
        found = await transport.get(path)
        if has_rules or not read_flag(as_object(found.document, "a branch"), "protected"):
            return None
        raise ForgeUnauthorizedError(
            f"Branch {branch} is protected, and the token may not see how. {err.detail}", status=err.status
        ) from err
    return as_object(answer.document, "the protection of a branch")


def _read_own(branch: str, own: Mapping[str, Any]) -> Protection:
    checks = read_object(own, "required_status_checks")
    reviews = read_object(own, "required_pull_request_reviews")
    return Protection(
        branch=branch,
        blocks_pushes=bool(own.get("required_pull_request_reviews")),
        checks=tuple(map(str, checks.get("contexts") or ())),
        approvals=read_number(reviews, "required_approving_review_count"),
        dismisses_stale=read_flag(reviews, "dismiss_stale_reviews"),
        requires_up_to_date=read_flag(checks, "strict"),
    )


def _read_rule(branch: str, rule: Mapping[str, Any]) -> Protection:
    kind, has = read_text(rule, "type"), read_object(rule, "parameters")
    if kind == "pull_request":
        return Protection(
            branch=branch,
            blocks_pushes=True,
            approvals=read_number(has, "required_approving_review_count"),
            dismisses_stale=read_flag(has, "dismiss_stale_reviews_on_push"),
        )
    if kind == "required_status_checks":
        checks = as_list(has.get("required_status_checks"), "checks")
        return Protection(
            branch=branch,
            checks=tuple(read_text(check, "context") for check in checks),
            requires_up_to_date=read_flag(has, "strict_required_status_checks_policy"),
        )
    return Protection(branch=branch)


async def _binds_all(
    transport: Transport,
    repository: str,
    own: Mapping[str, Any] | None,
    rules: Sequence[Mapping[str, Any]],
) -> bool:
    """Return whether nobody may pass over the protection, or over one of the rulesets."""
    if own is not None and not read_flag(own, "enforce_admins", "enabled"):
        return False
    for number in sorted({read_number(rule, "ruleset_id") for rule in rules}):
        answer = await transport.get(f"{repository}/rulesets/{number}")
        if as_object(answer.document, "a ruleset").get("bypass_actors") != []:
            return False
    return True


def _require_checks(own: Mapping[str, Any], protection: Protection) -> dict[str, Any] | None:
    if not protection.checks and not protection.requires_up_to_date:
        return None
    former = as_list(read_object(own, "required_status_checks").get("checks"), "checks")
    # A check that only one app may give stays so.
    apps = {read_text(check, "context"): check.get("app_id") for check in former}
    checks = [
        {"context": check} | ({"app_id": apps[check]} if apps.get(check) is not None else {})
        for check in protection.checks
    ]
    return {"strict": protection.requires_up_to_date, "contexts": [], "checks": checks}


def _require_reviews(own: Mapping[str, Any], protection: Protection) -> dict[str, Any] | None:
    if not protection.blocks_pushes and not protection.approvals:
        return None
    former = read_object(own, "required_pull_request_reviews")
    document: dict[str, Any] = {
        "dismiss_stale_reviews": protection.dismisses_stale,
        "required_approving_review_count": protection.approvals,
    }
    document |= {name: read_flag(former, name) for name in _REVIEW_SWITCHES if name in former}
    for name in ("dismissal_restrictions", "bypass_pull_request_allowances"):
        if former.get(name):
            document[name] = _name_actors(read_object(former, name))
    return document


def _name_actors(actors: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return users, teams and apps by their names: GitHub shows more of each than it takes."""
    keys = {"users": "login", "teams": "slug", "apps": "slug"}
    return {
        name: [read_text(actor, key) for actor in as_list(actors.get(name), name)]
        for name, key in keys.items()
    }
