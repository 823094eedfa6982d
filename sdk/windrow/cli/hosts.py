"""`windrow host`, `gpu`, `offer`, `command`, `event`: what there is and what it is doing."""

import json
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from windrow.cli import completing, resolving
from windrow.cli.context import AsJson, Watch, client
from windrow.cli.output import (
    facts,
    field_text,
    out,
    plain,
    print_json,
    print_whole,
    rate_text,
    ratio_text,
    say,
    size_text,
)
from windrow.cli.tables import Column, Table, View, ago, id_column, lists, money_column, spoken, time_column
from windrow.client import Client
from windrow.errors import ApiProblem
from windrow.words import money_or_none

host_app = typer.Typer(help="Hosts: list, show, drain, measure, verify, prove.", no_args_is_help=True)
gpu_app = typer.Typer(help="GPUs of all hosts.", no_args_is_help=True)
offer_app = typer.Typer(help="GPUs that you can rent, with prices.", no_args_is_help=True)
command_app = typer.Typer(help="Commands sent to hosts, with their results.", no_args_is_help=True)
event_app = typer.Typer(help="Event history.", no_args_is_help=True)

Host = Annotated[
    str, typer.Argument(metavar="NAME|ID", help="Name or id of the host.", autocompletion=completing.hosts)
]
Card = Annotated[
    str, typer.Argument(metavar="HOST/INDEX|UUID", help="GPU: as my-host/0, or its UUID or the start of it.")
]

NO_HOSTS = "No hosts yet. Make a join token (`windrow token add --join`) and run the line it prints on a GPU host."
LINK_STATES = ("unseen", "unknown", "online", "suspect", "lost")
USERS = {"own": "their own", "host": "the host's"}
"""The users that a host's containers have."""


def _live(item: dict[str, Any], name: str) -> Any:
    return (item.get("live") or {}).get(name)


def _bandwidth(item: dict[str, Any]) -> str | None:
    measured = item.get("bandwidth") or {}
    return _of(rate_text, measured.get("down_bps"), measured.get("up_bps"), " / ")


def _of(say: Callable[[Any], str], one: Any, other: Any, between: str = " of ") -> str | None:
    """Two figures in one cell; None where neither is known."""
    return None if one is None and other is None else f"{say(one)}{between}{say(other)}"


def _unit(value: Any, unit: str) -> str | None:
    return None if value is None else f"{value} {unit}"


def _joined(*parts: Any) -> str | None:
    """Those of these that are known, with commas; None: none is."""
    return ", ".join(str(part) for part in parts if part is not None) or None


def _with_reason(state: Any, reason: Any) -> str:
    return f"{state}: {reason}" if reason else str(state)


def gpu_state(gpu: dict[str, Any]) -> str:
    """The state of a GPU as the Master says it, with its reason; of an older Master, the state of its slot."""
    if "state_text" in gpu:
        return _with_reason(gpu["state_text"], gpu.get("state_reason"))
    return _with_reason(gpu.get("slot_state") or "–", gpu.get("unavailable_reason"))


def _slot_state(slot: dict[str, Any]) -> str:
    if "state_text" in slot:
        return _with_reason(slot["state_text"], slot.get("state_reason"))
    return _with_reason(slot["state"], slot.get("unavailable"))


def step_text(step: dict[str, Any]) -> str:
    """One step of a test rental in a line."""
    took = "" if step["took_ms"] is None else f", {step['took_ms'] / 1000:.1f} s"
    state = "not tried" if step["state"] == "absent" else step["state"]
    return f"{step['name']}: {state}{took}: {step['words']}"


def stage_text(stage: dict[str, Any]) -> str:
    """How far a host has come, in two or three words."""
    return f"{stage['name']}: {stage['state']}" + (f" {ago(stage['at'])}" if stage["at"] else "")


def _mark(item: dict[str, Any]) -> str:
    return " (simulated)" if item["simulated"] else ""


