"""Groups of operators that exporters write for one activation, replaced by one operator.

Older opsets have no Gelu, and none has SiLU. A constant in float32 is not exactly √2 or 1/6: the
activation of x is then s·f(x / s) for a number s near 1, which is the second input.
"""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from feta.errors import NetworkError
from feta.readers.onnx.state import options_of
from feta.readers.onnx.tensor_data import DOUBLE, read_tensor

if TYPE_CHECKING:
    import onnx

# The name of an operator that ONNX does not define; only this module writes it.
SILU = "FusedSilu"

# A scale further from 1 is no rounded constant, but another function.
FARTHEST = Fraction(1, 10**6)

HALF = Fraction(1, 2)

Found = tuple[str, str, Fraction] | None  # the operator, its input and s


def fused(model: "onnx.ModelProto") -> "onnx.ModelProto":
    """Return a copy of a model in which each such group is one operator."""
    graph = _Graph(model)
    matches = {index: found for index, found in graph.matches() if found is not None}
    if not matches:
        return model
    from onnx import ModelProto, helper  # noqa: PLC0415 - slow to import

    copy = ModelProto()
    copy.CopyFrom(model)
    for index, (operator, name, scale) in matches.items():
        node = copy.graph.node[index]
        inputs = [name]
        if scale != 1:
            inputs.append(f"{node.output[0]}/scale")
            copy.graph.initializer.append(
                helper.make_tensor(inputs[1], DOUBLE, [1], [float(scale)])
            )
        node.CopyFrom(helper.make_node(operator, inputs, list(node.output), name=node.name))
    _remove_unread(copy)
    return copy


class _Graph:
    """The operators of a graph by their outputs, and its constants of one number."""

    def __init__(self, model: "onnx.ModelProto") -> None:
        self.nodes = list(model.graph.node)
        self.makers = {name: node for node in self.nodes for name in node.output}
        self.tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.nodes:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.HasField("t"):
                    self.tensors[node.output[0]] = attribute.t

    def matches(self) -> Iterator[tuple[int, Found]]:
        """Yield the index of each operator that may end a group, and what the group computes."""
        for index, node in enumerate(self.nodes):
            if node.op_type == "Mul" and len(node.input) == 2:  # noqa: PLR2004 - a product of two
                yield index, self._gated(node) or self._gelu(node)
            elif node.op_type == "Div":
                yield index, self._softsign(node)

    def _made_by(self, name: str, operator: str) -> bool:
        return name in self.makers and self.makers[name].op_type == operator

    def _number(self, name: str) -> Fraction | None:
        tensor = self.tensors.get(name)
        if tensor is None or any(size != 1 for size in tensor.dims):
            return None
        try:
            (number,) = read_tensor(tensor, None).ravel().tolist()
            return Fraction(number)
        except (NetworkError, OverflowError, ValueError):
            return None

    def _gated(self, node: "onnx.NodeProto") -> Found:
        """Match x · Sigmoid(x), x · HardSigmoid(x) and x · Tanh(Softplus(x))."""
        for x, gate in (tuple(node.input), tuple(reversed(node.input))):
            maker = self.makers.get(gate)
            if maker is None or not maker.input:
                continue
            if maker.op_type == "Sigmoid" and maker.input[0] == x:
                return SILU, x, Fraction(1)
            if maker.op_type == "HardSigmoid" and maker.input[0] == x:
                return _hard_swish(maker, x)
            if maker.op_type == "Tanh" and self._made_by(maker.input[0], "Softplus"):
                softplus = self.makers[maker.input[0]]
                return ("Mish", x, Fraction(1)) if softplus.input[0] == x else None
        return None

    def _softsign(self, node: "onnx.NodeProto") -> Found:
        """Match x / (1 + |x|)."""
        if len(node.input) != 2 or not self._made_by(node.input[1], "Add"):  # noqa: PLR2004
            return None
        x, total = node.input[0], self.makers[node.input[1]].input
        for one, size in (tuple(total), tuple(reversed(total))):
            is_absolute = self._made_by(size, "Abs") and self.makers[size].input[0] == x
            if self._number(one) == 1 and is_absolute:
                return "Softsign", x, Fraction(1)
        return None

    def _gelu(self, node: "onnx.NodeProto") -> Found:
        """Match products of x, 1/2 and 1 + Erf(x / √2), in any order."""
        factors = Counter[str](self._factors(node))
        constant = Fraction(1)
        others = []
        for name in factors.elements():
            number = self._number(name)
            if number is None:
                others.append(name)
            else:
                constant *= number
        if constant != HALF or len(others) != 2:  # noqa: PLR2004 - x and the gate
            return None
        for x, gate in (tuple(others), tuple(reversed(others))):
            scale = self._error_function(gate, x)
            if scale is not None:
                return "Gelu", x, scale
        return None

    def _factors(self, node: "onnx.NodeProto", depth: int = 0) -> Iterator[str]:
        for name in node.input:
            maker = self.makers.get(name)
            is_product = maker is not None and maker.op_type == "Mul" and len(maker.input) == 2  # noqa: PLR2004
            if maker is not None and is_product and depth < 2:  # noqa: PLR2004 - three factors
                yield from self._factors(maker, depth + 1)
            else:
                yield name

    def _error_function(self, gate: str, x: str) -> Fraction | None:
        """Return s if a value is 1 + Erf(x / (s·√2))."""
        if not self._made_by(gate, "Add") or len(self.makers[gate].input) != 2:  # noqa: PLR2004
            return None
        total = self.makers[gate].input
        for one, curve in (tuple(total), tuple(reversed(total))):
            if self._number(one) != 1 or not self._made_by(curve, "Erf"):
                continue
            scaled = self.makers.get(self.makers[curve].input[0])
            if scaled is None or scaled.op_type not in ("Div", "Mul") or len(scaled.input) != 2:  # noqa: PLR2004
                continue
            pairs = [tuple(scaled.input)]
            pairs += [tuple(reversed(scaled.input))] if scaled.op_type == "Mul" else []
            for value, constant in pairs:
                number = self._number(constant)
                if value == x and number is not None and number > 0:
                    divisor = number if scaled.op_type == "Div" else 1 / number
                    return _near_one(divisor / _root_of_two())
        return None


def _hard_swish(gate: "onnx.NodeProto", x: str) -> Found:
    """Match x · clip(α·x + 1/2, 0, 1) with α near 1/6."""
    try:
        options = options_of(gate, {"alpha": 0.2, "beta": 0.5})
        scale = _near_one(1 / (6 * Fraction(options["alpha"])))
    except (NetworkError, ArithmeticError, ValueError):
        return None
    return ("HardSwish", x, scale) if scale is not None and options["beta"] == HALF else None


def _near_one(scale: Fraction) -> Fraction | None:
    return scale if abs(scale - 1) <= FARTHEST else None


def _root_of_two() -> Fraction:
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(2).sqrt())


def _remove_unread(model: "onnx.ModelProto") -> None:
    """Remove operators whose outputs nothing reads any more."""
    kept, needed = [], {output.name for output in model.graph.output}
    for node in reversed(model.graph.node):
        if node.op_type == "Constant" or needed & set(node.output):
            kept.append(node)
            needed |= set(node.input)
    del model.graph.node[:]
    model.graph.node.extend(reversed(kept))
