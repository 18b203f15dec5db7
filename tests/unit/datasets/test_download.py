"""Downloads from a local server: the content, the stored files, and the messages."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest

from feta import DatasetError, datasets
from feta.datasets import adult, law
from feta.datasets.download import CHUNK_BYTES
from tests import made_up_rows

PADDING = bytes(200_000)  # gives a file many chunks; a zip file may start with any bytes
MANUAL_DOWNLOAD = (
    r"download the file manually, save it in .* as {}, and set FETA_DATA_DIR to that folder"
)


@dataclass
class Server:
    """The server's content, behavior and received requests."""

    address: str = ""
    contents: dict[str, bytes] = field(default_factory=dict)
    break_off: bool = False
    knows_ranges: bool = True
    starts_elsewhere: bool = False
    busy: bool = False
    version: str = '"one"'
    requests: list[str] = field(default_factory=list)
    ranges: list[tuple[str | None, str | None]] = field(default_factory=list)  # Range, If-Range
    sent: int = 0


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            range_, version = self.headers["Range"], self.headers["If-Range"]
            state.ranges.append((range_, version))
            content = state.contents.get(self.path)
            if state.busy:
                self.send_error(503)
                return
            if content is None:
                self.send_error(404)
                return
            start = int(range_.removeprefix("bytes=").removesuffix("-")) if range_ else 0
            if not state.knows_ranges or version not in (None, state.version):
                start = 0
            if start >= len(content):
                self.send_error(416)
                return
            start -= start > 0 and state.starts_elsewhere
            self.send_response(206 if start else 200)
            if start:
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            if state.version:
                self.send_header("ETag", state.version)
            rest = content[start:]
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            rest = rest[: len(rest) // 2] if state.break_off else rest
            state.sent += len(rest)
            self.wfile.write(rest)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state.address = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield state
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FETA_DATA_DIR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / name)
    return tmp_path / "feta"


