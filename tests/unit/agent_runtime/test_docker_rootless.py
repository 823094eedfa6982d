"""A daemon of an ordinary user: its containers' users are their own, and its network is out of the agent's rules."""

from pathlib import Path
from typing import Any

import pytest

from windrow_agent import fence
from windrow_agent.runtimes import docker_socket
from windrow_agent.runtimes.docker import UNFENCED, DockerRuntime
from windrow_proto.ids import HostId

DOCKER = {"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}
PODMAN = {"SecurityOptions": ["name=seccomp,profile=default"], "Rootless": True}


@pytest.mark.parametrize(
    ("info", "condition", "has_own_users"),
    [(DOCKER, UNFENCED, 1), (PODMAN, UNFENCED, 1), ({"SecurityOptions": ["name=userns"]}, "", 1), ({}, "", 0)],
)
async def test_strangers_get_no_containers_where_the_rules_do_not_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, info: dict[str, Any], condition: str, has_own_users: int
) -> None:
    answers = {"/version": {"Version": "24"}, "/info": info}
    monkeypatch.setattr(docker_socket, "ask", lambda url, path, within_s: answers[path])
    monkeypatch.setattr(fence, "stand", lambda *, is_anew: "")

    facts = await DockerRuntime(tmp_path, HostId("host_1")).facts()

    assert (facts.condition, facts.more) == (condition, {"container_own_users": has_own_users})
