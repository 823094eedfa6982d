"""Checks the next release against the key learned at joining: `python -m windrow_agent.release MANIFEST DATA_DIR`.

The installer asks the agent that is installed, before it installs another over it. `... NAME FILE` behind it: the file
has to be the one that the list has under that name.
"""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from windrow_proto.enrol import IdentityFolder
from windrow_proto.errors import BadProof, WindrowError
from windrow_proto.manifest import verified


def check(manifest: Path, data_dir: Path, name: str = "", file: Path | None = None) -> str:
    """The name of the release. Raises BadProof if another than this host's Master signed it, or if `file` is not the
    one that it lists as `name`; InvalidInput, OSError."""
    identity = IdentityFolder(data_dir / "identity").load()
    try:
        record = verified(manifest.read_bytes(), identity.master_public)
    except BadProof as error:
        raise BadProof(
            f"This release is not signed by the Master that this host belongs to ({identity.master_url}). "
            "To move to another Master, uninstall first.",
            subject=identity.subject_id,
        ) from error
    listed = {str(one["name"]): str(one["sha256"]) for one in record.get("files", ())}
    if file is not None and listed.get(name) != hashlib.sha256(file.read_bytes()).hexdigest():
        raise BadProof(f"{name} is not the file that this host's Master signed.", subject=identity.subject_id)
    return str(record.get("release", ""))


def main(arguments: Sequence[str]) -> int:
    """Exit status 0 when it may be installed, 1 with a sentence when not."""
    manifest, data_dir, name, file = [*arguments, "", ""][:4]
    try:
        check(Path(manifest), Path(data_dir), name, Path(file) if file else None)
    except (WindrowError, OSError) as error:
        print(error.detail if isinstance(error, WindrowError) else error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
