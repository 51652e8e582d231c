"""Devices of a node, as its kernel finds them on its buses."""
