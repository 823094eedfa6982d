"""Promises about the end of users and projects: who may end what, what ends with it, what stays, and who is told."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from tests.unit.identity.people_world import PASSWORD, RENTER, Market, ask, people_market, secret_of
from windrow_master.app.tables import whole_schema
from windrow_master.app.wiring import Settings
from windrow_master.identity.membership import PROJECTS_MAX
from windrow_master.identity.model import Account
from windrow_master.identity.projects import KEPT_NS
from windrow_master.identity.repository import AccountRepository, ServiceAccountRepository
from windrow_master.mail.repository import OutboxRepository
from windrow_master.mail.settings import mail_settings
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.secrets.repository import SecretRepository
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import DAY, HOUR, SECOND

JSON = dict[str, Any]
WHY = "asked for by mail"


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        found.clock.advance(SECOND)  # the ids of one moment have no order
        yield found


async def _id(client: httpx2.AsyncClient) -> str:
    return str((await ask(client, "GET", "/me"))["user"]["id"])


async def _items(client: httpx2.AsyncClient, path: str) -> list[JSON]:
    return list((await ask(client, "GET", path))["items"])


async def _guest(market: Market, name: str = "guest", **more: Any) -> httpx2.AsyncClient:
    """The owner of another organisation, with one project; all three are of this name."""
    made = await ask(market.owner, "POST", "/accounts", name=name, roles=["renter", "provider"], **more)
    opened = await ask(await market.client(), "POST", "/sign-in", secret=secret_of(made["link"]))
    return await market.client(opened["token"]["token"])


async def _lab(market: Market) -> str:
    """The id of a second project of the first organisation."""
    return str((await ask(market.owner, "POST", "/projects", name="lab"))["id"])


async def _audited(market: Market, action: str) -> list[JSON]:
    return [one for one in await _items(market.owner, "/audit") if one["action"] == action]


# --- leaving ---------------------------------------------------------------------------------------------------------


async def test_a_member_leaves_an_organisation_by_name_and_loses_what_it_gave(market: Market) -> None:
    guest = await _guest(market)
    invited = await market.invite(projects=RENTER)
    await ask(guest, "POST", "/invitation/join", secret=invited)
    there = await market.client((await ask(guest, "POST", "/projects/default/token"))["token"]["token"])
    await ask(guest, "DELETE", "/user/organisations/nothing", 404)

    await ask(guest, "DELETE", "/user/organisations/home", 204)

    await ask(there, "GET", "/me", 401)
    assert [one["name"] for one in (await ask(guest, "GET", "/user"))["organisations"]] == ["guest"]
    refused = await ask(guest, "DELETE", "/user/organisations/guest", 409)
    assert "guest" not in refused["detail"] and "windrow member set" in refused["detail"]


async def test_of_two_last_owners_who_leave_at_once_one_stays(market: Market) -> None:
    ada = await market.joined("ada@example.org", role="org_owner", projects=RENTER)

    answers = await asyncio.gather(*(one.delete("/user/organisations/home") for one in (market.owner, ada)))

    assert sorted(one.status_code for one in answers) == [204, 409]


async def test_a_token_with_a_part_of_the_roles_neither_leaves_nor_deletes_its_user(market: Market) -> None:
    ada = await market.joined("ada@example.org", role="org_admin", projects=RENTER)
    weak = await market.client((await ask(ada, "POST", "/tokens", name="cut", roles=["renter"]))["token"])

    await ask(weak, "DELETE", "/user/organisations/home", 403)
    await ask(weak, "POST", "/user/delete", 403, name="ada", password=PASSWORD)


# --- users -----------------------------------------------------------------------------------------------------------


async def test_a_user_deletes_the_own_user_with_the_password(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    user_id = await _id(ada)
    laptop = await market.client((await ask(ada, "POST", "/tokens", name="of ada"))["token"])
    await ask(laptop, "GET", "/me")

    await ask(ada, "POST", "/user/delete", 403, name="ada", password="not this one at all")
    await ask(ada, "POST", "/user/delete", 403, name="ada")
    await ask(ada, "POST", "/user/delete", 409, name="eve", password=PASSWORD)
    await ask(ada, "POST", "/user/delete", 204, name="ada", password=PASSWORD)

    for client in (ada, laptop):
        await ask(client, "GET", "/me", 401)
    await ask(await market.client(), "POST", "/sign-in/password", 401, address="ada@example.org", password=PASSWORD)
    assert user_id not in [one["id"] for one in await _items(market.owner, "/members")]
    assert [one["subject"] for one in await _audited(market, "user.erase")] == [user_id]
    again = await market.joined("ada@example.org", projects=RENTER)
    assert await _id(again) != user_id


async def test_nothing_that_tells_of_the_person_is_left_in_the_tables(market: Market) -> None:
    ada = await market.joined("zaphod@example.org", projects=RENTER)
    user_id = await _id(ada)
    await ask(ada, "POST", "/user/second-factor", password=PASSWORD)
    await ask(market.owner, "POST", f"/members/{user_id}/password-link")
    await ask(ada, "POST", "/tokens", name="laptop")

    await ask(market.owner, "POST", f"/users/{user_id}/delete", 204, reason=WHY)
    await market.opened.identity.asking.note_use()

    kept = set()
    for table in whole_schema().sorted_tables:
        rows = market.opened.store.read_now(lambda uow: uow.connection.execute(select(table)).all())  # noqa: B023
        kept |= {table.name for row in rows if "zaphod" in str(row)}
        if table.name in {"sessions", "factors", "password_links", "user_identities"}:
            assert not [row for row in rows if user_id in str(row)], table.name
        if table.name == "api_tokens":
            assert {row.last_used_address for row in rows if row.user_id == user_id} == {None}
    assert kept == set()
    assert [one["reason"] for one in await _audited(market, "user.erase")] == [WHY]


async def test_a_limit_keeps_no_name_of_a_token_of_who_was_deleted(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    token = await ask(ada, "POST", "/tokens", name="laptop of ada", limits={"max_leases": 1})
    await ask(market.owner, "POST", f"/users/{await _id(ada)}/delete", 204, reason=WHY)
    limit = market.opened.store.read_now(lambda uow: uow[LimitRepository].get(token["id"]))
    assert limit is not None and (limit.name, limit.limits.max_leases) == (token["id"], 1)


async def test_the_last_owner_stays_while_there_are_other_members_or_something_is_left(market: Market) -> None:
    guest = await _guest(market, credit="5")
    guest_id = await _id(guest)
    invited = await ask(guest, "POST", "/invitations", projects=[{"project": "guest", "roles": ["viewer"]}])
    ada = await market.joined("ada@example.org", projects=RENTER)
    await ask(ada, "POST", "/invitation/join", secret=secret_of(invited["link"]))

    refused = await ask(market.owner, "POST", f"/users/{guest_id}/delete", 409, reason=WHY)
    assert "guest keeps at least one owner" in refused["detail"]
    await ask(ada, "DELETE", "/user/organisations/guest", 204)
    refused = await ask(guest, "POST", "/user/delete", 409, name="guest")
    assert ["5.00 are left" in one["reason"] for one in refused["reasons"]] == [True]
    await ask(market.owner, "POST", "/accounts/guest/settle", reason="leaves")
    await ask(guest, "POST", "/user/delete", 204, name="guest")

    shown = {one["name"]: one["state"] for one in await _items(market.owner, "/accounts")}
    assert shown == {"default": "active", "guest": "deleted"}
    assert [one["name"] for one in await _items(market.owner, "/users")] == ["owner", "ada"]
    await ask(market.owner, "POST", "/accounts/guest/resume")
    await ask(market.owner, "POST", "/accounts/guest/link", 409)
    await ask(market.owner, "POST", "/accounts/guest/credit", 409, amount="1")
    await ask(market.owner, "POST", f"/users/{guest_id}/delete", 404, reason=WHY)


async def test_of_two_owners_who_are_deleted_at_once_one_stays_for_the_other_members(market: Market) -> None:
    guest = await _guest(market)
    opens: list[JSON] = [{"role": "org_owner"}, {"projects": [{"project": "guest", "roles": ["viewer"]}]}]
    ada, bob = [await market.joined(f"{name}@example.org", projects=RENTER) for name in ("ada", "bob")]
    for one, body in zip((ada, bob), opens, strict=True):
        made = await ask(guest, "POST", "/invitations", **body)
        await ask(one, "POST", "/invitation/join", secret=secret_of(made["link"]))

    answers = await asyncio.gather(
        guest.post("/user/delete", json={"name": "guest"}),
        ada.post("/user/delete", json={"name": "ada", "password": PASSWORD}),
    )

    assert sorted(one.status_code for one in answers) == [204, 409]


async def test_the_first_user_and_strangers_are_not_deleted_by_others(market: Market) -> None:
    ada = await market.joined("ada@example.org", role="org_owner", projects=RENTER)
    await ask(market.owner, "POST", "/user/delete", 409, name="owner")
    await ask(ada, "POST", f"/users/{await _id(market.owner)}/delete", 403, reason=WHY)
    await ask(market.owner, "POST", f"/users/{await _id(ada)}/delete", 422)


async def test_an_erased_user_joins_nothing_with_a_request_that_was_let_in_before(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    people = market.opened.identity.people
    principal = await market.opened.identity.authenticate(ada.headers["authorization"].removeprefix("Bearer "))
    secret = await market.invite(role="org_owner")
    await ask(ada, "POST", "/user/delete", 204, name="ada", password=PASSWORD)

    with pytest.raises(Exception, match="was deleted"):
        await people.accept(principal, secret)


# --- projects --------------------------------------------------------------------------------------------------------


async def test_a_deleted_project_lets_nobody_in_and_is_restored_for_its_members(market: Market) -> None:
    lab_id = await _lab(market)
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["admin", "renter"]}])
    token = await market.client((await ask(ada, "POST", "/tokens", name="laptop"))["token"])
    service = await ask(ada, "POST", "/service-accounts", name="ci", roles=["renter"])
    program = await market.client(service["token"]["token"])
    open_invitation = await market.invite(projects=[{"project": "lab", "roles": ["viewer"]}])
    await ask(ada, "DELETE", "/projects/lab", 403)

    await ask(market.owner, "DELETE", "/projects/lab", 204)

    for client in (ada, token, program):
        await ask(client, "GET", "/me", 401)
    await ask(await market.client(), "POST", "/sign-in/password", 403, address="ada@example.org", password=PASSWORD)
    assert [one["name"] for one in await _items(market.owner, "/projects")] == ["default"]
    members = {one["name"]: one["projects"] for one in await _items(market.owner, "/members")}
    assert members["ada"] == [] and [one["name"] for one in members["owner"]] == ["default"]
    stranger = await market.client()
    body = {"secret": open_invitation, "name": "Bob", "address": "bob@example.org", "password": PASSWORD}
    await ask(stranger, "POST", "/invitation/accept", 409, **body)
    await ask(market.owner, "POST", "/projects", 409, name="lab")
    await ask(market.owner, "DELETE", "/projects/lab", 404)
    (shown,) = await _items(market.owner, "/projects/deleted")
    assert (shown["id"], shown["name"]) == (lab_id, "lab")

    await ask(market.owner, "POST", "/projects/lab/restore")

    ada = await market.signed_in("ada@example.org")
    assert (await ask(ada, "GET", "/me"))["roles"] == ["admin", "renter"]
    await ask(token, "GET", "/me", 401)
    await ask(program, "GET", "/me", 401)
    made = await ask(ada, "POST", "/service-accounts/ci/rotate")
    await ask(await market.client(made["token"]["token"]), "GET", "/me")
    assert [one["subject"] for one in await _audited(market, "project.restore")] == [lab_id]


async def test_a_project_is_not_deleted_while_something_of_it_goes_on(market: Market) -> None:
    lab_id = AccountId(await _lab(market))
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["admin", "renter"]}])
    await ask(market.owner, "POST", "/accounts/lab/credit", amount="3")
    job = (await ask(ada, "POST", "/jobs", argv=["true"], await_files=True, name="train"))["jobs"][0]
    fleet = market.opened.fleet
    host = HostId("host_1")
    await market.opened.store.write(lambda uow: fleet.enrol(uow, host, "box", lab_id, False, "test"), name="test")
    await fleet.refresh()

    refused = await ask(market.owner, "DELETE", "/projects/lab", 409)
    assert {one["field"] for one in refused["reasons"]} == {"lab"}
    said = [one["reason"].partition(":")[0] for one in refused["reasons"]]
    assert [one.partition(".")[0] for one in said] == ["Jobs wait", "Hosts belong to it", "3"]
    await ask(market.owner, "POST", "/accounts/lab/settle", 409, reason=WHY)
    await ask(ada, "POST", f"/jobs/{job['id']}/cancel")
    await ask(market.owner, "POST", f"/hosts/{host}/retire", reason=WHY)
    before = (await ask(market.owner, "GET", "/me"))["balance"]["amount"]
    await _guest(market)
    await ask(market.owner, "POST", "/accounts/lab/settle", 409, to="guest", reason=WHY)
    assert (await ask(market.owner, "POST", "/accounts/lab/settle", to="default", reason=WHY))["balance"][
        "amount"
    ] == "0.00"
    assert float((await ask(market.owner, "GET", "/me"))["balance"]["amount"]) == float(before) + 3
    assert market.opened.store.read_now(market.opened.market.verify) == ()

    await ask(market.owner, "DELETE", "/projects/lab", 204)


async def test_the_first_the_last_and_the_present_project_stay(market: Market) -> None:
    await ask(market.owner, "DELETE", "/projects/default", 409)
    guest = await _guest(market)
    refused = await ask(guest, "DELETE", "/projects/guest", 409)
    assert "the last project" in refused["detail"]
    await ask(guest, "POST", "/projects", name="more")
    refused = await ask(guest, "DELETE", "/projects/guest", 409)
    assert "You act in guest" in refused["detail"]
    await ask(guest, "DELETE", "/projects/lab", 404)


async def test_two_projects_that_are_deleted_at_once_leave_one(market: Market) -> None:
    guest = await _guest(market)
    await ask(guest, "POST", "/projects", name="more")
    other = await market.client((await ask(guest, "POST", "/projects/more/token"))["token"]["token"])

    answers = await asyncio.gather(guest.delete("/projects/more"), other.delete("/projects/guest"))

    assert sorted(one.status_code for one in answers)[0] == 204
    assert len([one for one in answers if one.status_code == 204]) == 1


async def test_a_request_that_was_let_in_before_begins_nothing_in_a_deleted_project(market: Market) -> None:
    await _lab(market)
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["renter"]}])
    identity, jobs = market.opened.identity, market.opened.services.jobs
    principal = await identity.authenticate(ada.headers["authorization"].removeprefix("Bearer "))
    made = (await ask(ada, "POST", "/jobs", argv=["true"], await_files=True))["jobs"][0]
    await ask(ada, "POST", f"/jobs/{made['id']}/cancel")
    asked = (await jobs.get(principal, made["id"])).job.request
    await ask(market.owner, "DELETE", "/projects/lab", 204)

    with pytest.raises(Exception, match="The project lab is deleted"):
        await jobs.submit(principal, asked)


async def test_what_a_deleted_project_kept_is_gone_after_thirty_days_and_the_ledger_stays(market: Market) -> None:
    lab_id = AccountId(await _lab(market))
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["admin", "renter"]}])
    await ask(market.owner, "POST", "/accounts/lab/credit", amount="3")
    await ask(market.owner, "POST", "/accounts/lab/settle", reason=WHY)
    await ask(ada, "PUT", "/secrets/TOKEN", value="secret", kind="text")
    await ask(ada, "POST", "/volumes", name="data")
    await ask(ada, "POST", "/service-accounts", name="ci", roles=["renter"], limits={"max_leases": 1})
    await ask(market.owner, "DELETE", "/projects/lab", 204)
    retention = market.opened.services.retention

    def left(uow: UnitOfWork) -> tuple[int, ...]:
        services = uow[ServiceAccountRepository].list(lab_id, "", 10)
        secrets, volumes = uow[SecretRepository].of_account(lab_id), uow[VolumeRepository].of_account(lab_id)
        return tuple(map(len, (secrets, volumes, services, uow[LimitRepository].of_projects([lab_id]))))

    market.clock.advance(KEPT_NS - HOUR)
    await retention.sweep()
    assert market.opened.store.read_now(left) == (1, 1, 1, 1)
    market.clock.advance(DAY)
    await retention.sweep()
    assert market.opened.store.read_now(left) == (0, 0, 0, 0)

    assert await _items(market.owner, "/projects/deleted") == []
    await ask(market.owner, "POST", "/projects/lab/restore", 404)
    await ask(market.owner, "POST", "/projects", 201, name="lab")
    kinds = [one["kind"] for one in await _items(market.owner, "/ledger/transfers") if str(lab_id) in str(one)]
    assert kinds == ["write_off", "mint"]
    assert [one["subject"] for one in await _audited(market, "project.purge")] == [lab_id]


async def test_no_project_is_restored_beyond_the_most_that_an_organisation_may_have(market: Market) -> None:
    await _lab(market)
    await ask(market.owner, "DELETE", "/projects/lab", 204)
    organisation = (await ask(market.owner, "GET", "/organisation"))["id"]

    def fill(uow: UnitOfWork) -> None:
        for number in range(PROJECTS_MAX - 1):
            name = f"account_{number:032x}"
            row = Account(AccountId(name), name, frozenset(), uow.now_wall_ns, organisation_id=organisation)
            uow[AccountRepository].add(row)

    await market.opened.store.write(fill, name="test")
    await ask(market.owner, "POST", "/projects/lab/restore", 409)


# --- transfers -------------------------------------------------------------------------------------------------------


async def test_a_project_changes_its_organisation_with_its_money_and_without_its_members(market: Market) -> None:
    lab_id = await _lab(market)
    await ask(market.owner, "POST", "/accounts/lab/credit", amount="7")
    ada = await market.joined("ada@example.org", role="org_admin", projects=[{"project": "lab", "roles": ["renter"]}])
    token = await market.client((await ask(ada, "POST", "/projects/lab/token"))["token"]["token"])
    old_invitation = await market.invite(projects=[{"project": "lab", "roles": ["admin"]}])
    guest = await _guest(market)
    await ask(ada, "POST", "/projects/lab/transfer", 403, organisation="guest")
    await ask(market.owner, "POST", "/projects/lab/transfer", 404, organisation="nobody")
    await ask(market.owner, "POST", "/projects/default/transfer", 409, organisation="guest")
    await ask(guest, "POST", "/projects/lab/transfer/accept", 404)

    offer = await ask(market.owner, "POST", "/projects/lab/transfer", 201, organisation="guest")
    assert (offer["source"], offer["target"], offer["is_mine"]) == ("home", "guest", True)
    await ask(market.owner, "POST", "/projects/lab/transfer/accept", 404)
    assert [(one["name"], one["is_mine"]) for one in await _items(guest, "/project-transfers")] == [("lab", False)]
    assert (await ask(guest, "POST", "/projects/lab/transfer/accept"))["roles"] == ["admin", "provider", "renter"]

    await ask(token, "GET", "/me", 401)
    assert [one["name"] for one in await _items(market.owner, "/projects")] == ["default"]
    assert (await ask(guest, "POST", "/projects/lab/token"))["project"]["id"] == lab_id
    moved = await ask(market.owner, "GET", "/accounts/lab")
    assert (moved["balance"]["amount"], moved["state"]) == ("7.00", "active")
    body = {"secret": old_invitation, "name": "Bob", "address": "bob@example.org", "password": PASSWORD}
    await ask(await market.client(), "POST", "/invitation/accept", 409, **body)
    await ask(await market.signed_in("ada@example.org"), "POST", "/projects/lab/use", 404)
    assert await _items(guest, "/project-transfers") == []
    (audited,) = await _audited(market, "project.transfer")
    assert audited["subject"] == lab_id


async def test_an_offer_ends_by_either_side_by_time_and_with_the_owner_who_made_it(market: Market) -> None:
    await _lab(market)
    guest = await _guest(market)

    for end in (market.owner, guest):
        await ask(market.owner, "POST", "/projects/lab/transfer", organisation="guest")
        await ask(end, "DELETE", "/projects/lab/transfer", 204)
        await ask(guest, "POST", "/projects/lab/transfer/accept", 404)
    ada = await market.joined("ada@example.org", role="org_owner", projects=RENTER)
    await ask(ada, "POST", "/projects/lab/transfer", organisation="guest")
    await ask(market.owner, "PUT", f"/members/{await _id(ada)}", role="org_admin")
    await ask(guest, "POST", "/projects/lab/transfer/accept", 409)
    await ask(market.owner, "POST", "/projects/lab/transfer", organisation="guest")
    market.clock.advance(7 * DAY)
    await ask(guest, "POST", "/projects/lab/transfer/accept", 404)


async def test_an_operator_transfers_a_project_with_a_reason_and_suspends_no_former_owner(market: Market) -> None:
    guest = await _guest(market)
    await ask(guest, "POST", "/projects", name="more")
    more = await market.client((await ask(guest, "POST", "/projects/more/token"))["token"]["token"])

    await ask(market.owner, "POST", "/accounts/guest/transfer", 422, organisation="home")
    await ask(market.owner, "POST", "/accounts/guest/transfer", organisation="home", reason=WHY)

    await ask(guest, "GET", "/me", 401)
    assert "guest" in [one["name"] for one in await _items(market.owner, "/projects")]
    await ask(market.owner, "POST", "/accounts/guest/link", 409)
    await ask(market.owner, "POST", "/accounts/guest/suspend", reason=WHY)
    await ask(more, "GET", "/me")
    assert [one["reason"] for one in await _audited(market, "project.transfer")] == [WHY]


# --- the last owner is gone ------------------------------------------------------------------------------------------


async def test_an_operator_makes_a_member_owner_and_all_members_are_told(tmp_path: Path) -> None:
    mail = mail_settings("smtp://127.0.0.1:1?from=market@example.org&starttls=off")
    async with people_market(tmp_path, Settings(mail=mail)) as market:
        guest = await _guest(market)
        ada = await market.joined("ada@example.org", projects=RENTER)
        bob = await market.joined("bob@example.org", projects=RENTER)
        for one in (ada, bob):
            made = await ask(guest, "POST", "/invitations", projects=[{"project": "guest", "roles": ["viewer"]}])
            await ask(one, "POST", "/invitation/join", secret=secret_of(made["link"]))
        path = f"/users/{await _id(ada)}/make-owner"

        await ask(market.owner, "POST", path, 404, organisation="nobody", reason=WHY)
        owner_path = f"/users/{await _id(market.owner)}/make-owner"
        await ask(market.owner, "POST", owner_path, 404, organisation="guest", reason=WHY)
        await ask(guest, "POST", path, 403, organisation="guest", reason=WHY)
        await ask(market.owner, "POST", path, 204, organisation="guest", reason=WHY)

        roles = {one["name"]: one["role"] for one in await _items(guest, "/members")}
        assert roles == {"guest": "org_owner", "ada": "org_owner", "bob": None}
        waiting = market.opened.store.read_now(lambda uow: uow[OutboxRepository].due(2**62, 100))
        assert sorted(one.address for one in waiting) == ["ada@example.org", "bob@example.org"]
        assert [one["reason"] for one in await _audited(market, "organisation.owner")] == [WHY]
        told = await _items(guest, f"/events?subject={(await ask(guest, 'GET', '/me'))['account']['id']}")
        assert WHY in next(one["text"] for one in told if one["kind"] == "organisation.owner_made")

        await ask(bob, "POST", "/user/delete", 204, name="bob", password=PASSWORD)
        waiting = market.opened.store.read_now(lambda uow: uow[OutboxRepository].due(2**62, 100))
        assert [one.address for one in waiting] == ["ada@example.org"]
