"""Sources are rendered to the OpenTofu JSON that earlier commits made, and they set every field."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic.fields import FieldInfo
from tests.compatibility.golden import compare, kept_names
from tests.compatibility.rendering import CASES, RUNS, SOURCES, model_document, render_case

from stackyard import desired
from stackyard.desired import Desired, Value
from stackyard.render import Provider, render
from stackyard.sources.site import ConfigResolver

MODEL = "model.json"
ABSTRACT = {"GuestBase", "Value"}


@pytest.mark.parametrize(("name", "provider"), RUNS)
def test_a_source_is_rendered_as_before(name: str, provider: str, tmp_path: Path) -> None:
    compare(f"rendered/{name}.json", render_case(CASES[name], provider, tmp_path))


def test_the_model_with_every_field_is_rendered_as_before() -> None:
    provider = Provider(ssh_user="root", ssh_nodes=(("pve1", "192.0.2.11", 22), ("pve2", "192.0.2.12", 2222)))
    rendered = render(Desired.from_json(model_document()), provider, scope="env/all/pve1")
    files = {file: json.loads(content) for file, content in rendered.files.items()}
    variables = {variable.name: variable.secret.secret for variable in rendered.variables}
    compare(f"rendered/{MODEL}", {"files": files, "variables": variables})


def test_every_kept_rendering_belongs_to_a_source() -> None:
    assert kept_names("rendered") == {MODEL, *(f"{name}.json" for name in CASES)}


def test_the_model_sets_every_field_of_the_desired_state() -> None:
    model = Desired.from_json(model_document())
    assert desired.problems(model) == ()
    left = {(kind.__name__, name) for kind in kinds() for name in kind.model_fields} - fields_set(model)
    assert left == set()


def test_the_site_sets_every_field_of_its_guests(tmp_path: Path) -> None:
    site = shutil.copytree(SOURCES / "everything", tmp_path / "site")
    model = ConfigResolver(site).resolve_desired("everything", "pve1")
    covered = fields_set((model.vms, model.containers))
    used = {type(value) for value in values((model.vms, model.containers))}
    left = {(kind.__name__, name) for kind in used for name in kind.model_fields} - covered
    assert left == set()
    assert {kind.__name__ for kind in used} >= {"Vm", "Container", "Disk", "Nic", "CloudInit", "PciDevice"}


def kinds() -> set[type[Value]]:
    """Return every class of the desired model that can be written."""
    found = (getattr(desired, name) for name in desired.__all__)
    return {one for one in found if isinstance(one, type) and issubclass(one, Value)} - {
        getattr(desired, name) for name in ABSTRACT
    }


def values(part: Any) -> Iterator[Value]:
    """Return a part of a model and everything below it."""
    if isinstance(part, Value):
        yield part
        for name in type(part).model_fields:
            yield from values(getattr(part, name))
    elif isinstance(part, tuple | dict):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from values(inner)


def fields_set(model: Any) -> set[tuple[str, str]]:
    """Return the fields that differ from their default somewhere in a model."""
    return {
        (type(value).__name__, name)
        for value in values(model)
        for name, field in type(value).model_fields.items()
        if is_alone(field) or getattr(value, name) != field.get_default(call_default_factory=True)
    }


def is_alone(field: FieldInfo) -> bool:
    """Tell whether a field has to be given, or can have one value only."""
    one_word = get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
    return field.is_required() or one_word
