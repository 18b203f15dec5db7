"""The command `feta explain`; it imports what it needs when it runs."""

from typing import Annotated

import typer

from feta.cli.load import load_model, origin_of, source_options
from feta.cli.options import (
    AsJson,
    Data,
    ExactWeights,
    External,
    IdColumn,
    Layers,
    MaxRows,
    Method,
    OneClass,
    OptionalModelFile,
    Predict,
    SchemaPath,
    Timeout,
    TrustPickle,
    Votes,
    VotesFrom,
)


def explain(
    data: Data,
    change: Annotated[
        list[str],
        typer.Option(
            help="Columns that may change, separated by commas, each with its options: "
            "duration:down:6..48:step=6:per=12,purpose=car|repairs. May be repeated."
        ),
    ],
    model: OptionalModelFile = None,
    predict: Predict = None,
    schema: SchemaPath = None,
    row: Annotated[
        list[int] | None, typer.Option(min=1, help="Row to explain, from 1. May be repeated.")
    ] = None,
    id_column: IdColumn = None,
    person: Annotated[
        list[str] | None, typer.Option(help="Id to explain, with --id. May be repeated.")
    ] = None,
    people: Annotated[
        int, typer.Option(min=1, help="Without --row and --person: the first refused people.")
    ] = 10,
    favorable: Annotated[
        str | None, typer.Option(help="The wanted decision; needed for several classes.")
    ] = None,
    max_columns: Annotated[int, typer.Option(min=1, help="Most columns that change together.")] = 4,
    max_decisions: Annotated[
        int, typer.Option(min=1, help="Most decisions per person; beyond them, without a proof.")
    ] = 200_000,
    one_vs_rest: OneClass = None,
    vote_weights: Votes = None,
    votes_from: VotesFrom = None,
    exact_weights: ExactWeights = False,
    method: Method = "auto",
    timeout: Timeout = 600.0,
    max_rows: MaxRows = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """State reasons for unfavorable fair decisions.

    Finds the fewest and smallest changes of other columns that make the fair decision favorable,
    and says whether they are proved to be minimal. Sensitive columns are never a reason.

    Exit code 0: all reasons are known; 2: bad input; 3: a decision is undecided, or changes were
    not found or are not proved to be minimal.
    """
    from feta.cli.explain import ExplainOptions, run_explain

    source = source_options(layers, external_data, trust_pickle)
    origin = origin_of(model, predict, method, timeout, max_rows)
    loaded = load_model(
        origin, schema, source, data, one_vs_rest=one_vs_rest, ignore_sensitive=True
    )
    options = ExplainOptions(
        data,
        tuple(change),
        tuple(row or ()),
        id_column,
        tuple(person or ()),
        people,
        favorable,
        max_columns,
        max_decisions,
        as_json,
        vote_weights,
        votes_from,
        exact_weights=exact_weights,
    )
    return run_explain(loaded, options)
