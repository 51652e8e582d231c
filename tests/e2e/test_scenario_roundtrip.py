"""`spec-vm-push-roundtrip` on a lab: a guest fetches its spec from us, is looked at from inside, and goes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.lab_inside import need_sandbox
from tests.support.path import make_yard
from tests.support.ports import free_port
from tests.support.scenarios import site_of
from tests.support.site import SEED

from stackyard import lab
from stackyard.base.errors import UsageError
from stackyard.engine.version import Flavour
from stackyard.scenario.launch import prepare
from stackyard.scenario.options import ScenarioOptions


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_guest_comes_fetches_its_spec_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_sandbox()
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    port = free_port()
    with lab.running(nodes=("pve1",), ssh_port=0, guests=lab.Kind.SANDBOX, expose=(port,)) as running:
        yard = make_yard(running, tmp_path / "site")
        file = yard.folder / "site.yaml"
        server = f"defaults:\n  spec_server: https://10.31.0.1:{port}\n"
        file.write_text(file.read_text().replace("defaults:\n", server, 1))
        options = ScenarioOptions(host="lab", vm_ids={"test": 99990})
        outcome = asyncio.run(prepare("spec-vm-push-roundtrip", options, site=str(yard.folder)).run())
        assert outcome.error is None, outcome.error.detail
        assert {phase.status.value for phase in outcome.phases} == {"passed"}
        assert outcome.context["vm_id"] == 99990
        assert list(yard.guests()) == []
    assert not listens(port)


def chosen(folder: Path, **options: object) -> dict[str, Any]:
    """Return the guest that the first phase chooses."""
    launch = prepare(
        "spec-vm-push-roundtrip",
        ScenarioOptions(host="pve", skip=("start_server", "ensure_image", "provision_vm"), **options),  # type: ignore[arg-type]
        site=str(folder),
    )
    result = asyncio.run(launch.scenario.phases[0].action.run(launch.context))
    found: dict[str, Any] = json.loads(result.context_updates["manifest"])
    return found


def test_the_guest_of_an_env_is_made_where_one_is_named(tmp_path: Path) -> None:
    one = "posture: prod\nvmid_base: 99700\nvms: [{name: test, template: test, disk: 12}]\n"
    files = {**SEED, "site.yaml": "defaults: {spec_server: 'https://127.0.0.1:4'}\n", "envs/one.yaml": one}
    files["envs/two.yaml"] = "vms: [{name: a, template: test}, {name: b, template: test}]\n"
    site_of(tmp_path / "site", files)
    manifest = chosen(tmp_path / "site", env="one")
    [node] = manifest["nodes"]
    assert (node["template"], node["disk"], node["vmid"], manifest["posture"]) == ("test", 12, 99700, "prod")
    assert node["spec"]
    assert chosen(tmp_path / "site", env="one", vm_ids={"test": 99701})["nodes"][0]["vmid"] == 99701
    with pytest.raises(UsageError, match="has 2 guests"):
        chosen(tmp_path / "site", env="two")


def test_a_site_that_names_no_server_is_told_so_and_nothing_is_made_or_left_running(tmp_path: Path) -> None:
    files = {**SEED, "site.yaml": "defaults: {timezone: UTC}\n"}
    site_of(tmp_path / "site", files)
    outcome = asyncio.run(
        prepare("spec-vm-push-roundtrip", ScenarioOptions(host="pve"), site=str(tmp_path / "site")).run()
    )
    assert outcome.error is not None
    assert "`spec_server`" in outcome.error.detail
    assert [phase.status.value for phase in outcome.phases] == [
        "failed",
        *["skipped"] * 6,
        "passed",
        "passed",
    ]
    assert os.listdir(tmp_path / "site" / "reports")


def test_a_guest_that_cannot_be_made_leaves_no_server_behind(tmp_path: Path) -> None:
    port = free_port()
    files = {**SEED, "site.yaml": f"defaults: {{spec_server: 'https://127.0.0.1:{port}'}}\n"}
    files["nodes/pve.yaml"] = (
        f"api_endpoint: https://127.0.0.1:{free_port()}\napi_token: pve\ndatastore: local-zfs\n"
    )
    site_of(tmp_path / "site", files)
    outcome = asyncio.run(
        prepare("spec-vm-push-roundtrip", ScenarioOptions(host="pve"), site=str(tmp_path / "site")).run()
    )
    statuses = {phase.name: phase.status.value for phase in outcome.phases}
    assert statuses["start_server"] == "passed"
    assert outcome.error is not None
    assert statuses["verify_server"] == "skipped"
    assert statuses["stop_server"] == "passed"
    assert not listens(port)


def test_an_id_for_a_guest_that_there_is_not_is_refused(tmp_path: Path) -> None:
    site_of(tmp_path / "site", SEED)
    options = ScenarioOptions(host="pve", vm_ids={"other": 5000})
    outcome = asyncio.run(prepare("spec-vm-push-roundtrip", options, site=str(tmp_path / "site")).run())
    assert outcome.status == 64
