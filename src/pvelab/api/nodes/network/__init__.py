"""The network of a node: `/nodes/{node}/network`.

The lab keeps `/etc/network/interfaces` as text, like a node, so clients read what the file would give.
`read` parses it, `write` prints it, `rules` refuses what Proxmox refuses, `files` keeps the current
and the pending text, `interfaces` and `reload` answer the calls.
"""
