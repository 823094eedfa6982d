"""Recorded answers of real NVML are read rightly for ever, and the fake library answers alike."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from tests.hardware.record import record
from tests.hardware.replay import Replay
from windrow_agent.gpu.nvml import NvmlBackend

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted(Path(__file__).with_name("recordings").glob("*.json"))
REAL = pytest.mark.proves(
    "readings of a real NVIDIA card, recorded and replayed", by="python -m tests.hardware.record on a host with a GPU"
)

NOT_RECORDED = {
    *("nvmlDeviceGetSupportedEventTypes", "nvmlSystemGetConfComputeState", "nvmlDeviceGetMigDeviceHandleByIndex"),
    *("nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetSramEccErrorStatus"),  # into a structure of the caller's
    *("nvmlDeviceGetP2PStatus", "nvmlDeviceGetTopologyCommonAncestor"),  # between two cards
}
"""Beside the fields of each link, whose number is a card's own; a replay does not say them, as an older driver."""


def replayed(recording: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[NvmlBackend, Replay]:
    stand_in = Replay(recording)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", stand_in)  # the adapter imports it by this name at opening
    monkeypatch.setattr("windrow_agent.gpu.nvml_card.address", lambda it: it + 1 if isinstance(it, int) else repr(it))
    backend = NvmlBackend(pci_devices=tmp_path)
    assert backend.open() is None
    return backend, stand_in


def judge(backend: NvmlBackend, recording: dict[str, Any]) -> None:
    """Judges facts that must hold of any real card: it has a name, memory, a temperature, power, and a class to be
    found by."""
    facts = backend.inventory().gpus
    values = backend.sample(with_processes=True)
    assert len(facts) + len([one for one in backend.conditions() if one.code == "gpu.duplicate_uuid"]) == len(
        recording["gpus"]
    )
    for gpu in facts:
        assert gpu.name.startswith("NVIDIA ")
        assert gpu.pci_device_id & 0xFFFF == 0x10DE
        assert (gpu.memory_bytes or 0) > 1 << 30
        assert gpu.compute_capability_major is not None
        assert values[gpu.uuid, 3] is not None
        assert 0 < (values[gpu.uuid, 4] or 0) < 120
        assert (values[gpu.uuid, 6] or 0) > 0


@pytest.mark.proves("what the recorder writes is what the replay reads, on the fake")
def test_the_recorder_and_the_replay_agree(fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake_nvml.state.gpu(0).utilization = 42
    live = NvmlBackend(pci_devices=tmp_path)
    assert live.open() is None
    uuid = fake_nvml.state.uuid(0)
    expected = {number: value for (owner, number), value in live.sample(True).items() if owner == uuid}
    live.close()
    recording = json.loads(json.dumps(record()))
    assert "GPU-00000000-0000" in recording["gpus"][0]["nvmlDeviceGetUUID()"]["value"]
    backend, stand_in = replayed(recording, tmp_path, monkeypatch)
    judge(backend, recording)
    found = backend.sample(True)
    first = backend.inventory().gpus[0].uuid
    assert {number: value for (owner, number), value in found.items() if owner == first} == expected
    assert {call.partition("(")[0] for call in stand_in.unknown if "([[" not in call} <= NOT_RECORDED
    assert len(backend.inventory().gpus) == 8


@pytest.mark.proves("a recording is made by one command, on the fake")
def test_the_command_writes_a_recording_without_identifiers(fake_nvml: FakeNvml, tmp_path: Path):
    out = tmp_path / "found.json"
    command = [sys.executable, "-m", "tests.hardware.record", str(out)]
    ended = subprocess.run(
        command, env=fake_nvml.environment, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout[:6]) == (0, "8 GPUs"), ended.stderr
    assert fake_nvml.state.uuid(0)[-17:] == "8000-000000000000"  # what must not stand in it
    assert "-4000-8000-" not in out.read_text()
    uuids = [gpu["nvmlDeviceGetUUID()"]["value"] for gpu in json.loads(out.read_text())["gpus"]]
    assert (len(set(uuids)), uuids[7]) == (8, "GPU-00000000-0000-0000-0000-000000000007")


@REAL
def test_a_recording_of_a_real_card_is_read_rightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not RECORDINGS:
        pytest.skip("no recording of real NVML in tests/hardware/recordings yet")
    for path in RECORDINGS:
        recording = json.loads(path.read_text())
        with monkeypatch.context() as patch:
            backend, _ = replayed(recording, tmp_path, patch)
            judge(backend, recording)


@REAL
def test_the_fake_answers_with_the_codes_and_types_of_the_real_one(fake_nvml: FakeNvml):
    if not RECORDINGS:
        pytest.skip("no recording of real NVML in tests/hardware/recordings yet")
    faked = record()["gpus"][0]
    for path in RECORDINGS:
        real = json.loads(path.read_text())["gpus"][0]
        differing = {
            name: (real[name].get("type"), answer.get("type"))
            for name, answer in faked.items()
            if name in real and answer["code"] == real[name]["code"] == 0 and answer["type"] != real[name]["type"]
        }
        assert differing == {}, path.name
