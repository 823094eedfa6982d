"""What a month cost and brought is told to whom it belongs, and the sums of all to who oversees the market."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.market.rentals import line as line_of
from tests.unit.market.rentals import rental as rental_of
from tests.unit.master_api.described import assert_described
from tests.unit.master_api.test_fleet_routes import GPU_1, HOST, fleet  # noqa: F401  # the fixture
from windrow_master.api.billing_routes import EarningsOut, SpendingOut
from windrow_master.identity.model import Role
from windrow_master.identity.repository import TokenRepository
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.market.limits import Limits, SpendingLimit
from windrow_master.market.model import RentalState
from windrow_master.market.months import Month, day_text
from windrow_master.market.repository import RentalRepository
from windrow_proto.ids import SlotId
from windrow_proto.model import SlotGrant
from windrow_proto.units import DAY, HOUR, MICROCENTS_PER_UNIT, Microcents, money_text, time_text

PRICE = Microcents(2 * MICROCENTS_PER_UNIT)


@pytest.fixture
async def rented(api, fleet):  # noqa: F811
    """An open rental of the first account on its own host, of two hours so far, and a limit."""
    me, now_ns = api.services.identity.first_account().id, api.clock.wall_ns()
    begin_ns = now_ns - 2 * HOUR

    def make(uow):
        mine = [one.id for one in uow[TokenRepository].list(me)][:1]
        rental = replace(
            rental_of(PRICE, 100), renter=me, state=RentalState.OPEN, opened_at_ns=begin_ns,
            held=Microcents(5 * MICROCENTS_PER_UNIT), charged=Microcents(2 * PRICE), spenders=tuple(mine),
        )  # fmt: skip
        uow[RentalRepository].add(rental)
        line = replace(
            line_of(PRICE), host_id=HOST, provider=me, lease_from_ns=begin_ns, lease_until_ns=now_ns + HOUR,
            signed_ns=2 * HOUR, charged=Microcents(2 * PRICE), fee_charged=Microcents(PRICE // 5),
            runs_from_ns=begin_ns, slots=(SlotGrant(SlotId(GPU_1), 7),),
        )  # fmt: skip
        uow[RentalRepository].add_line(line)
        limits = Limits(max_monthly_cost=Microcents(50 * MICROCENTS_PER_UNIT))
        uow[LimitRepository].save(SpendingLimit(me, me, "x", limits, PRICE, "2026-01", PRICE, now_ns, ""))

    await api.services.store.write(make, name="test")
    return api


async def ask(api, path, status=200):
    found = await api.client.get(f"/api/v1/{path}")
    assert found.status_code == status, found.text
    return found.json()


async def test_a_month_so_far_adds_up_and_says_what_runs_and_until_when_there_is_money(rented):
    now_ns, me = rented.clock.wall_ns(), rented.services.identity.first_account()
    assert_described(await rented.client.get("/api/v1/usage"), SpendingOut)
    for by, name in (("machine", "demo"), ("job", "Machines without a job"), ("gpu", "h100"), ("person", None)):
        said = await ask(rented, f"usage?by={by}")
        (row,) = said["rows"]
        in_month = sum(map(Decimal, row["days"]))
        assert said["spent"] == row["amount"] and in_month == Decimal(row["amount"]) <= 4
        assert in_month == sum(Decimal(one["amount"]) for one in said["days"])
        assert row["name"] == name or (name is None and row["name"])
        assert (said["month"], said["days"][-1]["day"]) == (str(Month.of(now_ns)), day_text(now_ns // DAY))
    balance = await rented.services.market.balance_now(me.id)
    assert (said["per_hour"], said["held"], said["limit"], said["running"]) == ("2.00", "1.00", "50.00", 1)
    left_ns = (balance + MICROCENTS_PER_UNIT) * HOUR // PRICE
    assert (said["balance"], said["empty_at"]) == (money_text(balance), time_text(now_ns + left_ns))
    assert Decimal(said["forecast"]) >= Decimal(said["spent"])


async def test_a_month_that_has_passed_has_no_forecast_and_one_that_has_not_begun_is_refused(rented):
    before = str(Month.of(rented.clock.wall_ns() - 60 * DAY))
    said = await ask(rented, f"usage?month={before}")
    assert (said["spent"], said["forecast"], said["rows"], said["today"]) == ("0.00", None, [], "0.00")
    assert len(said["days"]) == len(Month.parse(before).days)
    await ask(rented, f"usage?month={Month.of(rented.clock.wall_ns() + 60 * DAY)}", 422)
    for month in ("2026-13", "0001-01", "1969-12", "9999-12"):
        await ask(rented, f"usage?month={month}", 422)
        await ask(rented, f"earnings?month={month}", 422)
    assert (await ask(rented, "usage?month=1970-01"))["spent"] == "0.00"
    await ask(rented, "usage?by=project", 422)
    await ask(rented, "usage?scope=all&by=person", 422)
    await ask(rented, "earnings?by=model", 422)


async def test_earnings_are_without_the_fee_and_say_how_much_of_the_time_was_rented(rented):
    rented.clock.advance(HOUR)
    assert_described(await rented.client.get("/api/v1/earnings"), EarningsOut)
    for by, name in (("host", "box"), ("gpu", "box GPU 0")):
        said = await ask(rented, f"earnings?by={by}")
        (row,) = said["rows"]
        assert (row["name"], row["host_id"], row["simulated"]) == (name, HOST, False)
        assert said["earned"] == row["amount"] and Decimal(row["amount"]) <= Decimal("3.6")
        assert sum(map(Decimal, row["days"])) == Decimal(row["amount"])
        times = row["times"]
        assert times["rented_hours"] + times["offline_hours"] + times["paused_hours"] == pytest.approx(1.0)
        assert said["per_hour"] == "1.80"
        assert said["times"]["occupancy_ratio"] == times["occupancy_ratio"]


async def test_the_sums_of_all_projects_are_for_operators_and_auditors(rented):
    me = rented.services.identity.first_account()
    spent = await ask(rented, "usage?scope=all")
    assert [(one["id"], one["name"]) for one in spent["rows"]] == [(me.id, me.name)]
    assert (spent["balance"], spent["limit"], spent["per_hour"]) == (None, None, "2.00")
    earned = await ask(rented, "earnings?scope=all")
    assert earned["fees"] == money_text(Microcents(int(Decimal(spent["spent"]) * MICROCENTS_PER_UNIT) // 10))
    assert Decimal(earned["earned"]) + Decimal(earned["fees"]) == Decimal(spent["spent"])
    assert (await ask(rented, "earnings?scope=all&by=model"))["rows"][0]["name"] == "h100"
    body = {"name": "r", "roles": [Role.RENTER.value], "expires_in_s": 3600}
    made = (await rented.client.post("/api/v1/tokens", json=body)).json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    for path in ("usage", "earnings"):
        told = await rented.stranger.get(f"/api/v1/{path}?scope=all", headers=bearer)
        assert (told.status_code, told.json()["code"]) == (403, "forbidden")
        assert (await rented.stranger.get(f"/api/v1/{path}", headers=bearer)).status_code == 200
