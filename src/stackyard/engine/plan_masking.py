"""The engine's JSON of a plan without its secrets, for programs that the user did not trust with them.

The engine marks what is sensitive beside the values of resources and outputs, and shows variables and the
literals of the code in clear. A value that is marked anywhere is masked where it has no mark of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.engine.changes import SENSITIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["mask_plan"]

_MASK = str(SENSITIVE)
# The parts of an entry that hold values, and the parts that mark them.
_MARKED = {"before": "before_sensitive", "after": "after_sensitive", "values": "sensitive_values"}
# Here each value has its mark: what is not marked is shown, whatever else has the same value.
_FULLY_MARKED = frozenset(
    ("resource_changes", "resource_drift", "planned_values", "prior_state", "output_changes")
)


def mask_plan(document: Mapping[str, Any], redactor: Redactor = NOTHING_SECRET) -> dict[str, Any]:
    """Return what `show -json` says of a plan with every sensitive value replaced.

    Args:
        document: The plan.
        redactor: What else is secret.
    """
    found: set[str] = set()
    masked = {name: _mask_part(part, found) for name, part in document.items() if name != "variables"}
    root = _at(_at(document, "configuration"), "root_module")
    if isinstance(variables := document.get("variables"), dict):
        masked["variables"] = _mask_variables(variables, _at(root, "variables"), found)
    unmarked = redactor.with_secrets(found) if found else redactor
    return {
        name: _redact(part, redactor if name in _FULLY_MARKED else unmarked) for name, part in masked.items()
    }


def _mask_part(part: Any, found: set[str]) -> Any:
    """Mask a part of the plan by the marks beside its values."""
    if isinstance(part, list):
        return [_mask_part(one, found) for one in part]
    if not isinstance(part, dict):
        return part
    done: dict[str, Any] = {}
    is_secret = part.get("sensitive") is True
    for name, value in part.items():
        marks = _MARKED.get(name)
        if marks is not None and marks in part:
            done[name] = _mask(value, part[marks], found)
        elif is_secret and name in ("value", "default"):
            done[name] = _mask(value, True, found)
        elif name in _MARKED.values():
            done[name] = value
        else:
            done[name] = _mask_part(value, found)
    _mask_arguments(done, found)
    return done


def _mask_arguments(call: dict[str, Any], found: set[str]) -> None:
    """Mask what the call of a module gives its sensitive variables."""
    variables = _at(_at(call, "module"), "variables")
    expressions = call.get("expressions")
    if isinstance(variables, dict) and isinstance(expressions, dict):
        for name, expression in expressions.items():
            if _at(variables.get(name), "sensitive") is True and _at(expression, "constant_value"):
                value = _mask(expression["constant_value"], True, found)
                expressions[name] = {**expression, "constant_value": value}


def _mask_variables(variables: dict[str, Any], declared: Any, found: set[str]) -> dict[str, Any]:
    """Mask the values of variables that are sensitive, or of which nothing is said."""
    done = {}
    for name, given in variables.items():
        is_known = isinstance(_at(declared, name), dict)
        is_secret = not is_known or declared[name].get("sensitive") is True
        value = _at(given, "value")
        done[name] = {"value": _mask(value, True, found)} if is_secret else given
    return done


def _mask(value: Any, marks: Any, found: set[str]) -> Any:
    """Return a value with what is marked replaced; a value that is not there is no secret."""
    if marks is True:
        found.update(_list_texts(value))
        return None if value is None else _MASK
    if isinstance(value, dict) and isinstance(marks, dict):
        return {key: _mask(one, marks.get(key), found) for key, one in value.items()}
    if isinstance(value, list) and isinstance(marks, list):
        padded = [*marks, *(None for _ in value[len(marks) :])]
        return [_mask(one, mark, found) for one, mark in zip(value, padded, strict=False)]
    # Marks of another form than the value are not understood, so that all of it may be secret.
    return _mask(value, True, found) if marks else value


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(one)


def _redact(value: Any, redactor: Redactor) -> Any:
    if redactor is NOTHING_SECRET:
        return value
    if isinstance(value, str):
        return value if value == _MASK else redactor(value)
    if isinstance(value, dict):
        return {key: _redact(one, redactor) for key, one in value.items()}
    return [_redact(one, redactor) for one in value] if isinstance(value, list) else value


def _at(tree: Any, key: str) -> Any:
    return tree.get(key) if isinstance(tree, dict) else None
