"""The resources of the API: one module each, discovered automatically (see `routing` on how to add one)."""
