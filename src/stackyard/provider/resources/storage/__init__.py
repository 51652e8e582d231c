"""Definitions of storages, one file for each type."""
