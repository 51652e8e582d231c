"""Guests that are already there: chosen on a cluster, written into a site, and put into its state.

`choosing` says which guests are meant, `managed` which of them a state has already. `configuration`, `vm` and
`container` turn what Proxmox says of a guest into the model, and name every key that the model cannot carry.
`trial` proves in a state of its own that a plan for these guests is empty; only then `taking` writes the file
and the state, and proves it once more. Nothing here ever writes to the cluster.
"""
