"""The OpenTofu JSON of each source, as `stackyard plan` leaves it in the work folder of the target."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.compatibility.golden import FIXTURES
from tests.support.cli import stackyard

__all__ = ["CASES", "RUNS", "SOURCES", "Case", "model_document", "render_case"]

SOURCES = FIXTURES / "sources"
# The configuration is complete before the engine starts, and no engine is needed to look at it.
ENGINE = """\
#!/bin/sh
[ "$1" = version ] && echo '{"terraform_version": "1.12.6"}' && exit 0
exit 1
"""
TOKEN = "root@pam!tofu=11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A target: its source below the folder of sources, and how the command names it."""

    source: str
    target: str
    host: str | None = None
    env: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file that keeps it."""
        return f"{Path(self.source).stem}-{self.target.replace(':', '-')}{f'-{self.host}' * bool(self.host)}"


REACHED = {"PROXMOX_VE_ENDPOINT": "https://192.0.2.11:8006", "PROXMOX_VE_API_TOKEN": TOKEN}
CASES = {
    case.name: case
    for case in (
        Case(source="everything", target="env:everything"),
        Case(source="everything", target="env:everything", host="pve2"),
        Case(source="everything", target="env:small"),
        Case(source="everything", target="site:shared", host="pve1"),
        Case(source="everything", target="manifest:nodes", host="pve1"),
        Case(source="full", target="env:shop"),
        Case(source="seed", target="env:dev", host="pve"),
        Case(source="seed", target="env:dev", host="father"),
        Case(source="seed", target="manifest:levels", host="pve"),
        Case(source="seed", target="manifest:n2-quick", host="father"),
        Case(source="deployment/whole.json", target="deployment", env=REACHED),
        Case(source="deployment/large.json", target="deployment", env=REACHED),
    )
}
# Both providers read the same configuration: one file keeps it, and a few targets are rendered for both.
RUNS = (
    *((name, "builtin") for name in CASES),
    *(
        (name, "bpg")
        for name in ("everything-env-everything", "seed-manifest-levels-pve", "whole-deployment")
    ),
)


def render_case(case: Case, provider: str, folder: Path) -> dict[str, Any]:
    """Plan a target without an engine; return each file of its work folder, by its name."""
    engine = folder / "engine"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    place = _place_source(case, folder / "place")
    options = ["--provider", provider, *(["-H", case.host] if case.host else [])]
    env = {"STACKYARD_TOFU": str(engine), **case.env}
    if case.source.endswith(".json"):
        env["DEPLOYMENT_JSON_PATH"] = str(place / "deployment.json")
    ended = stackyard("plan", case.target, *options, "--json", cwd=place, env=env)
    assert ended.document["error"]["code"] == "E-TOFU-FAILED", ended.document
    [work] = (place / ".stackyard" / "work").iterdir()
    documents = {
        path.name: json.loads(path.read_text().replace(str(place), "SITE")) for path in work.glob("*.json")
    }
    return {"folder": work.name, "files": documents}


def _place_source(case: Case, place: Path) -> Path:
    if case.source.endswith(".json"):
        place.mkdir()
        shutil.copy(SOURCES / case.source, place / "deployment.json")
        (place / "deployment.yaml").write_text("environment: homelab\n")
        return place
    shutil.copytree(SOURCES / case.source, place)
    kind, _, name = case.target.partition(":")
    if kind == "manifest":
        # What was made for the first boots of guests is kept; made now, it would be random.
        known = place / ".stackyard" / "guests" / f"{kind}--{name}--{case.host}.json"
        known.parent.mkdir(parents=True, mode=0o700)
        shutil.copy(SOURCES / "guests.json", known)
    return place


def model_document() -> str:
    """Return a desired model, as JSON, that sets every field at least once."""
    return json.dumps(yaml.safe_load((SOURCES / "model.yaml").read_text()))