HOSTS = Table(
    (
        id_column(rank=2),
        Column("NAME", lambda h: h["name"] + _mark(h), most=24),
        Column("STATE", lambda h: h["headline"]),
        money_column("PRICE/H", lambda h: h.get("price_per_hour")),
        Column("GPUS", lambda h: len(h.get("gpus") or [])),
        Column("TIER", lambda h: h.get("tier"), 1),
        Column("CPU", lambda h: ratio_text(_live(h, "cpu_ratio")), 3),
        Column("MEMORY", lambda h: _of(size_text, _live(h, "memory_used_bytes"), h.get("memory_bytes")), 4),
        Column("DOWN / UP", lambda h: _bandwidth(h), 5),
        Column("WHY", lambda h: h.get("headline_reason"), 2, 24),
    ),
    NO_HOSTS,
    name=lambda h: h["name"],
    states=lambda h: (h["headline"], h.get("admin_state"), h.get("link_state")),
    state_words=(
        *("retired", "quarantined", "offline", "maintenance", "draining", "enrolled", "verifying", "degraded"),
        *("rented", "idle", "paused", "active", *LINK_STATES),
    ),
    owner=lambda h: h.get("owner_account"),
)


@host_app.command("ls")
@lists(HOSTS)
def host_ls(context: typer.Context, view: View, watch: Watch = False) -> None:
    """List hosts; retired ones only with `--state retired`."""
    api = client(context)
    view.print(api, api.items("/hosts", state=view.state))
    if watch:
        _watch(api, "/fleet/stream", view.is_json)


@host_app.command("export")
def host_export(
    context: typer.Context,
    host: Host,
    metric: Annotated[list[str], typer.Option(help="A metric's name; repeat it for more.")],
    into: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; default: standard output.")] = None,
    file_format: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
    gpu: Annotated[str | None, typer.Option(help="Only this GPU.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="Start, as 2027-01-15T08:00:00Z; default: an hour ago.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="End; default: now.")] = None,
    step: Annotated[int | None, typer.Option(help="Seconds between points.")] = None,
) -> None:
    """Write the history of a host as CSV or Parquet."""
    api = client(context)
    named = resolving.found(api, resolving.HOSTS, host)
    gpu = None if gpu is None else resolving.gpu(api, gpu)
    wanted = {"metric": metric, "format": file_format, "gpu": gpu, "start": start, "end": end, "step_s": step}
    if into is None:
        api.export(named, sys.stdout.buffer, **wanted)
        return
    draft = into.with_name(into.name + ".part")
    try:
        with draft.open("wb") as file:
            size = api.export(named, file, **wanted)
        draft.replace(into)
    finally:
        draft.unlink(missing_ok=True)
    say(f"{size} bytes in {into}")


@host_app.command("show")
def host_show(context: typer.Context, host: Host, as_json: AsJson = False) -> None:
    """Show everything about one host."""
    api = client(context)
    item = api.get(f"/hosts/{resolving.found(api, resolving.HOSTS, host)}")
    if as_json:
        print_json(item)
        return
    verification = _of_host(api, item["id"], "verification")
    standing = _of_host(api, item["id"], "standing")
    proof = _of_host(api, item["id"], "proof")
    cards = {one["uuid"] for one in item.get("gpus") or []}
    told = f"{item.get('headline_reason') or ''} {item.get('headline_remedy') or ''}"
    facts(
        [
            ("Host", f"{item['name']} ({item['id']})" + (" SIMULATED" if item["simulated"] else "")),
            ("State", _with_reason(item["headline"], item.get("headline_reason"))),
            *([("What to do", item["headline_remedy"])] if item.get("headline_remedy") else []),
            ("Relay", _relay(item)),
            ("System", _joined(item.get("os"), item.get("kernel"))),
            ("CPUs", _joined(item.get("cpu_model"), _unit(item.get("cpu_count"), "logical"))),
            ("Memory", _of(size_text, _live(item, "memory_used_bytes"), item.get("memory_bytes"))),
            ("Driver", item.get("driver_version")),
            ("Runtimes", ", ".join(item.get("runtimes") or [])),
            ("Users of containers", USERS.get(item.get("container_users"))),
            ("Default image", item.get("default_image")),
            ("Country", item.get("country")),
            ("Labels", ", ".join(item.get("labels") or ()) or None),
            ("Bandwidth down / up", _bandwidth(item)),
            *_host_verified(verification),
            ("Reliability", standing and standing["reliability"]["words"]),
            *_host_proved(proof),
            ("Tier", item.get("tier")),
            *[("", f"- {reason}") for reason in item.get("tier_reasons") or []],
            ("Price per hour", money_or_none(item.get("price_per_hour"))),
            *_conditions(item.get("conditions") or [], told=told),
            *[
                ("GPU", f"{g['index']} {g['name']} {size_text(g.get('memory_bytes'))} {_unsaid(gpu_state(g), told)}")
                for g in item.get("gpus") or []
            ],
            *[(_slot_name(s), _slot_state(s)) for s in item.get("slots") or [] if s.get("gpu_uuid") not in cards],
        ]
    )


