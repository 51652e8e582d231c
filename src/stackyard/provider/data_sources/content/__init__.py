"""Files in the datastores of nodes: images, templates, snippets and backups."""
