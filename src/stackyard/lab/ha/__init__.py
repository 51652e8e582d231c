"""High availability: what is managed, the rules of placing it, the manager, and what keeps it going.

`config` reads the documents, `rules` checks and joins affinity rules, `placing` chooses a node, `manager` is
the state machine of the cluster (Proxmox's CRM), `agent` is what the nodes do of it (their LRMs), and `desk`
lets both act whenever something changes.
"""
