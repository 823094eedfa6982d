"""Present readings of a host: slow metrics stay as they were read, for a while and only while the device answers."""

import pytest

from windrow_master.telemetry.live import LiveView
from windrow_proto.ids import BootId, HostId
from windrow_proto.metrics import BY_NAME
from windrow_proto.samples import Sample, encode_batch
from windrow_proto.units import SECOND

HOST, BOOT = HostId("host_1"), BootId(bytes(16))
TEMPERATURE, ENCODER, LANES = 4, 16, 20
START = 1_700_000_000 * SECOND


class Host:
    """Sends a batch of samples, one a second; {} is an instant in which no slow metric was read."""

    def __init__(self) -> None:
        self.live, self._sequence = LiveView(), 0

    def send(self, at_s: int, *slow: dict[int, int | None], temperature: int | None = 40) -> None:
        self._sequence += 1
        samples = [
            Sample(START + (at_s + n) * SECOND, {("GPU-1", metric): value for metric, value in one.items()})
            for n, one in enumerate({TEMPERATURE: temperature, **values} for values in slow)
        ]
        self.live.put(HOST, BOOT, self._sequence, encode_batch(samples))

    def reads(self, metric: int) -> float | None:
        reading = self.live.get(HOST)
        assert reading is not None
        return reading.get("GPU-1", metric)


def test_a_slow_metric_read_in_the_middle_of_a_batch_is_what_the_host_reads():
    host = Host()
    host.send(0, {}, {ENCODER: 7, LANES: 16}, {}, {})

    assert (host.reads(ENCODER), host.reads(LANES), host.reads(TEMPERATURE)) == (0.07, 16, 40)


@pytest.mark.parametrize("looks_between", [True, False])
def test_it_stays_over_the_next_batch_whether_or_not_anybody_looked_between(looks_between: bool):
    host = Host()
    host.send(0, {ENCODER: 7}, {})
    if looks_between:
        host.live.get(HOST)
    host.send(5, {}, {})

    assert host.reads(ENCODER) == 0.07


def test_after_half_a_minute_without_a_newer_one_it_is_not_known():
    host = Host()
    host.send(0, {ENCODER: 7})
    host.send(29, {})
    assert host.reads(ENCODER) == 0.07

    host.send(30, {})
    assert host.reads(ENCODER) is None


def test_of_a_device_that_does_not_answer_nothing_is_known():
    host = Host()
    host.send(0, {ENCODER: 7})
    host.live.get(HOST)
    host.send(5, {}, temperature=None)
    assert host.reads(ENCODER) is None

    host.send(10, {})
    assert host.reads(ENCODER) is None


def test_what_a_workload_uses_stays_for_half_a_minute_although_it_is_in_few_batches():
    live, work, cores = LiveView(), "workload_1", BY_NAME["workload_cpu_cores"].number
    for sequence, (at_s, more) in enumerate(((0, {(work, cores): 1500}), (5, {}), (29, {}), (30, {}))):
        live.put(HOST, BOOT, sequence, encode_batch([Sample(START + at_s * SECOND, {("", 101): 1, **more})]))
        reading = live.get(HOST)
        assert reading is not None
        assert reading.get(work, cores) == (1.5 if at_s < 30 else None)
        assert reading.read_ns.get(work) == (START if at_s < 30 else None)


def test_a_look_at_few_metrics_reads_them_alone_and_changes_nothing_for_others():
    host = Host()
    host.send(0, {ENCODER: 7}, {}, temperature=41)
    peeked = host.live.peek(HOST, {TEMPERATURE})
    assert peeked is not None
    assert (peeked.get("GPU-1", TEMPERATURE), peeked.get("GPU-1", ENCODER)) == (41, None)
    slow = host.live.peek(HOST, {ENCODER})
    assert slow is not None and slow.get("GPU-1", ENCODER) == host.reads(ENCODER) == 0.07
    assert host.live.peek(HOST, {TEMPERATURE}) is slow, "read as a whole, it is not read again"
    assert host.live.peek(HostId("host_2"), {TEMPERATURE}) is None
