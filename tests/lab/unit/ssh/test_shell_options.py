"""The words of Proxmox's commands are read as its own parser reads them."""

from __future__ import annotations

from typing import Any

import pytest

from pvelab.server import facts
from pvelab.ssh.programs.cli.model import UsageProblem
from pvelab.ssh.programs.cli.options import read_options

FACTS = facts.load()
VM = FACTS["PUT /nodes/{node}/qemu/{vmid}/config"].parameters
ACL = FACTS["PUT /access/acl"].parameters


def read(words: str, **options: Any) -> dict[str, Any]:
    chosen = {"arguments": ("vmid",), "fixed": {"node": "pve1"}, **options}
    return read_options(chosen.pop("declared", VM), words.split(), **chosen)


@pytest.mark.parametrize(
    "words",
    [
        "100 --memory 512",
        "100 -memory 512",
        "--memory=512 100",
        "-memory=512 100",
        "100 --MEMORY 512",
        "--memor 512 100",
        "--memory 512 -- 100",
    ],
)
def test_an_option_may_be_written_in_any_way(words: str) -> None:
    assert read(words) == {"vmid": "100", "memory": "512", "node": "pve1"}


def test_a_switch_needs_no_value() -> None:
    assert read("100 --onboot --numa 0 --kvm=off") == {
        "vmid": "100",
        "onboot": 1,
        "numa": 0,
        "kvm": 0,
        "node": "pve1",
    }
    with pytest.raises(UsageProblem, match="unable to parse boolean option"):
        read("100 --onboot maybe")


def test_a_value_may_begin_with_a_dash() -> None:
    assert read("100 --args -no-hpet")["args"] == "-no-hpet"


def test_a_list_is_given_with_commas_or_by_repeating_the_option() -> None:
    for words in ("/ --users a@pve,b@pve --roles X", "/ --users a@pve --users b@pve --roles X"):
        given = read(words, declared=ACL, arguments=("path",), fixed={"delete": 0})
        assert given == {"path": "/", "users": "a@pve,b@pve", "roles": "X", "delete": 0}


def test_numbered_options_are_known_by_their_number() -> None:
    assert read("100 --scsi0 local:1 -net31 virtio")["scsi0"] == "local:1"
    with pytest.raises(UsageProblem) as caught:
        read("100 --net32 virtio")
    assert caught.value.notes == ("Unknown option: net32",)


@pytest.mark.parametrize(
    ("words", "text", "note"),
    [
        ("100 --nothing 1", "unable to parse option", "Unknown option: nothing"),
        ("100 --cp 1", "unable to parse option", "Option cp is ambiguous (cpu, cpulimit, cpuunits)"),
        ("100 --memory", "unable to parse option", "Option memory requires an argument"),
        ("--memory 1", "not enough arguments", None),
        ("100 200", "too many arguments", None),
    ],
)
def test_what_cannot_be_read_is_refused(words: str, text: str, note: str | None) -> None:
    with pytest.raises(UsageProblem, match=text) as caught:
        read(words)
    assert caught.value.notes == (() if note is None else (note,))


def test_the_last_argument_takes_all_words_that_are_left() -> None:
    declared = {"vmid": {"type": "integer"}, "extra-args": {"type": "array", "optional": True}}
    given = read("100 -- ls -l /", declared=declared, arguments=("vmid", "extra-args"), fixed={})
    assert given == {"vmid": "100", "extra-args": ["ls", "-l", "/"]}


def test_plain_arguments_can_be_one_list() -> None:
    declared = FACTS["POST /nodes/{node}/vzdump"].parameters
    given = read("100 101 --mode stop", declared=declared, arguments=(), fixed={}, listed="vmid")
    assert given == {"vmid": "100,101", "mode": "stop"}
