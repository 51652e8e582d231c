"""The verbs on a configuration and on its state, with the real engines and their built-in provider."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from tests.support.engine import StateServer, engine, state_server, workdir_in, write_root

from stackyard.base import events
from stackyard.base.diagnostics import Severity
from stackyard.base.redaction import Redactor
from stackyard.engine import failures, statefile, tofu
from stackyard.engine.version import Engine, Version
from stackyard.engine.workdir import Workdir

__all__ = ["engine", "state_server"]

SECRET = "correct horse battery staple"
# Whatever stands in a value arrives as it is: marks that HCL would evaluate, and characters that it escapes.
TAGS = {"role": ["web", "${not.evaluated}", "$${a} %{if b} %%{c} $"], 'k "y"\\': ["\b\f\n\t\x7f é ☃ 💾", ""]}

ROOT = """
variable "size" {
  type = string
}

variable "tags" {
  type    = map(list(string))
  default = {}
}

variable "password" {
  type      = string
  sensitive = true
}

resource "terraform_data" "disk" {
  input            = var.password
  triggers_replace = var.size
}

resource "terraform_data" "guest" {
  input      = var.tags
  depends_on = [terraform_data.disk]
}

output "tags" {
  value = terraform_data.guest.output
}

output "password" {
  value     = var.password
  sensitive = true
}
"""


def guest_workdir(engine: Engine, folder: Path, size: str = "10G") -> Workdir:
    return workdir_in(
        engine,
        folder,
        variables={"size": size, "password": SECRET, "tags": TAGS},
        redactor=Redactor([SECRET]),
    )


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_configuration_lives_from_init_to_destroy(engine: Engine, tmp_path: Path) -> None:
    folder, plans = tmp_path / "root", tmp_path / "plans"
    write_root(folder, ROOT)
    seen: list[events.Event] = []
    small = guest_workdir(engine, folder)

    await tofu.init(small, emit=seen.append)
    assert await tofu.validate(small) == ()
    assert await statefile.state_pull(small) is None

    planned = await tofu.plan(small, plans / "first.tfplan", emit=seen.append)
    assert planned.outcome is tofu.PlanOutcome.CHANGES
    assert (mode_of(planned.path), mode_of(plans)) == (0o600, 0o700)
    assert [path.name for path in plans.iterdir()] == ["first.tfplan"]
    shown = await tofu.show_plan(small, planned.path)
    assert {change["address"] for change in shown["resource_changes"]} == {
        "terraform_data.disk",
        "terraform_data.guest",
    }

    applied = await tofu.apply(small, planned.path, emit=seen.append)
    assert (applied.add, applied.change, applied.remove) == (2, 0, 0)
    outputs = await tofu.output(small)
    assert outputs["tags"].value == TAGS
    assert outputs["password"].value == SECRET
    assert SECRET not in repr(outputs)
    state = await tofu.show_state(small)
    assert len(state["values"]["root_module"]["resources"]) == 2

    again = await tofu.plan(small, plans / "again.tfplan")
    assert again.outcome is tofu.PlanOutcome.NO_CHANGES

    big = guest_workdir(engine, folder, size="20G")
    await tofu.plan(big, plans / "bigger.tfplan", emit=seen.append)
    destroyed = await tofu.destroy(big, emit=seen.append)
    assert destroyed.remove == 2
    assert await statefile.state_list(big) == ()
    assert_told(seen)


def assert_told(seen: list[events.Event]) -> None:
    """Check what the views got to know: each change, each phase, the totals, and no secret."""
    planned = [event for event in seen if isinstance(event, events.ResourcePlanned)]
    assert {(event.address, event.action, event.reason) for event in planned} >= {
        ("terraform_data.disk", "create", None),
        ("terraform_data.disk", "replace", "cannot_update"),
        ("terraform_data.guest", "delete", None),
    }
    applied = [event for event in seen if isinstance(event, events.ResourceApplied)]
    phases = [
        event.phase for event in applied if (event.address, event.action) == ("terraform_data.disk", "create")
    ]
    assert phases == [events.ApplyPhase.STARTED, events.ApplyPhase.DONE]
    counted = [event for event in seen if isinstance(event, events.PlanCounted)]
    assert {(event.operation, event.add, event.remove) for event in counted} >= {
        ("plan", 2, 0),
        ("apply", 2, 0),
    }
    assert SECRET not in repr(seen)


async def test_plan_options_reach_the_engine(engine: Engine, tmp_path: Path) -> None:
    folder, plan = tmp_path / "root", tmp_path / "plan"
    write_root(folder, ROOT)
    (tmp_path / "size.tfvars").write_text('size = "5G"\n')
    files = (tmp_path / "size.tfvars",)
    workdir = workdir_in(engine, folder, variables={"password": SECRET}, var_files=files)
    await tofu.init(workdir)
    await tofu.plan(workdir, plan, options=tofu.PlanOptions(parallelism=2))
    await tofu.apply(workdir, plan, parallelism=2)

    replaced: list[events.Event] = []
    forced = tofu.PlanOptions(
        replace=("terraform_data.guest",), targets=("terraform_data.guest",), refresh=False
    )
    await tofu.plan(workdir, plan, options=forced, emit=replaced.append)
    changes = [event for event in replaced if isinstance(event, events.ResourcePlanned)]
    assert [(change.address, change.action) for change in changes] == [("terraform_data.guest", "replace")]

    only = tofu.PlanOptions(mode=tofu.PlanMode.REFRESH_ONLY)
    outcome = (await tofu.plan(workdir, plan, options=only)).outcome
    assert outcome is tofu.PlanOutcome.NO_CHANGES


async def test_the_state_is_listed_moved_removed_and_imported(engine: Engine, tmp_path: Path) -> None:
    folder, plan = tmp_path / "root", tmp_path / "plan"
    write_root(
        folder,
        """
            resource "terraform_data" "a" { for_each = toset(["x y", "z"]) }
            resource "terraform_data" "b" {}
            """,
    )
    workdir = workdir_in(engine, folder)
    await tofu.init(workdir)
    await tofu.plan(workdir, plan)
    await tofu.apply(workdir, plan)
    assert await statefile.state_list(workdir) == (
        'terraform_data.a["x y"]',
        'terraform_data.a["z"]',
        "terraform_data.b",
    )
    await statefile.state_mv(workdir, 'terraform_data.a["x y"]', "module.new.terraform_data.c[0]")
    await statefile.state_rm(workdir, ("terraform_data.b", 'terraform_data.a["z"]'))
    assert await statefile.state_list(workdir) == ("module.new.terraform_data.c[0]",)
    await statefile.import_resource(workdir, "terraform_data.b", "an-id")
    snapshot = await statefile.state_pull(workdir)
    assert snapshot is not None
    assert (snapshot.resources, snapshot.encrypted) == (2, False)
    statefile.save_snapshot(snapshot, tmp_path / "states" / "now.tfstate")
    assert mode_of(tmp_path / "states") == 0o700
    assert mode_of(tmp_path / "states" / "now.tfstate") == 0o600

    with pytest.raises(failures.TofuError, match="Invalid source address"):
        await statefile.state_mv(workdir, "terraform_data.nope", "terraform_data.there")


def test_a_schema_and_the_version_come_as_values(engine: Engine, tmp_path: Path) -> None:
    write_root(tmp_path, 'resource "terraform_data" "a" {}')
    workdir = workdir_in(engine, tmp_path)
    schemas = asyncio.run(tofu.providers_schema(workdir))
    builtin = schemas["provider_schemas"]["terraform.io/builtin/terraform"]
    assert "terraform_data" in builtin["resource_schemas"]
    assert engine.version >= Version(1, 10, 0)


def test_the_engine_keeps_its_files_where_it_is_told(
    engine: Engine, tmp_path: Path, state_server: StateServer
) -> None:
    folder, data_dir = tmp_path / "root", tmp_path / "data"
    write_root(folder, 'terraform {\n  backend "http" {}\n}\n')
    (tmp_path / "backend.hcl").write_text(f'address = "{state_server.address}"\n')
    workdir = workdir_in(engine, folder, data_dir=data_dir)
    asyncio.run(tofu.init(workdir, tofu.InitOptions(backend_config=(tmp_path / "backend.hcl",))))
    assert sorted(path.name for path in folder.iterdir()) == ["main.tf"]
    assert (data_dir / "terraform.tfstate").is_file()
    assert mode_of(data_dir) == 0o700


def test_a_broken_settings_file_of_the_user_has_no_say(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in (".terraformrc", ".tofurc"):
        (home / name).write_text("this is { not a settings file")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(home / ".terraformrc"))
    monkeypatch.setenv("TF_CLI_ARGS", "-nonsense")
    monkeypatch.setenv("TF_LOG", "TRACE")
    write_root(tmp_path / "root", 'resource "terraform_data" "a" {}')
    seen: list[events.Event] = []
    planned = asyncio.run(
        tofu.plan(workdir_in(engine, tmp_path / "root"), tmp_path / "plan", emit=seen.append)
    )
    assert planned.outcome is tofu.PlanOutcome.CHANGES
    assert [
        event
        for event in seen
        if isinstance(event, events.LogLine) and event.level is not events.LogLevel.DEBUG
    ] == []


def test_validate_returns_every_finding_with_its_place(engine: Engine, tmp_path: Path) -> None:
    write_root(
        tmp_path,
        'resource "terraform_data" "a" {\n  input = var.missing\n}\n\n'
        'output "o" {\n  value = local.missing\n}\n',
    )
    found = asyncio.run(tofu.validate(workdir_in(engine, tmp_path)))
    places = {(str(item.where), item.kind.severity, item.kind.code) for item in found}
    assert places == {
        (f"{tmp_path}/main.tf:2:11", Severity.ERROR, "E-TOFU-FAILED"),
        (f"{tmp_path}/main.tf:6:11", Severity.ERROR, "E-TOFU-FAILED"),
    }
