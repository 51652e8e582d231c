"""Starts a lab and keeps it: ports, keys, logins, its folder, and its whole content."""
