"""What the verbs of `stackyard deployment` share: the store that is meant, and how objects are shown.

Each verb is a file of its own in `stackyard.cli.commands`; nothing here is a command.
"""
