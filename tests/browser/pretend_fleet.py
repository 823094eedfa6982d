"""The pretend Master's fleet: hosts, cards, their streams and histories, events and commands."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from tests.browser.pretend_http import TICK_S, listed, operation, problem, sse, stream
from tests.browser.pretend_world import (
    GIB,
    Json,
    World,
    at,
    change,
    facts_of,
    gpu_page,
    live,
    rounds_of,
    standing_of,
    unverified,
)
from windrow_master.api.event_severity import is_at_least

CHANGED_PER_TICK = 800


def fleet_routes(app: FastAPI, world: World) -> None:
    """The whole fleet, and what happened in it."""

    @app.get("/api/v1/gpus")
    async def gpus() -> Json:
        return {"items": list(world.gpu_rows.values()), "version": world.version}

    @app.get("/api/v1/gpus/{gpu_id}")
    async def gpu(gpu_id: str) -> Any:
        return gpu_page(world, gpu_id) or problem(
            404, "not_found", "Not found", "There is no such GPU. List GPUs: windrow gpu ls", gpu_id
        )

    @app.get("/api/v1/hosts")
    async def hosts(gpus: bool | None = None) -> Json:
        return listed([host for host in world.hosts.values() if gpus is None or bool(host["gpus"]) is gpus])

    @app.get("/api/v1/fleet/stream")
    async def fleet() -> StreamingResponse:
        async def frames() -> AsyncIterator[str]:
            yield ": here\n\n"
            while True:
                rows = change(world, CHANGED_PER_TICK)
                yield sse("rows", {"version": world.version, "rows": rows})
                cpu_hosts = [host for host in world.hosts.values() if not host["gpus"]]
                for host in cpu_hosts:
                    host.update(live=live(world), last_seen_at=at())
                told = [world.hosts[host_id] for host_id in world.told]
                world.told.clear()
                yield sse("hosts", {"version": world.version, "hosts": cpu_hosts + told})
                await asyncio.sleep(TICK_S)

        return stream(frames)

    @app.get("/api/v1/events")
    async def events(
        subject: str = "", severity: str = "info", since: str = "", limit: int = 100, cursor: int = 0
    ) -> Json:
        found = [row for row in world.events if not subject or subject in row["subjects"]]
        found = [row for row in found if is_at_least(row["severity"], severity) and row["at"] >= since]
        more = len(found) > cursor + limit
        return {"items": found[cursor : cursor + limit], "next_cursor": str(cursor + limit) if more else None}

    @app.get("/api/v1/events/stream")
    async def event_stream() -> StreamingResponse:
        async def frames() -> AsyncIterator[str]:
            yield ": here\n\n"
            told = len(world.events)
            while True:
                for row in reversed(world.events[: len(world.events) - told]):
                    yield sse("event", row)
                told = len(world.events)
                await asyncio.sleep(TICK_S)

        return stream(frames)


def host_routes(app: FastAPI, world: World) -> None:
    """One host, what is done to it, and its commands."""

    @app.get("/api/v1/hosts/{host_id}")
    async def host(host_id: str) -> Any:
        return world.hosts.get(host_id) or problem(
            404, "not_found", "Not found", "There is no such host, or it is not yours.", host_id
        )

    @app.get("/api/v1/hosts/{host_id}/verification")
    async def verification(host_id: str) -> Json:
        return world.verifications.get(host_id) or unverified(host_id)

    @app.get("/api/v1/hosts/{host_id}/standing")
    async def standing(host_id: str) -> Json:
        return standing_of(world, host_id)

    @app.get("/api/v1/hosts/{host_id}/proof")
    async def proof(host_id: str) -> Json:
        host = world.hosts[host_id]
        found = host["proof"] or {"at": None, "words": "Not proved yet: its turn comes in a moment."}
        reached = {
            "downloaded": ("done", None, "Agent 0.1.0 runs there. It was fetched before the host joined."),
            "certified": ("done", host["created_at"], "It has a certificate of this market."),
            "tested": ("done" if found["at"] else "running", found["at"], found["words"]),
            "verified": ("done" if host["gpus"] else "skipped", None, "Not verified: it has no GPU."),
            "listed": ("done", host["listed_at"], f"Tier {host['tier']} is on offer."),
        }
        step = {
            "name": "reach",
            "state": "passed",
            "took_ms": 1900,
            "words": "Greeted through its relay.",
            "fields": {},
        }
        one = {"proof_id": "proof_1", "at": at(7170), "ended_at": found["at"], "was_asked": False}
        ended = {"outcome": "passed" if found["at"] else None, "words": found["words"], "steps": [step]}
        return {
            "host_id": host_id,
            "words": found["words"],
            "stages": [
                {"name": name, "state": state, "at": moment, "words": words}
                for name, (state, moment, words) in reached.items()
            ],
            "proofs": [one | ended],
        }

    @app.post("/api/v1/hosts/{host_id}/{action}")
    async def act(host_id: str, action: str) -> Json:
        states = {
            "drain": "draining",
            "activate": "active",
            "maintenance": "maintenance",
            "quarantine": "quarantined",
            "retire": "retired",
        }
        if action in states:
            world.hosts[host_id]["admin_state"] = states[action]
            world.event("host_admin", [host_id], f"admin state is {states[action]}")
        return {"operation": operation("host", host_id)}


def reading_routes(app: FastAPI, world: World) -> None:
    """Routes for a host's description, its history and its live readings."""

    @app.get("/api/v1/hosts/{host_id}/bandwidth")
    async def bandwidth(host_id: str) -> Json:
        return rounds_of(host_id)

    @app.get("/api/v1/hosts/{host_id}/facts")
    async def facts(host_id: str) -> Json:
        return facts_of(host_id)

    @app.get("/api/v1/hosts/{host_id}/history")
    async def history(host_id: str, request: Request) -> Json:
        query = request.query_params
        now_ms = int(time.time() * 1000)
        step_s = max(1, int(query.get("step_s", "3")))
        names = [name for name in query.getlist("metric") if name not in world.unsupported]
        uuids = [gpu["uuid"] for gpu in world.hosts[host_id]["gpus"]]
        series = [
            one for name in names for one in _series(name, uuids if name.startswith("gpu_") else [None], now_ms, step_s)
        ]
        return {"series": series, "step_s": step_s}

    @app.get("/api/v1/hosts/{host_id}/export")
    async def export(host_id: str, request: Request) -> Response:
        query = request.query_params
        lines = ["host,metric,format", *(f"{host_id},{name},{query['format']}" for name in query.getlist("metric"))]
        return Response("\n".join(lines), media_type="text/csv")

    @app.get("/api/v1/hosts/{host_id}/stream")
    async def host_stream(host_id: str) -> StreamingResponse:
        async def frames() -> AsyncIterator[str]:
            yield ": here\n\n"
            while True:
                now = time.time()
                uuids = [gpu["uuid"] for gpu in world.hosts[host_id]["gpus"]]
                names = [name for name in METRIC_UNITS if not name.startswith("gpu_")]
                of_cards = [name for name in METRIC_UNITS if name.startswith("gpu_")]
                known = dict.fromkeys(world.unsupported)
                frame = {
                    "at": at(),
                    "host": {name: _value(name, 0, now) for name in names} | known,
                    "gpus": {
                        uuid: {name: _value(name, index, now) for name in of_cards} | known
                        for index, uuid in enumerate(uuids)
                    },
                }
                yield sse("live", frame)
                await asyncio.sleep(TICK_S)

        return stream(frames)


