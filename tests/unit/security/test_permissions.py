"""The permission matrix: every route asked by everybody, and every object by those it does not belong to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.master_support import ManualClock, SeededRng
from tests.unit.hybrid.purchases.examples import purchase
from windrow_master.api import visibility
from windrow_master.api.app import build_api, build_app
from windrow_master.api.auth import V1, Reach
from windrow_master.api.permissions import document
from windrow_master.api.routers import declared
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.clusters.model import ClusterRequest
from windrow_master.fleet.repository import CommandRepository
from windrow_master.fleet.states import LinkEvent
from windrow_master.hybrid.model import Declared, ResourceType
from windrow_master.hybrid.purchases.model import Caps
from windrow_master.hybrid.purchases.repository import PurchaseRepository
from windrow_master.hybrid.routing import Work as RouteWork
from windrow_master.identity.model import (
    INSTALLATION_ROLES,
    ORGANISATION_ROLES,
    PROJECT_ROLES,
    Account,
    MemberRole,
    Principal,
    Role,
    ServiceAccount,
)
from windrow_master.identity.object_share_service import ShareRequest
from windrow_master.identity.object_shares import Level, ObjectKind, ReceiverKind
from windrow_master.identity.people import Invitation, Organisation, OrganisationId, User, UserId
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.provider_repository import ProviderRepository
from windrow_master.identity.providers import Grants, Identity, Provider
from windrow_master.identity.repository import AccountRepository, ServiceAccountRepository
from windrow_master.identity.tokens import issue_token
from windrow_master.jobs.model import JobRequest
from windrow_master.reports.asking import Asked
from windrow_master.reports.repository import ScheduleRepository
from windrow_master.reports.schedule import Schedule
from windrow_master.secrets.model import SecretKind
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.model import Alert, AlertState, Silence, Window
from windrow_master.watch.notify.channels import ChannelSettings
from windrow_master.watch.notify.model import ChannelKind, Scope
from windrow_master.watch.own_rules import OwnRule
from windrow_master.watch.repository import AlertRepository, WindowRepository
from windrow_proto.conditions import Severity
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import AccountId, GpuUuid, HostId, TokenId
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.units import DAY, GIB, Microcents

DOCUMENT = Path(__file__).parents[3] / "docs" / "permissions.md"
ANSWER_S = 60.0
OWNER = AccountId("account_a")
HOST, GPU = HostId("host_1"), GpuUuid("GPU-1")
CUSTOMER = frozenset({Role.RENTER, Role.PROVIDER})
OTHERS: dict[str, frozenset[Role]] = {
    **{str(role): frozenset({role}) for role in Role},
    "rival": CUSTOMER,
    "service": CUSTOMER,
}
"""The callers who are not the owner: an account for each role alone, one with all that a customer may have, and a
service account with the same."""
USERS_ALONE = {
    ("GET", f"{V1}/user"),
    ("PUT", f"{V1}/user"),
    ("GET", f"{V1}/user/identities"),
    ("DELETE", f"{V1}/user/identities/{{provider}}"),
    ("DELETE", f"{V1}/user/organisations/{{organisation}}"),
    ("GET", f"{V1}/user/alert-mail"),
    ("PUT", f"{V1}/user/alert-mail"),
    ("POST", f"{V1}/projects/{{project}}/use"),
    ("POST", f"{V1}/projects/{{project}}/token"),
}
"""What a service account is refused although its roles would do: it is no user."""
OVERSEERS = {"operator", "auditor"}


Route = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """One row of docs/permissions.md: an expectation that nobody changes by changing a route."""

    is_open: bool
    roles: frozenset[str]
    reach: Reach


def _page() -> dict[Route, Row]:
    found = {}
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("| `"):
            name, _, nobody, *roles, reach, _ = (cell.strip() for cell in line.strip("|").split("|"))
            method, _, path = name.strip("`").partition(" ")
            allowed = frozenset(role for role, said in zip(sorted(Role), roles, strict=True) if said == "yes")
            found[method, path] = Row(nobody == "yes", allowed, Reach(reach) if reach else Reach.ALL)
    return found


PAGE = _page()

MAY_BE_ABSENT = {
    ("GET", "/dl/{name}"),
    ("GET", "/cli/{name}"),
    ("GET", "/docs/{path:path}"),
    ("GET", f"{V1}/accesses/{{access_id}}/stop"),
}
"""No wheels are built in a test, and no Access is stopped."""


def body_of(method: str, path: str) -> bytes:
    """A body with which this route gets as far as its object."""
    body = b"{}" if method in {"POST", "PUT"} and not path.endswith("/files") else b""
    body = b'{"argv": ["true"]}' if path.endswith("/exec") else body
    body = b'{"source": "%b"}' % path.split("/")[4].encode() if path.endswith("/restore") else body
    body = b'{"organisation": "x"}' if path.endswith("/transfer") else body
    body = b'{"name": "x"}' if method == "PUT" and "/channels/" in path else body
    body = b'{"level": "all"}' if path.endswith("/alert-mail") and body else body
    body = b'{"name": "x", "event": "job.failed"}' if method == "PUT" and "/alert-rules/" in path else body
    if "/alerts/" in path and body:
        words = {"silence": b'{"duration_s": 60}', "assign": b'{"assignee": "x"}', "comment": b'{"text": "x"}'}
        body = words.get(path.rpartition("/")[2], body)
    body = b'{"ends_at": "2100-01-01T00:00:00Z"}' if method == "PUT" and "/maintenance-windows/" in path else body
    body = b'{"port": 80}' if path.endswith("/tunnels") else body
    body = b'{"image": null}' if path.endswith("/default-image") else body
    body = b'{"max_duration_seconds": 60}' if path.endswith("/extend") else body
    return b'{"hosts": 2}' if path.endswith("/resize") else body


@dataclass
class World:
    """A Master on which one account owns one of everything, with tokens of that account and of others."""

    app: Any
    opened: Master
    tokens: dict[str, str]
    ids: dict[str, str]

    async def ask(self, method: str, path: str, token: str | None) -> int:
        """The status of the answer; a stream is let go of once it has begun. A WebSocket is opened by whoever gets its
        ticket."""
        method = "POST" if method == "WS" else method
        headers = [(b"host", b"master"), (b"content-type", b"application/json")]
        if token is not None:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        body = body_of(method, path)
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "client": ("127.0.0.1", 9),
            "server": ("master", 80),
        }
        begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        told = False

        async def receive() -> dict[str, Any]:
            nonlocal told
            if told:
                await asyncio.Event().wait()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start" and not begun.done():
                begun.set_result(message["status"])

        async with asyncio.timeout(ANSWER_S), asyncio.TaskGroup() as group:
            serving = group.create_task(self.app(scope, receive, send))
            status = await begun
            serving.cancel()
        return status

    def address(self, method: str, template: str) -> str:
        """The template with the owner's ids in it."""
        kind = template.removeprefix(V1).split("/")[1]
        kept = "limits" if template.endswith("/limits") else kind  # the others' is revoked in between
        path = template.replace("{token_id}", self.ids.get(kept, "")).replace("{name:path}", method)
        path = path.replace("templates/{name}", f"templates/{method.lower()}")
        bound = "bound-" if template.startswith(f"{V1}/resources") else ""
        path = path.replace("{resource_id}", bound + method.lower())
        path = path.replace("{name}/buyers/{account}", f"get/buyers/{OWNER}")
        path = path.replace("{name}", method.lower()) if kind in ("backends", "volumes") else path
        path = path.replace("{name}", method) if kind == "secrets" else path
        path = path.replace("{channel_id}", self.ids.get(f"channel {method}", ""))
        path = path.replace("{window_id}", self.ids.get(f"window {method}", ""))
        path = path.replace("{rule_id}", self.ids.get(f"rule {method}", ""))
        path = path.replace("{provider}", method.lower()) if kind == "identity-providers" else path
        for name, value in self.ids.items():
            path = path.replace(name, value) if name.startswith("{") else path
        assert "{" not in path, f"give {template} an id"
        return path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    database = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    clock, memory = ManualClock(), MemoryDisk()
    opened = wiring.build(
        tmp_path / "d", clock, SeededRng(7), database=database, disk=memory, make_executor=InlineExecutor
    )
    with closing(opened):
        static = tmp_path / "static"
        static.mkdir()
        (static / "index.html").write_text("console")
        app = build_app(opened.services, static)
        tokens = await _accounts(opened, clock)
        ids = await _objects(opened, tokens["owner"])
        yield World(app, opened, tokens, ids)


