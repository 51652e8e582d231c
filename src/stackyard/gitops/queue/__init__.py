"""The durable queue of the GitOps server: what was received is in the store before its sender is answered.

`JobQueue` is the seam. `StoredQueue` keeps the jobs in one object of any store, for one worker machine.
`PostgresQueue` keeps them in PostgreSQL with procrastinate, for any number of machines. `open_queue` chooses
by the address of the store.
"""

from __future__ import annotations

from stackyard.gitops.queue.open_queue import open_queue
from stackyard.gitops.queue.protocol import JobLostError, JobQueue, NewJob, Put, QueuedJob

__all__ = ["JobLostError", "JobQueue", "NewJob", "Put", "QueuedJob", "open_queue"]
