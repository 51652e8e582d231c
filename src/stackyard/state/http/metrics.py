"""What is counted, in the text format of Prometheus. No name of a state or principal appears in it."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Metrics"]

_BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_METHODS = frozenset({"GET", "POST", "LOCK", "UNLOCK"})
_COUNTERS = {
    "locks_granted": "Locks that were granted.",
    "lock_conflicts": "Requests for a lock that another client held.",
    "writes_stored": "Writes that became a version.",
    "writes_refused": "Writes that were refused.",
    "logins_refused": "Requests without valid credentials.",
    "store_failures": "Requests that the store failed.",
}


class Metrics:
    """The counts of one process since it was started."""

    def __init__(self) -> None:
        self._requests: collections.Counter[tuple[str, int]] = collections.Counter()
        self._counts: collections.Counter[str] = collections.Counter()
        self._sums_s: collections.defaultdict[str, float] = collections.defaultdict(float)
        self._buckets: collections.Counter[tuple[str, float]] = collections.Counter()
        self.waiting = 0

    def count(self, what: str) -> None:
        """Count something by its name."""
        self._counts[what] += 1

    def count_request(self, method: str, status: int, elapsed_s: float) -> None:
        """Count a request that was answered."""
        known = method if method in _METHODS else "other"
        self._requests[known, status] += 1
        self._sums_s[known] += elapsed_s
        for bound in _BUCKETS_S:
            if elapsed_s <= bound:
                self._buckets[known, bound] += 1

    def text(self) -> str:
        """Return all counts."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        for name, meaning in _COUNTERS.items():
            yield from _head(f"{name}_total", "counter", meaning)
            yield f"stackyard_state_{name}_total {self._counts[name]}"
        yield from _head("waiting", "gauge", "Requests for a lock that are held open until it is free.")
        yield f"stackyard_state_waiting {self.waiting}"
        yield from _head("requests_total", "counter", "Requests by method and status.")
        for (method, status), count in sorted(self._requests.items()):
            yield f'stackyard_state_requests_total{{method="{method}",status="{status}"}} {count}'
        yield from _head("request_seconds", "histogram", "How long requests took.")
        for method in sorted(self._sums_s):
            total = sum(count for (known, _), count in self._requests.items() if known == method)
            for bound in _BUCKETS_S:
                label = f'method="{method}",le="{bound:g}"'
                yield f"stackyard_state_request_seconds_bucket{{{label}}} {self._buckets[method, bound]}"
            yield f'stackyard_state_request_seconds_bucket{{method="{method}",le="+Inf"}} {total}'
            yield f'stackyard_state_request_seconds_sum{{method="{method}"}} {self._sums_s[method]:.6f}'
            yield f'stackyard_state_request_seconds_count{{method="{method}"}} {total}'


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP stackyard_state_{name} {meaning}"
    yield f"# TYPE stackyard_state_{name} {kind}"
