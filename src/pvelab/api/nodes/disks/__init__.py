"""Physical disks of a node, and the pools that are created from them."""
