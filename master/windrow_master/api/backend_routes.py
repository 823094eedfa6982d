"""Routes of backends: accounts at providers that sell machines, what may be spent there, and their check and sweep."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Path, Query, Response
from pydantic import Field, SecretStr

from windrow_master.api import answers
from windrow_master.api.answers import Amount, Money, Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import Body, GivenMoney, money_if
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.api.services import Services
from windrow_master.hybrid.backends.kinds import KINDS, VALUE_MAX, EndsBy, Level
from windrow_master.hybrid.backends.port import NO_BYTES, Wanted
from windrow_master.hybrid.purchases.model import BackendRow, Caps, Owed
from windrow_master.hybrid.purchases.model import Buyer as BuyerRow
from windrow_master.identity.decide import Permission
from windrow_master.identity.people_lookup import name_of
from windrow_master.prices.offers import Kind
from windrow_proto.units import GIB, Bytes, money_text

route = Routes("clouds")

NAME: Final = r"^[a-z][a-z0-9-]{0,62}$"
LEVEL: Final = "How far the adapter was tried"
ENDS_BY: Final = (
    "What ends a machine when the Master is gone: it switches itself off, the agent goes, only a sweep, its time"
)
Name = Annotated[str, Path(pattern=NAME)]
Buyer = Annotated[str, Path(min_length=1, max_length=128, description="Project: id or name")]
Key = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Value = Annotated[str, Field(max_length=VALUE_MAX)]
SecretValue = Annotated[SecretStr, Field(max_length=VALUE_MAX)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Percent = Annotated[int, Field(ge=0, le=1_000, description="Added to the cost in the price of its hosts")]


class CapsBody(Body):
    """The most that may be bought; null: no such cap. At least one cap of money is given."""

    currency: Annotated[
        str | None, Field(pattern="^[A-Z]{3}$", description="ISO 4217; null: as the provider's prices")
    ] = None
    per_hour: Annotated[GivenMoney | None, Field(description="Price of an hour of all machines together")] = None
    per_day: Annotated[GivenMoney | None, Field(description="Spent on a day (UTC)")] = None
    in_all: Annotated[GivenMoney | None, Field(description="Spent since the backend was added")] = None
    machines: Annotated[Count | None, Field(description="Machines at once")] = None
    vcpus: Annotated[Count | None, Field(description="Their vCPUs together")] = None

    def parsed(self, currency: str) -> Caps:
        """The same as a value. currency: where none is given."""
        return Caps(
            currency=self.currency or currency,
            per_hour=money_if("per_hour", self.per_hour),
            per_day=money_if("per_day", self.per_day),
            in_all=money_if("in_all", self.in_all),
            machines=self.machines,
            vcpus=self.vcpus,
        )


class BackendBody(Body):
    """A backend. secrets are sealed and never shown; without them the provider's library looks for credentials in the
    Master's own environment."""

    name: Annotated[str, Field(pattern=NAME)]
    kind: Annotated[str, Field(min_length=1, max_length=40, description="One of GET /backend-kinds")]
    settings: Annotated[dict[Key, Value], Field(default_factory=dict, max_length=50)]
    secrets: Annotated[dict[Key, SecretValue], Field(default_factory=dict, max_length=20)]
    caps: CapsBody
    margin_percent: Percent = 0


class SecretsBody(Body):
    """Other credentials of the same account. Empty: the provider's library looks in the Master's own environment."""

    secrets: Annotated[dict[Key, SecretValue], Field(default_factory=dict, max_length=20)]


class CapsChangeBody(CapsBody):
    """Caps in place of all that were set. margin_percent: null keeps the present one."""

    margin_percent: Percent | None = None


class SweepBody(Body):
    """The market whose machines are looked for. Null: this one."""

    market_id: Annotated[str | None, Field(min_length=1, max_length=100)] = None


class KindFieldOut(Out):
    """A setting or secret of a kind of backend."""

    name: str
    text: str
    required: Annotated[bool, Read("is_required")]
    default: str | None


class BackendKindOut(Out):
    """A kind of backend that this Master knows."""

    kind: Annotated[str, Read("name")]
    title: str
    level: Annotated[Level, Field(description=LEVEL)]
    level_text: Annotated[str, Field(description="The same in a sentence")]
    currency: str
    ends_by: Annotated[EndsBy, Field(description=ENDS_BY)]
    settings: list[KindFieldOut]
    secrets: list[KindFieldOut]


class CapsOut(Out):
    """The most that may be bought; null: no such cap."""

    currency: str
    per_hour: Amount
    per_day: Amount
    in_all: Amount
    machines: int | None
    vcpus: int | None


