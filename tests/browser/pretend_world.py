"""Made-up hosts, cards and clusters in the shapes of the HTTP API, for tests of the console alone. Never shipped."""

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from windrow_master.api.condition_shapes import condition_json
from windrow_master.api.event_severity import severity_of
from windrow_master.api.event_texts import title_of
from windrow_master.api.gpu_shapes import field_json
from windrow_proto.gpu_fields import GPU_FIELDS, Group, fact
from windrow_proto.host_fields import HOST_FIELDS, HostGroup, value
from windrow_proto.ids import GpuUuid
from windrow_proto.metrics import BENCHMARK_NAMES
from windrow_proto.model import GpuFacts, Inventory

Json = dict[str, Any]

MODELS = (
    ("NVIDIA H100 80GB HBM3", 80, "h100/A", "1.9000", 700),
    ("NVIDIA A100-SXM4-40GB", 40, "a100/A", "0.9500", 400),
)
REGIONS = ("north", "south")
GIB = 1024**3
PROOF_WORDS = "SSH reached in 1.9 s, 941 Mbit/s up and 938 Mbit/s down measured by one relay, CPU · grade A"


def at(seconds_ago: float = 0.0) -> str:
    """A time as the API writes it."""
    return (
        (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


@dataclass
class World:
    """The state of the pretend Master; tests reach in and change it."""

    hosts: dict[str, Json] = field(default_factory=dict)
    gpu_rows: dict[str, Json] = field(default_factory=dict)
    clusters: dict[str, Json] = field(default_factory=dict)
    receipts: dict[str, Json] = field(default_factory=dict)
    templates: dict[str, Json] = field(default_factory=dict)
    volumes: dict[str, Json] = field(default_factory=dict)
    secrets: dict[str, Json] = field(default_factory=dict)
    resources: dict[str, Json] = field(default_factory=dict)
    bindings: dict[str, Json] = field(default_factory=dict)
    backends: list[Json] = field(default_factory=list)
    purchases: list[Json] = field(default_factory=list)
    buyers: list[Json] = field(default_factory=list)
    """Projects that may buy, each with the name of its backend."""
    tokens: list[Json] = field(default_factory=list)
    people: list[Json] = field(default_factory=list)
    used_links: list[str] = field(default_factory=list)
    members: list[Json] = field(default_factory=list)
    providers: list[Json] = field(default_factory=list)
    projects: list[Json] = field(default_factory=list)
    invitations: list[Json] = field(default_factory=list)
    shares: list[Json] = field(default_factory=list)
    received: list[Json] = field(default_factory=list)
    project: Json | None = None
    """The one that sessions act in, once another one was chosen."""
    profile: Json = field(
        default_factory=lambda: {
            "address": "ada@example.org",
            "has_password": True,
            "has_second_factor": False,
            "recovery_codes_left": None,
        }
    )
    """What is known of whoever signs in, beside the name."""
    simulated_hosts: int = 0
    """To be run by `windrow up`."""
    sends_mail: bool = False
    services: list[Json] = field(default_factory=list)
    """Service accounts."""
    limits: dict[str, Json] = field(default_factory=dict)
    """Spending limits that are set, by the id of whose they are."""
    users: list[Json] = field(default_factory=list)
    """Of the installation, as operators see them."""
    deleted_projects: list[Json] = field(default_factory=list)
    offers: list[Json] = field(default_factory=list)
    """Projects that one organisation offers to another."""
    in_use: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What goes on in a project, by its id: sentences, each with what to do."""
    is_signed_out: bool = False
    """The sessions have ended: their user left, or is deleted."""
    command_line: str | None = "curl -fsS https://market.example:8443/install-cli.sh | sh"
    """The line that installs `windrow`; None: there is no HTTPS."""
    devices: dict[str, str] = field(default_factory=dict)
    """By the user code of each device: waiting, approve or refuse."""
    is_stale: bool = False
    """Whoever is signed in is asked to sign in again before an act of weight."""
    join_tokens: list[Json] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    troubles: list[Json] = field(default_factory=list)
    """That need attention."""
    alerts: list[Json] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)
    """Of alerts, the latest first."""
    read_number: int = 0
    """Of the last message that was read."""
    alert_rules: list[Json] = field(default_factory=list)
    silences: list[Json] = field(default_factory=list)
    windows: list[Json] = field(default_factory=list)
    """Of maintenance."""
    channels: list[Json] = field(default_factory=list)
    deliveries: list[Json] = field(default_factory=list)
    alert_mail: str = "urgent"
    jobs: list[Json] = field(default_factory=list)
    job_folders: dict[str, bytes] = field(default_factory=dict)
    """What was sent with jobs, by id: tar archives."""
    queued: list[Json] = field(default_factory=list)
    """Entries of the queue, the first to start first."""
    fair_shares: list[Json] = field(default_factory=list)
    quotas: list[Json] = field(default_factory=list)
    roles: tuple[str, ...] = ("operator", "auditor", "org_owner", "admin", "renter", "provider")
    """Of whoever signs in."""
    commands: dict[str, Json] = field(default_factory=dict)
    accesses: tuple[str, ...] = REGIONS
    """The regions whose Access is connected."""
    departed: tuple[str, ...] = ()
    """Ids of Accesses that are gone."""
    agents: dict[str, int] = field(default_factory=dict)
    """How many are connected by region, where it is not half of the hosts."""
    told: set[str] = field(default_factory=set)
    """Ids of hosts that the fleet's stream is to tell of, beside those without cards."""
    stop_names: dict[str, str] = field(default_factory=dict)
    """The names that `windrow up` gives to Accesses, by id, where this is a market for development."""
    stops: dict[str, Json] = field(default_factory=dict)
    """The test of each Access that was stopped; a test moves it on."""
    drains: dict[str, str] = field(default_factory=dict)
    """The reason by the id of each drained Access."""
    audit_broken: int | None = None
    """The first entry of the audit log that does not fit."""
    prices: dict[str, str] = field(default_factory=lambda: {"cpu/A": "0.0800", "h100/A": "1.9000", "a100/A": "0.9500"})
    set_prices: dict[str, str] = field(default_factory=dict)
    """The prices that the account has set, by tier."""
    logs: dict[str, bytes] = field(default_factory=dict)
    terminal_refusal: str = ""
    terminal_typed: bytes = b""
    terminal_said: list[Json] = field(default_factory=list)
    """What the browser said beside its keys: sizes, and how much it has shown."""
    verifications: dict[str, Json] = field(default_factory=dict)
    """The outcomes of challenges, by host; none: it was never challenged."""
    version: int = 1
    unsupported: set[str] = field(default_factory=set)
    unmeasured: set[str] = field(default_factory=set)
    """Clusters of which nobody has read what they use yet."""
    """Metrics that no hardware here reports."""
    asked: list[Asked] = field(default_factory=list)
    """The requests that came with a bearer token: written down and refused, never done."""
    problems: dict[str, Json] = field(default_factory=dict)
    """Path prefix to the problem it answers with, for tests of errors."""
    dice: random.Random = field(default_factory=lambda: random.Random(7))

    def event(self, kind: str, subjects: list[str], text: str, fields: Json | None = None) -> None:
        """Note something that happened, newest first."""
        number, given = len(self.events), fields or {}
        row = {"id": f"event_{number:012d}", "number": number, "at": at(), "kind": kind, "subjects": subjects}
        names = {one: self.hosts[one]["name"] for one in subjects if one in self.hosts}
        row |= {"severity": str(severity_of(kind, given)), "title": title_of(kind, subjects, given), "names": names}
        self.events.insert(0, row | {"text": text, "actor": "system", "fields": given})


def make_world(neighbours: int, *, real_host: bool = True) -> World:
    """One host like the machine of the tests, and that many simulated ones with eight cards each."""
    world = World()
    if real_host:
        add_host(world, "host_019a0000-0000-7000-8000-000000000001", "workbench", cards=0, simulated=False)
    for number in range(neighbours):
        add_host(world, f"host_019a0000-0000-7000-9000-{number:012d}", f"sim-{number:03d}", cards=8, simulated=True)
    world.tokens.append(token("token_1", "first", ["operator", "provider", "renter"]))
    return world


def token(token_id: str, name: str, roles: list[str]) -> Json:
    """An API token's row."""
    return {
        "id": token_id,
        "name": name,
        "roles": roles,
        "created_at": at(4000),
        "last_used_at": at(3),
        "last_used_address": "192.0.2.7",
        "expires_at": at(-86400 * 30),
    }


def add_host(world: World, host_id: str, name: str, *, cards: int, simulated: bool) -> Json:
    """Let a host appear."""
    model, gib, tier, price, _ = MODELS[world.dice.randrange(len(MODELS))]
    region = REGIONS[len(world.hosts) % 2]
    link = "suspect" if len(world.hosts) % 37 == 36 else "online"
    gpus = _cards(host_id, cards, model, gib, tier)
    host = _host(world, host_id, name, simulated, region, link, gpus) | {"price_per_hour": price if cards else "0.0800"}
    host["tier"] = tier if cards else "cpu/A"
    world.hosts[host_id] = host
    for gpu in gpus:
        world.gpu_rows[gpu["uuid"]] = {
            "uuid": gpu["uuid"],
            "index": gpu["index"],
            "host_id": host_id,
            "host_name": name,
            "region": region,
            "simulated": simulated,
            "name": gpu["name"],
            "tier": tier,
            "memory_bytes": gpu["memory_bytes"],
            "link_state": link,
            **state_of("idle" if link == "online" else "offline"),
            "slot_state": "free",
            "unavailable_reason": None,
            "price_per_hour": price,
            "cluster_id": None,
            **reading(world, gpu["memory_bytes"]),
        }
    world.event("host_joined", [host_id], f"{name} joined by way of region {region}")
    if not simulated:
        add_command(world, host_id)
    return host


def add_command(world: World, host_id: str) -> None:
    """An order that was carried out, and one that failed."""
    for number, (kind, state, error) in enumerate(
        (("measure", "succeeded", None), ("create", "failed", "runtime_failed: the image could not be pulled"))
    ):
        command_id = f"command_019a0000-1111-7000-8000-{len(world.commands):012d}"
        output = "first line\nsecond line with <b>markup</b>\n\u202eand a turned one"
        world.commands[command_id] = {
            "id": command_id,
            "host_id": host_id,
            "host_name": world.hosts[host_id]["name"],
            "kind": kind,
            "subject": None,
            "state": state,
            "step": "done" if error is None else "pulling",
            "progress": 1.0 if error is None else 0.4,
            "error": error,
            "created_at": at(345 + number),
            "sent_at": at(345),
            "done_at": at(340),
            "result": {"exit_code": "0", "output": output} if error is None else None,
        }
        world.event("command.done", [host_id, command_id], f"{kind} {state}")


def state_of(word: str) -> Json:
    """The state of a GPU in one of the Master's five words."""
    return {"state": word, "state_text": word, "state_reason": None, "parts": 0, "parts_rented": 0}


def _cards(host_id: str, count: int, model: str, gib: int, tier: str) -> list[Json]:
    return [
        {
            "uuid": f"GPU-{host_id[-12:]}-{index}",
            "index": index,
            "vendor": "nvidia",
            "name": model,
            "memory_bytes": gib * GIB,
            "tier": tier,
            "tier_reasons": [
                f"class {tier[:-2]} from the model table",
                "measured at 97 % of what the model should give",
            ],
            "pci_bus_id": f"0000:{index + 16:02x}:00.0",
            "core_count": 16896,
            "live": None,
            **state_of("idle"),
            "slot_state": "free",
            "unavailable_reason": None,
            "isolation": "whole",
            "layout": [],
        }
        for index in range(count)
    ]


NO_GPU = {
    "code": "gpu.none",
    "title": "No GPU",
    "about": None,
    "detail": "No GPU was found: this host offers its processors.",
    "severity": "info",
    "remedy": "Nothing, if this host has no GPU.",
    "runbook": "docs/conditions.md",
}


def _host(world: World, host_id: str, name: str, simulated: bool, region: str, link: str, gpus: list[Json]) -> Json:
    return {
        "id": host_id,
        "name": name,
        "simulated": simulated,
        "owner_account": "account_1",
        "admin_state": "active",
        "verify_state": "unverified",
        "link_state": link,
        "headline": "idle" if link == "online" else "offline",
        "headline_reason": None if link == "online" else "no heartbeat for 17 s",
        "headline_remedy": None,
        "last_seen_at": at(1),
        "access_id": f"access_{region}",
        "region": region,
        "address": "192.0.2.7",
        "rtt_ms": 0.41,
        "os": "Debian GNU/Linux 12",
        "kernel": "6.1.0-28-amd64",
        "cpu_model": "AMD EPYC 7763 64-Core Processor",
        "cpu_count": 2 if not gpus else 64,
        "memory_bytes": (8 if not gpus else 512) * GIB,
        "disk_bytes": 250 * GIB,
        "driver_version": "570.86.15" if gpus else None,
        "cuda_version": "12.8" if gpus else None,
        "runtimes": ["simulated"] if simulated else ["process", "docker"],
        "container_users": "host",
        "default_image": None,
        "country": None,
        "labels": [],
        "conditions": [] if gpus else [{**NO_GPU, "since": at(600)}],
        "tier_reasons": ["8 cards of one class, all healthy"]
        if gpus
        else [
            "no GPU: class cpu",
            "2 processors, 8 GiB memory",
            "measured at 96 % of what this processor should give: grade A",
        ],
        "bandwidth": {
            "up_bps": 914e6,
            "down_bps": 938e6,
            "measured_at": at(340),
            "access_id": f"access_{region}",
            "relays": 1,
        },
        "listed_at": at(7180),
        "proof": {"at": at(7150), "outcome": "passed", "words": PROOF_WORDS},
        "gpus": gpus,
        "slots": [slot(f"{host_id}/cpu/1", host_id, None)]
        + [slot(f"{host_id}/{gpu['uuid']}", host_id, gpu["uuid"]) for gpu in gpus],
        "live": live(world),
        "agent_version": "0.1.0",
        "created_at": at(7200),
        "inventory_hash": "9f2c51d0",
        "version": 1,
    }


def rounds_of(host_id: str) -> Json:
    """Of two days, each six hours, by relays of two regions."""
    ages = [340 + 6 * 3600 * round_ for round_ in range(8)]
    rounds = [
        {"region": region, "at": at(age), "up_bps": 914_000_000, "down_bps": down_bps, "relays": 1}
        for age in ages
        for region, down_bps in (("eu-west", 938_000_000), ("us-east", 702_000_000))
    ]
    return {"host_id": host_id, "rounds": rounds}


def standing_of(world: World, host_id: str) -> Json:
    """A host that was there for a day, and nobody rents."""
    words = "0.987: it was there for 288 of 288 points"
    held: Json = {"figure": 0.987, "words": words, "good": 288.0, "bad": 0.0, "faults": 0.0, "aborts": 0.0}
    reasons = ["Nobody rented in its tier in the last 7 days."]
    rows = [
        {"slot_id": one["id"], "name": f"GPU {number}", "gpu": one["gpu_uuid"], "tier": "h100/A", "reasons": reasons}
        for number, one in enumerate(world.hosts[host_id]["slots"])
    ]
    return {"host_id": host_id, "reliability": held, "unrented": rows}


def facts_of(host_id: str) -> Json:
    """A host that says what it is, but not how fast its interface is."""
    more: dict[str, int | str] = {"machine_model": "Supermicro AS-8125GS", "virtualization": "hardware", "iommu": 1}
    more |= {"cpu_sockets": 2, "numa_nodes": 2, "disk_type": "ext4", "cgroup": "v2", "toolkit_version": "1.17.8"}
    rows = [(one, value(one, more)) for one in HOST_FIELDS]
    return {
        "host_id": host_id,
        "groups": [
            {
                "name": group,
                "fields": [
                    {
                        **{key: getattr(one, key) for key in ("name", "label", "unit", "read", "otel")},
                        "value": said,
                    }
                    for one, said in rows
                    if one.group is group
                ],
            }
            for group in HostGroup
        ],
    }


def unverified(host_id: str) -> Json:
    """A host none of whose cards was challenged."""
    words = "None of its 8 GPUs was challenged yet."
    known: Json = {"host_id": host_id, "state": "unverified", "words": words, "due_at": None, "tries": 0}
    return known | {"gpus": [], "past": []}


def challenged(gpu_uuid: str, outcome: str, detail: str) -> Json:
    """Adds the outcome of a challenge of one card."""
    past: Json = {"gpu_uuid": gpu_uuid, "verification_id": "verification_2", "at": at(90), "outcome": outcome}
    past |= {"detail": detail, "span_ms": 2412, "pace": "observed"}
    asked: Json = {"nonce": "00ff" * 16, "size": 8192, "rounds": 2, "openings": 64, "places": [[0, 1, 2]]}
    said: Json = {"device": "NVIDIA H100 80GB HBM3", "driver": "570.86.15", "agent_version": "0.1.0"}
    bound: Json = {
        "bound_ms": 120_000,
        "calibrated": False,
        "times": "not measured",
        "together": "together",
        "cards": 8,
        "master_version": "0.1.0",
    }
    filled: Json = {"memory": "proved", "memory_claimed_bytes": 80 * GIB, "memory_filled_bytes": 72 * GIB}
    filled |= {"memory_probes": 64, "memory_wrong": 0, "memory_span_ms": 4100}
    return past | asked | said | bound | filled | {"reasons": [], "roots": ["ab" * 32]}


def slot(slot_id: str, host_id: str, gpu: str | None) -> Json:
    """A free slot."""
    kind = "gpu" if gpu else "cpu"
    return {
        "id": slot_id,
        "host_id": host_id,
        "gpu_uuid": gpu,
        "kind": kind,
        "state": "free",
        "state_text": "idle",
        "state_reason": None,
        "unavailable": None,
        "token": 3,
        "cluster_id": None,
        "isolation": "whole" if gpu else None,
        "card_uuid": gpu,
        "profile": None,
        "share_milli": 1000 if gpu else None,
        "cpus": 0,
        "tier": None,
    }


def gpu_page(world: World, gpu_id: str) -> Json | None:
    """One card whole: every row of the table, half of them without a value."""
    found = [(host, gpu) for host in world.hosts.values() for gpu in host["gpus"] if gpu["uuid"] == gpu_id]
    if not found:
        return None
    host, gpu = found[0]
    facts = GpuFacts(GpuUuid(gpu_id), gpu["index"], "nvidia", gpu["name"], memory_bytes=gpu["memory_bytes"])
    facts = replace(
        facts, ecc_enabled=False, more={"brand": "NVIDIA", "remapped_corrected": 0, "bar1_bytes": 128 * GIB}
    )
    values = {one.name: fact(one, facts, Inventory(driver_version=host["driver_version"] or "")) for one in GPU_FIELDS}
    rows = [(one.group, field_json(one, values[one.name])) for one in GPU_FIELDS]
    return {
        **gpu,
        **{name: host[name] for name in ("simulated", "region", "link_state")},
        "host_id": host["id"],
        "host_name": host["name"],
        "price_per_hour": "2.10",
        "cluster_id": None,
        "slices": [],
        "conditions": [
            condition_json(f"gpu.hot:{gpu_id}", "This GPU is about to slow itself down.", 0) | {"since": at(60)}
        ],
        "claims": [condition_json(f"claim.memory:{gpu_id}", "it says 80 GiB and 24 were seen", 0) | {"since": at(90)}],
        "benchmarks": [
            {
                "name": name,
                "title": BENCHMARK_NAMES[name],
                "value": value,
                "unit": unit,
                "measured_at": at(300 * age),
                "proof_id": f"proof_{age}",
            }
            for age, memory, matrix in ((1, 2.9e12, 21e12), (2, 2.8e12, 20e12))
            for name, value, unit in (
                ("gpu.matrix_operations_per_s", matrix, "{operation}/s"),
                ("gpu.memory_bytes_per_s", memory, "By/s"),
            )
        ],
        "groups": [{"name": group, "fields": [row for of, row in rows if of is group]} for group in Group],
    }


def live(world: World) -> Json:
    """A host's latest reading."""
    draw = world.dice.random
    return {
        "cpu_ratio": round(0.1 + 0.5 * draw(), 3),
        "memory_used_bytes": int((2 + draw()) * GIB),
        "load1": round(draw() * 2, 2),
        "rx_bps": draw() * 4e6,
        "tx_bps": draw() * 2e6,
        "disk_used_bytes": 61 * GIB,
        "at": at(),
    }


def reading(world: World, memory: int) -> Json:
    """A card's latest reading."""
    use = world.dice.random() ** 2
    return {
        "utilization_ratio": round(use, 2),
        "memory_used_bytes": int(memory * (0.05 + 0.9 * use)),
        "temperature_celsius": int(34 + 45 * use),
        "power_watts": round(60 + 600 * use, 1),
        "at": at(),
    }


def change(world: World, count: int) -> list[Json]:
    """Give that many cards a new reading, and hand back their rows."""
    world.version += 1
    chosen = world.dice.sample(sorted(world.gpu_rows), min(count, len(world.gpu_rows)))
    for uuid in chosen:
        row = world.gpu_rows[uuid]
        world.gpu_rows[uuid] = row | reading(world, row["memory_bytes"])
    return [world.gpu_rows[uuid] for uuid in chosen]