async def _accounts(opened: Master, clock: ManualClock) -> dict[str, str]:
    identity = opened.identity
    identity.first_account()
    clock.advance(DAY)  # the ids of one moment have no order
    made = {}
    for name, roles in {"owner": CUSTOMER, **OTHERS}.items():
        account = OWNER if name == "owner" else AccountId(f"account_{name}")
        user = await opened.store.write(lambda uow: _user(uow, opened, account, roles), name="test")  # noqa: B023
        if name == "service":
            made[name] = await opened.store.write(lambda uow: _service(uow, account, roles), name="test")  # noqa: B023
            continue
        someone = Principal(
            account, str(account), roles, TokenId("token_x"), "x", clock.wall_ns() + DAY, user_id=user.id, has_all=True
        )
        _, made[name] = await identity.make_token(someone, name, None, DAY)
    return made


def _user(uow: UnitOfWork, opened: Master, account: AccountId, roles: frozenset[Role]) -> User:
    """A user with these roles alone, in a project and an organisation of its own."""
    organisation = Organisation(OrganisationId(f"organisation_of_{account}"), str(account), uow.now_wall_ns)
    user = User(UserId(f"user_of_{account}"), str(account), uow.now_wall_ns, roles=roles & INSTALLATION_ROLES)
    uow[OrganisationRepository].add(organisation)
    uow[AccountRepository].add(Account(account, str(account), roles, uow.now_wall_ns, organisation_id=organisation.id))
    uow[UserRepository].add(user)
    uow[OrganisationRepository].set_role(organisation.id, user.id, next(iter(roles & ORGANISATION_ROLES), None))
    uow[OrganisationRepository].set_project_roles(user.id, account, roles & PROJECT_ROLES)
    opened.market.open_account(uow, account)
    return user


