"""The user's own rules for plans and repositories, written in Rego and evaluated by OPA.

`rules` reads the folders of a stack, `evaluation` runs OPA on them, and `verdict` reads its answer. Rules
are the code of whoever wrote them: they run without network and environment, for a limited time, and see no
secret. Whatever goes wrong with them refuses the plan.
"""

from __future__ import annotations

from stackyard.guard.policy.evaluation import evaluate_policies, evaluate_repository
from stackyard.guard.policy.verdict import ALLOW_POLICY

__all__ = ["ALLOW_POLICY", "evaluate_policies", "evaluate_repository"]
