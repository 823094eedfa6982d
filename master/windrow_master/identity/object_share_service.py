"""Keeps shares of objects: makes, lists and withdraws them, and says who may visit an object by one.

A share counts as long as it has not expired, its project is active, and whoever made it might still make it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Final

from windrow_master.identity.decide import Permission
from windrow_master.identity.membership import service_roles
from windrow_master.identity.model import AccountState, Principal, Role
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
    """A share with the names of whom it is between and of who made it. is_active: False where its project is suspended,
    or whoever made it could no longer make it."""

    share: ObjectShare
    project_name: str
    receiver_name: str
    maker_name: str
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
            parties = _Parties(uow)
            return [one for one in found if parties.is_active(one)]

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
            maker = principal.user_name or principal.account_name
            return ShareView(share, principal.account_name, receiver_name, maker, is_active=True)

        return await self._store.write(change, name="share.make")

    async def given(self, principal: Principal, object_id: str | None, after: str, limit: int) -> Sequence[ShareView]:
        """The shares of the caller's project, or of one of its objects, the oldest first."""

        def read(uow: UnitOfWork) -> list[ShareView]:
            now_ns, account_id = uow.now_wall_ns, principal.account_id
            found = uow[ObjectShareRepository].given(account_id, object_id, now_ns, after, limit)
            parties = _Parties(uow)
            return [parties.view(one) for one in found]

        return await self._store.read(read)

    async def received(
        self, principal: Principal, object_id: str | None, after: str, limit: int
    ) -> Sequence[ShareView]:
        """The active shares with the caller, with the caller's project or organisation, or of one object, the oldest
        first."""

        def read(uow: UnitOfWork) -> list[ShareView]:
            parties = _Parties(uow)

            def rows(last: ShareView | None, size: int) -> list[ShareView]:
                position = after if last is None else last.share.id
                found = uow[ObjectShareRepository].received(
                    receivers_of(principal), object_id, uow.now_wall_ns, position, size
                )
                return [parties.view(one) for one in found]

            return sift(rows, lambda view: view.is_active, limit, None)[0]

        return await self._store.read(read)

    async def withdraw(self, principal: Principal, share_id: str) -> None:
        """End a share of the caller's project; what goes on by it ends within seconds. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            share = uow[ObjectShareRepository].get(share_id)
            if share is None or share.account_id != principal.account_id:
                raise NotFound("There is no such share. List them: windrow share ls", subject=share_id[:64])
            uow[ObjectShareRepository].remove(share.id)
            said = f"is no longer shared with {_Parties(uow).receiver_name(share)}"
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


class _Parties:
    """Whom shares are between, each looked up once for all the shares of an answer."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self._account = cache(uow[AccountRepository].get)
        self._user = cache(uow[UserRepository].get)
        self._service = cache(uow[ServiceAccountRepository].get)
        self._organisation = cache(uow[OrganisationRepository].get)
        self._is_member = cache(lambda home, user_id: bool(home) and uow[OrganisationRepository].role(home, user_id)[0])
        self._maker_roles = cache(self._roles_of)

    def view(self, share: ObjectShare) -> ShareView:
        """A share with its names."""
        account = self._account(share.account_id)
        name = account.name if account is not None else share.account_id
        return ShareView(share, name, self.receiver_name(share), self._maker_name(share), self.is_active(share))

    def is_active(self, share: ObjectShare) -> bool:
        """Return whether the project is active and whoever made the share might still make it."""
        account = self._account(share.account_id)
        is_there = account is not None and account.state is AccountState.ACTIVE
        return is_there and may_give(self._maker_roles(share.made_by, share.account_id), share.level)

    def receiver_name(self, share: ObjectShare) -> str:
        """The receiver's name; of a user who is no member of the sharing organisation the id, as it was given."""
        if share.receiver_kind is ReceiverKind.ORGANISATION:
            organisation = self._organisation(share.receiver_id)
            return organisation.name if organisation is not None else share.receiver_id
        if share.receiver_kind is ReceiverKind.PROJECT:
            project = self._account(AccountId(share.receiver_id))
            return project.name if project is not None else share.receiver_id
        account, user = self._account(share.account_id), self._user(share.receiver_id)
        is_known = account is not None and self._is_member(account.organisation_id, share.receiver_id)
        return user.name if user is not None and is_known else share.receiver_id

    def _maker_name(self, share: ObjectShare) -> str:
        kind, _, maker = share.made_by.partition("/")
        of_kind = {"user": self._user, "service": self._service}.get(kind, self._account)
        found = of_kind(AccountId(maker))
        return found.name if found is not None else share.made_by

    def _roles_of(self, made_by: str, account_id: AccountId) -> frozenset[Role]:
        """The roles that the maker of a share has now in the project that shares."""
        account = self._account(account_id)
        kind, _, maker = made_by.partition("/")
        if account is None:
            return frozenset()
        if kind == "service":
            service = self._service(maker)
            return frozenset() if service is None else service_roles(service, account)
        if kind != "user":
            return account.roles
        user = self._user(maker)
        return frozenset() if user is None or user.disabled_at_ns is not None else standing(self._uow, user, account)


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
