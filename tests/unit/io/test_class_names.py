"""Outcomes and classes: decisions must never be inverted without a note."""

import pytest

from feta import Categorical, FeatureSpace, Schema, SchemaError
from feta.io.schema_file import Decision, SchemaFile, parse_schema
from feta.io.schema_writer import format_schema

SPACE = FeatureSpace((Categorical("sex", ("f", "m"), sensitive=True),))
WORDS = ["approved", "refused"]


def schema(*names: str, **options: object) -> Schema:
    return Schema(SchemaFile(SPACE, {}, {}, {}, Decision(*names, **options)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "decision",
    [
        schema("Approved", "Refused"),
        schema(" approved", "REFUSED "),
        schema("approved", "no loan"),
        schema("loan", "Refused"),
        schema("refused", "approved", favors="below"),
    ],
)
def test_outcomes_that_contradict_the_classes_are_rejected(decision: Schema) -> None:
    message = r"high scores of the model mean its second class, 'refused', so .* needs favors = "
    with pytest.raises(SchemaError, match=message):
        decision.check_classes(WORDS)


@pytest.mark.parametrize("names", [("good", "bad"), (), ("yes",)])
def test_other_names_than_words_need_the_favored_side(names: tuple[str, ...]) -> None:
    with pytest.raises(SchemaError) as caught:
        schema(*names).check_classes(WORDS)
    favorable, unfavorable = (*names, *("favorable", "unfavorable")[len(names) :])
    assert str(caught.value) == (
        "[decision]: it is not clear which class is favorable: "
        f'got favorable = "{favorable}" and unfavorable = "{unfavorable}" without favors; expected '
        "favors, because the model's classes are 'approved' and 'refused', and high scores mean "
        "'refused'; write one of these lines: favors = \"above\" (the favorable class is "
        "'refused') or favors = \"below\" (the favorable class is 'approved')"
    )
    for favors in ("above", "below"):
        schema(*names, favors=favors).check_classes(WORDS)


@pytest.mark.parametrize(
    ("decision", "classes"),
    [
        (schema("Approved", "Refused", favors="below"), WORDS),
        (schema("refused", "approved"), WORDS),
        (schema("loan", "approved"), WORDS),
        (schema("loan", "refused", favors="below"), WORDS),
        (schema("refused", "loan"), WORDS),
        (schema("good", "bad"), [0, 1]),
        (schema("good", "bad"), [-1.0, 1.0]),
        (schema("good", "bad"), [False, True]),
        (schema("Yes", "yes"), ["yes", "Yes"]),
        (schema(), []),
    ],
)
def test_outcomes_that_fit_the_classes_are_accepted(decision: Schema, classes: list[str]) -> None:
    decision.check_classes(classes)


@pytest.mark.parametrize("names", [("0", "1"), ("false", "TRUE"), ("0.0", "1.0")])
@pytest.mark.parametrize("classes", [[0, 1], [0.0, 1.0], [False, True]])
def test_numbers_and_booleans_are_compared_by_value(
    names: tuple[str, str], classes: list[object]
) -> None:
    with pytest.raises(SchemaError, match='needs favors = "below"'):
        schema(*names).check_classes(classes)
    schema(*names[::-1]).check_classes(classes)


def test_two_outcomes_that_are_one_class_are_rejected() -> None:
    message = 'both outcomes are the same class of the model: got favorable = "Approved"'
    with pytest.raises(SchemaError, match=message):
        schema("Approved", "approved").check_classes(WORDS)


@pytest.mark.parametrize(
    "names", [("a", "c", "b"), ("A", "C ", "B"), ("b", "a", "other"), ("x", "y", "a")]
)
@pytest.mark.parametrize("one_vs_rest", [False, True])
def test_classes_in_another_order_are_rejected(names: tuple[str, ...], one_vs_rest: bool) -> None:
    decision = schema(classes=names, one_vs_rest=names[0] if one_vs_rest else None)
    with pytest.raises(SchemaError, match=r'write classes = \["a", "b", "c"\]'):
        decision.check_classes(["a", "b", "c"])


def test_classes_with_names_of_the_users_choice_are_accepted() -> None:
    schema(classes=("A", " b", "c")).check_classes(["a", "b", "c"])
    schema(classes=("good", "fair", "poor")).check_classes(["a", "b", "c"])
    schema(classes=("1", "2", "3")).check_classes([0, 1, 2])


def test_outcomes_are_paired_with_the_classes() -> None:
    below = schema("good", "bad", favors="below")
    assert below.outcome_classes(WORDS) == (("good", "approved"), ("bad", "refused"))
    assert schema("good", "bad").outcome_classes([0, 1]) == (("good", "1"), ("bad", "0"))
    assert schema("refused", "approved").outcome_classes(WORDS) == ()
    assert schema("good", "bad").outcome_classes([]) == ()
    several = schema(classes=("x", "y", "z"))
    assert several.outcome_classes(["a", "b", "c"]) == (("x", "a"), ("y", "b"), ("z", "c"))


@pytest.mark.parametrize("favors", [None, "above", "below"])
def test_a_schema_file_keeps_whether_the_favored_side_is_stated(favors: str | None) -> None:
    written = format_schema(schema("good", "bad", favors=favors).file)
    assert ("favors" in written) == (favors is not None)
    assert parse_schema(written).decision.favors == favors
