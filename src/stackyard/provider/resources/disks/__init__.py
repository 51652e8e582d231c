"""Disks of a node, and what is made of them."""
