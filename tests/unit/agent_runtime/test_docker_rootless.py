"""A daemon of an ordinary user: its containers' users are their own, and its network is out of the agent's rules."""

from pathlib import Path
from typing import Any

import pytest

from windrow_agent.runtimes import docker_daemon, docker_socket, egress_firewall
from windrow_agent.runtimes.cgroups import PROCESSES_MAX
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import HostId

DOCKER = {"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}
PODMAN = {"SecurityOptions": ["name=seccomp,profile=default"], "Rootless": True}


@pytest.mark.parametrize(
    ("info", "condition", "has_own_users"),
    [
        (DOCKER, ConditionCode.DOCKER_UNFENCED, 1),
        (PODMAN, ConditionCode.DOCKER_UNFENCED, 1),
        ({"SecurityOptions": ["name=userns"]}, "", 1),
        ({}, "", 0),
    ],
)
async def test_strangers_get_no_containers_where_the_rules_do_not_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, info: dict[str, Any], condition: str, has_own_users: int
) -> None:
    answers = {"/version": {"Version": "24"}, "/info": info}
    monkeypatch.setattr(docker_socket, "ask", lambda url, path, within_s: answers[path])
    monkeypatch.setattr(egress_firewall, "install", lambda *, is_anew: "")

    facts = await DockerRuntime(tmp_path, HostId("host_1")).facts()

    assert (facts.condition, facts.more) == (condition, {"container_own_users": has_own_users})


@pytest.mark.parametrize(
    ("info", "files", "is_podman", "is_given"),
    [
        ({"Runtimes": {"runc": {}, "nvidia": {}}}, (), False, True),
        ({"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}, (), False, True),
        ({"DiscoveredDevices": [{"Source": "cdi", "ID": "amd.com/gpu=0"}]}, (), False, False),
        ({"Runtimes": {"runc": {}}}, (), False, False),
        ({}, ("bin/nvidia-container-runtime-hook",), False, True),
        ({}, ("cdi/nvidia.yaml",), True, True),
        ({}, ("cdi/nvidia.yaml",), False, False),
        ({}, ("cdi/amd.json",), True, False),
    ],
)
def test_containers_get_nvidias_cards_where_the_daemon_knows_the_toolkit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    info: dict[str, Any],
    files: tuple[str, ...],
    is_podman: bool,
    is_given: bool,
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    version = {"Components": [{"Name": "Podman Engine"}]} if is_podman else {}
    assert docker_daemon.gives_nvidia(version, info, (tmp_path / "cdi",)) is is_given


@pytest.mark.parametrize("info", [DOCKER, PODMAN])
@pytest.mark.parametrize(
    ("cgroups", "is_bounded_here"),
    [(("none", "1"), True), (("cgroupfs", "1"), True), (("none", "2"), True), (("systemd", "2"), False)],
)
def test_without_cgroups_a_rootless_daemons_containers_are_bounded_in_processes_all_the_same(
    info: dict[str, Any], cgroups: tuple[str, str], is_bounded_here: bool
) -> None:
    told = info | {"CgroupDriver": cgroups[0], "CgroupVersion": cgroups[1]}
    version = {"Components": [{"Name": "Podman Engine"}]} if info is PODMAN else {}

    limits = docker_daemon.kind_of(version, told, "unix:///x").limits or []

    assert docker_daemon.gives_limits(told) is not is_bounded_here
    assert ({"Name": "nproc", "Soft": PROCESSES_MAX, "Hard": PROCESSES_MAX} in limits) is is_bounded_here
    assert len({one["Name"] for one in limits}) == len(limits)


async def test_a_daemon_that_has_answered_once_is_missed_when_it_does_not_also_after_a_restart_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress_firewall, "install", lambda *, is_anew: "")

    async def condition(answers: bool) -> str:
        def ask(url: str, path: str, within_s: float) -> dict[str, Any]:
            if not answers:
                raise RuntimeUnavailable("No daemon answers.")
            return {"Version": "24"}

        monkeypatch.setattr(docker_socket, "ask", ask)
        return (await DockerRuntime(tmp_path / "docker", HostId("host_1")).facts()).condition

    found = [await condition(answers) for answers in (False, True, False, True)]
    assert found == ["", "", ConditionCode.DOCKER_LOST, ""]
