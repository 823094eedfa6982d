"""Makes, changes and deletes channels, and tests them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from windrow_master.identity.model import INSTALLATION_ROLES, PROJECT_ROLES, Principal, Role
from windrow_master.identity.people_lookup import is_colleague, own_user_of, whole_user_of
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.notify import apprise_services
from windrow_master.watch.notify.model import (
    CHANNELS_MAX,
    OPERATORS,
    TESTS_MAX,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    MailLevel,
    Quiet,
    Scope,
    check_settings,
    check_target,
    trial_message,
)
from windrow_master.watch.notify.repository import ChannelRepository, DeliveryRepository
from windrow_master.watch.notify.sender import Sender, Target
from windrow_master.watch.notify.webhook import SECRET_BYTES, secret_of
from windrow_proto.conditions import Severity
from windrow_proto.errors import Conflict, Forbidden, InvalidInput, NotFound, TooMany
from windrow_proto.ids import AccountId
from windrow_proto.ports import Rng
from windrow_proto.units import MINUTE

CHANGERS: Final = {
    Scope.PROJECT: frozenset({Role.ADMIN, Role.RENTER, Role.PROVIDER}),
    Scope.ORGANISATION: frozenset({Role.ORG_OWNER, Role.ORG_ADMIN}),
    Scope.OPERATORS: frozenset({Role.OPERATOR}),
}
READERS: Final = {
    Scope.PROJECT: PROJECT_ROLES,
    Scope.ORGANISATION: frozenset({Role.ORG_OWNER, Role.ORG_ADMIN, Role.ORG_AUDITOR}),
    Scope.OPERATORS: INSTALLATION_ROLES,
}
"""Roles that change, and that see, the channels of a scope; those of a user are the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """What can be changed of a channel; the fields are those of Channel."""

    name: str
    min_severity: Severity
    rules: tuple[str, ...]
    quiet: Quiet | None
    digest_minutes: int | None
    is_enabled: bool


