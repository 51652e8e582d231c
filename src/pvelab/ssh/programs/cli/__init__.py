"""What all commands of Proxmox share: a tree of subcommands, options by schema, tables.

`model` has the values: a `Command` is one line of a table, mostly a method of the API with its plain
arguments and the format of its output. `options` parses arguments like Proxmox's own parser, `output`
prints answers, and `run` finds the subcommand, sends the call, waits for the task and reports its
result.
"""
