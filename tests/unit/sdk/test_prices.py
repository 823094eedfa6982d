"""`windrow price`: its question, its table, and the market's own offers beside the others."""

import json
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

ELSEWHERE = {
    "provider": "aws", "offer": "p4d.24xlarge", "gpu": "a100-40", "gpu_count": 8, "vcpu": 96.0, "memory_gib": 1152.0,
    "region": "us-east-1", "zone": None, "country": "US", "kind": "on-demand", "price_per_hour": "21.957642",
    "price_per_gpu_hour": "2.74470525", "as_of": "2026-01-21", "state": "current", "source": "AWS",
}  # fmt: skip
PROCESSOR = {**ELSEWHERE, "provider": "paperspace", "offer": "C5", "gpu": "cpu", "gpu_count": 0, "vcpu": 4.0}
OWN = [{"tier": "a100-40/A", "price_per_hour": "1.29"}, {"tier": "cpu/B", "price_per_hour": "0.02"}]


def run(monkeypatch: pytest.MonkeyPatch, *words: str, prices: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """The output, and what the Master was asked."""
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.raw_path.decode())
        items = OWN if request.url.path.endswith("/offers") else prices
        return httpx2.Response(200, json={"items": items, "next_cursor": None})

    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr("windrow.cli.prices.client", lambda context: Client(Config("http://master", "wt_x"), transport))
    done = CliRunner().invoke(app, ["price", *words])
    assert done.exit_code == 0, done.output + str(done.exception)
    return done.stdout, asked


def test_the_words_are_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    out, asked = run(monkeypatch, "a100", "us-east-1", prices=[ELSEWHERE, PROCESSOR])
    assert len(asked) == 1 and "/prices" in asked[0] and "query=a100%20us-east-1" in asked[0].replace("+", "%20")
    _, first, second = out.splitlines()
    assert first.split("\t")[:6] == ["8 x a100-40", "aws", "p4d.24xlarge", "on-demand", "2.7447", "21.9576"]
    assert second.startswith("4 vCPU\tpaperspace\tC5\t")


def test_a_comparison_has_this_market_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    out, asked = run(monkeypatch, "A100", "--compare", "--json", prices=[ELSEWHERE])
    assert [(one["provider"], one["offer"]) for one in json.loads(out)] == [
        ("windrow", "a100-40/A"),
        ("aws", "p4d.24xlarge"),
    ]
    assert any("compare=" in path for path in asked)
