"""`windrow cluster stop`, `start` and `extend`: end what a cluster runs, rent it anew under the same name and id, or
let it run for longer."""

import sys
from decimal import Decimal
from typing import Annotated, Any

import typer

from windrow.cli import quoting
from windrow.cli.cluster_text import RESTS, ends, print_plan, print_tested
from windrow.cli.clusters import (
    Login,
    MaxPrice,
    Which,
    cluster_app,
    cluster_id,
    login_part,
    show_plan,
    started,
    tell_unsaved,
)
from windrow.cli.context import AsJson, Yes, client, confirm
from windrow.cli.output import print_json, say
from windrow.errors import InvalidInput

STOP_TIMEOUT_S = 180.0


@cluster_app.command("stop")
def cluster_stop(
    context: typer.Context,
    cluster: Which,
    yes: Yes = False,
    wait: Annotated[bool, typer.Option(help="Wait until the machine is stopped.")] = True,
    as_json: AsJson = False,
) -> None:
    """End what it runs, at no cost from then on, and keep it to be started again."""
    api = client(context)
    found = cluster_id(api, cluster)
    if not yes and sys.stdin.isatty():
        confirm(f"Stop {cluster}? What was written outside of its volumes and not fetched is gone.")
    item = api.stop_cluster(found)
    if wait:
        item = api.wait_cluster(found, lambda c: c["phase"] in RESTS, STOP_TIMEOUT_S)
        tell_unsaved(api, item)
    if as_json:
        print_json(item)
    else:
        say(f"{item['name']} is {item['phase']}. Start it again: windrow cluster start {item['name']}")


@cluster_app.command("start")
def cluster_start(
    context: typer.Context,
    cluster: Which,
    max_price: MaxPrice = None,
    login: Login = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show where it would run, and the price.")] = False,
    yes: Yes = False,
    wait: Annotated[bool, typer.Option(help="Wait until the machine runs.")] = True,
    as_json: AsJson = False,
) -> None:
    """Rent and start anew what was stopped."""
    api = client(context)
    found = cluster_id(api, cluster)
    if plan or not yes:
        stopped = api.cluster(found)
        answer = api.plan(_asked(stopped, max_price))
        if plan:
            show_plan(answer, as_json)
            return
        if answer["fits"] and stopped["phase"] == "Stopped":
            print_plan(answer)
            if not as_json:
                print_tested(answer)
            if sys.stdin.isatty():
                confirm(f"Start {cluster} for {answer['price_per_hour']} per hour?")
            else:
                quoting.agree_to(answer, yes)
    body: dict[str, Any] = {"max_price_per_hour": max_price} if max_price else {}
    item = api.start_cluster(found, body | login_part(login), tell=say)
    if item["request"].get("await_files"):
        say("The machine waits for its files; send them as after creating it.")
        wait = False
    started(api, item, wait, as_json)


@cluster_app.command("extend")
def cluster_extend(
    context: typer.Context,
    cluster: Which,
    hours: Annotated[float, typer.Option("--hours", min=0.01, help="How many hours longer.")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Let a running cluster with a --max-duration run for longer."""
    api = client(context)
    found = api.cluster(cluster_id(api, cluster))
    now = found["request"].get("max_duration_seconds")
    if now is None:
        raise InvalidInput(f"{found['name']} has no --max-duration, and does not end by it.")
    most = Decimal(found["price_per_hour"] or 0) * Decimal(str(hours))
    if not yes and sys.stdin.isatty():
        confirm(f"Let {found['name']} run for {hours:g} h longer, for at most {most:.4f} more?")
    asked = {"max_duration_seconds": int(now + hours * 3600)}
    item = api.request("POST", f"/clusters/{found['id']}/extend", body=asked)
    if as_json:
        print_json(item)
    else:
        say(f"{item['name']} ends {ends(item)}.")


def _asked(cluster: dict[str, Any], max_price: str | None) -> dict[str, Any]:
    """Returns the cluster's own request, as a plan takes it: without its name, which may be older than a rule."""
    asked = {name: value for name, value in cluster["request"].items() if value is not None and name != "name"}
    return asked | ({"max_price_per_hour": max_price} if max_price else {})
