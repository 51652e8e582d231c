"""One life of a kind of resource, checked with either provider: what `tests/e2e/test_provider_kinds.py` runs.

A `Case` is a configuration of one kind or several, what is changed in it, and how somebody meddles with it.
Its checks are the columns of the table of docs/reference/provider.md. Those with bpg need its binary.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.provider import Stack, lab_api
from tests.support.provider_bench import bench

from stackyard import lab
from stackyard.clients import proxmox

__all__ = ["CHECKS", "COLUMNS", "Case", "check", "joined"]

_OURS_THEN_BPG, _BPG_THEN_OURS = "apply-ours/plan-bpg", "apply-bpg/plan-ours"
# The columns of the table, and the check that fills each.
COLUMNS = {
    _OURS_THEN_BPG: _OURS_THEN_BPG,
    _BPG_THEN_OURS: _BPG_THEN_OURS,
    **dict.fromkeys(("update", "replace", "import", "drift", "gone", "hidden"), "life"),
}

Meddling = Callable[[proxmox.Client], Awaitable[object]]
Changes = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is checked of some kinds.

    Attributes:
        id: The name of the case.
        kinds: The kinds that it proves, by the names in the facts.
        sources: The data sources that it proves; the text has outputs of their values.
        text: The configuration.
        update: Parts of it and what takes their place, all of it a change in place.
        updated: The addresses that this changes.
        replace: Parts of it and what takes their place, which makes other objects.
        replaced: The addresses that this replaces.
        imports: The id to import each address with.
        unread: Attributes by address that no import can read; they are given by the next apply.
        drift: What somebody changes by hand.
        drifted: The addresses at which a plan shows it.
        remove: How somebody removes objects by hand.
        removed: The addresses that are created again then.
        hidden: The paths on which a caller has no more than PVEAuditor, so that what is elsewhere is hidden.
        secret: A text that must be neither in the plan nor in the state.
        nothing: Why a column of the table has nothing to prove for a kind, by `KIND COLUMN`.
        bpg_cannot: What bpg itself answers when it is given `update`, `replace` or `import ADDRESS`, in parts
            that follow each other in its output. It does not take part in that then.
        lab: How the lab is started, where it is to be another one: fields of `pvelab.Options`.
    """

    id: str
    kinds: Sequence[str]
    sources: Sequence[str] = ()
    text: str
    update: Changes = field(default_factory=dict)
    updated: Sequence[str] = ()
    replace: Changes = field(default_factory=dict)
    replaced: Sequence[str] = ()
    imports: Mapping[str, str] = field(default_factory=dict)
    unread: Sequence[str] = ()
    drift: Meddling | None = None
    drifted: Sequence[str] = ()
    remove: Meddling | None = None
    removed: Sequence[str] = ()
    hidden: Sequence[str] | None = None
    secret: str = ""
    nothing: Mapping[str, str] = field(default_factory=dict)
    bpg_cannot: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lab: Mapping[str, Any] = field(default_factory=dict)

    def proves(self, kind: str, column: str) -> bool:
        """Tell whether a column of the table is checked for a kind."""
        if column in (_OURS_THEN_BPG, _BPG_THEN_OURS):
            return True
        if column == "hidden":
            return self.hidden is not None
        addresses = {
            "update": self.updated,
            "replace": self.replaced,
            "import": self.imports,
            "drift": self.drifted,
            "gone": self.removed,
        }[column]
        return any(address.partition(".")[0].endswith(f"_{kind}") for address in addresses)


def joined(name: str, *cases: Case) -> Case:
    """Return several cases as one, so that the engine starts for all of them at once."""

    async def drift(api: proxmox.Client) -> None:
        for case in cases:
            if case.drift is not None:
                await case.drift(api)

    def each(attribute: str) -> list[str]:
        return [one for case in cases for one in getattr(case, attribute)]

    def merged(attribute: str) -> dict[str, Any]:
        return {key: value for case in cases for key, value in getattr(case, attribute).items()}

    return Case(
        id=name,
        kinds=each("kinds"),
        sources=each("sources"),
        text="".join(case.text for case in cases),
        update=merged("update"),
        updated=each("updated"),
        replace=merged("replace"),
        replaced=each("replaced"),
        imports=merged("imports"),
        drift=drift,
        drifted=each("drifted"),
        hidden=cases[0].hidden,
        nothing=merged("nothing"),
        bpg_cannot=merged("bpg_cannot"),
        lab=merged("lab"),
    )


def changed(text: str, changes: Changes) -> str:
    """Return a configuration with other parts."""
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


async def _life(case: Case, stack: Stack, running: lab.Running) -> None:
    """Apply, change in place, replace, import, meddle, remove; the built-in provider alone."""
    stack.write(case.text)
    await stack.init()
    await stack.apply()
    if case.secret:
        assert case.secret not in (stack.folder / "terraform.tfstate").read_text()
    await _imports(case, stack)
    if case.drift is not None:
        await _meddle(case, stack, running)
    if case.hidden is not None:
        await _is_not_gone(case, stack, running)
    stack.write(changed(case.text, case.update))
    said = await stack.apply()
    assert f"0 added, {len(case.updated)} changed, 0 destroyed" in said, said
    for address in case.updated:
        assert f"{address}: Modifications complete" in said, said
    if case.replace:
        stack.write(changed(case.text, case.replace))
        planned = await stack.plan(status=2)
        for address in case.replaced:
            assert f"{address} must be replaced" in planned, planned
        await stack.apply()
    await stack.destroy()


