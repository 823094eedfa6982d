"""The relation matrix: every route that reaches an object by its id, asked by its own project, by another one of the
same organisation, by those it is shared with at each level, and by strangers."""

import re
from dataclasses import replace
from functools import partial

import httpx2

from tests.unit.security.test_permissions import CUSTOMER, OWNER, World, _nothing, _shown, _user, body_of
from tests.unit.security.test_permissions import world as world
from windrow_master.api.auth import V1, Declaration, Reach
from windrow_master.api.routers import declared
from windrow_master.identity.decide import is_allowed
from windrow_master.identity.model import Account, Principal, Role
from windrow_master.identity.object_share_service import ShareRequest
from windrow_master.identity.object_shares import Level, ObjectKind, ReceiverKind, includes
from windrow_master.identity.people import User, UserId
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import AccountRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.units import DAY

Route = tuple[str, str]
OWN = {Reach.OWN, Reach.OWN_OR_OVERSEEN, Reach.OWN_OR_OPERATED}
ROUTES = {
    route: rules
    for route, rules in declared().items()
    if rules.reach in OWN and V1 in route[1] and is_allowed(CUSTOMER, rules.may) and route[0] != "WS"
}
"""A WebSocket is opened with a ticket alone, whoever its caller is."""
ID_HEX = 32
STRANGERS = ("same organisation", "rival")


async def _token(world: World, user: UserId, account: AccountId) -> str:
    someone = Principal(account, str(account), CUSTOMER, TokenId("token_x"), "x", 2**62, user_id=user, has_all=True)
    return (await world.opened.identity.make_token(someone, "test", None, DAY))[1]


async def _people(world: World) -> dict[str, str]:
    """Tokens of everybody who asks, by relation; the receivers are in organisations of their own."""

    def colleague(uow: UnitOfWork) -> User:
        organisation, account = f"organisation_of_{OWNER}", AccountId("account_colleague")
        uow[AccountRepository].add(
            Account(account, "colleague", CUSTOMER, uow.now_wall_ns, organisation_id=organisation)
        )
        user = User(UserId("user_colleague"), "colleague", uow.now_wall_ns)
        uow[UserRepository].add(user)
        uow[OrganisationRepository].set_role(organisation, user.id, None)
        uow[OrganisationRepository].set_project_roles(user.id, account, frozenset({Role.RENTER, Role.PROVIDER}))
        world.opened.market.open_account(uow, account)
        return user

    found = {"own": world.tokens["owner"], "rival": world.tokens["rival"]}
    other = await world.opened.store.write(colleague, name="test")
    found["same organisation"] = await _token(world, other.id, AccountId("account_colleague"))
    for level in Level:
        account = AccountId(f"account_{level}")
        user = await world.opened.store.write(partial(_receiver, world, account), name="test")
        found[level] = await _token(world, user.id, account)
        await _share(world, user.id, level)
    return found


def _receiver(world: World, account: AccountId, uow: UnitOfWork) -> User:
    return _user(uow, world.opened, account, CUSTOMER)


async def _share(world: World, user: str, level: Level) -> None:
    owner = await world.opened.identity.authenticate(world.tokens["owner"])
    for kind, object_id in ((ObjectKind.CLUSTER, world.ids["{cluster_id}"]), (ObjectKind.JOB, world.ids["{job_id}"])):
        wanted = ShareRequest(kind, object_id, "x", ReceiverKind.USER, user, level)
        await world.opened.identity.object_shares.add(owner, wanted)


async def _with_artefact(world: World) -> World:
    """The owner's world, in which artefacts are those of the job."""
    owner = await world.opened.identity.authenticate(world.tokens["owner"])
    job = world.ids["{job_id}"]
    for name in ("GET", "DELETE"):
        await world.opened.services.artefacts.put(owner, ("job", job), name, _nothing())
    return replace(world, ids=world.ids | {"{owner_kind}": "job", "{owner_id}": job})


def _absent(world: World) -> World:
    """The same addresses with ids and names of nothing."""

    def gone(text: str) -> str:
        return re.sub(r"^([a-z]+)_[0-9a-zA-Z_-]+$", lambda found: f"{found[1]}_{'0' * 32}", text)

    return replace(world, ids={name: gone(text) for name, text in world.ids.items()})


def _path_of_nothing(absent: World, method: str, template: str) -> str:
    path = absent.address(method, template)
    named = template.endswith("/{name}") or "/{name}/" in template
    path = path.replace("/linked", "/absent")
    return path.replace(f"/{method.lower()}", "/absent").replace(f"/{method}", "/ABSENT") if named else path


def _wanted(route: Route, rules: Declaration, relation: str) -> int | str:
    if relation == "own":
        return "in"
    is_shared = rules.shared is not None and "/templates/" not in route[1]  # a template is asked for by its share
    if relation in STRANGERS or not is_shared:
        return 404
    assert rules.shared is not None
    return "in" if includes(Level(relation), rules.shared) else 403


async def test_each_object_is_reached_as_its_relation_to_the_caller_says(world: World) -> None:
    tokens, world = await _people(world), await _with_artefact(world)
    differing, seen = {}, set()

    for route, rules in sorted(ROUTES.items()):
        path = world.address(*route)
        for relation in (*STRANGERS, *Level, "own"):  # the owner last, and manage late: they may end the object
            status = _shown(await world.ask(route[0], path, tokens[relation]), False)
            wanted = _wanted(route, rules, relation)
            seen.add((relation, wanted))
            if status != wanted:
                differing[" ".join(route), relation] = {"said": status, "wanted": wanted}

    assert differing == {}
    assert {("see", "in"), ("see", 403), ("use", "in"), ("use", 403), ("manage", "in"), ("manage", 404)} <= seen


async def test_an_object_of_others_is_answered_as_one_that_there_is_not(world: World) -> None:
    tokens, world = await _people(world), await _with_artefact(world)
    absent, differing = _absent(world), {}

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(world.app), base_url="http://m") as client:

        async def said(method: str, path: str, relation: str) -> tuple[int, str, dict[str, str]]:
            headers = {"Authorization": f"Bearer {tokens[relation]}", "Content-Type": "application/json"}
            answer = await client.request(method, path, headers=headers, content=body_of(method, path))
            request_id = answer.headers.pop("x-request-id")
            kept = {name: text for name, text in answer.headers.items() if name != "ratelimit"}
            text = answer.text.replace(request_id, "REQUEST")
            for part in sorted(path.split("/")[4:], key=len, reverse=True):
                text = text.replace(f'"{part}"', '"ID"')
                text = text.replace(f"secret {part} ", "secret ID ")
                tail = part.rpartition("_")[2]  # a receipt is named by the id of its rental
                text = text.replace(tail, "ID") if len(tail) == ID_HEX else text
            return answer.status_code, text, kept | {"content-length": ""}

        for method, template in sorted(ROUTES):
            there = world.address(method, template)
            nothing = _path_of_nothing(absent, method, template)
            assert there != nothing, template
            for relation in STRANGERS:
                first, second = await said(method, there, relation), await said(method, nothing, relation)
                if first != second or first[0] != 404:
                    differing[method, template, relation] = (first, second)

    assert differing == {}