def _service(uow: UnitOfWork, account: AccountId, roles: frozenset[Role]) -> str:
    """The token of a new service account."""
    service = ServiceAccount("service_1", account, "ci", roles, uow.now_wall_ns, "test")
    uow[ServiceAccountRepository].add(service)
    return issue_token(uow, account, service.name, roles, DAY, "test", service_id=service.id)[1]


def _invited(uow: UnitOfWork) -> None:
    """A member of the owner's organisation who is in none of its projects, an invitation into it, and another
    organisation that the owner may leave."""
    organisation = OrganisationId(f"organisation_of_{OWNER}")
    uow[UserRepository].add(User(UserId("user_billing"), "billing", uow.now_wall_ns))
    uow[OrganisationRepository].set_role(organisation, "user_billing", Role.ORG_BILLING)
    uow[OrganisationRepository].add(Organisation(OrganisationId("organisation_left"), "left", uow.now_wall_ns))
    uow[OrganisationRepository].set_role("organisation_left", f"user_of_{OWNER}", None)
    uow[OrganisationRepository].invite(
        Invitation("invitation_1", organisation, b"x" * 32, None, Role.ORG_AUDITOR, {}, "test", 0, 2**62)
    )


def _linked(uow: UnitOfWork) -> None:
    """Identity providers, and an identity of the owner at one of them."""
    for name in ("put", "post", "delete", "linked"):
        uow[ProviderRepository].save(
            Provider(
                name=name,
                issuer="https://127.0.0.1:1",
                client_id="client",
                sealed=None,
                organisation_id=None,
                domains=(),
                creates_users=False,
                is_private=False,
                scopes=(),
                group_claim="groups",
                groups={},
                created_at_ns=uow.now_wall_ns,
            )
        )
    uow[ProviderRepository].save_identity(
        Identity("linked", "subject", f"user_of_{OWNER}", "owner", Grants(), uow.now_wall_ns)
    )


