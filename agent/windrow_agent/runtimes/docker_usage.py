"""Reads what a container uses from the answer of its daemon, Docker's or Podman's, to `GET /containers/ID/stats`. Pure.

Memory is without the file cache that could be freed, as `docker stats` shows it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from windrow_agent.core.workload_usage import Usage


def path(container_id: str) -> str:
    """The question: one answer at once, without a second one to compare with."""
    return f"/containers/{container_id}/stats?stream=false&one-shot=true"


def usage(told: Mapping[str, Any], network: Mapping[str, Any], disk_bytes: int | None) -> Usage:
    """The resources of a container. network: the answer for the container whose network it has, maybe its own."""
    memory = _part(told, "memory_stats")
    used, cache = memory.get("usage"), _part(memory, "stats")
    freeable = cache.get("inactive_file", cache.get("total_inactive_file", 0))
    moved = _part(told, "blkio_stats").get("io_service_bytes_recursive") or ()
    cards = [one for one in _part(network, "networks").values() if isinstance(one, dict)]
    return Usage(
        cpu_ns=_count(_part(_part(told, "cpu_stats"), "cpu_usage").get("total_usage")),
        memory_bytes=max(0, used - freeable) if isinstance(used, int) and isinstance(freeable, int) else None,
        disk_bytes=disk_bytes,
        disk_read_bytes=_moved(moved, "read"),
        disk_write_bytes=_moved(moved, "write"),
        network_receive_bytes=sum(int(one.get("rx_bytes", 0)) for one in cards) if cards else None,
        network_transmit_bytes=sum(int(one.get("tx_bytes", 0)) for one in cards) if cards else None,
    )


def _part(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _moved(rows: Iterable[Mapping[str, Any]], kind: str) -> int | None:
    """Bytes of all disks; None: the daemon counts none."""
    found = [int(row.get("value", 0)) for row in rows if str(row.get("op", "")).lower() == kind]
    return sum(found) if found else None
