"""Devices and directories of nodes under names of the cluster."""
