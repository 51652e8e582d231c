"""Scenarios: named pieces of work on machines, made of phases, that can be looked at, skipped and repeated.

`catalogue` lists them, `running` runs one. A phase is `verb_noun` and has an action; an action is a dataclass
called VerbNoun with `run(context)`. What an action does to a machine goes through `machines.Machine`: another
one over SSH, or this one. Nothing here prints.
"""
