"""Drives OpenTofu or Terraform: one typed function for each of its commands; its messages become events.

- `version`: what an `Engine` is, which versions work, and the version of a program.
- `workdir`: a folder to run in and the exact environment there.
- `tofu`: init, validate, plan, show, apply, destroy, output, providers schema.
- `statefile`: the commands on the state: list, move, remove, pull, push, import, force-unlock.
- `errored`: a state that its backend refused: found, checked, pushed.
- `failures`: errors built from the reports of the engine.
- `tools`: which engine to use, and how to get one.

It does not know where desired state comes from, what a plan may do (see `guard`), or how results are shown.
Nothing here asks a question, prints, or parses the engine's text where it offers JSON.
"""
