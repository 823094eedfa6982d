"""Keeps templates: requests for clusters that an account saves by name. Nothing runs from one here: whoever wants
one reads it, changes what they like, and asks for a cluster as always."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.clusters import environments
from windrow_master.clusters.model import ClusterRequest, Template, names_of, template_owner
from windrow_master.clusters.request import checked, size
from windrow_master.clusters.template_repository import TemplateRepository
from windrow_master.identity.model import Principal
from windrow_master.identity.object_share_service import forget_object
from windrow_master.identity.object_shares import ObjectKind
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput, NotFound, TooMany
from windrow_proto.ids import ClusterId, is_id
from windrow_proto.sealed import SealKey

TEMPLATES_MAX: Final = 200
"""Of one account."""
TEMPLATES_CHARS_MAX: Final = 1 << 20
"""Of all of them: they are listed at once."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class TemplateService:
    """Templates of all accounts."""

    store: Store
    seal_key: SealKey
    """The Master's own, for the values of environments."""

    async def save(self, principal: Principal, name: str, request: ClusterRequest) -> Template:
        """Keep a request under this name, in place of what was kept there. Raises InvalidInput, TooMany."""
        if not _NAME.fullmatch(name):
            raise InvalidInput("name must be lower-case letters, digits, '.', '_' and '-', 64 at most.", subject="name")
        if is_id(name, "share"):
            raise InvalidInput("name: This is the id of a share. Take another name.", subject="name")
        asked = replace(checked(request, ClusterId("cluster_template")), name="")  # each cluster has its own

        sealed = environments.sealed(self.seal_key, asked.env, template_owner(principal.account_id, name))

        def change(uow: UnitOfWork) -> Template:
            names = replace(asked, env=names_of(asked.env))
            kept = Template(principal.account_id, name, names, uow.now_wall_ns, sealed)
            others = [one for one in uow[TemplateRepository].of_account(principal.account_id) if one.name != name]
            if len(others) >= TEMPLATES_MAX:
                raise TooMany(f"This account has {TEMPLATES_MAX} templates. Delete some.")
            if size(asked) + sum(size(one.request) + len(one.sealed) for one in others) > TEMPLATES_CHARS_MAX:
                raise TooMany(f"The templates of this account take {TEMPLATES_CHARS_MAX} characters. Delete some.")
            uow[TemplateRepository].save(kept)
            uow.audit(principal.actor, "template.save", name, "kept", {})
            return kept

        return self._whole(await self.store.write(change, name="template.save"))

    async def list(self, principal: Principal) -> Sequence[Template]:
        """All of the account, by name."""
        found = await self.store.read(lambda uow: uow[TemplateRepository].of_account(principal.account_id))
        return [self._whole(one) for one in found]

    async def get(self, principal: Principal, name: str) -> Template:
        """One of the account. Raises NotFound."""
        kept = await self.store.read(lambda uow: uow[TemplateRepository].get(principal.account_id, name))
        if kept is None:
            raise NotFound("There is no such template. List yours: windrow template ls", subject=name)
        return self._whole(kept)

    def _whole(self, kept: Template) -> Template:
        try:
            env = environments.opened(self.seal_key, kept.sealed, template_owner(kept.account_id, kept.name))
        except InvalidInput:
            return kept  # it was sealed to another key: its names are all that can be shown
        return replace(kept, request=replace(kept.request, env=env), sealed=b"")

    async def delete(self, principal: Principal, name: str) -> None:
        """Forget one. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            if not uow[TemplateRepository].delete(principal.account_id, name):
                raise NotFound("There is no such template. List yours: windrow template ls", subject=name)
            forget_object(uow, principal.account_id, ObjectKind.TEMPLATE, name)
            uow.audit(principal.actor, "template.delete", name, "asked for", {})

        await self.store.write(change, name="template.delete")
