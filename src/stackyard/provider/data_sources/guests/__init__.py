"""Which guests there are: all that match, or one."""
