"""Daemons tell their own figures on loopback, in the format that Prometheus reads; boards and alerts name real ones."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.waiting import PATIENCE_S
from windrow_proto.scrape import Figure, exposition, serving

ROOT = Path(__file__).parents[3]
FIGURES = [Figure("a_total", "Counts", 3, {"who": 'he said "no"\n\\'}), Figure("b_bytes", "Size", 1.5)]
BOARDS = ["deploy/grafana/windrow.json", "deploy/prometheus/alerts.yml"]
NAME = re.compile(r"\bwindrow_[a-z0-9_]+")


async def ask(port, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    await writer.drain()
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    await writer.wait_closed()
    return answer


def test_the_text_reads_back_as_it_was_said():
    families = {family.name: family for family in text_string_to_metric_families(exposition(FIGURES))}
    (counted,) = families["windrow_a"].samples
    assert (counted.value, counted.labels) == (3.0, {"who": 'he said "no"\n\\'})
    assert families["windrow_b_bytes"].type == "gauge"


async def test_metrics_are_served_and_nothing_else_is():
    async with serving(0, lambda: FIGURES) as port:
        assert (await ask(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert (await ask(port, b"GET /etc/passwd HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
        assert (await ask(port, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
        assert await ask(port, b"x" * 20_000) == b"", "an endless request is cut"


@pytest.mark.parametrize("path", BOARDS)
def test_every_metric_that_is_drawn_or_alerted_on_is_one_that_the_code_tells(path):
    code = "\n".join(
        file.read_text()
        for package in ("master", "access", "agent", "proto")
        for file in (ROOT / package).rglob("*.py")
    )
    named = {re.sub(r"_(bucket|sum|count)$", "", name) for name in NAME.findall((ROOT / path).read_text())}
    assert named
    missing = {n for n in named if f'"{n.removeprefix("windrow_")}"' not in code and f'"{n}"' not in code}
    assert missing == set()


def test_the_board_is_whole():
    board = json.loads((ROOT / "deploy/grafana/windrow.json").read_text())
    assert all(panel["targets"] for panel in board["panels"])
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert any("by (rule) (windrow_alerts)" in one for one in expressions), "each rule's code is shown"
