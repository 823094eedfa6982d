"""A program's log on a terminal: colours pass, all else that a terminal obeys is dropped, wherever a piece is cut."""

import pytest

from windrow.cli.terminal_text import TerminalText

CASES = [
    ("plain \u00e9\u4e2d text\n\tand\r50 %", "plain \u00e9\u4e2d text\n\tand\r50 %"),
    ("\x1b[1;31mred\x1b[0m \x1b[38:5:9mx\x1b[m", "\x1b[1;31mred\x1b[0m \x1b[38:5:9mx\x1b[m"),
    ("a\x1b[2J\x1b[H\x1b[?1049hb\x1b[3Ac", "abc"),
    ("a\x1b]0;title\x07b\x1b]52;c;aGk=\x1b\\c", "abc"),
    ("a\x1bPq#0\x1b\\b\x1bcc\x1b(Bd", "abcd"),
    ("a\x9b2Jb\x9d0;t\x9cc\x07\x08\x00\x7fd", "abcd"),
    ("a\x1b]0;never ended\nb", "a\nb"),
    ("a\x1b[31;\x1b[32mb\x1b", "a\x1b[32mb"),
    ("a\x1b[>4;2mb", "ab"),
    ("a\x1b[" + "1;" * 100 + "mb", "ab"),
]


@pytest.mark.parametrize(("given", "shown"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
def test_colours_pass_and_nothing_else_that_a_terminal_obeys(given: str, shown: str, size: int) -> None:
    data, text = given.encode(), TerminalText()
    pieces = [text.clean(data[start : start + size]) for start in range(0, len(data), size)]
    assert b"".join(pieces).decode() == shown
    assert text.has_colours == ("m" in shown and "\x1b[" in shown)


def test_bytes_that_are_no_text_are_marked() -> None:
    assert TerminalText().clean(b"a\xff\x9bb").decode() == "a\ufffd\ufffdb"
