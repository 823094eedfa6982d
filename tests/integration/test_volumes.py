"""Volumes through the shipped daemons: kept from one cluster to the next, in whichever runtime each runs."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.containers import image as image
from tests.support.rental import Renter
from tests.support.stack import wait_for
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(300)]

STAY = "trap 'exit 0' TERM; sleep 300 & wait"


@pytest.fixture(scope="module")
def renter(renter: Renter, image: str) -> Renter:
    """Its host runs containers, too."""
    wait_for(lambda: "docker" in renter.host()["runtimes"])
    return renter


def _volume(renter: Renter, name: str) -> dict[str, Any]:
    found: dict[str, Any] = renter.ask("GET", f"/volumes/{name}")
    return found


def _log(renter: Renter, cluster: dict[str, Any]) -> str:
    renter.exited(cluster["id"])
    return renter.log(cluster["id"]).decode()


@pytest.mark.proves("what a cluster wrote into a volume is there in the next one, in another runtime too")
def test_a_volume_goes_from_a_process_to_a_container_and_back(renter: Renter, image: str) -> None:
    made = renter.windrow("volume", "create", "data", "--max-size", "10MB")
    assert made.returncode == 0, made.stderr
    write = 'cd "$WINDROW_VOLUME_DATA" && mkdir -p a/empty && echo one > a/file && cp a/file run && chmod +x run'
    first = renter.create("sh", "-c", f"{write} && ln -s file a/link; {STAY}", volumes=["data:/workspace/kept"])
    wait_for(lambda: renter.windrow("cluster", "exec", first["id"], "--", "test", "-L", "kept/a/link").returncode == 0)
    assert _volume(renter, "data")["used_by"][0]["writes"] is True
    renter.delete(first["id"])
    kept = _volume(renter, "data")
    assert (kept["version"], kept["files"], kept["used_by"], kept["problem"]) == (1, 2, [], None)

    show = "cat /data/a/link && test -x /data/run && test -d /data/a/empty && echo whole; echo two >> /data/a/file"
    second = renter.create("sh", "-c", show, image=image, volumes=["data:/data"])
    assert _log(renter, second) == "one\nwhole\n"
    assert "volumes" in [step["name"] for step in renter.ask("GET", f"/clusters/{second['id']}")["steps"]]
    renter.delete(second["id"])

    third = renter.create("sh", "-c", 'cat "$WINDROW_VOLUME_DATA/a/file"', volumes=["data:/data:ro"])
    assert _log(renter, third) == "one\ntwo\n"
    renter.delete(third["id"])
    assert _volume(renter, "data")["version"] == 2
    assert renter.windrow("volume", "rm", "data", "--yes").returncode == 0
    assert renter.ask("GET", "/volumes")["items"] == []


@pytest.mark.proves("one cluster writes a volume, and another that asks for it is told which")
def test_a_second_writer_is_refused_and_who_takes_it_read_only_cannot_write(renter: Renter, image: str) -> None:
    renter.ask("POST", "/volumes", {"name": "shared"})
    writer = renter.create("sh", "-c", f"echo 1 > /data/f; {STAY}", image=image, volumes=["shared:/data"])
    with pytest.raises(ApiProblem) as refused:
        renter.create("true", until="", image=image, volumes=["shared:/data"])
    assert writer["id"] in str(refused.value) and "shared:/data:ro" in str(refused.value)
    with pytest.raises(ApiProblem, match="in use"):
        renter.ask("DELETE", "/volumes/shared")

    saved = renter.windrow("volume", "save", writer["id"])
    assert (saved.returncode, _volume(renter, "shared")["version"]) == (0, 1), saved.stderr
    shown = renter.windrow("cluster", "show", writer["id"]).stdout.split()
    assert "Volume shared at /data, version 1, saved 20" in " ".join(shown)
    unchanged = renter.windrow("volume", "save", writer["id"])
    assert (unchanged.returncode, _volume(renter, "shared")["version"]) == (0, 1), unchanged.stderr

    renter.delete(writer["id"])
    script = "cat /data/f; echo 2 > /data/f || echo refused"
    reader = renter.create("sh", "-c", script, image=image, volumes=["shared:/data:ro"])
    assert "1\n" in (said := _log(renter, reader)) and "refused" in said
    renter.delete(reader["id"])
    assert _volume(renter, "shared")["version"] == 1


@pytest.mark.long
@pytest.mark.proves("what a stopped cluster has in a volume is there when it is started again")
def test_a_volume_is_free_while_its_cluster_is_stopped_and_there_again_when_it_is_started(renter: Renter) -> None:
    renter.ask("POST", "/volumes", {"name": "lab"})
    script = f'cat "$WINDROW_VOLUME_LAB/f"; echo x >> /data/f; echo up; {STAY}'
    lab = renter.create("sh", "-c", script, volumes=["lab:/data"])["id"]
    wait_for(lambda: b"up" in renter.log(lab))

    assert (done := renter.windrow("cluster", "stop", lab)).returncode == 0, done.stderr
    wait_for(lambda: renter.ask("GET", f"/clusters/{lab}")["phase"] == "Stopped")
    assert (_volume(renter, "lab")["version"], _volume(renter, "lab")["used_by"]) == (1, [])

    other = renter.create("sh", "-c", STAY, volumes=["lab:/data"])
    refused = renter.windrow("cluster", "start", lab, "--yes")
    assert refused.returncode == 5 and other["id"] in refused.stderr
    assert renter.ask("GET", f"/clusters/{lab}")["phase"] == "Stopped"
    renter.delete(other["id"])

    assert (done := renter.windrow("cluster", "start", lab, "--yes")).returncode == 0, done.stderr
    wait_for(lambda: renter.log(lab) == b"x\nup\n")
    renter.delete(lab)
    assert (_volume(renter, "lab")["version"], _volume(renter, "lab")["size_bytes"]) == (2, 4)


@pytest.mark.long
def test_a_job_leaves_its_volume_for_the_next(renter: Renter, tmp_path: Path) -> None:
    renter.ask("POST", "/volumes", {"name": "jobs"})
    script = 'f="$WINDROW_VOLUME_JOBS/n"; echo x >> "$f"; wc -l < "$f"'
    for number in ("1", "2"):
        done = renter.windrow(
            "job", "submit", "--follow", "--no-files", "--volume", "jobs:/data", "--", "sh", "-c", script, cwd=tmp_path
        )
        assert (done.returncode, done.stdout.split()[-1]) == (0, number), done.stderr
        wait_for(lambda: not _volume(renter, "jobs")["used_by"])


def test_what_is_too_large_is_said_and_the_version_before_stays(renter: Renter) -> None:
    renter.ask("POST", "/volumes", {"name": "small", "max_bytes": 1000})
    first = renter.create("sh", "-c", 'echo ok > "$WINDROW_VOLUME_SMALL/f"', volumes=["small:/data"])
    renter.exited(first["id"])
    renter.delete(first["id"])
    second = renter.create("sh", "-c", f'yes | head -c 5000 > "$WINDROW_VOLUME_SMALL/f"; {STAY}', volumes=["small:/d"])
    refused = wait_for(lambda: (one := renter.windrow("volume", "save", second["id"])).returncode and one)
    assert "1000" in refused.stderr
    assert "allowed" in _volume(renter, "small")["problem"]
    renter.delete(second["id"])
    assert (_volume(renter, "small")["version"], _volume(renter, "small")["size_bytes"]) == (1, 3)


@pytest.mark.long
@pytest.mark.proves("what a volume cannot hold is named at the cluster's end, and all else of it is saved")
@pytest.mark.case("B-G1")
def test_a_socket_in_a_volume_is_named_when_its_cluster_is_deleted_and_all_else_is_saved(renter: Renter) -> None:
    renter.ask("POST", "/volumes", {"name": "odd"})
    leave = "import os, socket; os.chdir(os.environ['WINDROW_VOLUME_ODD']); open('result.pt', 'w').write('x')"
    leave += "; socket.socket(socket.AF_UNIX).bind('agent.sock')"
    made = renter.create("python3", "-c", leave, volumes=["odd:/workspace/odd"])
    renter.exited(made["id"])
    deleted = renter.windrow("cluster", "delete", "--yes", made["id"])
    assert deleted.returncode == 0
    assert "Volume odd: saved except 1: 'agent.sock' is a socket" in deleted.stderr
    kept = _volume(renter, "odd")
    assert (kept["version"], kept["files"]) == (1, 1) and "agent.sock" in kept["problem"]
    again = renter.create("sh", "-c", 'cat "$WINDROW_VOLUME_ODD/result.pt"', volumes=["odd:/workspace/odd:ro"])
    assert _log(renter, again) == "x"
    renter.delete(again["id"])
    shown = renter.windrow("cluster", "show", made["id"])
    assert "saved except 1: 'agent.sock' is a socket" in " ".join(shown.stdout.split())
    attached = renter.windrow("job", "submit", "-f", "--volume", "odd:/workspace/odd", "--", "python3", "-c", leave)
    assert attached.returncode == 0 and "Volume odd: saved except 1" in attached.stderr, attached.stderr


def test_what_was_never_saved_is_not_deleted_without_a_word(renter: Renter) -> None:
    renter.ask("POST", "/volumes", {"name": "tight", "max_bytes": 1000})
    made = renter.create("sh", "-c", f'yes | head -c 5000 > "$WINDROW_VOLUME_TIGHT/f"; {STAY}', volumes=["tight:/d"])
    wait_for(lambda: (one := renter.windrow("volume", "save", made["id"])).returncode and "1000" in one.stderr)
    deleted = renter.windrow("cluster", "delete", "--yes", made["id"])
    assert "was not saved" in deleted.stderr and "nothing of it is kept" in deleted.stderr
    events = renter.ask("GET", f"/events?subject={made['id']}")["items"]
    assert "volume.lost" in [one["kind"] for one in events]


@pytest.mark.parametrize(
    ("mount", "said"),
    [("nothing:/data", "no volume nothing"), ("x:/etc", "system"), ("x:data", "absolute"), ("UP:/data", "lower-case")],
)
def test_bad_requests_are_refused_with_the_way_out(renter: Renter, mount: str, said: str) -> None:
    with pytest.raises(ApiProblem) as refused:
        renter.create("true", until="", volumes=[mount])
    assert said in str(refused.value)
