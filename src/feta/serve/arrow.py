"""Arrow streams as records, if pyarrow is installed.

A stream is untrusted input. Compressed buffers could be a thousand times larger than the body, so
they are refused before they are read; so are nested columns and views.
"""

import struct
from http import HTTPStatus
from typing import Any

from feta.serve.limits import ServiceLimits
from feta.serve.refusal import Refusal

# Positions of fields in the flatbuffers of Arrow's format (Message.fbs).
HEADER_TYPE, HEADER, DATA, COMPRESSION = 1, 2, 1, 3
DICTIONARY_BATCH, RECORD_BATCH = 2, 3

# Cells may refer to the same bytes of a stream, this often on average.
SHARING = 4

# Exceptions that a damaged stream may cause.
DAMAGE = (OSError, LookupError, ValueError, TypeError, OverflowError, NotImplementedError)


def records_of_arrow(
    body: bytes, known: frozenset[str], limits: ServiceLimits
) -> list[dict[str, Any]]:
    """Return the rows of a stream as records."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
    except ImportError:
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "no Arrow here: got an Arrow stream, and pyarrow is not installed on the server; "
            "expected application/json",
        ) from None
    try:
        _refuse_compression(pa, body)
        return _records(pa, body, known, limits)
    except (pa.ArrowException, struct.error, *DAMAGE) as error:
        raise _invalid(f"{type(error).__name__}: {str(error)[:200]}") from None


def _records(
    pa: Any,  # noqa: ANN401 - no types
    body: bytes,
    known: frozenset[str],
    limits: ServiceLimits,
) -> list[dict[str, Any]]:
    columns: dict[str, list[object]] = {}
    n_rows, n_bytes = 0, 0
    with pa.ipc.open_stream(body) as reader:
        names = reader.schema.names
        if len(set(names)) != len(names):
            raise _invalid("a column twice")
        for name in set(names) - known:
            raise Refusal(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"unknown column: got {name[:100]!r}; GET /v1/schema lists the columns",
                column=name[:100],
            )
        columns = {name: [] for name in names}
        for batch in reader:
            n_rows += batch.num_rows
            if n_rows > limits.people:
                raise Refusal(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"too many people: got {n_rows:,} or more; expected at most {limits.people:,} "
                    "per request; send several requests",
                )
            n_bytes += batch.nbytes  # several columns may share the bytes of one buffer
            if n_bytes > SHARING * limits.body_bytes:
                raise _invalid("columns or dictionaries that are larger than the stream")
            batch.validate(full=True)
            for name, column in zip(names, batch.columns, strict=True):
                columns[name] += _cells(pa, name, column)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cells(pa: Any, name: str, column: Any) -> list[object]:  # noqa: ANN401 - no types
    """Return the cells of a column of texts, numbers or booleans; a text is shared, not copied."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        values = _cells(pa, name, column.dictionary)
        return [None if i is None else values[i] for i in column.indices.to_pylist()]
    plain = (
        pa.types.is_integer(kind),
        pa.types.is_floating(kind),
        pa.types.is_boolean(kind),
        pa.types.is_string(kind),
        pa.types.is_large_string(kind),
        pa.types.is_null(kind),
    )
    if not any(plain):
        raise _invalid(f"the column {name[:60]!r} of type {str(kind)[:60]}")
    cells: list[object] = column.to_pylist()
    return cells


def _refuse_compression(pa: Any, body: bytes) -> None:  # noqa: ANN401 - no types
    stream = pa.BufferReader(body)
    reader = pa.ipc.MessageReader.open_stream(stream)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if _is_compressed(message.metadata.to_pybytes()):
            raise _invalid("compressed buffers")


def _is_compressed(metadata: bytes) -> bool:
    """Return whether a message says that its buffers are compressed."""
    table = struct.unpack_from("<I", metadata)[0]
    kind_at = _field(metadata, table, HEADER_TYPE)
    kind = metadata[kind_at] if kind_at else 0
    header = _table(metadata, table, HEADER)
    if kind == DICTIONARY_BATCH and header:
        header = _table(metadata, header, DATA)
    return kind in (DICTIONARY_BATCH, RECORD_BATCH) and bool(
        header and _field(metadata, header, COMPRESSION)
    )


def _field(data: bytes, table: int, index: int) -> int:
    """Return where a field of a flatbuffer table is; 0 if it is absent."""
    entries = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, entries)[0]
    at = 4 + 2 * index
    offset = struct.unpack_from("<H", data, entries + at)[0] if at < size else 0
    return table + offset if offset else 0


def _table(data: bytes, table: int, index: int) -> int:
    at = _field(data, table, index)
    return at + int(struct.unpack_from("<I", data, at)[0]) if at else 0


def _invalid(got: str) -> Refusal:
    return Refusal(
        HTTPStatus.BAD_REQUEST,
        f"invalid Arrow stream: got {got}; expected uncompressed columns of texts, numbers or "
        "booleans",
    )
