"""Writing what the rules ask for, as far as nothing has to be invented: tables, pins, and empty files.

`changes` decides what is written and writes it, `pins` edits constraints, and `readme` edits tables.
"""
