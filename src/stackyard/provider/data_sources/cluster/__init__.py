"""What the cluster is: its version, nodes, datastores and pools."""
