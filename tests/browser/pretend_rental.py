"""The pretend Master's market: plans, clusters that come and go by themselves, their output, receipts, offers."""

import asyncio
import base64
import io
import json
import math
import tarfile
from collections.abc import AsyncIterator, Mapping
from datetime import date, datetime
from typing import Any

from fastapi import Body, FastAPI, Request, Response, WebSocket
from fastapi.responses import JSONResponse, StreamingResponse

from tests.browser.pretend_accesses import attached
from tests.browser.pretend_http import TICK_S, listed, operation, problem, sse, stream
from tests.browser.pretend_records import counts, host_uses
from tests.browser.pretend_world import Json, World, at
from windrow_master.api.cluster_routes import KeptRequestOut
from windrow_master.api.health import LogHealthOut
from windrow_master.api.job_routes import JobRequestOut
from windrow_master.api.price_routes import PriceOut
from windrow_master.api.terminal_routes import PROTOCOL, is_own_origin
from windrow_master.clusters.model import ClusterRequest
from windrow_master.jobs.model import JobRequest
from windrow_master.prices.book import cheapest
from windrow_master.prices.shipped import shipped

DEGRADED: Json = {
    "id": "host_019a0000-0000-7000-8000-000000000001",
    "name": "workbench",
    "simulated": False,
    "headline": "degraded",
    "reason": "2 of 8 GPUs faulty. GPU 1, 5: This GPU fell off its bus; the others go on",
    "remedy": "Reboot the host. If it happens again, reseat or replace the card.",
}
UNSAID: Json = KeptRequestOut.of(ClusterRequest(), env={})
"""A request in which nothing is asked for."""


def _fit(world: World, request: Json) -> Json:
    refused: dict[str, list[Json]] = {}
    placement: list[Json] = []
    for host in list(world.hosts.values())[:40]:
        wanted, there = request.get("gpus", 0), len(host["gpus"])
        if wanted > there:
            reason = f"too few GPUs ({there} in all, you ask for {wanted} on one host)" if there else "no GPU"
            refused.setdefault(reason, []).append(host)
        elif request.get("host_id") not in {None, host["id"]}:
            refused.setdefault("another host was asked for", []).append(host)
        elif not placement:
            price = host["price_per_hour"]
            placement.append(
                {
                    "host_id": host["id"],
                    "host_name": host["name"],
                    "slots": [host["slots"][0]["id"]],
                    "tier": host["tier"],
                    "runtime": host["runtimes"][0],
                    "image": None,
                    "price_per_hour": price,
                    "note": "",
                }
            )
    price = placement[0]["price_per_hour"] if placement else None
    return {
        "fits": bool(placement),
        "fits_soon": False,
        "tested": [],
        "placement": placement,
        "price_per_hour": price,
        "hold": f"{float(price) / 4:.6f}" if price else None,
        "balance": "99.912345",
        "refusal": None if placement else _refusal(refused),
    }


def _refusal(refused: dict[str, list[Json]]) -> Json:
    reasons = [
        {
            "code": "gpus" if hosts[0]["gpus"] else "no_slot",
            "text": f"{hosts[0]['name'] if len(hosts) == 1 else f'{len(hosts)} hosts'}: {reason}",
            "reason": reason,
            "count": len(hosts),
            "is_own": False,
            "hosts": [{"id": host["id"], "name": host["name"]} for host in hosts[:3]],
        }
        for reason, hosts in refused.items()
    ]
    most = max((host for hosts in refused.values() for host in hosts), key=lambda host: len(host["gpus"]))
    way = {
        "text": f"Fits on {most['name']} with {len(most['gpus'])} GPUs instead of 64, for 9.00 per hour",
        "changes": {"gpus": len(most["gpus"])},
        "hosts": [most["name"]],
        "price_per_hour": "9.00",
    }
    return {"detail": "No host can run this now.", "is_possible": False, "reasons": reasons, "ways": [way]}


def _ends_at(cluster: Json) -> str | None:
    longest = cluster["request"].get("max_duration_seconds")
    return None if longest is None else at(-longest)