@host_app.command("why")
def host_why(context: typer.Context, host: Host, as_json: AsJson = False) -> None:
    """Explain why a host is not rented."""
    api = client(context)
    standing = api.get(f"/hosts/{resolving.found(api, resolving.HOSTS, host)}/standing")
    if as_json:
        print_json(standing)
        return
    if not standing["unrented"]:
        say("All GPUs and CPUs of this host are rented.")
    for slot in standing["unrented"]:
        print_whole(f"{slot.get('name') or slot['slot_id']} ({slot['tier'] or 'no grade yet'})")
        for reason in slot["reasons"]:
            print_whole(f"  - {reason}")


def _of_host(api: Client, host_id: str, what: str) -> dict[str, Any] | None:
    """More of a host; None where the Master is older than that."""
    try:
        found: dict[str, Any] = api.get(f"/hosts/{host_id}/{what}")
    except ApiProblem as problem:
        if problem.status != HTTPStatus.NOT_FOUND:
            raise
        return None
    return found


def _relay(host: dict[str, Any]) -> str | None:
    rtt = host.get("rtt_ms")
    return _joined(host.get("region") or host.get("access_id"), None if rtt is None else f"{rtt:.1f} ms away")


def _slot_name(slot: dict[str, Any]) -> str:
    """Of processors, or of a part of a GPU."""
    return f"Part {slot['profile']}" if slot.get("profile") else "CPUs"


def _unsaid(state: str, told: str) -> str:
    """A state without its reason where that was told above."""
    word, _, reason = state.partition(": ")
    return word if reason and reason.rstrip(".") in told else state


def _conditions(found: list[dict[str, Any]], name: str = "Problem", told: str = "") -> list[tuple[str, Any]]:
    """Each condition with its remedy; without one where the Master is older than that. told: text above it, whose
    sentences are not said again."""
    lines: list[tuple[str, Any]] = []
    for one in found:
        about = one.get("about")
        title = one.get("title") or one["code"].partition(":")[0]
        said = f"{about}: {title}" if about else title
        detail = "" if one["detail"].rstrip(".") in told else f": {one['detail']}"
        lines.append((name, f"{said}{detail} ({ago(one['since'])})"))
        lines += [("", f"- {one['remedy']}")] if one.get("remedy") and one["remedy"] not in told else []
    return lines


def _host_verified(verification: dict[str, Any] | None) -> list[tuple[str, Any]]:
    if verification is None:
        return [("Verification", None)]
    return [
        ("Verification", f"{verification['state']}: {verification['words']}"),
        ("", f"next due: {ago(_due(verification))}"),
    ]


def _host_proved(proof: dict[str, Any] | None) -> list[tuple[str, Any]]:
    if proof is None:
        return [("Proof", None)]
    newest = (proof["proofs"] or [{"steps": []}])[0]
    return [
        ("Proof", proof["words"]),
        *[("", f"- {step_text(step)}") for step in newest["steps"]],
        ("Since joining", "; ".join(stage_text(stage) for stage in proof["stages"])),
    ]


def _due(verification: dict[str, Any]) -> str:
    return verification["due_at"] or "as soon as a GPU is free and the host is connected"


