"""Accounts and plugins of ACME, and certificates that nodes order or are given."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.base import serving
from stackyard.clients import proxmox

__all__ = ["CASES"]

LONG = "proxmox_virtual_environment_"
STAGING = "https://acme-staging-v02.api.letsencrypt.org/directory"
TERMS = "https://letsencrypt.org/documents/LE-SA-v1.5-February-24-2025.pdf"
FIRST, SECOND = (serving.make_certificate([f"{name}.example.com", "10.0.0.12"]) for name in ("one", "two"))


def _quoted(pem: bytes) -> str:
    return f"<<EOT\n{pem.decode()}EOT"


TEXT = f"""
resource "proxmox_acme_account" "plain" {{
  name      = "plain"
  contact   = "one@example.com"
  directory = "{STAGING}"
  tos       = "{TERMS}"
}}
resource "proxmox_virtual_environment_acme_account" "bound" {{
  name         = "bound"
  contact      = "two@example.com"
  directory    = "https://ca.example.com/directory"
  eab_kid      = "first-kid"
  eab_hmac_key = "first-key"
}}
resource "proxmox_acme_dns_plugin" "plain" {{
  plugin = "plain"
  api    = "cf"
  data   = {{ CF_Token = "first=token", CF_Zone_ID = "zone" }}
}}
resource "proxmox_virtual_environment_acme_dns_plugin" "full" {{
  plugin           = "full"
  api              = "pdns"
  disable          = true
  validation_delay = 120
  data_wo          = {{ PDNS_Token = "hidden" }}
  data_wo_version  = 1
}}
resource "proxmox_acme_certificate" "plain" {{
  node_name = "pve1"
  account   = proxmox_acme_account.plain.name
  domains   = [{{ domain = "pve1.example.com" }}]
}}
resource "proxmox_virtual_environment_acme_certificate" "full" {{
  node_name = "pve2"
  account   = proxmox_acme_account.plain.name
  force     = true
  domains = [
    {{ domain = "pve2.example.com", plugin = proxmox_acme_dns_plugin.plain.plugin, alias = "a.example.com" }},
    {{ domain = "two.example.com" }},
    {{ domain = "pve2.example.org", plugin = "plain" }},
  ]
}}
resource "proxmox_virtual_environment_certificate" "given" {{
  node_name   = "pve3"
  certificate = {_quoted(FIRST.certificate_pem)}
  private_key = {_quoted(FIRST.key_pem)}
}}
data "proxmox_acme_account" "plain" {{ name = proxmox_acme_account.plain.name }}
data "proxmox_virtual_environment_acme_account" "bound" {{
  name       = "bound"
  depends_on = [proxmox_virtual_environment_acme_account.bound]
}}
data "proxmox_acme_accounts" "all" {{
  depends_on = [proxmox_acme_account.plain, proxmox_virtual_environment_acme_account.bound]
}}
data "proxmox_acme_plugin" "plain" {{
  plugin     = "plain"
  depends_on = [proxmox_acme_dns_plugin.plain, proxmox_virtual_environment_acme_dns_plugin.full]
}}
data "proxmox_virtual_environment_acme_plugin" "standalone" {{
  plugin     = "standalone"
  depends_on = [proxmox_acme_dns_plugin.plain, proxmox_virtual_environment_acme_dns_plugin.full]
}}
data "proxmox_acme_plugins" "all" {{
  depends_on = [proxmox_acme_dns_plugin.plain, proxmox_virtual_environment_acme_dns_plugin.full]
}}
output "acme" {{
  value = [
    data.proxmox_acme_account.plain, data.proxmox_virtual_environment_acme_account.bound,
    data.proxmox_acme_accounts.all, data.proxmox_acme_plugin.plain,
    data.proxmox_virtual_environment_acme_plugin.standalone, data.proxmox_acme_plugins.all,
  ]
}}
"""
UPDATE = {
    '"one@example.com"': '"other@example.com"',
    'api    = "cf"\n  data   = { CF_Token = "first=token", CF_Zone_ID = "zone" }': 'api = "hetzner"',
    "disable          = true": "",
    "validation_delay = 120": "",
    "data_wo_version  = 1": "data_wo_version = 2",
    'domains   = [{ domain = "pve1.example.com" }]': 'force = true\n  domains = [{ domain = "a.example" }]',
    '{ domain = "two.example.com" },': "",
    FIRST.certificate_pem.decode(): SECOND.certificate_pem.decode(),
    FIRST.key_pem.decode(): SECOND.key_pem.decode(),
}
UPDATED = (
    "proxmox_acme_account.plain",
    "proxmox_acme_dns_plugin.plain",
    f"{LONG}acme_dns_plugin.full",
    "proxmox_acme_certificate.plain",
    f"{LONG}acme_certificate.full",
    f"{LONG}certificate.given",
)


async def _drift(api: proxmox.Client) -> None:
    by_hand = {"contact": "hand@example.com"}
    upid = await api.put("/cluster/acme/account/plain", by_hand)
    await proxmox.wait_for(api, upid, timeout_s=30)
    await api.put("/cluster/acme/plugins/plain", {"api": "aws", "disable": True})
    await api.put("/cluster/acme/plugins/full", {"delete": "disable,validation-delay"})
    await api.put("/nodes/pve2/config", {"acme": "account=plain,domains=hand.example.com"})
    given = {"certificates": SECOND.certificate_pem.decode(), "key": SECOND.key_pem.decode()}
    await api.post("/nodes/pve3/certificates/custom", {**given, "force": True})


async def _remove(api: proxmox.Client) -> None:
    upid = await api.delete("/cluster/acme/account/bound")
    await proxmox.wait_for(api, upid, timeout_s=30)
    await api.delete("/cluster/acme/plugins/full")
    await api.delete("/nodes/pve1/certificates/custom")
    await api.delete("/nodes/pve3/certificates/custom")


CASES = (
    Case(
        id="certificates",
        kinds=("acme_account", "acme_certificate", "acme_dns_plugin", "certificate"),
        sources=("acme_account", "acme_accounts", "acme_plugin", "acme_plugins"),
        text=TEXT,
        update=UPDATE,
        updated=UPDATED,
        replace={
            '"first-kid"': '"second-kid"',
            'plugin           = "full"': 'plugin           = "other"',
            'node_name = "pve2"': 'node_name = "pve4"',
            'node_name   = "pve3"': 'node_name   = "pve5"',
        },
        replaced=(
            f"{LONG}acme_account.bound",
            f"{LONG}acme_dns_plugin.full",
            f"{LONG}acme_certificate.full",
            f"{LONG}certificate.given",
        ),
        imports={
            "proxmox_acme_account.plain": "plain",
            "proxmox_acme_dns_plugin.plain": "plain",
            "proxmox_acme_certificate.plain": "pve1",
            f"{LONG}certificate.given": "pve3",
        },
        # The key of a certificate cannot be read.
        unread=(f"{LONG}certificate.given",),
        drift=_drift,
        drifted=(
            "proxmox_acme_account.plain",
            "proxmox_acme_dns_plugin.plain",
            f"{LONG}acme_dns_plugin.full",
            f"{LONG}acme_certificate.full",
            f"{LONG}certificate.given",
        ),
        remove=_remove,
        removed=(
            f"{LONG}acme_account.bound",
            f"{LONG}acme_dns_plugin.full",
            "proxmox_acme_certificate.plain",
            f"{LONG}certificate.given",
        ),
        hidden=("/vms",),
        bpg_cannot={
            # It changes the plugin of the new name, which is not there.
            "replace": ("Unable to update ACME plugin 'other'", "does not exist"),
            f"import {LONG}certificate.given": ("doesn't support import",),
        },
        lab={"nodes": ("pve1", "pve2", "pve3", "pve4", "pve5")},
    ),
)
