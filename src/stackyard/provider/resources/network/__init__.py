"""Interfaces of a node: written, and then reloaded."""
