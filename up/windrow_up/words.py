"""The lines that `windrow up` prints about this host and the Master. Pure."""

from collections.abc import Iterator
from typing import Any, Final

AS_ROOT: Final = (
    "As root  Master, relay and agent have all rights on this machine. What is rented here has not: processes run as "
    "nobody in a sandbox, containers as their daemon confines them. It is safer to run all of it as a user of its own."
)


def progress(host: dict[str, Any], elapsed_s: float, windrow: str) -> Iterator[str]:
    """The facts of this host, one line each; the words before the first two spaces name the fact.
    windrow: the command as it works in every folder."""
    is_known = host["cpu_count"] is not None  # else its first inventory is on its way
    if host["link_state"] == "online" and is_known:
        gpus = len(host["gpus"])
        parts = f"{host['cpu_count']} CPUs, {gpus} GPU{'' if gpus == 1 else 's'}"
        yield f"Online  {host['name']} after {elapsed_s:.1f} s: {parts}"
    for condition in host["conditions"]:
        yield f"Condition {condition['code']}  {condition['detail']} {condition['remedy']}"
    if host.get("tier") and is_known:
        yield f"Tier {host['tier']}  {'; '.join(host['tier_reasons'])}"
    if host.get("bandwidth"):
        up, down = (host["bandwidth"][key] / 1e6 for key in ("up_bps", "down_bps"))
        yield f"Bandwidth  {up:,.0f} Mbit/s up, {down:,.0f} Mbit/s down, measured by the relay"
    if host.get("price_per_hour") is not None:
        yield f"Listed  at {host['price_per_hour']} per hour (test money). Rent it: {windrow} run -- echo hello"


def troubles(health: dict[str, Any]) -> Iterator[str]:
    """The problems of the Master itself, in the same form."""
    master = health["master"]
    for problem in master["problems"]:
        yield f"Problem {problem[:40]}  {problem}"
    for condition in master["conditions"]:
        yield f"Problem {condition['code']}  {condition['detail']} {condition['remedy']}"
