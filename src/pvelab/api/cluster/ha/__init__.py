"""High availability: `/cluster/ha`, and the part of the nodes in it."""
