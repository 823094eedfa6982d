"""Lets apt install packages in a container whose root has no capabilities.

Before it fetches anything apt becomes the user `_apt`, which such a root may not. It is told to stay who it is.
"""

import io
import tarfile
from typing import Final

FOLDER: Final = "/etc/apt/apt.conf.d"
FILE: Final = "90windrow"
SETTINGS: Final = b'APT::Sandbox::User "root";\n'


def settings() -> bytes:
    """The settings as an archive, to be unpacked in FOLDER."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo(FILE)
        member.size, member.mode = len(SETTINGS), 0o644
        tar.addfile(member, io.BytesIO(SETTINGS))
    return out.getvalue()
