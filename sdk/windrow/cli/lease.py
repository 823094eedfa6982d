"""Renews the lease of a run's client at the Master, which ends the run when the lease runs out."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from windrow.client import Client
from windrow.errors import ApiProblem, WindrowClientError

CLIENT_LEASE_S: Final = 900
"""Without a word of this program, unless it says otherwise."""
RENEW_S: Final = 60.0
RENEWALS: Final = 4
"""In one lease, where that is short."""


def span(lease_s: int) -> str:
    """A lease in words."""
    return f"{lease_s} s" if lease_s % 60 else f"{lease_s // 60} minute{'' if lease_s == 60 else 's'}"


@contextmanager
def renewed(api: Client, cluster_id: str, lease_s: float) -> Iterator[None]:
    """Renew the lease of a cluster while the body runs."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(min(RENEW_S, lease_s / RENEWALS)):
            try:
                api.renew_cluster(cluster_id)
            except ApiProblem as problem:
                if problem.status in (404, 409):
                    return  # it has ended
            except WindrowClientError:
                pass  # the Master is away for a moment: the lease is long

    thread = threading.Thread(target=renew, name="windrow-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        with suppress(RuntimeError):
            thread.join(0.1)
