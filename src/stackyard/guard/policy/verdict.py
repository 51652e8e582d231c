"""Reading what OPA answers: what rules refuse, what they warn of, and what is wrong with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import Location
from stackyard.guard.findings import Finding, Permit
from stackyard.guard.policy.rules import RULES, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from stackyard.guard.policy.rules import RuleSet

__all__ = ["ALLOW_POLICY", "CODE_DENIED", "CODE_WARNED", "EVALUATION", "read_answer", "read_errors"]

ALLOW_POLICY = "--allow-policy"

DENIED = Kind(
    code="E-POLICY-DENIED",
    summary="A rule refuses the plan",
    remedy="Change the code so that the rule holds; where the rule gives a permit, name it with "
    "--allow-policy.",
)
WARNED = Kind(
    code="W-POLICY-WARNED",
    summary="A rule warns of the plan",
    remedy="Read what the rule says.",
    severity=Severity.WARNING,
)
CODE_DENIED = Kind(
    code="E-POLICY-CODE-DENIED",
    summary="A rule refuses the code of the repository",
    remedy="Change the code so that the rule holds.",
)
CODE_WARNED = Kind(
    code="W-POLICY-CODE-WARNED",
    summary="A rule warns of the code of the repository",
    remedy="Read what the rule says.",
    severity=Severity.WARNING,
)
EVALUATION = Kind(
    code="E-POLICY-EVALUATION",
    summary="The rules for plans were not evaluated to their end",
    remedy="Correct what OPA reports; nothing is applied that the rules have not judged.",
)

_SIDES = {
    Subject.PLAN: {"deny": DENIED, "warn": WARNED},
    Subject.REPOSITORY: {"deny": CODE_DENIED, "warn": CODE_WARNED},
}
# A name that a shell, a list with commas and a reader take as one word.
_PERMIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")
_LONGEST_TEXT = 2000
_QUOTED_CHARACTERS = 400
# How the names of errors begin that OPA finds before it runs the rules.
_COMPILE_ERROR = "rego_"


def read_answer(text: str, rules: RuleSet, copies: Mapping[str, Path]) -> tuple[Finding, ...]:
    """Return every finding in OPA's answer; one that is not understood is a finding that refuses.

    Args:
        text: What OPA wrote.
        rules: The rules that it read.
        copies: The files of the user by the name of the copy that OPA read.
    """
    if errors := read_errors(text, copies):
        return errors
    value = _find_value(_parse(text))
    if not isinstance(value, dict) or value.keys() != set(rules.packages):
        return (_not_understood(text),)
    return tuple(
        found for package in rules.packages for found in _read_package(package, value[package], rules)
    )


def read_errors(text: str, copies: Mapping[str, Path]) -> tuple[Finding, ...]:
    """Return the errors in OPA's answer; nothing where it has none.

    Args:
        text: What OPA wrote.
        copies: The files of the user by the name of the copy that OPA read.
    """
    document = _parse(text)
    errors = document.get("errors") if isinstance(document, dict) else None
    listed = errors if isinstance(errors, list) else [errors]
    return tuple(_read_error(one, copies) for one in listed) if errors else ()


def _parse(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return None


def _find_value(document: Any) -> Any:
    match document:
        case {"result": [{"expressions": [{"value": value}]}]}:
            return value
        case _:
            return None


def _not_understood(text: str) -> Finding:
    said = text.strip()[:_QUOTED_CHARACTERS] or "nothing"
    return Finding(kind=EVALUATION, detail=f"OPA answered in a form that is not known: {said}")


def _read_error(error: Any, copies: Mapping[str, Path]) -> Finding:
    """Read one error of OPA, with the place in the user's file."""
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return _not_understood(str(error))
    place = error.get("location")
    place = place if isinstance(place, dict) else {}
    file = copies.get(str(place.get("file", "")).rpartition("/")[2])
    where = None if file is None else Location(str(file), _number(place, "row"), _number(place, "col"))
    code = str(error.get("code"))
    kind = RULES if code.startswith(_COMPILE_ERROR) else EVALUATION
    return Finding(kind=kind, detail=f"{_shorten(error['message'])} ({code}).", where=where)


def _number(place: Mapping[str, Any], key: str) -> int | None:
    found = place.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _read_package(package: str, value: Any, rules: RuleSet) -> Iterator[Finding]:
    """Read the rules of one package; each is a list with its value, empty where it has none."""
    where = rules.first_file(package)
    kinds = _SIDES[rules.subject]
    sides = {name: value.get(name) for name in kinds} if isinstance(value, dict) else {}
    if not any(sides.values()):
        yield Finding(
            kind=RULES,
            detail=f"The package `{package}` gives neither `deny` nor `warn`. Write rules as "
            "`deny contains message if { ... }`, and keep what rules share in a package outside `stackyard`.",
            where=where,
        )
    for name, kind in kinds.items():
        match sides.get(name):
            case []:
                pass
            case [list(entries)]:
                for entry in entries:
                    yield _read_entry(f"{package}.{name}", entry, kind, where)
            case _:
                right = f"write `{name} contains message if {{ ... }}`"
                detail = f"`{package}.{name}` is not a set of messages: {right}."
                yield Finding(kind=RULES, detail=detail, where=where)


def _read_entry(rule: str, entry: Any, kind: Kind, where: Location | None) -> Finding:
    fields = {"msg": entry} if isinstance(entry, str) else entry
    wrong = _find_wrong(fields)
    if wrong:
        return Finding(kind=RULES, detail=f"`{rule}` gives {wrong}.", where=where)
    title = fields.get("name") or rule
    address = fields.get("address") or ""
    text = _shorten(fields["msg"])
    about = f"{address}: " if address and address not in text else ""
    permit = fields.get("permit")
    is_code = kind in (CODE_DENIED, CODE_WARNED)
    return Finding(
        kind=kind,
        detail=f"{title}: {about}{text}",
        permit=Permit(option=ALLOW_POLICY, name=permit) if permit and kind is DENIED else None,
        label=rule if is_code else address,
        where=Location(fields["file"], _number(fields, "line")) if is_code and fields.get("file") else None,
    )


def _find_wrong(fields: Any) -> str:
    """Say what is wrong with what a rule gives; empty where nothing is."""
    if not isinstance(fields, dict):
        return "something that is neither a text nor an object with `msg`"
    if not isinstance(fields.get("msg"), str) or not fields["msg"].strip():
        return "an object without a text as its `msg`"
    for name in ("address", "name", "permit", "file"):
        if fields.get(name) is not None and not isinstance(fields[name], str):
            return f"an object whose `{name}` is no text"
    permit = fields.get("permit")
    if permit is not None and not _PERMIT.fullmatch(permit):
        return "a `permit` that is not one word of letters, digits and . _ : / -"
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
