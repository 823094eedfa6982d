"""Sends one mail to a server; the adapter of smtplib."""

import smtplib
import ssl
from email.message import EmailMessage
from typing import Final

from windrow_master.mail.settings import MailSettings
from windrow_proto.errors import Unavailable
from windrow_proto.wire_fields import clean_text

DEADLINE_S: Final = 20.0
"""For each step of the conversation."""
SAID_MAX: Final = 200


class Refused(Exception):
    """The server will never take this mail; the text says why."""


def send(settings: MailSettings, mail: EmailMessage) -> None:
    """Hand a mail to the server. Raises Unavailable where another try makes sense, Refused where none does. Blocks."""
    try:
        with _connected(settings) as server:
            if settings.user:
                server.login(settings.user, settings.password)
            server.send_message(mail)
    except smtplib.SMTPRecipientsRefused as refused:
        code, words = next(iter(refused.recipients.values()), (0, b""))
        raise _judged(code, words) from None
    except smtplib.SMTPResponseException as answer:
        raise _judged(answer.smtp_code, answer.smtp_error) from None
    except smtplib.SMTPNotSupportedError:
        way = "Use smtps://, or `starttls=off` for a server on this machine."
        raise Unavailable(f"The mail server {settings.host}:{settings.port} offers no STARTTLS. {way}") from None
    except (OSError, smtplib.SMTPException) as error:
        said = clean_text(str(error), SAID_MAX)
        raise Unavailable(f"The mail server {settings.host}:{settings.port} does not answer: {said}") from None


def _connected(settings: MailSettings) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if settings.encrypts:
        return smtplib.SMTP_SSL(settings.host, settings.port, timeout=DEADLINE_S, context=context)
    server = smtplib.SMTP(settings.host, settings.port, timeout=DEADLINE_S)
    if settings.starts_tls:
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


def _judged(code: int, words: bytes | str) -> Exception:
    said = clean_text(words if isinstance(words, str) else words.decode(errors="replace"), SAID_MAX)
    text = f"The mail server answers {code}: {said}"
    return Refused(text) if 500 <= code < 600 and code not in (530, 535) else Unavailable(text)
