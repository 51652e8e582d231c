"""In a repository of the shape that the rules come from, every known defect is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.policy import check
from tests.support.policy_seed import MODULES, STACKS, seed_repository

from stackyard.policy.check import PolicyResult

PROXMOX = ("image_builder", "lxc_template_customizer", "proxmox_lxc", "proxmox_vm")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> PolicyResult:
    return check(seed_repository(tmp_path_factory.mktemp("seed")))


def found(result: PolicyResult, rule: str) -> Iterator[tuple[str, str]]:
    return ((str(one.where), one.detail) for one in result.errors if one.rule == rule)


def test_no_module_complies(result: PolicyResult) -> None:
    places = " ".join(one.where.path for one in result.errors)
    assert result.modules == len(MODULES)
    assert [name for name in MODULES if f"tofu/modules/{name}" not in places] == []


def test_no_module_has_a_readme(result: PolicyResult) -> None:
    missing = {place for place, detail in found(result, "M4") if "README.md" in detail}
    assert missing == {f"tofu/modules/{name}" for name in MODULES}
    assert {place for place, _ in found(result, "M7")} == missing


def test_missing_outputs_and_main_are_found(result: PolicyResult) -> None:
    others = {place: detail for place, detail in found(result, "M4") if "README" not in detail}
    assert set(others) == {"tofu/modules/ansible_inventory", "tofu/modules/resource_normalizer"}
    assert "outputs.tf" in others["tofu/modules/ansible_inventory"]
    assert "main.tf" in others["tofu/modules/resource_normalizer"]
    assert [place for place, _ in found(result, "M6")] == ["tofu/modules/ansible_inventory"]


def test_a_bare_any_is_found_and_one_with_a_reason_is_not(result: PolicyResult) -> None:
    [(place, _)] = found(result, "M5")
    assert place == "tofu/modules/lxc_template_customizer/variables.tf:7"


def test_exact_versions_of_providers_are_found(result: PolicyResult) -> None:
    places = {place for place, detail in found(result, "M3") if "without `~>`" in detail}
    assert places == {
        *(f"tofu/modules/{name}/main.tf:5" for name in ("ansible_inventory", *PROXMOX)),
        "tofu/stacks/onprem/proxmox_atlas/providers.tf:5",
    }


def test_stacks_without_a_backend_are_found(result: PolicyResult) -> None:
    places = {place for place, detail in found(result, "M8") if "no backend" in detail}
    assert places == {f"tofu/stacks/{name}" for name in STACKS}


def test_tracked_keys_and_environments_are_found(result: PolicyResult) -> None:
    assert {place for place, _ in found(result, "M10")} == {
        "kubernetes/certs/tls.key:1",
        "docker/app/.env:1",
        "docker/web/.env:1",
    }
