"""The page of tables and chart is what the code's tables say."""

from pathlib import Path

from windrow_master.hybrid import drawings, routing

PAGE = Path(__file__).parents[3] / "docs" / "diagrams" / "routing.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == drawings.page(), (
        "run: python -m windrow_master.hybrid.drawings > docs/diagrams/routing.md"
    )


def test_the_chart_has_a_question_for_each_test() -> None:
    assert drawings.page().count("{") - 1 == len(routing.TESTS)