async def _objects(opened: Master, token: str) -> dict[str, str]:
    identity = opened.identity
    owner = await identity.authenticate(token)

    def join(uow: UnitOfWork) -> None:
        gpus = (GpuFacts(GPU, 0, "nvidia", "X1"),)
        inventory = Inventory(hostname="box", cpu_count=4, memory_bytes=16 * GIB, runtimes=("process",), gpus=gpus)
        opened.fleet.enrol(uow, HOST, "box", OWNER, False, owner.actor)
        opened.fleet.hosts.inventory(uow, HOST, inventory)
        opened.fleet.hosts.link(uow, HOST, LinkEvent.HEARD, uow.now_wall_ns)

    await opened.store.write(join, name="test")
    await opened.fleet.refresh()
    operation, view = await opened.clusters.create(owner, ClusterRequest(argv=("true",)), None)
    assert opened.services.jobs is not None
    (job,) = await opened.services.jobs.submit(owner, JobRequest(argv=("true",), await_files=True))
    (command, *_) = await opened.store.read(lambda uow: uow[CommandRepository].list(HOST))
    session, _, _ = await identity.asking.sign_in(token, "browser")
    spare, _ = await identity.make_token(owner, "spare", frozenset({Role.RENTER}), DAY)
    limited, _ = await identity.make_token(owner, "limited", frozenset({Role.RENTER}), DAY)
    join_token, _ = await identity.make_join_token(owner, MemberRole.HOST)
    await _named(opened, owner)
    router = opened.services.router
    route = await router.keep(owner, await router.route(owner, None, lambda _: RouteWork()))
    operator = replace(owner, roles=frozenset({Role.OPERATOR}))
    assert opened.services.accounts is not None
    await opened.store.write(_invited, name="test")
    await opened.store.write(_linked, name="test")
    guest, _ = await opened.services.accounts.add(operator, "guest", frozenset({Role.RENTER}), Microcents(0))
    opened.services.health.departed = lambda: [{"access_id": "access_1", "region": "local-a"}]
    return {
        "{host_id}": HOST,
        "{account_id}": guest.account.id,
        "{gpu_id}": GPU,
        "{access_id}": "access_1",
        "{cluster_id}": view.cluster.cluster_id,
        "{job_id}": job.job.job_id,
        "{entry_id}": view.cluster.cluster_id,
        "{route_id}": str(route.route_id),
        "{receipt_id}": view.cluster.rental_id.replace("rental_", "receipt_"),
        "{operation_id}": operation.id,
        "{command_id}": command.command_id,
        "{session_id}": session.id,
        "{user_id}": "user_billing",
        "{invitation_id}": "invitation_1",
        "{service_account}": "service_1",
        **await _watched(opened, owner),
        "{share_id}": await _share(opened, owner, view.cluster.cluster_id, guest.account.id),
        "{schedule_id}": await _schedule(opened, owner),
        **dict.fromkeys(("{project}", "{node}", "{owner_id}"), OWNER),
        "{organisation}": "organisation_left",
        "{provider}": "linked",
        "{tier:path}": "cpu/C",
        "{owner_kind}": "account",
        "{name}": "windrow.whl",
        "{path:path}": "",
        "tokens": spare.id,
        "limits": limited.id,
        "join-tokens": join_token.id,
    }


async def _named(opened: Master, owner: Principal) -> None:
    """What is asked for by a name: one for each method, since a deletion ends it."""
    for name in ("GET", "DELETE"):
        await opened.services.artefacts.put(owner, ("account", OWNER), name, _nothing())
        await opened.services.templates.save(owner, name.lower(), ClusterRequest())
        await opened.services.volumes.create(owner, name.lower())
        await opened.services.secrets.set(owner, name, SecretKind.TEXT, "value")
    for name in ("get", "put", "delete", "bound-get", "bound-put", "bound-delete"):
        declared = Declared(resource_type=ResourceType.EDGE, capabilities={})
        await opened.services.registry.register(owner, name, declared)


async def _channels(opened: Master, owner: Principal) -> dict[str, str]:
    """The ids of a channel for each method, since a deletion ends it, and of a delivery."""
    service, ids = opened.services.channels, dict[str, str]()
    for name in ("GET", "PUT", "POST", "DELETE"):
        settings = ChannelSettings(
            name=name, min_severity=Severity.PAGE, rules=(), quiet=None, digest_minutes=None, is_enabled=True
        )
        made, _ = await service.add(owner, Scope.PROJECT, ChannelKind.WEBHOOK, "https://127.0.0.1:1/", settings)
        ids[f"channel {name}"] = made.channel_id
    return ids | {"{delivery_id}": (await service.test(owner, ids["channel POST"])).delivery_id}


async def _watched(opened: Master, owner: Principal) -> dict[str, str]:
    """The ids of what alerts need, and of a purchase."""
    operator = replace(owner, roles=frozenset({Role.OPERATOR}))
    bought = {"{purchase_id}": await _purchase(opened, operator)}
    return {**await _channels(opened, owner), **await _alerts(opened), **bought}