class OwedOut(Out):
    """The money that a backend costs, in the currency of its caps."""

    per_hour: Annotated[Money, Field(description="Price of an hour of all machines that are paid for now")]
    today: Annotated[Money, Field(description="Since midnight UTC")]
    in_all: Money
    reserved: Annotated[Money, Field(description="What the living purchases may still cost at most")]
    living: Annotated[int, Field(description="Purchases that are, or may be, paid for now")]
    vcpus: int


class BackendFindingOut(Out):
    """One result of a check."""

    what: Annotated[str, Field(description="credentials, permissions, quota, clock, image or reachability")]
    good: Annotated[bool, Read("is_good")]
    said: str
    way_out: str | None


class BackendOut(Out):
    """An account at a provider, what may be spent there, and what is. Its secrets are never shown."""

    name: str
    kind: str
    title: Annotated[str, Read(lambda one: KINDS[one.kind].title)]
    level: Annotated[Level, Field(description=LEVEL), Read(lambda one: KINDS[one.kind].level)]
    level_text: Annotated[
        str, Field(description="The same in a sentence"), Read(lambda one: KINDS[one.kind].level_text)
    ]
    ends_by: Annotated[EndsBy, Field(description=ENDS_BY), Read(lambda one: KINDS[one.kind].ends_by)]
    settings: dict[str, str]
    has_secrets: bool
    caps: CapsOut
    margin_percent: int
    owed: OwedOut
    market_id: Annotated[str, Field(description="Of this market, in the tags of all that it buys: keep it for a sweep")]
    findings: Annotated[list[BackendFindingOut], Field(description="Of the last check")]
    checked_at: Time | None
    swept_at: Time | None
    created_at: Time


class BackendCheckOut(Out):
    """The results of a check."""

    findings: list[BackendFindingOut]


class MachineOfferOut(Out):
    """A machine that could be had now."""

    offer: Annotated[str, Read("offer_id"), Field(description="Give it to POST /purchases")]
    kind: Kind
    gpu: str | None
    gpu_count: int
    cpus: int
    memory_bytes: int
    region: str
    zone: str | None
    country: Annotated[str | None, Field(description="ISO 3166-1")]
    price_per_hour: Money
    currency: str
    priced_on: Annotated[str, Read(lambda one: one.priced_on.isoformat()), Field(description="Day of the price")]
    granularity_seconds: Annotated[int, Read("billing.granularity_s"), Field(description="Use is rounded up to these")]
    minimum_seconds: Annotated[int, Read("billing.minimum_s"), Field(description="The least that is paid for")]


class SweptOut(Out):
    """Something that a sweep found at the provider."""

    id: Annotated[str, Read("machine_id")]
    purchase_id: str | None
    said: str


class SweepOut(Out):
    """The result of a sweep."""

    ended: Annotated[list[SweptOut], Field(description="Of this market, without a living purchase")]
    left_alone: Annotated[list[SweptOut], Field(description="Of a living purchase, or of another market")]
    unknown: Annotated[list[SweptOut], Field(description="Not ended: the provider refused, or did not answer")]


class BuyerBody(Body):
    """The most that the machines of a project may cost at a backend; one of the two is given."""

    per_day: Annotated[GivenMoney | None, Field(description="Spent on a day (UTC)")] = None
    in_all: Annotated[GivenMoney | None, Field(description="Spent in all")] = None


class BuyerOut(Out):
    """A project whose work may have machines bought, in the currency of the backend's caps."""

    account_id: str
    account: Annotated[str | None, Field(description="The name of the project")]
    per_day: Amount
    in_all: Amount
    spent_today: Money
    spent_in_all: Money
    living: Annotated[int, Field(description="Its machines that are, or may be, paid for now")]
    created_at: Time


class UsableBackendOut(Out):
    """A backend where the work of the caller's project may buy machines, in the currency of its caps."""

    name: str
    title: str
    level: Annotated[Level, Field(description=LEVEL)]
    level_text: Annotated[str, Field(description="The same in a sentence")]
    currency: str
    per_day: Annotated[Amount, Field(description="The most that the project may spend on a day (UTC); null: no cap")]
    in_all: Annotated[Amount, Field(description="The most that it may spend in all; null: no cap")]


class StoppedOut(Out):
    """The purchases that were asked to end."""

    ended: list[str]


