"""The data sources, one file for each kind, named after it; a folder holds a family and what its kinds share.

To add one, write a file with its `DATA_SOURCE`. `provider.registry` finds it; its schema is in the facts.
"""
