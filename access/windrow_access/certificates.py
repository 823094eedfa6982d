"""Certificates for the HTTPS ports of this Access, renewed while it serves: its own certificate, or an operator's
files."""

import ssl
from collections.abc import Callable
from pathlib import Path

import structlog

from windrow_proto.errors import InvalidInput
from windrow_proto.keys import TlsIdentity
from windrow_tunnel.sockets import server_context

log = structlog.get_logger()


class OwnCertificate:
    """The identity's, with the authority behind it, so that who trusts the market's authority trusts it."""

    def __init__(
        self, identity: Callable[[], TlsIdentity], prepare: Callable[[ssl.SSLContext], None] = lambda context: None
    ) -> None:
        """prepare: what else a new context needs."""
        self._identity, self._prepare = identity, prepare
        self._shown: tuple[TlsIdentity, ssl.SSLContext] | None = None

    def context(self) -> ssl.SSLContext:
        """Returns the TLS context in use."""
        identity = self._identity()
        if self._shown is None or self._shown[0] != identity:
            context = server_context(identity.key_pem, identity.certificate_pem)
            self._prepare(context)
            self._shown = identity, context
        return self._shown[1]


class FileCertificate:
    """Files in PEM, read again when they change; TLS 1.2 too, for the world's browsers."""

    def __init__(self, certificate: Path, key: Path, prepare: Callable[[ssl.SSLContext], None]) -> None:
        """Raises InvalidInput for files that are no certificate and key."""
        self._certificate, self._key, self._prepare = certificate, key, prepare
        self._stamp: tuple[int, ...] = ()
        try:
            self._stamp = self._stamped()
            self._context = self._read()
        except OSError as error:  # ssl.SSLError is one
            raise InvalidInput(f"{certificate} and {key} are no certificate and its key: {error}.") from error

    def context(self) -> ssl.SSLContext:
        """Returns the TLS context in use; what is there and does not fit, as in the midst of a change, is not shown
        yet."""
        try:
            stamp = self._stamped()
            if stamp != self._stamp:
                self._context = self._read()
                self._stamp = stamp
                log.info("service_certificate_read", file=str(self._certificate))
        except OSError as error:
            log.warning("service_certificate_unreadable", file=str(self._certificate), error=str(error)[:200])
        return self._context

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._certificate, self._key)
        self._prepare(context)
        return context

    def _stamped(self) -> tuple[int, ...]:
        found = [path.stat() for path in (self._certificate, self._key)]
        return tuple(figure for one in found for figure in (one.st_mtime_ns, one.st_size, one.st_ino))
