"""Certificates of audits on a cluster: the claims of all parts, in order."""

import json
from pathlib import Path
from typing import Any

import feta
from tests.cli.commands import run
from tests.unit.distributed.test_dataset_run import OPTIONS, audit, here, people

__all__ = ["here", "people"]  # fixtures


def claims(folder: Path) -> list[dict[str, Any]]:
    """Return all claims; salts are random."""
    lines = (folder / "certificate.jsonl").read_bytes().splitlines()[1:-1]
    return [{**json.loads(line), "salt": ""} for line in lines]


def test_the_claims_of_all_parts_are_those_of_one_table(people: Path) -> None:
    assert audit(people, "--certify").returncode == 1
    alone = ("--data", "all.parquet", "--out", "alone", *OPTIONS, "--certify")
    assert run("audit", "m.feta", *alone, cwd=people).returncode == 1
    assert claims(people / "out") == claims(people / "alone")
    assert [claim["row"] for claim in claims(people / "out")] == list(range(1, 151))
    assert feta.check(people / "out").all_proved
    for name in ("schema.json", "model.feta"):
        assert (people / "out" / name).read_bytes() == (people / "alone" / name).read_bytes()


def test_finished_parts_keep_their_claims(people: Path) -> None:
    audit(people, "--certify")
    first = (people / "out" / "certificate.jsonl").read_bytes().splitlines()
    (people / "out" / "certificate.jsonl").unlink()
    lost = next((people / "out" / "parts").glob("*two*claims.jsonl"))
    lost.write_bytes(lost.read_bytes()[:-10])  # of this part, nothing is kept
    assert audit(people, "--certify").returncode == 1
    again = (people / "out" / "certificate.jsonl").read_bytes().splitlines()
    assert claims(people / "out") == [{**json.loads(line), "salt": ""} for line in first[1:-1]]
    same = [before == after for before, after in zip(first[1:-1], again[1:-1], strict=True)]
    assert (same[:40], same[90:]) == ([True] * 40, [True] * 60)
    assert feta.check(people / "out").all_proved


def test_the_model_can_be_left_out(people: Path) -> None:
    audit(people, "--certify", "--without-model")
    assert feta.check(people / "out").not_checked == 150
    assert feta.check(people / "out", model=people / "m.feta").all_proved
