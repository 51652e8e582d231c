"""The network of a node: `/nodes/{node}/network`.

`/etc/network/interfaces` is kept as text, like on a node, so what clients read is what would be read from the
file: `reading` parses it, `writing` prints it, `rules` refuses what Proxmox refuses, `files` keeps the
current and the pending text, `interfaces` and `reload` answer the calls.
"""
