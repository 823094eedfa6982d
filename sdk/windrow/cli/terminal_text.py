"""What a program wrote, as text that is safe on a terminal: it keeps colours, and cannot move the cursor, clear the
screen or set a title. Pure."""

import codecs
import re
from enum import Enum
from typing import Final

RESET: Final = b"\x1b[0m"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Every control character but tab, newline and carriage return, by which progress bars write over themselves."""
_COLOUR: Final = re.compile(r"[0-9;:]{0,64}")
_STRINGS: Final = "]PX^_"
"""Behind an escape: they begin a text for the terminal itself, such as its title or the clipboard."""
_CSI, _ST, _BEL, _ESC = "\x9b", "\x9c", "\x07", "\x1b"
_C1_STRINGS: Final = "\x90\x98\x9d\x9e\x9f"


class _Within(Enum):
    TEXT = "text"
    ESCAPE = "escape"
    CSI = "csi"
    STRING = "string"
    STRING_ESCAPE = "string_escape"


class TerminalText:
    """Takes the pieces of a stream as they come; a sequence or a character may be cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._within, self._given = _Within.TEXT, ""
        self.has_colours = False
        """A colour was passed on; the end of the text needs RESET."""

    def clean(self, data: bytes) -> bytes:
        """The next piece without what is not for the eye, in UTF-8."""
        text = self._decoder.decode(data)
        if self._within is _Within.TEXT and not _CONTROL.search(text):
            return text.encode()
        return "".join(map(self._next, text)).encode()

    def _next(self, one: str) -> str:
        """The text that is shown for the next character."""
        match self._within:
            case _Within.ESCAPE:
                return self._escaped(one)
            case _Within.CSI:
                return self._in_csi(one)
            case _Within.STRING | _Within.STRING_ESCAPE:
                return self._in_string(one)
        if one in (_ESC, _CSI) or one in _C1_STRINGS:
            self._given = ""
            self._within = {_ESC: _Within.ESCAPE, _CSI: _Within.CSI}.get(one, _Within.STRING)
            return ""
        return "" if _CONTROL.match(one) else one

    def _escaped(self, one: str) -> str:
        if one == "[":
            self._within = _Within.CSI
        elif one in _STRINGS:
            self._within = _Within.STRING
        elif " " <= one <= "/":
            pass  # more of it follows
        else:
            self._within = _Within.TEXT
            return self._next(one) if one < " " or one > "~" else ""
        return ""

    def _in_csi(self, one: str) -> str:
        if " " <= one <= "?":
            self._given += one if len(self._given) <= 64 else ""
            return ""
        self._within = _Within.TEXT
        if one == "m" and _COLOUR.fullmatch(self._given):
            self.has_colours = True
            return f"{_ESC}[{self._given}m"
        return "" if "@" <= one <= "~" else self._next(one)

    def _in_string(self, one: str) -> str:
        # A line's end closes it, too: what follows in the log is not hidden.
        if one in (_BEL, _ST, "\n") or (self._within is _Within.STRING_ESCAPE and one == "\\"):
            self._within = _Within.TEXT
            return "\n" if one == "\n" else ""
        self._within = _Within.STRING_ESCAPE if one == _ESC else _Within.STRING
        return ""
