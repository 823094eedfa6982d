"""Gives a process workload a folder of its own as /dev/shm, so that memory which killed processes leave there is found
and freed. Its name says whose it is: agents on one machine do not know each other's."""

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Final

from windrow_proto.ids import HostId, WorkloadId

FOLDER: Final = Path("/dev/shm")
_NAMED: Final = re.compile(r"windrow-([A-Za-z0-9_-]{1,80})\.(.+)")


def make(workload_id: WorkloadId, host_id: HostId, user: int | None) -> None:
    """Makes the folder; where that is not possible, the workload has one in its sandbox alone. user: its owner; None:
    this user."""
    with contextlib.suppress(OSError):  # this host has no /dev/shm, or it is full
        folder = FOLDER / f"windrow-{workload_id}.{host_id}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if user is not None:
            os.chown(folder, user, user)


def of(workload_id: WorkloadId) -> Path | None:
    """Its folder, whichever agent made it; those of former releases say nothing of that."""
    found = [*FOLDER.glob(f"windrow-{workload_id}"), *FOLDER.glob(f"windrow-{workload_id}.*")]
    return found[0] if found else None


def all_of(host_id: HostId) -> list[WorkloadId]:
    """The workloads for which the agent of this host made one that is still there."""
    found = [_NAMED.fullmatch(path.name) for path in FOLDER.glob("windrow-*")]
    return sorted(WorkloadId(name[1]) for name in found if name is not None and name[2] == host_id)


def delete(workload_id: WorkloadId) -> None:
    """With all that is in it."""
    while (folder := of(workload_id)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            return
