"""`windrow run -- CMD`: rent, send this folder, run, stream the log, fetch changed files, let go, show the receipt."""

import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import typer

from windrow import folder
from windrow.cli.account import print_receipt
from windrow.cli.cluster_text import ENDED, Progress, has_run, print_plan, print_tested
from windrow.cli.clusters import (
    CREATE_TIMEOUT_S,
    Cpus,
    Env,
    Gpu,
    Host,
    Image,
    MaxPrice,
    Memory,
    Runtime,
    Slice,
    Tier,
    deleted_at_the_end,
    fetch_files,
)
from windrow.cli.context import AsJson, client
from windrow.cli.output import EXIT_CONFLICT, EXIT_FAILURE, print_json, say, size_text
from windrow.cli.request import cluster_request
from windrow.client import Client
from windrow.errors import ApiProblem, WindrowClientError
from windrow.soon import PAUSE_S, SOON_S, patiently


def run(
    context: typer.Context,
    argv: Annotated[list[str], typer.Argument(help="The command, after --.")],
    gpu: Gpu = None,
    part: Slice = None,
    cpus: Cpus = 1,
    memory: Memory = None,
    image: Image = None,
    env: Env = None,
    host: Host = None,
    tier: Tier = None,
    runtime: Runtime = None,
    max_price: MaxPrice = None,
    files: Annotated[bool, typer.Option(help="Send this folder, and bring back what changed.")] = True,
    as_json: AsJson = False,
) -> None:
    """Run one command on a rented host, in a copy of this folder."""
    api = client(context)
    here = Path.cwd()
    parcel = folder.survey(here) if files else folder.Parcel(here, (), 0)
    request = cluster_request(
        argv=argv, name=Path(argv[0]).name[:40], gpu=gpu, part=part, cpus=cpus, memory=memory, image=image,
        env=env or [], host=host, tier=tier, runtime=runtime, max_price=max_price, await_files=files,
    )  # fmt: skip
    plan = patiently(lambda: _fitting(api, request), SOON_S, say)
    print_plan(plan)
    if not as_json:
        print_tested(plan)
    cluster = api.create_cluster(request, tell=say)
    with deleted_at_the_end(api, cluster["id"]):
        code = _work(api, cluster["id"], parcel, files)
    receipt = api.receipt_of(cluster["id"])
    if as_json:
        print_json({"exit_code": code, "receipt": receipt})
    else:
        sys.stdout.flush()
        print_receipt(receipt)
    raise typer.Exit(code)


def _fitting(api: Client, request: dict[str, Any]) -> dict[str, Any]:
    plan: dict[str, Any] = api.plan(request)
    if not plan["fits"]:
        said = {"code": "no_capacity", "detail": "No host fits this request now.", "reasons": plan["refusals"]}
        raise ApiProblem(409, said, PAUSE_S if plan.get("fits_soon") else 0)
    return plan


def _work(api: Client, cluster_id: str, parcel: folder.Parcel, files: bool) -> int:
    progress = Progress()
    ready = _may_take_files if files else _has_started
    api.wait_cluster(cluster_id, ready, CREATE_TIMEOUT_S, progress)
    if files:
        say(f"  sending {len(parcel.files)} file(s), {size_text(parcel.size_bytes)}")
        _send(api, cluster_id, parcel)
    api.wait_cluster(cluster_id, _has_started, CREATE_TIMEOUT_S, progress)
    for data in api.logs(cluster_id, follow=True):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    ended = api.wait_cluster(cluster_id, _has_exited, 60.0)
    if ended["phase"] == "Failed" and not has_run(ended):
        raise WindrowClientError(f"{cluster_id} failed: {ended.get('reason') or 'no reason was given'}")
    code = _exit_code(ended)
    if files:
        names, cut = fetch_files(api, cluster_id, parcel.root, changed=True)
        say(
            f"  {len(names)} changed file(s) came back"
            + (": " + ", ".join(names[:8]) if names else "")
            + (" (CUT at 1 GiB)" if cut else "")
        )
    return code


def _send(api: Client, cluster_id: str, parcel: folder.Parcel) -> None:
    with TemporaryFile() as file:
        folder.pack(parcel, file)
        file.seek(0)
        api.put_files(cluster_id, file, commit=True)


def _phases(cluster: dict[str, Any]) -> set[str]:
    return {workload["phase"] for workload in cluster.get("workloads") or []}


def _may_take_files(cluster: dict[str, Any]) -> bool:
    return _is_beyond(cluster, {"waiting_files", "running", "exited"})


def _has_started(cluster: dict[str, Any]) -> bool:
    return _is_beyond(cluster, {"running", "exited"})


def _is_beyond(cluster: dict[str, Any], phases: set[str]) -> bool:
    """Whether all of its work is in one of these, or has ended by itself."""
    if has_run(cluster):
        return True
    if cluster["phase"] == "Failed":
        raise WindrowClientError(f"{cluster['id']} failed: {cluster.get('reason') or 'no reason was given'}")
    return bool(_phases(cluster)) and _phases(cluster) <= phases


def _has_exited(cluster: dict[str, Any]) -> bool:
    return cluster["phase"] in ENDED or (bool(_phases(cluster)) and _phases(cluster) <= {"exited", "gone", "failed"})


def _exit_code(cluster: dict[str, Any]) -> int:
    codes = [w.get("exit_code") for w in cluster.get("workloads") or []]
    known = [code for code in codes if code is not None]
    if not known:
        return EXIT_FAILURE
    worst = max(known, key=abs)
    return worst if 0 <= worst <= 255 else EXIT_CONFLICT
