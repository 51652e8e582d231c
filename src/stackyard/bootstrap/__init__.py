"""From virtual machines to a healthy Kubernetes with Flux: steps that can be run again at any time.

`step` has what every step is: look at the world, do what is missing, prove that it is so. `kubernetes` has
the steps that speak to a Kubernetes API. `changes` has what comes after: the life of a cluster that runs.
"""

from __future__ import annotations

from stackyard.bootstrap.step import Observation, Presence, Report, Step

__all__ = ["Observation", "Presence", "Report", "Step"]
