"""A store with channels, and the servers that messages go to: a real HTTP sink and a real mail server."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_network
from pathlib import Path
from socket import socket
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope

from tests.master_support import ManualClock, SeededRng, opened_store
from windrow_master.identity.model import Principal, Role
from windrow_master.mail.service import MailService
from windrow_master.mail.settings import mail_settings
from windrow_master.outgoing import Outgoing, looked_up
from windrow_master.store.store import Store
from windrow_master.watch.model import AlertMessage, MessageKind
from windrow_master.watch.notify.channels import ChannelService, ChannelSettings
from windrow_master.watch.notify.deliveries import DeliveryService
from windrow_master.watch.notify.model import Channel, ChannelKind, Delivery, Scope
from windrow_master.watch.notify.sender import Sender
from windrow_proto.conditions import Severity
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.keys import SigningKey
from windrow_proto.sealed import SealKey

OPERATOR = Principal(AccountId("account_o"), "ops", frozenset({Role.OPERATOR}), TokenId("token_o"), "t", 2**62)
HERE = (ip_network("127.0.0.0/8"),)
HANG, DROP = "hang", "drop"
"""Answers of a sink that are none."""


@dataclass
class Sink:
    """An HTTP server that keeps what it is sent. answer: gives, for a message's id, a status or HANG or DROP."""

    answer: Callable[[str], int | str] = lambda message_id: 200
    where: str = ""
    """The Location of its redirects."""
    taken: list[dict[str, Any]] = field(default_factory=list)
    """Of each request: headers, body, and whether it was answered by 200."""
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
            original = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            body = await reader.readexactly(int(headers["content-length"]))
            answer = self.answer(headers["webhook-id"])
            self.taken.append({"headers": original, "body": body, "is_kept": answer == 200})
            if answer == HANG:
                await reader.read()  # until the other side goes
            elif answer != DROP:
                place = f"Location: {self.where}\r\n" if self.where else ""
                writer.write(f"HTTP/1.1 {answer} X\r\n{place}Content-Length: 2\r\nConnection: close\r\n\r\nok".encode())
                await writer.drain()

    def kept(self) -> list[str]:
        """The ids of the messages that it has answered by 200, in order."""
        return [_id(one) for one in self.taken if one["is_kept"]]

    def tried(self) -> list[str]:
        return [_id(one) for one in self.taken]


def _id(request: dict[str, Any]) -> str:
    return next(str(value) for name, value in request["headers"].items() if name.lower() == "webhook-id")


@dataclass
class Mailbox:
    """Takes mail."""

    mails: list[EmailMessage] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802  # aiosmtpd's name
        content = envelope.content
        assert isinstance(content, bytes)
        read = message_from_bytes(content, policy=policy.default)
        assert isinstance(read, EmailMessage)
        self.mails.append(read)
        return "250 OK"


@dataclass
class World:
    """Channels on a store, a sink and a mailbox."""

    store: Store
    clock: ManualClock
    sender: Sender
    channels: ChannelService
    deliveries: DeliveryService
    sink: Sink
    box: Mailbox
    server: Controller

    def restart(self) -> None:
        """Another Master leads."""
        self.deliveries = DeliveryService(self.store, self.clock, SeededRng(9), self.sender)

    async def webhook(self, name: str = "hook", url: str = "", **settings: Any) -> tuple[Channel, str]:
        made = await self.channels.add(
            OPERATOR, Scope.OPERATORS, ChannelKind.WEBHOOK, url or self.sink.url, settings_of(name, **settings)
        )
        assert made[1] is not None
        return made[0], made[1]

    async def mail(self, **settings: Any) -> Channel:
        target, kind = "ops@example.org", ChannelKind.MAIL
        return (await self.channels.add(OPERATOR, Scope.OPERATORS, kind, target, settings_of("mail", **settings)))[0]

    async def tell(self, *messages: AlertMessage) -> None:
        for message in messages:
            await self.store.write(lambda uow: self.deliveries.queue(uow, message), name="test")  # noqa: B023

    async def listed(self) -> Sequence[Delivery]:
        """All deliveries, the oldest first."""
        return list(reversed(await self.deliveries.list(OPERATOR, None, 10_000, {})))

    async def states(self) -> list[str]:
        return [one.state.value for one in await self.listed()]

    async def pass_time(self, span_ns: int, step_ns: int) -> None:
        """Let time pass, with turns in it."""
        for _ in range(span_ns // step_ns):
            self.clock.advance(step_ns)
            await self.deliveries.turn()


def settings_of(name: str, **settings: Any) -> ChannelSettings:
    usual: dict[str, Any] = {"min_severity": Severity.INFO, "rules": (), "quiet": None, "digest_minutes": None}
    return ChannelSettings(**{**usual, "is_enabled": True, **settings, "name": name})


def message(number: int, cause: str = "a", **more: Any) -> AlertMessage:
    usual: dict[str, Any] = {
        "message_id": f"alert_{number}.firing",
        "number": number,
        "alert_id": f"alert_{number}",
        "kind": MessageKind.FIRING,
        "at_ns": time.time_ns(),
        "rule": "host.lost",
        "severity": Severity.TICKET,
        "title": f"Host {cause} is lost",
        "text": "Nothing was heard for 60 s.",
        "remedy": "Look at the machine.",
        "object_key": f"host.lost/{cause}",
        "link": f"/alerts/alert_{number}",
        "audiences": ("operators",),
        "subjects": (cause,),
        "subject_count": 1,
        "simulated": False,
    }
    return AlertMessage(**usual | more)


def said(request: dict[str, Any]) -> Any:
    """The body of a request to a sink."""
    return json.loads(request["body"])


@asynccontextmanager
async def made_world(
    folder: Path,
    outgoing: Outgoing | None = None,
    database: str | None = None,
    clock: ManualClock | None = None,
    deadline_s: float = 30.0,
) -> AsyncIterator[World]:
    """The clock begins at this machine's time, which verifiers of signatures compare with. deadline_s: of one try."""
    clock, sink, box = clock or ManualClock(time.time_ns()), Sink(), Mailbox()
    async with AsyncExitStack() as exits:
        store = exits.enter_context(opened_store(folder, clock, database=database))
        listening = await exits.enter_async_context(await asyncio.start_server(sink.serve, "127.0.0.1", 0))
        sink.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"
        server = Controller(box, hostname="127.0.0.1", port=free_port())
        server.start()
        exits.callback(lambda: made.server.stop())
        settings = mail_settings(f"smtp://127.0.0.1:{server.port}?from=market@example.org&starttls=off")
        key = SealKey.of(SigningKey.generate())
        mail = MailService(store, clock, key, settings)
        way = outgoing or Outgoing(look_up=looked_up, allowed=HERE)
        sender = Sender(clock, key, mail, way, "https://market.example", deadline_s=deadline_s)
        channels = ChannelService(store, SeededRng(3), sender)
        deliveries = DeliveryService(store, clock, SeededRng(4), sender)
        made = World(store, clock, sender, channels, deliveries, sink, box, server)
        yield made


def free_port() -> int:
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
