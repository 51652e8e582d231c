"""Mappings of devices and directories, read only."""
