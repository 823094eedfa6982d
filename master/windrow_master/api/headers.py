"""Sets the security headers of every answer: what a page may load, who may frame it, what is kept. Pure.

Answers of the API may load nothing at all. The console's page may load its own files, and add style elements that carry
the nonce of this very answer: its component library writes the theme as such an element. Nothing inline runs.
"""

from typing import Final

NONCE_PLACE: Final = "__WINDROW_NONCE__"
"""The place of the nonce in the built page (console/vite.config.ts)."""
POLICY: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
"""Set where the route has not set its own."""
HANDBOOK_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""Pages of the documentation load their own files only."""
HSTS: Final = "max-age=15552000"
"""Half a year. Without subdomains: the Master's name may have other services below it."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def page_policy(nonce: str) -> str:
    """Return what the console's page may do; the nonce is for its style elements only."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )


def headers_of(scheme: str, host: str) -> dict[str, str]:
    """The headers of every answer. host: as the request named it, with its port.

    Over TLS a browser is told to come back by TLS only; not under a loopback name, where plain HTTP is served as well
    and a browser would take the promise for every port.
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if scheme != "https" or name.lower() in LOOPBACK:
        return HEADERS
    return {**HEADERS, "Strict-Transport-Security": HSTS}