async def _alerts(opened: Master) -> dict[str, str]:
    """The ids of an alert, of a rule for each method, and of a silence."""
    taken: dict[str, Any] = {"severity": Severity.TICKET, "created_at_ns": 0, "created_by": ""}

    def make(uow: UnitOfWork) -> None:
        alerts, text = uow[AlertRepository], "said"
        alert = Alert(
            alert_id="alert_1", rule="host.lost", cause=HOST, state=AlertState.FIRING, severity=Severity.TICKET,
            title=text, text=text, remedy=text, opened_at_ns=uow.now_wall_ns,
        )  # fmt: skip
        alerts.add(alert, [OWNER])
        for one in ("PUT", "DELETE"):
            rule = OwnRule(rule_id=f"rule_{one}", owner=OWNER, name=one, scope={}, duration_ns=0, **taken)
            alerts.put_rule(rule)
        silence = Silence(
            silence_id="silence_1", owner=OWNER, rule=None, cause=None, from_ns=0, until_ns=2**62, reason="",
            created_by="", created_at_ns=0,
        )  # fmt: skip
        alerts.add_silence(silence)
        for one in ("PUT", "DELETE"):
            window = Window(
                window_id=f"window_{one}", owner=OWNER, hosts=(), from_ns=0, until_ns=2**62, reason="",
                created_by="", created_at_ns=0,
            )  # fmt: skip
            uow[WindowRepository].add(window)

    await opened.store.write(make, name="test")
    ids = {f"{what} {one}": f"{what}_{one}" for what in ("rule", "window") for one in ("PUT", "DELETE")}
    return ids | {"{alert_id}": "alert_1", "{silence_id}": "silence_1"}


async def _schedule(opened: Master, owner: Principal) -> str:
    """The id of a report that is sent to the owner."""
    made = Schedule("schedule_1", OWNER, owner.user_id or "", "r", "0 7 * * *", "UTC", asdict(Asked()), 0, 2**62)
    await opened.store.write(lambda uow: uow[ScheduleRepository].add(made), name="test")
    return made.schedule_id


async def _purchase(opened: Master, operator: Principal) -> str:
    """The id of a purchase; and a backend for each method, since a deletion ends it, at an address that refuses."""
    settings = {"region": "eu-central-1", "endpoint": "http://127.0.0.1:1"}
    keys = {"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key": "x" * 40}
    for name in ("get", "put", "post", "delete"):
        await opened.services.backends.add(operator, name, "ec2", settings, keys, Caps(in_all=Microcents(1)))
    made = purchase(backend="get")
    await opened.store.write(lambda uow: uow[PurchaseRepository].save(made), name="test")
    return made.purchase_id


async def _share(opened: Master, owner: Principal, cluster_id: str, receiver: str) -> str:
    """The id of a share of the owner's cluster with somebody's project."""
    wanted = ShareRequest(ObjectKind.CLUSTER, cluster_id, "x", ReceiverKind.PROJECT, receiver, Level.MANAGE)
    return (await opened.identity.object_shares.add(owner, wanted)).share.id


async def _nothing() -> AsyncIterator[bytes]:
    yield b""


def test_every_route_of_the_description_is_among_them() -> None:
    described = {
        (method.upper(), path) for path, methods in build_api().openapi()["paths"].items() for method in methods
    }

    assert len(described) > 45
    assert described <= {(method, path.replace(":path", "")) for method, path in declared()}


def test_the_committed_table_is_the_one_the_code_gives() -> None:
    assert DOCUMENT.read_text() == document(), "run: make openapi"


async def test_each_route_answers_everybody_as_the_table_says(world: World) -> None:
    differing = {}

    for route in sorted(PAGE):
        said, wanted = await _asked_by_everybody(world, route), _wanted_of_everybody(route)
        if said != wanted:
            differing[" ".join(route)] = {"said": said, "wanted": wanted}

    assert differing == {}


async def _asked_by_everybody(world: World, route: tuple[str, str]) -> dict[str, int | str]:
    method, template = route
    path = world.address(method, template)
    if template.endswith("/events/stream"):
        path += f"?subject={HOST}"
    statuses = {"nobody": await world.ask(method, path, None)}
    for name in (*OTHERS, "owner"):  # the owner last: what it asks for may end the object
        statuses[name] = await world.ask(method, path, world.tokens[name])
    may_be_absent = route in MAY_BE_ABSENT
    return {name: _shown(status, may_be_absent) for name, status in statuses.items()}


