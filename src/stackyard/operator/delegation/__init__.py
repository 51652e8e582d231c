"""Delegation: what runs inside of a node of type `pve` is run from there, by a stackyard of its own.

`archive` packs stackyard, its Python and the engine into one file that needs nothing on the other machine but
a C library and a shell. `bootstrap` makes a Proxmox node ready: the archive, the part of the site that its
guests need, a token of its own API, bridge and images. `remote` runs a verb there over one SSH channel, in
the words of `protocol`, and `serving_side` is the other end of that channel. The inner side calls the
operator as the command line does, so that it delegates in turn, to any depth.
"""