class ChannelService:
    """Channels of everybody."""

    def __init__(self, store: Store, rng: Rng, sender: Sender) -> None:
        self._store, self._rng, self._sender = store, rng, sender

    async def add(
        self, principal: Principal, scope: Scope, kind: ChannelKind, target: str, settings: ChannelSettings
    ) -> tuple[Channel, str | None]:
        """Make a channel; returns it and the secret of a webhook, which is shown this once. target: an address or a
        URL. Raises InvalidInput, Forbidden, TooMany, Conflict where this Master cannot send so."""
        shown = check_target(kind, target)
        if kind is ChannelKind.MAIL and not self._sender.sends_mail:
            raise Conflict("This market sends no mail. An operator sets WINDROW_SMTP_URL.")
        if kind is ChannelKind.APPRISE and not apprise_services.is_installed():
            raise Conflict(f"This Master has no apprise. {apprise_services.WAY}")
        secret = self._secret() if kind is ChannelKind.WEBHOOK else None

        def change(uow: UnitOfWork) -> Channel:
            self._store.admit()
            owner = _owner(uow, principal, scope)
            if scope is not Scope.OPERATORS and kind is ChannelKind.MAIL and not is_colleague(uow, principal, target):
                words = "Mail goes to addresses of members of your organisation. Invite its reader"
                raise Forbidden(f"{words}, or ask an operator for this channel.")
            if len(uow[ChannelRepository].of_owners({owner})) >= CHANNELS_MAX:
                raise TooMany(f"There are {CHANNELS_MAX} channels. Delete some: windrow channel rm NAME")
            channel_id = uow.mint("channel")
            channel = Channel(
                channel_id=channel_id,
                owner=owner,
                kind=kind,
                name=settings.name,
                sealed=self._sealed(channel_id, kind, target, secret),
                shown=shown,
                min_severity=settings.min_severity,
                created_by=principal.actor,
                created_at_ns=uow.now_wall_ns,
            )
            channel = _with(uow, channel, settings)
            _audit(uow, principal, "channel.add", channel)
            return channel

        return await self._store.write(change, name="channel.add"), secret

    async def set(self, principal: Principal, channel_id: str, settings: ChannelSettings) -> Channel:
        """Change the settings of a channel. One that is switched off gives up what it has not sent. Raises NotFound,
        InvalidInput, Forbidden."""

        def change(uow: UnitOfWork) -> Channel:
            changed = _with(uow, _own(uow, principal, channel_id, CHANGERS), settings)
            if changed.disabled_at_ns is not None:
                uow[DeliveryRepository].give_up(channel_id, "The channel was switched off.", uow.now_wall_ns)
            _audit(uow, principal, "channel.set", changed)
            return changed

        return await self._store.write(change, name="channel.set")

    async def rotate(self, principal: Principal, channel_id: str) -> tuple[Channel, str]:
        """Make a new secret for a webhook; the one before signs for another day, too. Raises NotFound, InvalidInput."""
        secret = self._secret()

        def change(uow: UnitOfWork) -> Channel:
            found = _own(uow, principal, channel_id, CHANGERS)
            if found.kind is not ChannelKind.WEBHOOK:
                raise InvalidInput("Only a webhook has a secret.", subject=channel_id)
            target = self._sender.target(found)
            sealed = self._sender.sealed(channel_id, Target(target.address, (secret, target.secrets[0])))
            changed = replace(found, sealed=sealed, rotated_at_ns=uow.now_wall_ns)
            uow[ChannelRepository].save(changed)
            _audit(uow, principal, "channel.rotate", changed)
            return changed

        return await self._store.write(change, name="channel.rotate"), secret

    async def delete(self, principal: Principal, channel_id: str) -> None:
        """Delete a channel; what it has not sent is given up. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            found = _own(uow, principal, channel_id, CHANGERS)
            uow[ChannelRepository].remove(channel_id)
            uow[DeliveryRepository].give_up(channel_id, "The channel was deleted.", uow.now_wall_ns)
            _audit(uow, principal, "channel.delete", found)

        await self._store.write(change, name="channel.delete")

    async def test(self, principal: Principal, channel_id: str) -> Delivery:
        """Send a test message at once, whatever the settings are, and return how it went. Raises NotFound, TooMany."""

        def begin(uow: UnitOfWork) -> tuple[Channel, Delivery]:
            channel, at_ns = _own(uow, principal, channel_id, CHANGERS), uow.now_wall_ns
            if uow[DeliveryRepository].tests_since(channel.owner, at_ns - MINUTE) >= TESTS_MAX:
                raise TooMany(f"There were {TESTS_MAX} tests within a minute. Wait one.", subject=channel_id)
            delivery_id = uow.mint("delivery")
            delivery = Delivery(
                delivery_id=delivery_id,
                message=trial_message(channel, delivery_id, at_ns),
                channel_id=channel_id,
                owner=channel.owner,
                state=DeliveryState.GIVEN_UP,
                due_at_ns=None,
                first_at_ns=at_ns,
                tries=1,
                last_answer="It is being sent.",
                done_at_ns=at_ns,
            )
            uow[DeliveryRepository].add(delivery)  # before it is sent, so that it counts
            return channel, delivery

        channel, begun = await self._store.write(begin, name="channel.test")
        outcome = await self._sender.send(channel, [begun.message])
        state = DeliveryState.SENT if outcome.is_sent else DeliveryState.GIVEN_UP
        done = replace(begun, state=state, last_answer=outcome.answer)
        await self._store.write(lambda uow: uow[DeliveryRepository].save(done), name="channel.tested")
        return done

    async def list(self, principal: Principal, after: str, limit: int) -> Sequence[Channel]:
        """The channels that the caller sees, in the order of their ids."""
        owners = visible_owners(principal)
        return await self._store.read(lambda uow: uow[ChannelRepository].of_owners(owners, after, limit))

    async def get(self, principal: Principal, channel_id: str) -> Channel:
        """One of those. Raises NotFound."""
        return await self._store.read(lambda uow: _own(uow, principal, channel_id, READERS))

    # --- mail without a channel ---

    async def mail_level(self, principal: Principal) -> MailLevel:
        """The alerts that the caller's user gets by mail. Raises Forbidden for a project's own token."""

        def read(uow: UnitOfWork) -> MailLevel:
            user = own_user_of(uow, principal)
            return uow[ChannelRepository].mail_levels([user.id]).get(user.id, MailLevel.URGENT)

        return await self._store.read(read)

    async def set_mail_level(self, principal: Principal, level: MailLevel) -> None:
        """Choose the alerts that the caller's user gets by mail. Raises Forbidden."""

        def change(uow: UnitOfWork) -> None:
            user = whole_user_of(uow, principal)
            uow[ChannelRepository].set_mail_level(user.id, level)
            uow.audit(principal.actor, "user.alert_mail", user.id, fields={"level": level.value})

        await self._store.write(change, name="user.alert_mail")

    def _sealed(self, channel_id: str, kind: ChannelKind, target: str, secret: str | None) -> bytes:
        if kind is ChannelKind.MAIL:
            return b""
        return self._sender.sealed(channel_id, Target(target, () if secret is None else (secret,)))

    def _secret(self) -> str:
        return secret_of(self._rng.random_bytes(SECRET_BYTES))


