"""Registers, lists, changes and removes compute resources: machines of one's own, of clouds, at the edge."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from windrow_master.clusters.lookup import running_on
from windrow_master.clusters.messages import HostLimit, HostLimits
from windrow_master.fleet.lookup import find_host, slots_of
from windrow_master.fleet.model import Slot
from windrow_master.fleet.states import AdminState, LinkState
from windrow_master.hybrid.model import (
    RESOURCES_MAX,
    Declared,
    Resource,
    ResourceStatus,
    ResourceType,
    Seen,
    changed,
    picked,
    updated,
)
from windrow_master.hybrid.repository import ResourceRepository
from windrow_master.identity.model import Principal
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import AlreadyRegistered, Conflict, Forbidden, NotFound, TooMany
from windrow_proto.ids import AccountId, HostId


class ResourceRegistry:
    """The resources of this market."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def register(self, principal: Principal, resource_id: str, declared: Declared) -> Resource:
        """Add one. Raises AlreadyRegistered, TooMany."""

        def change(uow: UnitOfWork) -> Resource:
            self._store.admit()
            rows = uow[ResourceRepository]
            if rows.get(resource_id) is not None:
                raise AlreadyRegistered(
                    f"A resource {resource_id} already exists. Choose another resource_id, or change the existing one.",
                    subject=resource_id,
                )
            if rows.count() >= RESOURCES_MAX:
                raise TooMany(f"The registry has {RESOURCES_MAX:,} resources. Remove some: windrow resource rm ID")
            made = rows.add(resource_id, declared, uow.now_wall_ns)
            fields = {"type": str(declared.resource_type), "status": str(declared.status)}
            uow.audit(principal.actor, "resource.register", _subject(resource_id), "asked for", fields)
            uow.event(
                "resource.registered",
                (_subject(resource_id),),
                f"{resource_id} was registered",
                fields,
                principal.actor,
            )
            return made

        return await self._store.write(change, name="resource.register")

    async def list(
        self,
        status: ResourceStatus | None = None,
        kind: ResourceType | None = None,
        provider: str | None = None,
    ) -> Sequence[Resource]:
        """Those to which all filters apply, by number; None: no filter."""
        found = await self._store.read(lambda uow: [_with_host(uow, one) for one in uow[ResourceRepository].all()])
        return picked(found, status, kind, provider)

    async def page(self, after: int, limit: int) -> Sequence[Resource]:
        """At most so many by number, from the one after this number."""
        return await self._store.read(
            lambda uow: [_with_host(uow, one) for one in uow[ResourceRepository].page(after, limit)]
        )

    async def get(self, resource_id: str) -> Resource:
        """One. Raises NotFound."""
        return await self._store.read(lambda uow: _with_host(uow, _load(uow, resource_id)))

    async def change(
        self,
        principal: Principal,
        resource_id: str,
        changes: Mapping[str, Any],
        check: Callable[[Resource], None] = lambda resource: None,
    ) -> Resource:
        """Replace these fields; nothing is written where nothing differs. check: raises where the resource is not as
        the caller said. Raises NotFound, InvalidInput."""

        def change(uow: UnitOfWork) -> Resource:
            known = _with_host(uow, _load(uow, resource_id))
            check(known)
            now = updated(known, changed(known.declared, changes), uow.now_wall_ns)
            if now is known:
                return known
            uow[ResourceRepository].save(now)
            fields = {name: str(value)[:200] for name, value in changes.items()}
            uow.audit(principal.actor, "resource.change", _subject(resource_id), "asked for", fields)
            said = f"{resource_id} was changed: {', '.join(fields)}"
            uow.event("resource.changed", (_subject(resource_id),), said, fields, principal.actor)
            return now

        return await self._store.write(change, name="resource.change")

    async def bind(
        self, principal: Principal, resource_id: str, host_id: HostId | None, *, dedicated: bool = False
    ) -> Resource:
        """Let this host run the resource's work; None: no host. dedicated: it takes no work but its owner's.

        Raises NotFound, Conflict where the host is bound to another resource, Forbidden where it is somebody else's,
        since a bind limits what it takes, and where the one that is bound now is dedicated to somebody else."""

        def change(uow: UnitOfWork) -> Resource:
            known = _load(uow, resource_id)
            _check_frees(uow, principal, known)
            only_for = principal.account_id if dedicated and host_id is not None else None
            if (known.bound_host, known.dedicated_to) == (host_id, only_for):
                return _with_host(uow, known)
            name = ""
            if host_id is not None:
                host = find_host(uow, host_id)
                if host is None or host.admin_state is AdminState.RETIRED:
                    raise NotFound("There is no such host. List them: windrow host ls", subject=host_id[:128])
                if host.owner_account != principal.account_id:
                    raise Forbidden(f"The host {host.name} belongs to another account, which alone can bind it.")
                other = uow[ResourceRepository].bound_to(host_id)
                if other is not None and other.resource_id != resource_id:
                    raise Conflict(
                        f"The host {host.name} is bound to {other.resource_id}. Free it first: "
                        f"windrow resource unbind {other.resource_id}",
                        subject=host_id,
                    )
                name = host.name
            now = replace(known, bound_host=host_id, dedicated_to=only_for)
            uow[ResourceRepository].save(now)
            action, said = ("bind", f"is bound to {name}") if host_id is not None else ("unbind", "is bound to no host")
            said += ", which takes its owner's work only" if only_for is not None else ""
            subjects = (_subject(resource_id), *((f"host/{host_id}",) if host_id is not None else ()))
            uow.audit(
                principal.actor, f"resource.{action}", _subject(resource_id), "asked for", {"host": host_id or ""}
            )
            uow.event("resource.bound", subjects, f"{resource_id} {said}", {"host": host_id or ""}, principal.actor)
            return _with_host(uow, now)

        return await self._store.write(change, name="resource.bind")

    async def remove(self, principal: Principal, resource_id: str) -> None:
        """Forget one. Raises NotFound, Forbidden where its host is dedicated to somebody else."""

        def change(uow: UnitOfWork) -> None:
            known = _load(uow, resource_id)
            _check_frees(uow, principal, known)
            uow[ResourceRepository].remove(known)
            uow.audit(principal.actor, "resource.remove", _subject(resource_id), "asked for")
            said = f"{resource_id} was removed from the registry"
            uow.event("resource.removed", (_subject(resource_id),), said, actor=principal.actor)

        await self._store.write(change, name="resource.remove")


