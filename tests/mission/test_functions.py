"""The scripts of the talk on a generic runtime, with the import line changed, on a host with a (pretend) A10G."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench._cards import cards, why_none
from tests.mission.sentences import BY_ID
from tests.support.rental import renting
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PASSED_ON = ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")
TRAIN_S = 150
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
        card = fake.state.gpu(0)
        card.name, card.pci_device, card.memory_total = b"NVIDIA A10G", 0x223710DE, 23028 << 20
        with renting(environment={name: fake.environment[name] for name in PASSED_ON}) as renter:
            wait_for(lambda: renter.host()["gpus"][0]["tier"])
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
