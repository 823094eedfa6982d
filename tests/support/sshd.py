"""What OpenSSH's server needs on this machine."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def privsep() -> Iterator[None]:
    """The folder that sshd of root needs, and that its service would have made."""
    folder = Path("/run/sshd")
    is_ours = os.geteuid() == 0 and not folder.exists()
    if is_ours:
        folder.mkdir(mode=0o755)
    yield
    if is_ours:
        folder.rmdir()
