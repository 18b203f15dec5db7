"""A graph of ONNX operators in one floating-point format, while it is written."""

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

    def nearest(self, array: Array) -> str:
        """Store numbers rounded to the nearest of the format; raise if it cannot hold them."""
        return self.store(rounded(array, self.precision))

    def above(self, array: ArrayLike) -> str:
        """Store numbers rounded up, for a bound."""
        return self.store(toward(np.asarray(array, dtype=np.float64), self.precision, np.inf))

    def below(self, array: ArrayLike) -> str:
        """Store numbers rounded down."""
        return self.store(toward(np.asarray(array, dtype=np.float64), self.precision, -np.inf))

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


def toward(array: Array, precision: Precision, end: float) -> Array:
    """Return numbers rounded toward an end; one that the format does not hold becomes infinite."""
    with np.errstate(over="ignore", under="ignore"):
        result = array.astype(precision)
    wrong = result.astype(np.float64) < array if end > 0 else result.astype(np.float64) > array
    return np.where(wrong, np.nextafter(result, np.asarray(end, dtype=precision)), result)
