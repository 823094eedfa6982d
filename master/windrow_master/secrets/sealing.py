"""Seals the value of a secret under a data key of its own, and that key under the installation's.

 value ──data key──▶ sealed      data key ──installation's key──▶ wrapped_key

Each value has a new data key, and both are bound to project, name and kind. The installation's key comes from the
Master's signing key, which lies in `identity/` and not in the database.
"""

from typing import Final

from windrow_master.secrets.model import Secret, SecretKind
from windrow_proto.data_keys import NONCE_BYTES, DataKey
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.ids import AccountId

_PURPOSE: Final = b"windrow-secret-1"
_NONCE: Final = bytes(NONCE_BYTES)
"""Each data key seals one value."""


def sealed(key: DataKey, account_id: AccountId, name: str, kind: SecretKind, raw: bytes) -> tuple[bytes, bytes]:
    """The wrapped data key and the sealed value. key: the installation's."""
    own, context = DataKey.generate(), _context(account_id, name, kind)
    return key.wrap(own, context), own.cipher(b"", _PURPOSE).seal(_NONCE, raw, context.encode())


def opened(key: DataKey, secret: Secret) -> bytes:
    """The value. Raises InvalidInput where another key sealed it, or it was changed."""
    context = _context(secret.account_id, secret.name, secret.kind)
    try:
        own = key.unwrap(secret.wrapped_key, context)
        return own.cipher(b"", _PURPOSE).open(_NONCE, secret.sealed, context.encode())
    except BadProof:
        words = f"This Master's key is not the one that the secret {secret.name} was sealed with"
        raise InvalidInput(f"{words}. Set it again: windrow secret set {secret.name}", subject=secret.name) from None


def _context(account_id: AccountId, name: str, kind: SecretKind) -> str:
    return f"secret|{account_id}|{name}|{kind}"
