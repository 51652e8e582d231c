"""Backups of guests: creating archives, reading them, and listing guests without a backup.

`archives` defines the content of a backup, `job` creates the backups of one task, `start` handles the call.
"""
