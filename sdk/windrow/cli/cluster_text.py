"""Text about a cluster for the terminal: plan, addresses, steps, members, what ends it."""

import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rich.console import Console
from rich.markup import escape

from windrow.cli.output import err, plain, print_whole, say, shown, size_text
from windrow.errors import refusal_lines
from windrow.words import counted, money_or_none, money_text, seconds_text, state_name

ENDED = ("Deleted", "Finished", "Failed")
RESTS = (*ENDED, "Stopped")
OPEN_TO_ALL = "Whoever knows an address may call it: the service itself checks its callers."


def has_run(cluster: dict[str, Any]) -> bool:
    """True if its command has ended by itself: its log and files are there, or what is kept of them."""
    ended = [one["phase"] == "exited" or one.get("results") is not None for one in members(cluster)]
    return cluster["phase"] in ENDED and bool(ended) and any(ended)


def is_settled(cluster: dict[str, Any]) -> bool:
    """True if it has ended, and its volumes are saved as far as they can be: what has ended by itself saves them after
    that."""
    mounts = (cluster.get("request") or {}).get("volumes") or []
    is_saving = cluster["phase"] in ENDED[1:] and any(not mount.endswith(":ro") for mount in mounts)
    left = [one for one in members(cluster) if one["phase"] in ("exited", "stopping") and not one.get("is_lost")]
    return cluster["phase"] in ENDED and not (is_saving and left)


def print_plan(plan: dict[str, Any]) -> None:
    """Prints the place and the price of a plan, on standard error."""
    places = plan.get("placement") or []
    for place in places:
        price = (
            f": {money_text(place['price_per_hour'])} per hour"
            if len(places) > 1 and place.get("price_per_hour")
            else ""
        )
        say(f"  {place_text(place)}{price}")
        if place.get("note"):
            say(f"  {place['host_name']}: {place['note']}.")
    if plan.get("refusal"):
        print_refusal(plan["refusal"])
        return
    price = " ".join(filter(None, (money_or_none(plan.get("price_per_hour")), plan.get("currency"), "per hour")))
    reserved = f"; reserving {money_text(plan['hold'])} of {money_text(plan['balance'])}" if plan.get("hold") else ""
    say(f"  {price}{reserved}")


def place_text(place: dict[str, Any]) -> str:
    """A host of a plan and the part of it: `rack-7 (H100, grade C), 2 GPUs`."""
    name, _, grade = str(place.get("tier") or "").partition("/")
    tier = f" ({name.upper()}, grade {grade})" if grade else ""
    slots = counted(len(place.get("slots") or []), "GPU")
    return f"{place['host_name']}{tier}" + (f", {slots}" if grade and name != "cpu" else "")


def print_refusal(refusal: dict[str, Any]) -> None:
    """Prints why nothing fits, and what would, on standard error."""
    say(refusal["detail"])
    for line in refusal_lines(refusal):
        print_whole(f"  - {line}", err)


def print_tested(plan: dict[str, Any]) -> None:
    """Which of its hosts have to be waited for: the market's own test rental ends there first."""
    for place in plan.get("placement") or []:
        if place["host_id"] in (plan.get("tested") or ()):
            say(f"  {place['host_name']} is being tested by the market; your work replaces the test in a moment.")


def state_text(name: str, state: str, reason: Any) -> str:
    """The state of work as a sentence, with the reason where there is one."""
    return f"{name} is {state_name(state)}" + (f": {str(reason).rstrip('.')}." if reason else ".")


def print_addresses(cluster: dict[str, Any], to: Console) -> None:
    for port, url in (cluster.get("urls") or {}).items():
        print_whole(f"Port {port} is open at {url}", to)
    if cluster.get("urls"):
        print_whole(OPEN_TO_ALL, to)


def network(cluster: dict[str, Any]) -> str:
    found = cluster["network"]
    if not found["cords"]:
        return f"{found['mode']}: {found['reason']}"
    moved = cluster.get("traffic") or {"bytes_in": 0, "bytes_out": 0}
    carried = f"{size_text(moved['bytes_in'])} and {size_text(moved['bytes_out'])} between its members"
    joined = f"{found['cords_up']} of {found['cords']} pairs joined, {carried}"
    why = f"; {found['problem']}" if found.get("problem") else ""
    return f"{found['mode']}: {found['reason']}; {joined}{why}"


def usage(member: dict[str, Any]) -> str:
    """The resources that a member uses now; what its host cannot measure is left out."""
    gpus = [f"GPU {member['gpu_ratio']:.0%}"] if member["gpu_ratio"] is not None else []
    cores = [f"{member['cpu_cores']:.2f} CPUs"] if member["cpu_cores"] is not None else []
    sizes = [("memory", "memory_used_bytes"), ("GPU memory", "gpu_memory_used_bytes"), ("disk", "disk_used_bytes")]
    rates = [
        ("received", "network_receive_bytes_per_second"),
        ("sent", "network_transmit_bytes_per_second"),
        ("read", "disk_read_bytes_per_second"),
        ("written", "disk_write_bytes_per_second"),
    ]
    said = [
        *(cores + gpus),
        *(f"{name} {size_text(member[key])}" for name, key in sizes if member[key] is not None),
        *(f"{size_text(member[key])}/s {name}" for name, key in rates if member[key] is not None),
    ]
    return ", ".join(said)


