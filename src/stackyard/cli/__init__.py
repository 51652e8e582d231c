"""The command line: one file a verb or noun, and the views that show what the core reports.

A command parses its arguments, calls the core and returns a `Result`; it neither prints nor exits. `main`
chooses the views, runs the command and turns its end into an exit status. Nothing here decides anything about
infrastructure, and nothing in the core imports from here.
"""