def _requested(world: World, body: Json, fit: Json) -> str:
    number = len(world.clusters) + 1
    cluster_id = f"cluster_019a0000-2222-7000-8000-{number:012d}"
    place = fit["placement"][0]
    workload = {
        "id": f"work_{number}",
        "host_id": place["host_id"],
        "host_name": place["host_name"],
        "phase": "starting",
        "is_lost": False,
        "detail": None,
        "runtime": "process",
        "image": None,
        "slots": place["slots"],
        "isolation": None,
        "exit_code": None,
        "ports": {},
        "running_s": 0,
        "rank": 0,
        "address": None,
        "is_member": True,
        "results": None,
    }
    is_service = body["kind"] == "service"
    named = {port: f"p{port}-{cluster_id.removeprefix('cluster_')}.svc.localhost" for port in body.get("ports", [])}
    urls = {str(port): f"https://{name}:7743/" for port, name in named.items()} if is_service else {}
    world.clusters[cluster_id] = {
        "id": cluster_id,
        "name": body.get("name") or f"machine-{number}",
        "forward_host": f"{body.get('name') or f'machine-{number}'}.localhost",
        "account_id": "account_1",
        "kind": body["kind"],
        "phase": "creating",
        "reason": None,
        "problem": None,
        "steps": [
            {"at": at(), "name": "placed", "progress": 1.0, "detail": f"on {place['host_name']}", "member": None}
        ],
        "workloads": [workload],
        "request": UNSAID | {name: value for name, value in body.items() if name != "registry_login"},
        "urls": urls,
        "traffic": {"connections": 0, "bytes_in": 0, "bytes_out": 0},
        "tier": place["tier"],
        "price_per_hour": fit["price_per_hour"],
        "cost_so_far": "0.000000",
        "started_at": None,
        "ended_at": None,
        "ends_at": None,
        "client_lease_ends_at": None,
        "created_at": at(),
        "rental_id": f"rental_{number}",
        "first_port": None,
        "network": None,
        "restarts": 0,
        "queue": None,
        "tries": None,
        "needs_login": body.get("registry_login") is not None,
        "version": 1,
    }
    return cluster_id


def cluster_routes(app: FastAPI, world: World) -> None:
    """Plans, and clusters from asking to deleting."""

    @app.post("/api/v1/clusters/plan")
    async def plan(body: Json = Body()) -> Json:
        return _fit(world, body)

    @app.post("/api/v1/clusters")
    async def create(body: Json = Body()) -> Response:
        fit = _fit(world, body)
        if not fit["fits"]:
            return problem(
                409,
                "no_capacity",
                "Nothing fits",
                fit["refusal"]["detail"],
                reasons=fit["refusal"]["reasons"],
            )
        cluster_id = _requested(world, body, fit)
        place = fit["placement"][0]
        world.event(
            "cluster_created", [cluster_id, place["host_id"]], f"{body.get('name') or 'a cluster'} was asked for"
        )
        return JSONResponse(
            {"operation": operation("cluster_create", cluster_id), "cluster": world.clusters[cluster_id]}, 202
        )

    @app.get("/api/v1/clusters")
    async def clusters() -> Json:
        return listed(list(reversed(world.clusters.values())))

    @app.get("/api/v1/clusters/{cluster_id}")
    async def cluster(cluster_id: str) -> Any:
        return world.clusters.get(cluster_id) or problem(
            404, "not_found", "Not found", "There is no such cluster.", cluster_id
        )

    @app.get("/api/v1/clusters/{cluster_id}/usage/history")
    async def usage_history(cluster_id: str, request: Request) -> Json:
        return _usage(world, cluster_id, request.query_params)

    @app.post("/api/v1/clusters/{cluster_id}/stop")
    async def stop(cluster_id: str) -> Response:
        return _turned(world, cluster_id, "stop", "stopped")

    @app.post("/api/v1/clusters/{cluster_id}/start")
    async def start(cluster_id: str) -> Response:
        return _turned(world, cluster_id, "start", "creating")

    @app.delete("/api/v1/clusters/{cluster_id}")
    async def delete(cluster_id: str) -> Response:
        return _turned(world, cluster_id, "delete", "deleting")

    _changed(app, world)
    _looked_at(app, world)


def _changed(app: FastAPI, world: World) -> None:
    """A cluster gets other hosts, or a later end."""

    @app.post("/api/v1/clusters/{cluster_id}/resize")
    async def resize(cluster_id: str, body: Json = Body()) -> Json:
        world.clusters[cluster_id]["request"]["hosts"] = body["hosts"]
        return world.clusters[cluster_id]

    @app.post("/api/v1/clusters/{cluster_id}/extend")
    async def extend(cluster_id: str, body: Json = Body()) -> Json:
        cluster = world.clusters[cluster_id]
        cluster["request"]["max_duration_seconds"] = body["max_duration_seconds"]
        cluster["ends_at"] = _ends_at(cluster)
        return cluster


