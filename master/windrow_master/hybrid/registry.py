"""Registers, lists, changes and removes compute resources: machines of one's own, of clouds, at the edge."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from windrow_master.hybrid.model import (
    RESOURCES_MAX,
    Declared,
    Resource,
    ResourceStatus,
    ResourceType,
    changed,
    picked,
    updated,
)
from windrow_master.hybrid.repository import ResourceRepository
from windrow_master.identity.model import Principal
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import AlreadyRegistered, NotFound, TooMany


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
        found = await self._store.read(lambda uow: uow[ResourceRepository].all())
        return picked(found, status, kind, provider)

    async def get(self, resource_id: str) -> Resource:
        """One. Raises NotFound."""
        return await self._store.read(lambda uow: _load(uow, resource_id))

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
            known = _load(uow, resource_id)
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

    async def remove(self, principal: Principal, resource_id: str) -> None:
        """Forget one. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            uow[ResourceRepository].remove(_load(uow, resource_id))
            uow.audit(principal.actor, "resource.remove", _subject(resource_id), "asked for")
            said = f"{resource_id} was removed from the registry"
            uow.event("resource.removed", (_subject(resource_id),), said, actor=principal.actor)

        await self._store.write(change, name="resource.remove")


def _subject(resource_id: str) -> str:
    """How audit and events name it: people choose its id, which may be like a host's."""
    return f"resource/{resource_id}"


def _load(uow: UnitOfWork, resource_id: str) -> Resource:
    found = uow[ResourceRepository].get(resource_id)
    if found is None:
        raise NotFound("There is no such resource. List them: windrow resource ls", subject=resource_id[:128])
    return found
