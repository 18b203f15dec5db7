"""Every kind of model that people have: a way in, and 0 wrong answers by brute force."""

from pathlib import Path

import pytest

from tests.extras import missing
from tests.kinds.catalogue import KINDS
from tests.kinds.examine import examine
from tests.kinds.kind import Kind
from tests.kinds.page import PAGE, committed_rows, provenance_of, render

pytestmark = pytest.mark.filterwarnings("ignore")  # small tables; counted models


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.family}, {kind.name}")
def test_answers_are_those_of_the_model_itself(kind: Kind, tmp_path: Path) -> None:
    absent = missing(*kind.packages)
    if absent:
        pytest.skip(f"{', '.join(absent)} is not installed")
    examined = examine(kind, tmp_path)
    assert examined.wrong == []
    assert examined.row in committed_rows(), "run python -m tests.kinds, and review the page"


def test_the_page_lists_all_kinds() -> None:
    rows = committed_rows()
    listed = [tuple(row.removeprefix("| ").split(" | ")[:2]) for row in rows]
    assert listed == [(kind.family, kind.name) for kind in KINDS]
    assert PAGE.read_text(encoding="utf-8") == render(rows)


def test_at_least_sixty_kinds_have_a_way_in_and_forty_are_proved() -> None:
    results = [provenance_of(row) for row in committed_rows()]
    assert len(results) >= 60
    assert results.count("proved") >= 40
    assert set(results) <= {"proved", "sampled", "counted"}
