"""Ports that the readers of a published inventory look up by name: what holds where the object is silent.

They are the usual ports of the programs that these names represent. An object that has `constants` of its own
changes single ones and adds others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["constants_of"]

_SERVICES = {
    "agentgateway_admin": 15000,
    "agentgateway_metrics": 15020,
    "agentgateway_proxy": 8080,
    "apt_cacher_ng": 3142,
    "authelia_portal": 9091,
    "blackbox_exporter": 9115,
    "cribl_edge_api": 9420,
    "cribl_s2s": 10300,
    "cribl_stream_api": 9000,
    "grafana_web": 3000,
    "haproxy_stats": 8404,
    "homeassistant_web": 8123,
    "mssql": 1433,
    "n8n_web": 5678,
    "nautobot_web": 8080,
    "node_exporter": 9100,
    "ntp": 123,
    "object_storage_console": 9001,
    "object_storage_s3": 9000,
    "openbao_api": 8200,
    "openbao_cluster": 8201,
    "openproject_web": 80,
    "otel_traces_grpc": 4317,
    "otel_traces_http": 4318,
    "phpipam_web": 80,
    "postgres_default": 5432,
    "prometheus_web": 9090,
    "proxmox_web": 8006,
    "redis_default": 6379,
    "registry": 5000,
    "satellite_exporter": 9817,
    "smokeping_prober": 9374,
    "speedtest_exporter": 9798,
    "splunk_forwarding": 9997,
    "splunk_hec": 8088,
    "splunk_mgmt": 8089,
    "splunk_web": 8000,
    "technitium_web": 5380,
    "vikunja_web": 3456,
    "zammad_web": 8080,
}
# Who sends: the port that devices use, the one behind it, and where Splunk puts what arrives.
_SYSLOG: dict[str, dict[str, Any]] = {
    "unifi": {"standard": 514, "high": 1514, "index": "unifi", "sourcetype": "ubiquiti:unifi"},
    "palo_alto": {"standard": 515, "high": 1515, "index": "firewall", "sourcetype": "pan:firewall"},
    "cisco_asa": {"standard": 516, "high": 1516, "index": "firewall", "sourcetype": "cisco:asa"},
    "linux": {"standard": 517, "high": 1517, "index": "os", "sourcetype": "syslog"},
    "windows": {"standard": 518, "high": 1518, "index": "os", "sourcetype": "syslog"},
}
_FAMILIES: dict[str, dict[str, Any]] = {
    "service_ports": _SERVICES,
    "syslog_port_map": _SYSLOG,
    "netflow_ports": {"unifi": 2055},
    "notification_ports": {"mailpit_smtp": 1025, "mailpit_web": 8025, "ntfy_http": 8080},
    "vector_db_ports": {"qdrant_http": 6333, "qdrant_grpc": 6334},
    "media_ports": {
        "plex_web": 32400,
        "prowlarr_web": 9696,
        "qbittorrent_web": 8080,
        "radarr_web": 7878,
        "seerr_web": 5055,
        "sonarr_web": 8989,
    },
    "ingress_ports": {"keepalived_vrid": 51},
    # A site's own; readers go through them, and must find them.
    "ai_log_ports": {},
    "ai_log_routing": {},
    "serving": {},
}


def constants_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constants of an object: those that are written over those that hold without.

    Args:
        written: Its `constants`.
    """
    found: dict[str, Any] = dict(_FAMILIES)
    for name, family in written.items():
        found[name] = {**found.get(name, {}), **family}
    # The older form of the same: the ports behind, and the one that devices use without being told another.
    rows = {name: row for name, row in found["syslog_port_map"].items() if isinstance(row, dict)}
    behind = {name: row["high"] for name, row in rows.items() if "high" in row}
    first = rows.get("unifi", {}).get("standard", 514)
    found["syslog_ports"] = {"default": first, **behind, **written.get("syslog_ports", {})}
    return found
