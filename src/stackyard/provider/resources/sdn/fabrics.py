"""What fabrics and their nodes have in common. Proxmox reads them as they are written, never as pending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import parse_address, parse_interface
from stackyard.clients import proxmox
from stackyard.provider.checks import is_address, is_cidr
from stackyard.provider.crud import Collection
from stackyard.provider.fields import NUMBER, TEXT, Field, Form
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.resources.sdn.pending import SDN_ID, check_names, check_type
from stackyard.provider.schema import Rule
from stackyard.provider.values import get_known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stackyard.provider.values import Object

__all__ = [
    "FABRICS",
    "FABRIC_FIELDS",
    "FABRIC_NODES",
    "NODE_FIELDS",
    "make_fabric",
    "make_fabric_node",
]

FABRICS = "/cluster/sdn/fabrics/fabric"
FABRIC_NODES = "/cluster/sdn/fabrics/node"


def _write_interfaces(names: Sequence[str]) -> list[str]:
    return [f"name={name}" for name in sorted(names)]


def _read_interfaces(interfaces: Sequence[str]) -> list[str]:
    """Return the interfaces of a node; what else is set for one of them stands after its name."""
    return sorted(str(text).removeprefix("name=") for text in interfaces)


_INTERFACES = Form(write=_write_interfaces, read=_read_interfaces)
# Proxmox shortens addresses, and drops the host bits of a new fabric's network, but not of a changed one.
_NETWORK = Form(write=lambda prefix: str(parse_interface(prefix).network), read=str)
_ADDRESS = Form(write=lambda address: str(parse_address(address)), read=str)
_ADDRESSES = ("ip_prefix", "ip6_prefix", "ip", "ip6")
_PREFIX = Field(attribute="ip_prefix", form=_NETWORK)
_IP = Field(attribute="ip", form=_ADDRESS)
_NAMES = Field(attribute="interface_names", key="interfaces", form=_INTERFACES, off=[])
FABRIC_FIELDS: Mapping[str, Sequence[Field]] = {
    "openfabric": (
        _PREFIX,
        Field(attribute="ip6_prefix", form=_NETWORK),
        Field(attribute="csnp_interval", form=NUMBER),
        Field(attribute="hello_interval", form=NUMBER),
    ),
    "ospf": (_PREFIX, Field(attribute="area", form=TEXT, clears=False)),
}
NODE_FIELDS: Mapping[str, Sequence[Field]] = {
    "openfabric": (_NAMES, _IP, Field(attribute="ip6", form=_ADDRESS)),
    "ospf": (_NAMES, _IP),
}


def make_fabric(protocol: str) -> Resource:
    """Return the resource of the fabrics of a protocol."""

    def own_state(known: Object, found: Mapping[str, Any]) -> Object:
        check_type(f"The fabric {known['id']}", found, "protocol", protocol)
        return _as_spelled(known, found)

    return Collection(
        path=FABRICS,
        key="id",
        named={"protocol": protocol},
        fields=FABRIC_FIELDS[protocol],
        own_state=own_state,
        filtered=True,
        unset_as_array=True,
    ).resource(
        both_names(f"sdn_fabric_{protocol}"),
        rules={
            "id": Rule(replace=True, check=SDN_ID),
            **_address_rules(FABRIC_FIELDS[protocol]),
        },
        validate=None if protocol == "ospf" else _check_either("ip_prefix", "ip6_prefix"),
    )


def make_fabric_node(protocol: str) -> Resource:
    """Return the resource of the nodes in fabrics of a protocol."""

    def own_state(known: Object, found: Mapping[str, Any]) -> Object:
        check_type(f"The node {_identify_node(known)}", found, "protocol", protocol)
        return {
            "interface_names": _read_interfaces(found.get("interfaces") or ()),
            **_as_spelled(known, found),
        }

    return Collection(
        path=lambda state: f"{FABRIC_NODES}/{proxmox.quote(state['fabric_id'])}",
        key="node_id",
        attribute="node_id",
        identity=_identify_node,
        named={"protocol": protocol},
        fields=NODE_FIELDS[protocol],
        own_state=own_state,
        filtered=True,
        unset_as_array=True,
    ).resource(
        both_names(f"sdn_fabric_node_{protocol}"),
        identify=_parse_node_id,
        rules={
            "fabric_id": Rule(replace=True, check=SDN_ID),
            "node_id": Rule(replace=True),
            "interface_names": Rule(check=check_names),
            **_address_rules(NODE_FIELDS[protocol]),
        },
        validate=None if protocol == "ospf" else _check_either("ip", "ip6"),
    )


def _address_rules(fields: Sequence[Field]) -> dict[str, Rule]:
    checks = {_NETWORK: is_cidr, _ADDRESS: is_address}
    return {
        field.attribute: Rule(check=checks[field.form], same=_same_network)
        for field in fields
        if field.form in checks
    }


def _identify_node(state: Mapping[str, Any]) -> str:
    return f"{state['fabric_id']}/{state['node_id']}"


def _parse_node_id(given: str) -> Object:
    fabric, _, node = given.partition("/")
    if not fabric or not node:
        raise ImportIdError(f"The id of a fabric's node has the form FABRIC/NODE, and {given!r} does not.")
    return {"id": given, "fabric_id": fabric, "node_id": node}


def _check_either(first: str, second: str) -> Callable[[Object], Iterator[Problem]]:
    def check(config: Object) -> Iterator[Problem]:
        if config.get(first) is None and config.get(second) is None:
            yield Problem(path=(first,), detail=f"At least one of `{first}` and `{second}` is needed.")

    return check


def _as_spelled(known: Object, found: Mapping[str, Any]) -> Object:
    """Return the addresses as the configuration spells them, where they are the same ones."""
    return {
        name: known[name]
        for name in _ADDRESSES
        if found.get(name) is not None
        and get_known(known, name) is not None
        and _same_network(known[name], found[name])
    }


def _same_network(one: Any, other: Any) -> bool:
    try:
        return parse_interface(one).network == parse_interface(other).network
    except ValueError:
        return False
