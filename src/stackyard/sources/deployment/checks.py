"""What no schema can say: names that must exist, ids and addresses that must be one guest's alone.

All of it is reported at once, each finding with its place.
"""

from __future__ import annotations

import collections
import ipaddress
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.sources.deployment.generators import LARGEST_OCTET, SMALLEST_OCTET
from stackyard.sources.deployment.model import affinity_groups
from stackyard.sources.deployment.words import find_near_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.deployment.model import Guest, ParsedDeployment
    from stackyard.sources.deployment.text import ObjectText, Path

__all__ = ["SECRET", "check_references"]

TWICE = Kind(
    code="E-DEPLOYMENT-TWICE",
    summary="What belongs to one guest is claimed by two",
    remedy="Give one of them another; Proxmox takes each vm_id once in the whole cluster.",
)
NOT_THERE = Kind(
    code="E-DEPLOYMENT-REFERENCE",
    summary="A name is used that the object does not have",
    remedy="Correct the name, or add what it names.",
)
ADDRESS = Kind(
    code="E-DEPLOYMENT-ADDRESS",
    summary="An address does not fit its network",
    remedy="Pin a free address of the network with `ip_config`, or let the guest have `dhcp`.",
)
PLACEMENT = Kind(
    code="E-DEPLOYMENT-PLACEMENT",
    summary="A guest cannot be where it is put",
    remedy="Put the guest on another node, or change the node.",
)
SECRET = Kind(
    code="E-DEPLOYMENT-SECRET",
    summary="There is a secret in the object",
    remedy="Take it out, change it, and keep it in the SOPS layer (`secrets` in deployment.yaml).",
)
NO_EFFECT = Kind(
    code="W-DEPLOYMENT-NO-EFFECT",
    summary="A guest has a setting without effect",
    remedy="Add what is missing, or take it out.",
    severity=Severity.WARNING,
)
_LOCAL_STORES = ("local", "local-zfs")


