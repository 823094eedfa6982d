"""Any series leaves as a file that a spreadsheet opens without harm; a history that is gone is said, not pretended."""

import asyncio
import contextlib
import csv
import io
import tempfile

import duckdb
import pytest
from starlette.requests import ClientDisconnect

from tests.unit.telemetry.world import BOOT, batch, record
from windrow_master.telemetry import export
from windrow_proto.errors import Unavailable
from windrow_proto.ids import HostId
from windrow_proto.units import SECOND

HOST = HostId("host_1")
HOSTILE = '=HYPERLINK("http://evil")'


@pytest.fixture
async def host(api):
    """A host with a hostile name and ten samples of its processors."""
    service = api.services
    owner = service.identity.first_account().id
    enrol = lambda uow: service.fleet.enrol(uow, HOST, HOSTILE, owner, True, "test")  # noqa: E731
    await service.store.write(enrol, name="test")
    await service.fleet.refresh()
    rows = [{("", 101): 100 * n, ("GPU-1", 6): 1000} for n in range(10)]
    await service.telemetry.append(HOST, [record(1, batch(api.clock.wall_ns() - 10 * SECOND, *rows), boot=BOOT)])
    await service.telemetry.view.catch_up()
    return f"/api/v1/hosts/{HOST}/export?metric=host_cpu_ratio&step_s=1"


async def test_a_csv_holds_what_the_chart_shows_and_no_formula(api, host):
    answer = await api.client.get(host)
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="host_1.csv"'
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [float(line["value"]) for line in lines] == pytest.approx([0.1 * n for n in range(10)])
    assert {line["metric"] for line in lines} == {"host_cpu_ratio"}
    assert not any(value.startswith(("=", "+", "-", "@")) for line in lines for value in line.values())


async def test_a_parquet_file_holds_the_same(api, host, tmp_path):
    answer = await api.client.get(host + "&format=parquet")
    path = tmp_path / "out.parquet"
    path.write_bytes(answer.content)
    with duckdb.connect() as reader:
        rows = reader.execute(f"SELECT epoch_ms(time), host_name, metric, value FROM '{path}' ORDER BY time").fetchall()
    assert [row[3] for row in rows] == pytest.approx([0.1 * n for n in range(10)])
    assert {row[2] for row in rows} == {"host_cpu_ratio"}
    assert api.services.shares.exports.taken == 0


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize("last", [None, "http.response.start", "http.response.body"])
async def test_a_caller_who_leaves_early_leaves_nothing_behind(api, host, tmp_path, monkeypatch, file_format, last):
    """last: the first thing that does not reach it; None: it stays to the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    path, query = host.split("?")
    head = [(b"authorization", f"Bearer {api.token}".encode())]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": f"{query}&format={file_format}".encode()}
    scope |= {"headers": head, "scheme": "http", "http_version": "1.1", "asgi": {"version": "3.0"}, "root_path": ""}
    said = []

    async def send(message):
        if message["type"] == last:
            raise OSError("gone")
        said.append(message["type"])

    asked = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        return asked.pop() if asked else await asyncio.Event().wait()

    with contextlib.suppress(OSError, ExceptionGroup, ClientDisconnect):
        await api.client._transport.app(scope, receive, send)  # the application that the client talks to
    assert bool(said) == (last != "http.response.start")
    assert api.services.shares.exports.taken == 0
    assert set(tmp_path.iterdir()) == before


async def test_an_export_is_bounded_in_size_and_number(api, host):
    assert (await api.client.get(host + "&from=2020-01-01T00:00:00Z")).status_code == 422
    for _ in range(4):
        api.services.shares.exports.take("", is_trusted=True)
    assert (await api.client.get(host)).status_code == 429


async def test_a_history_that_is_gone_is_a_503_with_the_reason(api, host):
    async def gone(query):
        raise Unavailable("The history is unavailable: it is somewhere else.")

    api.services.telemetry.series = gone
    for path in (host, host.replace("/export", "/history")):
        answer = await api.client.get(path)
        assert answer.status_code == 503
        assert "history is unavailable" in answer.json()["detail"]
    assert api.services.shares.exports.taken == 0


async def test_the_fleet_by_tier_is_asked_of_gauges_only(api):
    await api.services.telemetry.view.catch_up()
    fine = await api.client.get("/api/v1/metrics/history?metric=gpu_power_watts")
    refused = await api.client.get("/api/v1/metrics/history?metric=gpu_energy_joules_total")
    assert (fine.status_code, fine.json()["step_s"], refused.status_code) == (200, 300, 422)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "  =1", "\r\n=1"])
def test_no_cell_begins_a_formula(text):
    (cells,) = csv.reader(io.StringIO(export.cell(text), newline=""))
    assert cells[0].startswith("'")


def test_an_ordinary_cell_is_left_alone():
    assert export.cell("GPU-1a2b") == "GPU-1a2b"
    assert export.cell('a,"b"') == '"a,""b"""'