def visible_owners(principal: Principal) -> frozenset[str]:
    """The owners whose channels and deliveries the caller sees."""
    by_scope = {
        Scope.PROJECT: str(principal.account_id),
        Scope.ORGANISATION: principal.organisation_id,
        Scope.OPERATORS: OPERATORS,
    }
    found = {owner for scope, owner in by_scope.items() if owner and principal.roles & READERS[scope]}
    return frozenset(found | ({principal.user_id} if principal.user_id else set()))


def forget(uow: UnitOfWork, owner: AccountId | str) -> None:
    """Delete what a project or a user had."""
    for channel in uow[ChannelRepository].of_owners({owner}):
        uow[ChannelRepository].remove(channel.channel_id)
    uow[DeliveryRepository].forget_owner(owner)
    uow[ChannelRepository].set_mail_level(owner, None)


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name, such as Europe/Berlin. Raises InvalidInput."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        words = f"This Master's machine knows no time zone {name[:40]!r}"
        raise InvalidInput(f"{words}. It looks like Europe/Berlin.", subject="time_zone") from None


def _with(uow: UnitOfWork, channel: Channel, settings: ChannelSettings) -> Channel:
    """Write a channel with these settings."""
    if settings.quiet is not None:
        zone_of(settings.quiet.time_zone)
    off_ns = None if settings.is_enabled else channel.disabled_at_ns or uow.now_wall_ns
    changed = check_settings(
        replace(
            channel,
            name=settings.name,
            min_severity=settings.min_severity,
            rules=settings.rules,
            quiet=settings.quiet,
            digest_minutes=settings.digest_minutes,
            disabled_at_ns=off_ns,
        )
    )
    others = uow[ChannelRepository].of_owners({channel.owner})
    if any(one.name == changed.name and one.channel_id != channel.channel_id for one in others):
        raise Conflict(f"There is a channel {changed.name} already.", subject="name")
    uow[ChannelRepository].save(changed)
    return changed


def _owner(uow: UnitOfWork, principal: Principal, scope: Scope) -> str:
    """The owner of a new channel. Raises Forbidden."""
    if scope is Scope.ME:
        return whole_user_of(uow, principal).id
    if not principal.roles & CHANGERS[scope]:
        raise Forbidden(f"A channel of this scope needs one of the roles {', '.join(sorted(CHANGERS[scope]))}.")
    owner = {Scope.PROJECT: principal.account_id, Scope.ORGANISATION: principal.organisation_id}.get(scope, OPERATORS)
    if owner is None:
        raise InvalidInput("scope: This project belongs to no organisation.", subject="scope")
    return owner


def _own(uow: UnitOfWork, principal: Principal, channel_id: str, roles: dict[Scope, frozenset[Role]]) -> Channel:
    """A channel that the caller sees. Raises NotFound, and Forbidden where it takes one of these roles."""
    found = uow[ChannelRepository].get(channel_id)
    if found is None or found.owner not in visible_owners(principal):
        raise NotFound("There is no such channel. List yours: windrow channel ls", subject=channel_id[:64])
    if found.scope is not Scope.ME and not principal.roles & roles[found.scope]:
        raise Forbidden(f"It takes one of the roles {', '.join(sorted(roles[found.scope]))}.", subject=channel_id)
    return found


def _audit(uow: UnitOfWork, principal: Principal, action: str, channel: Channel) -> None:
    fields = {"name": channel.name, "kind": channel.kind.value, "owner": channel.owner, "target": channel.shown}
    uow.audit(principal.actor, action, channel.channel_id, fields=fields)