def _card_verified(verification: dict[str, Any] | None, gpu: dict[str, Any]) -> list[tuple[str, Any]]:
    """Returns the outcome of the newest challenge of one card, or the way to start one."""
    if verification is None:
        return [("Verification", None)]
    card = next((one for one in verification["gpus"] if one["gpu_uuid"] == gpu["uuid"]), None)
    if card is None and gpu["simulated"]:
        return [("Verification", verification["words"])]
    if card is None:
        return [("Verification", f"Not challenged yet: `windrow host verify {gpu['host_id']}`.")]
    bound = {True: f"calibrated: {card.get('times')}", False: "observed: its time decides nothing"}
    return [
        ("Verification", f"{card['outcome']} at {card['at']}: {card['detail']}"),
        ("", f"asked: {_work(card)}"),
        ("", f"time: {_seconds(card['span_ms'])} of at most {_seconds(card.get('bound_ms'))}"),
        ("", f"bound: {bound.get(card.get('calibrated'), '–')}"),
        ("", f"beside {card.get('cards') or '–'} of its class: {card.get('together') or '–'}"),
        ("", f"memory: {_memory(card)}"),
        ("", f"evidence: {card['verification_id']}, nonce {card['nonce'] or '–'}"),
        ("", f"next due: {_due(verification)}"),
    ]


def _work(card: dict[str, Any]) -> str:
    if card["size"] is None:
        return "–"
    return f"{card['rounds']} rounds of {card['size']} x {card['size']}, {card['openings']} openings"


def _memory(card: dict[str, Any]) -> str:
    if card.get("memory") is None:
        return "not filled"
    filled = f"{size_text(card['memory_filled_bytes'])} of {size_text(card['memory_claimed_bytes'])} filled"
    return f"{card['memory']}, {filled}, {card['memory_wrong']} of {card['memory_probes']} places wrong"


def _seconds(ms: int | None) -> str:
    return "–" if ms is None else f"{ms / 1000:.2f} s"


def _action(name: str, help_text: str) -> None:
    def run(
        context: typer.Context,
        host: Host,
        reason: Annotated[str, typer.Option(help="Reason; kept in the audit log.")] = "",
    ) -> None:
        api = client(context)
        item = api.request(
            "POST", f"/hosts/{resolving.found(api, resolving.HOSTS, host)}/{name}", body={"reason": reason}
        )
        remedy = f". {item['headline_remedy']}" if item.get("headline_remedy") else "."
        say(f"{host}: {name} done. It is {_with_reason(item['headline'], item.get('headline_reason'))}{remedy}")

    run.__doc__ = help_text
    host_app.command(name)(run)


for _name, _help in (
    ("drain", "Take no new work; what runs goes on."),
    ("activate", "Take work again."),
    ("maintenance", "Put the host in maintenance (no new work)."),
    ("quarantine", "Quarantine: reject the host until it is verified."),
    ("retire", "End its membership for good."),
):
    _action(_name, _help)


