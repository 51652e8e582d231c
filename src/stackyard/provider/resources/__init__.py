"""The resources, one file for each kind, named after it; a folder holds a family and what its kinds share.

To add one, write a file with its `RESOURCE`: a `Collection` (a row of a list), `Settings` (an object that is
always there) or a `Resource` (anything else), with its names as in bpg and its rules. `provider.registry`
finds it; its schema is in the facts.
"""
