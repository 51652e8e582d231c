"""A cluster of two nodes with objects of as many sections of `hypervisors/` as there are, made by hand."""

from __future__ import annotations

import base64
from typing import Any

from pvelab.seeds import STOCK_STORAGES, Seed, SeedCall, SeedGuest

__all__ = ["SEED"]


def post(path: str, /, **parameters: Any) -> SeedCall:
    return SeedCall(method="POST", path=path, parameters=_named(parameters))


def put(path: str, /, **parameters: Any) -> SeedCall:
    return SeedCall(method="PUT", path=path, parameters=_named(parameters))


def _named(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("__", "-"): value for key, value in parameters.items()}


_ACCESS = (
    post("/access/groups", groupid="ops", comment="Operators"),
    post("/access/roles", roleid="Starter", privs="VM.Audit,VM.PowerMgmt"),
    post(
        "/access/domains",
        realm="house",
        type="ldap",
        server1="10.0.0.2",
        base_dn="dc=example,dc=com",
        user_attr="uid",
        comment="Everybody",
        verify=1,
        mode="ldaps",
    ),
    post(
        "/access/domains", realm="sso", type="openid", issuer__url="https://sso.example.com", client__id="pve"
    ),
    post("/access/domains", realm="ad", type="ad", server1="10.0.0.3", domain="EXAMPLE"),
    post("/access/users", userid="anna@pve", groups="ops", firstname="Anna", email="anna@example.com"),
    post("/access/users", userid="old@pve", enable=0, expire=1893456000, comment='Gone "${soon}"'),
    put("/access/acl", path="/vms", groups="ops", roles="PVEVMAdmin"),
    put("/access/acl", path="/", users="anna@pve", roles="Starter", propagate=0),
    post("/access/users/anna@pve/token/ci"),
    put("/access/acl", path="/vms", tokens="anna@pve!ci", roles="PVEAuditor"),
)
_STORAGE = (
    post(
        "/storage",
        storage="nas",
        type="nfs",
        server="10.0.0.9",
        export="/volume1",
        content="backup,iso",
        prune__backups="keep-last=3,keep-weekly=4",
        options="vers=4.2",
    ),
    post(
        "/storage",
        storage="share",
        type="cifs",
        server="10.0.0.9",
        share="pve",
        username="pve",
        password="told-to-nobody",
        content="backup",
    ),
    post(
        "/storage",
        storage="vault",
        type="pbs",
        server="10.0.0.8",
        datastore="main",
        username="pve@pbs",
        password="told-to-nobody-either",
        fingerprint=":".join(["ab"] * 32),
    ),
    post("/storage", storage="butter", type="btrfs", path="/butter", content="images"),
    post("/storage", storage="vg", type="lvm", vgname="vg0", content="images", shared=1),
    post(
        "/storage", storage="attic", type="dir", path="/mnt/attic", content="backup", disable=1, nodes="pve2"
    ),
)
_CLUSTER = (
    put(
        "/cluster/options",
        keyboard="de",
        description="The house.\nAsk Anna.",
        bwlimit="clone=1000,move=2000",
        **{"next-id": "lower=200,upper=900"},
        migration="type=insecure,network=10.0.0.0/24",
        max_workers=4,
    ),
    post("/pools", poolid="lab", comment="Tests"),
    post("/pools", poolid="quiet"),
    post("/cluster/metrics/server/influx", type="influxdb", server="10.0.0.7", port=8089),
    post(
        "/cluster/metrics/server/graphite",
        type="graphite",
        server="10.0.0.7",
        port=2003,
        disable=1,
        path="pve",
        proto="tcp",
    ),
    post(
        "/cluster/mapping/pci",
        id="gpu",
        description="The card",
        map=["id=10de:1b80,iommugroup=12,node=pve1,path=0000:01:00.0"],
    ),
    post("/cluster/mapping/usb", id="stick", map=["id=0658:0200,node=pve1", "id=0658:0200,node=pve2"]),
    post("/cluster/mapping/dir", id="media", map=["node=pve1,path=/mnt/media"]),
    post(
        "/cluster/backup",
        id="nightly",
        schedule="02:00",
        storage="nas",
        all=1,
        mode="snapshot",
        compress="zstd",
        prune__backups="keep-last=7",
        mailto="anna@example.com",
    ),
    post(
        "/cluster/backup",
        id="weekly",
        schedule="sun 03:00",
        storage="nas",
        vmid="4200,4201",
        enabled=0,
        notes__template="{{guestname}}",
        fleecing="enabled=1,storage=local-lvm",
    ),
    post(
        "/cluster/replication",
        id="4200-0",
        target="pve2",
        type="local",
        schedule="*/30",
        rate=10.5,
        comment="often",
    ),
    post(
        "/cluster/acme/account",
        name="default",
        contact="anna@example.com",
        directory="https://acme-staging-v02.api.letsencrypt.org/directory",
        tos_url="https://letsencrypt.org/documents/LE-SA-v1.4-April-3-2024.pdf",
    ),
    post(
        "/cluster/acme/plugins",
        id="cloud",
        type="dns",
        api="cf",
        data=base64.b64encode(b"CF_Token=told-to-nobody").decode(),
    ),
    post("/cluster/acme/plugins", id="manual", type="dns", api="acmedns", validation__delay=60),
)
_SDN = (
    post("/cluster/sdn/fabrics/fabric", id="mesh", protocol="openfabric", ip_prefix="10.9.0.0/24"),
    post("/cluster/sdn/controllers", controller="evpnc", type="evpn", asn=65000, peers="10.0.0.11,10.0.0.12"),
    post("/cluster/sdn/zones", zone="simple", type="simple", dhcp="dnsmasq", ipam="pve"),
    post("/cluster/sdn/zones", zone="office", type="vlan", bridge="vmbr0", nodes="pve1,pve2", mtu=1450),
    post("/cluster/sdn/zones", zone="far", type="vxlan", peers="10.0.0.11,10.0.0.12"),
    post("/cluster/sdn/zones", zone="outer", type="qinq", bridge="vmbr0", tag=20),
    post("/cluster/sdn/zones", zone="big", type="evpn", controller="evpnc", **{"vrf-vxlan": 4000}),
    post("/cluster/sdn/vnets", vnet="vnet1", zone="simple", alias="for guests"),
    post("/cluster/sdn/vnets", vnet="vnet2", zone="office", tag=30, vlanaware=1),
    post(
        "/cluster/sdn/vnets/vnet1/subnets",
        subnet="10.5.0.0/24",
        type="subnet",
        gateway="10.5.0.1",
        snat=1,
        dhcp__range="start-address=10.5.0.50,end-address=10.5.0.99",
    ),
    put("/cluster/sdn"),
)
_FIREWALL = (
    post("/cluster/firewall/aliases", name="lan", cidr="10.0.0.0/8", comment="the house"),
    post("/cluster/firewall/ipset", name="admins"),
    post("/cluster/firewall/ipset/admins", cidr="10.0.0.5"),
    post("/cluster/firewall/ipset/admins", cidr="10.0.0.6", nomatch=1, comment="not him"),
    post("/cluster/firewall/groups", group="web", comment="for all"),
    post("/cluster/firewall/groups/web", type="in", action="ACCEPT", macro="HTTPS", enable=1),
    post(
        "/cluster/firewall/groups/web",
        type="in",
        action="ACCEPT",
        proto="tcp",
        dport="8080:8090",
        enable=0,
        log="info",
    ),
    post("/cluster/firewall/rules", type="group", action="web", enable=1),
    post(
        "/cluster/firewall/rules",
        type="in",
        action="ACCEPT",
        source="+admins",
        proto="tcp",
        dport="8006",
        enable=1,
        comment="the web interface",
        pos=0,
    ),
    put(
        "/cluster/firewall/options",
        enable=1,
        policy_in="DROP",
        log_ratelimit="enable=1,burst=10,rate=5/second",
    ),
    post("/nodes/pve1/firewall/rules", type="in", action="ACCEPT", macro="Ping", enable=1),
    put("/nodes/pve1/firewall/options", log_level_in="info", nf_conntrack_max=300000),
)
_NODE = (
    post(
        "/nodes/pve1/network",
        iface="bond0",
        type="bond",
        slaves="eno2 eno3",
        bond_mode="802.3ad",
        autostart=1,
        bond_xmit_hash_policy="layer2+3",
    ),
    post(
        "/nodes/pve1/network",
        iface="vmbr1",
        type="bridge",
        bridge_ports="bond0",
        bridge_vlan_aware=1,
        autostart=1,
        comments="for guests",
    ),
    post("/nodes/pve1/network", iface="vmbr2", type="bridge", cidr="10.7.0.1/24", autostart=0, mtu=9000),
    post("/nodes/pve1/network", iface="vmbr1.30", type="vlan", cidr="10.30.0.1/24", autostart=1),
    put("/nodes/pve1/network"),
    put("/nodes/pve1/dns", search="example.com", dns1="10.0.0.1", dns2="1.1.1.1"),
    put("/nodes/pve1/time", timezone="Europe/Berlin"),
    put(
        "/nodes/pve1/config",
        description="# Rack 1\nLeft side",
        acme="account=default,domains=pve1.example.com",
    ),
    post("/nodes/pve1/certificates/acme/certificate"),
    put("/nodes/pve1/apt/repositories", handle="no-subscription"),
)
SEED = Seed(
    name="cluster",
    storages={**STOCK_STORAGES, "tank": {"type": "zfspool", "pool": "tank", "content": "images,rootdir"}},
    guests=(
        SeedGuest(vmid=4200, node="pve1", config={"name": "web", "scsi0": "tank:vm-4200-disk-0,size=1G"}),
        SeedGuest(vmid=4201, node="pve1"),
    ),
    calls=(*_ACCESS, *_STORAGE, *_NODE[:5], *_CLUSTER, *_SDN, *_FIREWALL, *_NODE[5:]),
)
