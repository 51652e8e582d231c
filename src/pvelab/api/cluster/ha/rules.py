"""The rules of HA: `/cluster/ha/rules`, which have taken the place of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.ha.managed import LOCK
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.ha import config
from pvelab.world.ha.groups import are_migrated
from pvelab.world.ha.rules import Rule, check_rules, parse_nodes, print_nodes
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.ha.rules import Errors
    from pvelab.world.store import Document

__all__ = ["create_rule", "delete_rule", "list_rules", "read_rule", "update_rule"]

_KINDS = {
    "node-affinity": Kind(
        name="node-affinity",
        required=frozenset(("resources", "nodes")),
        optional=frozenset(("strict", "disable", "comment")),
    ),
    "resource-affinity": Kind(
        name="resource-affinity",
        required=frozenset(("resources", "affinity")),
        optional=frozenset(("disable", "comment")),
    ),
}


@route("GET /cluster/ha/rules")
def list_rules(call: Call) -> Any:
    """List the rules, of one type or about one resource if that is asked, with what is wrong with each."""
    wanted, resource = call.params.get("type"), call.params.get("resource")
    rules = call.store.items(config.RULES)
    errors = _errors(call, rules)
    return [
        _format_rule(call, ident, errors)
        for ident, rule in rules.items()
        if wanted in (None, rule["type"]) and (resource is None or resource in split_list(rule["resources"]))
    ]


@route("GET /cluster/ha/rules/{rule}")
def read_rule(call: Call) -> Any:
    """Answer one rule."""
    return _format_rule(call, call.params["rule"], _errors(call, call.store.items(config.RULES)))


@route("POST /cluster/ha/rules")
def create_rule(call: Call) -> Any:
    """Add a rule that can be kept beside the others."""
    _require_rules(call, "create ha rule")
    call.world.cluster.require_quorum()
    ident = str(call.params["rule"])
    kind = _KINDS[str(call.params["type"])]
    settings = kind.validate(_read_rule(call), create=True)
    with call.world.cluster.lock_file(LOCK, "create ha rule failed"):
        if call.store.get(config.RULES, ident) is not None:
            raise PveError(f"HA rule '{ident}' already defined")
        _check_names(call, settings)
    _check_feasible(call, ident, settings)
    SectionFile(call.store, config.RULES).put(ident, settings)


@route("PUT /cluster/ha/rules/{rule}")
def update_rule(call: Call) -> Any:
    """Change a rule."""
    _require_rules(call, "update ha rule")
    ident = str(call.params["rule"])
    with call.world.cluster.lock_file(LOCK, "update HA rules failed"):
        file = SectionFile(call.store, config.RULES)
        file.check_digest(call.params.get("digest"))
        old = file.get(ident)
        if old is None:
            raise PveError(f"HA rule '{ident}' does not exist")
        kind = _KINDS[str(old["type"])]
        given = kind.validate(_read_rule(call), create=False)
        _check_names(call, given)
        settings = {**kind.without(old, split_list(call.params.get("delete", "")), given), **given}
    _check_feasible(call, ident, settings)
    file.put(ident, settings)


@route("DELETE /cluster/ha/rules/{rule}")
def delete_rule(call: Call) -> Any:
    """Remove a rule, if it is there."""
    with call.world.cluster.lock_file(LOCK, "delete ha rule failed"):
        SectionFile(call.store, config.RULES).remove(str(call.params["rule"]))


def _require_rules(call: Call, what: str) -> None:
    if not are_migrated(call.store):
        raise PveError(f"cannot {what}: ha groups have not been migrated yet")


def _read_rule(call: Call) -> dict[str, Any]:
    """Return the settings of a call in the form in which they are kept."""
    skipped = ("rule", "type", "digest", "delete")
    given = {key: value for key, value in call.params.items() if key not in skipped}
    if not given.get("disable"):
        given.pop("disable", None)
    if "resources" in given:
        given["resources"] = ",".join(sorted(set(split_list(given["resources"]))))
    if "nodes" in given:
        given["nodes"] = print_nodes(parse_nodes(given["nodes"]))
    return given


def _check_names(call: Call, settings: Mapping[str, Any]) -> None:
    if "resources" in settings:
        names = split_list(settings["resources"])
        if not names:
            raise PveError("no resources were specified")
        unknown = [sid for sid in sorted(names) if not config.is_configured(call.store, sid)]
        if unknown:
            raise PveError(f"cannot use unmanaged resource(s) {', '.join(unknown)}.")
    if "nodes" in settings:
        nodes = sorted(parse_nodes(settings["nodes"]))
        if not nodes:
            raise PveError("no nodes were specified")
        unknown = [node for node in nodes if node not in call.world.cluster.nodes()]
        if unknown:
            raise PveError(f"cannot use non-existent node(s) {', '.join(unknown)}.")


def _check_feasible(call: Call, ident: str, settings: Mapping[str, Any]) -> None:
    errors = _errors(call, {**call.store.items(config.RULES), ident: settings}).get(ident)
    if errors:
        joined = {option: ", ".join(texts) for option, texts in errors.items()}
        raise PveError(f"Rule '{ident}' is invalid.", status=400, errors=joined)


def _errors(call: Call, rules: Mapping[str, Document]) -> Errors:
    in_force = {ident: Rule.read(rule) for ident, rule in rules.items() if not rule.get("disable")}
    return check_rules(in_force, list(call.world.cluster.nodes()))


def _format_rule(call: Call, ident: str, errors: Errors) -> dict[str, Any]:
    rules = call.store.items(config.RULES)
    found = rules.get(ident)
    if found is None:
        raise PveError(f"no such ha rule '{ident}'")
    shown = {
        **found,
        "rule": ident,
        "order": list(rules).index(ident) + 1,
        "digest": SectionFile(call.store, config.RULES).digest,
    }
    return {**shown, "errors": errors[ident]} if ident in errors else shown
