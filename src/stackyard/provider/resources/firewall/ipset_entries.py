"""The entries of an IP set, which have no order: Proxmox sorts them its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import flag
from stackyard.provider.problems import Problem
from stackyard.provider.resources.firewall.addresses import plain_entry
from stackyard.provider.resources.firewall.names import kept_comment
from stackyard.provider.values import UNKNOWN, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["check_entries", "keep_same_entries", "read_entries", "set_entries"]

_AGE_S = 0.5
_ATTEMPTS = 4

# Whether it is an exception, and the comment.
_Properties = tuple[bool, str]


def _by_name(blocks: Sequence[Mapping[str, Any]]) -> dict[str, _Properties]:
    return {
        plain_entry(block["name"]): (bool(block.get("nomatch")), kept_comment(block.get("comment")))
        for block in blocks
    }


async def _read(work: Work, path: str, max_age_s: float) -> dict[str, _Properties]:
    listed = await work.client.get(path, max_age_s=max_age_s)
    return {str(row["cidr"]): (flag(row.get("nomatch")), str(row.get("comment") or "")) for row in listed}


async def read_entries(work: Work, path: str, known: Sequence[Mapping[str, Any]]) -> list[Object]:
    """Return the blocks of the entries, in the order and spelling that is known of them."""
    found = await _read(work, path, _AGE_S)
    spelt = {plain_entry(block["name"]): str(block["name"]) for block in known}
    names = [name for name in spelt if name in found] + [name for name in found if name not in spelt]
    return [
        {"name": spelt.get(name, name), "nomatch": found[name][0], "comment": found[name][1]}
        for name in names
    ]


async def set_entries(work: Work, path: str, blocks: Sequence[Mapping[str, Any]]) -> None:
    """Make a set have these entries and no others; what stays is there all the time.

    Raises:
        ProxmoxError: Proxmox refuses an entry.
    """
    wanted = _by_name(blocks)
    for attempt in range(1, _ATTEMPTS + 1):
        found = await _read(work, path, 0)
        if found == wanted:
            return
        try:
            await _change(work, path, found, wanted)
        except proxmox.AnswerLostError:
            # What came of it shows in the set.
            if attempt == _ATTEMPTS:
                raise
        else:
            return


async def _change(
    work: Work, path: str, found: Mapping[str, _Properties], wanted: Mapping[str, _Properties]
) -> None:
    for name, (nomatch, comment) in wanted.items():
        params = {"nomatch": nomatch or None, "comment": comment or None}
        if name not in found:
            await work.client.post(path, {"cidr": name, **params})
        elif found[name] != wanted[name]:
            # What is left out is unset.
            await work.client.put(f"{path}/{proxmox.quote(name)}", params)
    for name in found:
        if name not in wanted:
            await work.client.delete(f"{path}/{proxmox.quote(name)}")


def keep_same_entries(draft: PlanDraft) -> None:
    """Plan what is there if it is the same in another order or spelling."""
    before, after = (draft.prior or {}).get("cidr"), draft.values.get("cidr")
    if not before or not after or not is_whole(after) or len(before) != len(after):
        return
    if _by_name(before) == _by_name(after):
        draft.values["cidr"] = before


def check_entries(config: Object) -> Iterator[Problem]:
    """Check that no entry is given twice: Proxmox keeps only one."""
    seen: set[str] = set()
    blocks = config.get("cidr")
    for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
        name = block.get("name") if isinstance(block, dict) else UNKNOWN
        if name is UNKNOWN or name is None:
            continue
        if plain_entry(name) in seen:
            yield Problem(path=("cidr", index, "name"), detail=f"{name} is in the set already.")
        seen.add(plain_entry(name))
