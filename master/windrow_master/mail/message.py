"""One mail as it is composed: plain text and HTML of the same paragraphs and one link. Pure."""

import html
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formataddr
from typing import Final

SENDER: Final = "Windrow"
FOOT: Final = "Somebody used your address at a Windrow market. If you expected no mail, ignore this one."


@dataclass(frozen=True, slots=True)
class Letter:
    """What a mail says. paragraphs: above the link; link: opens the next step; below: what else there is to know;
    foot: why it was sent."""

    subject: str
    paragraphs: tuple[str, ...]
    link: str
    link_text: str
    below: tuple[str, ...] = ()
    foot: str = FOOT


def _plain(text: str) -> str:
    """A text for a header, in one line, of which nothing is decoded as an encoded word."""
    return " ".join(text.replace("=?", "= ?").split())


def compose(letter: Letter, to: str, sender: str, message_id: str, date: str) -> EmailMessage:
    """The mail, ready to be sent. sender: its address. date: as RFC 5322 writes it."""
    mail = EmailMessage()
    mail["Subject"] = _plain(letter.subject)
    mail["From"] = formataddr((SENDER, sender))
    mail["To"] = to
    mail["Date"] = date
    mail["Message-ID"] = message_id
    mail["Auto-Submitted"] = "auto-generated"
    paragraphs = [*letter.paragraphs, letter.link, *letter.below, letter.foot]
    mail.set_content("\n\n".join(paragraphs) + "\n")
    button = f'<p><a href="{html.escape(letter.link)}">{html.escape(letter.link_text)}</a></p>'
    body = [
        *(f"<p>{html.escape(one)}</p>" for one in letter.paragraphs),
        button,
        *(f"<p>{html.escape(one)}</p>" for one in letter.below),
        f"<p><small>{html.escape(letter.foot)}</small></p>",
    ]
    mail.add_alternative(f"<!doctype html><html><body>{''.join(body)}</body></html>", subtype="html")
    return mail
