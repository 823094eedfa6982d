"""Channels over HTTP: who makes which, what is shown of them, and the mail that needs none."""

import asyncio
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from tests.unit.identity.people_world import PASSWORD, RENTER, Market, ask, people_market
from tests.unit.master_api.described import assert_described
from tests.unit.watch.notify.world import Mailbox, free_port, message
from windrow_master.api.answers import Page
from windrow_master.api.channel_routes import AlertMailOut, ChannelMadeOut, ChannelOut, DeliveryOut
from windrow_master.app.wiring import Settings
from windrow_master.mail.settings import mail_settings
from windrow_master.outgoing import Outgoing
from windrow_master.watch.model import AlertMessage
from windrow_master.watch.notify.model import TESTS_MAX
from windrow_proto.conditions import Severity

HOOK: dict[str, Any] = {"name": "hook", "kind": "webhook", "target": "https://hooks.example/canary"}
QUIET = {"begin": "22:00", "end": "07:00", "time_zone": "Europe/Berlin"}


@pytest.fixture
def box() -> Mailbox:
    return Mailbox()


@pytest.fixture
async def market(tmp_path: Path, box: Mailbox) -> AsyncIterator[Market]:
    server = Controller(box, hostname="127.0.0.1", port=free_port())
    mail = mail_settings(f"smtp://127.0.0.1:{server.port}?from=market@example.org&starttls=off")
    outgoing = Outgoing(allowed=(ip_network("127.0.0.0/8"),))
    async with people_market(tmp_path, Settings(mail=mail, outgoing=lambda: outgoing)) as found:
        server.start()
        try:
            yield found
        finally:
            server.stop()


async def tell(market: Market, told: AlertMessage) -> None:
    deliveries = market.opened.services.deliveries
    await market.opened.store.write(lambda uow: deliveries.queue(uow, told), name="test")
    await deliveries.turn()


async def member(market: Market, name: str) -> Any:
    """A renter of the first project, by an invitation to nobody in particular."""
    stranger = await market.client()
    accepted: dict[str, Any] = {"name": name, "address": f"{name}@example.org", "password": PASSWORD}
    secret = await market.invite(projects=RENTER)
    return await market.client((await ask(stranger, "POST", "/invitation/accept", secret=secret, **accepted))["secret"])


async def test_a_channel_is_made_changed_and_deleted_and_its_target_is_kept_sealed(
    market: Market, tmp_path: Path
) -> None:
    made = await market.owner.post("/channels", json=HOOK | {"quiet": QUIET, "rules": ["job.*", "job.*"]})
    assert_described(made, ChannelMadeOut, 201)
    channel = made.json()["channel"]
    assert (channel["target"], channel["quiet"], channel["rules"]) == ("https://hooks.example/...", QUIET, ["job.*"])
    assert made.json()["secret"].startswith("whsec_")
    assert_described(await market.owner.get("/channels"), Page[ChannelOut])
    path = f"/channels/{channel['id']}"
    changed = await market.owner.put(path, json={"name": "other", "is_enabled": False})
    assert_described(changed, ChannelOut)
    assert (changed.json()["quiet"], changed.json()["is_enabled"]) == (None, False)
    rotated = await market.owner.post(f"{path}/rotate")
    assert rotated.json()["secret"] != made.json()["secret"]
    raw = made.json()["secret"].removeprefix("whsec_").encode()
    texts = [one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()]
    assert not any(secret in text for text in texts for secret in (b"canary", raw))
    await ask(market.owner, "DELETE", path, 204)
    await ask(market.owner, "GET", path, 404)


async def test_a_test_says_how_it_went_and_stands_in_the_log(market: Market, box: Mailbox) -> None:
    body = {"name": "ops", "kind": "mail", "target": "ops@elsewhere.example", "scope": "operators"}
    channel = (await ask(market.owner, "POST", "/channels", 201, **body))["channel"]
    tested = await market.owner.post(f"/channels/{channel['id']}/test")
    assert_described(tested, DeliveryOut)
    assert (tested.json()["state"], box.mails[0]["To"]) == ("sent", "ops@elsewhere.example")
    listed = await market.owner.get("/deliveries", params={"channel": channel["id"], "state": "sent"})
    assert_described(listed, Page[DeliveryOut])
    assert (await ask(market.owner, "GET", "/deliveries?state=held"))["items"] == []


async def test_tests_have_a_limit(market: Market, box: Mailbox) -> None:
    body = {"name": "ops", "kind": "mail", "target": "ops@elsewhere.example", "scope": "operators"}
    channel = (await ask(market.owner, "POST", "/channels", 201, **body))["channel"]
    asked = [market.owner.post(f"/channels/{channel['id']}/test") for _ in range(TESTS_MAX + 2)]
    answers = [one.status_code for one in await asyncio.gather(*asked)]
    assert (answers.count(200), answers.count(429), len(box.mails)) == (TESTS_MAX, 2, TESTS_MAX)
    named = await market.owner.post("/channels", json=body | {"name": "a\r\nBcc: x@y"})
    assert (named.status_code, "one line" in named.text) == (422, True)