USED: Json = {
    "workload_cpu_cores": ("1", 3.2),
    "workload_memory_used_bytes": ("By", 11e9),
    "workload_disk_used_bytes": ("By", 3e9),
    "workload_disk_read_bytes_per_second": ("By/s", 20e6),
    "workload_disk_write_bytes_per_second": ("By/s", 4e6),
    "workload_network_receive_bytes_per_second": ("By/s", 6e6),
    "workload_network_transmit_bytes_per_second": ("By/s", 1e6),
    "workload_gpu_ratio": ("1", 0.8),
    "workload_gpu_memory_used_bytes": ("By", 40e9),
}
"""Of a member: the unit of each metric, and about what it uses."""
POINTS = 240


def _usage(world: World, cluster_id: str, query: Mapping[str, str]) -> Json:
    """Waves, as long as the work of this cluster is not in `unmeasured`."""
    begin, end = (datetime.fromisoformat(query[name]).timestamp() for name in ("from", "to"))
    step_s = max(1, round((end - begin) / POINTS))
    ranks = () if cluster_id in world.unmeasured else range(world.clusters[cluster_id]["request"]["hosts"])
    series = [
        {
            "metric": name,
            "rank": rank,
            "unit": unit,
            "points": [
                [round((begin + n * step_s) * 1000), about * (0.8 + 0.2 * math.sin(n / 20 + rank + about % 7))]
                for n in range(POINTS)
            ],
        }
        for name, (unit, about) in USED.items()
        for rank in ranks
    ]
    return {"series": series, "step_s": step_s}


def _turned(world: World, cluster_id: str, what: str, phase: str) -> Response:
    one = world.clusters[cluster_id]
    one.update(phase=phase, version=one["version"] + 1)
    return JSONResponse({"operation": operation(f"cluster_{what}", cluster_id), "cluster": one}, 202)


def job_routes(app: FastAPI, world: World) -> None:
    """Routes for jobs, and for the place where one would run."""

    @app.get("/api/v1/jobs")
    async def jobs() -> Json:
        return listed(world.jobs)

    @app.post("/api/v1/jobs/plan")
    async def job_plan(body: Json = Body()) -> Any:
        if not body.get("argv"):
            short = {"field": "argv", "reason": "List should have at least 1 item after validation, not 0"}
            detail = "The request is not valid: argv."
            return problem(422, "invalid_input", "Not valid", detail, reasons=[short])
        return _fit(world, body)

    @app.post("/api/v1/jobs", status_code=201)
    async def submit(body: Json = Body()) -> Json:
        number = len(world.jobs) + 1
        world.jobs.insert(0, job_of(f"job_019a0000-3333-7000-8000-{number:012d}", body))
        return {"jobs": world.jobs[:1]}

    @app.get("/api/v1/jobs/{job_id}")
    async def job(job_id: str) -> Any:
        found = [one for one in world.jobs if one["id"] == job_id]
        if not found:
            return problem(404, "not_found", "Not found", "There is no such job.", job_id)
        return found[0] | {"queue": next((one for one in world.queued if one["id"] == job_id), None)}

    @app.put("/api/v1/jobs/{job_id}/files")
    async def folder(job_id: str, request: Request) -> Json:
        size = len(world.job_folders.setdefault(job_id, await request.body()))
        next(one for one in world.jobs if one["id"] == job_id).update(state="Queued", reason=None, folder_bytes=size)
        return {"bytes": size}

    @app.post("/api/v1/jobs/{job_id}/cancel")
    async def cancel(job_id: str) -> Json:
        found = next(one for one in world.jobs if one["id"] == job_id)
        found.update(state="Cancelled", ended_at=at(), refusal=None)
        world.queued = [one for one in world.queued if one["id"] != job_id]
        return found

    @app.post("/api/v1/jobs/{job_id}/requeue")
    async def requeue(job_id: str) -> Json:
        found = next(one for one in world.jobs if one["id"] == job_id)
        found.update(state="Queued", reason="it was put back into the queue")
        return found


def job_of(job_id: str, body: Json) -> Json:
    return {
        "id": job_id,
        "name": body.get("name") or "a-job",
        "account_id": "account_1",
        "group_id": job_id,
        "array_index": 0,
        "queue": None,
        "tries": None,
        "state": "Queued",
        "reason": None,
        "held_by": None,
        "is_top": False,
        "refusal": None,
        "request": JobRequestOut.of(JobRequest(), env={}) | body,
        "attempts": [],
        "exit_code": None,
        "folder_bytes": None,
        "cost_so_far": "0.000000",
        "created_at": at(),
        "ended_at": None,
        "version": 1,
    }


