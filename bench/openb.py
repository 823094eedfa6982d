"""`openb`: GPUs allocated on the openb traces (ATC'23) when the arrived demand is all of the cluster. Goal: 95.0 %.

Nine variants, BENCH_SCALE of ten seeds; each answer is checked against the capacities and each "no" against an exact
scan, both kept apart from the engine. Peer: FGD as its authors published it for the same variants and ten seeds. Then
seven orders of the hosts, and two mixes of our own with an FGD that is run beside it. Not counted: time.

WINDROW_DATA names the folder with `openb_node_list_gpu_node.csv`, `openb_pod_list_*.csv` and `published_alloc.csv`.
OPENB_VARIANTS=a,b runs these variants alone, OPENB_SEED the first seed.
"""

import os
import statistics
import sys
from pathlib import Path

import numpy as np

from bench._openb import VARIANTS, Cluster, Fgd, Node, Outcome, Place, Pod, insisting, nodes_of, odd, pods_of, published
from bench._openb import run as run_once
from bench._report import last_line, scale, table
from windrow_master.placement.engine.model import Asked, Host, Join, Kind, Needs, Placement, Request
from windrow_master.placement.engine.plan import Engine

GOAL, ABOVE_FGD, SPREAD = 95.0, 0.3, 0.2
SEEDS, FIRST_SEED, ORDERS = 10, 42, 7
ORDER_VARIANTS = ("default", "multigpu40")


class Ours:
    """The engine behind the experiment's question."""

    def __init__(self, nodes: list[Node]) -> None:
        self.engine = Engine()
        self.asked = 0
        self.number = {}
        for at, node in enumerate(nodes):
            name = f"host-{at}"
            self.number[name] = at
            host = Host(host_id=name, kind=Kind(model=node.model), cpu=node.cpu, memory=node.memory, cards=node.cards)
            self.engine.apply(Join(host))

    def place(self, pod: Pod) -> Place | None:
        """Learn of it, decide, take."""
        self.asked += 1
        request = Request(
            cpu=pod.cpu,
            memory=pod.memory,
            gpus=pod.gpus,
            milli=pod.milli or 1000,
            needs=Needs(models=pod.models),
            seed=self.asked * 0x9E3779B1 & 0xFFFFFFFF,
        )
        self.engine.apply(Asked(request))
        answer = self.engine.plan(request)
        if not isinstance(answer, Placement):
            return None
        self.engine.apply(answer.take(str(self.asked)))
        return self.number[answer.host_id], answer.cards


def ours(nodes: list[Node], pods: list[Pod], seed: int) -> Outcome:
    """One run of the engine."""
    return run_once(pods, seed, Ours(nodes).place, Cluster(nodes))


def fgd(nodes: list[Node], pods: list[Pod], seed: int) -> float:
    """One run of FGD."""
    cluster = Cluster(nodes)
    return run_once(pods, seed, Fgd(cluster, pods).place, cluster).allocated


def orders(nodes: list[Node]) -> list[list[Node]]:
    """Seven orders of the same hosts."""
    shuffles = [np.random.default_rng(seed).permutation(len(nodes)) for seed in (1, 2, 3)]
    return [
        nodes,
        nodes[::-1],
        sorted(nodes, key=lambda node: (-node.cards, -node.cpu)),
        sorted(nodes, key=lambda node: node.model),
        *([nodes[at] for at in order] for order in shuffles),
    ]


def missing(folder: Path) -> list[str]:
    """Files of the data that are not there."""
    names = ["openb_node_list_gpu_node.csv", "published_alloc.csv"]
    return [
        name for name in (*names, *(f"openb_pod_list_{one}.csv" for one in VARIANTS)) if not (folder / name).exists()
    ]


def variants(folder: Path, nodes: list[Node], seeds: range) -> tuple[dict[str, float], int]:
    """Mean of the seeds for each variant, and how many answers were wrong."""
    chosen = [one for one in (os.environ.get("OPENB_VARIANTS") or ",".join(VARIANTS)).split(",") if one]
    theirs, found, wrong = published(folder), {}, 0
    for variant in chosen:
        pods = pods_of(folder, variant)
        outcomes = [ours(nodes, pods, seed) for seed in seeds]
        found[variant] = statistics.mean(one.allocated for one in outcomes)
        wrong += sum(one.wrong for one in outcomes)
        said = f"{found[variant]:.2f} (FGD published {theirs[variant]:.2f}, {found[variant] - theirs[variant]:+.2f})"
        table([(variant.ljust(12), said)])
        sys.stdout.flush()
    return found, wrong


def main() -> None:
    """Measure and print."""
    folder = Path(os.environ.get("WINDROW_DATA") or "data") / "openb"
    folder = folder if folder.is_dir() else folder.parent
    lacking = missing(folder)
    if lacking:
        table([("missing", f"{', '.join(lacking[:3])} in {folder}; set WINDROW_DATA to the folder with openb's files")])
        last_line("openb", 0.0, "%", None, None, {"missing": lacking})
        return
    count = max(1, round(SEEDS * scale()))
    first = int(os.environ.get("OPENB_SEED") or FIRST_SEED)
    seeds, nodes = range(first, first + count), nodes_of(folder)
    found, wrong = variants(folder, nodes, seeds)
    theirs = published(folder)
    spread = {}
    for variant in ORDER_VARIANTS:
        pods = pods_of(folder, variant)
        means = [
            statistics.mean(ours(order, pods, seed).allocated for seed in seeds[: max(1, count // 3)])
            for order in orders(nodes)
        ]
        spread[variant] = max(means) - min(means)
        table(
            [(f"{ORDERS} orders of {variant}", f"{min(means):.2f} to {max(means):.2f}, spread {spread[variant]:.2f}")]
        )
    some = [nodes[at] for at in sorted(np.random.default_rng(7).permutation(len(nodes))[: len(nodes) * 3 // 4])]
    mixes = {
        "insisting": (nodes, insisting(pods_of(folder, "gpuspec25"), nodes)),
        "odd": (orders(some)[2], odd(pods_of(folder, "default"))),
    }
    own, above = {}, {}
    for name, (hosts, pods) in mixes.items():
        few = seeds[: max(1, count // 3)]
        outcomes = [ours(hosts, pods, seed) for seed in few]
        wrong += sum(one.wrong for one in outcomes)
        own[name] = statistics.mean(one.allocated for one in outcomes)
        peer = statistics.mean(fgd(hosts, pods, seed) for seed in few)
        above[name] = own[name] - peer
        table([(f"own mix {name}", f"{own[name]:.2f} (FGD beside it {peer:.2f}, {above[name]:+.2f})")])
    mean = statistics.mean(found.values())
    peer_mean = statistics.mean(theirs[variant] for variant in found)
    table([("mean", f"{mean:.2f} (FGD published {peer_mean:.2f})"), ("seeds", count), ("wrong answers", wrong)])
    detail = {
        "goal": GOAL,
        "mean": round(mean, 3),
        "variants": {name: round(value, 3) for name, value in found.items()},
        "above_fgd": {name: round(value - theirs[name], 3) for name, value in found.items()},
        "goal_above_fgd": ABOVE_FGD,
        "order_spread": round(max(spread.values()), 3),
        "goal_order_spread": SPREAD,
        "own_mixes": {name: round(value, 3) for name, value in own.items()},
        "own_mixes_above_fgd": {name: round(value, 3) for name, value in above.items()},
        "wrong_answers": wrong,
        "seeds": count,
    }
    last_line("openb", mean, "%", "FGD as published, same variants and seeds", mean / peer_mean, detail)


if __name__ == "__main__":
    main()
