"""The openb experiment: its data, its arrivals, the judge of each answer, FGD as published, and two mixes of our own.

A list of requests is shuffled by the seed and lengthened by requests drawn with replacement until they ask for 1.3
times the GPUs of the cluster. They are placed one by one, none leaves, none is tried again. Figure: GPUs allocated when
the arrived demand is 100 %, in percent, as the mean over the arrivals that round to that.
"""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

CARDS, MILLI, TUNE = 8, 1000, 1.3
VARIANTS = (
    *("default", "cpu050", "cpu100", "gpushare40", "gpushare80"),
    *("gpuspec10", "gpuspec25", "multigpu20", "multigpu40"),
)
Place = tuple[int, Sequence[int]]


class Node(NamedTuple):
    """A host of the trace."""

    cpu: int
    memory: int
    cards: int
    model: str


class Pod(NamedTuple):
    """A request of the trace. models: it takes one of these; empty: any model."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    models: frozenset[str]


def read(folder: Path, name: str) -> list[dict[str, str]]:
    """Rows of one of its files."""
    with (folder / name).open(newline="") as found:
        return list(csv.DictReader(found))


def nodes_of(folder: Path) -> list[Node]:
    """The hosts in the order of the file."""
    rows = read(folder, "openb_node_list_gpu_node.csv")
    return [Node(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"]) for row in rows]


def pods_of(folder: Path, variant: str) -> list[Pod]:
    """The requests of a variant."""
    found = []
    for row in read(folder, f"openb_pod_list_{variant}.csv"):
        gpus = int(row["num_gpu"])
        models = frozenset(x for x in (row.get("gpu_spec") or "").split("|") if x) if gpus else frozenset()
        milli = min(int(row["gpu_milli"]), MILLI) if gpus else 0
        found.append(Pod(int(row["cpu_milli"]), int(row["memory_mib"]), gpus, milli, models))
    return found


def published(folder: Path) -> dict[str, float]:
    """FGD's published allocation at 100 % arrived: the mean of its seeds, by variant."""
    found: dict[str, list[float]] = {}
    for row in read(folder, "published_alloc.csv"):
        if row["policy"] == "FGD":
            found.setdefault(row["trace"], []).append(float(row["alloc_at_100"]))
    return {trace: sum(values) / len(values) for trace, values in found.items()}


def arrivals(pods: list[Pod], total: int, seed: int) -> list[Pod]:
    """The requests in the order in which they come, for `total` milli of cards."""
    random = np.random.default_rng(seed)
    found = [pods[at] for at in random.permutation(len(pods))]
    demand = sum(pod.gpus * pod.milli for pod in found)
    while demand > TUNE * total:
        pod = found.pop(int(random.integers(len(found))))
        demand -= pod.gpus * pod.milli
    while True:
        pod = pods[int(random.integers(len(pods)))]
        if demand + pod.milli > TUNE * total:
            return found
        demand += pod.gpus * pod.milli
        found.append(pod)


