"""`ray`: a Ray cluster of two hosts asked for through the API until its first tasks have answered, beside `ray start`.

Each host is a network of its own on one switch. Ours: from POST /clusters to the words of the program that runs beside
the head. Bare: `ray start` with the same flags in the same two networks at the same moment, and the same program. The
program waits until both nodes are there and asks a task of each. Taken in turn. Needs root and WINDROW_ENGINES.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench._report import last_line, median, percentile, scale, table
from tests.support.engines import PROGRAMS, VARIABLE
from tests.support.namespaces import Namespace
from tests.support.over_hosts import Several, several_hosts
from tests.support.stack import wait_for
from windrow.client import Client
from windrow_master.clusters import members
from windrow_master.clusters.model import ClusterKind, ClusterRequest

PAIRS = 5
HOSTS = 2
READY_S = 300.0
FIRST_PORT = 19_000
"""For the bare ones: below every block of ours."""
PROGRAM = f"""
import time
import ray
ray.init(log_to_driver=False, logging_level="error")
while len(ray.nodes()) < {HOSTS}:
    time.sleep(0.05)
@ray.remote(scheduling_strategy="SPREAD")
def where():
    time.sleep(0.2)
    return ray.util.get_node_ip_address()
assert len(set(ray.get([where.remote() for _ in range({HOSTS})]))) == {HOSTS}
print("ANSWERED", time.time(), flush=True)
"""
ARGV = ("python", "-c", PROGRAM)
APART = (
    *("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", 'mount -t tmpfs -o mode=1777 tmpfs /tmp; exec "$@"', "apart"),
)
"""So that nothing of a bare one is left: its processes end with their first, its files with its mounts."""


def answered_at(text: str) -> float | None:
    """The moment of the first answer, Unix seconds."""
    found = [line.split()[1] for line in text.splitlines() if line.startswith("ANSWERED ")]
    return float(found[0]) if found else None


def created_s(several: Several, api: Client, path: str) -> float:
    """Seconds from asking for the cluster to the answers of its first tasks."""
    asked = {"kind": "ray", "hosts": HOSTS, "argv": list(ARGV), "env": {"PATH": path}}
    several.fits(asked)
    began = time.time()
    cluster = api.create_cluster(asked)["id"]
    text, at = "", None
    for data in api.logs(cluster, follow=True) if _is_up(api, cluster) else ():
        text += data.decode(errors="replace")
        at = answered_at(text) if text.endswith("\n") else None
        if at is not None:
            break
    several.market.renter.delete(cluster)
    if at is None:
        raise RuntimeError(f"{cluster} never answered.")
    return at - began


def _is_up(api: Client, cluster: str) -> bool:
    """Once it runs, or has ended."""
    found = api.wait_cluster(cluster, lambda one: one["phase"] in ("Running", "Failed", "Deleted"), READY_S)
    return bool(found["phase"] == "Running")


def bare_s(networks: list[tuple[Namespace, str]], path: str) -> float:
    """The same by `ray start` in these networks."""
    request = ClusterRequest(kind=ClusterKind.RAY, hosts=HOSTS, cpus=1, argv=ARGV)
    addresses = [address for _, address in networks]
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder, ExitStack() as running:
        out, began = Path(folder) / "out", time.time()
        for rank, (network, _) in enumerate(networks):
            line = members.command(request, rank, addresses, FIRST_PORT)
            told = members.environment(request, rank, addresses, FIRST_PORT, "bare")
            running.enter_context(_bare(network, line, {**told, "PATH": path}, out if rank == 0 else None))
        at: float = wait_for(lambda: answered_at(out.read_text()), READY_S, 0.05)
    return at - began


@contextmanager
def _bare(network: Namespace, line: tuple[str, ...], env: dict[str, str], out: Path | None) -> Iterator[None]:
    with network.entered(), open(out or os.devnull, "wb") as said:
        process = subprocess.Popen((*APART, *line), stdout=said, stderr=subprocess.STDOUT, env=env)
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def main() -> None:
    """Measure, print, end."""
    programs = Path(os.environ.get(VARIABLE, "")) / "bin"
    if os.geteuid() != 0 or not all((programs / name).exists() for name in PROGRAMS):
        why = f"needs root and {VARIABLE}: python -m tests.support.engines FOLDER"
        table([("create to first task", f"not measured: {why}")])
        last_line("ray", 0.0, "s", None, None, {"missing": why})
        return
    pairs, path, folder = max(2, round(PAIRS * scale())), f"{programs}:/usr/sbin:/usr/bin:/bin", tempfile.mkdtemp()
    try:
        with several_hosts(Path(folder), "10.94.0") as several, several.market.renter.stack.client() as api:
            names = ("one", "two")
            networks = [(several.market.networks[name], several.market.addresses[name]) for name in names]
            bare_s(networks, path)  # what is read for the first time comes from the disk
            made = [(created_s(several, api, path), bare_s(networks, path)) for _ in range(pairs)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ours, bare = [one for one, _ in made], [one for _, one in made]
    table([("create to first tasks, p50 s", median(ours)), ("the slowest s", percentile(ours, 1.0)),
           ("ray start to first tasks, p50 s", median(bare)), ("the slowest of them s", percentile(bare, 1.0)),
           ("hosts", HOSTS), ("pairs", pairs)])  # fmt: skip
    detail = {"p50_s": round(median(ours), 2), "bare_p50_s": round(median(bare), 2), "hosts": HOSTS, "pairs": pairs,
              "ours_s": [round(one, 2) for one in ours], "bare_s": [round(one, 2) for one in bare]}  # fmt: skip
    last_line("ray", median(ours), "s", "ray start", median(ours) / median(bare), detail)


if __name__ == "__main__":
    main()
