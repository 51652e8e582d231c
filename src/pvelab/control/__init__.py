"""The lab's own routes: one module each, discovered automatically (see `control`)."""
