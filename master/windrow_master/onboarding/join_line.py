"""Writes the lines that bring a host in, or the command `windrow` onto a person's machine: pinned to the key that the
Master shows, secrets in the environment."""

import base64
import ipaddress
import shlex
from typing import Final
from urllib.parse import urlsplit

ED25519_SPKI: Final = bytes.fromhex("302a300506032b6570032100")
"""The bytes before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410, section 10.1)."""


def join_line(https_url: str, pin: str, token: str) -> str:
    """The line for a shell. pin: `sha256//...` of the Master's certificate key, as curl reads it.

    The token goes by environment, so that no list of processes shows it; sudo is asked for by the script itself, so
    that the line also works where there is none. For a Master on loopback a flag of the line says whom it serves.
    """
    url, key = shlex.quote(https_url), shlex.quote(pin)
    only_here = " --this-machine-only" if is_loopback(https_url) else ""
    fetch = f"curl -fsSL -k --pinnedpubkey {key} {url}/install.sh"
    return f"{fetch} | WINDROW_JOIN_TOKEN={shlex.quote(token)} sh -s -- --url {url} --pin {key}{only_here}"


def cli_line(https_url: str, pin: str) -> str:
    """The line for a shell that installs the command `windrow`."""
    return f"curl -fsSL -k --pinnedpubkey {shlex.quote(pin)} {shlex.quote(https_url)}/install-cli.sh | sh"


def filled(text: str, https_url: str, pin: str, signer: bytes) -> str:
    """An installer with this Master as its default and its signing key (32 bytes) as what a first install trusts, or
    another carried file with its @URL@ and @PIN@; a Master that serves no other machines yet leaves all empty."""
    url, key = shlex.quote(https_url), shlex.quote(pin)
    if not https_url or not pin:
        return text
    trusted = base64.b64encode(ED25519_SPKI + signer).decode()
    text = text.replace("ACTION=install URL= PIN= ", f"ACTION=install URL={url} PIN={key} ", 1)
    text = text.replace(" SIGNER= ", f" SIGNER={trusted} ", 1)
    return text.replace("@URL@", https_url).replace("@PIN@", pin)


def link_note(https_url: str, shows_own_certificate: bool) -> str | None:
    """Why a link to the Master may not open in the browser of whom it is sent to, and what to do; None: it does."""
    if is_loopback(https_url):
        warns = "The browser warns there of the market's own certificate: go on. " if shows_own_certificate else ""
        return (
            f"The link works on the Master's own machine only, since the Master listens on loopback. {warns}For "
            "others, start it with an address that they reach, then make a new link: "
            "windrow up --listen 0.0.0.0 --public ADDRESS"
        )
    if not shows_own_certificate:
        return None
    return (
        "The browser will warn, since the certificate is the market's own. Tell them to go on past the warning, or "
        "give the Master a certificate that browsers trust: --tls-cert-file, --tls-key-file (docs/on-the-internet.md)"
    )


def is_loopback(https_url: str) -> bool:
    """Return whether no other machine can reach this address."""
    host = urlsplit(https_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
