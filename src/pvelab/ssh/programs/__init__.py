"""The programs of a node's shell: tools for text and files, and Proxmox's own commands as calls of the API.

A program is `async def name(shell, words, streams) -> int`: the arguments begin with its own name, the
result is its exit status. `text` and `system` do not know Proxmox. `proxmox` has its commands, each a table
in its own module (`qm`, `pct`, `pvesm`, ...) on the shared code of `cli`.
"""
