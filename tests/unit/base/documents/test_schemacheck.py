"""Our check of the schemas that we ship finds what a library for all of JSON Schema finds, in its words."""

from __future__ import annotations

import copy
import random
from typing import Any

import jsonschema_rs
import pytest
from tests.support.deployment import SMALL, WHOLE

from stackyard.base.documents.schemacheck import SchemaChecker
from stackyard.inventory import contract
from stackyard.sources.deployment.schema import load_shipped_schema

ODD: list[Any] = [
    None,
    True,
    1,
    0,
    -5,
    1.5,
    2.0,
    "",
    "a b",
    "x\n",
    [],
    [1, 1],
    {},
    {"_c": 1},
    ["a", "a"],
    10**10,
]
GUEST = {"vmid": 100, "hostname": "a", "ip": "10.0.0.1", "node": "pve1", "started": True, "tags": ["a"]}
INVENTORY = {
    "schema_version": "2.4.0",
    "desired_state": "x",
    "hosts": {"a": GUEST},
    "guests": {"a": GUEST},
}


def changed(document: dict[str, Any], chance: random.Random) -> Any:
    """Return a document with some of its values taken away, replaced or added to."""
    whole = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        node: Any = whole
        while node:
            key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if isinstance(node[key], dict | list) and chance.random() < 0.8:
                node = node[key]
                continue
            match chance.choice(("remove", "replace", "replace", "add")):
                case "remove":
                    del node[key]
                case "add" if isinstance(node, dict):
                    node[f"more{chance.randint(0, 9)}"] = copy.deepcopy(chance.choice(ODD))
                case _:
                    node[key] = copy.deepcopy(chance.choice(ODD))
            break
    return whole


@pytest.mark.parametrize(
    ("schema", "documents"),
    [(load_shipped_schema(), [SMALL, WHOLE]), (contract.schema(), [INVENTORY])],
    ids=["deployment", "inventory"],
)
def test_it_finds_what_the_library_finds(schema: dict[str, Any], documents: list[dict[str, Any]]) -> None:
    ours, theirs = SchemaChecker(schema), jsonschema_rs.validator_for(schema, offline=True)
    chance = random.Random(7)
    wrong = 0
    for _ in range(400):
        document = changed(chance.choice(documents), chance)
        found = {(one.path, one.keyword, one.message) for one in ours.findings(document)}
        assert found == {
            (tuple(one.instance_path), one.kind.name, one.message) for one in theirs.iter_errors(document)
        }
        wrong += bool(found)
    assert wrong > 200


def test_a_schema_with_a_keyword_that_it_does_not_know_is_refused_at_once() -> None:
    with pytest.raises(KeyError, match="unevaluatedItems"):
        SchemaChecker({"properties": {"a": {"unevaluatedItems": False}}})
