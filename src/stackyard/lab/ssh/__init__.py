"""The SSH side of the lab: commands and files of its nodes, and the way to its guests.

`server.serve_ssh` answers one port for each node. What a client runs there is read by a shell of its own
(`shell`) with programs of its own (`programs`), which make the same calls that the HTTP API has; what it
uploads becomes content of a storage (`files`, `sftp`). A connection that is forwarded to the address of a
running guest ends at port 22 of that guest (`guests`), with its host key and the users of its cloud-init.
Nothing is executed on the machine, and no file of it can be reached.

Nothing is imported here: the library behind the server takes longer to load than a lab takes to start.
"""
