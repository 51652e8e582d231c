"""M12: a new major version goes to a stack that is not critical first."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.policy import LOCK, MODULE, STACK, check, good_repository, rules_of
from tests.support.stacks import commit, write

from stackyard.sources.stacks.changes import BaseNotFoundError

A, B = "stacks/onprem/a", "stacks/onprem/b"
Files = dict[str, str | None]


def two_stacks(root: Path, more: Files | None = None) -> Path:
    files = {f"{B}/{name}": text for name, text in STACK.items()}
    files[f"{B}/backend.tf"] = str(STACK["backend.tf"]).replace("onprem/a", "onprem/b")
    files[f"{B}/stack.yaml"] = "critical: false\n"
    return good_repository(root, files | (more or {}))


def raised(folder: str, to: str = "~> 4.0", locked: str = "4.0.1") -> Files:
    return {
        f"{folder}/providers.tf": str(STACK["providers.tf"]).replace("~> 3.6", to),
        f"{folder}/.terraform.lock.hcl": LOCK.replace("3.6.2", locked),
    }


def test_a_critical_stack_waits_for_one_that_is_not(tmp_path: Path) -> None:
    root = two_stacks(tmp_path)
    write(root, raised(A))
    [found] = check(root, "M12", base="HEAD").errors
    assert str(found.where) == f"{A}/providers.tf:5"
    assert "`~> 3.6` to `~> 4.0`" in found.detail or "`3.6.2` to `~> 4.0`" in found.detail
    assert "critical: false" in found.remedy


def test_a_stack_that_is_not_critical_goes_first(tmp_path: Path) -> None:
    root = two_stacks(tmp_path)
    write(root, raised(B))
    assert check(root, "M12", base="HEAD").errors == ()
    # In the same change the critical one is too early: nothing was applied yet.
    write(root, raised(A))
    assert rules_of(check(root, "M12", base="HEAD")) == {"M12"}
    write(root, {name: None for name in raised(A)})
    write(root, {f"{A}/{name}": STACK[name] for name in ("providers.tf", ".terraform.lock.hcl")})
    commit(root)
    write(root, raised(A))
    assert check(root, "M12", base="HEAD").errors == ()


def test_a_lock_file_alone_counts(tmp_path: Path) -> None:
    root = two_stacks(tmp_path)
    write(root, {f"{A}/.terraform.lock.hcl": LOCK.replace("3.6.2", "5.0.0")})
    [found] = check(root, "M12", base="HEAD").errors
    assert str(found.where) == f"{A}/.terraform.lock.hcl:1"


def test_minor_versions_and_lower_ones_are_free(tmp_path: Path) -> None:
    root = two_stacks(tmp_path)
    write(root, raised(A, "~> 3.9", "3.9.1"))
    assert check(root, "M12", base="HEAD").errors == ()
    write(root, raised(A, "~> 2.9", "2.9.1"))
    assert check(root, "M12", base="HEAD").errors == ()


def test_before_version_one_the_minor_counts(tmp_path: Path) -> None:
    module = str(MODULE["main.tf"]).replace("~> 3.6", "~> 0.66")
    root = two_stacks(
        tmp_path,
        {"modules/pet/main.tf": module, **raised(A, "~> 0.66", "0.66.1"), **raised(B, "~> 0.66", "0.66.1")},
    )
    write(root, raised(A, "~> 0.66.9", "0.66.9"))
    assert check(root, "M12", base="HEAD").errors == ()
    write(root, raised(A, "~> 0.70", "0.70.0"))
    assert rules_of(check(root, "M12", base="HEAD")) == {"M12"}


def test_a_shared_module_touches_all_its_critical_stacks(tmp_path: Path) -> None:
    more = {f"stacks/onprem/c/{name}": text for name, text in STACK.items()}
    more["stacks/onprem/c/backend.tf"] = str(STACK["backend.tf"]).replace("onprem/a", "onprem/c")
    root = two_stacks(tmp_path, more)
    write(root, {"modules/pet/main.tf": str(MODULE["main.tf"]).replace("~> 3.6", "~> 4.0")})
    found = check(root, "M12", base="HEAD").errors
    assert {one.where.path for one in found} == {"modules/pet/main.tf"}
    assert sorted(name for name in ("onprem/a", "onprem/b", "onprem/c") if f"`{name}`" in str(found)) == [
        "onprem/a",
        "onprem/c",
    ]


def test_modules_of_a_registry_count_too(tmp_path: Path) -> None:
    text = 'module "vpc" {\n  source  = "org/vpc/aws"\n  version = "~> 5.1"\n}\n'
    root = two_stacks(tmp_path, {f"{A}/vpc.tf": text})
    write(root, {f"{A}/vpc.tf": text.replace("5.1", "6.0")})
    [found] = check(root, "M12", base="HEAD").errors
    assert str(found.where) == f"{A}/vpc.tf:3"


def test_defaults_say_what_is_critical(tmp_path: Path) -> None:
    root = two_stacks(
        tmp_path, {"stackyard.yaml": "defaults: {critical: false}\n", f"{B}/stack.yaml": "tags: [x]\n"}
    )
    write(root, raised(A))
    assert check(root, "M12", base="HEAD").errors == ()


def test_a_new_stack_may_begin_with_any_version(tmp_path: Path) -> None:
    root = two_stacks(tmp_path)
    files = {f"stacks/onprem/c/{name}": text for name, text in STACK.items()}
    write(root, files | raised("stacks/onprem/c"))
    assert check(root, "M12", base="HEAD").errors == ()


def test_a_base_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaseNotFoundError):
        check(two_stacks(tmp_path), "M12", base="gone")
