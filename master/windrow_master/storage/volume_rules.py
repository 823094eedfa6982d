"""The limits of volumes, and the rule that says which volumes of a workload are due to be saved or restored. Pure."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from windrow_master.clusters.model import Cluster, ClusterPhase, Workload, WorkPhase
from windrow_master.clusters.states import FINAL
from windrow_master.clusters.stopping import RESTS
from windrow_proto.checkpoints import CHECKPOINT_BYTES_MAX
from windrow_proto.errors import InvalidInput
from windrow_proto.units import MINUTE

VOLUMES_MAX: Final = 100
"""Of one account."""
VOLUME_BYTES_MAX: Final = CHECKPOINT_BYTES_MAX
SAVE_EVERY_NS: Final = 5 * MINUTE
"""Of running work: all of it is read and sent, where a checkpoint is only what is new."""
SAVE_AGAIN_NS: Final = MINUTE
"""After a save of running work that came to nothing, since a file was being written."""
TORN_TRIES: Final = 2
"""Saves of running work in a row that came to nothing since a file was being written; the next takes it as it is."""
TORN_NAMED: Final = 4
PROBLEM_CHARS_MAX: Final = 400
KEEP: Final = 2
"""Versions of a volume: the newest, and one before it for when it does not match any more."""


def check_size(max_bytes: int) -> int:
    """The most bytes of one version, if it can be that. Raises InvalidInput."""
    if not 0 < max_bytes <= VOLUME_BYTES_MAX:
        raise InvalidInput(f"max_bytes must be from 1 to {VOLUME_BYTES_MAX}.", subject="max_bytes")
    return max_bytes


def is_over(cluster: Cluster, workloads: Sequence[Workload]) -> bool:
    """Return whether this cluster has its volumes no more: nobody wants it, and nothing is left of it on a host that
    answers. Work on a host that is lost then may still write its folder; it cannot save it once another has the
    volume."""
    gone = all(one.is_released or one.phase is WorkPhase.GONE or one.lost_since_ns is not None for one in workloads)
    return cluster.phase in (*FINAL, *RESTS, ClusterPhase.DELETING) and gone


class Due(StrEnum):
    """PLACE: put its volumes in place, then it starts. SAVE: while it runs. LAST: it is ended, then it is removed."""

    PLACE = "place"
    SAVE = "save"
    LAST = "last"


def due(workload: Workload, writes: bool, keeps: bool, save_due_ns: int | None, now_ns: int) -> Due | None:
    """Return the next step of a workload's volumes; None: nothing. writes: it is the writer of one. keeps: it was
    made as that, and its host keeps its folders at the end. save_due_ns: monotonic time, as now_ns."""
    if workload.is_released or workload.lost_since_ns is not None:
        return None
    if workload.phase is WorkPhase.WAITING_VOLUMES:
        return Due.PLACE if workload.delete_command is None else None
    if workload.phase is WorkPhase.STOPPING:
        return Due.LAST if keeps else None
    is_due = writes and save_due_ns is not None and now_ns >= save_due_ns
    return Due.SAVE if workload.phase in (WorkPhase.RUNNING, WorkPhase.EXITED) and is_due else None


def why_not_saved(cluster: Cluster, phase: WorkPhase) -> str:
    """Return why nothing can be saved of this cluster's volumes now, and what to do; empty: it can be."""
    if phase in (WorkPhase.RUNNING, WorkPhase.EXITED):
        return ""
    if phase is WorkPhase.STOPPING:
        return f"{cluster.name} is ending: what has changed in its volumes is saved at its end, without this command."
    if phase in (WorkPhase.FAILED, WorkPhase.GONE):
        return f"{cluster.name} has ended: its volumes are as they were saved last. See: windrow volume ls"
    return f"{cluster.name} has not started its program yet: there is nothing to save. Save again when it is Running."


def part_words(left: Sequence[str], left_count: int, torn: Sequence[str]) -> str:
    """Return the files of a saved version that are not as its folder had them; empty: all of it is. left: a line for
    each thing that its host could not save, the first of left_count. torn: names of files. All of them are a host's
    words."""
    said = []
    if left_count:
        rest = left_count - len(left)
        said.append(f"saved except {left_count}: {'; '.join(left)}" + (f"; and {rest} more" if rest > 0 else ""))
    if torn:
        more = f" and {len(torn) - TORN_NAMED} more" if len(torn) > TORN_NAMED else ""
        said.append(f"maybe torn, being written to while it was saved: {', '.join(torn[:TORN_NAMED])}{more}")
    return "".join(one if one.isprintable() else "?" for one in "; ".join(said))[:PROBLEM_CHARS_MAX]


def held_by(name: str, path: str, cluster: Cluster) -> str:
    """Return why a volume cannot be written by another, and how to go on."""
    return (
        f"The volume {name} is written by {cluster.name} ({cluster.cluster_id}, {cluster.phase.value}). Take it "
        f"read-only (--volume {name}:{path}:ro), or end that one first: windrow cluster delete {cluster.cluster_id}"
    )
