"""What names what in a cluster: a table of uses, and where Proxmox lists what can be named.

The check joins the lists of the live cluster with what the target itself makes. A name in neither is refused
before the first change; what the token may not see is unknown, and never missing.
"""
