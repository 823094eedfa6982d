"""The scripts of the talk on a generic runtime, with the import line changed, on a host with a (pretend) A10G."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench._cards import cards, why_none
from tests.fake_nvml.state import RTX_4090
from tests.mission.sentences import BY_ID
from tests.support.rental import renting
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PASSED_ON = ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")
TRAIN_S = 150
A10G = {
    **{name: value for name, value in RTX_4090.items() if name != "field"},
    "name": b"NVIDIA A10G",
    "serial": b"1320000000000",
    "pci_device": 0x223710DE,
    "memory_total": 23028 << 20,
    "capability_major": 8,
    "capability_minor": 6,
    "cores": 9216,
    "clock_memory": 6251,
    "clock_memory_max": 6251,
    "power_limit_mw": 150_000,
    "power_limit_max_mw": 150_000,
    "power_mw": 60_000,
}
A10G_POWER = {187: 100_000, 189: 150_000}
"""As docs/gpu-models.md has the card, which the Master compares; cores and clocks so that its bandwidth is 600 GB/s."""
TRAINING = """
import os

def train_pytorch(model, dataset_path, epochs, **more):
    for epoch in range(epochs):
        print(f"{model} epoch {epoch} on {len(os.environ['CUDA_VISIBLE_DEVICES'].split(','))} GPU")
    with open("finished", "w") as file:
        file.write(more["output_path"])
"""
SCRIPT = """
import windrow as rh
from training import train_pytorch

def train_gpu():
    gpu = rh.cluster(name="rh-a10g",
                     instance_type="A10G:1",
                     provider="aws")
    train_pytorch_gpu = rh.function(train_pytorch).to(gpu)
    train_pytorch_gpu(
        model="resnet18",
        dataset_path="s3://bucket/data",
        epochs=10,
        batch_size=32,
        learning_rate=0.001,
        momentum=0.9,
        weight_decay=0.0001,
        output_path="s3://bucket/output",
    )

if __name__ == "__main__":
    train_gpu()
"""


@pytest.mark.skipif(bool(why_none()), reason=f"a pretend A10G: {why_none() or 'there is a compiler'}")
def test_any_ml_engineer_can_train_on_a_gpu_with_the_talks_own_lines(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("sentence", BY_ID["functions"].id)
    (tmp_path / "training.py").write_text(TRAINING)
    (tmp_path / "train.py").write_text(SCRIPT)
    with cards(1) as fake:
        for name, value in A10G.items():
            setattr(fake.state.gpu(0), name, value)
        for field_id, value in A10G_POWER.items():
            fake.state.gpu(0).field[field_id] = value
        with renting(environment={name: fake.environment[name] for name in PASSED_ON}) as renter:
            wanted = {"kind": "box", "gpus": 1, "gpu_model": "A10G", "argv": ["true"]}
            wait_for(lambda: renter.ask("POST", "/clusters/plan", wanted)["fits"])
            cli = renter.stack.cli
            own = {"WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"], "XDG_STATE_HOME": str(tmp_path / ".venv")}
            done = subprocess.run(
                [sys.executable, "train.py"], cwd=tmp_path, env=os.environ | own, capture_output=True, text=True,
                timeout=TRAIN_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert done.stdout.splitlines() == [f"resnet18 epoch {number} on 1 GPU" for number in range(10)]
            (cluster,) = renter.all("/clusters")
            assert (cluster["name"], cluster["phase"]) == ("rh-a10g", "Running")
            renter.delete(cluster["id"])