def template_routes(app: FastAPI, world: World) -> None:
    """Requests that are kept by name."""

    @app.get("/api/v1/templates")
    async def templates() -> Json:
        return listed([world.templates[name] for name in sorted(world.templates)])

    @app.get("/api/v1/templates/{name}")
    async def template(name: str) -> Any:
        return world.templates.get(name) or problem(
            404, "not_found", "Not found", "There is no such template. List yours: windrow template ls", name
        )

    @app.put("/api/v1/templates/{name}")
    async def keep(name: str, body: Json = Body()) -> Json:
        world.templates[name] = {"name": name, "request": UNSAID | body, "saved_at": at()}
        return world.templates[name]

    @app.delete("/api/v1/templates/{name}", status_code=204)
    async def forget(name: str) -> Response:
        del world.templates[name]
        return Response(status_code=204)


def _looked_at(app: FastAPI, world: World) -> None:
    """How a cluster is entered, and why it is where it is."""

    @app.get("/api/v1/clusters/{cluster_id}/box")
    async def box(cluster_id: str) -> Json:
        asked = world.clusters[cluster_id]["request"]
        return {
            "ssh_port": 2222 if asked["ssh_keys"] else None,
            "notebook_port": 8888 if asked["notebook"] else None,
            "notebook_token": "0123456789abcdef" if asked["notebook"] else None,
        }

    @app.get("/api/v1/clusters/{cluster_id}/explain")
    async def explain(cluster_id: str) -> Json:
        return decision(world, cluster_id)


def decision(world: World, cluster_id: str) -> Json:
    """The record of why a cluster is where it is."""
    work = world.clusters[cluster_id]["workloads"][0]
    terms = {"cost": 930, "packing": 800, "trust": 500, "home": 1000, "grade": 1000}
    chosen = {name: work[name] for name in ("host_id", "host_name", "slots", "runtime", "image")}
    loser = {"host": "sim-004", "host_id": "host_4", "reason": "dearer", "score": 6120, "terms": terms}
    return {
        "decision": f"{work['host_name']} has the best score",
        "weights": {"cost": 4, "packing": 3, "trust": 2, "home": 1, "grade": 1},
        "chosen": chosen | {"tier": "cpu/A", "note": "", "price_per_hour": "0.08", "score": 9120, "terms": terms},
        "losers": [loser],
        "others": {},
        "others_chosen": [],
    }


def _advance(world: World, one: Json) -> None:
    work = one["workloads"][0]
    one["version"] += 1
    if one["phase"] == "creating" and len(one["steps"]) < 3:
        one["steps"].append(
            {
                "at": at(),
                "name": ("preparing", "starting")[len(one["steps"]) - 1],
                "progress": 1.0,
                "detail": None,
                "member": None,
            }
        )
    elif one["phase"] == "creating":
        one.update(phase="running", started_at=at(), ends_at=_ends_at(one))
        work.update(phase="running")
        one["steps"].append({"at": at(), "name": "running", "progress": 1.0, "detail": None, "member": None})
        world.logs[one["id"]] = b"hello from the pretend host\n\x1b[31mred words\x1b[0m <b>markup</b>\n"
    elif one["phase"] == "running":
        work["running_s"] += TICK_S
        one["cost_so_far"] = f"{float(one['price_per_hour']) / 3600 * work['running_s']:.6f}"
        world.logs[one["id"]] += f"line after {work['running_s']:.0f} s\n".encode()
    elif one["phase"] == "deleting":
        one.update(phase="deleted", ended_at=at())
        work.update(phase="gone", exit_code=143)
        add_receipt(world, one)


