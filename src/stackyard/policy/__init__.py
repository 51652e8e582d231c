"""The rules for modules and stacks: what the code of a repository must be like, whatever a plan would do.

`code` holds the facts of a file, `context` gathers those of every module and stack, `rules` has one file for
each rule, and `check` runs them and applies the exceptions of stackyard.yaml. `fix` writes what can be
written without inventing anything. Nothing here runs OpenTofu.
"""
