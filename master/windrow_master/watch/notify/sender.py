"""Sends messages to one channel, once: by mail, as a signed webhook, or by apprise."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import structlog

from windrow_master.mail.service import MailService
from windrow_master.mail.smtp import Refused
from windrow_master.outgoing import Outgoing
from windrow_master.watch.model import AlertMessage
from windrow_master.watch.notify import apprise_services, text
from windrow_master.watch.notify.model import Channel, ChannelKind
from windrow_master.watch.notify.webhook import headers
from windrow_proto.errors import Unavailable, WindrowError
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey, seal
from windrow_proto.units import DAY
from windrow_proto.wire_fields import clean_text

PURPOSE: Final = "channel "
"""For which a target is sealed; the channel's id follows."""
DEADLINE_S: Final = 10.0
"""Of one try of a webhook."""
ROTATION_NS: Final = DAY
"""How long the secret before the newest one signs, too."""
SHOWN_MAX: Final = 200
ANSWER_MAX: Final = 300

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a channel sends to. address: of mail, or a URL. secrets: of a webhook, the newest first."""

    address: str
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a try went. answer: for people. is_final: another try makes no sense."""

    is_sent: bool
    answer: str
    is_final: bool = False


class Sender:
    """The ways to the outside."""

    def __init__(
        self,
        clock: Clock,
        seal_key: SealKey,
        mail: MailService,
        outgoing: Outgoing,
        base_url: str,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        """base_url: of the console, for links. deadline_s: of one try of a webhook."""
        self._clock, self._seal_key, self._mail, self._outgoing = clock, seal_key, mail, outgoing
        self._base_url, self._deadline_s = base_url, deadline_s

    @property
    def sends_mail(self) -> bool:
        """True if this market sends mail."""
        return self._mail.is_on

    def sealed(self, channel_id: str, target: Target) -> bytes:
        """A target as it is kept."""
        return seal(self._seal_key.public, json.dumps(asdict(target)).encode(), PURPOSE + channel_id)

    def target(self, channel: Channel) -> Target:
        """The target of a channel. Raises BadProof where another key sealed it."""
        if channel.kind is ChannelKind.MAIL:
            return Target(channel.shown)
        said = json.loads(self._seal_key.open(channel.sealed, PURPOSE + channel.channel_id))
        return Target(said["address"], tuple(said["secrets"]))

    async def send(self, channel: Channel, messages: Sequence[AlertMessage]) -> Outcome:
        """Send these as one message, within some seconds; a webhook takes one. Never raises. What a receiver says is
        cleaned: not every database takes a NUL, and no terminal should obey it."""
        try:
            return Outcome(True, clean_text(await self._sent(channel, messages), ANSWER_MAX))
        except Unavailable as error:
            return Outcome(False, clean_text(error.detail, ANSWER_MAX))
        except (Refused, WindrowError) as error:
            return Outcome(False, clean_text(str(error), ANSWER_MAX), is_final=True)
        except Exception:  # of this message alone: those of other objects are sent
            log.exception("delivery_crashed", channel=channel.channel_id, message=messages[0].message_id)
            return Outcome(False, "This Master met a bug with it; its log says more.")

    async def _sent(self, channel: Channel, messages: Sequence[AlertMessage]) -> str:
        target = self.target(channel)
        if channel.kind is ChannelKind.WEBHOOK:
            return await self._posted(channel, target, messages[0])
        if channel.kind is ChannelKind.APPRISE:
            said = text.plain(messages, self._base_url)
            await asyncio.to_thread(apprise_services.send, target.address, *said)
            return "The service took it."
        letter = text.letter(messages, self._base_url)
        await self._mail.hand_over(letter, target.address, text.delivery_key(messages), messages[0].at_ns)
        return "The mail server took it."

    async def _posted(self, channel: Channel, target: Target, message: AlertMessage) -> str:
        now_ns = self._clock.wall_ns()
        is_rotating = channel.rotated_at_ns is not None and now_ns - channel.rotated_at_ns < ROTATION_NS
        secrets = target.secrets if is_rotating else target.secrets[:1]
        body = text.body(message, self._base_url)
        signed = headers(secrets, message.message_id, body, now_ns)
        status, said = await self._outgoing.post(target.address, body.encode(), signed, self._deadline_s)
        answer = f"{status} {' '.join(said.split())[:SHOWN_MAX]}".strip()
        if not 200 <= status < 300:
            raise Unavailable(f"It answered {answer}")
        return answer
