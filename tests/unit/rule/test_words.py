import pytest

from feta.rule.words import OTHER_CLASS_MARGIN, RuleWords


def test_the_words_of_two_decisions_are_the_default() -> None:
    words = RuleWords()
    assert words.counterexample == "a counterpart with a different decision"
    assert words.same_outcome == "the same decision"
    assert words.changes == "only changes"
    assert words.pair_names == ("person", "counterpart")
    assert words.margin == "score"
    assert words.violation == "The scores of the worst pairs differ by"
    assert words.flip == ("Fair decisions (feta predict) would change", "of the decisions.")
    assert (words.digits, words.unit) == (".3g", "")
    assert OTHER_CLASS_MARGIN == "For the worst counterparts, the margin of the other class is"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (RuleWords(), "1.23e+03"),
        (RuleWords(digits=",.6g"), "1,234.57"),
        (RuleWords(digits=",.6g", unit="euros"), "1,234.57 euros"),
        (RuleWords(unit="{0} %s"), "1.23e+03 {0} %s"),
    ],
)
def test_an_amount_has_digits_and_a_unit(words: RuleWords, text: str) -> None:
    assert words.amount(1234.5678) == text