METRIC_UNITS = {
    "host_cpu_ratio": "1",
    "host_memory_used_bytes": "By",
    "host_load1": "1",
    "host_disk_used_bytes": "By",
    "host_network_receive_bytes_total": "By",
    "host_network_transmit_bytes_total": "By",
    "host_disk_read_bytes_total": "By",
    "host_disk_write_bytes_total": "By",
    "gpu_utilization_ratio": "1",
    "gpu_memory_used_bytes": "By",
    "gpu_temperature_celsius": "Cel",
    "gpu_power_watts": "W",
}


def _value(name: str, index: int, at_s: float) -> float:
    wave = 0.5 + 0.4 * math.sin(at_s / 90 + index) + 0.08 * math.sin(at_s / 7 + index * 3)
    scale = {
        "host_cpu_ratio": 0.8,
        "host_memory_used_bytes": 5 * GIB,
        "host_load1": 2.4,
        "host_disk_used_bytes": 61 * GIB,
    }
    scale |= {
        "gpu_utilization_ratio": 1,
        "gpu_memory_used_bytes": 60 * GIB,
        "gpu_temperature_celsius": 80,
        "gpu_power_watts": 600,
    }
    if name.endswith("_total"):
        return 1e6 * (at_s % 1e7) + 9e7 * math.sin(at_s / 90)
    return scale[name] * wave


def _series(name: str, of: list[str | None], now_ms: int, step_s: int) -> list[Json]:
    start = now_ms - 300 * step_s * 1000
    return [
        {
            "metric": name,
            "gpu": uuid,
            "unit": METRIC_UNITS.get(name, "1"),
            "points": [[ms, _value(name, index, ms / 1000)] for ms in range(start, now_ms, step_s * 1000)],
        }
        for index, uuid in enumerate(of)
    ]
