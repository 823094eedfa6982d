"""The TLS certificate that an operator has from elsewhere, so that browsers trust the console: two files, read again
when they are renewed.

    asked for a name of it (SNI)           ──▶ the operator's chain
    another name, an address, or no name   ──▶ the Master's own certificate, as hosts and `windrow` ask for it
"""

import asyncio
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from windrow_master.app.serving import pin_of
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import InvalidInput
from windrow_proto.keys import SERVER_NAMES
from windrow_proto.ports import Clock
from windrow_proto.units import DAY, SECOND

LOOK_EVERY_NS: Final = 10 * SECOND
"""A renewal is weeks before the end, and looking is two `stat`."""
TOLD_BEFORE_NS: Final = 7 * DAY
"""Whoever renews by themselves has done so three weeks before the end."""
FILE_MAX: Final = 1 << 20
"""Bytes: a chain and a key are kilobytes."""

log = structlog.get_logger("windrow_master")


@dataclass(frozen=True, slots=True)
class Chain:
    """A certificate with its key, ready to be shown. names: in lower case, some with `*` as their first label."""

    context: ssl.SSLContext
    names: frozenset[str]
    pin: str
    not_after_ns: int

    def covers(self, name: str) -> bool:
        """True if this is a name of the certificate."""
        asked = name.lower().rstrip(".")
        return asked in self.names or f"*.{asked.partition('.')[2]}" in self.names


class OperatorCertificate:
    """The two files and what was last read from them. `look` reads them again when they have changed."""

    def __init__(self, certificate: Path, key: Path, own_names: Iterable[str], clock: Clock) -> None:
        """own_names: under which this Master answers; the certificate has to have one of them. Raises InvalidInput,
        with the reason for which browsers or TLS would not take these files."""
        self._certificate, self._key, self._clock = certificate, key, clock
        self._own_names = tuple(own_names)
        self._seen = self._stamp()
        self._chain = self._read()
        self._problem, self._since_ns = "", 0

    def pin_for(self, name: str) -> str | None:
        """`sha256//...` of the key that is shown to whoever asks for this name; None: the Master's own."""
        return self._chain.pin if self._chain.covers(name) else None

    def choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        """Show the operator's chain to whoever asks for a name of it; as `SSLContext.sni_callback`."""
        if name is not None and self._chain.covers(name):
            connection.context = self._chain.context

    async def look(self) -> None:
        """Take up renewed files. While they are wrong the ones before are shown, and `conditions` says so."""
        stamp = await asyncio.to_thread(self._stamp)
        if stamp == self._seen and not self._problem:
            return
        try:
            chain = await asyncio.to_thread(self._read)
        except InvalidInput as error:
            if error.detail != self._problem:
                log.warning("certificate_refused", error=error.detail)
            self._since_ns = self._since_ns or self._clock.wall_ns()
            self._problem = error.detail
            return
        self._seen, self._chain, self._problem, self._since_ns = stamp, chain, "", 0
        log.info("certificate_renewed", file=str(self._certificate), days=self._left_ns() // DAY)

    def conditions(self) -> Iterable[Stated]:
        """For health: a renewal that was refused, or an end that is near."""
        left_ns = self._left_ns()
        if self._problem:
            yield ConditionCode.MASTER_CERTIFICATE, f"{self._problem} The one before is still shown.", self._since_ns
        elif left_ns < TOLD_BEFORE_NS:
            ends = "has expired" if left_ns <= 0 else f"expires in {left_ns // DAY} days"
            began_ns = self._chain.not_after_ns - TOLD_BEFORE_NS
            yield ConditionCode.MASTER_CERTIFICATE, f"The certificate in {self._certificate} {ends}.", began_ns

    def _left_ns(self) -> int:
        return self._chain.not_after_ns - self._clock.wall_ns()

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        found = []
        for path in (self._certificate, self._key):
            try:
                facts = path.stat()
            except OSError:
                return ()
            found.append((facts.st_ino, facts.st_mtime_ns, facts.st_size))
        return tuple(found)

    def _read(self) -> Chain:
        chain = read_chain(self._certificate, self._key, self._clock.wall_ns())
        if not any(chain.covers(name) for name in self._own_names):
            theirs, ours = ", ".join(sorted(chain.names)), ", ".join(self._own_names)
            raise InvalidInput(
                f"The certificate in {self._certificate} is for {theirs}, and this Master answers as {ours}: give the "
                "certificate's name by --public or WINDROW_NAMES."
            )
        return chain


def read_chain(certificate: Path, key: Path, now_ns: int) -> Chain:
    """The chain in these files. Raises InvalidInput with a sentence for the operator."""
    (_, chain_pem), (mode, key_pem) = _content(certificate), _content(key)
    if mode & 0o007:
        raise InvalidInput(f"Everybody on this machine may use the key {key}: chmod o= {key}")
    leaf = _leaf(certificate, chain_pem)
    if leaf.public_key() != _public_of(key, key_pem):
        raise InvalidInput(f"{key} is not the key of the first certificate in {certificate}.")
    begin_ns = int(leaf.not_valid_before_utc.timestamp()) * SECOND
    end_ns = int(leaf.not_valid_after_utc.timestamp()) * SECOND
    if not begin_ns <= now_ns < end_ns:
        span = f"from {leaf.not_valid_before_utc:%Y-%m-%d} to {leaf.not_valid_after_utc:%Y-%m-%d}"
        raise InvalidInput(f"The certificate in {certificate} is valid {span}, and not now: renew it.")
    try:
        held = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = frozenset(name.lower() for name in held.get_values_for_type(x509.DNSName)) - {SERVER_NAMES["master"]}
    except (x509.ExtensionNotFound, ValueError):
        names = frozenset()
    if not names:
        raise InvalidInput(f"The certificate in {certificate} is for no DNS name: browsers take none such.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password="")  # given, so that OpenSSL asks nobody
    except (ssl.SSLError, OSError) as error:
        raise InvalidInput(f"TLS does not take {certificate} with {key}: {error}.") from error
    return Chain(context, names, pin_of(chain_pem), end_ns)


def _content(path: Path) -> tuple[int, bytes]:
    """The mode of a file and what it holds."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_mode, file.read(FILE_MAX)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read by the Master's user: {error.strerror}.") from error


def _leaf(path: Path, pem: bytes) -> x509.Certificate:
    try:
        leaf = x509.load_pem_x509_certificates(pem)[0]
        leaf.public_key()
        return leaf
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput(f"{path} is no certificate chain in PEM (-----BEGIN CERTIFICATE-----).") from None


def _public_of(path: Path, pem: bytes) -> object:
    try:
        return serialization.load_pem_private_key(pem, None).public_key()
    except TypeError:
        raise InvalidInput(
            f"The key {path} has a password, and the Master cannot ask for one: give it without."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput(f"{path} is no private key in PEM (-----BEGIN PRIVATE KEY-----).") from None