async def _imports(case: Case, stack: Stack) -> None:
    if not case.imports:
        return
    await stack.run("state", "rm", *case.imports)
    stack.write(case.text + _import_blocks(case.imports))
    planned = await stack.plan(status=2)
    # What cannot be read is changed by the apply that imports.
    expected = f"{len(case.imports)} to import, 0 to add, {len(case.unread)} to change, 0 to destroy"
    assert expected in planned, planned
    await stack.apply()
    stack.write(case.text)


def _import_blocks(imports: Mapping[str, str]) -> str:
    return "".join(f'import {{\n to = {to}\n id = "{id_}"\n}}\n' for to, id_ in imports.items())


async def _meddle(case: Case, stack: Stack, running: lab.Running) -> None:
    assert case.drift is not None
    async with lab_api(running) as api:
        await case.drift(api)
    planned = await stack.plan(status=2)
    for address in case.drifted:
        assert f"{address} will be updated in-place" in planned, planned
    await stack.apply()
    if case.remove is None:
        return
    async with lab_api(running) as api:
        await case.remove(api)
    planned = await stack.plan(status=2)
    for address in case.removed:
        assert f"{address} will be created" in planned, planned
    await stack.apply()


async def _is_not_gone(case: Case, stack: Stack, running: lab.Running) -> None:
    """Read as somebody who may see little: each object is there or cannot be read, and none is gone."""
    assert case.hidden is not None
    weak = proxmox.Login(username="weak@pve", password="weak-password")
    async with lab_api(running) as api:
        await api.post("/access/users", {"userid": weak.username, "password": weak.password})
        for path in case.hidden:
            await api.put("/access/acl", {"path": path, "roles": "PVEAuditor", "users": weak.username})
    stored = json.loads((stack.folder / "terraform.tfstate").read_text())
    async with bench(running, credentials=weak) as it:
        for resource in stored["resources"]:
            if resource["mode"] == "managed":
                known = it.known(resource["type"])
                state = known.schema.block.complete(resource["instances"][0]["attributes"])
                result = await it.operations.read(known, resource["type"], state, {})
                assert result.state is not None, resource["type"]
    async with lab_api(running) as api:
        await api.delete(f"/access/users/{weak.username}")


async def _ours_then_bpg(case: Case, stack: Stack, running: lab.Running) -> None:
    await _both(case, stack, bpg_first=False)


async def _bpg_then_ours(case: Case, stack: Stack, running: lab.Running) -> None:
    await _both(case, stack, bpg_first=True)


async def _both(case: Case, stack: Stack, *, bpg_first: bool) -> None:
    """Apply with one and plan with the other, change with the other and plan with the one."""
    stack.write(case.text)
    await stack.init()
    await stack.apply(bpg=bpg_first)
    await stack.unchanged(bpg=not bpg_first)
    await stack.run("apply", "-refresh-only", "-auto-approve", "-input=false", bpg=not bpg_first)
    await stack.unchanged(bpg=bpg_first)
    if bpg_first:
        await _imports_with_bpg(case, stack)
    if case.update:
        await _change_with_one(case, stack, "update", bpg=not bpg_first)
    if case.replace:
        await _change_with_one(case, stack, "replace", bpg=bpg_first)
    await stack.destroy(bpg=not bpg_first)


async def _change_with_one(case: Case, stack: Stack, column: str, *, bpg: bool) -> None:
    """Change a configuration with one provider, and plan it with the other; or show that bpg cannot."""
    stack.write(changed(case.text, case.update if column == "update" else case.replace))
    if bpg and column in case.bpg_cannot:
        said = await stack.run("apply", "-auto-approve", "-input=false", "-no-color", status=1, bpg=True)
        _assert_in_order(case.bpg_cannot[column], said)
        # What it left half done is not what is checked here.
        await stack.apply()
        return
    await stack.apply(bpg=bpg)
    await stack.unchanged(bpg=not bpg)


async def _imports_with_bpg(case: Case, stack: Stack) -> None:
    """Import with bpg what we import, with the same ids; or show that it cannot."""
    if not case.imports:
        return
    state = stack.folder / "terraform.tfstate"
    kept = state.read_bytes()
    await stack.run("state", "rm", *case.imports, bpg=True)
    cannot = {to: case.bpg_cannot.get(f"import {to}") for to in case.imports}
    refusals = {to: parts for to, parts in cannot.items() if parts is not None}
    taken = {to: id_ for to, id_ in case.imports.items() if to not in refusals}
    for address, refusal in refusals.items():
        said = await stack.run("import", "-no-color", address, case.imports[address], status=1, bpg=True)
        _assert_in_order(refusal, said)
    stack.write(case.text + _import_blocks(taken))
    planned = await stack.plan(status=2, bpg=True)
    assert f"{len(taken)} to import, {len(refusals)} to add" in planned, planned
    state.write_bytes(kept)


def _assert_in_order(parts: Sequence[str], said: str) -> None:
    """Check that parts of a message follow each other, wherever the engine breaks its lines."""
    text = " ".join(said.replace("│", " ").split())
    place = 0
    for part in parts:
        found = text.find(part, place)
        assert found >= 0, (part, text)
        place = found + len(part)


Check = Callable[[Case, Stack, lab.Running], Awaitable[None]]
CHECKS: Mapping[str, Check] = {
    "life": _life,
    _OURS_THEN_BPG: _ours_then_bpg,
    _BPG_THEN_OURS: _bpg_then_ours,
}


async def check(name: str, case: Case, stack: Stack, running: lab.Running) -> None:
    """Run one check of a case."""
    await CHECKS[name](case, stack, running)
