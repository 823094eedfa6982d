"""Entries that a host's journal reports as stored are there after SIGKILL at any moment: tokens, tombstones, epoch.

The child writes as the agent does, on a real disk, and says each number once its write has returned. (Power cuts:
tests/unit/agent_runtime/test_self_stop.py and the torture tests.)
"""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from windrow_agent.storage.journal import Journal
from windrow_proto.disk import OsDisk
from windrow_proto.ids import SlotId, WorkloadId
from windrow_proto.units import KIB

KILLS = 6
COMPACT_BYTES = 16 * KIB
"""So small that many of the kills fall into a compaction."""
WRITER = """
import itertools, sys
from windrow_agent.storage import journal as j
from windrow_proto.disk import OsDisk
from windrow_proto.ids import WorkloadId
journal = j.Journal(OsDisk(), sys.argv[1], lambda: 0, "kernel", {compact})
first = max((mark.token for mark in journal.book.marks.values()), default=0) + 1
for token in itertools.count(first):
    work = f"work_{{token}}"
    journal.write([("slot", "GPU-1", token, work), j.tombstone(WorkloadId(work), 0), j.epoch_fact(token)])
    print(token, flush=True)
"""


@pytest.mark.proves("tokens, tombstones and epoch of a host outlive SIGKILL at any moment")
def test_what_was_said_to_be_stored_is_there_after_sigkill(tmp_path: Path) -> None:
    luck, folder = random.Random(7), str(tmp_path / "journal")
    writer = WRITER.format(compact=COMPACT_BYTES)
    said = 0
    for _ in range(KILLS):
        with subprocess.Popen([sys.executable, "-c", writer, folder], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(luck.randrange(1, 300)):
                said = int(child.stdout.readline())
            child.kill()
            said = max([said, *(int(line) for line in child.stdout if line.strip().isdigit() and line.endswith("\n"))])
        journal = Journal(OsDisk(), folder, lambda: 0, "kernel")
        mark = journal.book.marks[SlotId("GPU-1")]
        assert (mark.token, journal.epoch) == (mark.token, mark.token)
        assert mark.token in (said, said + 1), "nothing that was said is lost; one more may have been written"
        assert all(WorkloadId(f"work_{token}") in journal.tombstones for token in range(1, said + 1))
        assert not [damage for damage in journal.damaged if damage.reason != "torn_tail"]
        journal.close()
