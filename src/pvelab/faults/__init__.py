"""Faults and delays that a test adds: calls that fail, nodes that go down, operations that take time."""
