"""What protects a branch of GitLab: the branch, the settings of the project, and its rules for approvals."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import as_list, as_object, read_flag, read_number, read_text
from stackyard.clients.forge.failures import (
    ForgeError,
    ForgeNotFoundError,
    ForgeRefusedError,
    ForgeUnauthorizedError,
)
from stackyard.clients.forge.model import Protection
from stackyard.clients.forge.texts import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.forge.transport import Transport

__all__ = ["ProjectProtection"]

_NO_ONE, _MAINTAINERS = 0, 40
_ANY_APPROVER = "any_approver"


class ProjectProtection:
    """The protection of the branches of a project.

    Args:
        transport: The way to the forge.
        project: The path of the project in the interface.
    """

    def __init__(self, transport: Transport, project: str) -> None:
        self._transport, self._project = transport, project

    async def read(self, branch: str) -> Protection | None:
        """Return what a branch requires; None where it is not protected.

        Raises:
            ForgeError: There is no answer, or it is an error.
        """
        rules = [rule for rule in await self._list_rules() if _matches(rule, branch)]
        if not rules:
            return None
        project = as_object((await self._transport.get(self._project)).document, "a project")
        approvals, resets = await self._read_approvals(branch)
        # Where several rules fit, the one that lets more pass counts.
        is_closed = all(_is_closed(rule) for rule in rules)
        return Protection(
            branch=branch,
            blocks_pushes=is_closed,
            # Nobody is above these rules; maintainers can only change them.
            binds_admins=is_closed,
            requires_all_checks=read_flag(project, "only_allow_merge_if_pipeline_succeeds"),
            approvals=approvals,
            dismisses_stale=resets,
            requires_up_to_date=read_text(project, "merge_method") in ("ff", "rebase_merge"),
        )

    async def write(self, protection: Protection) -> None:
        """Have a branch require this.

        Raises:
            ForgeRefusedError: This edition of GitLab cannot require it.
            ForgeError: There is no answer, or it is an error.
        """
        await self._write_rule(protection)
        await self._write_settings(protection)
        if protection.approvals or protection.dismisses_stale:
            await self._write_approvals(protection)

    async def _list_rules(self) -> list[dict[str, Any]]:
        return await self._transport.collect(
            f"{self._project}/protected_branches", size=100, size_name="per_page"
        )

    async def _read_approvals(self, branch: str) -> tuple[int, bool]:
        """Return how many approvals are needed, and whether a new commit takes them back."""
        try:
            answer = await self._transport.get(f"{self._project}/approvals")
            rules = await self._transport.collect(f"{self._project}/approval_rules")
        except (ForgeNotFoundError, ForgeUnauthorizedError):
            # The free edition has neither.
            return 0, False
        numbers = [read_number(rule, "approvals_required") for rule in rules if _applies(rule, branch)]
        settings = as_object(answer.document, "approvals")
        return max(numbers, default=0), read_flag(settings, "reset_approvals_on_push")

    async def _write_rule(self, protection: Protection) -> None:
        path = f"{self._project}/protected_branches"
        rules = {read_text(rule, "name"): rule for rule in await self._list_rules()}
        former = rules.get(protection.branch)
        if former is not None and (_is_closed(former) or not protection.blocks_pushes):
            return
        document = {
            "name": protection.branch,
            "push_access_level": _NO_ONE if protection.blocks_pushes else _MAINTAINERS,
            **({} if former is None else _keep(former)),
        }
        if former is not None:
            # The free edition changes no rule: it is made again.
            await self._transport.send("DELETE", f"{path}/{quote(protection.branch)}")
        try:
            await self._transport.send("POST", path, document)
        except ForgeError as err:
            if former is None:
                raise
            raise ForgeRefusedError(
                f"Branch {protection.branch} is not protected now: its rule was removed, and the new one "
                f"could not be made. {err.detail}",
                remedy="Protect the branch in the settings of the project.",
            ) from err

    async def _write_settings(self, protection: Protection) -> None:
        project = as_object((await self._transport.get(self._project)).document, "a project")
        method = read_text(project, "merge_method") or "merge"
        if protection.requires_up_to_date and method == "merge":
            method = "rebase_merge"
        elif not protection.requires_up_to_date and method == "rebase_merge":
            method = "merge"
        document = {
            "only_allow_merge_if_pipeline_succeeds": bool(protection.checks)
            or protection.requires_all_checks,
            "merge_method": method,
        }
        await self._transport.send("PUT", self._project, document)

    async def _write_approvals(self, protection: Protection) -> None:
        path = f"{self._project}/approval_rules"
        try:
            settings = {"reset_approvals_on_push": protection.dismisses_stale}
            await self._transport.send("POST", f"{self._project}/approvals", settings, is_repeatable=True)
            rules = await self._transport.collect(path)
            former = [rule for rule in rules if read_text(rule, "rule_type") == _ANY_APPROVER]
            number = {"approvals_required": protection.approvals}
            if former:
                await self._transport.send("PUT", f"{path}/{read_number(former[0], 'id')}", number)
            else:
                made = {"name": "Any approver", "rule_type": _ANY_APPROVER, **number}
                await self._transport.send("POST", path, made)
        except (ForgeNotFoundError, ForgeUnauthorizedError) as err:
            raise ForgeRefusedError(
                f"This GitLab cannot require approvals: {err.detail}",
                status=err.status,
                remedy="The free edition cannot. `stackyard gitops` counts approvals itself.",
            ) from err


def _matches(rule: Mapping[str, Any], branch: str) -> bool:
    name = read_text(rule, "name")
    # Only the star has a meaning in a rule.
    return fnmatchcase(branch, name.replace("[", "[[]").replace("?", "[?]"))


def _is_closed(rule: Mapping[str, Any]) -> bool:
    """Return whether nobody may push; a person, a group or a key that may has a level of its own."""
    levels = as_list(rule.get("push_access_levels"), "levels")
    named = ("user_id", "group_id", "deploy_key_id")
    return bool(levels) and all(
        level.get("access_level") == _NO_ONE and not any(level.get(name) for name in named)
        for level in levels
    )


def _keep(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a rule that is made again has of the one before."""
    kept: dict[str, Any] = {"allow_force_push": read_flag(rule, "allow_force_push")}
    if read_flag(rule, "code_owner_approval_required"):
        kept["code_owner_approval_required"] = True
    for what in ("merge", "unprotect"):
        kept |= _keep_levels(what, as_list(rule.get(f"{what}_access_levels"), "levels"))
    return kept


def _keep_levels(what: str, levels: list[dict[str, Any]]) -> dict[str, Any]:
    named = ("user_id", "group_id")
    people = [{name: level[name]} for level in levels for name in named if level.get(name)]
    roles = [read_number(level, "access_level") for level in levels if not any(map(level.get, named))]
    if len(roles) == 1 and not people:
        # The free edition takes only this.
        return {f"{what}_access_level": roles[0]}
    return {f"allowed_to_{what}": [*people, *({"access_level": role} for role in roles)]} if levels else {}


def _applies(rule: Mapping[str, Any], branch: str) -> bool:
    branches = as_list(rule.get("protected_branches"), "branches")
    return not branches or any(_matches(one, branch) for one in branches)
