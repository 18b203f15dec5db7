"""A graph of ONNX operators in one floating-point format, while it is written.

onnxruntime removes an addition or subtraction of one stored number that float32 rounds to 0, and a
product or quotient with one that float32 rounds to 1, also in float64. A product with 1 + 1e-9 is
lost this way, and the bounds are then too small. So no such operator here has one stored number as
an operand: `plus` and `times` write other operators in that case, which keep it.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Array
from feta.errors import NetworkError
from feta.rounding import SOURCES, Arithmetic

if TYPE_CHECKING:
    import onnx

Precision = Literal["float32", "float64"]

# The first versions with all operators used here in float64, so that older runtimes can read them.
OPSET = 17
IR_VERSION = 8


@dataclass(slots=True)
class Graph:
    """Operators and stored arrays; an output is known by its name."""

    precision: Precision
    operators: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)

    @property
    def arithmetic(self) -> Arithmetic:
        """The format, with room for inputs and weights that are rounded to it."""
        return SOURCES[self.precision]

    def apply(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 - passed on
        """Add an operator; return the name of its output."""
        from onnx import helper  # noqa: PLC0415 - slow to import

        output = f"v{len(self.operators)}"
        self.operators.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def second_largest(self, values: str, *, axis: int) -> tuple[str, str]:
        """Return the largest and the second largest value along an axis, which stays."""
        from onnx import helper  # noqa: PLC0415 - slow to import

        top, indices = f"top{len(self.operators)}", f"indices{len(self.operators)}"
        inputs = [values, self.store([2])]
        self.operators.append(helper.make_node("TopK", inputs, [top, indices], axis=axis))
        first, second = (
            self.apply("Gather", top, self.store([rank]), axis=axis) for rank in (0, 1)
        )
        return first, second

    def store(self, array: ArrayLike) -> str:
        """Store an array as it is: float64 numbers, integers or flags."""
        from onnx import numpy_helper  # noqa: PLC0415 - slow to import

        name = f"c{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def rounded(self, array: ArrayLike) -> Array:
        """Return numbers rounded to the nearest of the format; raise if it cannot hold them."""
        return rounded(np.asarray(array, dtype=np.float64), self.precision)

    def upward(self, array: ArrayLike) -> Array:
        """Return numbers rounded up to the format, for a bound."""
        return rounded_up(np.asarray(array, dtype=np.float64), self.precision)

    def nearest(self, array: ArrayLike) -> str:
        """Store numbers rounded to the nearest of the format."""
        return self.store(self.rounded(array))

    def above(self, array: ArrayLike) -> str:
        """Store numbers rounded up to the format."""
        return self.store(self.upward(array))

    def plus(self, values: str, terms: Array) -> str:
        """Add stored numbers."""
        return self.apply("Add" if terms.size > 1 else "Sum", values, self.store(terms))

    def times(self, values: str, factors: Array, *, width: int) -> str:
        """Multiply the last axis, which has this width, by stored numbers."""
        if width > 1:
            return self.apply("Mul", values, self.store(np.broadcast_to(factors, width)))
        return self.apply("MatMul", values, self.store(factors.reshape(1, 1)))

    def exact(self, value: str) -> str:
        """Return values as float64, which holds every float32."""
        from onnx import TensorProto  # noqa: PLC0415 - slow to import

        if self.precision == "float64":
            return value
        return self.apply("Cast", value, to=TensorProto.DOUBLE)

    def numbers(self, flags: str, *, exact: bool = False) -> str:
        """Return 1 and 0 for flags, in the format of the graph or as float64."""
        from onnx import TensorProto  # noqa: PLC0415 - slow to import

        double = exact or self.precision == "float64"
        return self.apply("Cast", flags, to=TensorProto.DOUBLE if double else TensorProto.FLOAT)

    def every(self, flags: str) -> str:
        """Return whether all flags of a row are set, (rows,)."""
        lowest = self.apply("ReduceMin", self.numbers(flags), axes=[1], keepdims=0)
        return self.apply("Greater", lowest, self.nearest(np.array(0.5)))

    def model(self, outputs: dict[str, str], *, width: int, classes: bool) -> "onnx.ModelProto":
        """Return the file: people in, the values with these names out."""
        from onnx import TensorProto, helper  # noqa: PLC0415 - slow to import

        for name, value in outputs.items():
            self.operators.append(helper.make_node("Identity", [value], [name]))
        entry = TensorProto.DOUBLE if self.precision == "float64" else TensorProto.FLOAT
        kinds = {"decision": TensorProto.INT64 if classes else TensorProto.BOOL}
        graph = helper.make_graph(
            self.operators,
            "feta_fair",
            [helper.make_tensor_value_info("people", entry, ["rows", width])],
            [
                helper.make_tensor_value_info(name, kinds.get(name, TensorProto.BOOL), ["rows"])
                for name in outputs
            ],
            self.arrays,
        )
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, producer_name="feta", opset_imports=opset, ir_version=IR_VERSION
        )


def rounded(array: Array, precision: Precision) -> Array:
    """Return numbers rounded to a format; raise if they are too large for it."""
    with np.errstate(over="ignore", under="ignore"):
        result = np.asarray(array, dtype=np.float64).astype(precision)
    if not np.isfinite(result).all():
        raise NetworkError("the weights exceed float32; write the graph in float64")
    return result


def rounded_up(array: Array, precision: Precision) -> Array:
    """Return numbers rounded up; one that the format does not hold becomes infinite."""
    with np.errstate(over="ignore", under="ignore"):
        result = array.astype(precision)
    end = np.asarray(np.inf, dtype=precision)
    return np.where(result.astype(np.float64) < array, np.nextafter(result, end), result)
