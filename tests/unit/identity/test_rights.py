"""Promises of refusals: they name what is missing and who can give it, and `/permissions` says the same beforehand."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.identity.people_world import RENTER, Market, ask, people_market
from windrow_master.identity.decide import GRANTS, Permission, is_allowed
from windrow_master.identity.model import Principal, Role
from windrow_master.identity.rights import missing
from windrow_proto.ids import AccountId, TokenId

ADA = Principal(
    AccountId("account_1"),
    "lab",
    frozenset({Role.VIEWER}),
    TokenId("token_1"),
    "laptop",
    0,
    user_id="user_1",
    has_all=True,
)


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    ("principal", "permission", "said"),
    [
        (
            ADA,
            Permission.RENT,
            "This needs the role renter in the project lab; you have viewer. An admin of the project or of its "
            "organisation can give it: windrow member set user_1 --project lab:renter,viewer",
        ),
        (replace(ADA, may=frozenset()), Permission.RENT, "The project lab may not do that"),
        (replace(ADA, has_all=False), Permission.RENT, "this token has viewer. Another token of yours may have it"),
        (
            replace(ADA, user_id=None, has_all=False, service_id="service_1"),
            Permission.RENT,
            "service-account add NAME",
        ),
        (replace(ADA, user_id=None, has_all=False), Permission.MEMBERS, "belongs to a project, not to a user"),
        (ADA, Permission.FLEET_OPERATE, "windrow member set user_1 --project lab:provider,viewer"),
        (ADA, Permission.MEMBERS, "windrow member set user_1 --project lab:admin,viewer"),
        (
            ADA,
            Permission.PROJECTS,
            "An owner of the organisation can give it: windrow member set NAME --role org_admin",
        ),
        (ADA, Permission.AUDIT_READ, "This needs the role auditor or operator; you have viewer. Operators of this"),
    ],
)
def test_a_refusal_names_the_way_to_the_role(principal: Principal, permission: Permission, said: str) -> None:
    assert said in missing(principal, permission)


@pytest.mark.parametrize("permission", [one for one in Permission if one is not Permission.NOBODY])
def test_every_permission_has_a_refusal_in_sentences(permission: Permission) -> None:
    for principal in (ADA, replace(ADA, roles=frozenset()), replace(ADA, user_id=None, has_all=False)):
        if is_allowed(principal.roles, permission):
            continue
        said = missing(principal, permission)
        assert said.startswith("This needs the role ") and not said.endswith(" ")
        assert any(role in said for role in GRANTS[permission])


async def test_a_refused_request_and_the_question_before_it_say_the_same(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=[{"project": "default", "roles": ["viewer"]}])
    refused = await ask(ada, "POST", "/clusters", 403, argv=["true"])
    (told,) = (await ask(ada, "GET", "/permissions?wanted=POST%20/clusters"))["items"]
    assert (told["permission"], told["allowed"], told["roles"]) == ("rent", False, ["renter"])
    assert told["reason"] == refused["detail"]
    assert (await ask(ada, "GET", "/permissions?wanted=rent"))["items"] == [told]
    (read,) = (await ask(ada, "GET", "/permissions?wanted=get%20clusters/cluster_1"))["items"]
    assert (read["allowed"], read["reason"], read["objects"].startswith("own")) == (True, None, True)


async def test_all_permissions_are_listed_and_nonsense_is_not_found(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    items = (await ask(ada, "GET", "/permissions"))["items"]
    assert [one["permission"] for one in items] == list(Permission)
    assert {one["permission"] for one in items if one["allowed"]} >= {"rent", "fleet.read", "nobody"}
    for wanted in ("nonsense", "POST", "POST%20/nothing", "PATCH%20/clusters", "GET%20/", "%00"):
        answer = await ada.get(f"/permissions?wanted={wanted}")
        assert answer.status_code in {404, 422}, wanted
    assert (await ada.get("/permissions?wanted=" + "x" * 301)).status_code == 422
    await ask(await market.client(), "GET", "/permissions", 401)


async def test_an_admin_of_a_project_ends_the_membership_of_who_has_nothing_else(market: Market) -> None:
    await ask(market.owner, "POST", "/projects", name="lab")
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["admin"]}])
    bob = await market.joined("bob@example.org", projects=[{"project": "lab", "roles": ["viewer"]}])
    cyd = await market.joined("cyd@example.org", projects=[*RENTER, {"project": "lab", "roles": ["viewer"]}])
    ids = {one["name"]: one["id"] for one in (await ask(ada, "GET", "/members"))["items"]}
    taken_out = [{"project": "lab", "roles": []}]

    refused = await ask(ada, "PUT", f"/members/{ids['bob']}", 409, projects=taken_out)
    assert "Remove the member instead" in refused["detail"]
    await ask(ada, "DELETE", f"/members/{ids['bob']}", 204)
    await ask(bob, "GET", "/me", 401)
    refused = await ask(ada, "DELETE", f"/members/{ids['cyd']}", 403)
    assert "windrow member set NAME --project lab:" in refused["detail"]
    await ask(ada, "DELETE", f"/members/{ids['owner']}", 403)
    await ask(ada, "PUT", f"/members/{ids['cyd']}", projects=taken_out)
    assert (await ask(cyd, "GET", "/me"))["account"]["name"] == "default"


async def test_of_two_owners_who_leave_at_once_one_stays(market: Market) -> None:
    ada = await market.joined("ada@example.org", role="org_owner")
    ids = {one["name"]: one["id"] for one in (await ask(market.owner, "GET", "/members"))["items"]}
    statuses = [
        (await client.delete(f"/members/{ids[name]}")).status_code
        for client, name in ((ada, "ada"), (market.owner, "owner"))
    ]
    assert statuses == [204, 409]
