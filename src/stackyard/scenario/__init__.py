"""Scenarios: named pieces of work on machines, in phases that can be listed, skipped and repeated.

`catalogue` lists them, `run` runs one. A phase is named `verb_noun` and has an action. An action is a
dataclass named VerbNoun with `run(context)`. An action changes a machine through `machines.Machine`:
another machine over SSH, or this one. Nothing here prints.
"""
