"""Drives OpenTofu or Terraform: one typed function for each of its verbs, its messages turned into events.

- `version`: what an `Engine` is, which versions do, and asking a program for its own.
- `workdir`: a folder to run in and the exact environment there.
- `tofu`: init, validate, plan, show, apply, destroy, output, providers schema.
- `statefile`: the verbs on the state: list, move, remove, pull, push, import, force-unlock.
- `errored`: a state that its backend did not take: found, checked, pushed.
- `failures`: the errors that the engine's reports become.
- `tools`: which engine to use, and how to get one.

It must not know where desired state comes from, what a plan may do (`guard` says that), or how anything is
shown. Nothing here asks a question, prints, or reads the engine's text where it offers JSON.
"""
