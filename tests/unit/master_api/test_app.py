"""Promises of the HTTP face: who is let in, how failures look, what is remembered, what browsers are told."""

import json
from pathlib import Path

import pytest

from tests.services import need
from tests.support.metrics_stores import complaints
from tests.unit.master_api.conftest import Api
from windrow_master.api.app import description
from windrow_master.api.auth import Reach
from windrow_master.api.paging import read_cursor, write_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_proto.units import MILLISECOND

OPENAPI = Path(__file__).parents[3] / "docs" / "openapi.json"


def test_a_route_says_whose_objects_it_reaches_exactly_where_its_path_names_one() -> None:
    for path, reach in (("/things/{thing_id}", None), ("/things", Reach.OWN)):
        with pytest.raises(ValueError, match=r"GET /things.*: a route has a reach exactly where"):
            Routes("test").get(path, may=Permission.RENT, reach=reach)


def test_the_committed_description_of_the_api_is_the_one_it_gives() -> None:
    assert json.loads(OPENAPI.read_text()) == json.loads(json.dumps(description())), "run: make openapi"
    assert description()["openapi"].startswith("3.1")


async def test_a_stranger_is_refused_with_a_problem_that_names_the_request(api: Api) -> None:
    answer = await api.stranger.get("/api/v1/me")

    body = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert (body["code"], body["type"]) == ("unauthenticated", "https://windrow.dev/errors/unauthenticated")
    assert body["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_me_says_who_i_am(api: Api) -> None:
    body = (await api.client.get("/api/v1/me")).json()

    assert (body["account"]["name"], body["user"]["name"]) == ("default", "owner")
    assert body["roles"] == ["admin", "auditor", "operator", "org_owner", "provider", "renter"]
    assert body["master"] == {"version": "test", "epoch": 1, "currency_is_test": True}


async def test_a_role_that_lacks_the_permission_is_forbidden_and_told_which_would_do(api: Api) -> None:
    made = await api.client.post("/api/v1/tokens", json={"name": "r", "roles": ["renter"]})
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}

    answer = await api.stranger.post("/api/v1/join-tokens", json={}, headers=bearer)

    assert answer.status_code == 403
    assert "operator or provider" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "not_found"),
        ("PATCH", "/api/v1/me", 405, "invalid_input"),
        ("GET", "/api/v1/operations/operation_none", 404, "not_found"),
        ("GET", "/api/v1/events?limit=0", 422, "invalid_input"),
        ("GET", "/api/v1/tokens?cursor=%FF", 422, "invalid_input"),
    ],
)
async def test_every_failure_is_a_problem(api: Api, method: str, path: str, status: int, code: str) -> None:
    answer = await api.client.request(method, path)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


async def test_an_unknown_query_parameter_is_refused_by_name_with_the_nearest_one(api: Api) -> None:
    near = await api.client.get("/api/v1/hosts?limt=5")
    far = await api.client.get("/api/v1/hosts?zzz=1")
    none = await api.client.get("/api/v1/me?limit=1")

    assert (near.status_code, near.json()["code"], near.json()["subject"]) == (422, "invalid_input", "limt")
    assert near.json()["detail"].startswith("There is no query parameter limt. Do you mean limit? This path takes ")
    assert "Do you mean" not in far.json()["detail"]
    assert none.json()["detail"] == "There is no query parameter limit. This path takes none."


async def test_every_path_of_the_api_refuses_an_unknown_query_parameter(api: Api) -> None:
    heard = {}
    for path, methods in description()["paths"].items():
        for method in methods if path.startswith("/api/") else ():
            answer = await api.client.request(method, path.replace("{", "").replace("}", ""), params={"oops": "1"})
            heard[method, path] = (answer.status_code, answer.json().get("subject"))

    assert len(heard) > 100
    assert {asked: said for asked, said in heard.items() if said != (422, "oops")} == {}


@pytest.mark.parametrize("path", ["/offers", "/metrics/catalog", "/tokens", "/ledger/balances"])
async def test_a_list_is_read_page_by_page(api: Api, path: str) -> None:
    for name in ("a", "b"):
        await api.client.post("/api/v1/tokens", json={"name": name})
    whole = (await api.client.get(f"/api/v1{path}?limit=1000")).json()["items"]
    found, cursor = [], ""
    while cursor is not None:
        page = (await api.client.get(f"/api/v1{path}?limit=1{f'&cursor={cursor}' if cursor else ''}")).json()
        found += page["items"]
        cursor = page["next_cursor"]

    assert found == whole


async def test_an_invalid_body_names_the_field(api: Api) -> None:
    answer = await api.client.post("/api/v1/tokens", json={"name": "x", "expires_in_s": -1, "oops": 1})

    assert {reason["field"] for reason in answer.json()["reasons"]} == {"expires_in_s", "oops"}


