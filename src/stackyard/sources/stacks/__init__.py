"""Stacks: folders of the user's own OpenTofu code, found, ordered, and selected by what they read.

Nothing here starts an engine or changes a file. `repository` finds the stacks, `facts` says what their code
reads, `selection` says which of them a change touches, and why.
"""
