"""Creates many clusters for who has many to start, such as the queue: those that wait for the writer together are
written in one transaction, each in a part of it that fails alone (store/store.py)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.views import ClusterView
from windrow_master.identity.model import Principal
from windrow_master.store.model import Operation
from windrow_proto.errors import WindrowError
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import Microcents


@dataclass(frozen=True, slots=True)
class Ask:
    """What `ClusterService.create` is given for one cluster."""

    principal: Principal
    request: ClusterRequest
    key: str | None = None
    login: RegistryLogin | None = None
    budget: Microcents | None = None


class Creates(Protocol):
    """The service of the clusters."""

    async def create(
        self, principal: Principal, request: ClusterRequest, key: str | None = None, **more: Any
    ) -> tuple[Operation, ClusterView]: ...


async def create_many(clusters: Creates, asks: Sequence[Ask]) -> list[tuple[Operation, ClusterView] | WindrowError]:
    """Create all of these, or as many as can be: for each, in its place, the answer or why not. What is refused changes
    nothing of the others. Raises what is no WindrowError, once all are done."""

    async def one(ask: Ask) -> tuple[Operation, ClusterView] | WindrowError:
        try:
            return await clusters.create(ask.principal, ask.request, ask.key, login=ask.login, budget=ask.budget)
        except WindrowError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(ask)) for ask in asks]
    return [task.result() for task in tasks]