async def test_our_own_fault_shows_an_id_and_no_inside(api: Api) -> None:
    async def broken(_account: object) -> dict[str, str]:
        raise RuntimeError("secret inside")

    api.services.market.balance_now = broken  # type: ignore[method-assign,assignment]
    answer = await api.client.get("/api/v1/me")

    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret inside" not in answer.text
    assert answer.json()["request_id"] in answer.json()["detail"]


async def test_a_body_over_the_limit_is_refused(api: Api) -> None:
    answer = await api.client.post("/api/v1/session", content=b"x" * (1024 * 1024 + 1))

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_revoked_token_is_refused_at_once(api: Api) -> None:
    made = (await api.client.post("/api/v1/tokens", json={"name": "x"})).json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert (await api.stranger.get("/api/v1/me", headers=bearer)).status_code == 200

    assert (await api.client.delete(f"/api/v1/tokens/{made['id']}")).status_code == 204

    assert (await api.stranger.get("/api/v1/me", headers=bearer)).status_code == 401


async def test_lists_page_by_cursor_to_the_end(api: Api) -> None:
    for number in range(5):
        api.clock.advance(MILLISECOND)
        await api.client.post("/api/v1/tokens", json={"name": f"t{number}"})
    names, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        answer = (
            await api.client.get("/api/v1/tokens", params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        ).json()
        names += [item["name"] for item in answer["items"]]
        cursor, pages = answer["next_cursor"], pages + 1

    assert names == ["cli.json", "t0", "t1", "t2", "t3", "t4"]
    assert pages == 3


def test_a_cursor_carries_its_position() -> None:
    assert read_cursor(write_cursor("host_1/é")) == "host_1/é"


async def test_health_names_its_problems(api: Api) -> None:
    api.services.health.problems.append(lambda: "the disk is full")

    answer = await api.stranger.get("/healthz")

    assert (answer.status_code, answer.json()["problems"]) == (200, ["the disk is full"])
    health = (await api.client.get("/api/v1/operators/health")).json()
    assert health["master"]["epoch"] == 1
    assert health["accesses"] == []


async def test_metrics_count_requests_by_route(api: Api) -> None:
    await api.client.get("/api/v1/me")

    text = (await api.client.get("/metrics")).text

    assert 'windrow_http_requests_total{method="GET",route="/api/v1/me",status="200"} 1.0' in text
    assert "windrow_epoch 1.0" in text


async def test_metrics_are_as_prometheus_wants_them(api: Api) -> None:
    need("prometheus")
    text = (await api.client.get("/metrics")).text
    assert complaints(text) == []
    for line in ('windrow_money_earned_today{currency="TEST"} 0.0', "windrow_queue_oldest_seconds 0.0"):
        assert f"{line}\n" in text


async def test_without_a_built_console_the_page_says_how_to_build_it(api: Api) -> None:
    (api.static / "NOT_BUILT.txt").write_text("npm was <out> of reach")

    answer = await api.stranger.get("/hosts/host_1")

    assert answer.status_code == 200
    assert "make setup" in answer.text and "npm was &lt;out&gt; of reach" in answer.text


async def test_the_console_serves_its_page_for_every_path_and_its_assets_for_ever(api: Api) -> None:
    (api.static / "assets").mkdir()
    (api.static / "index.html").write_text("<p>console</p>")
    (api.static / "assets" / "a-1.js").write_text("1")
    assert (await api.client.get(f"/{'a' * 300}.js")).status_code == 404

    assert (await api.stranger.get("/clusters/cluster_1")).text == "<p>console</p>"
    asset = await api.stranger.get("/assets/a-1.js")
    assert "immutable" in asset.headers["cache-control"]
    assert (await api.stranger.get("/assets/gone.js")).status_code == 404
    assert (await api.stranger.get("/%2e%2e/data/master.sqlite3")).status_code == 404
    assert (await api.stranger.get("/api/v1x")).status_code == 404


async def test_the_consoles_files_are_compressed_for_who_can_read_that_and_kept_for_ever(api: Api) -> None:
    (api.static / "assets").mkdir()
    (api.static / "assets" / "a-1.js").write_text("let x = 1;\n" * 500)

    squeezed = await api.client.get("/assets/a-1.js", headers={"Accept-Encoding": "gzip"})
    whole = await api.client.get("/assets/a-1.js", headers={"Accept-Encoding": "identity"})

    assert (squeezed.headers["content-encoding"], "content-encoding" in whole.headers) == ("gzip", False)
    assert squeezed.content == whole.content
    assert int(squeezed.headers["content-length"]) < len(whole.content) // 10
    assert squeezed.headers["content-type"].split(";")[0] == whole.headers["content-type"].split(";")[0]
    assert squeezed.headers["vary"] == whole.headers["vary"] == "Accept-Encoding"
    assert "immutable" in squeezed.headers["cache-control"]
