"""Keeps shares of objects: makes, lists and withdraws them, and says who may visit an object by one.

A share counts as long as it has not expired, its project is active, and whoever made it might still make it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from windrow_master.identity.decide import Permission
from windrow_master.identity.membership import service_roles
from windrow_master.identity.model import AccountState, Principal
from windrow_master.identity.object_share_repository import ObjectShareRepository
from windrow_master.identity.object_shares import (
    SHARES_MAX,
    Level,
    ObjectKind,
    ObjectShare,
    ReceiverKind,
    check_gives,
    check_life,
    check_receiver,
    may_give,
    receivers_of,
    visiting,
)
from windrow_master.identity.people_lookup import organisation_named
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import AccountRepository, ServiceAccountRepository
from windrow_master.identity.sessions import standing
from windrow_master.sift import sift
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, NotFound, TooMany, WindrowError
from windrow_proto.ids import AccountId, is_id
from windrow_proto.ports import Clock
from windrow_proto.units import HOUR

NOTED_AGAIN_NS: Final = HOUR
"""Between two events that tell of the use of one share by the same user: an hour with many commands is one line."""
NOTED_MAX: Final = 10_000
"""Uses that are remembered for that."""


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """A share to make. object_id, object_name: of an object that the caller's project owns. receiver: an id or a name.
    life_ns: None: without end."""

    object_kind: ObjectKind
    object_id: str
    object_name: str
    receiver_kind: ReceiverKind
    receiver: str
    level: Level
    life_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ShareView:
    """A share with the names of whom it is between. is_active: False where its project is suspended, or whoever made
    it could no longer make it."""

    share: ObjectShare
    project_name: str
    receiver_name: str
    is_active: bool


class ObjectShareService:
    """Shares of objects."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._noted = dict[tuple[str, str], int]()

    async def visit(
        self, principal: Principal, kind: ObjectKind, named: str, permission: Permission, needed: Level
    ) -> tuple[Principal, ObjectShare] | None:
        """The caller as the owner's project lets it act on an object, and the share by which; None: by its own rights
        alone. named: its id; of a template, whose name only its own project knows, the id of the share. Raises
        Forbidden where the object is shared with the caller at a lower level."""
        if not is_id(named, "share" if kind is ObjectKind.TEMPLATE else kind):
            return None

        def read(uow: UnitOfWork) -> list[ObjectShare]:
            receivers = receivers_of(principal)
            found = uow[ObjectShareRepository].of_object(kind, named, receivers, uow.now_wall_ns)
            return [one for one in found if _is_active(uow, one)]

        found = visiting(principal, await self._store.read(read), permission, needed)
        if found is not None and needed is not Level.SEE:
            await self._note_use(principal, found[1])
        return found

    async def _note_use(self, principal: Principal, share: ObjectShare) -> None:
        """Tell the owner who is inside, now and then."""
        used, now_ns = (share.id, principal.actor), self._clock.wall_ns()
        if now_ns < self._noted.get(used, 0) + NOTED_AGAIN_NS:
            return
        if len(self._noted) >= NOTED_MAX:
            self._noted.clear()
        self._noted[used] = now_ns
        who = principal.user_name or principal.account_name
        with suppress(WindrowError):  # nobody is kept out because it cannot be written down
            await self._store.write(
                lambda uow: _tell(uow, principal, share, "used", f"is used by {who}"), name="share.used"
            )

    async def add(self, principal: Principal, wanted: ShareRequest) -> ShareView:
        """Share an object of the caller's project, in place of a share of it with the same receiver. Raises
        InvalidInput, Forbidden, NotFound for a receiver that there is not, Conflict for a name of several, TooMany."""
        check_gives(principal, wanted.object_kind, wanted.level)
        check_life(wanted.life_ns)

        def change(uow: UnitOfWork) -> ShareView:
            receiver_id, receiver_name = _receiver(uow, principal, wanted.receiver_kind, wanted.receiver)
            check_receiver(principal, receiver_id)
            repository, now_ns = uow[ObjectShareRepository], uow.now_wall_ns
            repository.forget_expired(principal.account_id, now_ns)
            share = ObjectShare(
                uow.mint("share"),
                wanted.object_kind,
                wanted.object_id,
                wanted.object_name[:128],
                principal.account_id,
                wanted.receiver_kind,
                receiver_id,
                wanted.level,
                principal.actor,
                now_ns,
                None if wanted.life_ns is None else now_ns + wanted.life_ns,
                principal.token_id or None,
            )
            repository.add(share)
            if repository.count(principal.account_id) > SHARES_MAX:
                raise TooMany(f"This project has {SHARES_MAX:,} shares. Withdraw some: windrow share rm ID")
            _tell(uow, principal, share, "made", f"was shared with {receiver_name} ({share.level})")
            return ShareView(share, principal.account_name, receiver_name, is_active=True)

        return await self._store.write(change, name="share.make")

    async def given(self, principal: Principal, object_id: str | None, after: str, limit: int) -> Sequence[ShareView]:
        """The shares of the caller's project, or of one of its objects, the oldest first."""

        def read(uow: UnitOfWork) -> list[ShareView]:
            now_ns, account_id = uow.now_wall_ns, principal.account_id
            found = uow[ObjectShareRepository].given(account_id, object_id, now_ns, after, limit)
            return [_view(uow, one) for one in found]

        return await self._store.read(read)

    async def received(
        self, principal: Principal, object_id: str | None, after: str, limit: int
    ) -> Sequence[ShareView]:
        """The active shares with the caller, with the caller's project or organisation, or of one object, the oldest
        first."""

        def read(uow: UnitOfWork) -> list[ShareView]:
            def rows(last: ShareView | None, size: int) -> list[ShareView]:
                position = after if last is None else last.share.id
                found = uow[ObjectShareRepository].received(
                    receivers_of(principal), object_id, uow.now_wall_ns, position, size
                )
                return [_view(uow, one) for one in found]

            return sift(rows, lambda view: view.is_active, limit, None)[0]

        return await self._store.read(read)

    async def withdraw(self, principal: Principal, share_id: str) -> None:
        """End a share of the caller's project; what goes on by it ends within seconds. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            share = uow[ObjectShareRepository].get(share_id)
            if share is None or share.account_id != principal.account_id:
                raise NotFound("There is no such share. List them: windrow share ls", subject=share_id[:64])
            uow[ObjectShareRepository].remove(share.id)
            said = f"is no longer shared with {_name_of(uow, share)}"
            _tell(uow, principal, share, "withdrawn", said)

        await self._store.write(change, name="share.withdraw")


def forget_object(uow: UnitOfWork, account_id: AccountId, kind: ObjectKind, object_id: str) -> None:
    """End the shares of an object that is gone: another one may get its name."""
    uow[ObjectShareRepository].forget_object(account_id, kind, object_id)


def _tell(uow: UnitOfWork, principal: Principal, share: ObjectShare, what: str, said: str) -> None:
    fields = {"object": share.object_id, "with": share.receiver_id, "level": share.level.value}
    uow.audit(principal.actor, f"share.{what}", share.id, fields=fields)
    is_page = share.object_kind is not ObjectKind.TEMPLATE
    subjects = (share.object_id, share.account_id) if is_page else (share.account_id,)
    uow.event(f"share.{what}", subjects, f"The {share.text} {said}", fields, principal.actor)


def _is_active(uow: UnitOfWork, share: ObjectShare) -> bool:
    account = uow[AccountRepository].get(share.account_id)
    if account is None or account.state is not AccountState.ACTIVE:
        return False
    kind, _, maker = share.made_by.partition("/")
    if kind == "service":
        service = uow[ServiceAccountRepository].get(maker)
        return service is not None and may_give(service_roles(service, account), share.level)
    if kind != "user":
        return may_give(account.roles, share.level)
    user = uow[UserRepository].get(maker)
    is_there = user is not None and user.disabled_at_ns is None
    return user is not None and is_there and may_give(standing(uow, user, account), share.level)


def _view(uow: UnitOfWork, share: ObjectShare) -> ShareView:
    account = uow[AccountRepository].get(share.account_id)
    name = account.name if account is not None else share.account_id
    return ShareView(share, name, _name_of(uow, share), _is_active(uow, share))


def _name_of(uow: UnitOfWork, share: ObjectShare) -> str:
    """The receiver's name; of a user who is no member of the sharing organisation the id, as it was given."""
    if share.receiver_kind is ReceiverKind.ORGANISATION:
        organisation = uow[OrganisationRepository].get(share.receiver_id)
        return organisation.name if organisation is not None else share.receiver_id
    if share.receiver_kind is ReceiverKind.PROJECT:
        project = uow[AccountRepository].get(AccountId(share.receiver_id))
        return project.name if project is not None else share.receiver_id
    account, user = uow[AccountRepository].get(share.account_id), uow[UserRepository].get(share.receiver_id)
    own = account.organisation_id if account is not None else None
    is_known = own is not None and uow[OrganisationRepository].role(own, share.receiver_id)[0]
    return user.name if user is not None and is_known else share.receiver_id


def _receiver(uow: UnitOfWork, principal: Principal, kind: ReceiverKind, wanted: str) -> tuple[str, str]:
    """The id and name of whom to share with. A user is named by name or mail address within the own organisation, by id
    elsewhere: nobody learns here who else is a user."""
    if kind is ReceiverKind.PROJECT:
        project = uow[AccountRepository].get(AccountId(wanted)) or uow[AccountRepository].by_name(wanted)
        if project is None or project.organisation_id is None or project.state is AccountState.DELETED:
            raise NotFound("There is no such project. Ask its members for its name.", subject="receiver")
        return project.id, project.name
    if kind is ReceiverKind.ORGANISATION:
        organisation = organisation_named(uow, wanted)
        return organisation.id, organisation.name
    found = uow[OrganisationRepository].members_named(principal.organisation_id or "", wanted)
    if len(found) > 1:
        raise Conflict("Several members have this name. Give the mail address or the id.", subject="receiver")
    user = found[0] if found else uow[UserRepository].get(wanted)
    if user is None or user.erased_at_ns is not None:
        raise NotFound(
            "There is no such member of your organisation. Name others by their id, which `windrow whoami` tells them.",
            subject="receiver",
        )
    return user.id, user.name if found else user.id