class _Checks:
    """All cross-checks of one object."""

    def __init__(self, understood: ParsedDeployment, document: ObjectText, found: Diagnostics) -> None:
        self._understood = understood
        self._scope = understood.scope
        self._document = document
        self._found = found

    def _add(self, kind: Kind, text: str, path: Path) -> None:
        self._found.add(kind, text, self._document.place(path))

    def run(self) -> None:
        for guest in self._understood.guests:
            self._references(guest)
            self._address(guest)
        self._affinity()
        self._once()
        self._networks()
        self._generators()
        self._nodes()

    # --- Names

    def _known(self, what: str, name: str, table: Iterable[str], path: Path) -> bool:
        names = list(table)
        if name in names:
            return True
        meant = find_near_word(name, names)
        hint = (
            f" Did you mean `{meant}`?" if meant else f" There is {', '.join(sorted(names)[:10]) or 'none'}."
        )
        self._add(NOT_THERE, f"{what} `{name}` is not in the object.{hint}", path)
        return False

    def _references(self, guest: Guest) -> None:
        fields, path, nodes = guest.fields, guest.path, self._scope.nodes
        key = guest.key
        if guest.node in nodes:
            if nodes[guest.node].get("commissioned") is False:
                self._add(PLACEMENT, f"{key} is on {guest.node}, which is not commissioned.", path)
        else:
            self._known(f"{key}: the node", guest.node, nodes, (*path, "node_name"))
        pool = fields["pool_id"]
        if pool is not None and pool not in self._scope.get_map("pools"):
            self._known(f"{key}: the pool", pool, self._scope.get_map("pools"), (*path, "pool_id"))
        self._vlan(key, fields["vlan"], (*path, "vlan"))
        target = fields["ha_replication_target"]
        if target is not None:
            there = (*path, "ha_replication_target")
            if self._known(f"{key}: the replication target", target, nodes, there) and target == guest.node:
                self._add(PLACEMENT, f"{key} replicates to {target}, which is its own node.", there)
        self._replications(guest)
        self._firewall(guest)
        self._datastores(guest)

    def _replications(self, guest: Guest) -> None:
        """Report copies that go to a node that is none, or to the guest's own."""
        said = guest.fields["replication"]
        jobs = said if isinstance(said, list) else [said]
        for place, job in enumerate(jobs):
            target = job.get("target") if isinstance(job, dict) else job
            if isinstance(target, str):
                there = (*guest.path, "replication", *([place] if isinstance(said, list) else ()))
                what = f"{guest.key}: the replication target"
                if self._known(what, target, self._scope.nodes, there) and target == guest.node:
                    self._add(PLACEMENT, f"{guest.key} replicates to {target}, which is its own node.", there)

    def _firewall(self, guest: Guest) -> None:
        """Report a firewall that no card is behind."""
        firewall = guest.fields["firewall"]
        cards = guest.fields["network_interfaces"]
        is_off = firewall is None or (firewall.get("options") or {}).get("enabled") is False
        if not is_off and not any(card["firewall"] for card in cards):
            text = f"{guest.key} has a `firewall`, and no card of it has `firewall: true`: no rule counts."
            self._add(NO_EFFECT, text, (*guest.path, "firewall"))

    def _affinity(self) -> None:
        """Report guests that are to be kept apart, where nothing keeps them so."""
        groups = affinity_groups(self._understood.guests)
        for guest in self._understood.guests:
            name = guest.fields["ha_affinity_group"]
            if not name:
                continue
            if not guest.fields["ha"]:
                text = f"{guest.key} is in the group {name} without `ha`: no rule holds for it."
            elif len(groups[name]) == 1:
                text = f"{guest.key} is alone in the group {name}: no other guest to keep apart."
            else:
                continue
            self._add(NO_EFFECT, text, (*guest.path, "ha_affinity_group"))

    def _vlan(self, key: str, vlan: str, path: Path) -> None:
        known: Mapping[str, object] = self._scope.networks if self._scope.has_networks else self._scope.vlans
        if vlan not in known:
            self._known(f"{key}: the VLAN", vlan, known, path)

    def _datastores(self, guest: Guest) -> None:
        """Report datastores of containers that their node does not offer; an unlisted node is not judged."""
        listed = self._scope.get_map("node_storage").get(guest.node)
        if not guest.is_container or listed is None:
            return
        pools = listed.get("pools") or {}
        offered = [name for name, pool in pools.items() if isinstance(pool, dict) and pool.get("register")]
        stores = [("root_disk", guest.fields["root_disk"]["datastore_id"])]
        stores += [
            ("mount_points", m["volume"]) for m in guest.fields["mount_points"] if m["size"] is not None
        ]
        for part, store in stores:
            if store not in (*_LOCAL_STORES, *offered):
                what = f"{guest.key}: the datastore of {guest.node}"
                self._known(what, store, (*_LOCAL_STORES, *offered), (*guest.path, part))

    # --- Once

    def _once(self) -> None:
        ids: dict[object, Guest] = {}
        keys: dict[object, Guest] = {}
        hosts: dict[object, Guest] = {}
        addresses: dict[object, Guest] = {}
        for guest in self._understood.guests:
            self._claim(ids, guest.vm_id, guest, "vm_id")
            self._claim(keys, guest.key, guest, "key")
            host = (guest.fields["domain"] or "", guest.name.lower())
            self._claim(hosts, host, guest, "hostname" if guest.is_container else "name")
            address = guest.fields["address"]
            if address is not None and address != "dhcp":
                claim = (guest.fields["vlan"], address.partition("/")[0])
                self._claim(addresses, claim, guest, "ip_config")

    def _claim(self, claims: dict[object, Guest], claim: object, guest: Guest, field: str) -> None:
        other = claims.setdefault(claim, guest)
        if other is guest:
            return
        what = {"ip_config": "address", "key": "key", "vm_id": "vm_id"}.get(field, "name")
        shown = claim[1] if isinstance(claim, tuple) else claim
        text = f"The {what} {shown} is claimed by {_name_guest(other)} and by {_name_guest(guest)}."
        self._add(TWICE, text, guest.path if field == "key" else (*guest.path, field))

    # --- Addresses

    def _address(self, guest: Guest) -> None:
        fields, path = guest.fields, (*guest.path, "ip_config")
        if fields["dhcp"]:
            if guest.entry.get("dhcp") and (fields.get("ip_config") or {}).get("ipv4_address") not in (
                None,
                "dhcp",
            ):
                self._add(
                    ADDRESS, f"{guest.key} has `dhcp` and a fixed address: one of them is not meant.", path
                )
            return
        network = self._scope.networks.get(fields["vlan"])
        address = fields["address"]
        if network is None:
            return
        if address is None:
            text = f"{guest.key} has no address: vm_id {guest.vm_id} is no host number of {network}."
            self._add(ADDRESS, f"{text} A guest with a longer id needs one that is pinned.", guest.path)
            return
        try:
            ip = ipaddress.IPv4Interface(address).ip
        except ValueError:
            self._add(ADDRESS, f"{guest.key}: `{address}` is no IPv4 address with a prefix length.", path)
            return
        gateway = fields["gateway"]
        if ip not in network:
            self._add(ADDRESS, f"{guest.key}: {ip} is outside {network} of VLAN {fields['vlan']}.", path)
        elif ip in (network.network_address, network.broadcast_address):
            self._add(ADDRESS, f"{guest.key}: {ip} is no host of {network}.", path)
        elif gateway is not None and str(ip) == gateway:
            self._add(ADDRESS, f"{guest.key}: {ip} is the gateway of VLAN {fields['vlan']}.", path)

    def _networks(self) -> None:
        nets = self._scope.networks
        for name, network in nets.items():
            if network is None:
                text = self._scope.get_map("network_cidrs")[name]
                self._add(ADDRESS, f"The network of VLAN {name}, `{text}`, is none.", ("network_cidrs", name))
        for name in self._scope.get_map("network_domains"):
            if self._scope.has_networks:
                self._known("network_domains: the VLAN", name, nets, ("network_domains", name))

    # --- Generators

    def _generators(self) -> None:
        for guest in self._understood.guests:
            octet = guest.octet
            if octet is not None and not SMALLEST_OCTET <= octet <= LARGEST_OCTET:
                span = f"{SMALLEST_OCTET} to {LARGEST_OCTET}"
                self._add(ADDRESS, f"{guest.key}: the host number {octet} is not in {span}.", guest.path)
        for name, service in self._scope.get_map("node_services").items():
            for node in service["per_node"]:
                if node not in self._scope.nodes:
                    path: Path = ("node_services", name, "per_node", node)
                    self._known(f"node_services.{name}: the node", node, self._scope.nodes, path)

    # --- Nodes

    def _nodes(self) -> None:
        nodes = self._scope.nodes
        self._known("The primary node", self._scope.node, nodes, ("proxmox_node",))
        claimants = [name for name, node in nodes.items() if "storage" in (node.get("cluster_roles") or ())]
        if len(claimants) > 1:
            text = f"The role `storage` is claimed by {', '.join(claimants)}; one node has it."
            self._add(PLACEMENT, text, ("nodes", claimants[1], "cluster_roles"))
        used: collections.Counter[str] = collections.Counter()
        for guest in self._understood.guests:
            used[guest.node] += guest.fields["memory_dedicated"]
        for name, node in nodes.items():
            budget = node.get("memory_budget_mb")
            if budget is not None and used[name] > budget:
                text = (
                    f"The guests of {name} have {used[name]} MB of memory together; it may give {budget} MB."
                )
                self._add(PLACEMENT, text, ("nodes", name, "memory_budget_mb"))


def _name_guest(guest: Guest) -> str:
    kind = "container" if guest.is_container else "VM"
    return f"{'generated ' if guest.is_generated else ''}{kind} {guest.key}"


def check_references(understood: ParsedDeployment, document: ObjectText, found: Diagnostics) -> None:
    """Report every contradiction between the parts of an object.

    Args:
        understood: The object.
        document: Its text, for the places.
        found: Takes the findings.
    """
    _Checks(understood, document, found).run()
