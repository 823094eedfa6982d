"""Reports over HTTP: each role's own figures, cells that link to their rows, files, refusals with words."""

from decimal import Decimal

import pytest

from tests.unit.master_api.described import assert_described
from tests.unit.master_api.test_billing_routes import rented  # noqa: F401  # the fixture
from tests.unit.master_api.test_fleet_routes import GPU_1, HOST, fleet  # noqa: F401  # the fixture
from windrow_master.api.report_routes import ReportOut, RowsOut, StatementOut
from windrow_master.identity.model import Role
from windrow_proto.units import HOUR


async def ask(api, path, status=200):
    found = await api.client.get(f"/api/v1/{path}")
    assert found.status_code == status, found.text
    return found.json()


async def bearer_of(api, *roles):
    body = {"name": "r", "roles": [role.value for role in roles], "expires_in_s": 3600}
    made = (await api.client.post("/api/v1/tokens", json=body)).json()
    return {"Authorization": f"Bearer {made['token']}"}


async def test_figures_add_up_whatever_they_are_divided_by_and_link_to_their_rows(rented):  # noqa: F811
    me = rented.services.identity.first_account()
    for by in ("", "host", "project,day", "model,kind", "tier,region", "provider,organisation"):
        path = f"/api/v1/reports?measure=cost,earnings,fees,held&by={by}&period=this-year"
        answer = await rented.client.get(path)
        assert_described(answer, ReportOut)
        said = answer.json()
        assert {one: Decimal(said["totals"][one]) for one in said["measures"]} == {
            one: sum(Decimal(cell["values"][one]) for cell in said["cells"]) for one in said["measures"]
        }
        assert [Decimal(said["totals"][one]) for one in ("cost", "held")] == [4, 2]
        for cell in said["cells"]:
            rows = await rented.client.get(cell["rows"])
            assert_described(rows, RowsOut)
            (row,) = rows.json()["items"]
            assert row["values"]["cost"] == cell["values"]["cost"] and row["source"] == "rentals"
            assert (await rented.client.get(row["receipt"])).status_code == 200
    named = await ask(rented, "reports?by=project,host&period=this-year")
    assert [[key["name"] for key in cell["keys"]] for cell in named["cells"]] == [[me.name, "box"]]


async def test_occupancy_is_the_part_of_the_time_that_was_held(rented):  # noqa: F811
    rented.clock.advance(2 * HOUR)
    said = await ask(rented, "reports?measure=occupancy,held,offered&by=host")
    (cell,) = [one for one in said["cells"] if one["keys"][0]["id"] == HOST]
    held, offered = (Decimal(cell["values"][one]) for one in ("held", "offered"))
    assert offered == 2 and held <= 2 and Decimal(cell["values"]["occupancy"]) == min(1, held / offered)
    rows = await rented.client.get(cell["rows"])
    assert {one["source"] for one in rows.json()["items"]} == {"rentals", "time"}


async def test_incidents_are_counted_by_host_kind_and_model(rented):  # noqa: F811
    def fail(uow):
        for subject, action, fields in (
            (GPU_1, "slot.fault", {"from": "free", "to": "faulted"}),
            (HOST, "host.silent_long", {"from": "suspect", "to": "lost"}),
            (HOST, "host.heard", {"from": "lost", "to": "online"}),
        ):
            uow.audit("master", action, subject, "", fields)

    await rented.services.store.write(fail, name="test")
    said = await ask(rented, "reports?measure=incidents&by=kind,host")
    found = {cell["keys"][0]["id"]: (cell["keys"][1]["id"], cell["values"]["incidents"]) for cell in said["cells"]}
    assert found == {"gpu_fault": (HOST, "1"), "host_lost": (HOST, "1")}
    await ask(rented, "reports?measure=incidents&by=project", 422)


async def test_roles_see_their_own_figures_and_no_others(rented):  # noqa: F811
    renter = await bearer_of(rented, Role.RENTER)
    provider = await bearer_of(rented, Role.PROVIDER)

    async def told(headers, path):
        answer = await rented.stranger.get(f"/api/v1/{path}", headers=headers)
        return answer.status_code, answer.json()

    status, said = await told(renter, "reports?period=this-year")
    assert (status, said["view"], said["totals"]) == (200, "project", {"cost": "4.00"})
    status, said = await told(provider, "reports?period=this-year&by=host")
    assert (status, said["view"], said["totals"]) == (200, "hosts", {"earnings": "3.60"})
    for headers, path in (
        (renter, "reports?view=all"),
        (renter, "reports?measure=earnings"),
        (provider, "reports?view=project"),
        (provider, "reports?by=project"),
        (provider, "reports?project=account_1"),
    ):
        assert (await told(headers, path))[0] == 403, path
    _, rows = await told(provider, "reports/rows?period=this-year")
    (row,) = rows["items"]
    assert (row["name"], row["receipt"], set(row["keys"])) == ("box", None, {"host", "tier", "kind"})
    assert (await rented.stranger.get("/api/v1/reports")).status_code == 401


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("reports?measure=joy", "joy is none of"),
        ("reports?by=host,tier,day", "at most two"),
        ("reports?by=host,host", "at most two"),
        ("reports?by=colour", "colour is none of"),
        ("reports?time_zone=Mars/Olympus", "time zone"),
        ("reports?from=2020-01-01", "400 days"),
        ("reports?from=yesterday", "no date"),
        ("reports?period=this-month&day=2000-01-01", "not in the period"),
        ("reports?measure=occupancy&by=kind", "cannot be divided by kind"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_words(rented, path, word):  # noqa: F811
    assert word in (await ask(rented, path, 422))["detail"]


async def test_a_report_and_a_statement_come_as_files(rented):  # noqa: F811
    csv = await rented.client.get("/api/v1/reports?by=host&period=this-year&format=csv")
    assert csv.headers["content-type"].startswith("text/csv")
    assert csv.text.splitlines() == ["host,host_name,cost_TEST", f"{HOST},box,4.00"]
    for path in ("reports?by=host&format=html", "reports/statement?format=html"):
        page = await rented.client.get(f"/api/v1/{path}")
        assert page.headers["content-security-policy"].startswith("default-src 'none'") and "<table>" in page.text
    for view in ("all", "project", "hosts"):
        found = await rented.client.get(f"/api/v1/reports/statement?view={view}&period=this-year")
        assert_described(found, StatementOut)
