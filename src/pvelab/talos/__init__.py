"""Talos machines of the lab: VMs that boot from a Talos image answer the Talos API, as real ones do.

- `images` recognises Talos images, and makes those that `factory` serves: a double of the image factory.
- `boot` decides what a VM boots from, by its configuration and its disks, and whether it can.
- `machine` follows one VM from maintenance mode through installation and reboots to a running machine.
- `service` answers gRPC on port 50000: `maintenance` without client certificates, `secured` with them.
- `control_plane` runs the Kubernetes API of each etcd: `kubelets` brings what Talos itself creates there,
  `cluster_view` reads it, `relay` opens its ports, `objects` keeps its objects; `health` checks all of it.
- `resources` has the COSI resources of a machine, `configuration` checks what is applied to it.

A lab without Talos images loads `images` and `boot` only.
"""

from __future__ import annotations
