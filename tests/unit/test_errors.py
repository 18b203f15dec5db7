import pytest

from feta import (
    CertificateError,
    DomainError,
    EngineError,
    FetaError,
    MissingExtra,
    NetworkError,
    SchemaError,
    Undecided,
)
from feta.errors import unknown_choice


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (SchemaError, ValueError),
        (DomainError, ValueError),
        (NetworkError, ValueError),
        (EngineError, ValueError),
        (Undecided, RuntimeError),
        (CertificateError, RuntimeError),
        (MissingExtra, ImportError),
    ],
)
def test_every_error_is_a_feta_error_and_a_builtin_error(
    error: type[FetaError], builtin: type[Exception]
) -> None:
    assert issubclass(error, FetaError)
    assert issubclass(error, builtin)


def test_a_domain_error_names_column_and_row() -> None:
    error = DomainError.at("age", 3, "must be young")
    assert (str(error), error.column, error.row) == ("'age' must be young (row 3)", "age", 3)
    plain = DomainError("no")
    assert (plain.column, plain.row) == (None, None)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [((4,), r"\(rows 4\): why"), (tuple(range(10)), r"8, 9\): why"), (tuple(range(11)), "8, 9, …")],
)
def test_undecided_names_the_first_rows_and_stores_all(rows: tuple[int, ...], shown: str) -> None:
    with pytest.raises(Undecided, match=shown) as refused:
        raise Undecided(rows, "why")
    assert refused.value.rows == rows
    subject = "1 person" if len(rows) == 1 else f"{len(rows)} people"
    assert str(refused.value).startswith(f"{subject} could not be decided")


def test_a_missing_extra_names_its_command() -> None:
    assert str(MissingExtra("torch", "t")) == "torch is not installed; pip install 'feta-fair[t]'"


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        (
            "maried",
            ("married", "single"),
            "got 'maried'; expected one of 'married', 'single'; did you mean 'married'?",
        ),
        ("zzz", ("married",), "got 'zzz'; expected one of 'married'"),
        (None, ("married",), "got None; expected one of 'married'"),
        ("x", [f"n{n}" for n in range(13)], "'n10', 'n11', …"),
    ],
)
def test_a_near_name_is_offered_and_long_lists_are_cut(
    name: object, known: list[str], words: str
) -> None:
    assert words in unknown_choice(name, known)
    assert ("did you mean" in unknown_choice(name, known)) == ("did you mean" in words)