@pytest.fixture
def dataset_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Serve made-up files of all three datasets, with matching checksums."""
    for module, name, content in (
        (adult, "UCI", PADDING + made_up_rows.adult_zip()),
        (adult, "IPUMS", made_up_rows.IPUMS),
        (law, "SOURCE", made_up_rows.law_stata()),
    ):
        source = getattr(module, name)
        server.contents[f"/{source.file}"] = content
        address = f"{server.address}/{source.file}"
        monkeypatch.setattr(module, name, made_up_rows.with_content(source, address, content))
    return server


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "title", "terms", "file"),
    [
        ("adult", "UCI Adult", "CC BY 4.0", "adult/adult.zip"),
        ("ipums", "IPUMS Adult", "do not pass the rows on", "ipums/adult_reconstruction.csv"),
        ("law", "Law School admissions", "states none", "law/lawschs1_1.dta"),
    ],
)
def test_a_dataset_is_downloaded_once_and_its_terms_are_stated(
    dataset_server: Server,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    name: str,
    title: str,
    terms: str,
    file: str,
) -> None:
    first = datasets.load(name)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"downloading {title} once from {dataset_server.address}/" in captured.err
    assert terms in captured.err
    assert files_in(cache) == [file]
    assert datasets.load(name).frame.equals(first.frame)
    assert len(dataset_server.requests) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("dataset_server", "cache")
def test_a_terminal_shows_a_progress_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    datasets.load("adult")
    assert "200.7/200.7 kB" in capsys.readouterr().err


def test_a_damaged_cache_is_downloaded_again(dataset_server: Server, cache: Path) -> None:
    datasets.load("adult")
    (cache / "adult/adult.zip").write_bytes(b"damaged")
    datasets.load("adult")
    assert len(dataset_server.requests) == 2
    assert (cache / "adult/adult.zip").read_bytes() == dataset_server.contents["/adult.zip"]


def test_one_changed_byte_is_detected_and_the_file_deleted(
    dataset_server: Server, cache: Path
) -> None:
    for name, file in (("ipums", "adult_reconstruction.csv"), ("law", "lawschs1_1.dta")):
        content = bytearray(dataset_server.contents[f"/{file}"])
        content[-1] ^= 1
        dataset_server.contents[f"/{file}"] = bytes(content)
        with pytest.raises(
            DatasetError,
            match=r"wrong checksum: got .*; expected .*; the file was deleted: load the "
            r"dataset again",
        ):
            datasets.load(name)
    assert files_in(cache) == []


def interrupt_download(server: Server, cache: Path) -> int:
    """Interrupt a download in the middle; return the size of its part."""
    server.break_off = True
    with pytest.raises(
        DatasetError, match=r"UCI Adult: .* was interrupted; load the dataset again to resume"
    ):
        datasets.load("adult")
    server.break_off = False
    assert not (cache / "adult/adult.zip").exists()
    return (cache / "adult/adult.zip.part").stat().st_size


def check_complete(server: Server, cache: Path) -> None:
    assert len(datasets.load("adult").frame) == 4
    assert files_in(cache) == ["adult/adult.zip"]
    assert (cache / "adult/adult.zip").read_bytes() == server.contents["/adult.zip"]


def test_an_interrupted_download_is_resumed(
    dataset_server: Server, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = interrupt_download(dataset_server, cache)
    second = interrupt_download(dataset_server, cache)
    assert 0 < first < second
    capsys.readouterr()
    check_complete(dataset_server, cache)
    assert f", starting at byte {second:,}" in capsys.readouterr().err
    assert dataset_server.ranges == [
        (None, None),
        (f"bytes={first}-", '"one"'),
        (f"bytes={second}-", '"one"'),
    ]
    n_repeated = dataset_server.sent - len(dataset_server.contents["/adult.zip"])
    assert n_repeated <= 2 * CHUNK_BYTES


def test_a_server_without_ranges_sends_the_complete_file(
    dataset_server: Server, cache: Path
) -> None:
    interrupt_download(dataset_server, cache)
    dataset_server.knows_ranges = False
    check_complete(dataset_server, cache)


def test_another_version_of_a_file_is_downloaded_from_the_start(
    dataset_server: Server, cache: Path
) -> None:
    part = cache / "adult/adult.zip.part"
    first = interrupt_download(dataset_server, cache)
    part.write_bytes(b"x" * first)  # the start of the earlier version
    dataset_server.version = '"two"'
    check_complete(dataset_server, cache)


@pytest.mark.parametrize("version", ["", 'W/"one"'])
def test_without_a_version_only_the_checksum_is_compared(
    version: str, dataset_server: Server, cache: Path
) -> None:
    dataset_server.version = version
    first = interrupt_download(dataset_server, cache)
    (cache / "adult/adult.zip.part").write_bytes(b"x" * first)
    with pytest.raises(DatasetError, match="the file was deleted: load the dataset again"):
        datasets.load("adult")
    assert dataset_server.ranges[-1] == (f"bytes={first}-", None)
    assert files_in(cache) == []
    check_complete(dataset_server, cache)


def test_a_busy_server_leaves_the_part_unchanged(dataset_server: Server, cache: Path) -> None:
    first = interrupt_download(dataset_server, cache)
    dataset_server.busy = True
    with pytest.raises(DatasetError, match="the server answered 503"):
        datasets.load("adult")
    dataset_server.busy = False
    assert (cache / "adult/adult.zip.part").stat().st_size == first
    check_complete(dataset_server, cache)
    assert dataset_server.ranges[-1] == (f"bytes={first}-", '"one"')


def test_a_range_that_starts_elsewhere_is_not_used(dataset_server: Server, cache: Path) -> None:
    interrupt_download(dataset_server, cache)
    dataset_server.starts_elsewhere = True
    check_complete(dataset_server, cache)


def test_a_part_longer_than_the_file_is_discarded(dataset_server: Server, cache: Path) -> None:
    interrupt_download(dataset_server, cache)
    (cache / "adult/adult.zip.part").write_bytes(b"x" * 999_999)
    check_complete(dataset_server, cache)


def test_a_complete_part_is_only_moved(dataset_server: Server, cache: Path) -> None:
    (cache / "adult").mkdir(parents=True)
    (cache / "adult/adult.zip.part").write_bytes(dataset_server.contents["/adult.zip"])
    check_complete(dataset_server, cache)
    assert dataset_server.requests == []


def test_concurrent_downloads_give_one_complete_file(dataset_server: Server, cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        n_rows = list(pool.map(lambda _: len(datasets.load("adult").frame), range(4)))
    assert n_rows == [4] * 4
    assert files_in(cache) == ["adult/adult.zip"]
    assert len(dataset_server.requests) == 1


def test_a_missing_address_is_reported_with_a_remedy(dataset_server: Server, cache: Path) -> None:
    dataset_server.contents.clear()
    remedy = MANUAL_DOWNLOAD.format("law/lawschs1_1.dta")
    with pytest.raises(DatasetError, match=rf"the server answered 404 Not Found\. .*{remedy}"):
        datasets.load("law")
    assert files_in(cache) == []


@pytest.mark.usefixtures("cache")
def test_a_missing_connection_is_reported_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "http://127.0.0.1:9/adult.zip"  # the discard port, which is closed
    monkeypatch.setattr(adult, "UCI", made_up_rows.with_content(adult.UCI, address, b"x"))
    remedy = MANUAL_DOWNLOAD.format("adult/adult.zip")
    with pytest.raises(
        DatasetError, match=rf"could not be reached \(is this machine online\?\)\. .*{remedy}"
    ):
        datasets.load("adult")


def test_a_folder_without_the_file_is_named(
    dataset_server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_folder = tmp_path / "mine"
    data_folder.mkdir()
    monkeypatch.setenv("FETA_DATA_DIR", str(data_folder))
    dataset_server.contents.clear()
    with pytest.raises(
        DatasetError, match=r"save it in FETA_DATA_DIR \(.*mine\) as ipums/adult_rec"
    ):
        datasets.load("ipums")
    assert files_in(cache) == []


@pytest.mark.usefixtures("dataset_server")
def test_a_cache_that_cannot_be_written_is_reported(cache: Path) -> None:
    cache.write_text("a file where the folder belongs")
    with pytest.raises(DatasetError, match=r"could not be stored in .*adult"):
        datasets.load("adult")


def test_german_credit_never_downloads(dataset_server: Server) -> None:
    datasets.load("german")
    assert dataset_server.requests == []


def test_published_checksums_are_of_supported_kinds() -> None:
    for source, n_digits in ((adult.UCI, 64), (adult.IPUMS, 64), (law.SOURCE, 40)):
        kind, digits = source.checksum.split(":")
        assert len(digits) == n_digits
        assert source.checksum_of(b"").startswith(f"{kind}:")
    assert law.SOURCE.checksum_of(b"").endswith(
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    )  # as computed by git
