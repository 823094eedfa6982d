"""Promises of the headers: on every kind of answer, refusals and failures too; TLS is remembered, nothing is kept."""

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app
from windrow_master.api.headers import HEADERS, NONCE_PLACE, headers_of, page_policy
from windrow_master.app import wiring
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk


@dataclass
class World:
    """A Master with a console of two files."""

    transport: httpx2.ASGITransport
    token: str

    async def get(self, path: str, base: str = "http://master", **headers: str) -> httpx2.Response:
        async with httpx2.AsyncClient(transport=self.transport, base_url=base, headers=headers) as client:
            return await client.get(path)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a-1.js").write_text("1")
    (tmp_path / "index.html").write_text(f'<meta property="csp-nonce" nonce="{NONCE_PLACE}">')
    opened = wiring.build(
        tmp_path / "data", ManualClock(), SeededRng(4), disk=MemoryDisk(), make_executor=InlineExecutor
    )
    with closing(opened):
        token = opened.identity.local_token(opened.identity.first_account(), None)

        async def broken(_account: object) -> dict[str, str]:
            raise RuntimeError("inside")

        opened.services.market.balance_now = broken  # type: ignore[method-assign,assignment]
        app = build_app(opened.services, tmp_path)
        yield World(httpx2.ASGITransport(app, raise_app_exceptions=False), token)


KINDS = {
    "health": ("/healthz", 200),
    "console": ("/", 200),
    "asset": ("/assets/a-1.js", 200),
    "absent": ("/assets/gone.js", 404),
    "refused": ("/api/v1/clusters", 401),
    "no-route": ("/api/v1/none", 404),
    "certificate": ("/api/v1/ca", 200),
    "description": ("/api/v1/openapi.json", 200),
    "installer": ("/install.sh", 200),
}
OWN = {"console": {"content-security-policy"}, "asset": {"cache-control"}, "installer": {"cache-control"}}
"""The headers that some answers set in their own way; tested below."""


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_answer_has_every_header(world: World, kind: str) -> None:
    path, status = KINDS[kind]

    answer = await world.get(path)

    said = {name.lower(): answer.headers.get(name) for name in HEADERS}
    wanted = {name.lower(): value for name, value in HEADERS.items()}
    assert answer.status_code == status
    assert {name for name in wanted if said[name] != wanted[name]} == OWN.get(kind, set())


async def test_a_failure_of_ours_has_them_too(world: World) -> None:
    answer = await world.get("/api/v1/me", Authorization=f"Bearer {world.token}")

    assert (answer.status_code, answer.headers["cache-control"]) == (500, "no-store")
    assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]


async def test_the_page_allows_style_elements_by_nonce_and_nothing_inline(world: World) -> None:
    first, second = await world.get("/"), await world.get("/clusters/cluster_1")

    policy = first.headers["content-security-policy"]
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert policy == page_policy(nonce) and len(nonce) == 32
    assert first.text == f'<meta property="csp-nonce" nonce="{nonce}">'
    assert second.headers["content-security-policy"] != policy
    assert first.headers["cache-control"] == "no-store", "a nonce serves once"


@pytest.mark.parametrize("policy", [page_policy("0"), HEADERS["Content-Security-Policy"]])
def test_no_policy_allows_anything_inline_or_foreign_or_a_frame(policy: str) -> None:
    for word in ("unsafe", "*", "http:", "https:", "blob:", "strict-dynamic"):
        assert word not in policy
    for wanted in ("default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
        assert wanted in policy


@pytest.mark.parametrize(
    ("base", "is_told"),
    [
        ("https://market.example", True),
        ("https://market.example:8443", True),
        ("https://192.0.2.7:8443", True),
        ("http://market.example", False),
        ("https://localhost:8443", False),
        ("https://127.0.0.1:8443", False),
        ("https://[::1]:8443", False),
    ],
)
async def test_tls_is_remembered_by_name_but_not_for_loopback_where_plain_http_is_served_too(
    world: World, base: str, is_told: bool
) -> None:
    answer = await world.get("/healthz", base)

    assert ("strict-transport-security" in answer.headers) is is_told


def test_a_request_that_names_no_host_gets_the_headers() -> None:
    assert headers_of("https", "")["X-Content-Type-Options"] == "nosniff"
