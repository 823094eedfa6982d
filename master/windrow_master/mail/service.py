"""The mail service: writes letters down in the transaction that they tell of, and sends them until they are delivered.

A mail may arrive twice: when the Master stops between the server's answer and the note of it.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

import structlog

from windrow_master.mail import smtp
from windrow_master.mail.message import Letter, compose
from windrow_master.mail.repository import OutboxRepository, Waiting
from windrow_master.mail.settings import MailSettings
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import Unavailable
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey, seal
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

PURPOSE: Final = "mail "
"""For which a letter is sealed; the mail's id follows."""
AT_A_TIME: Final = 10
FIRST_PAUSE_NS: Final = MINUTE
PAUSE_NS_MAX: Final = HOUR
LIFE_NS: Final = 2 * DAY
"""After which an undelivered mail is given up: its link has been replaced by then."""

log = structlog.get_logger(__name__)


class MailService:
    """Mail of this market."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        seal_key: SealKey,
        settings: MailSettings | None,
        send: Callable[[MailSettings, EmailMessage], None] = smtp.send,
    ) -> None:
        """settings: None: this market sends no mail. send: blocks; raises Unavailable or smtp.Refused."""
        self._store, self._clock, self._seal_key = store, clock, seal_key
        self._settings, self._send = settings, send
        self._problem = ("", 0)
        """What was said of the latest that failed, and when; empty: the latest was delivered."""

    def conditions(self) -> Iterator[Stated]:
        """What keeps mail from being delivered, until one is."""
        said, at_ns = self._problem
        if said and self._clock.wall_ns() - at_ns < DAY:
            yield ConditionCode.MASTER_MAIL_FAILED, said, at_ns

    @property
    def is_on(self) -> bool:
        """True if this market sends mail."""
        return self._settings is not None

    def write(self, uow: UnitOfWork, to: str, letter: Letter) -> None:
        """Have a letter sent once this transaction is committed. Only where `is_on`."""
        mail_id = uow.mint("mail")
        sealed = seal(self._seal_key.public, json.dumps(asdict(letter)).encode(), PURPOSE + mail_id)
        uow[OutboxRepository].add(Waiting(mail_id, to, sealed, uow.now_wall_ns, 0, uow.now_wall_ns))

    def forget(self, uow: UnitOfWork, address: str) -> None:
        """Send nothing to this address any more of what waits."""
        uow[OutboxRepository].forget(address)

    async def turn(self) -> None:
        """Send what is due."""
        if self._settings is None:
            return
        now_ns = self._clock.wall_ns()
        for waiting in await self._store.read(lambda uow: uow[OutboxRepository].due(now_ns, AT_A_TIME)):
            await self._deliver(waiting)

    async def hand_over(self, letter: Letter, to: str, key: str, written_at_ns: int) -> None:
        """Send a letter now, once. key: of its Message-ID, by which a receiver knows it again. Raises Unavailable where
        another try makes sense, smtp.Refused where none does."""
        settings = self._settings
        if settings is None:
            raise smtp.Refused("This market sends no mail.")
        date = format_datetime(datetime.fromtimestamp(written_at_ns // SECOND, UTC))
        message_id = f"<{key}@{settings.sender.rpartition('@')[2]}>"
        mail = compose(letter, to, settings.sender, message_id, date)
        try:
            await asyncio.to_thread(self._send, settings, mail)
        except (Unavailable, smtp.Refused) as error:
            self._problem = (str(error), self._clock.wall_ns())
            raise
        self._problem = ("", 0)

    async def _deliver(self, waiting: Waiting) -> None:
        try:
            await self.hand_over(self._letter(waiting), waiting.address, waiting.id, waiting.written_at_ns)
        except (Unavailable, smtp.Refused) as error:
            await self._failed(waiting, str(error), is_final=isinstance(error, smtp.Refused))
            return
        except Exception:  # of this mail alone: those behind it are sent
            log.exception("mail_crashed", mail=waiting.id)
            await self._failed(waiting, "this Master met a bug with it", is_final=True)
            return
        await self._store.write(lambda uow: uow[OutboxRepository].remove(waiting.id), name="mail.sent")

    def _letter(self, waiting: Waiting) -> Letter:
        said = json.loads(self._seal_key.open(waiting.sealed, PURPOSE + waiting.id))
        return Letter(**said | {name: tuple(said[name]) for name in ("paragraphs", "below")})

    async def _failed(self, waiting: Waiting, reason: str, *, is_final: bool) -> None:
        tries, now_ns = waiting.tries + 1, self._clock.wall_ns()
        given_up = is_final or now_ns - waiting.written_at_ns > LIFE_NS
        self._problem = (reason, now_ns)
        log.warning("mail_failed", mail=waiting.id, tries=tries, given_up=given_up, error=reason)

        def note(uow: UnitOfWork) -> None:
            if not given_up:
                pause_ns = min(PAUSE_NS_MAX, FIRST_PAUSE_NS << min(tries - 1, 10))
                uow[OutboxRepository].again(waiting.id, tries, uow.now_wall_ns + pause_ns)
                return
            uow[OutboxRepository].remove(waiting.id)
            uow.event("mail.given_up", (waiting.id,), f"A mail was given up: {reason}", {"tries": str(tries)})

        await self._store.write(note, name="mail.failed")
