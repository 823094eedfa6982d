"""`ray`: a Ray cluster on this host, from asking for it through the API to its first task, beside a bare `ray start`.

Both in turn on one machine, the same program beside the head: it connects, runs one task and says when that was done.
Ours has a token, a lease, pinned ports and looks at its network first; theirs has none of it, and (root) a namespace of
processes, so that it ends whole. WINDROW_ENGINES names an environment that has Ray: tests/support/engines.py makes one.
"""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from bench._report import last_line, median, percentile, scale, table
from tests.support.engines import found_engines
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for

PAIRS = 7
FIRST_S = 180.0
PORT = 26379
PROGRAM = """
import time
import ray

ray.init(log_to_driver=False)
assert ray.get(ray.remote(lambda: 42).remote()) == 42
print("FIRST", time.time(), flush=True)
"""
"""Beside the head, whose address is in RAY_ADDRESS."""


def bare_s(programs: Path) -> float:
    """Seconds from `ray start --head` to the first task's result, with nothing around it."""
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:  # short: its sockets are in there
        environment = {**os.environ, "PATH": f"{programs}:/usr/bin:/bin", "RAY_ADDRESS": f"127.0.0.1:{PORT}"}
        start = f"ray start --head --disable-usage-stats --num-cpus=1 --port={PORT} --temp-dir={folder}"
        alone = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
        words = [*alone, "sh", "-c", f'{start} && python -c "$1"', "sh", PROGRAM]
        began = time.time()
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=FIRST_S, check=True)
    return _first(done.stdout) - began


def ours_s(renter: Renter, programs: Path) -> float:
    """Seconds from asking for a cluster of kind ray to the first task's result, by what its program wrote."""
    env = {"PATH": f"{programs}:/usr/bin:/bin"}
    began = time.time()
    cluster = renter.create("python", "-c", PROGRAM, kind="ray", env=env, cpus=1, until="")
    try:
        said = wait_for(lambda: (text := renter.log(cluster["id"]).decode()) and "FIRST" in text and text, FIRST_S)
    finally:
        renter.delete(cluster["id"])
    return _first(said) - began


def _first(said: str) -> float:
    return float(re.findall(r"^FIRST (\S+)$", said, re.MULTILINE)[-1])


def main() -> None:
    """Measure, print, end."""
    programs, pairs = found_engines(), max(2, round(PAIRS * scale()))
    if isinstance(programs, str) or os.geteuid() != 0:
        missing = programs if isinstance(programs, str) else "only root has a namespace of processes"
        table([("create to first task", f"not measured: {missing}")])
        last_line("ray", 0.0, "s", None, None, {"missing": missing})
        return
    with stack() as running:
        renter = Renter(running)
        renter.online()
        ours_s(renter, programs), bare_s(programs)  # what is read from the disk for the first time
        made = [(ours_s(renter, programs), bare_s(programs)) for _ in range(pairs)]
    ours, bare = [one for one, _ in made], [other for _, other in made]
    table(
        [
            ("create to first task, p50 s", median(ours)),
            ("ray start to first task, p50 s", median(bare)),
            ("create to first task, slowest s", percentile(ours, 1.0)),
            ("ray start to first task, slowest s", percentile(bare, 1.0)),
            ("pairs", pairs),
        ]
    )
    detail = {"p50_s": round(median(ours), 3), "ray_start_p50_s": round(median(bare), 3), "pairs": pairs}
    last_line("ray", median(ours), "s", "ray start", median(ours) / median(bare), detail)


if __name__ == "__main__":
    main()
