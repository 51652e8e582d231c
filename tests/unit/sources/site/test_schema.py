"""The published schemas say what the models say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.support.hypervisors import FILES as HYPERVISORS
from tests.support.site import FULL, SEED

from stackyard.base.diagnostics import Diagnostics
from stackyard.desired import Container, Vm
from stackyard.sources.site.document import parse_document
from stackyard.sources.site.schema import schema_of
from stackyard.sources.site.schema_names import ENTITIES

KINDS = {
    "hosts": "host",
    "nodes": "node",
    "vms": "template",
    "presets": "preset",
    "postures": "posture",
    "specs": "spec",
    "envs": "env",
    "manifests": "manifest",
    "hypervisors": "hypervisor",
    "web": "stack",
}
# Beside stacks there are files that no site has.
STACKS = {
    "stacks/web/stack.yaml": "after: [net, {stack: dns, outputs: [zone]}]\ntags: [web]\nengine: tofu\n",
    "repository.yaml": "roots: [live]\nlayers: [net]\ndefaults: {protected: true}\n",
}
FILES = [*SEED.items(), *FULL.items(), *STACKS.items(), *HYPERVISORS.items()]


def entity_of(name: str) -> str:
    if name == "hypervisors/pve1.yaml":
        return "hypervisor-node"
    return KINDS[Path(name).parent.name] if "/" in name else Path(name).stem


def data_of(text: str) -> Any:
    document = parse_document(text, "f.yaml", Diagnostics())
    assert document is not None
    return document.data


@pytest.mark.parametrize(("name", "text"), FILES, ids=lambda part: part if len(part) < 40 else "")
def test_a_file_that_is_valid_fits_its_schema(name: str, text: str) -> None:
    entity = entity_of(name)
    data = data_of(text)
    if entity == "posture":
        # An editor reads `no` without quotes as a word; here it is a boolean already.
        data = _words(data)
    validator = jsonschema_rs.validator_for(schema_of(entity))
    assert [error.message for error in validator.iter_errors(data)] == []


def _words(data: Any) -> Any:
    words = {
        key: ("yes" if value else "no")
        if isinstance(value, bool) and key.startswith(("permit", "pass"))
        else value
        for key, value in data.get("ssh", {}).items()
    }
    return {**data, "ssh": words} if words else data


@pytest.mark.parametrize("entity", ENTITIES)
def test_a_schema_refuses_what_it_does_not_know_and_allows_comments(entity: str) -> None:
    validator = jsonschema_rs.validator_for(schema_of(entity))
    sample = next(data_of(text) for name, text in FILES if entity_of(name) == entity)
    if entity == "posture":
        sample = {"auth": {"method": "network"}}
    assert validator.is_valid({**sample, "_note": "why"})
    assert not validator.is_valid({**sample, "nobody-knows": 1})


def test_an_env_may_say_every_field_of_the_model() -> None:
    known = set(schema_of("env")["$defs"]["Entry"]["properties"])
    # A container is made from its `image`: `template` names a file of vms/.
    # Whether an id was counted is known from what the env leaves out.
    assert {*Vm.model_fields, *Container.model_fields} - {"vm_id_counted"} <= known
    assert "vm_id_counted" not in known
