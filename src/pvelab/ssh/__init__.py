"""The SSH server of the lab: commands and files of its nodes, and access to its guests.

`server.serve_ssh` serves one port for each node. A shell (`shell`) reads the commands of a client and runs
its own programs (`programs`), which send the same calls as HTTP clients. Uploaded files become content of a
storage (`files`, `sftp`). A connection that is forwarded to the address of a running guest ends at port 22
of that guest (`guests`), with its host key and the users of its cloud-init. Nothing is executed on the
machine, and none of its files can be reached.

Nothing is imported here: the library behind the server takes longer to load than a lab takes to start.
"""
