"""Delegation: a stackyard on a node of type `pve` runs the guests inside that node.

`archive` packs stackyard, its Python and the engine into one file. The other machine needs only a C library
and a shell. `bootstrap` prepares a Proxmox node: the archive, the part of the site that its guests need, a
token of its own API, bridge and images. `remote` runs a verb there over one SSH channel with the messages
of `protocol`, and `serving_side` is the other end of that channel. The inner side calls the operator as the
command line does, so it can delegate in turn, to any depth.
"""