def add_receipt(world: World, one: Json) -> None:
    """Charge for what ran."""
    seconds = f"{int(one['workloads'][0]['running_s'])}.123456789"
    receipt_id = one["rental_id"].replace("rental", "receipt")
    line = {
        "workload_id": "work_1",
        "host_id": one["workloads"][0]["host_id"],
        "running_seconds": seconds,
        "signed_seconds": seconds,
        "receipts": 3,
        "note": None,
        "exit_code": 143,
        "amount": one["cost_so_far"],
    }
    transfers = [
        {"id": f"tr_{n}", "debit": debit, "credit": credit, "amount": amount, "at": at(3 - n), "kind": kind}
        | {"currency": "CRD", "rental_id": one["rental_id"], "memo": ""}
        for n, (debit, credit, amount, kind) in enumerate(
            (
                ("acct:account_1", f"hold:{one['rental_id']}", "0.020000", "hold"),
                (f"hold:{one['rental_id']}", "acct:account_1", one["cost_so_far"], "charge"),
                (f"hold:{one['rental_id']}", "acct:account_1", "0.019000", "void"),
            )
        )
    ]
    world.receipts[receipt_id] = {
        "id": receipt_id,
        "rental_id": one["rental_id"],
        "state": "closed",
        "cluster_id": one["id"],
        "cluster_name": one["name"],
        "host_ids": [line["host_id"]],
        "tier": one["tier"],
        "price_per_hour": one["price_per_hour"],
        "currency": "CRD",
        "test_money": True,
        "simulated": False,
        "end_reason": "deleted by its renter",
        "held": "0.000000",
        "started_at": one["started_at"],
        "ended_at": one["ended_at"],
        "running_seconds": seconds,
        "amount": one["cost_so_far"],
        "lines": [line | {"first_number": 1, "last_number": 3, "final": True, "end_reason": "deleted by its renter"}],
        "transfers": transfers,
        "balance_after": "99.911000",
    }


def cluster_streams(app: FastAPI, world: World) -> None:
    """A cluster as it goes on: its changes, output, a command inside, its files."""

    @app.get("/api/v1/clusters/{cluster_id}/stream")
    async def cluster_stream(cluster_id: str) -> StreamingResponse:
        async def frames() -> AsyncIterator[str]:
            while True:
                one = world.clusters[cluster_id]
                yield sse("cluster", one)
                await asyncio.sleep(TICK_S / 2)
                _advance(world, one)

        return stream(frames)

    @app.get("/api/v1/clusters/{cluster_id}/logs")
    async def logs(cluster_id: str, offset: int = 0) -> StreamingResponse:
        async def chunks() -> AsyncIterator[bytes]:
            told = offset
            while True:
                text = world.logs.get(cluster_id, b"")
                if len(text) > told:
                    yield text[told:]
                    told = len(text)
                if world.clusters[cluster_id]["phase"] == "deleted":
                    return
                await asyncio.sleep(TICK_S / 4)

        return StreamingResponse(chunks(), media_type="text/plain", headers={"X-Log-Truncated": "false"})

    @app.post("/api/v1/clusters/{cluster_id}/exec")
    async def run(cluster_id: str, body: Json = Body()) -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            said = f"pretended to run: {' '.join(body['argv'])}\n".encode()
            yield json.dumps({"stream": 1, "data": base64.b64encode(said).decode()}) + "\n"
            yield json.dumps({"exit_code": 0}) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    @app.put("/api/v1/clusters/{cluster_id}/files")
    async def put_files(cluster_id: str, request: Request) -> Json:
        world.job_folders[cluster_id] = await request.body()
        return {"bytes": len(world.job_folders[cluster_id]), "files": 1}

    @app.get("/api/v1/clusters/{cluster_id}/files")
    async def files(cluster_id: str) -> Response:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            member = tarfile.TarInfo("out.txt")
            member.size = 2
            archive.addfile(member, io.BytesIO(b"hi"))
        return Response(packed.getvalue(), media_type="application/x-tar", headers={"X-Files-Truncated": "false"})


def terminal_routes(app: FastAPI, world: World) -> None:
    """A shell that echoes, and the address of a notebook."""

    @app.post("/api/v1/clusters/{cluster_id}/terminal", status_code=201)
    async def ticket(cluster_id: str, body: Json = Body()) -> Any:
        if world.terminal_refusal:
            return problem(409, "conflict", "Not possible now", world.terminal_refusal, cluster_id)
        return {"ticket": f"ticket-{body['rank']}", "protocol": PROTOCOL, "expires_at": at(30)}

    @app.post("/api/v1/clusters/{cluster_id}/notebook", status_code=201)
    async def notebook(cluster_id: str) -> Json:
        return {"url": "/healthz?token=0123456789abcdef", "expires_at": at(-43_200)}

    @app.websocket("/api/v1/clusters/{cluster_id}/terminal")
    async def terminal(socket: WebSocket, cluster_id: str) -> None:
        if not is_own_origin(socket.headers, "ws") or socket.scope["subprotocols"] != [PROTOCOL, "ticket-0"]:
            await socket.close()
            return
        await socket.accept(PROTOCOL)
        await socket.send_json({"open": True})
        await socket.send_bytes(b"\x1b[38;2;10;120;30mpretended\x1b[0m shell\r\n$ ")
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            if message.get("bytes") is None:
                world.terminal_said.append(json.loads(message["text"]))
            elif message["bytes"] == b"\x04":
                await socket.send_json({"ended": "The shell has ended.", "exit_code": 3})
                await socket.close()
                return
            else:
                world.terminal_typed += message["bytes"]
                await socket.send_bytes(message["bytes"].replace(b"\r", b"\r\n"))


