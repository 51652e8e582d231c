"""The state of imported guests joins the one that is there; a file is put back unless somebody changed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stackyard.path.importing.takeover import EnvText, join_states
from stackyard.path.importing.trial import ProvenState


def resource(name: str, vm_id: int) -> dict[str, Any]:
    return {"type": "vm", "name": name, "instances": [{"attributes": {"vm_id": vm_id}}]}


def outputs(**guests: int) -> dict[str, Any]:
    types = {name: ["object", {"vm_id": "number"}] for name in guests}
    values = {name: {"vm_id": vm_id} for name, vm_id in guests.items()}
    return {"guests": {"value": values, "type": ["object", types]}}


def test_a_first_state_is_that_of_the_imported_guests() -> None:
    proven = ProvenState(
        document={"lineage": "x", "serial": 7, "resources": [resource("web", 1)], "outputs": outputs(web=1)}
    )
    assert json.loads(join_states(None, proven)) == {**proven.document, "serial": 1}
    assert "vm_id" not in repr(proven)


def test_what_a_state_has_stays_beside_the_imported_guests() -> None:
    before = {
        "lineage": "x",
        "serial": 4,
        "resources": [resource("old", 1), resource("web", 0)],
        "outputs": {**outputs(old=1), "other": {"value": 1, "type": "number"}},
    }
    proven = ProvenState(
        document={"lineage": "y", "serial": 2, "resources": [resource("web", 2)], "outputs": outputs(web=2)}
    )
    after = json.loads(join_states(json.dumps(before).encode(), proven))
    assert (after["lineage"], after["serial"]) == ("x", 5)
    assert after["resources"] == [resource("old", 1), resource("web", 2)]
    assert after["outputs"] == {**outputs(old=1, web=2), "other": {"value": 1, "type": "number"}}


class BrokenError(Exception):
    """What goes wrong."""


def write_and_break(text: EnvText, then: str | None = None) -> None:
    with text.write():
        assert text.path.read_text() == text.after
        if then is not None:
            text.path.write_text(then)
        raise BrokenError


@pytest.mark.parametrize("before", [None, "old\n"])
def test_a_file_is_put_back_when_the_rest_fails(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "home.yaml"
    if before is not None:
        path.write_text(before)
        path.chmod(0o640)
    text = EnvText(path=path, before=before, after="new\n")
    with pytest.raises(BrokenError):
        write_and_break(text)
    assert (path.read_text() if path.exists() else None) == before
    with text.write():
        pass
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == (0o644 if before is None else 0o640)


def test_what_somebody_else_wrote_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "home.yaml"
    with pytest.raises(BrokenError):
        write_and_break(EnvText(path=path, before=None, after="new\n"), then="theirs\n")
    assert path.read_text() == "theirs\n"
