"""Shares of jobs and templates through the API: made, listed, used and withdrawn; and what people try against them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.identity.people_world import JSON, RENTER, Market, ask, people_market, secret_of
from tests.unit.identity.test_spending_limits import join_hosts
from windrow_master.identity import object_share_service
from windrow_proto.units import HOUR, SECOND

VIEWER = [{"project": "default", "roles": ["viewer"]}]
ENDS_S = 60.0


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        found.clock.advance(SECOND)  # ids of one moment have no order, and the first account is another case
        yield found


async def _stranger(market: Market, name: str = "guest") -> httpx2.AsyncClient:
    """Somebody in a project and an organisation of that name."""
    made = await ask(market.owner, "POST", "/accounts", name=name, roles=["renter"])
    signed = await ask(await market.client(), "POST", "/sign-in", secret=secret_of(made["link"]))
    return await market.client(signed["token"]["token"])


async def _user(client: httpx2.AsyncClient) -> str:
    return str((await ask(client, "GET", "/me"))["user"]["id"])


async def _job(client: httpx2.AsyncClient, **more: Any) -> str:
    """A job that waits for its files."""
    made = await ask(client, "POST", "/jobs", argv=["true"], await_files=True, name="train", **more)
    return str(made["jobs"][0]["id"])


async def _share(
    client: httpx2.AsyncClient, job: str, receiver: str, level: str = "use", status: int = 0, **more: Any
) -> JSON:
    body = {"object_kind": "job", "object_id": job, "receiver_kind": "user", "receiver": receiver, "level": level}
    made: JSON = await ask(client, "POST", "/shares", status, **body | more)
    return made


async def _items(client: httpx2.AsyncClient, path: str) -> list[JSON]:
    found: list[JSON] = (await ask(client, "GET", path))["items"]
    return found


async def _status(client: httpx2.AsyncClient, method: str, path: str) -> int:
    return (await client.request(method, path)).status_code


async def test_a_shared_job_is_seen_used_and_managed_as_its_level_says(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner, env={"TOKEN": "canary-value"})
    who = await _user(guest)
    routes = {"see": ("GET", ""), "use": ("GET", "/logs"), "manage": ("POST", "/cancel")}
    assert {await _status(guest, method, f"/jobs/{job}{end}") for method, end in routes.values()} == {404}

    said = {}
    for level in ("see", "use", "manage"):
        made = await _share(market.owner, job, who, level)
        said[level] = [await _status(guest, method, f"/jobs/{job}{end}") for method, end in routes.values()]

    assert said == {"see": [200, 403, 403], "use": [200, 200, 403], "manage": [200, 200, 200]}
    shown = await ask(guest, "GET", f"/jobs/{job}")
    assert shown["request"]["env"] == {"TOKEN": None}
    assert [one["id"] for one in await _items(market.owner, "/shares")] == [made["id"]]
    (received,) = await _items(guest, "/shares/received")
    assert (received["object_name"], received["project"], received["level"]) == ("train", "default", "manage")
    assert await _items(market.owner, "/shares/received") == []
    await ask(market.owner, "DELETE", f"/shares/{made['id']}")
    assert {await _status(guest, method, f"/jobs/{job}{end}") for method, end in routes.values()} == {404}
    assert await _items(guest, "/shares/received") == []


async def test_an_operation_is_read_by_who_began_it_on_a_shared_cluster_and_by_its_project(market: Market) -> None:
    await join_hosts(market, 1)
    cluster = (await ask(market.owner, "POST", "/clusters", 202, argv=["true"]))["cluster"]["id"]
    guests = [await _stranger(market, name) for name in ("guest", "other")]
    for guest in guests:
        await _share(market.owner, cluster, await _user(guest), "manage", object_kind="cluster")

    begun = [
        (await ask(client, "DELETE", f"/clusters/{cluster}", 202))["operation"]["id"]
        for client in (*guests, market.owner)
    ]

    seen = [[await _status(client, "GET", f"/operations/{one}") for one in begun[:2]] for client in guests]
    assert seen == [[200, 404], [404, 200]]
    assert begun[2] in begun[:2] and await _items(guests[0], "/operations") == []
    assert await _status(market.owner, "GET", f"/operations/{begun[2]}") == 200


async def test_the_page_of_a_shared_job_tells_who_shares_and_who_is_inside(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    await ask(guest, "GET", f"/events?subject={job}", 404)
    made = await _share(market.owner, job, await _user(guest))

    for _ in range(3):
        await guest.get(f"/jobs/{job}/logs")
    await ask(market.owner, "DELETE", f"/shares/{made['id']}")

    told = [one for one in await _items(market.owner, f"/events?subject={job}") if one["kind"].startswith("share.")]
    assert [one["kind"] for one in told] == ["share.withdrawn", "share.used", "share.made"]
    assert told[1]["text"] == "The job train is used by guest" and told[1]["actor"] == f"user/{await _user(guest)}"
    audited = [one for one in await _items(market.owner, "/audit") if one["subject"] == made["id"]]
    assert sorted(one["action"] for one in audited) == ["share.made", "share.used", "share.withdrawn"]


async def test_who_sees_a_job_is_told_its_events(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    await _share(market.owner, job, await _user(guest), "see")

    assert "job.submitted" in {one["kind"] for one in await _items(guest, f"/events?subject={job}")}
    await ask(guest, "GET", f"/events?subject={await _job(market.owner)}", 404)


async def test_a_project_and_an_organisation_are_let_in_as_their_people_may(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    viewer = await market.client((await ask(guest, "POST", "/tokens", name="eyes", roles=["renter"]))["token"])
    for kind in ("project", "organisation"):
        made = await _share(market.owner, job, "guest", receiver_kind=kind)
        assert made["receiver"] == "guest"
        assert await _status(guest, "GET", f"/jobs/{job}/logs") == await _status(viewer, "GET", f"/jobs/{job}/logs")
        assert await _status(guest, "GET", f"/jobs/{job}/logs") == 200
        await ask(market.owner, "DELETE", f"/shares/{made['id']}")
        assert await _status(guest, "GET", f"/jobs/{job}/logs") == 404


async def test_a_member_is_named_by_name_address_or_id_and_a_stranger_by_id_alone(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    ada = await market.joined("ada@example.org", projects=VIEWER)
    for name in ("ada", "ADA@example.org", await _user(ada)):
        made = await _share(market.owner, job, name)
        assert (made["receiver"], made["receiver_id"]) == ("ada", await _user(ada))
    assert (await _share(market.owner, job, await _user(guest)))["receiver"] == await _user(guest)
    unknown = await _share(market.owner, job, "guest", status=404)
    absent = await _share(market.owner, job, "nobody", status=404)
    assert unknown["detail"] == absent["detail"]

    other = await market.joined("bea@example.net", projects=VIEWER)
    for name in (await _user(guest), f"USER_{(await _user(ada))[5:]}", "ada"):
        assert await ask(other, "PUT", "/user", 409 if name == "ada" else 422, name=name)


async def test_a_shared_template_is_read_by_its_share_without_values(market: Market) -> None:
    guest = await _stranger(market)
    await ask(market.owner, "PUT", "/templates/base", argv=["true"], env={"TOKEN": "canary-value"})
    body: JSON = {
        "object_kind": "template",
        "object_id": "base",
        "receiver_kind": "user",
        "receiver": await _user(guest),
    }
    await ask(market.owner, "POST", "/shares", 422, **body, level="see")
    made = await ask(market.owner, "POST", "/shares", **body, level="use")

    shown = await ask(guest, "GET", f"/templates/{made['id']}")

    assert (shown["name"], shown["request"]["argv"]) == ("base", ["true"])
    assert shown["request"]["env"] == {"TOKEN": None}
    await ask(guest, "GET", "/templates/base", 404)
    await ask(guest, "DELETE", f"/templates/{made['id']}", 404)
    await ask(guest, "GET", f"/artefacts/account/x/{made['id']}", 404)
    await ask(await _stranger(market, "rival"), "GET", f"/templates/{made['id']}", 404)
    await ask(market.owner, "PUT", f"/templates/{made['id']}", 422, argv=["true"])


async def test_a_template_of_the_same_name_is_not_shared_again(market: Market) -> None:
    guest = await _stranger(market)
    await ask(market.owner, "PUT", "/templates/base", argv=["true"])
    body: JSON = {
        "object_kind": "template",
        "object_id": "base",
        "receiver_kind": "user",
        "receiver": await _user(guest),
    }
    made = await ask(market.owner, "POST", "/shares", **body, level="use")

    await ask(market.owner, "DELETE", "/templates/base")
    await ask(market.owner, "PUT", "/templates/base", argv=["secret"])

    await ask(guest, "GET", f"/templates/{made['id']}", 404)
    assert await _items(guest, "/shares/received") == []


async def test_nobody_shares_what_is_anothers_or_was_only_received(market: Market) -> None:
    guest, rival, job = await _stranger(market), await _stranger(market, "rival"), await _job(market.owner)
    foreign = await _share(guest, job, await _user(rival), status=404)
    absent = await _share(guest, f"job_{'0' * 32}", await _user(rival), status=404)
    assert foreign["detail"] == absent["detail"]

    made = await _share(market.owner, job, await _user(guest), "manage")

    await _share(guest, job, await _user(rival), status=404)
    await ask(guest, "DELETE", f"/shares/{made['id']}", 404)
    assert await _items(guest, "/shares") == []
    await ask(guest, "POST", f"/jobs/{job}/rerun", 404)


async def test_nobody_shares_with_oneself_or_at_a_level_that_there_is_not(market: Market) -> None:
    job = await _job(market.owner)
    await _share(market.owner, job, await _user(market.owner), status=422)
    await _share(market.owner, job, "default", status=422, receiver_kind="project")
    await _share(market.owner, job, "home", receiver_kind="organisation")
    await _share(market.owner, job, "home", "own", status=422, receiver_kind="organisation")
    await _share(market.owner, job, "home", status=422, receiver_kind="everybody")
    await _share(market.owner, job, "home", status=422, receiver_kind="organisation", expires_in_s=0)
    assert [one["level"] for one in await _items(market.owner, "/shares")] == ["use"]


async def test_a_viewer_shares_nothing_and_an_admin_the_page_alone(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    viewer = await market.joined("vera@example.org", projects=VIEWER)
    admin = await market.joined("ada@example.org", projects=[{"project": "default", "roles": ["admin"]}])

    await _share(viewer, job, await _user(guest), "see", status=403)
    await _share(admin, job, await _user(guest), "use", status=403)
    made = await _share(admin, job, await _user(guest), "see")
    await ask(viewer, "DELETE", f"/shares/{made['id']}", 403)
    assert [one["id"] for one in await _items(viewer, "/shares")] == [made["id"]]


async def test_a_share_reaches_another_object_of_its_owner_by_no_trick(market: Market) -> None:
    guest = await _stranger(market)
    shared, private = await _job(market.owner), await _job(market.owner)
    await _share(market.owner, shared, await _user(guest), "manage")

    for path in (
        f"/jobs/{private}/logs?subject={shared}",
        f"/jobs/{private}?job_id={shared}",
        f"/artefacts/job/{private}/{shared}",
        f"/artefacts?owner_kind=job&owner_id={private}&subject={shared}",
    ):
        assert await _status(guest, "GET", path) in {400, 404, 422}, path
    assert await _items(guest, "/jobs") == []
    assert await _items(guest, f"/events?subject={shared}")
    await ask(guest, "GET", f"/events?subject={private}", 404)


async def test_a_share_ends_with_its_time(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    await _share(market.owner, job, await _user(guest), expires_in_s=3_600)
    assert await _status(guest, "GET", f"/jobs/{job}") == 200

    market.clock.advance(HOUR + SECOND)

    assert await _status(guest, "GET", f"/jobs/{job}") == 404
    assert await _items(guest, "/shares/received") == await _items(market.owner, "/shares") == []


async def test_a_share_ends_with_the_right_of_whoever_made_it(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    ada = await market.joined("ada@example.org", projects=RENTER)
    await _share(ada, job, await _user(guest))
    assert await _status(guest, "GET", f"/jobs/{job}") == 200

    await ask(market.owner, "PUT", f"/members/{await _user(ada)}", projects=VIEWER)

    assert await _status(guest, "GET", f"/jobs/{job}") == 404
    assert [one["is_active"] for one in await _items(market.owner, "/shares")] == [False]
    await ask(market.owner, "PUT", f"/members/{await _user(ada)}", projects=RENTER)
    assert await _status(guest, "GET", f"/jobs/{job}") == 200
    await ask(market.owner, "DELETE", f"/members/{await _user(ada)}")
    assert await _status(guest, "GET", f"/jobs/{job}") == 404
    assert await _items(market.owner, "/shares") == []


async def test_a_share_ends_with_the_token_that_made_it_and_outlives_a_sign_out(market: Market) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    stolen = await ask(market.owner, "POST", "/tokens", name="ci")
    await _share(await market.client(stolen["token"]), job, await _user(guest))
    await ask(market.owner, "DELETE", f"/tokens/{stolen['id']}")
    assert await _status(guest, "GET", f"/jobs/{job}") == 404

    laptop = await ask(market.owner, "POST", "/tokens", name="laptop")
    mine = await market.client(laptop["token"])
    await _share(mine, job, await _user(guest))
    await ask(mine, "DELETE", f"/tokens/{laptop['id']}")
    assert await _status(guest, "GET", f"/jobs/{job}") == 200


async def test_a_share_ends_with_the_receivers_membership_and_with_a_suspension(market: Market) -> None:
    guest, rival = await _stranger(market), await _stranger(market, "rival")
    job = await _job(guest)
    bob = await market.joined("bob@example.org", projects=RENTER)
    await _share(guest, job, "default", receiver_kind="project")
    await _share(guest, job, await _user(rival))
    assert [await _status(one, "GET", f"/jobs/{job}") for one in (bob, rival)] == [200, 200]

    await ask(market.owner, "DELETE", f"/members/{await _user(bob)}")
    assert await _status(bob, "GET", f"/jobs/{job}") == 401
    await ask(market.owner, "POST", "/accounts/guest/suspend", reason="x")
    assert await _status(rival, "GET", f"/jobs/{job}") == 404
    await ask(market.owner, "POST", "/accounts/guest/resume")
    assert await _status(rival, "GET", f"/jobs/{job}") == 200


async def test_a_project_has_so_many_shares_and_expired_ones_take_no_room(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_share_service, "SHARES_MAX", 2)
    guest, job = await _stranger(market), await _job(market.owner)
    await _share(market.owner, job, "guest", receiver_kind="project", expires_in_s=60)
    await _share(market.owner, job, "guest", receiver_kind="organisation")
    await _share(market.owner, job, await _user(guest), status=429)

    market.clock.advance(61 * SECOND)

    await _share(market.owner, job, await _user(guest))


@pytest.mark.parametrize("how", ["withdrawn", "narrowed", "expired", "suspended"])
async def test_a_stream_by_a_share_ends_with_it_and_the_owners_goes_on(market: Market, how: str) -> None:
    owner, guest = await _stranger(market, "owner"), await _stranger(market)
    job = await _job(owner)
    made = await _share(owner, job, await _user(guest), "use", expires_in_s=3_600)
    begun = market.opened.services.broadcaster

    async with asyncio.timeout(ENDS_S), asyncio.TaskGroup() as group:
        follows = group.create_task(guest.get(f"/jobs/{job}/logs?follow=true"))
        hears = group.create_task(guest.get(f"/events/stream?subject={job}"))
        mine = group.create_task(owner.get(f"/events/stream?subject={job}"))
        while begun.listeners < 2:
            await asyncio.sleep(0)
        assert not (follows.done() or hears.done() or mine.done())
        if how == "withdrawn":
            await ask(owner, "DELETE", f"/shares/{made['id']}")
        elif how == "narrowed":
            await _share(owner, job, await _user(guest), "see")
        elif how == "expired":
            market.clock.advance(HOUR)
        else:
            await ask(market.owner, "POST", "/accounts/owner/suspend", reason="x")
        assert (await follows).status_code == 200
        if how != "narrowed":
            assert (await hears).status_code == 200
        if how in {"withdrawn", "narrowed", "expired"}:
            assert not mine.done()
        hears.cancel()
        mine.cancel()