class Cluster:
    """The free capacity of each host. It is counted apart from the engine, to judge its answers."""

    def __init__(self, nodes: list[Node]) -> None:
        self.names = sorted({node.model for node in nodes})
        self.cpu = np.array([node.cpu for node in nodes])
        self.memory = np.array([node.memory for node in nodes])
        self.model = np.array([self.names.index(node.model) for node in nodes])
        self.left = np.array([[MILLI] * node.cards + [-1] * (CARDS - node.cards) for node in nodes])
        self.total = int(np.maximum(self.left, 0).sum())

    def fits(self, pod: Pod, hosts: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Which hosts can take it."""
        found = (self.cpu[hosts] >= pod.cpu) & (self.memory[hosts] >= pod.memory)
        if pod.gpus:
            found &= (self.left[hosts] >= pod.milli).sum(1) >= pod.gpus
            if pod.models:
                found &= np.array([name in pod.models for name in self.names])[self.model[hosts]]
        return found

    def take(self, pod: Pod, place: Place) -> bool:
        """Place it; False if that is illegal."""
        at, cards = place
        rows = np.array([at])
        if len(set(cards)) != pod.gpus or not self.fits(pod, rows)[0]:
            return False
        if any(self.left[at, card] < pod.milli for card in cards):
            return False
        self.cpu[at] -= pod.cpu
        self.memory[at] -= pod.memory
        for card in cards:
            self.left[at, card] -= pod.milli
        return True


@dataclass
class Outcome:
    """The result of one run. allocated: percent of all GPUs once everything has arrived. wrong: answers that break a
    capacity, or say "no" where the request fits."""

    allocated: float
    refused: int
    wrong: int
    arrived: int


def run(pods: list[Pod], seed: int, place: Callable[[Pod], Place | None], cluster: Cluster) -> Outcome:
    """One run of the experiment; `cluster` is told of each place."""
    arrived = used = refused = wrong = 0
    at_100 = []
    order = arrivals(pods, cluster.total, seed)
    for pod in order:
        arrived += pod.gpus * pod.milli
        found = place(pod)
        if found is None:
            refused += 1
            wrong += bool(cluster.fits(pod).any())
        elif cluster.take(pod, found):
            used += pod.gpus * pod.milli
        else:
            wrong += 1
        if round(100 * arrived / cluster.total) == 100:
            at_100.append(100 * used / cluster.total)
    return Outcome(sum(at_100) / len(at_100), refused, wrong, len(order))


class Fgd:
    """Fragmentation gradient descent as published: the host where the expected GPU that a typical request cannot use
    falls most, floor(100 sigmoid) of it, ties to the first host. Typical: the most frequent shapes, 95 % of requests.
    The score of a host is kept by shape until the host changes."""

    def __init__(self, cluster: Cluster, pods: list[Pod]) -> None:
        self.cluster = cluster
        self._typical(pods)
        self._changed: list[int] = []
        self._known: dict[Pod, tuple[int, np.ndarray, np.ndarray]] = {}

    def _typical(self, pods: list[Pod]) -> None:
        counts = Counter((pod.cpu, pod.gpus, pod.milli, pod.models) for pod in pods)
        order = sorted(counts.items(), key=lambda one: (-one[1], one[0][:3], sorted(one[0][3])))
        kept, weight = [], 0
        for shape, count in order:
            kept.append((shape, count))
            weight += count
            if weight >= 0.95 * len(pods):
                break
        asking = [(shape, count / weight) for shape, count in kept if shape[1]]
        self.shape_cpu = np.array([shape[0] for shape, _ in asking])
        self.shape_gpus = np.array([shape[1] for shape, _ in asking])
        millis = np.array([shape[2] for shape, _ in asking])
        self.millis, self.size = np.unique(millis, return_inverse=True)
        models = self.cluster.names
        weights = [[share * (not shape[3] or name in shape[3]) for shape, share in asking] for name in models]
        self.weight = np.array(weights)
        steps = np.arange(MILLI + 1)[:, None]
        self.can = (steps >= self.millis[None, :]).astype(np.int64)
        self.lost = np.where(self.can, 0, steps)

    def fragment(self, cpu: np.ndarray, left: np.ndarray, model: np.ndarray) -> np.ndarray:
        """Milli that a typical request cannot use of each host."""
        room = np.maximum(left, 0)
        idle = room.sum(1)
        fits = self.can[room].sum(1)[:, self.size] >= self.shape_gpus
        fits &= cpu[:, None] >= self.shape_cpu
        usable = idle[:, None] - self.lost[room].sum(1)[:, self.size]
        found: np.ndarray = idle - (self.weight[model] * fits * usable).sum(1)
        return found

    def place(self, pod: Pod) -> Place | None:
        """The place by FGD, or None."""
        count = len(self.cluster.cpu)
        since, scores, cards = self._known.get(pod, (-1, np.full(count, -np.inf), np.zeros(count, dtype=np.int64)))
        fresh = np.arange(count) if since < 0 else np.unique(np.array(self._changed[since:], dtype=np.int64))
        if len(fresh):
            scores[fresh] = -np.inf
            hosts = fresh[self.cluster.fits(pod, fresh)]
            if len(hosts):
                scores[hosts], cards[hosts] = self._scores(pod, hosts)
        self._known[pod] = (len(self._changed), scores, cards)
        at = int(scores.argmax())
        if scores[at] == -np.inf:
            return None
        self._changed.append(at)
        if pod.gpus == 1 and pod.milli < MILLI:
            return at, [int(cards[at])]
        return at, np.flatnonzero(self.cluster.left[at] == MILLI)[: pod.gpus].tolist()

    def _scores(self, pod: Pod, hosts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cluster = self.cluster
        cpu, left, model = cluster.cpu[hosts], cluster.left[hosts], cluster.model[hosts]
        before = self.fragment(cpu, left, model)
        if pod.gpus == 1 and pod.milli < MILLI:
            rows, cards = np.nonzero(left >= pod.milli)
            after = left[rows].copy()
            after[np.arange(len(rows)), cards] -= pod.milli
            fall = before[rows] - self.fragment(cpu[rows] - pod.cpu, after, model[rows])
            grid = np.full(left.shape, -np.inf)
            grid[rows, cards] = np.floor(100 / (1 + np.exp(-fall / 1000)))
            best = grid.argmax(1)
            return grid[np.arange(len(hosts)), best], best
        after = left.copy()
        whole = after == MILLI
        after[whole & (whole.cumsum(1) <= pod.gpus)] = 0
        fall = before - self.fragment(cpu - pod.cpu, after, model)
        return np.floor(100 / (1 + np.exp(-fall / 1000))), np.zeros(len(hosts), dtype=np.int64)


def insisting(pods: list[Pod], nodes: list[Node]) -> list[Pod]:
    """A mix of our own, made of gpuspec25. A third of the GPU requests insist on a model. Those for a T4 ask for 1.25
    times all T4, once the whole demand equals the cluster."""
    free = [pod for pod in pods if not pod.models]
    tied = [pod for pod in pods if pod.models]
    only = [pod for pod in tied if pod.models == {"T4"}]
    others = [pod for pod in tied if pod.models != {"T4"}]
    share = sum(node.cards for node in nodes if node.model == "T4") / sum(node.cards for node in nodes)
    found, added = free + others + only, 0

    def milli(among: list[Pod]) -> int:
        return sum(pod.gpus * pod.milli for pod in among)

    while milli([pod for pod in found if pod.models == {"T4"}]) < 1.25 * share * milli(found):
        found.append(only[added % len(only)])
        added += 1
    added = 0
    while sum(bool(pod.models) for pod in found) * 3 < sum(pod.gpus > 0 for pod in found):
        found += [others[added % len(others)], only[added % len(only)]]
        added += 1
    return found


def odd(pods: list[Pod]) -> list[Pod]:
    """A mix of our own, of the default list: shares that are no multiples of ten milli, and a fifth of the demand in
    requests for eight GPUs."""
    found = [
        pod._replace(milli=pod.milli - pod.milli % 10 + 1 + at % 9) if 0 < pod.milli < MILLI - 10 else pod
        for at, pod in enumerate(pods)
    ]
    rest = sum(pod.gpus * pod.milli for pod in found if pod.gpus < CARDS)
    eights = [pod for pod in found if pod.gpus == CARDS]
    found = [pod for pod in found if pod.gpus < CARDS]
    count = round(rest / 4 / (CARDS * MILLI))
    return found + [eights[at % len(eights)] for at in range(count)]
