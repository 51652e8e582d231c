"""What must not happen to a cluster itself: to what others use, to who manages it, to its network.

`taken` says what a plan takes away, and `dependants` who uses it. `access` and `administrators` are about
rights, `firewall` and `lockout` about being shut out, `management` about the address of a node.
"""
