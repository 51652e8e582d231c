"""The operator: create, destroy and test the guests of a manifest, along its graph, to any depth.

`verbs.run_verb` is the only entry point, for the command line and for the inner side of a delegation.
"""
