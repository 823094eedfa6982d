"""Runs the main job once: lists and rents this host, shows the output, deletes the cluster, and prints the receipt."""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from windrow_proto.errors import DeadlineExceeded, LinkClosed, NotFound, Unavailable, WindrowError, WorkloadFailed
from windrow_up.client import MasterHttp

ONLINE_S: Final = 60.0
LISTED_S: Final = 60.0
MEASURED_S: Final = 20.0
RUNNING_S: Final = 90.0
OUTPUT_S: Final = 60.0
GONE_S: Final = 60.0
LOOK_S: Final = 0.2
ARGV: Final = (
    "sh",
    "-c",
    'echo "Hello from $(uname -n): $(nproc) CPUs, $(date -u +%FT%TZ)."; '
    "(nvidia-smi -L 2>/dev/null || true); i=1; while [ $i -le 3 ]; do echo step $i of 3; i=$((i+1)); sleep 1; done",
)
FINAL: Final = frozenset({"Deleted", "Finished", "Failed"})
STARTED: Final = frozenset({"Running", "Degraded", *FINAL})


class Job:
    """One rental from listing to receipt; `say` prints a line, `show` prints output as it is."""

    def __init__(
        self,
        http: MasterHttp,
        host_id: str,
        say: Callable[[str], None],
        show: Callable[[bytes], None],
        is_stopped: Callable[[], bool],
    ) -> None:
        self._http = http
        self._host_id = host_id
        self._say = say
        self._show = show
        self._is_stopped = is_stopped

    def run(self) -> None:
        """Do it all; raises what went wrong."""
        host = self._wait(self._online, ONLINE_S, "this host to be Online")
        host = self._wait(self._listed, LISTED_S, "this host to be listed at a price")
        host = self._measured_if_soon(host)
        self._describe(host)
        cluster = self._http.call("POST", "/clusters", self._request(host))["cluster"]
        self._say(f"Rented: machine {cluster['id']}")
        try:
            self._follow(cluster["id"])
        finally:
            self._http.call("DELETE", f"/clusters/{cluster['id']}")
        ended = self._wait(lambda: self._ended(cluster["id"]), GONE_S, "the machine to be gone")
        self._say(f"Ended: machine {ended['id']} is {ended['phase']}")
        self._print_receipt(self._wait(lambda: self._receipt(cluster["id"]), GONE_S, "the receipt"))

    def _wait(self, look: Callable[[], dict[str, Any] | None], within_s: float, what: str) -> dict[str, Any]:
        ends = time.monotonic() + within_s
        last: WindrowError | None = None
        while time.monotonic() < ends:
            self._check_stopped()
            try:
                found = look()
            except (Unavailable, NotFound) as error:
                # A host is seen a moment after it has joined, a receipt a moment after the end.
                last, found = error, None
            if found:
                return found
            time.sleep(LOOK_S)
        why = f" ({last.detail})" if last is not None else ""
        raise DeadlineExceeded(f"Waited {within_s:g} s for {what}{why}.", subject=self._host_id)

    def _check_stopped(self) -> None:
        # This runs in a thread, which nobody can cancel: it looks by itself whether it is still wanted.
        if self._is_stopped():
            raise LinkClosed("Stopped before the job was done.", subject=self._host_id)

    def _host(self) -> dict[str, Any]:
        found: dict[str, Any] = self._http.call("GET", f"/hosts/{self._host_id}")
        return found

    def _online(self) -> dict[str, Any] | None:
        host = self._host()
        return host if host["link_state"] == "online" else None

    def _listed(self) -> dict[str, Any] | None:
        host = self._host()
        return host if host.get("tier") and host.get("price_per_hour") is not None else None

    def _measured_if_soon(self, host: dict[str, Any]) -> dict[str, Any]:
        """The host once its speeds are measured, or as it is when that takes long: it can be rented either way."""
        ends = time.monotonic() + MEASURED_S
        while time.monotonic() < ends and not _is_measured(host):
            self._check_stopped()
            time.sleep(LOOK_S)
            host = self._host()
        return host

    def _describe(self, host: dict[str, Any]) -> None:
        gpus = ", ".join(gpu["name"] for gpu in host["gpus"]) or "no GPU"
        self._say(f"Host: {host['name']} ({host['id']}), {host['cpu_model']}, {host['cpu_count']} CPUs, {gpus}")
        self._say(f"Tier: {host['tier']}")
        for reason in host["tier_reasons"]:
            self._say(f"  - {reason}")
        self._say(f"Price: {_money(host['price_per_hour'])} per hour (test money)")

    def _request(self, host: dict[str, Any]) -> dict[str, Any]:
        request: dict[str, Any] = {
            "kind": "box",
            "name": "once",
            "argv": list(ARGV),
            "host_id": self._host_id,
            "runtime": "process",
        }
        request |= {"gpus": 1} if host["gpus"] else {"cpus": 1}
        return request

    def _follow(self, cluster_id: str) -> None:
        started = self._wait(lambda: self._started(cluster_id), RUNNING_S, "the workload to start")
        if started["phase"] == "Failed" and not started.get("started_at"):
            raise WorkloadFailed(f"The machine failed: {started.get('reason')}", subject=cluster_id)
        self._say("Output:")
        offset, ends = 0, time.monotonic() + OUTPUT_S
        while time.monotonic() < ends:
            self._check_stopped()
            has_ended = self._workload_ended(cluster_id)
            for chunk in self._http.stream(f"/clusters/{cluster_id}/logs?follow=false&offset={offset}"):
                offset += len(chunk)
                self._show(chunk)
            if has_ended:
                return
            time.sleep(LOOK_S)
        raise DeadlineExceeded(f"The workload did not end within {OUTPUT_S:g} s.", subject=cluster_id)

    def _cluster(self, cluster_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._http.call("GET", f"/clusters/{cluster_id}")
        return found

    def _started(self, cluster_id: str) -> dict[str, Any] | None:
        cluster = self._cluster(cluster_id)
        return cluster if cluster["phase"] in STARTED else None

    def _workload_ended(self, cluster_id: str) -> bool:
        cluster = self._cluster(cluster_id)
        codes = [workload.get("exit_code") for workload in cluster["workloads"]]
        if any(code not in (None, 0) for code in codes):
            raise WorkloadFailed(f"The workload ended with exit code {codes}.", subject=cluster_id)
        return bool(codes) and all(code == 0 for code in codes)

    def _ended(self, cluster_id: str) -> dict[str, Any] | None:
        cluster = self._cluster(cluster_id)
        return cluster if cluster["phase"] in FINAL else None

    def _receipt(self, cluster_id: str) -> dict[str, Any] | None:
        found = [r for r in self._http.items("/receipts") if r["cluster_id"] == cluster_id and r.get("ended_at")]
        return found[0] if found else None

    def _print_receipt(self, receipt: dict[str, Any]) -> None:
        currency = receipt["currency"]
        self._say(f"Receipt {receipt['id']} (test money: it buys nothing outside this Master)")
        self._say(f"  from        {receipt['started_at']}")
        self._say(f"  to          {receipt['ended_at']}")
        self._say(f"  running     {receipt['running_seconds']} s, as signed by the host")
        self._say(f"  price       {_money(receipt['price_per_hour'])} per hour, tier {receipt['tier']}")
        self._say(f"  amount      {_money(receipt['amount'])} {currency}")
        self._say(f"  balance now {_money(receipt['balance_after'])} {currency}")


def _is_measured(host: dict[str, Any]) -> bool:
    return bool(host.get("bandwidth")) and not any("not measured" in reason for reason in host["tier_reasons"])


def _money(value: Any) -> str:
    """An amount as the API gives it: a decimal string, or an object with amount and currency."""
    if isinstance(value, dict):
        return f"{value['amount']} {value['currency']}"
    return value if isinstance(value, str) else json.dumps(value)
