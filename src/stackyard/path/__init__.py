"""The path from desired state to running guests, for any source: plan, guard, apply, verify, drift.

A source gives a `Resolved` target. `opened` renders it and puts everything in place that the engine needs: a
folder, a state, a provider. `make_plan` plans and asks the guard, `apply_plan` applies exactly that plan and
proves that the guests are up. Nothing here prints, asks or decides what may be destroyed.
"""