def _dearer(tier: str, world: World) -> JSONResponse:
    said = f"{tier} costs {world.set_prices.get(tier)} an hour: Otto has set that."
    return problem(409, "conflict", "Not possible now", said, tier)


def market_routes(app: FastAPI, world: World) -> None:
    """Offers, prices here and elsewhere, and receipts."""

    @app.get("/api/v1/prices")
    async def prices() -> Json:
        read = date(2026, 8, 25)
        return listed([PriceOut.of(one) for one in cheapest(shipped().find(read))])

    @app.get("/api/v1/offers")
    async def offers() -> Json:
        items = []
        for tier in sorted({host["tier"] for host in world.hosts.values()}):
            of = [host for host in world.hosts.values() if host["tier"] == tier]
            free = sum(len(host["gpus"]) for host in of)
            items.append(
                {
                    "tier": tier,
                    "unit": "gpu" if of[0]["gpus"] else "processor",
                    "simulated": of[0]["simulated"],
                    "free": free or len(of),
                    "total": free or len(of),
                    "hosts": len(of),
                    "price_per_hour": world.set_prices.get(tier, world.prices[tier]),
                    "asked": world.set_prices.get(tier),
                    "suggestion": "0.0750",
                    "suggestion_reason": "the mean of what others ask",
                    "currency": "CRD",
                    "runtimes": of[0]["runtimes"],
                    "min_memory_bytes": of[0]["memory_bytes"],
                    "isolation": "whole" if of[0]["gpus"] else None,
                    "notes": [],
                    "container_users": "host",
                }
            )
        return listed(items)

    @app.put("/api/v1/offers/{tier:path}")
    async def price(tier: str, body: Json = Body()) -> Any:
        if (expected := body.get("if_asked")) and world.set_prices.get(tier) != expected:
            return _dearer(tier, world)
        world.set_prices[tier] = body["price_per_hour"]
        found: list[Json] = (await offers())["items"]
        return listed([offer for offer in found if offer["tier"] == tier])

    @app.delete("/api/v1/offers/{tier:path}")
    async def no_price(tier: str, if_asked: str = "") -> Any:
        if if_asked and world.set_prices.get(tier) != if_asked:
            return _dearer(tier, world)
        world.set_prices.pop(tier, None)
        return await offers()

    @app.get("/api/v1/receipts")
    async def receipts() -> Json:
        return listed(list(reversed(world.receipts.values())))

    @app.get("/api/v1/receipts/{receipt_id}")
    async def receipt(receipt_id: str) -> Any:
        return world.receipts.get(receipt_id) or problem(
            404, "not_found", "Not found", "There is no such receipt.", receipt_id
        )


def health_routes(app: FastAPI, world: World) -> None:
    """How the pretend installation fares."""

    @app.get("/api/v1/operators/health")
    async def health() -> Json:
        view = {"is_open": True, "path": "history.duckdb", "problem": "", "lag_ns": 1_200_000_000, "rows": 4410}
        view |= {"bad_batches": 0, "misdated": 0}
        store = {"problem": None, "commits": 812, "writes": 4410, "failures": 0, "pending": 0}
        return {
            "master": {
                "version": "0.1.0",
                "epoch": 3,
                "uptime_s": 4012,
                "store": store,
                "streams": 2,
                "problems": [],
                "conditions": [],
                "bus": {"kind": "memory", "is_well": True, "peers": []},
                "log": dict.fromkeys(LogHealthOut.model_fields, 0),
                "log_lag": 0,
                "duckdb_lag_s": 1.2,
                "duckdb": view,
                "history": [view],
            },
            "accesses": attached(world),
            "fleet": {
                "hosts": counts(host_uses(list(world.hosts.values()))),
                "gpus": counts([row["state"] for row in world.gpu_rows.values()]),
                "troubled": [DEGRADED],
                "troubled_count": 1,
            },
        }
