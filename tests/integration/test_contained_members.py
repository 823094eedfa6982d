"""Clusters over hosts whose members are containers: real daemons, each in its host's network, to which nobody comes."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.services import need
from tests.support.namespaces import need_networks
from tests.support.over_hosts import CLOSED, WAIT_S, Several, several_hosts
from tests.support.own_docker import OwnDocker, own_docker
from tests.support.rental import import_image
from tests.support.stack import wait_for
from windrow_agent.runtimes import docker_pause

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

IMAGE = "windrow-test-members:local"
CONTAINED = ("one", "two")
MEET = """
me=$WINDROW_RANK; if [ $me = 0 ]; then other=${WINDROW_MEMBERS#*,}; else other=${WINDROW_MEMBERS%,*}; fi
cd /tmp; echo "a word of $me" > index.html; httpd -p $WINDROW_ADDRESS:$WINDROW_PORT -h /tmp
ask() { echo "GET /index.html HTTP/1.0"; echo; }
hear() { ask | busybox nc -w 2 $other $WINDROW_PORT 2>/dev/null | grep "a word"; }
"""
ONCE = f"""{MEET}
until hear; do sleep 1; done
echo "at $WINDROW_ADDRESS by $GLOO_SOCKET_IFNAME"; sleep 4
"""
AGAIN_AND_AGAIN = f"""{MEET}
trap 'exit 0' TERM
while :; do hear; sleep 1; done
"""


@pytest.fixture(scope="module")
def daemons() -> dict[str, OwnDocker]:
    """By host; filled by `several`."""
    return {}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory, daemons: dict[str, OwnDocker]) -> Iterator[Several]:
    """Three hosts to which nobody comes, of which two run containers and nothing else."""
    need_networks()
    need("docker")
    need("busybox")
    with several_hosts(tmp_path_factory.mktemp("contained"), "10.94.0") as found, ExitStack() as cleanup:
        for name in CONTAINED:
            network = found.market.networks[name]
            network.forbid(incoming=CLOSED)
            daemons[name] = cleanup.enter_context(own_docker(network))
            import_image(tmp_path_factory.mktemp("image"), IMAGE, docker_url=daemons[name].url)
            cleanup.callback(_end, found, name)
            _end(found, name)
            _begin(found, name, daemons[name])
        wait_for(lambda: _with_containers(found) == len(CONTAINED), WAIT_S)
        yield found


def _begin(several: Several, name: str, daemon: OwnDocker) -> None:
    several.agents[name] = several.market.run_host(name, "--runtimes", "docker", DOCKER_HOST=daemon.url)


def _end(several: Several, name: str) -> None:
    several.agents[name].terminate()
    several.agents[name].wait(WAIT_S)


def _with_containers(several: Several) -> int:
    return sum("docker" in host["runtimes"] for host in several.market.renter.all("/hosts"))


@pytest.mark.proves("containers of one cluster meet over two hosts to which nobody comes")
def test_containers_on_two_hosts_meet_at_addresses_of_their_own_and_leave_nothing(
    several: Several, daemons: Mapping[str, OwnDocker]
) -> None:
    cluster = several.create("gang", "sh", "-c", ONCE, hosts=2, image=IMAGE, until="")
    done = _ended(several, cluster)
    said = [_log(several, cluster, rank) for rank in (0, 1)]

    assert (done["phase"], done["reason"]) == ("Finished", "exit 0"), (json.dumps(done, indent=1), said)
    assert done["network"]["mode"] == "tunnels" and "containers have networks" in done["network"]["reason"]
    assert [one["runtime"] for one in done["workloads"]] == ["docker", "docker"]
    number = done["workloads"][0]["address"].split(".")[2]
    assert said == [f"a word of {1 - rank}\nat 198.19.{number}.{rank + 1} by windrown{number}\n" for rank in (0, 1)]

    several.market.renter.delete(cluster["id"])

    assert [daemon.ask("ps", "-aq", "--filter", "label=windrow.host") for daemon in daemons.values()] == ["", ""]
    wait_for(lambda: all(_holders(one) <= 1 for one in daemons.values()), WAIT_S)
    assert several.flaws(cluster["id"]) == []


@pytest.mark.long
def test_members_hear_each_other_again_after_an_agent_was_killed(
    several: Several, daemons: Mapping[str, OwnDocker]
) -> None:
    cluster = several.create("gang", "sh", "-c", AGAIN_AND_AGAIN, hosts=2, image=IMAGE)
    wait_for(lambda: all("a word" in _log(several, cluster, rank) for rank in (0, 1)), WAIT_S)
    several.agents["one"].kill()
    several.agents["one"].wait()
    _begin(several, "one", daemons["one"])
    before = [_log(several, cluster, rank).count("a word") for rank in (0, 1)]

    wait_for(lambda: all(_log(several, cluster, n).count("a word") > before[n] + 3 for n in (0, 1)), WAIT_S)
    assert several.cluster(cluster["id"])["phase"] == "Running"
    several.market.renter.delete(cluster["id"])
    assert several.flaws(cluster["id"]) == []


def test_a_host_that_runs_no_containers_is_not_taken_and_says_so(several: Several) -> None:
    words = ("cluster", "create", "--kind", "gang", "--hosts", "3", "--image", IMAGE, "--", "true")
    refused = several.market.renter.windrow(*words)

    assert refused.returncode != 0
    assert "its docker runtime is not available" in " ".join(refused.stderr.split())


def _ended(several: Several, cluster: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = wait_for(
        lambda: (c := several.cluster(cluster["id"])) and c["phase"] == "Finished" and c, WAIT_S
    )
    return found


def _log(several: Several, cluster: Mapping[str, Any], rank: int) -> str:
    return str(several.market.renter.windrow("cluster", "logs", cluster["id"], "--rank", str(rank)).stdout)


def _holders(daemon: OwnDocker) -> int:
    return len(daemon.ask("ps", "-aq", "--filter", f"label={docker_pause.LABEL}").split())
