"""The content of storages: `/nodes/{node}/storage/{storage}/...`.

`volumes` handles single volumes. `upload` and `download` store files (from the client, from a URL),
`registry` stores images and templates, and `prune` removes old backups.
"""
