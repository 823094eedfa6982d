"""Reads and writes identity providers and the identities of users there; rows are values of identity/providers.py."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import delete, insert, select, update

from windrow_master.identity.model import Role
from windrow_master.identity.providers import Grants, Identity, Provider
from windrow_master.identity.tables import identity_providers, user_identities
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId


class ProviderRepository(Repository):
    """Identity providers, and who is which user there."""

    def save(self, provider: Provider) -> None:
        """Add or replace one."""
        groups = {group: _grants_json(grants) for group, grants in provider.groups.items()}
        lists = {"domains": list(provider.domains), "scopes": list(provider.scopes), "groups": groups}
        values = _values(provider) | lists
        is_it = identity_providers.c.name == provider.name
        if self._connection.execute(update(identity_providers).where(is_it).values(**values)).rowcount == 0:
            self._connection.execute(insert(identity_providers).values(**values))

    def get(self, name: str) -> Provider | None:
        """One, or None."""
        return next(iter(self._providers(select(identity_providers).where(identity_providers.c.name == name))), None)

    def all(self) -> Sequence[Provider]:
        """All, in the order of their names."""
        return self._providers(select(identity_providers).order_by(identity_providers.c.name))

    def remove(self, name: str) -> None:
        """Remove one with all identities there."""
        self._connection.execute(delete(user_identities).where(user_identities.c.provider == name))
        self._connection.execute(delete(identity_providers).where(identity_providers.c.name == name))

    def identity(self, provider: str, subject: str) -> Identity | None:
        """The identity of this subject, or None."""
        is_it = (user_identities.c.provider == provider) & (user_identities.c.subject == subject)
        return next(iter(self._identities(is_it)), None)

    def identities_of(self, user_id: str) -> Sequence[Identity]:
        """Those of a user, in the order of the providers' names."""
        return self._identities(user_identities.c.user_id == user_id)

    def save_identity(self, identity: Identity) -> None:
        """Add or replace one."""
        values = _values(identity) | {"granted": _grants_json(identity.granted)}
        is_it = (user_identities.c.provider == identity.provider) & (user_identities.c.subject == identity.subject)
        if self._connection.execute(update(user_identities).where(is_it).values(**values)).rowcount == 0:
            self._connection.execute(insert(user_identities).values(**values))

    def remove_identity(self, identity: Identity) -> None:
        """Remove one."""
        is_it = (user_identities.c.provider == identity.provider) & (user_identities.c.subject == identity.subject)
        self._connection.execute(delete(user_identities).where(is_it))

    def forget_user(self, user_id: str) -> None:
        """Remove those of a user."""
        self._connection.execute(delete(user_identities).where(user_identities.c.user_id == user_id))

    def _providers(self, query: Any) -> list[Provider]:
        return [_provider(row) for row in self._connection.execute(query).mappings()]

    def _identities(self, condition: Any) -> list[Identity]:
        query = select(user_identities).where(condition).order_by(user_identities.c.provider)
        rows = self._connection.execute(query).mappings()
        return [Identity(**dict(row) | {"granted": _grants(row["granted"])}) for row in rows]


def _values(one: Provider | Identity) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(one)}


def _provider(row: Mapping[Any, Any]) -> Provider:
    return Provider(
        **dict(row)
        | {
            "sealed": None if row["sealed"] is None else bytes(row["sealed"]),
            "domains": tuple(row["domains"]),
            "scopes": tuple(row["scopes"]),
            "groups": {group: _grants(said) for group, said in row["groups"].items()},
        }
    )


def _grants_json(grants: Grants) -> dict[str, Any]:
    return {"role": grants.role, "projects": {one: sorted(roles) for one, roles in grants.projects.items()}}


def _grants(said: Mapping[str, Any]) -> Grants:
    projects = {AccountId(one): frozenset(map(Role, roles)) for one, roles in said["projects"].items()}
    return Grants(None if said["role"] is None else Role(said["role"]), projects)
