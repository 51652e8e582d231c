"""Servers that nodes send their metrics to."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

TEXT = """
resource "proxmox_metrics_server" "plain" {
  name   = "plain"
  server = "10.0.0.50"
  port   = 2003
  type   = "graphite"
}
resource "proxmox_virtual_environment_metrics_server" "graphite" {
  name           = "graphite"
  server         = "10.0.0.50"
  port           = 2003
  type           = "graphite"
  graphite_path  = "lab"
  graphite_proto = "tcp"
  mtu            = 1400
  timeout        = 3
  disable        = true
}
resource "proxmox_virtual_environment_metrics_server" "influx" {
  name                   = "influx"
  server                 = "10.0.0.51"
  port                   = 8086
  type                   = "influxdb"
  influx_api_path_prefix = "metrics"
  influx_bucket          = "lab"
  influx_db_proto        = "https"
  influx_max_body_size   = 1000000
  influx_organization    = "example"
  influx_token           = "first-token"
  influx_verify          = false
}
resource "proxmox_metrics_server" "hidden" {
  name                    = "hidden"
  server                  = "10.0.0.51"
  port                    = 8086
  type                    = "influxdb"
  influx_token_wo         = "hidden-canary"
  influx_token_wo_version = 1
}
resource "proxmox_metrics_server" "telemetry" {
  name                              = "telemetry"
  server                            = "10.0.0.52"
  port                              = 4318
  type                              = "opentelemetry"
  opentelemetry_proto               = "http"
  opentelemetry_path                = "/v1/lab"
  opentelemetry_timeout             = 7
  opentelemetry_verify_ssl          = false
  opentelemetry_max_body_size       = 20000
  opentelemetry_compression         = "none"
}
data "proxmox_metrics_server" "plain" { name = proxmox_metrics_server.plain.name }
data "proxmox_virtual_environment_metrics_server" "telemetry" {
  name       = "telemetry"
  depends_on = [proxmox_metrics_server.telemetry]
}
output "servers" {
  value     = [data.proxmox_metrics_server.plain, data.proxmox_virtual_environment_metrics_server.telemetry]
  sensitive = true
}
"""
UPDATE = {
    'graphite_path  = "lab"': "",
    "mtu            = 1400": "mtu = 1300",
    "disable        = true": "",
    'influx_bucket          = "lab"': "",
    'influx_token           = "first-token"': 'influx_token = "second-token"',
    "influx_verify          = false": "",
    "influx_token_wo_version = 1": "influx_token_wo_version = 2",
    "opentelemetry_timeout             = 7": "opentelemetry_timeout = 8",
    'opentelemetry_compression         = "none"': "",
}
LONG = "proxmox_virtual_environment_metrics_server"
SHORT = "proxmox_metrics_server"


async def _drift(api: proxmox.Client) -> None:
    path = "/cluster/metrics/server"
    await api.put(f"{path}/graphite", {"server": "10.0.0.50", "port": 2004, "delete": "path"})
    await api.put(f"{path}/influx", {"server": "10.0.0.51", "port": 8086, "bucket": "by-hand"})
    await api.put(f"{path}/telemetry", {"server": "10.0.0.9", "port": 4318})


async def _remove(api: proxmox.Client) -> None:
    await api.delete("/cluster/metrics/server/plain")


CASES = (
    Case(
        id="metrics",
        kinds=("metrics_server",),
        sources=("metrics_server",),
        text=TEXT,
        update=UPDATE,
        updated=(f"{LONG}.graphite", f"{LONG}.influx", f"{SHORT}.hidden", f"{SHORT}.telemetry"),
        replace={
            'name   = "plain"': 'name   = "other"',
            'type   = "graphite"': 'type = "influxdb"',
        },
        replaced=(f"{SHORT}.plain",),
        imports={f"{SHORT}.plain": "plain", f"{LONG}.graphite": "graphite", f"{LONG}.influx": "influx"},
        # A token is nowhere to be read.
        unread=(f"{LONG}.influx",),
        drift=_drift,
        drifted=(f"{LONG}.graphite", f"{LONG}.influx", f"{SHORT}.telemetry"),
        remove=_remove,
        removed=(f"{SHORT}.plain",),
        hidden=("/nodes",),
        secret="hidden-canary",
    ),
)
