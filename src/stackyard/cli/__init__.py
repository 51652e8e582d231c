"""The command line: one file for each verb or noun, and the views that show what the core reports.

A command parses its arguments, calls the core and returns a `Result`; it neither prints nor exits. `main`
selects the views, runs the command and turns its result into an exit status. Nothing here decides about
infrastructure, and nothing in the core imports from here.
"""
