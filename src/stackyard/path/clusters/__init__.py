"""Talos clusters in a repository: the files that are generated for them, and clusters as targets.

`configure` writes the files, `plan_configuration` says what it would write, `check_current` tells whether the
generated code is that of the input, and `split_secrets` moves secrets out of `cluster.yaml`. `ClusterSource`
returns each cluster as the stack of its `infrastructure/tofu`: `stackyard plan`, `stackyard infra` and plain
OpenTofu work on the same code, addresses and state.
"""

from __future__ import annotations
