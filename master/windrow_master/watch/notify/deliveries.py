"""Delivers messages of alerts to channels: at least once, with an id that receivers know again, in order per object.

    queue (in the transaction of the alert) ─▶ held ─▶ waiting ─▶ sent
                                                          │ ▲ pause, up to 1 h; after 3 days: given up
                                                          ▼ │
                                                         a try

Rows are the only state, so a Master that is killed between a try and its record tries again with the same id. A channel
of which every try fails is tried by its oldest messages alone, and the others with the first that goes through.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import structlog

from windrow_master.identity.model import Principal
from windrow_master.identity.people import User
from windrow_master.identity.people_lookup import organisation_id_of, people_of, user_of_id
from windrow_master.loops import when_due
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.model import AlertMessage
from windrow_master.watch.notify import schedule
from windrow_master.watch.notify.channels import visible_owners, zone_of
from windrow_master.watch.notify.model import (
    OPERATORS,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    MailLevel,
    least_severity,
    units,
    wants,
)
from windrow_master.watch.notify.repository import ChannelRepository, DeliveryRepository
from windrow_master.watch.notify.sender import Outcome, Sender
from windrow_master.work_queue import WorkQueue
from windrow_proto.conditions import ConditionCode, Severity, Stated
from windrow_proto.errors import Conflict, InvalidInput, NotFound, WindrowError
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import DAY, SECOND

LOOK_NS: Final = SECOND // 10
"""Between two looks at the least; many messages of one moment share one."""
AT_ONCE: Final = 4
"""Tries of one channel."""
CHANNELS_AT_ONCE: Final = 16
OWNER_AT_ONCE: Final = 4
"""Of these, channels of one owner."""
AGAIN_NS: Final = 2 * SECOND
"""Before a channel is looked at again whose tries could not be recorded."""
MAIL: Final = "mail:"
"""How the ids begin of channels that no row has: the mail of a user, whose id follows."""
_LOOK: Final = "look"

log = structlog.get_logger(__name__)
Tried = Sequence[tuple[Sequence[Delivery], Outcome]]


class DeliveryService:
    """Deliveries of all channels. Used on the loop, but for what has a `uow`."""

    def __init__(self, store: Store, clock: Clock, rng: Rng, sender: Sender) -> None:
        self._store, self._clock, self._rng, self._sender = store, clock, rng, sender
        self._queue = WorkQueue[str](clock)
        self._busy: set[str] = set()
        self._down: set[str] = set()
        """Channels of which every try of the last round failed."""
        self._problems: dict[str, tuple[str, int]] = {}
        self._slots = asyncio.Semaphore(CHANNELS_AT_ONCE)
        self._shares = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(OWNER_AT_ONCE))
        """By owner: one whose receivers are slow delays nobody else."""

    def conditions(self) -> Iterator[Stated]:
        """The channels of the installation that gave up a message, until one goes through, for a day."""
        for said, at_ns in self._problems.values():
            if self._clock.wall_ns() - at_ns < DAY:
                yield ConditionCode.MASTER_CHANNEL_FAILED, said, at_ns

    # --- in the alert's transaction ---

    def queue(self, uow: UnitOfWork, message: AlertMessage) -> None:
        """Have a message delivered to every channel of its audiences that takes it, once this is committed."""
        users, organisations = _heard_by(uow, message.audiences)
        owners = {*message.audiences, *users, *organisations}
        channels = [*uow[ChannelRepository].of_owners(owners), *self._mail_channels(uow, users)]
        told = uow[DeliveryRepository].told(message.message_id)
        for channel in channels:
            if channel.channel_id not in told and wants(channel, message):
                self._add(uow, channel, message)
        uow.after_commit(lambda: self._queue.add(_LOOK))

    def _add(self, uow: UnitOfWork, channel: Channel, message: AlertMessage) -> None:
        now_ns, until_ns = uow.now_wall_ns, _held_until(channel, message.severity, uow.now_wall_ns)
        if until_ns is None:
            uow[DeliveryRepository].release(channel.channel_id, message.object_key, now_ns)
        is_together = until_ns is not None and channel.kind is not ChannelKind.WEBHOOK
        uow[DeliveryRepository].add(
            Delivery(
                delivery_id=uow.mint("delivery"),
                message=message,
                channel_id=channel.channel_id,
                owner=channel.owner,
                state=DeliveryState.WAITING if until_ns is None else DeliveryState.HELD,
                due_at_ns=now_ns if until_ns is None else until_ns,
                first_at_ns=now_ns if until_ns is None else until_ns,
                batch=f"until {until_ns}" if is_together else "",
            )
        )

    def _mail_channels(self, uow: UnitOfWork, users: Mapping[str, User]) -> Iterator[Channel]:
        """The mail of these users, who need no channel for it."""
        if not self._sender.sends_mail:
            return
        levels = uow[ChannelRepository].mail_levels(users)
        for user in users.values():
            severity = least_severity(levels.get(user.id, MailLevel.URGENT))
            if user.address is not None and severity is not None:
                yield _mail_channel(user, severity)

    # --- the loop ---

    async def run(self) -> None:
        """Deliver, until cancelled."""
        async with asyncio.TaskGroup() as group:
            await when_due(lambda: self._look(group), self._queue, LOOK_NS, "deliveries")

    async def turn(self) -> None:
        """Send what is due now, and return when that is recorded."""
        async with asyncio.TaskGroup() as group:
            await self._look(group)

    async def _look(self, group: asyncio.TaskGroup) -> None:
        """Begin what is due, and note when to look again."""
        self._queue.take()
        channel_ids, next_ns = await self._store.read(lambda uow: uow[DeliveryRepository].due(uow.now_wall_ns))
        if next_ns is not None:
            self._queue.add(_LOOK, self._clock.monotonic_ns() + next_ns - self._clock.wall_ns())
        for channel_id in channel_ids:
            if channel_id not in self._busy:
                self._busy.add(channel_id)
                group.create_task(self._serve(channel_id))

    async def _serve(self, channel_id: str) -> None:
        """Send what a channel has to send, until nothing is due or a round of tries fails."""
        pause_ns = 0
        try:
            while await self._round(channel_id):
                pass
        except WindrowError as error:  # of the store: what was sent is sent again, with the same id
            log.warning("delivery_not_recorded", channel=channel_id, code=error.code, error=error.detail)
            pause_ns = AGAIN_NS
        except Exception:  # the top level of this task
            log.exception("channel_crashed", channel=channel_id)
            pause_ns = AGAIN_NS
        finally:
            self._busy.discard(channel_id)
            self._queue.add(_LOOK, self._clock.monotonic_ns() + pause_ns)

    async def _round(self, channel_id: str) -> bool:
        """Some tries at once; returns whether another round may follow."""
        channel, found = await self._store.read(lambda uow: self._due(uow, channel_id))
        if not found:
            return False
        if channel is None:
            said, repository = "The channel or its reader is gone.", DeliveryRepository
            await self._store.write(
                lambda uow: uow[repository].give_up(channel_id, said, uow.now_wall_ns), name="delivery.gone"
            )
            return False
        async with self._shares[channel.owner], self._slots, asyncio.TaskGroup() as group:
            messages = [[one.message for one in unit] for unit in found]
            sending = [group.create_task(self._sender.send(channel, unit)) for unit in messages]
        tried = list(zip(found, [one.result() for one in sending], strict=True))
        await self._store.write(lambda uow: self._record(uow, channel, tried), name="delivery.tried")
        is_up = any(outcome.is_sent for _, outcome in tried)
        (self._down.discard if is_up else self._down.add)(channel_id)
        return is_up

    def _due(self, uow: UnitOfWork, channel_id: str) -> tuple[Channel | None, list[list[Delivery]]]:
        """What a channel may send now, each list together. The channel is None where it is gone."""
        found = units(uow[DeliveryRepository].heads(channel_id, uow.now_wall_ns), AT_ONCE)
        if not channel_id.startswith(MAIL):
            return uow[ChannelRepository].get(channel_id), found
        try:
            user = user_of_id(uow, channel_id.removeprefix(MAIL))
        except NotFound:
            return None, found
        is_there = user.address is not None and user.disabled_at_ns is None
        return _mail_channel(user, Severity.PAGE) if is_there else None, found

    def _record(self, uow: UnitOfWork, channel: Channel, tried: Tried) -> None:
        """Write how a round went."""
        now_ns, repository, channel_id = uow.now_wall_ns, uow[DeliveryRepository], channel.channel_id
        again = list[int]()
        for unit, outcome in tried:
            for delivery in unit:
                kept = repository.get(delivery.delivery_id)
                if kept is None or kept.due_at_ns is None:
                    continue  # given up meanwhile: the channel was switched off
                after = self._after(kept, outcome, now_ns)
                repository.save(after)
                again += [] if after.due_at_ns is None else [after.due_at_ns]
                if after.state is DeliveryState.GIVEN_UP:
                    self._tell_given_up(uow, channel, after)
        if any(outcome.is_sent for _, outcome in tried):
            uow.after_commit(lambda: self._works(channel_id))
            if channel_id in self._down:
                repository.move(channel_id, now_ns, earlier=True)
            return
        repository.give_up(channel_id, tried[0][1].answer, now_ns, since_ns=now_ns - schedule.LIFE_NS)
        if again:
            repository.move(channel_id, min(again), earlier=False)

    def _works(self, channel_id: str) -> None:
        self._problems.pop(channel_id, None)

    def _after(self, delivery: Delivery, outcome: Outcome, now_ns: int) -> Delivery:
        tries = delivery.tries + 1
        tried = replace(delivery, tries=tries, last_answer=outcome.answer, state=DeliveryState.WAITING)
        if outcome.is_sent:
            return replace(tried, state=DeliveryState.SENT, due_at_ns=None, done_at_ns=now_ns)
        if outcome.is_final or now_ns - delivery.first_at_ns >= schedule.LIFE_NS:
            return replace(tried, state=DeliveryState.GIVEN_UP, due_at_ns=None, done_at_ns=now_ns)
        return replace(tried, due_at_ns=now_ns + schedule.pause_ns(tries, self._rng.uniform()))

    def _tell_given_up(self, uow: UnitOfWork, channel: Channel, delivery: Delivery) -> None:
        said = f"The channel {channel.name} did not take a message: {delivery.last_answer}"
        subject = channel.channel_id if channel.owner == OPERATORS else channel.owner
        uow.event("delivery.given_up", (subject,), said, {"tries": str(delivery.tries)})
        if channel.owner == OPERATORS:
            at_ns = uow.now_wall_ns
            uow.after_commit(lambda: self._problems.update({channel.channel_id: (said, at_ns)}))

    # --- for people ---

    async def list(
        self, principal: Principal, before: str | None, limit: int, wanted: Mapping[str, str | None]
    ) -> Sequence[Delivery]:
        """The deliveries that the caller sees, the latest first, from the one after `before`. wanted: as
        DeliveryRepository.page takes it."""
        owners = visible_owners(principal)
        return await self._store.read(lambda uow: uow[DeliveryRepository].page(owners, before, limit, wanted))

    async def again(self, principal: Principal, delivery_id: str) -> Delivery:
        """Send one again that is done, with the id that it had. Raises NotFound, Conflict."""

        def change(uow: UnitOfWork) -> Delivery:
            found = uow[DeliveryRepository].get(delivery_id)
            if found is None or found.owner not in visible_owners(principal):
                raise NotFound("There is no such delivery. List them: windrow delivery ls", subject=delivery_id[:64])
            channel_id = found.channel_id
            if not channel_id.startswith(MAIL) and uow[ChannelRepository].get(channel_id) is None:
                raise Conflict("The channel of this delivery was deleted.", subject=channel_id)
            if found.due_at_ns is not None:
                raise Conflict("This delivery is not done: it is sent by itself.", subject=delivery_id)
            now_ns = uow.now_wall_ns
            anew = replace(found, state=DeliveryState.WAITING, tries=0, first_at_ns=now_ns, due_at_ns=now_ns)
            anew = replace(anew, done_at_ns=None, batch="")
            uow[DeliveryRepository].save(anew)
            uow.audit(principal.actor, "delivery.again", delivery_id, fields={"channel": channel_id})
            uow.after_commit(lambda: self._queue.add(_LOOK))
            return anew

        return await self._store.write(change, name="delivery.again")


def _heard_by(uow: UnitOfWork, audiences: Sequence[str]) -> tuple[Mapping[str, User], set[str]]:
    """The users of these audiences by their ids, and the organisations of the projects among them."""
    account_ids = {one for one in audiences if one != OPERATORS}
    users: dict[str, User] = {user.id: user for one in account_ids for user in people_of(uow, one)}
    if OPERATORS in audiences:
        users |= {user.id: user for user in people_of(uow, None)}
    found = (organisation_id_of(uow, one) for one in account_ids)
    return users, {one for one in found if one is not None}


def _held_until(channel: Channel, severity: Severity, now_ns: int) -> int | None:
    try:
        zone = zone_of(channel.quiet.time_zone if channel.quiet else "UTC")
    except InvalidInput:  # the zone was there when the channel was made; a message late is worse than one at night
        return None
    return schedule.held_until(channel, severity, zone, now_ns)


def _mail_channel(user: User, severity: Severity) -> Channel:
    """The mail of a user, which no row of channels has."""
    return Channel(
        channel_id=MAIL + user.id,
        owner=user.id,
        kind=ChannelKind.MAIL,
        name=f"Mail to {user.name}",
        sealed=b"",
        shown=user.address or "",
        min_severity=severity,
        created_by="master",
        created_at_ns=user.created_at_ns,
    )
