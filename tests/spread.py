"""The pytest plugin that spreads the tests over workers: a unit of them goes to one worker, the longest units first.

A file is a unit, so that what its tests share is made once; some files are one unit together. A worker that began with
what is short would leave the others without work while it ends with what is long.
"""

from collections.abc import Sequence
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped] # no stubs

PRETENDED: Final = (
    *("access", "alerts", "billing", "calls", "code", "ends", "fleet", "gpu", "home", "limits", "map", "new", "prices"),
    *("records", "regions", "secrets", "session", "shares", "sign_in", "states", "tables", "terminal", "usage"),
)
TOGETHER: Final = {
    "tests/architecture/": "one parsed tree",
    "tests/architecture/test_alone.py": "tests/architecture/test_alone.py",  # it installs
    "tests/attacks/": "one network",
    "tests/browser/": "one Chromium",
    "tests/cases/": "one market of cases",
    "tests/browser/test_boxes.py": "tests/browser/test_boxes.py",  # it has a Chromium of its own
    "tests/hardware/": "one GPU",
    "tests/integration/test_boxes.py": "one market",
    "tests/integration/test_faults_link.py": "one market",
    "tests/integration/test_faults_work.py": "one market",
    "tests/integration/test_functions.py": "one market",
    "tests/integration/test_hostile_messages.py": "one market",
    "tests/integration/test_documents.py": "one market",
    "tests/integration/test_strangers_client.py": "one market",
    "tests/integration/test_terminals.py": "one market",
    "tests/integration/test_tunnels.py": "one market",
    "tests/integration/test_object_shares.py": "another market",
    "tests/integration/test_people.py": "another market",
    "tests/integration/test_rental.py": "another market",
    "tests/integration/test_secrets.py": "another market",
    "tests/integration/test_services.py": "another market",
    "tests/integration/test_up_valkey.py": "another market",
    "tests/integration/test_volumes.py": "another market",
    "tests/integration/test_access_stop.py": "one fleet",
    "tests/integration/test_drain.py": "one fleet",
    "tests/integration/test_jobs.py": "one fleet",
    # Pages of pretended Masters alone, which need no market: half of the time that one Chromium would take.
    **{f"tests/browser/test_console_{name}.py": "another Chromium" for name in PRETENDED},
}
"""Files and folders whose tests share what is costly to make, or a piece of the machine, by the name of that."""

LONGEST: Final = (
    "one Chromium",
    "one market",
    "another Chromium",
    "another market",
    "tests/integration/test_onboarding.py",
    "tests/contract/test_runtimes.py",
    "tests/integration/test_kills.py",
    "one fleet",
    "tests/mission/test_mission.py",
    "tests/integration/test_partitions.py",
    "tests/integration/test_gangs.py",
    "tests/simulation/test_world.py",
    "tests/hostile/test_restore.py",
    "tests/hostile/test_ends.py",
    "tests/hostile/test_folder.py",
    "tests/integration/test_gpu_faults.py",
    "tests/browser/test_boxes.py",
    "tests/integration/test_leader.py",
    "tests/integration/test_master_start.py",
    "tests/integration/test_faults_docker.py",
    "tests/integration/test_up.py",
    "tests/integration/test_master_process.py",
    "tests/integration/test_clock_jumps.py",
    "tests/integration/test_master_disk_full.py",
    "tests/integration/test_rental_docker.py",
    "tests/integration/test_regions.py",
    "tests/integration/test_access_death.py",
    "tests/integration/test_job_kills.py",
    "tests/integration/test_prometheus.py",
    "tests/hostile/test_two_accounts.py",
    "tests/hostile/test_noisy_market.py",
    "tests/torture/test_hostile_http.py",
    "tests/unit/onboarding/test_installer.py",
    "tests/unit/tooling/test_again.py",
    "tests/integration/test_slot_race.py",
    "tests/integration/test_discovery.py",
    "tests/architecture/test_alone.py",
    "tests/contract/test_objects.py",
    "tests/contract/test_runtimes_containers.py",
    "tests/unit/sdk/test_streams.py",
    "tests/unit/functions/test_worker.py",
    "tests/unit/functions/test_envs.py",
    "tests/integration/test_bus_streams.py",
    "tests/unit/master_api/test_described.py",
    "tests/unit/clusters/test_routes.py",
    "tests/unit/telemetry/test_rollups.py",
)
"""Units of half a minute and more on two cores, the longest first; the others follow as they were collected."""

_RANK: Final = {unit: rank for rank, unit in enumerate(LONGEST)}


def unit_of(node_id: str) -> str:
    """The unit of a test, by its id alone: only the workers have more of it."""
    path = node_id.partition("::")[0]
    return TOGETHER.get(path) or TOGETHER.get("/".join(path.split("/")[:2]) + "/") or path


class Spread(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker unit after unit, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread:
    """The scheduler for every --dist: its own ways to keep tests together know neither our units nor their order."""
    config.option.loadscopereorder = False
    return Spread(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the tests of a unit together, and the longest units to the front."""
    items[:] = in_order(items)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """By unit: those of LONGEST, then the others as they came; within a unit as they came."""
    seen: dict[str, int] = {}
    for item in items:
        seen.setdefault(unit_of(item.nodeid), len(seen))
    last = len(_RANK)

    def place(item: pytest.Item) -> tuple[int, int]:
        unit = unit_of(item.nodeid)
        return _RANK.get(unit, last), seen[unit]

    return sorted(items, key=place)
