"""High availability: `/cluster/ha`, and what nodes do for it."""
