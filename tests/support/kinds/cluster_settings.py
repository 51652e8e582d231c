"""Options of the whole cluster."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASE", "CASES"]

# bpg wants a description to end as Proxmox shows it.
OPTIONS = """
resource "proxmox_cluster_options" "all" {
  bandwidth_limit_clone               = 1000
  bandwidth_limit_default             = 2000
  bandwidth_limit_migration           = 3000
  bandwidth_limit_move                = 4000
  bandwidth_limit_restore             = 5000
  console                             = "html5"
  crs_ha                              = "static"
  crs_ha_auto_rebalance               = true
  crs_ha_auto_rebalance_hold_duration = 4
  crs_ha_auto_rebalance_margin        = 20
  crs_ha_auto_rebalance_method        = "topsis"
  crs_ha_auto_rebalance_threshold     = 40
  crs_ha_rebalance_on_start           = true
  description                         = "the lab\\n"
  email_from                          = "lab@example.com"
  ha_shutdown_policy                  = "migrate"
  http_proxy                          = "http://proxy.example.com:3128"
  keyboard                            = "de"
  language                            = "de"
  mac_prefix                          = "BC:24:12"
  max_workers                         = 3
  migration_cidr                      = "10.0.0.0/8"
  migration_type                      = "secure"
  next_id                             = { lower = 200, upper = 299 }
  notify = {
    ha_fencing_mode        = "never"
    ha_fencing_target      = "default-matcher"
    package_updates        = "auto"
    package_updates_target = "default-matcher"
    replication            = "always"
    replication_target     = "default-matcher"
  }
}
"""


async def _drift(api: proxmox.Client) -> None:
    unset = {"delete": "email_from,migration"}
    await api.put("/cluster/options", {"keyboard": "fr", "bwlimit": "clone=1", "crs": "ha=basic", **unset})


CASE = Case(
    id="cluster-options",
    kinds=("cluster_options",),
    text=OPTIONS,
    update={
        "  bandwidth_limit_clone               = 1000\n": "",
        '  console                             = "html5"\n': "",
        "auto_rebalance               = true": "auto_rebalance               = false",
        '  description                         = "the lab\\n"\n': "",
        '  ha_shutdown_policy                  = "migrate"\n': "",
        '  mac_prefix                          = "BC:24:12"\n': "",
        "  max_workers                         = 3\n": "  max_workers = 5\n",
        '  migration_cidr                      = "10.0.0.0/8"\n': "",
        "{ lower = 200, upper = 299 }": "{ lower = 300 }",
        'replication            = "always"': "",
    },
    updated=("proxmox_cluster_options.all",),
    imports={"proxmox_cluster_options.all": "cluster"},
    drift=_drift,
    drifted=("proxmox_cluster_options.all",),
    hidden=("/access",),
    nothing={
        "cluster_options gone": "they are always there",
        "cluster_options replace": "no attribute replaces them",
    },
)
# It shares a configuration with the settings of nodes.
CASES: tuple[Case, ...] = ()