@host_app.command("set")
def host_set(
    context: typer.Context,
    host: Host,
    default_image: Annotated[
        str | None, typer.Option(help="Image for requests that name none; all renters of this host can use it.")
    ] = None,
    no_default_image: Annotated[bool, typer.Option("--no-default-image", help="Remove the default image.")] = False,
    country: Annotated[
        str | None, typer.Option(metavar="CC", help="Country of the host, two capital letters; '' for none.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="WORD or KEY=VALUE that requests can ask for; replaces all. Repeatable."),
    ] = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Remove all labels.")] = False,
) -> None:
    """Set the default image, the country and the labels of a host."""
    says_image, says_place = default_image is not None or no_default_image, country is not None or label or no_labels
    if (default_image is not None and no_default_image) or (label and no_labels) or not (says_image or says_place):
        raise typer.BadParameter(
            "Give either --default-image or --no-default-image, or a --country, a --label or --no-labels."
        )
    api = client(context)
    path = f"/hosts/{resolving.found(api, resolving.HOSTS, host)}"
    if says_image:
        item = api.request("PUT", f"{path}/default-image", body={"image": default_image})
        say(f"{item['name']}: default image {item['default_image'] or 'none'}.")
    if says_place:
        item = api.get(path)
        labels = [] if no_labels else label or item["labels"]
        place = {"country": item["country"] if country is None else country or None, "labels": labels}
        item = api.request("PUT", f"{path}/place", body=place)
        say(f"{item['name']}: country {item['country'] or 'not known'}, labels {', '.join(item['labels']) or 'none'}.")


@host_app.command("simulate")
def host_simulate(
    context: typer.Context, count: Annotated[int, typer.Argument(min=0, help="How many; 0 takes them away.")]
) -> None:
    """Have simulated hosts to look around (only in a market that `windrow up` started)."""
    item = client(context).request("PUT", "/simulated-hosts", body={"count": count})
    say(f"{item['wanted']} simulated hosts are there within a minute; see `windrow host ls`.")


@host_app.command("measure")
def host_measure(context: typer.Context, host: Host) -> None:
    """Measure the bandwidth of a host through its relay now."""
    api = client(context)
    answer = api.request("POST", f"/hosts/{resolving.found(api, resolving.HOSTS, host)}/measure")
    say(f"Measuring; see `windrow command ls --host {host}` (operation {answer['operation']['id']}).")


@host_app.command("verify")
def host_verify(context: typer.Context, host: Host) -> None:
    """Verify all free GPUs of a host now."""
    api = client(context)
    answer = api.request("POST", f"/hosts/{resolving.found(api, resolving.HOSTS, host)}/verify")
    say(f"Verifying the host's free GPUs; see `windrow host show {host}` (operation {answer['operation']['id']}).")


@host_app.command("prove")
def host_prove(context: typer.Context, host: Host) -> None:
    """Prove a host: rent it for a moment now, as a renter would."""
    api = client(context)
    answer = api.request("POST", f"/hosts/{resolving.found(api, resolving.HOSTS, host)}/prove")
    say(f"Renting the host for a moment; see `windrow host show {host}` (operation {answer['operation']['id']}).")


GPUS = Table(
    (
        id_column(lambda g: g["uuid"], "GPU"),
        Column("HOST", lambda g: g["host_name"] + _mark(g), most=20),
        Column("MODEL", lambda g: g["name"], 1, 24),
        Column("STATE", lambda g: g.get("state_text") or g.get("slot_state")),
        money_column("PRICE/H", lambda g: g.get("price_per_hour")),
        Column("TIER", lambda g: g.get("tier"), 3),
        Column("UTIL", lambda g: ratio_text(g.get("utilization_ratio")), 2),
        Column("MEMORY", lambda g: _of(size_text, g.get("memory_used_bytes"), g.get("memory_bytes")), 4),
        Column("TEMP", lambda g: field_text(g.get("temperature_celsius"), "Cel"), 5),
        Column("POWER", lambda g: field_text(g.get("power_watts"), "W"), 6),
    ),
    "No GPUs. Hosts without one still run CPU work: `windrow host ls`.",
    name=lambda g: g["host_name"],
    states=lambda g: (str(g.get("state_text")).partition(",")[0], g.get("slot_state"), g.get("link_state")),
    state_words=(
        *("rented", "idle", "paused", "faulty", "offline", *LINK_STATES),
        *("free", "reserved", "starting", "running", "stopping", "scrubbing", "faulted"),
    ),
)


@gpu_app.command("ls")
@lists(GPUS)
def gpu_ls(context: typer.Context, view: View, watch: Watch = False) -> None:
    """List GPUs with their newest readings. `--name`: of the host."""
    api = client(context)
    view.print(api, api.get("/gpus")["items"])
    if watch:
        _watch(api, "/fleet/stream", view.is_json)


@gpu_app.command("show")
def gpu_show(context: typer.Context, gpu: Card, as_json: AsJson = False) -> None:
    """Show one GPU: all its fields, the reasons for its tier, and findings."""
    api = client(context)
    item = api.get(f"/gpus/{resolving.gpu(api, gpu)}")
    if as_json:
        print_json(item)
        return
    facts(
        [
            ("GPU", f"{item['name']} ({item['uuid']})" + (" SIMULATED" if item["simulated"] else "")),
            ("Host", f"{item['host_name']} ({item['host_id']}), {item['link_state']}"),
            ("State", gpu_state(item)),
            ("Isolation", item.get("isolation")),
            *[("Slice", _slice_text(one)) for one in item.get("slices", [])],
            ("May be cut into", ", ".join(item.get("layout", [])) or "nothing: it stays whole"),
            ("Tier", item["tier"]),
            *[("", f"- {reason}") for reason in item["tier_reasons"]],
            ("Price per hour", money_or_none(item["price_per_hour"])),
            *_conditions(item["conditions"]),
            *_conditions(item["claims"], "Claim"),
            *_card_verified(_of_host(api, item["host_id"], "verification"), item),
            *[
                ("Measured", f"{b['name']}: {b['value']:g} {b['unit']} at {b['measured_at']}")
                for b in item["benchmarks"]
            ],
        ]
    )
    for group in item["groups"]:
        out.print()
        print_whole(group["name"])
        facts((f"  {one['label']}", field_text(one["value"], one["unit"])) for one in group["fields"])


def _slice_text(slot: dict[str, Any]) -> str:
    share = f"{slot['share_milli'] / 10:g} % of it, isolation {slot['isolation']}"
    return f"{slot['profile']} {slot['id']}: {_slot_state(slot)} ({share})"


@gpu_app.command("cut")
def gpu_cut(
    context: typer.Context,
    host: Host,
    gpu: Card,
    whole: Annotated[bool, typer.Option("--whole", help="Make the GPU whole again.")] = False,
) -> None:
    """Cut an idle GPU of a drained host into the slices that its owner allows (`--mig` of its agent)."""
    api = client(context)
    named = resolving.found(api, resolving.HOSTS, host)
    answer = api.request("POST", f"/hosts/{named}/gpus/{resolving.gpu(api, gpu)}/partition", body={"whole": whole})
    say(f"The host was asked; see `windrow command ls --host {host}` (operation {answer['operation']['id']}).")


def free_text(offer: dict[str, Any]) -> str:
    """How much of a tier is free, and of what: `23 of 160 GPUs`; of processors the hosts that have any left."""
    noun = "host" if offer["unit"] == "processor" else "slice" if ":" in offer["tier"] else "GPU"
    return f"{offer['free']} of {offer['total']} {noun}{'' if offer['total'] == 1 else 's'}"


OFFERS = Table(
    (
        Column("TIER", lambda o: o["tier"]),
        Column("FREE", lambda o: free_text(o)),
        money_column("PRICE/H", lambda o: o.get("price_per_hour")),
        Column("HOSTS", lambda o: o.get("hosts"), 1),
        Column("SUGGESTED", lambda o: o.get("suggestion"), 4),
        Column("ISOLATION", lambda o: o.get("isolation"), 2),
        Column("CONTAINER USERS", lambda o: USERS.get(str(o.get("container_users"))), 6),
        Column("RUNTIMES", lambda o: ", ".join(o.get("runtimes") or []), 3, 20),
        Column("NOTES", lambda o: "; ".join(o.get("notes") or []), 5, 20),
    ),
    "Nothing can be rented now. See each host's state: windrow host ls",
    name=lambda o: o["tier"],
)


@offer_app.command("ls")
@lists(OFFERS)
def offer_ls(context: typer.Context, view: View) -> None:
    """List what can be rented, by tier. `--name`: of the tier, as h100/*."""
    api = client(context)
    view.print(api, api.items("/offers"))


@offer_app.command("set")
def offer_set(context: typer.Context, tier: str, price_per_hour: str) -> None:
    """Set the hourly price of a tier (new rentals only)."""
    client(context).request("PUT", f"/offers/{tier}", body={"price_per_hour": price_per_hour})
    say(f"{tier}: {price_per_hour} per hour from the next rental on.")


def _plainly(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else plain(value)


def _error(command: dict[str, Any]) -> Any:
    error = command.get("error")
    return error.get("detail") if isinstance(error, dict) else error


COMMANDS = Table(
    (
        id_column(),
        Column("KIND", lambda c: c["kind"], show=spoken),
        Column("STATE", lambda c: c["state"], show=spoken),
        Column("HOST", lambda c: c.get("host_name") or c["host_id"], 1, show=resolving.shortened),
        time_column("CREATED", lambda c: c["created_at"], 2),
        Column("STEP", lambda c: c.get("step"), 4, 20, spoken),
        Column("ERROR", _error, 3, 20),
    ),
    "No commands yet.",
    name=lambda c: c["kind"],
    states=lambda c: (c["state"],),
    state_words=(
        *("queued", "sent", "accepted", "running", "succeeded", "failed", "cancelled", "timed_out", "unknown"),
    ),
    at=lambda c: c["created_at"],
)


@command_app.command("ls")
@lists(COMMANDS)
def command_ls(
    context: typer.Context,
    view: View,
    host: Annotated[str | None, typer.Option(help="Only commands of this host, by name or id.")] = None,
) -> None:
    """List commands, newest first. `--name`: of the kind."""
    api = client(context)
    view.print(api, api.items("/commands", host=resolving.host(api, host)))


@command_app.command("show")
def command_show(context: typer.Context, command: str, as_json: AsJson = False) -> None:
    """Show one command: its state and result."""
    api = client(context)
    item = api.get(f"/commands/{resolving.found(api, resolving.COMMANDS, command)}")
    if as_json:
        print_json(item)
        return
    facts(
        [
            ("Command", f"{item['kind']} ({item['id']})"),
            ("Host", item["host_id"]),
            ("About", item["subject"]),
            ("State", spoken(item["state"])),
            ("Step", spoken(item["step"])),
            ("Error", _error(item)),
            ("Created", item["created_at"]),
            ("Sent", item["sent_at"]),
            ("Done", item["done_at"]),
            *[("Result", f"{name}: {_plainly(value)}") for name, value in (item["result"] or {}).items()],
        ]
    )


Severity = Literal["info", "notice", "warning", "error"]
SEVERITIES: Sequence[Severity] = get_args(Severity)


def event_text(event: dict[str, Any]) -> str:
    """What happened, with the names of things in the place of their ids."""
    return resolving.named(str(event["text"]), event.get("names"))


def _by(event: dict[str, Any]) -> str | None:
    actor = event.get("actor")
    return actor and resolving.actor_name(actor, event.get("names"))


EVENTS = Table(
    (
        time_column("AT", lambda e: e["at"]),
        Column("SEVERITY", lambda e: e.get("severity"), 1),
        Column("KIND", lambda e: e.get("title") or spoken(e["kind"]), 2, 24),
        Column("WHAT", event_text, most=48, show=resolving.shortened),
        Column("ACTOR", _by, 3, show=resolving.shortened),
    ),
    "Nothing has happened yet.",
    name=lambda e: e["kind"],
    at=lambda e: e["at"],
)


@event_app.command("ls")
@lists(EVENTS, limit=200)
def event_ls(
    context: typer.Context,
    view: View,
    subject: Annotated[
        str | None, typer.Option(help="Only about this host, GPU, machine or job, by name or id.")
    ] = None,
    severity: Annotated[
        Severity | None,
        typer.Option(
            help="At least so severe. A list of everything on a screen leaves out `info`, which is everyday work.",
        ),
    ] = None,
    watch: Watch = False,
) -> None:
    """List events, newest first. `--name`: of the kind, as host.*."""
    api = client(context)
    about = None if subject is None else resolving.subject(api, subject)
    is_everything = subject is None and view.name is None and view.form == "table"
    least = severity or ("notice" if is_everything else None)
    since = None if view.since is None else view.since.isoformat()
    view.print(api, api.items("/events", subject=about, severity=least, since=since))
    if severity is None and is_everything and out.is_terminal:
        say("Everyday work is left out: --severity info shows it.")
    if watch:
        _watch(api, "/events/stream", view.is_json, SEVERITIES.index(least or "info"))


def _watch(api: Any, path: str, as_json: bool, least: int = 0) -> None:
    for _, name, data in api.events(path):
        if name == "event" and SEVERITIES.index(data["severity"]) < least:
            continue
        if as_json:
            print_json(data)
        elif name == "rows":
            for row in data.get("rows", []):
                load = ratio_text(row.get("utilization_ratio"))
                say(f"{row['host_name']} {row['name']} {row.get('state_text') or row.get('slot_state')} {load}")
        else:
            say(plain(event_text(data) if data.get("text") else data))
