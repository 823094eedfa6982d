"""The load of `ingest` is the same for the same seed, moves as cards do, and reaches the peer unchanged."""

import struct

import cramjam
import numpy as np

from bench._facts import encode_host
from bench._series import METRICS, Plan, batch_samples, host_series, uuid
from bench._victoria import label_bytes, series_bytes, write_request
from windrow_proto.metrics import BY_NUMBER, Scope
from windrow_proto.samples import decode_batch

PLAN = Plan(hosts=2, batches=3)
START_MS = 1_700_000_000_000


def test_the_same_seed_gives_the_same_readings_and_another_host_gives_others():
    one, again, other = (host_series(PLAN, host, START_MS) for host in (0, 0, 1))
    assert np.array_equal(one.values, again.values)
    assert not np.array_equal(one.values, other.values)


def test_every_metric_is_one_of_a_gpu():
    assert {BY_NUMBER[metric].scope for metric in METRICS} == {Scope.GPU}


def test_instants_ascend_and_counters_never_fall():
    series = host_series(Plan(hosts=1, batches=20), 0, START_MS)
    assert (np.diff(series.at_ms) > 0).all()
    counters = [place for place, metric in enumerate(METRICS) if BY_NUMBER[metric].counter]
    assert (np.diff(series.values[:, counters, :], axis=2) >= 0).all()
    assert (series.values >= 0).all()


def test_a_batch_on_the_wire_says_what_was_drawn():
    series = host_series(PLAN, 1, START_MS)
    batch = decode_batch(encode_host(PLAN, START_MS, 1)[2])
    assert sum(len(column) for column in batch.values) == PLAN.values_per_batch
    place = batch.series.index((uuid(PLAN.seed, 1, 3), 4))
    assert batch.values[place] == tuple(series.values[3, METRICS.index(4), 10:15].tolist())
    assert len(batch_samples(PLAN, 1, series, 2)) == PLAN.instants


def test_the_peer_is_sent_the_same_instants_and_values():
    labels = label_bytes((("__name__", "x"), ("gpu", "y")))
    made = series_bytes([labels, labels], [START_MS, START_MS + 1000], np.array([[1.0, 2.5], [-3.0, 4.0]]))
    plain = bytes(cramjam.snappy.decompress_raw(write_request([made])))
    assert plain == made
    doubles = [struct.unpack_from("<d", plain, at + 2)[0] for at in places(plain, b"\x10\x09")]
    assert doubles == [1.0, 2.5, -3.0, 4.0]
    assert plain.count(labels) == 2


def places(data, needle):
    found, at = [], data.find(needle)
    while at >= 0:
        found.append(at)
        at = data.find(needle, at + 1)
    return found
