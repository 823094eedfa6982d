"""A host that is shut down, by a real systemd: its work is told as lost, and neither as failed nor as done.

A shim and its commands run in the service that the installer makes, in namespaces of their own; their folder is this
machine's, so that what is noted there can be read afterwards, as by the agent of the next boot.
"""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import clean_debian
from tests.support.places import HOST, new_id, no_progress
from tests.support.second_host import CLEAN, STEP_S, WITH_SYSTEMD, SecondHost, need_namespaces
from tests.waiting import poll
from windrow_agent.runtimes import sandbox, shim
from windrow_agent.runtimes.port import ENDED_BY_HOST, RunState
from windrow_agent.runtimes.process import SHIM, ProcessRuntime
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.model import WorkloadSpec

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "windrow-agent.service"
TAKEN = ("Type=", "KillMode=", "TimeoutStopSec=")
"""The messages of the service at its end; the rest is of rights."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "it does as it is told": ("sleep", "1000"),
    "it says that it is done": ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"),
    "it does not listen": ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"),
    "it was done before": ("sh", "-c", "exit 0"),
    "it had failed before": ("sh", "-c", "exit 143"),
}
LOST = (RunState.LOST, None, ENDED_BY_HOST)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Debian that gives what does not end two seconds."""
    clean_debian.need_debian()
    need_namespaces()
    made = clean_debian.make(tmp_path_factory.mktemp("shutdown") / "root", "systemd", "dbus", "python3")
    settings = made / "etc/systemd/system.conf.d/patience.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[Manager]\nDefaultTimeoutStopSec=2s\n")
    return made


@pytest.mark.proves("a host that is shut down loses its process work, which neither fails nor is done by that")
async def test_what_a_host_ends_while_it_is_shut_down_is_lost_and_has_no_exit_code(root: Path, tmp_path: Path) -> None:
    runtime, begun = ProcessRuntime(tmp_path / "process", tmp_path, HOST, is_bubblewrap_wanted=False), {}
    for name, argv in COMMANDS.items():
        begun[name] = await _prepared(runtime, tmp_path, argv)
    with _booted(root, tmp_path, list(begun.values())) as machine:
        poll(lambda: all(_has_begun(tmp_path, one) for one in begun.values()), STEP_S, "all of them have begun")
        assert machine.run("systemctl poweroff").returncode == 0

    seen = {}
    for name, workload_id in begun.items():
        run = await runtime.observe(workload_id)
        assert run is not None and (run.running_ns > 0 or name == "it does not listen")
        seen[name] = (run.state, run.exit_code, run.detail)
    assert seen == {
        "it does as it is told": LOST,
        "it says that it is done": LOST,
        "it does not listen": (RunState.LOST, None, ""),  # its shim was killed with it, and nobody saw its end
        "it was done before": (RunState.EXITED, 0, ""),
        "it had failed before": (RunState.EXITED, 143, ""),
    }


async def _prepared(runtime: ProcessRuntime, folder: Path, argv: tuple[str, ...]) -> WorkloadId:
    spec = WorkloadSpec(new_id(), ClusterId("cluster_x"), (), "process", argv=argv)
    await runtime.prepare(spec, no_progress)
    own = folder / "process" / spec.workload_id
    inside = sandbox.SandboxContents(spec, own, folder / "process" / "bin", 0)
    kept = sandbox.launch_record(sandbox.Sandbox(None, is_plain=True), inside, argv, ())
    shim.write_whole(str(own), "launch.json", {**kept, "log_cap_bytes": 1000})
    return spec.workload_id


def _has_begun(folder: Path, workload_id: WorkloadId) -> bool:
    own = folder / "process" / workload_id
    is_short = "exit" in (own / "launch.json").read_text().split("trap")[0]
    return (own / ("end.json" if is_short else "running.json")).exists()


@contextmanager
def _booted(root: Path, kept: Path, workloads: list[WorkloadId]) -> Iterator[SecondHost]:
    """A machine whose service has begun these; waits afterwards until it is off."""
    (kept / "shim.py").write_bytes(Path(SHIM).read_bytes())
    begin = "; ".join(f"python3 -I -S {kept}/shim.py run {kept}/process/{one}" for one in workloads)
    service = [line for line in UNIT.read_text().splitlines() if line.startswith(TAKEN)]
    text = "\n".join(["[Service]", *service, f"ExecStart=/bin/sh -c '{begin}; exec sleep 1000'", ""])
    (root / "etc/systemd/system/windrow-agent.service").write_text(text)
    wanted = root / "etc/systemd/system/multi-user.target.wants"
    wanted.mkdir(parents=True, exist_ok=True)
    (wanted / "windrow-agent.service").symlink_to("../windrow-agent.service")
    bound = f"mkdir -p .{kept}\nmount --bind {kept} .{kept}\npivot_root . mnt\n"
    script = CLEAN.format(root=root) + WITH_SYSTEMD.replace("pivot_root . mnt\n", bound)
    spaces = ("--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child", "--ipc", "--cgroup")
    words = ["unshare", *spaces, "sh", "-c", script]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            yield SecondHost(int(children[0]), is_clean=True)
            process.wait(STEP_S)
        finally:
            process.kill()
