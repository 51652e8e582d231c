"""The resources of the API: one module each, found by themselves (see `routing` on how to add one)."""
