"""What keeps a signed-in browser from acting for another site: the session's cookie, its CSRF token, the origin.

The cookie is SameSite=Strict, which alone does not hold between ports of one machine. A change made with it must come
from one of our own pages (Sec-Fetch-Site, else Origin) and carry a token that only our own pages could read.
"""

import hashlib
import hmac
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request, Response

from windrow_proto.errors import Forbidden

COOKIE: Final = "windrow_session"
COOKIE_PATH: Final = "/api/v1"
CSRF_HEADER: Final = "X-Windrow-CSRF"
_CSRF_DOMAIN: Final = b"windrow-csrf-1\0"


def csrf_of(secret: str) -> str:
    """The CSRF token of a session: follows from its secret, and does not lead back to it."""
    return hashlib.sha256(_CSRF_DOMAIN + secret.encode()).hexdigest()[:43]


def check_origin(request: Request) -> None:
    """Refuse what another site's page sent; programs, which say neither where they fetch from, pass."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_foreign = site is not None and site != "same-origin"
    if origin is not None:
        # The scheme is not compared: a proxy may end TLS before us.
        is_foreign = is_foreign or urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    if is_foreign:
        raise Forbidden("Another site's page sent this. Only pages of this Master may use its sessions.")


def check_change(request: Request) -> None:
    """Let a change through that was made with the cookie; Forbidden unless one of our own pages made it."""
    check_origin(request)
    wanted = csrf_of(request.cookies[COOKIE])
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Forbidden(f"A change made with the console's cookie needs the header {CSRF_HEADER} as GET /me gave it.")


def keep(answer: Response, request: Request, secret: str, life_s: int) -> None:
    """Set the session's cookie, which no script can read, and tell the page its CSRF token."""
    is_secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, secret, max_age=life_s, httponly=True, samesite="strict", secure=is_secure, path=COOKIE_PATH
    )
    answer.headers[CSRF_HEADER] = csrf_of(secret)


def drop(answer: Response) -> None:
    """Forget the cookie."""
    answer.delete_cookie(COOKIE, path=COOKIE_PATH, httponly=True, samesite="strict")
