"""What all commands of Proxmox have in common: a tree of subcommands, options by schema, tables.

`model` has the values: a `Command` is one line of a table, mostly a method of the API with its plain
arguments and how its answer is printed. `options` reads words as Proxmox's own parser does, `formatting`
prints answers, `running` finds the subcommand, makes the call, waits for the task and tells how it ended.
"""
