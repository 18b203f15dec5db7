"""Downloads, from a server of our own: what comes, what is kept, and what the user is told."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest

from feta import DatasetError, datasets
from feta.datasets import adult, law
from tests import made_up_rows

BY_HAND = r"get the file by hand, put it into .* as {}, and set FETA_DATA_DIR to that folder"


@dataclass
class Server:
    """What the server gives, and what it was asked for."""

    address: str = ""
    contents: dict[str, bytes] = field(default_factory=dict)
    break_off: bool = False
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            content = state.contents.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if state.break_off else content)

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
    """All three datasets, made up, with their right checksums."""
    for module, name, content in (
        (adult, "UCI", made_up_rows.adult_zip()),
        (adult, "IPUMS", made_up_rows.IPUMS),
        (law, "SOURCE", made_up_rows.law_whole()),
    ):
        source = getattr(module, name)
        server.contents[f"/{source.file}"] = content
        address = f"{server.address}/{source.file}"
        monkeypatch.setattr(module, name, made_up_rows.with_content(source, address, content))
    return server


def files_in(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


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
    told = capsys.readouterr()
    assert told.out == ""
    assert f"downloading {title} once from {offered.address}/" in told.err
    assert terms in told.err
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
    n_bytes = len(made_up_rows.adult_zip())
    assert f"{n_bytes}/{n_bytes} bytes" in capsys.readouterr().err


def test_a_damaged_cache_is_downloaded_again(offered: Server, cache: Path) -> None:
    datasets.load("adult")
    (cache / "adult/adult.zip").write_bytes(b"damaged")
    datasets.load("adult")
    assert len(offered.asked) == 2
    assert (cache / "adult/adult.zip").read_bytes() == made_up_rows.adult_zip()


def test_one_changed_byte_is_noticed_and_nothing_is_kept(offered: Server, cache: Path) -> None:
    for name, file in (("ipums", "adult_reconstruction.csv"), ("law", "lawschs1_1.dta")):
        content = bytearray(offered.contents[f"/{file}"])
        content[-1] ^= 1
        offered.contents[f"/{file}"] = bytes(content)
        with pytest.raises(
            DatasetError, match=r"must have the checksum .*, got .*; it was not kept"
        ):
            datasets.load(name)
    assert files_in(cache) == []


def test_a_download_that_breaks_off_leaves_nothing_and_can_be_repeated(
    offered: Server, cache: Path
) -> None:
    offered.break_off = True
    with pytest.raises(
        DatasetError, match=r"UCI Adult: .* broke off before its end; load it again"
    ):
        datasets.load("adult")
    assert files_in(cache) == []
    offered.break_off = False
    assert len(datasets.load("adult").frame) == 4


def test_an_address_that_is_gone_is_told_with_what_to_do(offered: Server, cache: Path) -> None:
    offered.contents.clear()
    by_hand = BY_HAND.format("law/lawschs1_1.dta")
    with pytest.raises(DatasetError, match=rf"the server answered 404 Not Found\. .*{by_hand}"):
        datasets.load("law")
    assert files_in(cache) == []


@pytest.mark.usefixtures("cache")
def test_offline_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = "http://127.0.0.1:9/adult.zip"  # the discard port, where nobody listens
    monkeypatch.setattr(adult, "UCI", made_up_rows.with_content(adult.UCI, nowhere, b""))
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
        DatasetError, match=r"put it into FETA_DATA_DIR \(.*mine\) as ipums/adult_rec"
    ):
        datasets.load("ipums")
    assert files_in(cache) == []


@pytest.mark.usefixtures("offered")
def test_a_cache_that_cannot_be_written_is_told(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
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
