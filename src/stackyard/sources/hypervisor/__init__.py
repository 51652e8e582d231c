"""`hypervisors/*.yaml`: the Proxmox cluster itself and its nodes, as desired state.

One file describes a cluster, and one each of its nodes. What a file may say is a table (`sections`) over the
schema of bpg/proxmox: `models` makes of it what the files are validated with, and `build` the objects that
are rendered.
"""
