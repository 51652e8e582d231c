"""What is counted, in the text format of Prometheus. No name of a guest, spec or repository appears in it."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Metrics"]

_BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """The counts of one process since it was started."""

    def __init__(self) -> None:
        self._requests: collections.Counter[tuple[str, int]] = collections.Counter()
        self._sums_s: collections.defaultdict[str, float] = collections.defaultdict(float)
        self._buckets: collections.Counter[tuple[str, float]] = collections.Counter()

    def count_request(self, route: str, status: int, elapsed_s: float) -> None:
        """Count a request that was answered, by the name of its route."""
        self._requests[route, status] += 1
        self._sums_s[route] += elapsed_s
        for bound in _BUCKETS_S:
            if elapsed_s <= bound:
                self._buckets[route, bound] += 1

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all counts, and some values of the moment, each with its meaning."""
        return "\n".join([*self._lines(), *_gauges(gauges)]) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from _head("requests_total", "counter", "Requests by route and status.")
        for (route, status), count in sorted(self._requests.items()):
            yield f'stackyard_controller_requests_total{{route="{route}",status="{status}"}} {count}'
        yield from _head("request_seconds", "histogram", "How long requests took.")
        for route in sorted(self._sums_s):
            total = sum(count for (known, _), count in self._requests.items() if known == route)
            name = "stackyard_controller_request_seconds"
            for bound in _BUCKETS_S:
                yield f'{name}_bucket{{route="{route}",le="{bound:g}"}} {self._buckets[route, bound]}'
            yield f'{name}_bucket{{route="{route}",le="+Inf"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._sums_s[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'


def _gauges(gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
    for name, (meaning, value) in sorted(gauges.items()):
        yield from _head(name, "gauge", meaning)
        yield f"stackyard_controller_{name} {value:g}"


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP stackyard_controller_{name} {meaning}"
    yield f"# TYPE stackyard_controller_{name} {kind}"
