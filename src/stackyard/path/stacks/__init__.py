"""Stacks on the path: a user's own OpenTofu code is locked, planned, guarded and applied as every source is.

`source` finds a stack and everything that it is given, `run` puts the engine in place, `plan` and `apply` do
what their names say. `many` does it for several stacks in the order of their dependencies.
"""
