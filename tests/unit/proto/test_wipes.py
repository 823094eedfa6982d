"""A wipe report is the host's own word: whoever has its key can check it, and nobody can change it."""

import pytest

from windrow_proto import wipes
from windrow_proto.errors import BadProof
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.keys import SigningKey

KEY = SigningKey.from_raw(bytes(range(32)))
DONE = {"files": "2", "bytes": "100", "left": "0", "keys": "1"}


def test_a_report_is_checked_with_the_hosts_key_alone_and_any_change_is_refused():
    told = wipes.report(KEY, HostId("host_a"), WorkloadId("work_1"), ClusterId("cluster_1"), 7, DONE)

    wipes.verify(KEY.public, told.fields)
    assert (told.code, told.subject, told.fields["workload"]) == ("workload.wiped", "cluster_1", "work_1")
    for changed in (
        {**told.fields, "files": "3"},
        {**told.fields, "host": "host_b"},
        {**told.fields, "signature": "AAAA"},
        {name: value for name, value in told.fields.items() if name != "signature"},
    ):
        with pytest.raises(BadProof):
            wipes.verify(KEY.public, changed)
    with pytest.raises(BadProof):
        wipes.verify(SigningKey.generate().public, told.fields)


def test_what_could_not_be_removed_is_said():
    told = wipes.report(KEY, HostId("h"), WorkloadId("w"), ClusterId("c"), 7, {**DONE, "left": "1"})

    assert told.detail.endswith("2 sealed files removed, 1 could not be")
