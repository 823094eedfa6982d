"""Questions of the queue to the packages above it: how much of what a quota counts is used. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from windrow_master.queue.quota import NodeLevel, What
from windrow_master.store.messages import Question


@dataclass(frozen=True, slots=True)
class HeldBelow(Question[Mapping[What, int]]):
    """Asks how much of each item the clusters below a node hold now, GPUs by tier."""

    level: NodeLevel
    node_id: str


@dataclass(frozen=True, slots=True)
class WaitingBelow(Question[int]):
    """Asks how many jobs and clusters below a node wait for a place."""

    level: NodeLevel
    node_id: str
