"""Newer versions of the providers and modules of stacks: reported, and written into code and lock files.

`declarations` reads what the code requires, with the bytes where it says so. `constraints` and `versions`
judge versions.
"""
