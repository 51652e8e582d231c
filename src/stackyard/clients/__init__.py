"""Clients of other systems: the Proxmox API, SSH, git and object stores, one package each."""
