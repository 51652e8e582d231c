"""Tokens and passwords of a cluster: set, removed and adopted beside the engine, whose state has none.

`plan` compares what a file says with the cluster, the secrets of the site and the record of what this target
has made; `apply` performs that around the engine, so that a run that is killed at any point is completed by
the next one.
"""
