"""Physical disks of a node, and the pools, groups and folders that are made of them."""
