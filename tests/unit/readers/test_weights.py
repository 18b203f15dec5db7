import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from feta import Network, NetworkError, read_weights
from feta.io.regular_file import LARGEST_FILE, read_bytes
from tests.bad_files import Canary, npy, npz

RNG = np.random.default_rng(0)
ARRAYS = {
    "fc1.weight": RNG.normal(size=(5, 3)),
    "fc1.bias": RNG.normal(size=5),
    "net.out.weight": RNG.normal(size=(1, 5)),
    "net.out.bias": RNG.normal(size=1),
}
LAYERS = ["fc1", "net.out"]
EXPECTED = Network.from_layers(
    [(ARRAYS[f"{name}.weight"], ARRAYS[f"{name}.bias"]) for name in LAYERS], source="float64"
)


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]  # names are not options
    return content.getvalue()


def written(path: Path, content: bytes, name: str = "model.npz") -> Path:
    (path / name).write_bytes(content)
    return path / name


@pytest.mark.parametrize(
    ("name", "content"), [("m.safetensors", save(ARRAYS)), ("m.npz", packed(ARRAYS))]
)
def test_named_layers_make_a_network(name: str, content: bytes, tmp_path: Path) -> None:
    network = read_weights(written(tmp_path, content, name), LAYERS)
    assert network.fingerprint == EXPECTED.fingerprint


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_narrow_numbers_give_a_float32_source(kind: type, tmp_path: Path) -> None:
    narrow: dict[str, np.ndarray] = {name: array.astype(kind) for name, array in ARRAYS.items()}
    network = read_weights(written(tmp_path, packed(narrow)), LAYERS)
    assert network.source == "float32"
    assert network.first.slopes.tolist() == narrow["fc1.weight"].astype(float).tolist()


def test_arrays_may_be_stored_by_columns_or_in_the_other_byte_order(tmp_path: Path) -> None:
    other = {name: np.asfortranarray(array).astype(">f8") for name, array in ARRAYS.items()}
    network = read_weights(written(tmp_path, packed(other)), LAYERS)
    assert network.fingerprint == EXPECTED.fingerprint


def test_the_activation_between_layers_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, packed(ARRAYS))
    assert read_weights(path, LAYERS, activation="identity").activations[0].name == "identity"


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [],
            r"model.npz: the names of the layers are missing; expected them in order.*has "
            r"'fc1', 'net\.out'",
        ),
        (["fc2"], "unknown array: got 'fc2.weight'; expected one of .*did you mean 'fc1.weight'"),
        (["net.out", "fc1"], "wrong number of inputs of layer 2: got 3; expected 1"),
    ],
)
def test_layers_that_do_not_fit_are_refused(
    layers: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_weights(written(tmp_path, packed(ARRAYS)), layers)


def lying_zip() -> bytes:
    content = npz({"fc.weight.npy": bytes(2**16)})
    return content.replace(struct.pack("<I", 2**16), struct.pack("<I", 80))


def encrypted() -> bytes:
    content = bytearray(npz({"fc.weight.npy": b"x"}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def bzipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("fc.weight.npy", b"x")
    return content.getvalue()


def damaged() -> bytes:
    content = bytearray(npz({"fc.weight.npy": RNG.bytes(1000)}))
    content[60:80] = b"\xff" * 20
    return bytes(content)


def header(text: str) -> bytes:
    raw = text.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is not an npz archive"),
        (b"PK\x03\x04" + bytes(50), "the file is not an npz archive"),
        (lying_zip(), "the file is not an npz archive"),
        (encrypted(), "the file is not an npz archive"),
        (damaged(), "the file is not an npz archive"),
        (bzipped(), "unsupported compression; expected stored or deflated members"),
        (
            npz({f"{n}.npy": bytes(2**24) for n in range(9)}),
            "too large: got .* bytes; expected at most 134,217,728",
        ),
        (npz({"fc.weight.npy": b"hello"}), "'fc.weight.npy' is not a numpy array"),
        (npz({"fc.weight.npy": b"\x93NUMPY\x07\x00"}), "'fc.weight.npy' is not a numpy array"),
        (npz({"fc.weight.npy": header("{'descr': ((((")}), "is not a numpy array"),
        (npz({"fc.weight.npy": header("[" * 3000)}), "is not a numpy array"),
        (npz({"fc.weight.npy": header("__import__('os')")}), "is not a numpy array"),
        (
            npz({"fc.weight.npy": npy((9, 9), bytes(8))}),
            r"expected the shape \(9, 9\)",
        ),
        (
            npz({"fc.weight.npy": npy((-1, -1), bytes(8))}),
            r"expected the shape \(-1, -1\)",
        ),
        (npz({"fc.weight.npy": npy((0, 10**30), b"")}), "expected the shape"),
        (
            npz({"fc.weight.npy": npy((1,), bytes(8), "|O")}),
            "has an unsupported type: got object; expected numbers",
        ),
        (
            npz({"fc.weight.npy": npy((1,), bytes(8), "<M8[s]")}),
            "has an unsupported type: got datetime64.s.; expected numbers",
        ),
        (
            npz({f"fc.{name}.npy": npy((1, 1), bytes(8), "<i8") for name in ("weight", "bias")}),
            "'fc.weight' has an unsupported type: got int64; expected floating-point numbers",
        ),
        (
            npz({"fc.weight.npy": npy((1, 1), b"\xff" * 8), "fc.bias.npy": npy((1,), bytes(8))}),
            r"invalid weights of layer 1: got nan at \(0, 0\)",
        ),
    ],
)
def test_a_misleading_archive_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=message):
        read_weights(written(tmp_path, content), ["fc"])


def test_a_pickle_in_an_archive_is_not_executed(tmp_path: Path) -> None:
    array = np.array([Canary(tmp_path / "canary")], dtype=object)
    content = io.BytesIO()
    np.savez(content, allow_pickle=True, **{"fc.weight": array})
    with pytest.raises(
        NetworkError,
        match=r"'fc.weight.npy' has an unsupported type: got object; expected numbers",
    ):
        read_weights(written(tmp_path, content.getvalue()), ["fc"])
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(8),
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        save(ARRAYS)[:-1],
        save(ARRAYS).replace(b'"F64"', b'"F99"'),
        save(ARRAYS).replace(b"[5,3]", b"[9,9]"),
    ],
)
def test_damaged_safetensors_are_refused(content: bytes, tmp_path: Path) -> None:
    path = written(tmp_path, content, "m.safetensors")
    with pytest.raises(NetworkError, match=r"m\.safetensors: the file is not in the safetensors"):
        read_weights(path, LAYERS)


def test_only_regular_files_of_moderate_size_are_read(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"there is no such file: 'nowhere\.npz'"):
        read_weights(tmp_path / "nowhere.npz", LAYERS)
    with pytest.raises(NetworkError, match="got a folder or a device; expected a regular file"):
        read_bytes(tmp_path)
    with pytest.raises(NetworkError, match="got a folder or a device; expected a regular file"):
        read_bytes(Path("/dev/zero"))
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(
        NetworkError, match="the file is too large: got 128 MB; expected at most 128 MB"
    ):
        read_bytes(large)
