"""Instructions to members of a cluster: where they meet, on which ports, and with which command."""

import subprocess

import pytest

from windrow_master.clusters.kinds.engines import (
    BLOCK_PORTS,
    BLOCKS,
    FIRST_PORT,
    HEAD_STARTS,
    command,
    environment,
    free_block,
    listens,
    network_of,
)
from windrow_master.clusters.model import ClusterKind, ClusterRequest

PLACES = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


@pytest.mark.parametrize(
    ("seen", "own", "found"),
    [
        ("ipv4:10.0.0.1:40000", ("10.0.0.1", "172.16.0.9"), ("10.0.0.1", "")),
        ("ipv4:10.0.0.1:40000", (), ("10.0.0.1", "")),
        ("ipv4:203.0.113.7:40000", ("192.168.1.5",), ("192.168.1.5", "behind 203.0.113.7")),
        ("ipv4:127.0.0.1:40000", ("127.0.0.1", "10.0.0.4"), ("10.0.0.4", "")),
        ("ipv4:127.0.0.1:40000", ("127.0.0.1",), ("127.0.0.1", "loopback")),
        ("ipv6:%5B::ffff:10.0.0.1%5D:40000", ("10.0.0.1",), ("10.0.0.1", "")),
        ("ipv6:%5B2001:db8::1%5D:40000", ("10.0.0.1",), None),
        ("", ("10.0.0.1",), None),
        ("unix:/run/access", ("10.0.0.1",), None),
        ("ipv4:10.0.0.1:40000", ("not an address",), ("10.0.0.1", "")),
    ],
)
def test_where_a_host_is_met(seen, own, found):
    assert network_of(seen, own) == found


def test_a_block_is_free_from_where_the_seed_leads_and_within_bounds():
    first = free_block(3, ())
    assert first == FIRST_PORT + 3 * BLOCK_PORTS
    assert free_block(3, {first}) == first + BLOCK_PORTS
    assert free_block(BLOCKS - 1, {FIRST_PORT + (BLOCKS - 1) * BLOCK_PORTS}) == FIRST_PORT
    assert free_block(7, {FIRST_PORT + n * BLOCK_PORTS for n in range(BLOCKS)}) is None
    assert FIRST_PORT + BLOCKS * BLOCK_PORTS <= 32_768


def test_a_gang_finds_what_torchrun_reads_and_the_renters_own_wins():
    request = ClusterRequest(
        kind=ClusterKind.GANG,
        hosts=3,
        argv=("torchrun", "train.py"),
        env={"PET_RDZV_BACKEND": "static", "WINDROW_RANK": "9"},
    )
    told = environment(request, 1, PLACES, 20_000, "")
    assert {name: told[name] for name in ("PET_NNODES", "PET_NODE_RANK", "PET_RDZV_ENDPOINT", "PET_RDZV_CONF")} == {
        "PET_NNODES": "3",
        "PET_NODE_RANK": "1",
        "PET_RDZV_ENDPOINT": "10.0.0.1:20000",
        "PET_RDZV_CONF": "is_host=false",
    }
    assert environment(request, 0, PLACES, 20_000, "")["PET_RDZV_CONF"] == "is_host=true"
    assert (told["PET_LOCAL_ADDR"], told["MASTER_ADDR"], told["MASTER_PORT"]) == ("10.0.0.2", "10.0.0.1", "20000")
    assert (told["PET_RDZV_BACKEND"], told["WINDROW_RANK"], told["WINDROW_WORLD_SIZE"]) == ("static", "1", "3")


def test_only_ray_gets_the_secret():
    told = {kind: environment(ClusterRequest(kind=kind, hosts=3), 0, PLACES, 20_000, "s3cret") for kind in ClusterKind}
    assert told[ClusterKind.RAY]["RAY_AUTH_TOKEN"] == "s3cret" and told[ClusterKind.RAY]["RAY_AUTH_MODE"] == "token"
    assert all("s3cret" not in found.values() for kind, found in told.items() if kind is not ClusterKind.RAY)


def test_ports_that_members_open_are_their_own_and_no_one_opens_twice():
    assert listens(ClusterKind.GANG, 0, 20_000) == (20_000,)
    assert listens(ClusterKind.GANG, 1, 20_000) == ()
    for kind in (ClusterKind.RAY, ClusterKind.DASK):
        opened = listens(kind, 0, 20_000)
        assert len(set(opened)) == len(opened)
        assert set(listens(kind, 1, 20_000)) < set(opened)


@pytest.mark.parametrize("kind", [ClusterKind.RAY, ClusterKind.DASK])
@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("argv", [(), ("python", "-c", "print('it''s')")])
def test_an_engines_line_is_one_that_a_shell_can_read(kind, rank, argv):
    shell, flag, script, *words = command(ClusterRequest(kind=kind, hosts=3, argv=argv), rank, PLACES, 20_000)
    assert subprocess.run([shell, "-n", flag, script], capture_output=True, check=False).stderr == b""
    assert words == ["windrow", *(argv if rank == 0 else ())]


def test_a_host_without_the_engine_says_so_and_fails():
    for kind in (ClusterKind.RAY, ClusterKind.DASK):
        line = command(ClusterRequest(kind=kind, hosts=3), 0, PLACES, 20_000)
        done = subprocess.run(line, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=False)
        assert (done.returncode, done.stderr) == (
            127,
            f"windrow: there is no {kind.value} on the PATH of this host\n",
        )


@pytest.mark.parametrize(("has_grpc", "is_pinned"), [("true", True), ("false", False)])
def test_the_port_of_ray_client_is_pinned_where_ray_would_open_it_and_not_said_where_ray_refuses_it(
    tmp_path, has_grpc, is_pinned
):
    for name, body in (("ray", 'echo "$@"'), ("python3", has_grpc)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    line = command(ClusterRequest(kind=ClusterKind.RAY, hosts=2), 0, PLACES, 20_000)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=True)
    words = done.stdout.split()
    assert words[:2] == ["start", "--head"] and words[-1] == "--block"
    assert ("--ray-client-server-port" in words) is is_pinned
    ports = [int(words[at + 1]) for at, word in enumerate(words) if word.endswith("-port") or word == "--port"]
    assert len(set(ports)) == len(ports) and all(20_000 <= port < 20_064 for port in ports)


def test_a_ray_head_that_never_came_up_is_started_again_and_at_last_given_up_with_its_exit_code(tmp_path):
    for name, body in (("ray", f"echo start >> {tmp_path}/starts; exit 7"), ("python3", "false")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    line = command(ClusterRequest(kind=ClusterKind.RAY, hosts=2), 0, PLACES, 20_000)
    done = subprocess.run(line, capture_output=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)
    assert done.returncode == 7
    assert (tmp_path / "starts").read_text().splitlines() == ["start"] * HEAD_STARTS