def _wanted_of_everybody(route: Route) -> dict[str, int | str]:
    row = PAGE[route]
    reach = row.reach if row.reach in {Reach.OPERATED, Reach.ORGANISATION} else Reach.ALL
    return {
        "nobody": "in" if row.is_open else 401,
        **{name: _wanted(row, name, roles) for name, roles in OTHERS.items()},
        **({"service": 403} if route in USERS_ALONE else {}),
        "owner": _wanted(replace(row, reach=reach), "owner", CUSTOMER),
    }


def _shown(status: int, may_be_absent: bool) -> int | str:
    # Answered by the route, whatever it said: also that the host is not there (503), or that it is over (409).
    return (
        status
        if status in {401, 403, 405} or (status >= 500 and status != 503) or (status == 404 and not may_be_absent)
        else "in"
    )


def _wanted(row: Row, name: str, roles: frozenset[Role]) -> int | str:
    if row.is_open:
        return "in"
    if not row.roles & roles:
        return 403
    sees = {
        Reach.ALL: True,
        Reach.OWN: False,
        Reach.OWN_OR_OVERSEEN: name in OVERSEERS,
        Reach.OWN_OR_OPERATED: name == "operator",
        Reach.OPERATED: name == "operator",
        Reach.ORGANISATION: False,
    }
    return "in" if sees[row.reach] else 404


async def test_lists_hold_nothing_of_others(world: World) -> None:
    async def items(path: str, name: str) -> list[Any]:
        headers = {"Authorization": f"Bearer {world.tokens[name]}"}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(world.app), base_url="http://m") as client:
            answer = await client.get(V1 + path, headers=headers)
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()["items"]
        return found

    lists = ("/clusters", "/receipts", "/operations", "/commands", "/commands?host=host_1", "/ledger/transfers")
    for path in (*lists, "/sessions", "/join-tokens"):
        assert await items(path, "owner"), path
    for path in lists:
        mine = [item for item in await items(path, "rival") if "mint" not in str(item)]
        assert mine == [], path
    assert await items("/sessions", "rival") == await items("/join-tokens", "rival") == []
    assert {item["id"] for item in await items("/tokens", "rival")}.isdisjoint(
        {item["id"] for item in await items("/tokens", "owner")}
    )


async def test_a_provider_alone_sees_what_its_account_is_paid_and_nobody_elses_money(world: World) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(world.app), base_url="http://m") as client:

        async def asked(method: str, path: str, token: str, **more: Any) -> Any:
            headers = {"Authorization": f"Bearer {token}"}
            answer = await client.request(method, V1 + path, headers=headers, **more)
            assert answer.status_code < 300, answer.text
            return answer.json()

        body = {"name": "earnings", "roles": ["provider"]}
        token = (await asked("POST", "/tokens", world.tokens["owner"], json=body))["token"]
        moved = (await asked("GET", "/ledger/transfers", token))["items"]
        assert moved and all(f"acct:{OWNER}" in (row["debit"], row["credit"]) for row in moved)
        assert f"acct:{OWNER}" in {row["account"] for row in (await asked("GET", "/ledger/balances", token))["items"]}
        theirs = (await asked("GET", "/ledger/transfers", world.tokens["provider"]))["items"]
        assert [(row["kind"], row["credit"]) for row in theirs] == [("mint", "acct:account_provider")]


@pytest.mark.parametrize("name", ["{cluster_id}", "{job_id}", "{operation_id}", "{command_id}", "{receipt_id}"])
async def test_events_of_anothers_object_are_not_there(world: World, name: str) -> None:
    path = f"{V1}/events?subject={world.ids[name]}"
    stream = f"{V1}/events/stream?subject={world.ids[name]}"

    for who, status in (("owner", 200), ("rival", 404), ("renter", 404), ("operator", 200), ("auditor", 200)):
        assert await world.ask("GET", path, world.tokens[who]) == status
        assert await world.ask("GET", stream, world.tokens[who]) == status


async def test_a_hosts_events_tell_strangers_nothing_of_what_others_run_there(world: World) -> None:
    async def kinds(name: str) -> set[str]:
        principal = await world.opened.identity.authenticate(world.tokens[name])
        rows = await world.opened.store.read(
            lambda uow: visibility.seen_events(uow, principal, uow.events.newest(HOST))
        )
        return {row.kind for row in rows}

    assert "cluster.creating" in await kinds("owner")
    assert "cluster.creating" in await kinds("auditor")
    assert "cluster.creating" not in await kinds("rival")
    assert "host.enrolled" in await kinds("rival")
