"""A machine that SSH reaches may answer whatever it likes."""

from pathlib import Path

import pytest

from tests.master_support import ManualClock
from windrow_master.hybrid.backends.port import Doubtful
from windrow_master.hybrid.backends.ssh import SshBox, SshSettings
from windrow_proto.units import GIB, Bytes, Microcents


async def test_a_machine_that_never_stops_talking_gave_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\nexec yes\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    settings = SshSettings(
        address="box",
        port=22,
        user="root",
        host_key="ssh-ed25519 AAAA",
        gpu="cpu",
        gpus=0,
        cpus=1,
        memory_bytes=Bytes(GIB),
        region="here",
        country="",
        price_per_hour=Microcents(1),
        currency="EUR",
        private_key="none",
    )
    box = SshBox(settings, ManualClock(), call_s=30)
    with pytest.raises(Doubtful, match="more than"):
        await box.describe("market")
    await box.close()
