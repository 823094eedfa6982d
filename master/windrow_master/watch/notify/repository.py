"""Reads and writes channels, deliveries, and who wants which mail."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, delete, false, func, insert, or_, select, update

from windrow_master.store.prepared import flat, page
from windrow_master.store.repository import Repository
from windrow_master.watch.model import AlertMessage, MessageKind
from windrow_master.watch.notify.model import (
    TEST,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    MailLevel,
    Quiet,
)
from windrow_master.watch.notify.tables import alert_mail, channels, deliveries
from windrow_proto.conditions import Severity

HEADS_MAX: Final = 100
"""Deliveries of one channel that one look reads; a digest has at most so many."""
OBJECT_CHARS_MAX: Final = 512
ANSWER_CHARS_MAX: Final = 300
_earlier = deliveries.alias("earlier")
_IS_OPEN: Final = deliveries.c.due_at_ns.is_not(None)
_IS_BLOCKED: Final = (
    select(_earlier.c.number)
    .where(
        _earlier.c.channel_id == deliveries.c.channel_id,
        _earlier.c.object_key == deliveries.c.object_key,
        _earlier.c.due_at_ns.is_not(None),
        _earlier.c.number < deliveries.c.number,
        or_(_earlier.c.batch == "", _earlier.c.batch != deliveries.c.batch),
    )
    .exists()
)
"""Messages of one object go in order: an earlier one of the same channel is still to be sent, and not with this one."""


class ChannelRepository(Repository):
    """The channels."""

    def save(self, channel: Channel) -> None:
        """Write one, in place of one of the same id."""
        self.remove(channel.channel_id)
        row = flat(channel) | {"kind": channel.kind.value, "min_severity": channel.min_severity.value}
        row |= {"rules": list(channel.rules), "quiet": None if channel.quiet is None else flat(channel.quiet)}
        self._connection.execute(insert(channels).values(row))

    def get(self, channel_id: str) -> Channel | None:
        """The one of this id."""
        row = self._connection.execute(select(channels).where(channels.c.channel_id == channel_id)).one_or_none()
        return None if row is None else _channel(row._mapping)

    def of_owners(self, owners: Collection[str], after: str = "", limit: int = 10_000) -> Sequence[Channel]:
        """Those of these owners in the order of their ids, from the one after this id."""
        query = select(channels).where(channels.c.owner.in_(owners), channels.c.channel_id > after)
        rows = self._connection.execute(query.order_by(channels.c.channel_id).limit(limit))
        return [_channel(row._mapping) for row in rows]

    def remove(self, channel_id: str) -> None:
        """Forget one."""
        self._connection.execute(delete(channels).where(channels.c.channel_id == channel_id))

    # --- mail without a channel ---

    def mail_levels(self, user_ids: Collection[str]) -> Mapping[str, MailLevel]:
        """What those of these users want who have said so."""
        query = select(alert_mail).where(alert_mail.c.user_id.in_(user_ids))
        return {row.user_id: MailLevel(row.level) for row in self._connection.execute(query)}

    def set_mail_level(self, user_id: str, level: MailLevel | None) -> None:
        """What a user wants; None: as if nothing had been said."""
        self._connection.execute(delete(alert_mail).where(alert_mail.c.user_id == user_id))
        if level is not None:
            self._connection.execute(insert(alert_mail).values(user_id=user_id, level=level.value))


class DeliveryRepository(Repository):
    """The deliveries."""

    def add(self, delivery: Delivery) -> None:
        """Add one whose id is new."""
        self._connection.execute(insert(deliveries).values(_row(delivery)))

    def told(self, message_id: str) -> Collection[str]:
        """The channels that have this message."""
        query = select(deliveries.c.channel_id).where(deliveries.c.message_id == message_id)
        return self._connection.scalars(query).all()

    def save(self, delivery: Delivery) -> None:
        """Write what changed of one."""
        changed = ("batch", "state", "tries", "due_at_ns", "last_answer", "first_at_ns", "done_at_ns")
        row = _row(delivery)
        query = update(deliveries).where(deliveries.c.delivery_id == delivery.delivery_id)
        self._connection.execute(query.values({name: row[name] for name in changed}))

    def get(self, delivery_id: str) -> Delivery | None:
        """The one of this id."""
        row = self._connection.execute(select(deliveries).where(deliveries.c.delivery_id == delivery_id)).one_or_none()
        return None if row is None else _delivery(row._mapping)

    def page(
        self, owners: Collection[str], before: str | None, limit: int, wanted: Mapping[str, str | None]
    ) -> Sequence[Delivery]:
        """Those of these owners, the latest first; from the one after `before`. wanted: channel_id, state, alert_id."""
        is_theirs = or_(*(deliveries.c.owner == owner for owner in owners), false())
        query = select(deliveries).where(is_theirs).order_by(deliveries.c.number.desc())
        for name in ("channel_id", "state"):
            if (value := wanted.get(name)) is not None:
                query = query.where(deliveries.c[name] == value)
        if (alert_id := wanted.get("alert_id")) is not None:
            query = query.where(deliveries.c.message_id.startswith(f"{alert_id}.", autoescape=True))
        if before:
            number = select(deliveries.c.number).where(deliveries.c.delivery_id == before).scalar_subquery()
            query = query.where(deliveries.c.number < number)
        return page(self._connection, query, _delivery, limit)

    def tests_since(self, owner: str, since_ns: int) -> int:
        """How many test messages an owner has had sent since then."""
        is_test = deliveries.c.object_key.startswith(TEST, autoescape=True)
        query = select(func.count()).where(deliveries.c.done_at_ns > since_ns, deliveries.c.owner == owner, is_test)
        return int(self._connection.scalar(query) or 0)

    # --- what is to be sent ---

    def due(self, now_ns: int) -> tuple[Sequence[str], int | None]:
        """The channels that have something to send now, and when something else is due; None: nothing is."""
        query = select(deliveries.c.channel_id).where(deliveries.c.due_at_ns <= now_ns, ~_IS_BLOCKED).distinct()
        later = select(func.min(deliveries.c.due_at_ns)).where(deliveries.c.due_at_ns > now_ns)
        return self._connection.scalars(query).all(), self._connection.scalar(later)

    def heads(self, channel_id: str, now_ns: int) -> Sequence[Delivery]:
        """What a channel may send now, in order; HEADS_MAX at most."""
        is_its = (deliveries.c.channel_id == channel_id) & (deliveries.c.due_at_ns <= now_ns) & ~_IS_BLOCKED
        query = select(deliveries).where(is_its).order_by(deliveries.c.number)
        return page(self._connection, query, _delivery, HEADS_MAX)

    def release(self, channel_id: str, object_key: str, now_ns: int) -> None:
        """Send now what is held of this object."""
        is_held = deliveries.c.state == DeliveryState.HELD.value
        is_its = (deliveries.c.channel_id == channel_id) & (deliveries.c.object_key == object_key[:OBJECT_CHARS_MAX])
        values = {"state": DeliveryState.WAITING.value, "due_at_ns": now_ns, "batch": ""}
        self._connection.execute(update(deliveries).where(_IS_OPEN, is_its, is_held).values(values))

    def move(self, channel_id: str, due_at_ns: int, *, earlier: bool) -> None:
        """Have what waits of a channel tried at this time where that is earlier than it was, or else where it is
        later."""
        column = deliveries.c.due_at_ns
        is_moved = column > due_at_ns if earlier else column < due_at_ns
        self._connection.execute(update(deliveries).where(_waits(channel_id), is_moved).values(due_at_ns=due_at_ns))

    def give_up(self, channel_id: str, answer: str, now_ns: int, since_ns: int | None = None) -> None:
        """Give up what is open of a channel; since_ns: what is tried since before this time."""
        is_its = and_(_IS_OPEN, deliveries.c.channel_id == channel_id)
        if since_ns is not None:
            is_its = and_(_waits(channel_id), deliveries.c.first_at_ns < since_ns)
        values = {"state": DeliveryState.GIVEN_UP.value, "due_at_ns": None, "done_at_ns": now_ns}
        self._connection.execute(
            update(deliveries).where(is_its).values(**values, last_answer=answer[:ANSWER_CHARS_MAX])
        )

    def forget_owner(self, owner: str) -> None:
        """Delete all of an owner."""
        self._connection.execute(delete(deliveries).where(deliveries.c.owner == owner))


def _waits(channel_id: str) -> ColumnElement[bool]:
    is_its = deliveries.c.channel_id == channel_id
    return and_(is_its, _IS_OPEN, deliveries.c.state == DeliveryState.WAITING.value)


def _channel(row: Mapping[Any, Any]) -> Channel:
    read = {
        "kind": ChannelKind(row["kind"]),
        "sealed": bytes(row["sealed"]),
        "min_severity": Severity(row["min_severity"]),
        "rules": tuple(row["rules"]),
        "quiet": None if row["quiet"] is None else Quiet(**row["quiet"]),
    }
    return Channel(**{**row, **read})


def _row(delivery: Delivery) -> dict[str, Any]:
    return {
        **flat(delivery),
        "state": delivery.state.value,
        "message": flat(delivery.message),
        "message_id": delivery.message.message_id,
        "object_key": delivery.message.object_key[:OBJECT_CHARS_MAX],
        "last_answer": delivery.last_answer[:ANSWER_CHARS_MAX],
    }


def _delivery(row: Mapping[Any, Any]) -> Delivery:
    said = row["message"]
    read = {
        "kind": MessageKind(said["kind"]),
        "severity": Severity(said["severity"]),
        "audiences": tuple(said["audiences"]),
        "subjects": tuple(said["subjects"]),
    }
    rest = {name: row[name] for name in Delivery.__dataclass_fields__ if name != "message"}
    return Delivery(**rest | {"message": AlertMessage(**said | read), "state": DeliveryState(row["state"])})
