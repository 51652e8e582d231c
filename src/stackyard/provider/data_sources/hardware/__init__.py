"""Devices of a node."""
