"""`stackyard infra`: what is for OpenTofu reaches it as it was written."""

from __future__ import annotations

import pytest

from stackyard.cli.commands.infra.engine import output
from stackyard.cli.commands.infra.path import apply_auto, destroy, plan

VM = 'proxmox_virtual_environment_vm.talos_node["k8s-0"]'


@pytest.mark.parametrize("dashes", [(), ("--",)], ids=["plain", "after-dashes"])
@pytest.mark.parametrize(
    "words",
    [
        (f"-target={VM}",),
        ("-target", VM),
        (f"-replace={VM}", "-refresh=false"),
        ("-refresh-only",),
        ("-var=proxmox_node=pve1",),
    ],
)
def test_a_flag_of_the_engine_is_not_read_as_options_of_one_letter(
    words: tuple[str, ...], dashes: tuple[str, ...]
) -> None:
    for command in (plan, apply_auto, destroy):
        read = command.make_context("infra", [*dashes, *words]).params
        assert read["engine_words"] == words


def test_options_of_ours_may_follow_flags_of_the_engine_which_keep_their_order() -> None:
    read = output.make_context("infra", ["-json", "node_vm_ids", "--cluster", "home"]).params
    assert (read["engine_words"], read["cluster"]) == (("-json", "node_vm_ids"), "home")
    read = destroy.make_context("infra", [f"-target={VM}", "-y", "--allow-destroy", "k8s-0"]).params
    assert (read["engine_words"], read["yes"]) == ((f"-target={VM}",), True)
