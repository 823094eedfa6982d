"""The signed list of files that a host installs the agent from: what the signature covers, making it, checking it.
Pure.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import DOMAIN_MANIFEST, SigningKey, verify_signature

VERSION: Final = 1
BYTES_MAX: Final = 256 * 1024
"""Two hundred files take 40 KiB."""


def signed(record: Mapping[str, Any], key: SigningKey) -> bytes:
    """The record as JSON with `manifest` (the format's version) and `signature` added."""
    whole = {**record, "manifest": VERSION}
    signature = key.sign(DOMAIN_MANIFEST, _covered(whole))
    return json.dumps({**whole, "signature": base64.b64encode(signature).decode()}, indent=1, sort_keys=True).encode()


def verified(content: bytes, master_public: bytes) -> dict[str, Any]:
    """The record, if this Master signed it. Raises BadProof, or InvalidInput for what is no manifest."""
    if len(content) > BYTES_MAX:
        raise InvalidInput(f"A list of files has at most {BYTES_MAX} bytes.")
    try:
        record = json.loads(content)
        signature = base64.b64decode(record["signature"], validate=True)
        version = record["manifest"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput("This is not a signed list of files.") from error
    if version != VERSION:
        raise BadProof(f"A list of format {version} cannot be checked by this release, which knows {VERSION}.")
    verify_signature(master_public, DOMAIN_MANIFEST, _covered(record), signature)
    found: dict[str, Any] = record
    return found


def _covered(record: Mapping[str, Any]) -> bytes:
    """Keys sorted and no spaces, so that the bytes do not hang on who wrote them; without the signature itself."""
    unsigned = {key: value for key, value in record.items() if key != "signature"}
    return json.dumps(unsigned, sort_keys=True, separators=(",", ":")).encode()
