"""deploy/agent.yaml: the Agent of a GPU host in a container has what such a host needs, and nothing more than that."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # no stubs in the locks

from windrow_agent.app import config
from windrow_agent.runtimes.docker import DEFAULT_URL

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
SERVICES = ("nvidia", "amd")
DATA = "/var/lib/windrow-agent"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "agent.yaml").read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("name", SERVICES)
def test_each_mount_of_a_gpu_host_is_there(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    mounts = dict(line.split(":", 2)[:2] for line in service["volumes"])
    socket = DEFAULT_URL.removeprefix("unix://")
    assert mounts == {
        "state": DATA,
        socket: socket,
        "/etc/machine-id": "/etc/machine-id",
        "/etc/os-release": "/etc/os-release",
    }
    assert all(line.endswith(":ro") for line in service["volumes"] if line.startswith("/etc/"))
    assert any("DOCKER_GID" in group for group in service["group_add"])  # the image's user is not root
    assert (service["network_mode"], service["pid"]) == ("host", "host")


def test_each_brand_has_its_device_files(compose: dict[str, Any]) -> None:
    reserved = compose["services"]["nvidia"]["deploy"]["resources"]["reservations"]["devices"]
    assert reserved == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu", "utility", "compute"]}]
    assert compose["services"]["amd"]["devices"] == ["/dev/kfd", "/dev/dri"]
    assert any("RENDER_GID" in group for group in compose["services"]["amd"]["group_add"])


@pytest.mark.parametrize("name", SERVICES)
def test_it_has_no_rights_of_root_and_its_token_is_no_argument(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    assert "privileged" not in service and "cap_add" not in service
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert service["secrets"] == ["join_token"] and "environment" not in service


def test_its_script_uses_commands_that_the_agent_knows() -> None:
    script = (DEPLOY / "container" / "host.sh").read_text(encoding="utf-8")
    assert subprocess.run(["sh", "-n"], input=script, text=True, timeout=30, check=False).returncode == 0
    lines = re.findall(r"windrow-agent (.+)", script.replace("\\\n", " "))
    found = [config.parse(line.replace('"$1"', "https://m:8443").replace('"$2"', "a").split()) for line in lines]
    assert [one.command for one in found] == ["join", "run"]
    assert {str(one.data_dir) for one in found} == {DATA}
    assert found[0].token_file == "/run/secrets/join_token" and found[1].runtimes == ("docker",)


def test_the_image_has_the_script_and_its_user_the_folder(compose: dict[str, Any]) -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert "COPY deploy/container /opt/windrow/container" in dockerfile
    assert f" {DATA} " in dockerfile
    assert compose["services"]["nvidia"]["command"][:2] == ["sh", "/opt/windrow/container/host.sh"]