@route.get("/backend-kinds", may=Permission.CLOUDS_READ, answer=answers.Page[BackendKindOut])
async def backend_kinds(limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The kinds of backends, with their settings and how each was tested."""
    return page_of(list(KINDS.values()), limit, cursor, BackendKindOut.of, lambda one: one.name)


@route.get("/backends", may=Permission.CLOUDS_READ, answer=answers.Page[BackendOut])
async def backends(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The backends by name, with what is owed at each."""
    shown = await _shown(services, await services.backends.list())
    return page_of(shown, limit, cursor, lambda one: one, lambda one: str(one["name"]))


@route.post("/backends", may=Permission.CLOUDS, changes_rights=True, status_code=201, answer=BackendOut)
async def add_backend(services: Serving, principal: Asking, body: BackendBody) -> Any:
    """Add a backend. Nothing is bought by it."""
    secrets = {key: value.get_secret_value() for key, value in body.secrets.items()}
    caps = body.caps.parsed(_currency(body))
    made = await services.backends.add(
        principal, body.name, body.kind, body.settings, secrets, caps, margin_percent=body.margin_percent
    )
    return (await _shown(services, [made]))[0]


@route.get("/backends/{name}", may=Permission.CLOUDS_READ, reach=Reach.ALL, answer=BackendOut)
async def backend(services: Serving, name: Name) -> Any:
    """One backend."""
    return (await _shown(services, [await services.backends.get(name)]))[0]


@route.delete("/backends/{name}", may=Permission.CLOUDS, reach=Reach.ALL, changes_rights=True, status_code=204)
async def remove_backend(services: Serving, principal: Asking, name: Name) -> Response:
    """Remove a backend and its credentials. Refused while something bought there is not surely gone."""
    await services.backends.remove(principal, name)
    return Response(status_code=204)


@route.put("/backends/{name}/secrets", may=Permission.CLOUDS, reach=Reach.ALL, changes_rights=True, answer=BackendOut)
async def renew_backend(services: Serving, principal: Asking, name: Name, body: SecretsBody) -> Any:
    """Use other credentials of the same account, once they have shown what lives there. What runs goes on."""
    secrets = {key: value.get_secret_value() for key, value in body.secrets.items()}
    renewed = await services.backends.renew(principal, name, secrets, services.purchases.market_id)
    return (await _shown(services, [renewed]))[0]


@route.put("/backends/{name}/caps", may=Permission.CLOUDS, reach=Reach.ALL, changes_rights=True, answer=BackendOut)
async def set_caps(services: Serving, principal: Asking, name: Name, body: CapsChangeBody) -> Any:
    """Replace the caps of a backend. What runs goes on; nothing more is bought above a cap."""
    caps = body.parsed((await services.backends.get(name)).caps.currency)
    changed = await services.backends.set_caps(principal, name, caps, margin_percent=body.margin_percent)
    return (await _shown(services, [changed]))[0]


@route.get("/backends/{name}/buyers", may=Permission.CLOUDS_READ, reach=Reach.ALL, answer=answers.Page[BuyerOut])
async def backend_buyers(services: Serving, name: Name, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The projects whose work may buy machines there by itself."""
    shown = await _buyers(services, await services.backends.buyers(name))
    return page_of(shown, limit, cursor, lambda one: one, lambda one: str(one["account_id"]))


@route.put(
    "/backends/{name}/buyers/{account}",
    may=Permission.CLOUDS,
    reach=Reach.ALL,
    changes_rights=True,
    answer=BuyerOut,
)
async def allow_buyer(services: Serving, principal: Asking, name: Name, account: Buyer, body: BuyerBody) -> Any:
    """Let the work of a project buy machines there by itself, for so much at most. What was allowed before is
    replaced."""
    amounts = money_if("per_day", body.per_day), money_if("in_all", body.in_all)
    made = await services.backends.allow(principal, name, account, *amounts)
    found = [one for one in await services.backends.buyers(name) if one[0].account_id == made.account_id]
    return (await _buyers(services, found))[0]


@route.delete(
    "/backends/{name}/buyers/{account}", may=Permission.CLOUDS, reach=Reach.ALL, changes_rights=True, status_code=204
)
async def disallow_buyer(services: Serving, principal: Asking, name: Name, account: Buyer) -> Response:
    """Let the work of a project buy nothing more there. Machines that it has stay until their end."""
    await services.backends.disallow(principal, name, account)
    return Response(status_code=204)


@route.get("/me/backends", may=Permission.RENT, answer=answers.Page[UsableBackendOut])
async def my_backends(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The backends where the work of your project may buy machines: `backend` of a job or machine."""
    found = await services.backends.usable(principal.account_id)
    return page_of(found, limit, cursor, _usable, lambda one: one[0].name)


@route.get("/backends/{name}/offers", may=Permission.CLOUDS_READ, reach=Reach.ALL, answer=answers.Page[MachineOfferOut])
async def backend_offers(
    services: Serving,
    name: Name,
    gpus: Annotated[int, Query(ge=0, le=1_024, description="At least so many GPUs; 0: machines without one, too")] = 0,
    gpu: Annotated[str, Query(max_length=64, description="Model class, such as h100; default: any")] = "",
    cpus: Annotated[int, Query(ge=0, le=4_096, description="At least so many vCPUs")] = 0,
    memory_gib: Annotated[float, Query(ge=0, le=100_000, description="At least so much memory")] = 0,
    region: Annotated[str, Query(max_length=64, description="Default: any")] = "",
    offer: Annotated[str, Query(max_length=200, description="This one alone")] = "",
    kind: Annotated[Kind | None, Query(description="Default: any")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Machines that could be bought there now, the cheapest first. 503: the provider does not answer."""
    wanted = Wanted(
        gpus=gpus,
        gpu=gpu,
        cpus=cpus,
        memory_bytes=Bytes(round(memory_gib * GIB)) if memory_gib else NO_BYTES,
        regions=frozenset({region} if region else ()),
        kinds=frozenset({kind} if kind else ()),
        offer_id=offer,
    )
    found = await services.backends.offers(name, wanted)
    return page_of(found, limit, cursor, MachineOfferOut.of, lambda one: one.offer_id)


@route.post(
    "/backends/{name}/check", may=Permission.CLOUDS, reach=Reach.ALL, repeat=Repeat.ALWAYS, answer=BackendCheckOut
)
async def check_backend(services: Serving, principal: Asking, name: Name) -> Any:
    """Check credentials, permissions, quota, clock, image, and that a machine there could reach this market. Buys
    nothing."""
    found = await services.backends.check(principal, name)
    return {"findings": [BackendFindingOut.of(one) for one in found]}


@route.post("/backends/{name}/sweep", may=Permission.CLOUDS, reach=Reach.ALL, repeat=Repeat.ALWAYS, answer=SweepOut)
async def sweep_backend(services: Serving, principal: Asking, name: Name, body: SweepBody) -> Any:
    """End all at the provider that carries this market's id and belongs to no living purchase. Machines of other
    markets, and those without a tag, are never touched."""
    return SweepOut.of(await services.purchases.sweep(principal, name, body.market_id))


@route.post(
    "/backends/{name}/stop-all", may=Permission.CLOUDS, reach=Reach.ALL, repeat=Repeat.ALWAYS, answer=StoppedOut
)
async def stop_all(services: Serving, principal: Asking, name: Name) -> Any:
    """End all purchases of a backend now, whatever runs on them, and set its cap of machines to 0."""
    return {"ended": [one.purchase_id for one in await services.purchases.stop_all(principal, name)]}


def _currency(body: BackendBody) -> str:
    """The currency of the provider's prices: that of its kind, or of a setting."""
    kind = KINDS.get(body.kind)
    defaults = {one.name: one.default for one in kind.settings} if kind else {}
    return (kind and kind.currency) or body.settings.get("currency") or defaults.get("currency") or "USD"


async def _shown(services: Services, found: Sequence[BackendRow]) -> list[dict[str, Any]]:
    owed = {one.backend: one for one in await services.purchases.owed()}
    return [
        BackendOut.of(one, owed=OwedOut.of(owed[one.name]), market_id=services.purchases.market_id) for one in found
    ]


def _usable(one: tuple[BackendRow, BuyerRow]) -> dict[str, Any]:
    row, buyer = one
    return UsableBackendOut.of(buyer, name=row.name, currency=row.caps.currency, **_of_kind(row.kind))


def _of_kind(kind: str) -> dict[str, Any]:
    return {"title": KINDS[kind].title, "level": KINDS[kind].level, "level_text": KINDS[kind].level_text}


async def _buyers(services: Services, found: Sequence[tuple[BuyerRow, Owed]]) -> list[dict[str, Any]]:
    """These buyers with the names of their projects and what they have spent."""
    names = await services.store.read(lambda uow: [name_of(uow, buyer.account_id) for buyer, _ in found])
    return [
        BuyerOut.of(
            buyer,
            account=name,
            spent_today=money_text(owed.today),
            spent_in_all=money_text(owed.in_all),
            living=owed.living,
        )
        for (buyer, owed), name in zip(found, names, strict=True)
    ]
