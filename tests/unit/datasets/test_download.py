"""Downloads from a local server: the content, the kept files, and the messages."""

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

PADDING = bytes(200_000)  # so that a file has many chunks; a zip may begin anywhere
BY_HAND = r"download the file manually, save it in .* as {}, and set FETA_DATA_DIR to that folder"


@dataclass
class Server:
    """What the server sends, how, and the requests it received."""

    address: str = ""
    contents: dict[str, bytes] = field(default_factory=dict)
    break_off: bool = False
    knows_ranges: bool = True
    starts_elsewhere: bool = False
    busy: bool = False
    version: str = '"one"'
    asked: list[str] = field(default_factory=list)
    ranges: list[tuple[str | None, str | None]] = field(default_factory=list)  # Range, If-Range
    sent: int = 0


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            wanted, version = self.headers["Range"], self.headers["If-Range"]
            state.ranges.append((wanted, version))
            content = state.contents.get(self.path)
            if state.busy:
                self.send_error(503)
                return
            if content is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
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
def offered(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Offer made-up files of all three datasets, with matching checksums."""
    for module, name, content in (
        (adult, "UCI", PADDING + made_up_rows.adult_zip()),
        (adult, "IPUMS", made_up_rows.IPUMS),
        (law, "SOURCE", made_up_rows.law_whole()),
    ):
        source = getattr(module, name)
        server.contents[f"/{source.file}"] = content
        address = f"{server.address}/{source.file}"
        monkeypatch.setattr(module, name, made_up_rows.with_content(source, address, content))
    return server


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "title", "terms", "place"),
    [
        ("adult", "UCI Adult", "CC BY 4.0", "adult/adult.zip"),
        ("ipums", "IPUMS Adult", "do not pass the rows on", "ipums/adult_reconstruction.csv"),
        ("law", "Law School admissions", "states none", "law/lawschs1_1.dta"),
    ],
)
def test_a_dataset_is_downloaded_once_with_a_word_on_its_terms(
    offered: Server,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    name: str,
    title: str,
    terms: str,
    place: str,
) -> None:
    first = datasets.load(name)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"downloading {title} once from {offered.address}/" in captured.err
    assert terms in captured.err
    assert files_in(cache) == [place]
    assert datasets.load(name).frame.equals(first.frame)
    assert len(offered.asked) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("offered", "cache")
def test_on_a_terminal_a_bar_counts_the_bytes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    datasets.load("adult")
    assert "200.7/200.7 kB" in capsys.readouterr().err


def test_a_damaged_cache_is_downloaded_again(offered: Server, cache: Path) -> None:
    datasets.load("adult")
    (cache / "adult/adult.zip").write_bytes(b"damaged")
    datasets.load("adult")
    assert len(offered.asked) == 2
    assert (cache / "adult/adult.zip").read_bytes() == offered.contents["/adult.zip"]


def test_one_changed_byte_is_noticed_and_nothing_is_kept(offered: Server, cache: Path) -> None:
    for name, file in (("ipums", "adult_reconstruction.csv"), ("law", "lawschs1_1.dta")):
        content = bytearray(offered.contents[f"/{file}"])
        content[-1] ^= 1
        offered.contents[f"/{file}"] = bytes(content)
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


def check_whole(server: Server, cache: Path) -> None:
    assert len(datasets.load("adult").frame) == 4
    assert files_in(cache) == ["adult/adult.zip"]
    assert (cache / "adult/adult.zip").read_bytes() == server.contents["/adult.zip"]


def test_a_download_that_broke_off_goes_on_where_it_was(
    offered: Server, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = interrupt_download(offered, cache)
    second = interrupt_download(offered, cache)
    assert 0 < first < second
    capsys.readouterr()
    check_whole(offered, cache)
    assert f", starting at byte {second:,}" in capsys.readouterr().err
    assert offered.ranges == [
        (None, None),
        (f"bytes={first}-", '"one"'),
        (f"bytes={second}-", '"one"'),
    ]
    twice = offered.sent - len(offered.contents["/adult.zip"])
    assert twice <= 2 * CHUNK_BYTES


def test_a_server_without_ranges_gives_the_whole_file_again(offered: Server, cache: Path) -> None:
    interrupt_download(offered, cache)
    offered.knows_ranges = False
    check_whole(offered, cache)


def test_another_version_of_a_file_is_begun_anew(offered: Server, cache: Path) -> None:
    part = cache / "adult/adult.zip.part"
    first = interrupt_download(offered, cache)
    part.write_bytes(b"x" * first)  # what the older version began with
    offered.version = '"two"'
    check_whole(offered, cache)


@pytest.mark.parametrize("version", ["", 'W/"one"'])
def test_without_a_version_the_checksum_alone_decides(
    version: str, offered: Server, cache: Path
) -> None:
    offered.version = version
    first = interrupt_download(offered, cache)
    (cache / "adult/adult.zip.part").write_bytes(b"x" * first)
    with pytest.raises(DatasetError, match="the file was deleted: load the dataset again"):
        datasets.load("adult")
    assert offered.ranges[-1] == (f"bytes={first}-", None)
    assert files_in(cache) == []
    check_whole(offered, cache)


def test_a_busy_server_does_not_cost_what_is_there(offered: Server, cache: Path) -> None:
    first = interrupt_download(offered, cache)
    offered.busy = True
    with pytest.raises(DatasetError, match="the server answered 503"):
        datasets.load("adult")
    offered.busy = False
    assert (cache / "adult/adult.zip.part").stat().st_size == first
    check_whole(offered, cache)
    assert offered.ranges[-1] == (f"bytes={first}-", '"one"')


def test_a_rest_that_begins_elsewhere_is_not_taken(offered: Server, cache: Path) -> None:
    interrupt_download(offered, cache)
    offered.starts_elsewhere = True
    check_whole(offered, cache)


def test_more_than_the_server_has_is_thrown_away(offered: Server, cache: Path) -> None:
    interrupt_download(offered, cache)
    (cache / "adult/adult.zip.part").write_bytes(b"x" * 999_999)
    check_whole(offered, cache)


def test_a_whole_part_only_needs_its_place(offered: Server, cache: Path) -> None:
    (cache / "adult").mkdir(parents=True)
    (cache / "adult/adult.zip.part").write_bytes(offered.contents["/adult.zip"])
    check_whole(offered, cache)
    assert offered.asked == []


def test_two_who_download_at_once_do_not_spoil_each_other_s_file(
    offered: Server, cache: Path
) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: len(datasets.load("adult").frame), range(4)))
    assert found == [4] * 4
    assert files_in(cache) == ["adult/adult.zip"]
    assert len(offered.asked) == 1


def test_an_address_that_is_gone_is_told_with_what_to_do(offered: Server, cache: Path) -> None:
    offered.contents.clear()
    by_hand = BY_HAND.format("law/lawschs1_1.dta")
    with pytest.raises(DatasetError, match=rf"the server answered 404 Not Found\. .*{by_hand}"):
        datasets.load("law")
    assert files_in(cache) == []


@pytest.mark.usefixtures("cache")
def test_offline_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = "http://127.0.0.1:9/adult.zip"  # the discard port, which is closed
    monkeypatch.setattr(adult, "UCI", made_up_rows.with_content(adult.UCI, nowhere, b"x"))
    by_hand = BY_HAND.format("adult/adult.zip")
    with pytest.raises(
        DatasetError, match=rf"could not be reached \(is this machine online\?\)\. .*{by_hand}"
    ):
        datasets.load("adult")


def test_a_folder_without_the_file_is_named(
    offered: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setenv("FETA_DATA_DIR", str(mine))
    offered.contents.clear()
    with pytest.raises(
        DatasetError, match=r"save it in FETA_DATA_DIR \(.*mine\) as ipums/adult_rec"
    ):
        datasets.load("ipums")
    assert files_in(cache) == []


@pytest.mark.usefixtures("offered")
def test_a_cache_that_cannot_be_written_is_told(cache: Path) -> None:
    cache.write_text("a file where the folder belongs")
    with pytest.raises(DatasetError, match=r"could not be stored in .*adult"):
        datasets.load("adult")


def test_german_credit_never_downloads(offered: Server) -> None:
    datasets.load("german")
    assert offered.asked == []


def test_the_published_checksums_are_of_the_kinds_we_compute() -> None:
    for source, n_digits in ((adult.UCI, 64), (adult.IPUMS, 64), (law.SOURCE, 40)):
        kind, digits = source.checksum.split(":")
        assert len(digits) == n_digits
        assert source.checksum_of(b"").startswith(f"{kind}:")
    assert law.SOURCE.checksum_of(b"").endswith(
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    )  # git's own
