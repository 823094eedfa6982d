"""Control groups that can be made, and their figures, on trees of files as either version of the kernel shows them."""

from pathlib import Path

import pytest

from windrow_agent.runtimes import cgroups
from windrow_agent.runtimes.cgroups import Group, Parents
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.model import WorkloadSpec
from windrow_proto.units import GIB, MIB

SPEC = WorkloadSpec(WorkloadId("work_1"), ClusterId("c"), (), "process", memory_bytes=64 * MIB, cpu_milli=1500)
UNIT = "system.slice/windrow-agent.service"


def process(folder: Path, groups: str, *mounts: str) -> Path:
    """The kernel's files of a process."""
    folder.mkdir()
    (folder / "cgroup").write_text(groups)
    (folder / "mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda rw\n" + "".join(mounts))
    return folder


def mount(at: Path, kind: str, options: str = "rw", root: str = "/") -> str:
    return f"31 23 0:28 {root} {at} rw,relatime shared:9 - {kind} {kind} {options}\n"


def group(at: Path, given: str, controllers: str = "cpuset cpu io memory pids") -> Path:
    """A group of version 2, and what it gives on."""
    at.mkdir(parents=True, exist_ok=True)
    (at / "cgroup.controllers").write_text(f"{controllers}\n")
    (at / "cgroup.subtree_control").write_text(f"{given}\n")
    return at


def closed(at: Path, controllers: str = "cpuset cpu io memory pids") -> Path:
    """One that may give nothing on, as one that has processes."""
    group(at, "", controllers)
    (at / "cgroup.subtree_control").unlink()
    return at


def test_on_version_2_the_nearest_above_that_gives_controllers_on_is_taken(tmp_path: Path) -> None:
    top = group(tmp_path / "top", "cpu memory pids")
    group(top / "system.slice", "memory pids")
    closed(top / UNIT)
    own = process(tmp_path / "self", f"0::/{UNIT}\n", mount(top, "cgroup2"))

    found = cgroups.find(own)
    assert found == Parents(2, {"memory": top / "system.slice", "pids": top / "system.slice"})
    assert cgroups.words(found) == "memory, processes limited by control groups (version 2)"


def test_a_delegated_group_whose_agent_is_below_is_asked_to_give_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kernel(path: Path, value: int | str) -> None:
        if path.name == "cgroup.subtree_control":
            value = " ".join((path.read_text() + str(value)).replace("+", "").split())
        path.write_text(str(value))

    monkeypatch.setattr(cgroups, "_set", kernel)
    top = group(tmp_path / "top", "cpu memory pids")
    unit = group(top / UNIT, "", "cpu memory pids")
    closed(unit / "agent", "")
    own = process(tmp_path / "self", f"0::/{UNIT}/agent\n", mount(top, "cgroup2"))

    assert cgroups.find(own) == Parents(2, dict.fromkeys(("memory", "pids", "cpu"), unit))


def test_what_is_further_up_is_not_asked(tmp_path: Path) -> None:
    top = group(tmp_path / "top", "")
    for at in (top / "a", top / "a/b", top / "a/b/c"):
        closed(at)
    own = process(tmp_path / "self", "0::/a/b/c\n", mount(top, "cgroup2"))

    assert cgroups.find(own) == Parents()
    assert (top / "cgroup.subtree_control").read_text() == "\n"


def test_version_1_has_a_folder_for_each_controller_also_beside_an_empty_version_2(tmp_path: Path) -> None:
    lines = f"5:cpu,cpuacct:/\n4:memory:/box/own\n3:pids:/nowhere\n2:freezer:/\n1:name=systemd:/\n0::/{UNIT}\n"
    for name in ("cpu", "memory/own", "unified/system.slice"):
        (tmp_path / name).mkdir(parents=True)
    own = process(
        tmp_path / "self",
        lines,
        mount(tmp_path / "cpu", "cgroup", "rw,cpu,cpuacct"),
        mount(tmp_path / "memory", "cgroup", "rw,memory", "/box"),
        mount(tmp_path / "pids", "cgroup", "rw,pids"),
        mount(tmp_path / "unified", "cgroup2"),
    )

    found = cgroups.find(own)
    assert found == Parents(1, {"memory": tmp_path / "memory/own", "cpu": tmp_path / "cpu"})
    assert cgroups.words(found) == "memory, processors limited by control groups (version 1)"


@pytest.mark.parametrize("lines", ["", "0::/\n", "4:memory:/\n"], ids=["none", "version 2", "version 1"])
def test_where_none_can_be_made_the_words_say_what_remains(tmp_path: Path, lines: str) -> None:
    own = process(
        tmp_path / "self", lines, mount(tmp_path / "away", "cgroup2"), mount(tmp_path / "off", "cgroup", "rw")
    )
    assert cgroups.find(own) == Parents()
    assert cgroups.words(Parents()) == "no control groups of its own, so that limits are each process's"
    assert cgroups.groups(Parents(), SPEC, 4, 8 * GIB) == []
    assert not cgroups.has_memory([])


