"""What `cluster remove-node` says where VMs that stay are not well."""

from __future__ import annotations

from typing import Any

from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.cli.runs.clusters.remove_node import make_result
from stackyard.cli.runs.stacks.apply_one import AppliedStack


def applied(**changes: Any) -> AppliedStack:
    unused: Any = None
    return AppliedStack(run=unused, made=unused, **changes)


def test_a_vm_that_is_not_up_is_a_failure_with_its_reason() -> None:
    down, problem = StackyardError("k8s-4 is not up."), StackyardError("The inventory is not written.")
    result = make_result("home", [], applied(down=(down,), problem=problem))
    assert result.status is ExitStatus.FAILED
    details = [one["detail"] for one in result.document["problems"]]
    assert details == ["k8s-4 is not up.", "The inventory is not written."]


def test_without_problems_and_without_vms_it_is_done() -> None:
    for found in (applied(), None):
        result = make_result("home", [], found)
        assert result.status is ExitStatus.DONE
        assert result.document["vms_changed"] is False
