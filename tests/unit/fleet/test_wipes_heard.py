"""A host's signed report of a wiped cache is kept whole, and only about work that the host has or had."""

from dataclasses import replace

import pytest

from windrow_master.fleet.host_events import heard_wipe
from windrow_proto import wipes
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.model import Event

HOST = HostId("host_1")
KEY = SigningKey.from_raw(bytes(range(32)))
DONE = {"files": "2", "left": "0", "keys": "1", "bytes": "9", "cipher": "AES-256-GCM", "method": "key destroyed"}
TOLD = wipes.report(KEY, HOST, WorkloadId("work_1"), ClusterId("cluster_1"), 5, DONE)


def listen(event: Event) -> Event | None:
    return heard_wipe(event, HOST, lambda workload_id: {"work_1": "cluster_1"}.get(workload_id, ""))


def test_what_is_kept_can_be_checked_later() -> None:
    kept = listen(TOLD)

    assert kept is not None and kept.subject == "cluster_1"
    wipes.verify(KEY.public, kept.fields)


@pytest.mark.parametrize(
    "lie",
    [
        replace(TOLD, subject="cluster_2"),
        replace(TOLD, subject=""),
        replace(TOLD, fields={**TOLD.fields, "workload": "work_2"}),
        replace(TOLD, fields={**TOLD.fields, "host": "host_2"}),
        replace(TOLD, fields={**TOLD.fields, "note": "x"}),
        replace(TOLD, fields={**TOLD.fields, "method": "x" * 201}),
    ],
)
def test_of_others_work_nothing_is_heard(lie: Event) -> None:
    assert listen(lie) is None
