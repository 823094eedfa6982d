"""Planted bugs of stopping a cluster and starting it again (planted.py)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from windrow_master.clusters.controller import ClusterLifecycle
from windrow_master.clusters.model import ClusterPhase, WorkPhase
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.clusters.start import Starter


def start_without_audit() -> Any:
    """A started cluster is no longer stopped, and nobody writes down how it came so far."""
    return mock.patch.object(Starter, "_audit", lambda self, uow, stopped, actor: None)


def stop_that_only_answers() -> Any:
    """A renter is told that it stops, and it goes on."""
    return mock.patch.object(ClusterLifecycle, "stop", lambda self, uow, cluster, actor: cluster)


@contextmanager
def stop_never_over() -> Iterator[None]:
    """A cluster whose last work is gone is judged, but not while it stops."""
    judge = ClusterLifecycle.judge

    def blind(self: ClusterLifecycle, uow: Any, cluster: Any, actor: str = "master") -> Any:
        return cluster if cluster.phase is ClusterPhase.STOPPING else judge(self, uow, cluster, actor)

    with mock.patch.object(ClusterLifecycle, "judge", blind):
        yield


@contextmanager
def past_work_forgotten() -> Iterator[None]:
    """Work of a cluster is past once the cluster stops, and its host is not told."""

    def forgotten(self: ClusterLifecycle, uow: Any, workload: Any, actor: str) -> None:
        if not workload.is_released:
            self._fleet.slots_stopping(uow, workload.slots, actor, "the work is being ended")
            self._fleet.slots_released(uow, workload.slots, actor, "nothing of the work is left")
            uow[WorkloadRepository].save(replace(workload, phase=WorkPhase.GONE, is_released=True))

    with mock.patch.object(ClusterLifecycle, "_order_end", forgotten):
        yield
