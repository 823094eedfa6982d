"""Sets, lists and deletes the secrets of projects, and opens them for a launch. No method for people returns a
value."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.identity.model import Principal
from windrow_master.secrets import sealing
from windrow_master.secrets.messages import SecretUsers
from windrow_master.secrets.model import (
    SECRETS_MAX,
    Opened,
    Secret,
    SecretKind,
    SecretUser,
    login_of,
    names_in,
    parsed,
    variable_of,
    variables_of,
)
from windrow_master.secrets.repository import SecretRepository
from windrow_master.spec import Work
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput, NotFound, TooMany
from windrow_proto.ids import AccountId
from windrow_proto.sealed import VALUES_MAX, SealKey

PURPOSE: Final = "secrets"
"""Of the key above the data keys."""
NOTHING: Final = Opened()


@dataclass(frozen=True, slots=True)
class SecretView:
    """A secret and who names it."""

    secret: Secret
    users: Sequence[SecretUser] = ()


class SecretService:
    """Secrets of all projects. Methods that take a `uow` run inside the caller's unit of work."""

    def __init__(self, store: Store, seal_key: SealKey) -> None:
        """seal_key: the Master's own, from which the key above all data keys comes."""
        self._store, self._key = store, seal_key.data_key(PURPOSE)

    async def set(self, principal: Principal, name: str, kind: SecretKind, value: str) -> SecretView:
        """Keep a value under this name, in place of what was kept there. value: as `parsed` takes it. Raises
        InvalidInput, TooMany."""
        account_id, raw = principal.account_id, parsed(kind, value)
        wrapped_key, sealed = sealing.sealed(self._key, account_id, name, kind, raw)

        def change(uow: UnitOfWork) -> Secret:
            self._store.admit()
            known = uow[SecretRepository].get(account_id, name)
            if known is None and len(uow[SecretRepository].of_account(account_id)) >= SECRETS_MAX:
                raise TooMany(f"This project has {SECRETS_MAX} secrets. Delete some: windrow secret rm NAME")
            new = Secret(
                account_id=account_id,
                name=name,
                kind=kind,
                wrapped_key=wrapped_key,
                sealed=sealed,
                created_at_ns=uow.now_wall_ns,
                created_by=principal.actor,
                updated_at_ns=uow.now_wall_ns,
                updated_by=principal.actor,
            )
            if known is not None:
                new = replace(
                    new,
                    created_at_ns=known.created_at_ns,
                    created_by=known.created_by,
                    last_used_at_ns=known.last_used_at_ns,
                    last_used_by=known.last_used_by,
                )
            uow[SecretRepository].save(new)
            said = "kept" if known is None else "replaced"
            uow.audit(principal.actor, "secret.set", name, said, {"project": account_id, "kind": kind.value})
            return new

        return await self._viewed(await self._store.write(change, name="secret.set"))

    async def list(self, principal: Principal) -> Sequence[SecretView]:
        """All of the project, by name."""

        def read(uow: UnitOfWork) -> Sequence[SecretView]:
            users = uow.ask(SecretUsers(principal.account_id))
            found = uow[SecretRepository].of_account(principal.account_id)
            return [SecretView(one, users.get(one.name, ())) for one in found]

        return await self._store.read(read)

    async def get(self, principal: Principal, name: str) -> SecretView:
        """One of the project. Raises NotFound."""
        return await self._store.read(lambda uow: _view(uow, _load(uow, principal.account_id, name)))

    async def delete(self, principal: Principal, name: str) -> SecretView:
        """Forget one; returns it as it was, with who still names it. Raises NotFound."""

        def change(uow: UnitOfWork) -> Secret:
            found = _load(uow, principal.account_id, name)
            uow[SecretRepository].delete(principal.account_id, name)
            uow.audit(principal.actor, "secret.delete", name, "asked for", {"project": principal.account_id})
            return found

        return await self._viewed(await self._store.write(change, name="secret.delete"))

    async def _viewed(self, secret: Secret) -> SecretView:
        """With who names it: that reads much, which no write waits for."""
        return await self._store.read(lambda uow: _view(uow, secret))

    def forget_account(self, uow: UnitOfWork, account_id: AccountId) -> None:
        """Delete all of a project."""
        uow[SecretRepository].forget_account(account_id)

    # --- for work ---

    def open(self, uow: UnitOfWork, account_id: AccountId, request: Work) -> Opened:
        """The values that a request names, as they are now. Raises InvalidInput for the first secret that is not there,
        is of another kind, or was sealed with another key."""
        if not request.secrets and request.registry_secret is None:
            return NOTHING
        found, login = dict[str, str](), None
        for variable, name in variables_of(request):
            secret = _named(uow, account_id, name)
            if secret.kind is SecretKind.REGISTRY_LOGIN:
                words = f"The secret {name} is a registry login, which no variable holds"
                raise InvalidInput(f"{words}. Give it for the image: --registry-secret {name}", subject=name)
            found[variable] = variable_of(secret.kind, sealing.opened(self._key, secret))
        if request.registry_secret is not None:
            secret = _named(uow, account_id, request.registry_secret)
            if secret.kind is not SecretKind.REGISTRY_LOGIN:
                way = f"Set one: windrow secret set {secret.name} --kind registry_login"
                raise InvalidInput(f"The secret {secret.name} is no registry login. {way}", subject=secret.name)
            login = login_of(sealing.opened(self._key, secret))
        size_bytes = len(json.dumps(found | dict(request.env)))
        if size_bytes > VALUES_MAX:
            words = f"The secrets and variables of this request have {size_bytes:,} bytes together"
            raise InvalidInput(f"{words}; at most {VALUES_MAX:,} reach a host. Name fewer.", subject="secrets")
        return Opened(found, login)

    def used(self, uow: UnitOfWork, account_id: AccountId, request: Work, cluster_id: str, actor: str) -> None:
        """Write down that a cluster was given the values that its request names."""
        names = sorted(names_in(request))
        for name in names:
            uow[SecretRepository].used(account_id, name, uow.now_wall_ns, cluster_id)
        if names:
            uow.audit(actor, "secret.use", cluster_id, "given to its hosts", {"secrets": ", ".join(names)})


def _load(uow: UnitOfWork, account_id: AccountId, name: str) -> Secret:
    found = uow[SecretRepository].get(account_id, name)
    if found is None:
        raise NotFound(f"There is no secret {name[:64]} in this project. List yours: windrow secret ls", subject=name)
    return found


def _named(uow: UnitOfWork, account_id: AccountId, name: str) -> Secret:
    """A secret that a request names."""
    found = uow[SecretRepository].get(account_id, name)
    if found is None:
        words = f"There is no secret {name} in this project"
        raise InvalidInput(f"{words}. Set it: windrow secret set {name}", subject=name)
    return found


def _view(uow: UnitOfWork, secret: Secret) -> SecretView:
    return SecretView(secret, uow.ask(SecretUsers(secret.account_id)).get(secret.name, ()))
