"""What the services of a cluster need together: BGP, DNS, the way in from outside."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.sources.cluster.resolve import DEFAULTS

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["check_services"]

HALF_BGP = Kind(
    code="E-CLUSTER-HALF-BGP",
    summary="BGP is configured only in part",
    remedy="Give all three: the address and the ASN of the router, and the ASN of the nodes; or none.",
)
BAD_ASN = Kind(
    code="E-CLUSTER-ASN",
    summary="This is not the number of an autonomous system",
    remedy="Write a number from 1 to 4294967295, as a text.",
)
DNS_TOKEN = Kind(
    code="E-CLUSTER-DNS-TOKEN",
    summary="The provider of DNS and its token do not go together",
    remedy="Give a token for `cloudflare`, and none for `none`.",
)
INGRESS = Kind(
    code="E-CLUSTER-INGRESS",
    summary="The way in from outside lacks something",
    remedy="Give `gateways.external` and use Cloudflare for DNS, or set `ingress.mode` to none.",
)
KNOWN_HOSTS = Kind(
    code="E-CLUSTER-KNOWN-HOSTS",
    summary="The SSH keys of the git host are missing",
    remedy="Give `repository.known_hosts`: what `ssh-keyscan HOST` prints, once you have compared it.",
)
DNS_SERVICE = Kind(
    code="E-CLUSTER-DNS-SERVICE",
    summary="The address of the DNS service is not in the network of services",
    remedy="Choose an address in that network, or a network of at least 16 addresses.",
)
_BGP = ("cilium_bgp_router_addr", "cilium_bgp_router_asn", "cilium_bgp_node_asn")
_HIGHEST_ASN = 2**32 - 1
# Those whose SSH keys everyone has.
_KNOWN_SSH_HOSTS = ("github.com", "gitlab.com", "codeberg.org")
_DNS_SERVICE = 10


def check_services(read: ClusterInput, found: Diagnostics) -> None:
    """Refuse what is configured only in part."""
    _check_bgp(read, found)
    if read.tables:
        _check_dns(read, found)
        _check_git_host(read, found)
        _check_dns_service(read, found)


def _check_bgp(read: ClusterInput, found: Diagnostics) -> None:
    given = [name for name in _BGP if read.places.has(name)]
    missing = [read.places.name(name) for name in _BGP if name not in given]
    if given and missing:
        detail = f"`{read.places.name(given[0])}` has no {' and no '.join(f'`{name}`' for name in missing)}."
        found.add(HALF_BGP, detail, read.places.key_place(given[0]))
    for name in _BGP[1:]:
        asn = read.given.get(name)
        if isinstance(asn, str) and not (asn.isascii() and asn.isdigit() and 1 <= int(asn) <= _HIGHEST_ASN):
            found.add(BAD_ASN, f"`{read.places.name(name)}` is not such a number.", read.places.place(name))


def _check_dns(read: ClusterInput, found: Diagnostics) -> None:
    """Hold DNS against its token, and the way in against both."""
    main = read.places.main
    if any(table not in read.tables for table in ("dns", "ingress") if table in main.data):
        return
    provider = _find(read, "dns", "provider") or "cloudflare"
    has_token = "cloudflare_token" in read.secret_names
    if (provider == "cloudflare") != has_token and ("dns" in main.data or has_token):
        what = "has no token" if provider == "cloudflare" else "has a token"
        found.add(DNS_TOKEN, f"`dns.provider` is {provider} and {what}.", main.place(["dns"]))
    mode = _find(read, "ingress", "mode") or ("cloudflare-tunnel" if provider == "cloudflare" else "none")
    if mode == "none" or not ("dns" in main.data or "ingress" in main.data):
        return
    if provider != "cloudflare":
        found.add(
            INGRESS, f"`ingress.mode` is {mode}, and `dns.provider` {provider}.", main.place(["ingress"])
        )
    if not read.places.has("cloudflare_gateway_addr"):
        detail = f"`ingress.mode` is {mode}, and `gateways.external` is missing."
        found.add(INGRESS, detail, main.place(["ingress" if "ingress" in main.data else "gateways"]))


def _check_git_host(read: ClusterInput, found: Diagnostics) -> None:
    url = str(_find(read, "repository", "url") or "")
    host = url.removeprefix("ssh://git@").partition("/")[0].partition(":")[0]
    is_known = host in _KNOWN_SSH_HOSTS or bool(_find(read, "repository", "known_hosts"))
    if url.startswith("ssh://") and not is_known:
        where = read.places.main.place(["repository", "url"])
        found.add(KNOWN_HOSTS, f"`repository.url` leads to {host} over SSH.", where)


def _check_dns_service(read: ClusterInput, found: Diagnostics) -> None:
    if read.is_wrong("cluster_svc_cidr"):
        return
    network = IPv4Network(read.fields.cluster_svc_cidr or DEFAULTS["cluster_svc_cidr"])
    said = _find(read, "kubernetes", "coredns_addr")
    highest = 2**32 - 1
    address = IPv4Address(said or min(int(network.network_address) + _DNS_SERVICE, highest))
    if address not in network:
        where = read.places.main.place(["kubernetes", "coredns_addr" if said else "svc_cidr"])
        found.add(DNS_SERVICE, f"{address} is not in {network}.", where)


def _find(read: ClusterInput, table: str, key: str) -> Any:
    found = read.tables.get(table)
    return found.get(key) if isinstance(found, dict) else None
