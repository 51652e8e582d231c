"""The guard for code that a user wrote: each resource of any provider that goes has to be named."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.engine.changes import Action, Change, Changes
from stackyard.guard import Allowances, GuardRefusedError, Permit, Verdict, inspect

VM = "proxmox_virtual_environment_vm"


def change(address: str, action: Action, **values: Any) -> Change:
    kind, name = address.rpartition(".module.")[2].split(".")[-2:]
    exists = {"size": 1, **values.pop("values", {})}
    return Change(
        address=address,
        kind=kind,
        name=name.partition("[")[0],
        action=action,
        before=None if action is Action.CREATE else exists,
        after=None if action in (Action.DELETE, Action.FORGET) else exists,
        **values,
    )


KEPT = change("null_resource.kept", Action.NOTHING)


def judge(*changes: Change, names: tuple[str, ...] = (), **options: Any) -> Verdict:
    permits = frozenset(Permit(option="--allow-destroy", name=name) for name in names)
    everything = options.pop("everything", False)
    return inspect(Changes(planned=changes), Allowances(permits=permits, everything=everything), **options)


def codes(verdict: Verdict) -> list[str]:
    return [finding.kind.code for finding in verdict.refused]


@pytest.mark.parametrize("action", [Action.DELETE, Action.REPLACE])
@pytest.mark.parametrize(
    "address",
    [
        "aws_instance.web",
        "terraform_data.x[0]",
        'module.web["a,b"].random_pet.this["c"]',
        "tls_private_key.x",
        "time_sleep.x",
        "local_file.x",
        "proxmox_vm_qemu.telmate",
        "proxmox_sdn_applier.sdn",
    ],
)
def test_each_resource_of_any_provider_is_named_by_its_address(action: Action, address: str) -> None:
    gone = change(address, action)
    refused = judge(KEPT, gone)
    assert codes(refused) == ["E-GUARD-DESTROYS-RESOURCE"]
    assert [str(found.permit) for found in refused.refused] == [f"--allow-destroy {address}"]
    assert refused.refused[0].label == address
    assert codes(judge(KEPT, gone, names=("web", "x", "this"))) == ["E-GUARD-DESTROYS-RESOURCE"]
    assert codes(judge(KEPT, gone, names=(address,))) == []


def test_a_module_or_a_resource_without_an_index_stands_for_all_below_it() -> None:
    gone = [change(f'module.web["{key}"].aws_instance.this[0]', Action.DELETE) for key in "ab"]
    assert codes(judge(KEPT, *gone, names=("module.web",))) == []
    assert len(codes(judge(KEPT, *gone, names=('module.web["a"]',)))) == 1
    assert codes(judge(KEPT, *gone, names=("module",))) == ["E-GUARD-DESTROYS-RESOURCE"] * 2
    assert codes(judge(KEPT, *gone, names=("*",))) == ["E-GUARD-DESTROYS-RESOURCE"] * 2


def test_a_guest_is_named_by_its_name_or_by_its_address() -> None:
    gone = change(f"module.a.{VM}.this", Action.DELETE, values={"name": "web", "vm_id": 100})
    refused = judge(KEPT, gone)
    assert [str(found.permit) for found in refused.refused] == ["--allow-destroy web"]
    assert codes(judge(KEPT, gone, names=("web",))) == []
    assert codes(judge(KEPT, gone, names=(gone.address,))) == []
    assert codes(judge(KEPT, gone, names=("module.a",))) == []
    assert codes(judge(KEPT, gone, names=("this",))) == ["E-GUARD-DESTROYS-GUEST"]


def test_a_name_that_two_resources_have_says_nothing() -> None:
    gone = change(f"module.a.{VM}.this", Action.DELETE, values={"name": "web"})
    other = change(f"module.b.{VM}.this", Action.NOTHING, values={"name": "web"})
    refused = judge(KEPT, gone, other, names=("web",))
    assert [str(found.permit) for found in refused.refused] == [f"--allow-destroy {gone.address}"]


def test_a_deposed_object_is_named_too() -> None:
    current = change("aws_instance.web", Action.NOTHING)
    deposed = change("aws_instance.web", Action.DELETE, deposed="ab12cd34")
    refused = judge(current, deposed)
    assert codes(refused) == ["E-GUARD-DESTROYS-RESOURCE"]
    assert "deposed object ab12cd34 of aws_instance.web" in refused.refused[0].detail
    assert codes(judge(current, deposed, names=("aws_instance.web",))) == []


def test_a_deposed_object_alone_is_not_the_end_of_everything() -> None:
    new = change("aws_instance.web", Action.CREATE)
    deposed = change("aws_instance.web", Action.DELETE, deposed="ab12cd34")
    assert codes(judge(new, deposed, names=("aws_instance.web",))) == []


def test_what_is_forgotten_is_shown_and_not_destroyed() -> None:
    found = judge(change("aws_instance.web", Action.FORGET))
    assert codes(found) == []
    assert [warning.kind.code for warning in found.warnings] == ["W-GUARD-FORGETS-RESOURCE"]
    assert "aws_instance.web" in found.warnings[0].detail


def test_a_plan_that_keeps_nothing_of_the_state_is_refused_for_any_provider() -> None:
    gone = [change(f"aws_instance.x[{number}]", Action.DELETE) for number in range(3)]
    found = judge(*gone, change("aws_instance.new", Action.CREATE), names=("aws_instance.x",))
    assert codes(found) == ["E-GUARD-NOTHING-IN-COMMON"]
    assert "Not one of the 3 resources" in found.refused[0].detail
    assert found.refused[0].permit is None


def test_the_only_resource_may_be_replaced_when_it_is_named() -> None:
    gone = change("aws_instance.x", Action.REPLACE)
    assert codes(judge(gone, names=("aws_instance.x",))) == []


def test_destroying_everything_still_names_each_resource() -> None:
    gone = [change("aws_instance.x", Action.DELETE), change("aws_instance.y", Action.DELETE)]
    assert codes(judge(*gone, everything=True, names=("aws_instance.x",))) == ["E-GUARD-DESTROYS-RESOURCE"]
    assert codes(judge(*gone, everything=True, names=("aws_instance.x", "aws_instance.y"))) == []


@pytest.mark.parametrize("action", [Action.DELETE, Action.REPLACE])
@pytest.mark.parametrize("everything", [False, True])
def test_nothing_of_a_protected_stack_goes_whatever_is_named(action: Action, everything: bool) -> None:
    gone = change("aws_instance.x", action)
    found = judge(KEPT, gone, names=("aws_instance.x",), protected=True, everything=everything)
    assert codes(found) == ["E-GUARD-STACK-PROTECTED"]
    assert found.refused[0].permit is None
    assert "stack.yaml" in found.refused[0].kind.remedy


def test_a_protected_stack_may_change_and_grow() -> None:
    changes = (change("aws_instance.x", Action.UPDATE), change("aws_instance.y", Action.CREATE))
    assert codes(judge(*changes, protected=True)) == []


def permits_of(verdict: Verdict) -> list[str]:
    with pytest.raises(GuardRefusedError) as caught:
        verdict.raise_refusal("stack:web")
    return [permit.name for permit in caught.value.permits]


def test_a_long_refusal_names_modules_and_resources_that_go_as_a_whole() -> None:
    whole = [change(f"module.old.aws_instance.x[{number}]", Action.DELETE) for number in range(15)]
    some = [change(f"module.new.aws_instance.x[{number}]", Action.DELETE) for number in range(10)]
    stays = change("module.new.aws_subnet.x", Action.NOTHING)
    refused = judge(stays, *whole, *some)
    names = permits_of(refused)
    assert names == ["module.new.aws_instance.x", "module.old"]
    assert codes(judge(stays, *whole, *some, names=tuple(names))) == []


def test_a_short_refusal_names_each_resource() -> None:
    gone = [change(f"aws_instance.x[{number}]", Action.DELETE) for number in range(20)]
    assert len(permits_of(judge(KEPT, *gone))) == 20


def test_a_guest_of_anything_else_than_proxmox_is_an_ordinary_resource() -> None:
    gone = change("vm.x", Action.DELETE, values={"name": "web"})
    assert [str(one.permit) for one in judge(KEPT, gone).refused] == ["--allow-destroy vm.x"]
