"""Ceph, as far as Proxmox manages it: its pools."""