async def test_an_alert_is_assigned_to_somebody_who_sees_it(market: Market) -> None:
    account = (await ask(market.owner, "GET", "/me"))["account"]["id"]
    ada = await member(market, "ada")
    alerts, store = market.opened.services.alerts, market.opened.store
    await alerts.turn()
    fields = {"percent": "95", "spender": account, "limit": "total"}
    await store.write(lambda uow: uow.event("limit.reached", (account,), "used", fields), name="test")
    await alerts.turn()
    (one,) = (await ask(ada, "GET", "/alerts"))["items"]
    path = f"/alerts/{one['id']}/assign"
    assert (await ask(ada, "POST", path, assignee="ada@example.org"))["assignee"] == "ada"
    wrong = await ada.post(path, json={"assignee": "adda"})
    assert (wrong.status_code, "Do you mean ada?" in wrong.text) == (422, True)


async def test_members_make_channels_of_their_own_scope_and_mail_only_members(market: Market) -> None:
    bob = await member(market, "bob")
    for scope in ("organisation", "operators"):
        await ask(bob, "POST", "/channels", 403, **HOOK, scope=scope)
    mine = (await ask(bob, "POST", "/channels", 201, **HOOK, scope="me"))["channel"]
    mail = {"name": "mail", "kind": "mail", "scope": "project"}
    refused = await ask(bob, "POST", "/channels", 403, **mail, target="stranger@example.net")
    assert "members of your organisation" in refused["detail"]
    await ask(bob, "POST", "/channels", 201, **mail, target="bob@example.org")
    assert {one["name"] for one in (await ask(market.owner, "GET", "/channels"))["items"]} == {"mail"}
    await ask(market.owner, "GET", f"/channels/{mine['id']}", 404)
    double = await ask(bob, "POST", "/channels", 409, **mail, target="bob@example.org")
    assert "There is a channel mail already" in double["detail"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "https://a b"},
        {"quiet": QUIET | {"time_zone": "Mars/Olympus"}},
        {"quiet": QUIET | {"begin": "24:00"}},
        {"digest_minutes": 60},
        {"kind": "apprise", "target": "json://10.0.0.1/"},
        {"rules": ["x"] * 51},
    ],
)
async def test_a_channel_that_cannot_work_is_refused(market: Market, wrong: dict[str, Any]) -> None:
    answer = await market.owner.post("/channels", json=HOOK | wrong)
    assert answer.status_code in (400, 422), answer.text


async def test_users_hear_of_what_is_urgent_without_a_channel_and_choose(market: Market, box: Mailbox) -> None:
    account = (await ask(market.owner, "GET", "/me"))["account"]["id"]
    ada, _ = await member(market, "ada"), await member(market, "eve")
    assert_described(await ada.get("/user/alert-mail"), AlertMailOut)
    eve = await market.signed_in("eve@example.org")
    await ask(eve, "PUT", "/user/alert-mail", level="none")

    async def readers(number: int, severity: Severity) -> set[str]:
        box.mails.clear()
        await tell(market, message(number, cause=str(number), severity=severity, audiences=(account,)))
        return {mail["To"] for mail in box.mails}

    assert await readers(1, Severity.TICKET) == set()
    assert await readers(2, Severity.PAGE) == {"ada@example.org"}
    await ask(ada, "PUT", "/user/alert-mail", level="all")
    assert await readers(3, Severity.TICKET) == {"ada@example.org"}
    sent = (await ask(ada, "GET", "/deliveries"))["items"]
    assert [one["state"] for one in sent] == ["sent", "sent"]
    assert (await ask(eve, "GET", "/deliveries"))["items"] == []


async def test_channels_of_an_organisation_and_a_user_hear_of_their_projects_alone(market: Market) -> None:
    account = (await ask(market.owner, "GET", "/me"))["account"]["id"]
    bob = await member(market, "bob")
    await ask(bob, "POST", "/channels", 201, **HOOK | {"target": "http://127.0.0.1:9/"}, scope="me")
    await ask(market.owner, "POST", "/channels", 201, **HOOK | {"target": "http://127.0.0.1:9/"}, scope="organisation")
    await tell(market, message(1, audiences=("operators",)))
    await tell(market, message(2, cause="b", audiences=(account,)))
    own = [one["message_id"] for one in (await ask(bob, "GET", "/deliveries"))["items"]]
    assert own == ["alert_2.firing"]
    seen = [one["message_id"] for one in (await ask(market.owner, "GET", "/deliveries"))["items"]]
    assert seen == ["alert_2.firing"]
