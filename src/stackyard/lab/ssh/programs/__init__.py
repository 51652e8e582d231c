"""The programs of a node's shell: tools for text and files, and Proxmox's own commands as calls of the API.

A program is `async def name(shell, words, streams) -> int`: the words begin with its own name, the result is
its exit status. `text` and `system` know nothing of Proxmox; `proxmox` has its commands, each of which is a
table in a module of its own (`qm`, `pct`, `pvesm`, ...) on what they have in common (`cli`).
"""
