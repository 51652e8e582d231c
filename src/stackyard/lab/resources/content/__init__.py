"""What storages hold: `/nodes/{node}/storage/{storage}/...`.

`volumes` has single volumes, `upload` and `download` bring files (from the client, from a URL), `registry`
images and templates, `prune` removes old backups.
"""
