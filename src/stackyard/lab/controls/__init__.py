"""The lab's own routes: one module each, found by themselves (see `control`)."""
