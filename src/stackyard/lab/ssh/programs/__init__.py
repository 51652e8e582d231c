"""The programs of a node's shell: tools for text and files, and Proxmox's own commands as calls of the API.

A program is `async def name(shell, words, streams) -> int`: the words begin with its own name, the result is
its exit status. `text` and `files` know nothing of Proxmox; `proxmox` has `qm`, `pct`, `pvesm` and `pvesh`.
"""
