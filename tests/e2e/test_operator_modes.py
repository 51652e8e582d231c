"""The operator by real SSH on a lab: guests that are pushed, that fetch, and that are containers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.guest_yard import guest_yard

from stackyard.base import events
from stackyard.engine.version import Flavour
from stackyard.operator.outcome import NodeStatus, PhaseStatus, Verb
from stackyard.operator.request import VerbRequest
from stackyard.operator.verbs import run_verb

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


def test_guests_of_every_kind_are_made_configured_looked_at_and_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    seen: list[str] = []

    def emit(event: events.Event) -> None:
        seen.append(repr(event))

    with guest_yard(tmp_path) as yard:
        manifest = yard.manifest(
            "kinds",
            {"name": "self", "type": "vm", "vmid": 402, "spec": "base", "execution": {"mode": "pull"}},
            {"name": "box", "type": "ct", "vmid": 403, "spec": "base", "packages": ["tree"]},
        )
        request = VerbRequest(text=json.dumps(manifest.document()), host="lab", site=str(yard.folder))
        outcome = asyncio.run(run_verb(Verb.TEST, request, emit))
        assert outcome.success, outcome
        phases = {node.name: {phase.name: phase for phase in node.phases} for node in outcome.nodes}
        assert {"wait_spec", "verify_spec"} <= phases["self"].keys()
        assert {"apply_spec", "verify_spec"} <= phases["box"].keys()
        assert "tree" in phases["box"]["verify_packages"].detail
        assert {phase.status for node in phases.values() for phase in node.values()} == {PhaseStatus.PASSED}
        assert {node.status for node in outcome.nodes} == {NodeStatus.DESTROYED}
        # Of keys and tokens nothing was told, nothing is in the configuration, and nothing is left.
        private = yard.folder / ".stackyard"
        configuration = [path.read_text() for path in (private / "work").rglob("*.tf.json")]
        assert configuration
        assert "PRIVATE KEY" not in "".join([*seen, *configuration])
        (kept,) = (private / "guests").glob("*.json")
        assert json.loads(kept.read_text()) == {}
        assert "manifest/kinds/lab" not in (private / "known_hosts").read_text()
