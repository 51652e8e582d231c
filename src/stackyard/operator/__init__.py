"""The operator: create, destroy and test what a manifest says, over its graph, to any depth.

`verbs.run_verb` is the one way in, for the command line and for the inner side of a delegation alike.
"""
