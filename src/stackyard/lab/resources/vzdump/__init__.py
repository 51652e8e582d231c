"""Backups of guests: making archives, reading them, and which guests have none.

`archives` says what a backup holds, `job` makes the backups of one task, `start` takes the call.
"""
