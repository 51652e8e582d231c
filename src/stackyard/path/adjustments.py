"""What a plan does besides making the configuration true: renames and adoptions, as blocks for the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.render.references import CONTAINER, VM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.guard import Verdict
    from stackyard.render import Rendered

__all__ = ["adjustments", "list_expected_values"]

# What counts only when a guest is created: no one knows what one was created from that is there already.
_BEGINNING = {
    VM: frozenset(("clone", "disk.file_id", "disk.import_from")),
    CONTAINER: frozenset(("clone", "operating_system", "initialization.user_account")),
}
_EXPRESSIONS = ("${", "%{")


def adjustments(
    verdict: Verdict, always: Mapping[str, Any], *, accept_renames: bool, adopt: bool
) -> Mapping[str, Any]:
    """Return the blocks that make renames and adoptions part of a plan, where the user said so.

    Args:
        verdict: What the guard says could be renamed and taken over.
        always: The blocks of every plan of the target.
        accept_renames: Whether guests under a new key are moved in the state.
        adopt: Whether what nothing manages is taken over.
    """
    moves = [move for rename in verdict.renames for move in rename.moves] if accept_renames else []
    adoptions = verdict.adoptions if adopt else ()
    blocks = {
        "moved": [
            *always.get("moved", ()),
            *({"from": source, "to": destination} for source, destination in moves),
        ],
        "import": [
            *always.get("import", ()),
            *({"to": adoption.address, "id": adoption.import_id} for adoption in adoptions),
        ],
    }
    return {name: entries for name, entries in blocks.items() if entries}


def list_expected_values(
    rendered: Rendered, blocks: Mapping[str, Any]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what a configuration says of what is to be imported, by type and import id.

    Proxmox does not keep everything (`migrate`, how long to wait for an agent), and shows no difference
    between what is left out and a default. An import that begins with the configuration finds what really
    differs, and nothing else.
    """
    imports = blocks.get("import") or ()
    if not imports:
        return {}
    resources = parse_json(rendered.files["main.tf.json"], LARGE)["resource"]
    found = {}
    for block in imports:
        kind, _, name = block["to"].partition(".")
        values = {key: value for key, value in resources[kind][name].items() if key != "depends_on"}
        found[kind, block["id"]] = _select_literals(values, _BEGINNING.get(kind, frozenset()))
    return found


def _select_literals(values: Mapping[str, Any], left_out: frozenset[str], prefix: str = "") -> dict[str, Any]:
    """Return the values that are written out, without expressions and without what is left out."""
    found = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        if path in left_out or _has_expression(value):
            continue
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found[name] = [_select_literals(one, left_out, f"{path}.") for one in value]
        else:
            found[name] = value
    return found


def _has_expression(value: Any) -> bool:
    """Return whether the engine computes a value, or an element of a list of plain values."""
    if isinstance(value, list):
        return any(isinstance(one, str) and _has_expression(one) for one in value)
    return isinstance(value, str) and any(mark in value for mark in _EXPRESSIONS)
