"""The rules of Gitea that protect branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import as_object, read_flag, read_number, read_text
from stackyard.clients.forge.model import Protection
from stackyard.clients.forge.texts import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.forge.transport import Transport

__all__ = ["protect_branch", "read_protection"]


async def read_protection(transport: Transport, repository: str, branch: str) -> Protection | None:
    """Return what the rule that holds for a branch requires; None where none does.

    Args:
        transport: The way to the forge.
        repository: The path of the repository in the interface.
        branch: The branch, which exists.

    Raises:
        ForgeError: There is no answer, or it is an error.
    """
    rule = await _find_rule(transport, repository, branch)
    if not rule:
        return None
    answer = await transport.get(f"{repository}/branch_protections/{quote(rule)}")
    return _read_rule(branch, as_object(answer.document, "the protection of a branch"))


async def protect_branch(transport: Transport, repository: str, protection: Protection) -> None:
    """Change the rule that holds for a branch, or make one with its name.

    Raises:
        ForgeError: There is no answer, or it is an error.
    """
    document = {
        "enable_push": not protection.blocks_pushes,
        "block_admin_merge_override": protection.binds_admins,
        # Where no name is given, all that are there must be well.
        "enable_status_check": bool(protection.checks) or protection.requires_all_checks,
        "status_check_contexts": list(protection.checks),
        "required_approvals": protection.approvals,
        "dismiss_stale_approvals": protection.dismisses_stale,
        "block_on_outdated_branch": protection.requires_up_to_date,
    }
    if rule := await _find_rule(transport, repository, protection.branch):
        await transport.send("PATCH", f"{repository}/branch_protections/{quote(rule)}", document)
    else:
        made = {"rule_name": protection.branch, **document}
        await transport.send("POST", f"{repository}/branch_protections", made)


async def _find_rule(transport: Transport, repository: str, branch: str) -> str:
    """Return the rule that holds, whose name may be a pattern; an empty text for none."""
    answer = await transport.get(f"{repository}/branches/{quote(branch)}")
    return read_text(as_object(answer.document, "a branch"), "effective_branch_protection_name")


def _read_rule(branch: str, document: Mapping[str, Any]) -> Protection:
    contexts = document.get("status_check_contexts") or ()
    is_checked = read_flag(document, "enable_status_check")
    return Protection(
        branch=branch,
        # Somebody may push where a list says who.
        blocks_pushes=not read_flag(document, "enable_push"),
        binds_admins=read_flag(document, "block_admin_merge_override"),
        checks=tuple(map(str, contexts)) if is_checked else (),
        requires_all_checks=is_checked and not contexts,
        approvals=read_number(document, "required_approvals"),
        dismisses_stale=read_flag(document, "dismiss_stale_approvals"),
        requires_up_to_date=read_flag(document, "block_on_outdated_branch"),
    )
