"""What a runtime counts becomes the metrics of a workload, and what it cannot count stays away."""

from typing import Any

import pytest

from windrow_agent.core.workload_usage import Usage, gpu_readings, readings
from windrow_agent.runtimes import docker_usage
from windrow_proto.metrics import BY_NAME
from windrow_proto.samples import Sample, unscale_value
from windrow_proto.units import MIB, SECOND

BEFORE = Usage(2 * SECOND, MIB, 5 * MIB, 0, 10 * MIB, 1000, None)
AFTER = Usage(17 * SECOND, 2 * MIB, 6 * MIB, 20 * MIB, 5 * MIB, 3000, 77)


def named(found: dict[int, int]) -> dict[str, float]:
    by_number = {metric.number: name.removeprefix("workload_") for name, metric in BY_NAME.items()}
    return {by_number[number]: unscale_value(number, value) for number, value in found.items()}


def moved(*operations: str) -> dict[str, Any]:
    return {"io_service_bytes_recursive": [{"op": one, "value": 7 + n} for n, one in enumerate(operations)]}


def test_a_rate_is_the_mean_since_the_count_before_and_a_count_that_fell_has_none() -> None:
    assert named(readings(AFTER, BEFORE, 10 * SECOND)) == {
        "cpu_cores": 1.5,
        "memory_used_bytes": 2 * MIB,
        "disk_used_bytes": 6 * MIB,
        "disk_read_bytes_per_second": 2 * MIB,
        "network_receive_bytes_per_second": 200,
    }


def test_the_first_count_gives_sizes_alone() -> None:
    assert named(readings(AFTER, None, 0)) == {"memory_used_bytes": 2 * MIB, "disk_used_bytes": 6 * MIB}


def test_cards_count_by_the_mean_of_their_use_and_the_sum_of_their_memory() -> None:
    use, memory = BY_NAME["gpu_utilization_ratio"].number, BY_NAME["gpu_memory_used_bytes"].number
    values = {("A", use): 90, ("B", use): 20, ("A", memory): 100, ("B", memory): None, ("C", use): 99}
    found = named(gpu_readings(Sample(0, values), ("A", "B")))
    assert found == {"gpu_ratio": pytest.approx(0.55), "gpu_memory_used_bytes": 100 * MIB}
    assert gpu_readings(None, ("A",)) == gpu_readings(Sample(0, values), ()) == {}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {
                "cpu_stats": {"cpu_usage": {"total_usage": 5}},
                "memory_stats": {"usage": 100, "stats": {"inactive_file": 30}},
                "blkio_stats": {
                    "io_service_bytes_recursive": [{"op": "read", "value": 7}, {"op": "write", "value": 8}]
                },
                "networks": {"eth0": {"rx_bytes": 1, "tx_bytes": 2}, "eth1": {"rx_bytes": 10, "tx_bytes": 20}},
            },
            Usage(5, 70, 9, 7, 8, 11, 22),
        ),
        (
            {
                "memory_stats": {"usage": 100, "stats": {"total_inactive_file": 200}},
                "blkio_stats": {
                    "io_service_bytes_recursive": [{"op": "Read", "value": 7}, {"op": "Total", "value": 8}]
                },
            },
            Usage(None, 0, 9, 7, None, None, None),
        ),
        ({"memory_stats": {}, "blkio_stats": None, "networks": None}, Usage(disk_bytes=9)),
    ],
)
def test_the_words_of_both_versions_of_control_groups_are_read(told: dict[str, Any], expected: Usage) -> None:
    assert docker_usage.usage(told, told, 9) == expected