def usage_rows(members: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """A row for each member with figures."""
    return [("Uses now" if len(members) == 1 else f"Rank {one['rank']} uses now", usage(one)) for one in members]


def traffic(traffic: dict[str, Any]) -> str:
    carried = f"{size_text(traffic['bytes_in'])} in, {size_text(traffic['bytes_out'])} out"
    return f"{counted(traffic['connections'], 'connection')} over HTTPS, {carried}"


def hosts(cluster: dict[str, Any]) -> str:
    """Returns the names of the hosts of a cluster's members."""
    return ", ".join(str(one["host_name"]) for one in members(cluster) if one.get("host_name"))


def request_facts(asked: Mapping[str, Any], host: str | None = None) -> list[tuple[str, Any]]:
    """Returns what was asked for with a cluster or a job, without what was left open. host: the name of the only host,
    where it is known."""
    gpus = None
    if asked.get("gpus"):
        part = f"{asked['slice']} of " if asked.get("slice") else ""
        least = f" with {size_text(asked['gpu_memory_bytes'])} or more" if asked.get("gpu_memory_bytes") else ""
        gpus = f"{asked['gpus']} x {part}{asked.get('gpu_model') or 'any GPU'}{least}"
    pairs = (
        ("Command", shlex.join(asked.get("argv") or ()) or None),
        ("Image", asked.get("image")),
        ("GPUs", gpus),
        ("CPUs", asked.get("cpus")),
        ("Memory", size_text(asked["memory_bytes"]) if asked.get("memory_bytes") else None),
        ("Number of hosts", asked.get("hosts") if asked.get("hosts") != 1 else None),
        ("Only this host", (host or asked["host_id"]) if asked.get("host_id") else None),
        ("Only this tier", asked.get("tier")),
        *((name, value) for name, value in place_facts(asked) if value),
        ("Variables", ", ".join(asked.get("env") or ()) or None),
        ("Secrets", ", ".join([*(asked.get("secrets") or ()), *filter(None, [asked.get("registry_secret")])]) or None),
        ("Longest running time", f"{asked['max_duration_seconds']:g} s" if asked.get("max_duration_seconds") else None),
        ("Budget", asked.get("budget")),
        ("Also at", _elsewhere(asked)),
        ("Highest price per hour", asked.get("max_price_per_hour")),
    )
    return [(name, value) for name, value in pairs if value is not None]


def _elsewhere(asked: Mapping[str, Any]) -> str | None:
    if not asked.get("backend"):
        return None
    name = "any backend" if asked["backend"] == "any" else asked["backend"]
    return name + (", spot first" if asked.get("spot") else "")


def try_rows(tries: list[dict[str, Any]] | None) -> list[tuple[str, str]]:
    """Returns the places elsewhere that were tried, a row each."""
    return [(f"Try {one['number']}", _try(one)) for one in tries or ()]


def _try(one: dict[str, Any]) -> str:
    kind, said = "spot " if one["spot"] else "", f": {one['said']}" if one["said"] else ""
    price = f"{money_text(one['price_per_hour'])} {one['currency']} an hour"
    return f"{one['place']}, {kind}{one['machine']} ({price}): {one['state']}{said}"


def place_facts(asked: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Returns where hosts have to be and how good, as it was asked."""
    bandwidth, reliability = asked.get("min_bandwidth_mbps"), asked.get("min_reliability_percent")
    return [
        ("Only this region", asked.get("region")),
        ("Near", asked.get("near")),
        ("Only this country", asked.get("country")),
        ("Only this provider", asked.get("provider_id")),
        ("Labels", ", ".join(asked.get("labels") or ())),
        ("Bandwidth at least", bandwidth and f"{bandwidth} Mbit/s"),
        ("Reliability at least", reliability and f"{reliability} %"),
        ("Verified hosts", "only" if asked.get("verified") else None),
    ]


def ends(cluster: dict[str, Any]) -> str:
    """Returns in words what ends the cluster; empty: it has ended."""
    if cluster["phase"] in RESTS:
        return ""
    asked, until = cluster.get("request") or {}, cluster.get("client_lease_ends_at")
    at = [f"at {cluster['ends_at']}"] if cluster.get("ends_at") else []
    idle = [f"after {asked['idle_seconds']:g} s with nobody in it"] if asked.get("idle_seconds") else []
    client = [f"at {until} unless its client is heard from"] if until else []
    stays = "with its command, or when it is deleted" if asked.get("argv") else "only when it is deleted"
    return ", or ".join(at + idle + client) or stays


def end_text(cluster: dict[str, Any]) -> str:
    """A sentence about what ends it, and how the next one is limited where nothing limits this; empty: it has ended."""
    end, asked = ends(cluster), cluster.get("request") or {}
    is_open = end and not asked.get("argv") and not cluster.get("ends_at") and not asked.get("idle_seconds")
    limits = " To limit the next one: --max-duration 8h, --idle 30m." if is_open else ""
    return f"It ends {end}.{limits}" if end else ""


def volume(mount: str, known: Mapping[str, dict[str, Any]]) -> str:
    """Describes the place of one of its volumes, and what is kept of it. mount: NAME:/path[:ro]; known: volumes by
    name."""
    name, path, *mode = mount.split(":")
    where = f"{name} at {path}{', read-only' if mode == ['ro'] else ''}"
    if (kept := known.get(name)) is None:
        return where
    saved = f"version {kept['version']}, saved {kept['saved_at']}" if kept["saved_at"] else "nothing saved yet"
    return f"{where}, {saved}" + (f"; {kept['problem']}" if kept["problem"] else "")


def unsaved(mounts: Sequence[str], known: Mapping[str, dict[str, Any]]) -> list[str]:
    """A line for each volume that was written and is not kept whole. mounts: NAME:/path[:ro]; known: by name."""
    names = [mount.split(":")[0] for mount in mounts if not mount.endswith(":ro")]
    found = [(name, known[name]["problem"]) for name in names if name in known and known[name]["problem"]]
    return [f"Volume {name}: {problem}" for name, problem in found]


class Progress:
    """Shows each step of a cluster once, and each tenth of a pull; none of those `before`. A terminal has one line that
    changes, and at the end how long it took; elsewhere each step is a line. Use as a context manager, again for the
    next wait."""

    def __init__(self, before: Sequence[dict[str, Any]] = (), *, is_silent: bool = False) -> None:
        self._before, self._is_silent = before, is_silent
        self._seen: set[tuple[str, str]] = set()
        self._status: Any = None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if err.is_terminal and not self._is_silent:
            self._status = err.status("waiting", spinner="line")
            self._status.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def __call__(self, cluster: dict[str, Any]) -> None:
        for step in cluster.get("steps") or []:
            if step in self._before or step.get("name") == "failed":  # the command that waits says why at the end
                continue
            key = (str(step.get("name")).replace("_", " "), f"{of_step(step)} {_tenths(step)}".strip())
            if key not in self._seen and not self._is_silent:
                self._seen.add(key)
                self._show(f"{key[0]} {key[1]}".rstrip())

    def _show(self, text: str) -> None:
        if self._status is None:
            say(f"  {text}")
        else:
            self._status.update(escape(shown(plain(text), err)))

    def say_running(self, cluster: dict[str, Any]) -> None:
        """On a terminal, the line that stays: where it runs, and how long the start took."""
        if err.is_terminal and not self._is_silent:
            hosts = ", ".join(str(one["host_name"]) for one in members(cluster))
            say(f"  running on {hosts} ({seconds_text(round(time.monotonic() - self._began, 1))})")


def past_steps(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of its runs before this one, up to where it was stopped last."""
    steps = list(cluster.get("steps") or [])
    stopped = [number for number, step in enumerate(steps) if step.get("name") == "stopped"]
    return steps[: stopped[-1] + 1] if stopped else []


def _tenths(step: dict[str, Any]) -> str:
    """How much of an image has come, in tenths; of what takes a moment nothing is said."""
    if step.get("name") != "pulling" or not step.get("progress"):
        return ""
    return f"{int(10 * float(step['progress'])) * 10} %"


def of_step(step: dict[str, Any]) -> str:
    """Returns the owner of a step, and its description."""
    return " ".join(str(step[name]) for name in ("member", "detail") if step.get(name))


def members(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """Its workloads by rank, without those that others have replaced."""
    found = [one for one in cluster.get("workloads") or [] if one.get("is_member", True)]
    return sorted(found, key=lambda one: int(one.get("rank") or 0))


def member_text(cluster: dict[str, Any], workload: dict[str, Any]) -> str:
    said = f"{workload['id']} on {workload['host_name']}: {workload['phase']}, {workload['runtime']}"
    said += f", {workload['image']}" if workload.get("image") else ""
    if workload.get("address") is None:
        return said
    own = f"rank {workload['rank']} on "
    steps = [step["name"] for step in cluster.get("steps") or [] if str(step.get("member")).startswith(own)]
    last = f", last step {steps[-1]}" if steps else ""
    return f"{workload['rank']}: {said} at {workload['address']}{', lost' if workload['is_lost'] else ''}{last}"