def limits(uow: UnitOfWork, question: HostLimits) -> Mapping[HostId, HostLimit]:
    """The limits of the hosts that resources are bound to."""
    return {
        one.host_id: HostLimit(one.most, None if one.only_for is None else AccountId(one.only_for))
        for one in uow[ResourceRepository].bound(question.hosts)
    }


def _check_frees(uow: UnitOfWork, principal: Principal, resource: Resource) -> None:
    """Raise Forbidden where its host is dedicated to somebody else. A host that was retired is nobody's."""
    if resource.bound_host is None or resource.dedicated_to in (None, principal.account_id):
        return
    host = find_host(uow, HostId(resource.bound_host))
    if host is None or host.admin_state is AdminState.RETIRED:
        return
    raise Forbidden(
        f"{resource.resource_id} is bound to the host {host.name}, which is dedicated to another account. That account "
        "alone can free it. To end it all the same, retire the host.",
        subject=resource.resource_id,
    )


def _subject(resource_id: str) -> str:
    """How audit and events name it: people choose its id, which may be like a host's."""
    return f"resource/{resource_id}"


def _with_host(uow: UnitOfWork, resource: Resource) -> Resource:
    """The resource with what is seen of its host; one whose host was retired has none."""
    if resource.bound_host is None:
        return resource
    host_id = HostId(resource.bound_host)
    host = find_host(uow, host_id)
    if host is None or host.admin_state is AdminState.RETIRED:
        return replace(resource, seen=Seen(host.name if host else host_id, False, False, 0))
    is_there = host.link_state in (LinkState.ONLINE, LinkState.SUSPECT)
    is_open = host.admin_state is AdminState.ACTIVE
    has = {} if host.inventory is None else _has(host.inventory.cpu_count, slots_of(uow, host_id))
    seen = Seen(host.name, is_there, is_open, running_on(uow, host_id), host.owner_account, **has)
    return replace(resource, seen=seen)


def _has(cpus: int, slots: Iterable[Slot]) -> dict[str, Any]:
    """What a host has, as Seen says it."""
    gpus: dict[str, tuple[int, int]] = {}
    for slot in slots:
        if slot.kind == "gpu":
            gpu = slot.tier.partition("/")[0]
            total, free = gpus.get(gpu, (0, 0))
            gpus[gpu] = (total + 1, free + slot.is_offered)
    return {"cpus": cpus, "gpus": gpus}


def _load(uow: UnitOfWork, resource_id: str) -> Resource:
    found = uow[ResourceRepository].get(resource_id)
    if found is None:
        raise NotFound("There is no such resource. List them: windrow resource ls", subject=resource_id[:128])
    return found
