"""The life of a cluster that runs: what its nodes are, and changes of them, one node at a time.

`nodes` reads what every node is; the other modules change something, and look at the health of the cluster
before the next node.
"""

from __future__ import annotations
