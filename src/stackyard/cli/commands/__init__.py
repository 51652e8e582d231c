"""One file for each noun or verb of the command line, loaded only when it is used.

A command parses its arguments, calls the core and returns a `Result`. It does not know how the result is
shown: it neither prints nor exits.
"""
