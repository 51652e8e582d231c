"""High availability: the managed guests, the placement rules, the manager, and its trigger.

`config` reads the documents, `rules` checks and joins affinity rules, `placing` selects a node, `manager`
is the state machine of the cluster (Proxmox's CRM), `agent` is the part of the nodes (their LRMs), and
`manager_trigger` runs both whenever something changes.
"""