def test_each_version_is_told_the_same_limits(tmp_path: Path) -> None:
    second = cgroups.groups(Parents(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path)), SPEC, 4, 8 * GIB)
    first = cgroups.groups(Parents(1, {name: tmp_path / name for name in ("memory", "pids", "cpu")}), SPEC, 4, 8 * GIB)

    assert second == [
        {
            "folder": str(tmp_path / "windrow-work_1"),
            "settings": {
                "memory.max": 64 * MIB,
                "memory.swap.max": 0,
                "pids.max": 4096,
                "cpu.max": "150000 100000",
            },
        }
    ]
    assert [one["settings"] for one in first] == [
        {"memory.limit_in_bytes": 64 * MIB, "memory.memsw.limit_in_bytes": 64 * MIB},
        {"pids.max": 4096},
        {"cpu.cfs_quota_us": 150_000},
    ]
    assert cgroups.has_memory(second) and cgroups.has_memory(first) and not cgroups.has_memory(first[1:])


def test_who_asks_for_no_processors_has_no_quota_and_who_asks_for_more_than_there_are_gets_those(
    tmp_path: Path,
) -> None:
    def quota(cpu_milli: int) -> list[Group]:
        spec = WorkloadSpec(SPEC.workload_id, SPEC.cluster_id, (), "process", cpu_milli=cpu_milli)
        return cgroups.groups(Parents(1, {"cpu": tmp_path}), spec, 4, 8 * GIB)

    assert quota(0) == []
    assert quota(64_000)[0]["settings"] == {"cpu.cfs_quota_us": 400_000}


def test_the_limits_are_written_and_what_a_kernel_lacks_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "windrow-work_1"
    folder.mkdir()
    for name in ("memory.max", "pids.max"):  # the kernel's, of a group that is there
        (folder / name).write_text("")
    made = cgroups.groups(Parents(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path)), SPEC, 4, 8 * GIB)
    cgroups.make(made)
    cgroups.make(made)  # again, after a crash

    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "memory.max": str(64 * MIB),
        "pids.max": "4096",
    }


def test_a_group_that_cannot_be_made_or_limited_is_an_error_that_names_it(tmp_path: Path) -> None:
    made = [{"folder": str(tmp_path / "away" / "g"), "settings": {"pids.max": 9}}]
    with pytest.raises(RuntimeUnavailable, match=r"away/g could not be made"):
        cgroups.make(made)
    (tmp_path / "away").mkdir()
    with pytest.raises(RuntimeUnavailable, match=r"away/g could not be made"):
        cgroups.make(made)  # and a folder that is no group


def test_an_empty_group_goes_and_one_that_is_gone_is_no_error(tmp_path: Path) -> None:
    made = [{"folder": str(tmp_path / "g"), "settings": {}}]
    (tmp_path / "g").mkdir()
    cgroups.drop(made)
    cgroups.drop(made)
    assert not (tmp_path / "g").exists()


SECOND: Group = {"settings": {"memory.max": 64 * MIB, "pids.max": 9}}
FIRST: Group = {"settings": {"memory.limit_in_bytes": 64 * MIB}}
KILLS = {
    "version 2, at its limit": (SECOND, {"memory.events": "low 0\noom 1\noom_kill 1\n"}, 64 * MIB),
    "version 2, the host's": (SECOND, {"memory.events": "low 0\noom 0\noom_kill 1\n"}, 0),
    "version 2, none": (SECOND, {"memory.events": "low 0\noom 0\noom_kill 0\n"}, None),
    "version 1, at its limit": (
        FIRST,
        {"memory.oom_control": "under_oom 0\noom_kill 2\n", "memory.max_usage_in_bytes": f"{64 * MIB - 4096}\n"},
        64 * MIB,
    ),
    "version 1, the host's": (
        FIRST,
        {"memory.oom_control": "under_oom 0\noom_kill 1\n", "memory.max_usage_in_bytes": f"{9 * MIB}\n"},
        0,
    ),
    "version 1, none": (FIRST, {"memory.oom_control": "under_oom 0\noom_kill 0\n"}, None),
    "no group any more": (FIRST, {}, None),
    "none for memory": ({"settings": {"pids.max": 9}}, {"memory.events": "oom_kill 1\n"}, None),
}


@pytest.mark.parametrize(("one", "files", "limit"), KILLS.values(), ids=KILLS)
def test_what_the_kernel_killed_for_want_of_memory_is_told_with_its_limit(
    tmp_path: Path, one: Group, files: dict[str, str], limit: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cgroups.oom_limit([{**one, "folder": str(tmp_path)}]) == limit
