"""Promises of the names that the Master answers under: its own and no other, whatever a browser was told they mean."""

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app
from windrow_master.api.headers import HEADERS
from windrow_master.api.own_names import OwnNames, name_of
from windrow_master.app import wiring
from windrow_master.app.serving import own_names
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import Misdirected

NAMES = OwnNames(("192.0.2.7", "market.example", "2001:db8::7"))


def _check(host: str | None, server: tuple[str, int] | None = ("127.0.0.1", 8000), more: tuple[str, ...] = ()) -> bool:
    hosts = [text for text in (host, *more) if text is not None]
    try:
        NAMES.check({"headers": [(b"host", text.encode()) for text in hosts], "server": server})
    except Misdirected:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.0.0.1", "[::1]:8000", "[::1]", "[0:0::1]"),
        *("market.example", "Market.Example:443", "192.0.2.7:8443", "[2001:db8:0::7]:8443"),
    ],
)
def test_its_own_names_are_answered_at_any_port(host: str) -> None:
    assert _check(host)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "market.example.evil.example", "evil.example#market.example", "", None),
        *("lab.localhost", "lab.localhost:8000", "svc.localhost", "localhost.", "localhost.evil.example"),
        *("127.0.0.2", "127.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]", "192.0.2.8", "x.market.example"),
        *("evil.example@localhost", "localhost@evil.example", "localhost/evil", "localhost\\evil", "localhost:port"),
        *("evil.example localhost", "localhost evil.example", "localhost?a", "localhost%00", "["),
        *("market.example.", "market.exampl\u0435", "localhost,evil.example"),
    ],
)  # fmt: skip
def test_any_other_name_is_refused(host: str | None) -> None:
    assert not _check(host)


def test_an_address_of_this_machine_is_answered_where_it_was_reached_and_nowhere_else() -> None:
    assert _check("10.1.2.3:8443", ("10.1.2.3", 8443))
    assert not _check("10.1.2.4:8443", ("10.1.2.3", 8443))
    assert not _check("evil.example", ("evil.example", 8443)), "a name is never taken from the connection"
    assert not _check("10.1.2.3", None)


def test_of_several_host_headers_every_one_is_its_own() -> None:
    assert _check("localhost", more=("127.0.0.1",))
    assert not _check("localhost", more=("evil.example",))
    assert not _check("evil.example", more=("localhost",))


@given(st.text())
def test_no_text_makes_reading_a_name_fail(text: str) -> None:
    assert isinstance(name_of(text), str)


def test_the_names_are_those_of_loopback_the_listener_the_public_name_and_the_further_ones() -> None:
    found = own_names("10.0.0.1", "market.example", ("console.example",))

    assert {"localhost", "127.0.0.1", "::1", "10.0.0.1", "market.example", "console.example"} <= set(found)
    assert "0.0.0.0" not in own_names("0.0.0.0", "market.example")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """Of an application with names, and a console of one page."""
    (tmp_path / "index.html").write_text("the console")
    opened = wiring.build(tmp_path / "d", ManualClock(), SeededRng(9), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        token = opened.identity.local_token(opened.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(opened.services, tmp_path, names=NAMES))
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://market.example", headers=headers) as found:
            yield found


@pytest.mark.parametrize("path", ["/", "/api/v1/me", "/healthz", "/metrics", "/install.sh", "/api/v1/ca", "/gone.js"])
async def test_a_rebound_name_gets_a_sentence_and_nothing_else(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers={"Host": "evil.example"})

    assert (answer.status_code, answer.json()["code"]) == (421, "misdirected")
    assert "'evil.example'" in answer.json()["detail"] and "WINDROW_NAMES" in answer.json()["detail"]
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert (await client.get(path)).status_code != 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
async def test_a_rebound_name_changes_nothing_by_any_method(client: httpx2.AsyncClient, method: str) -> None:
    answer = await client.request(method, "/api/v1/tokens", headers={"Host": "lab.localhost:8000"})

    assert answer.status_code == 421
