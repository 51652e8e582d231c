"""The path from desired state to running guests, for any source: plan, guard, apply, verify, drift.

A source gives a `Resolved` target. `open_run` renders it and prepares what the engine needs: a folder, a
state, a provider. `make_plan` plans and calls the guard. `apply_plan` applies exactly that plan and
verifies that the guests are up. Nothing here prints, asks or decides what may be destroyed.
"""
