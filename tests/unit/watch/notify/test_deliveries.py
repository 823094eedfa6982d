"""Deliveries to real servers that work, hang, refuse, redirect or drop: at least once, known by their ids, in order."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from aiosmtpd.controller import Controller
from standardwebhooks import Webhook

from tests.master_support import ManualClock
from tests.support.pages import steps
from tests.unit.watch.notify.world import (
    DROP,
    HANG,
    HERE,
    OPERATOR,
    World,
    made_world,
    message,
    said,
    settings_of,
)
from tests.waiting import poll_async
from windrow_master.outgoing import Outgoing
from windrow_master.watch.model import MessageKind
from windrow_master.watch.notify.model import DeliveryState, Quiet
from windrow_proto.conditions import ConditionCode, Severity
from windrow_proto.errors import Conflict, StorageFailed
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with made_world(tmp_path) as made:
        yield made


async def test_a_message_is_signed_as_standard_webhooks_says_and_arrives_once(world: World) -> None:
    _, secret = await world.webhook()
    await world.tell(message(1), message(1))  # whoever says it twice
    await world.deliveries.turn()
    await world.deliveries.turn()

    (request,) = world.sink.taken
    assert Webhook(secret).verify(request["body"], request["headers"]) == said(request)
    assert (said(request)["data"]["alert_id"], world.sink.kept()) == ("alert_1", ["alert_1.firing"])
    (delivery,) = await world.listed()
    assert (delivery.state, delivery.tries, delivery.last_answer) == (DeliveryState.SENT, 1, "200 ok")


async def test_the_loop_goes_on_where_the_leader_before_stopped_and_wakes_by_itself(world: World) -> None:
    await world.webhook()
    answers = iter((500, 200, 200))
    world.sink.answer = lambda message_id: next(answers)
    await world.tell(message(1))
    world.restart()

    async def recorded(tries: int) -> bool:
        return sum(one.tries for one in await world.listed()) == tries

    async with asyncio.TaskGroup() as group:
        loop = group.create_task(world.deliveries.run())
        await poll_async(lambda: recorded(1))
        world.clock.advance(10 * SECOND)
        await poll_async(lambda: world.sink.kept() == ["alert_1.firing"])
        await world.tell(message(2))
        await poll_async(lambda: world.sink.kept() == ["alert_1.firing", "alert_2.firing"])
        await poll_async(lambda: recorded(3))
        loop.cancel()
    assert await world.states() == ["sent", "sent"]


async def test_the_program_of_the_page_verifies_a_message(world: World) -> None:
    channel, secret = await world.webhook()
    await world.channels.test(OPERATOR, channel.channel_id)
    (program,) = (step.text for step in steps("docs/channels.md") if step.language == "python")
    names: dict[str, Any] = {}
    exec(program, names)
    (request,) = world.sink.taken
    assert names["verified"](secret, request["headers"], request["body"])
    assert not names["verified"](secret, request["headers"], request["body"] + b" ")


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
async def test_both_databases_keep_order_digests_and_the_log(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue("postgres_url") if kind == "postgresql" else None
    async with made_world(tmp_path, database=database, clock=ManualClock()) as world:  # far from the quiet time's end
        channel, _ = await world.webhook(rules=("host.*",), quiet=Quiet(0, 1439, "UTC"))
        await world.mail(digest_minutes=60)
        world.sink.answer = lambda message_id: 500
        page = {"severity": Severity.PAGE, "kind": MessageKind.ESCALATED, "message_id": "alert_1.escalated.1"}
        await world.tell(message(1), message(2, cause="b"), message(1, **page))
        await world.pass_time(MINUTE, 10 * SECOND)
        assert set(world.sink.tried()) == {"alert_1.firing"}
        world.sink.answer = lambda message_id: 200
        await world.pass_time(DAY, HOUR)
        assert world.sink.kept() == ["alert_1.firing", "alert_1.escalated.1", "alert_2.firing"]
        assert len(world.box.mails) == 3
        wanted = {"channel_id": channel.channel_id, "state": "sent", "alert_id": "alert_1"}
        assert len(await world.deliveries.list(OPERATOR, None, 10, wanted)) == 2
        assert set(await world.states()) == {"sent"}


async def test_a_sink_that_hangs_holds_up_no_other_channel(tmp_path: Path) -> None:
    async with made_world(tmp_path, deadline_s=2) as world, made_world(tmp_path / "other") as other:
        world.sink.answer = lambda message_id: HANG
        await world.webhook()
        await world.webhook("good", other.sink.url)
        await world.tell(message(1))
        await world.deliveries.turn()
        assert other.sink.kept() == ["alert_1.firing"]
        assert sorted(await world.states()) == ["sent", "waiting"]
        assert any("did not answer within 2 s" in one.last_answer for one in await world.listed())


async def test_a_sink_down_for_an_hour_gets_everything_once_and_in_order(world: World) -> None:
    await world.webhook()
    world.sink.answer = lambda message_id: 500
    for number in range(30):
        await world.tell(message(number, cause=f"host-{number % 3}"))
        await world.pass_time(2 * MINUTE, MINUTE)
    assert world.sink.kept() == [] and len(world.sink.taken) < 200
    world.sink.answer = lambda message_id: 200
    await world.pass_time(90 * MINUTE, 5 * MINUTE)

    kept = world.sink.kept()
    assert sorted(kept) == sorted(f"alert_{number}.firing" for number in range(30))
    for host in range(3):
        own = [one for one in kept if int(one.split(".")[0].removeprefix("alert_")) % 3 == host]
        assert own == [f"alert_{number}.firing" for number in range(host, 30, 3)]
    assert set(await world.states()) == {"sent"}


async def test_a_later_message_waits_for_the_earlier_of_its_object_alone(world: World) -> None:
    await world.webhook()
    world.sink.answer = lambda message_id: 503 if message_id == "alert_1.firing" else 200
    await world.tell(message(1), message(2), message(3, cause="b"))
    await world.deliveries.turn()
    assert world.sink.kept() == ["alert_3.firing"]
    world.sink.answer = lambda message_id: 200
    await world.pass_time(MINUTE, 10 * SECOND)
    assert world.sink.kept() == ["alert_3.firing", "alert_1.firing", "alert_2.firing"]


async def test_a_redirect_is_not_followed_and_what_is_not_allowed_is_not_asked(tmp_path: Path) -> None:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return {"public.example": ["127.0.0.1"], "rebound.example": ["127.0.0.1", "10.0.0.5"]}[host]

    async with made_world(tmp_path, Outgoing(look_up=look_up, allowed=HERE)) as world:
        port = world.sink.url.partition(":")[2].rpartition(":")[2]
        world.sink.answer, world.sink.where = (lambda message_id: 302), "http://10.0.0.1/admin"
        await world.webhook("redirects", f"http://public.example:{port}")
        await world.webhook("rebinds", f"http://rebound.example:{port}")
        await world.tell(message(1))
        await world.deliveries.turn()
        answers = {one.last_answer for one in await world.listed()}

    assert len(world.sink.taken) == 1
    assert any("sends elsewhere (status 302), and is not followed" in one for one in answers)
    assert any("rebound.example lies in a private network" in one for one in answers)


async def test_without_permission_no_address_of_this_machine_is_asked(tmp_path: Path) -> None:
    async with made_world(tmp_path, Outgoing()) as world:
        channel, _ = await world.webhook()
        tested = await world.channels.test(OPERATOR, channel.channel_id)
    assert (tested.state, world.sink.taken) == (DeliveryState.GIVEN_UP, [])
    assert "WINDROW_EGRESS_ALLOW" in tested.last_answer


async def test_what_a_sink_says_is_kept_without_what_a_database_or_a_terminal_would_obey(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answers(*_: Any) -> tuple[int, str]:
        return 200, "ok \0 \x1b[2J \u202e"

    monkeypatch.setattr("windrow_master.outgoing.Outgoing.post", answers)
    await world.webhook()
    await world.tell(message(1))
    await world.deliveries.turn()
    (one,) = await world.listed()
    assert one.last_answer == "200 ok \ufffd \ufffd[2J \ufffd"


async def test_a_sink_that_takes_a_message_and_drops_the_connection_gets_the_same_id_again(world: World) -> None:
    await world.webhook()
    world.sink.answer = lambda message_id: DROP
    await world.tell(message(1))
    await world.deliveries.turn()
    world.sink.answer = lambda message_id: 200
    await world.pass_time(MINUTE, 10 * SECOND)
    assert world.sink.tried() == ["alert_1.firing", "alert_1.firing"]
    assert world.sink.taken[0]["body"] == world.sink.taken[1]["body"]


async def test_a_leader_that_dies_between_a_try_and_its_record_sends_the_same_id_again(world: World) -> None:
    await world.webhook()
    await world.tell(message(1), message(2))
    real = world.store.write

    async def dies(fn: Any, *, name: str, **more: Any) -> Any:
        if name == "delivery.tried":
            raise StorageFailed("killed")
        return await real(fn, name=name, **more)

    with mock.patch.object(world.store, "write", dies):
        await world.deliveries.turn()
    assert await world.states() == ["waiting", "waiting"]
    world.restart()
    await world.deliveries.turn()
    assert world.sink.tried() == ["alert_1.firing", "alert_1.firing", "alert_2.firing"]
    assert await world.states() == ["sent", "sent"]


async def test_two_secrets_sign_for_a_day_after_a_rotation(world: World) -> None:
    channel, old = await world.webhook()
    _, new = await world.channels.rotate(OPERATOR, channel.channel_id)
    await world.tell(message(1))
    await world.deliveries.turn()
    (request,) = world.sink.taken
    assert old != new
    for secret in (old, new):
        Webhook(secret).verify(request["body"], request["headers"])

    world.clock.advance(DAY)
    await world.tell(message(2, cause="b"))
    await world.deliveries.turn()
    signatures = [value for name, value in world.sink.taken[1]["headers"].items() if name.lower().endswith("signature")]
    assert len(signatures[0].split()) == 1


async def test_what_is_done_is_sent_again_by_hand_with_its_id(world: World) -> None:
    await world.webhook()
    await world.tell(message(1))
    (delivery,) = await world.listed()
    with pytest.raises(Conflict, match="sent by itself"):
        await world.deliveries.again(OPERATOR, delivery.delivery_id)
    await world.deliveries.turn()
    await world.deliveries.again(OPERATOR, delivery.delivery_id)
    await world.deliveries.turn()
    assert world.sink.kept() == ["alert_1.firing", "alert_1.firing"]


async def test_a_message_that_nobody_takes_for_three_days_is_given_up_and_operators_are_told(world: World) -> None:
    await world.webhook()
    world.sink.answer = lambda message_id: 500
    await world.tell(*(message(number, cause=str(number)) for number in range(200)))
    await world.pass_time(4 * DAY, HOUR)
    assert set(await world.states()) == {"given_up"}
    assert len(world.sink.taken) < 600  # and not 200 for each of 80 rounds
    ((code, detail, _),) = world.deliveries.conditions()
    assert code is ConditionCode.MASTER_CHANNEL_FAILED and "500 ok" in detail

    world.sink.answer = lambda message_id: 200
    await world.tell(message(900))
    await world.pass_time(MINUTE, MINUTE)
    assert list(world.deliveries.conditions()) == []


async def test_a_channel_that_is_switched_off_or_deleted_gives_up_what_it_has(world: World) -> None:
    first, _ = await world.webhook()
    second, _ = await world.webhook("second")
    await world.tell(message(1))
    await world.channels.set(OPERATOR, first.channel_id, settings_of("hook", is_enabled=False))
    await world.channels.delete(OPERATOR, second.channel_id)
    await world.tell(message(2))
    await world.deliveries.turn()
    assert (await world.states(), world.sink.taken) == (["given_up", "given_up"], [])


async def test_quiet_hours_hold_what_can_wait_and_a_page_brings_its_object_forward(world: World) -> None:
    await world.webhook(quiet=Quiet(0, 1439, "UTC"))
    page = {"severity": Severity.PAGE, "kind": MessageKind.ESCALATED, "message_id": "alert_1.escalated.1"}
    await world.tell(message(1), message(2, cause="b"), message(1, **page))
    await world.deliveries.turn()
    await world.deliveries.turn()
    assert world.sink.kept() == ["alert_1.firing", "alert_1.escalated.1"]
    await world.pass_time(DAY, HOUR)
    assert world.sink.kept()[2:] == ["alert_2.firing"]


async def test_a_digest_is_one_mail_and_a_page_its_own(world: World) -> None:
    await world.mail(digest_minutes=60)
    await world.tell(message(1), message(2, cause="b"), message(3, cause="c", severity=Severity.PAGE))
    await world.deliveries.turn()
    assert [mail["Subject"] for mail in world.box.mails] == ["[PAGE] Host c is lost"]
    assert world.box.mails[0]["Message-ID"] == "<alert_3.firing@example.org>"
    await world.pass_time(2 * HOUR, 10 * MINUTE)
    assert [mail["Subject"] for mail in world.box.mails[1:]] == ["2 messages of alerts"]
    assert world.box.mails[1]["Message-ID"] == "<alert_1.firing.and-1@example.org>"
    assert await world.states() == ["sent"] * 3


async def test_mail_waits_for_its_server(world: World) -> None:
    await world.mail()
    world.server.stop()
    await world.tell(message(1))
    await world.deliveries.turn()
    assert await world.states() == ["waiting"]
    world.server = Controller(world.box, hostname="127.0.0.1", port=world.server.port)
    world.server.start()
    await world.pass_time(HOUR, 5 * MINUTE)
    assert ([mail["Subject"] for mail in world.box.mails], await world.states()) == (["Host a is lost"], ["sent"])
