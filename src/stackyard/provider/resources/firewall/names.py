"""What security groups, IP sets and aliases have in common: they are known by a name that can change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import is_unsure, make_subject

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stackyard.provider.create_once import ObjectExistsError
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = [
    "adopt_same",
    "alias_name",
    "group_name",
    "kept_comment",
    "rename_once",
    "same_comment",
    "set_name",
]

_ATTEMPTS = 3


def _named(longest: int, *, is_lower: bool) -> Callable[[Any], str | None]:
    letters = "a-z" if is_lower else "A-Za-z"
    pattern = re.compile(rf"[{letters}][{letters}0-9_-]{{1,{longest - 1}}}")
    small = "small " if is_lower else ""
    # Proxmox takes capital letters, stores small ones, and then does not find the name any more.
    why = ": Proxmox keeps this name in small letters" if is_lower else ""
    text = f"must be 2 to {longest} {small}letters, digits, - and _, beginning with a letter{why}"
    return lambda value: None if pattern.fullmatch(str(value)) else text


group_name = _named(18, is_lower=True)
set_name = _named(64, is_lower=True)
alias_name = _named(64, is_lower=False)


def kept_comment(value: Any) -> str:
    """Return what Proxmox keeps of a comment: one line, without spaces at its ends."""
    return str(value or "").partition("\n")[0].strip()


def same_comment(prior: Any, config: Any) -> bool:
    """Tell whether Proxmox keeps the same of two comments."""
    return kept_comment(prior) == kept_comment(config)


async def rename_once(
    work: Work,
    identity: str,
    *,
    sent: Mapping[str, Any],
    send: Callable[[], Awaitable[Any]],
    is_done: Callable[[], Awaitable[bool]],
) -> None:
    """Give something another name or comment, although answers get lost and runs get killed.

    What it is going to be is written down: the state of a run that is killed knows only the old name, so that
    the next run creates the new one, and takes over what it finds.

    Args:
        work: The operation.
        identity: What names it on the cluster afterwards.
        sent: What it will have, its name left out.
        send: Sends the call.
        is_done: Tells whether it has the name and all that was sent.
    """
    journal = work.session.journal
    entry = await journal.begin(make_subject(work, identity), node="", vm_id=0, sent=sent)
    try:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await send()
            except proxmox.ProxmoxError as err:
                # A refusal may be that of a second try, which finds the old name gone.
                if await is_done():
                    return
                if not isinstance(err, proxmox.AnswerLostError) or attempt == _ATTEMPTS:
                    if not is_unsure(err):
                        await journal.close(entry)
                    raise
            else:
                return
    finally:
        journal.leave(entry)


async def adopt_same(work: Work, planned: Object, found: Object | None, err: ObjectExistsError) -> None:
    """Take over what exists already if it is exactly what is planned, as bpg takes over anything.

    Raises:
        ObjectExistsError: It is something else.
    """
    if found is None or not _is_same(planned, found):
        raise err
    work.warn(
        "It existed already",
        f"{planned['name']} existed already, exactly as it is configured. It belongs to this state now, and "
        "is removed with it.",
    )


def _is_same(planned: Object, found: Object) -> bool:
    return all(_plain(planned.get(name)) == _plain(found.get(name)) for name in ("comment", "rule", "cidr"))


def _plain(value: Any) -> Any:
    """Return a value without what counts as nothing, and without the order and positions of blocks."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if one and name != "pos"}
    return value or ""
