"""Mail to people, by a real SMTP server: invitations and forgotten passwords, kept until they are delivered."""

import re
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope

from tests.unit.identity.people_world import PASSWORD, RENTER, Market, ask, people_market, secret_of
from windrow_master.app.wiring import Settings
from windrow_master.mail.repository import OutboxRepository
from windrow_master.mail.settings import MailSettings, mail_settings
from windrow_proto.errors import InvalidInput
from windrow_proto.units import HOUR, MINUTE


@dataclass
class Mailbox:
    """Takes mail, or answers with a refusal."""

    answer: str = "250 OK"
    mails: list[EmailMessage] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802  # aiosmtpd's name
        if self.answer.startswith("250"):
            content = envelope.content
            assert isinstance(content, bytes)
            read = message_from_bytes(content, policy=policy.default)
            assert isinstance(read, EmailMessage)
            self.mails.append(read)
        return self.answer


@dataclass
class Post:
    """A market, its mail server, and what that took."""

    market: Market
    box: Mailbox
    server: Controller

    async def turn(self) -> None:
        await self.market.opened.identity.mail.turn()

    def waiting(self) -> int:
        return len(self.market.opened.store.read_now(lambda uow: uow[OutboxRepository].due(2**62, 100)))


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    box = Mailbox()
    server = Controller(box, hostname="127.0.0.1", port=port)
    settings = mail_settings(f"smtp://127.0.0.1:{port}?from=market@example.org&starttls=off")
    async with people_market(tmp_path, Settings(mail=settings)) as market:
        server.start()
        made = Post(market, box, server)
        try:
            yield made
        finally:
            made.server.stop()


def _link(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    (found,) = re.findall(r"https?://\S+", body.get_content())
    return str(found)


async def test_an_invitation_is_mailed_and_its_link_accepts_it(post: Post) -> None:
    made = await ask(post.market.owner, "POST", "/invitations", address="Ada@example.org", projects=RENTER)
    assert made["link"] is None
    await post.turn()
    await post.turn()

    (mail,) = post.box.mails
    assert (mail["To"], mail["From"]) == ("Ada@example.org", "Windrow <market@example.org>")
    assert mail["Subject"] == "owner invites you to home on Windrow"
    html = mail.get_body(("html",))
    assert html is not None and _link(mail) in html.get_content()
    stranger = await post.market.client()
    accepted = {"name": "Ada", "address": "ada@example.org", "password": PASSWORD}
    await ask(stranger, "POST", "/invitation/accept", 201, secret=secret_of(_link(mail)), **accepted)
    assert post.waiting() == 0


async def test_mail_waits_for_its_server_and_its_secret_is_not_in_the_database(post: Post, tmp_path: Path) -> None:
    post.server.stop()
    await ask(post.market.owner, "POST", "/invitations", address="ada@example.org", projects=RENTER)
    await post.turn()
    assert post.waiting() == 1
    post.server = Controller(post.box, hostname="127.0.0.1", port=post.server.port)
    post.server.start()
    await post.turn()  # it is not due yet
    assert post.box.mails == []
    post.market.clock.advance(MINUTE)
    await post.turn()
    (mail,) = post.box.mails
    secret = secret_of(_link(mail)).encode()
    assert all(secret not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(("answer", "waits"), [("550 no such user", 0), ("452 later", 1)])
async def test_a_refusal_for_good_ends_a_mail_and_another_does_not(post: Post, answer: str, waits: int) -> None:
    post.box.answer = answer
    await ask(post.market.owner, "POST", "/invitations", address="ada@example.org", projects=RENTER)
    await post.turn()
    assert post.waiting() == waits
    events = await ask(post.market.owner, "GET", "/events")
    given_up = [one for one in events["items"] if one["kind"] == "mail.given_up"]
    assert len(given_up) == 1 - waits


async def test_a_mail_that_nobody_takes_for_two_days_is_given_up(post: Post) -> None:
    post.box.answer = "451 busy"
    await ask(post.market.owner, "POST", "/invitations", address="ada@example.org", projects=RENTER)
    for _ in range(60):
        await post.turn()
        post.market.clock.advance(HOUR)
    assert post.waiting() == 0


async def test_a_forgotten_password_is_replaced_by_mail_and_nobody_learns_who_is_there(post: Post) -> None:
    await post.market.joined("ada@example.org", projects=RENTER)
    stranger = await post.market.client()
    for address in ("ada@example.org", "nobody@example.org", "ada@example.org"):
        assert await ask(stranger, "POST", "/password/forgotten", 204, address=address) is None
    await post.turn()
    (mail,) = post.box.mails
    another = "nine slow trains to the coast"
    await ask(stranger, "POST", "/password", secret=secret_of(_link(mail)), password=another)
    await post.market.signed_in("ada@example.org", another)


async def test_a_market_without_a_mail_server_says_who_helps(tmp_path: Path) -> None:
    async with people_market(tmp_path) as market:
        said = await ask(await market.client(), "POST", "/password/forgotten", 409, address="ada@example.org")
        assert "Ask an admin of your organisation" in said["detail"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example.org?from=a@b.org", MailSettings("mail.example.org", 587, "a@b.org", False, True)),
        ("smtps://u%40x:p%2Fw@m.org?from=a@b.org", MailSettings("m.org", 465, "a@b.org", True, False, "u@x", "p/w")),
        ("smtp://localhost:25?from=a@b.org&starttls=off", MailSettings("localhost", 25, "a@b.org", False, False)),
    ],
)
def test_a_mail_server_is_named_by_one_url(url: str, expected: MailSettings) -> None:
    found = mail_settings(url)
    assert found == expected and "p/w" not in repr(found) + found.shown


@pytest.mark.parametrize(
    "url",
    [
        "http://m.org?from=a@b.org",
        "smtp://m.org",
        "smtp://m.org?from=nobody",
        "smtp://m.org:x?from=a@b.org",
        "smtp://m.org?from=a@b.org&starttls=off",
        "smtp://m.org?from=a@b.org&more=1",
    ],
)
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="WINDROW_SMTP_URL"):
        mail_settings(url)
