"""Design matrices of statsmodels: named columns with a constant, or the terms of a formula."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.absorb.feature import Feature, joint
from feta.absorb.transformers import Data, DescribedStep, Features, Leaf
from feta.arrays import Matrix
from feta.errors import NetworkError

# Functions of patsy that depend on their arguments alone.
PURE = frozenset(
    (
        "C",
        "I",
        "Q",
        "Treatment",
        "Sum",
        "Diff",
        "Poly",
        "Helmert",
        "bs",
        "cr",
        "cc",
        "center",
        "standardize",
        "scale",
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class NamedColumns(DescribedStep):
    """Raw columns by name, and a constant at its place."""

    names: tuple[str, ...]  # of the design matrix, with the constant
    constant: int | None  # its index
    value: float  # of the constant

    @property
    def columns(self) -> tuple[str, ...]:
        """The raw columns, in order."""
        return tuple(name for index, name in enumerate(self.names) if index != self.constant)

    def transform(self, table: Data) -> Matrix:
        """Return the design matrix."""
        numbers = np.asarray(table, dtype=np.float64)
        if self.constant is None:
            return numbers
        return np.insert(numbers, self.constant, self.value, axis=1)

    def describe(self, leaf: Leaf) -> Features:
        """Return the columns unchanged, and the constant."""
        features = list(leaf.features)
        if self.constant is not None:
            features.insert(self.constant, Feature(magnitude=max(1.0, abs(self.value))))
        return features


@dataclass(frozen=True, slots=True, eq=False)
class FormulaTerms(DescribedStep):
    """The terms of a patsy formula; each may depend on one column, or copy a number."""

    design: Any  # a patsy.DesignInfo
    columns: tuple[str, ...]  # the raw columns, in the order of the table

    def transform(self, table: Data) -> Matrix:
        """Return the design matrix; a missing number gives NaN."""
        import patsy  # noqa: PLC0415 - only for formulas

        action = patsy.NAAction(on_NA="raise", NA_types=[])
        (matrix,) = patsy.build_design_matrices([self.design], table, NA_action=action)
        rows = np.asarray(matrix, dtype=np.float64)
        return np.repeat(rows, len(table), axis=0) if len(rows) == 1 < len(table) else rows

    def describe(self, leaf: Leaf) -> Features:
        """Return one feature per column of the design matrix."""
        inputs = dict(zip(self.columns, leaf.features, strict=True))
        features: Features = []
        for term in self.design.terms:
            for part in self.design.term_codings[term]:
                feature = self._feature(part, inputs, leaf)
                features += [feature] * int(part.num_columns)
        return features

    def _feature(self, part: Any, inputs: dict[str, Feature], leaf: Leaf) -> Feature:  # noqa: ANN401 - patsy ships no types
        codes = [str(factor.code) for factor in part.factors]
        if not codes:
            return Feature()
        numeric = all(
            self.design.factor_infos[factor].type == "numerical" for factor in part.factors
        )
        self._check_functions(part.factors)
        if len(codes) == 1 and numeric:
            copied = _quoted(codes[0]) or codes[0]
            if copied in inputs:
                return inputs[copied]
        used = {name for code in codes for name in columns_in(code, self.columns)}
        where = f"the term {':'.join(codes)!r} of the formula"
        return joint(leaf.space, [inputs[name] for name in sorted(used)], where)

    def _check_functions(self, factors: Any) -> None:  # noqa: ANN401 - patsy ships no types
        """Reject names of known functions that mean something else where the formula was made."""
        import patsy.builtins  # noqa: PLC0415 - only for formulas

        for factor in factors:
            scope = self.design.factor_infos[factor].state.get("eval_env")
            names = {} if scope is None else scope.namespace
            for _, name in _references(ast.parse(str(factor.code), mode="eval").body):
                meant = getattr(patsy.builtins, name, None) if name in PURE else None
                if name in PURE and name in names and names[name] is not meant:
                    raise NetworkError(
                        f"the factor {factor.code!r} of the formula uses {name!r}: got another "
                        "function of this name; expected the one of patsy"
                    )
            if "np" in names and names["np"] is not np:
                raise NetworkError(
                    f"the factor {factor.code!r} of the formula uses 'np': got another module of "
                    "this name; expected numpy"
                )


def _quoted(code: str) -> str | None:
    """Return the column of a factor that is only Q("…"); None if it is anything else."""
    node = ast.parse(code, mode="eval").body
    references = list(_references(node))
    whole = isinstance(node, ast.Call) and len(references) == 1 and references[0][0] == "column"
    return references[0][1] if whole else None


def formula_columns(design: Any, known: Sequence[str]) -> tuple[str, ...]:  # noqa: ANN401 - patsy ships no types
    """Return the columns of a space that a formula reads, in the space's order."""
    codes = [str(factor.code) for factor in design.factor_infos]
    used = {name for code in codes for name in columns_in(code, known)}
    return tuple(name for name in known if name in used)


def columns_in(code: str, known: Sequence[str]) -> set[str]:
    """Return the columns that a factor reads; raise if it may read or do anything else."""
    if code in known:
        return {code}
    used = set[str]()
    for kind, name in _references(ast.parse(code, mode="eval").body):
        if kind == "column" or name in known:
            used.add(name)
        elif name not in PURE:
            raise NetworkError(
                f"the factor {code!r} of the formula uses {name!r}: got a name that is no column "
                "of the schema and no known function; expected columns, elementwise functions of "
                "NumPy (np.log) or functions of patsy (C, bs)"
            )
    if not used <= set(known):
        name = min(used - set(known))
        raise NetworkError(
            f"the factor {code!r} of the formula reads {name!r}: got a column that the schema "
            "lacks; expected a column of the schema; add it"
        )
    return used


def _references(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names in an expression, and columns that Q quotes."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Q":
        if len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
            yield "column", str(node.args[0].value)
        return
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner, name = node.value.id, node.attr
        if owner in ("np", "numpy") and isinstance(getattr(np, name, None), np.ufunc):
            return
        yield "name", f"{owner}.{name}"
        return
    if isinstance(node, ast.Name):
        yield "name", node.id
        return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.keyword):
            yield from _references(child)
        else:
            yield from _references(child.value)
