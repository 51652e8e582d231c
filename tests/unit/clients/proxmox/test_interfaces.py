"""What a guest reports of its network is read as data of one form, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackyard.base.addresses import parse_address, usable_address
from stackyard.clients.proxmox import GuestReportError, agent_interfaces, container_interfaces
from stackyard.clients.proxmox.interfaces import MOST_ADDRESSES, MOST_INTERFACES

TEMPLATE = "2001:db8::1%{{ lookup('pipe','id') }}"


def agent(*addresses: Any, **more: Any) -> dict[str, Any]:
    return {"result": [{"name": "eth0", "ip-addresses": [{"ip-address": one} for one in addresses], **more}]}


def test_addresses_are_printed_from_what_was_parsed() -> None:
    (found,) = agent_interfaces(
        agent("2001:DB8:0:0::1", "192.0.2.1", **{"hardware-address": "aa:bb:cc:00:01:02"})
    )
    assert (found.of_version(6), found.of_version(4)) == (["2001:db8::1"], ["192.0.2.1"])
    assert (found.name, found.mac) == ("eth0", "AA:BB:CC:00:01:02")


@pytest.mark.parametrize(
    "text", [TEMPLATE, "fe80::1%eth0", "192.0.2.1 ", "1", "", 7, None, ["a"], "9" * 10_000]
)
def test_what_is_no_address_of_the_network_is_left_out(text: Any) -> None:
    (found,) = agent_interfaces(agent(text, "192.0.2.1"))
    assert list(found.usable()) == ["192.0.2.1"]
    assert usable_address(text) is None
    with pytest.raises(ValueError, match="address"):
        parse_address(text)


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.1", "fe80::1", "::ffff:192.0.2.1"]
)
def test_what_others_cannot_use_is_not_usable(text: str) -> None:
    assert usable_address(text) is None


def test_a_container_of_an_older_version_reports_one_address_of_each_family() -> None:
    (found,) = container_interfaces(
        [{"name": "eth0", "hwaddr": "02:00:00:00:00:01", "inet": "192.0.2.1/24", "inet6": f"{TEMPLATE}/64"}]
    )
    assert (list(found.usable()), found.mac) == (["192.0.2.1"], "02:00:00:00:00:01")
    assert container_interfaces(None) == ()


@pytest.mark.parametrize(
    "answer",
    [
        [],
        7,
        "text",
        {"result": {"error": {}}},
        {"result": "text"},
        {"result": [1]},
        {"result": [{"ip-addresses": "text"}]},
        {"result": [{"ip-addresses": ["192.0.2.1"]}]},
        {"result": [{}] * (MOST_INTERFACES + 1)},
        agent(*["192.0.2.1"] * (MOST_ADDRESSES + 1)),
    ],
)
def test_a_report_of_another_form_or_size_is_refused_with_a_reason(answer: Any) -> None:
    with pytest.raises(GuestReportError, match=r"its agent (does not|reports too many)"):
        agent_interfaces(answer)


def test_names_and_hardware_addresses_of_other_types_are_empty() -> None:
    (found,) = agent_interfaces(
        {"result": [{"name": 7, "hardware-address": "{{ x }}", "ip-addresses": None}]}
    )
    assert (found.name, found.mac, found.addresses) == ("", "", ())


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "result",
                    "ip-addresses",
                    "ip-address",
                    "inet",
                    "inet6",
                    "name",
                    "hwaddr",
                    "hardware-address",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(_ANYTHING)
def test_whatever_is_reported_is_read_or_refused(answer: Any) -> None:
    for read in (agent_interfaces, container_interfaces):
        try:
            found = read(answer)
        except GuestReportError:
            continue
        assert all("%" not in address for one in found for address in one.usable())
