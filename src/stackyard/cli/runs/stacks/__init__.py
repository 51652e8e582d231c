"""The runs of plan, apply, destroy, drift, output and import on stacks: on one, or on several in order."""
