"""A model to serve, and a server in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from feta import (
    Categorical,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Real,
    Threshold,
    VoteWeights,
    save_model,
)
from feta.serve.application import Guard, application
from feta.serve.helper import Helper
from feta.serve.long_work import Answer, Kind, Question, answer
from feta.serve.served import Served
from feta.serve.server import ServeOptions, build

SPACE = FeatureSpace(
    (
        Integer("age", 18, 27, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Integer("income", 0, 60),
        Real("debt", 0, 10, strict=True),
        Categorical("town", ("a", "b"), missing=True),
    )
)


def predictor(seed: int) -> FairPredictor:
    """Return a network with weighted votes; half of its people are unfavorable."""
    rng = np.random.default_rng(seed)
    layers = [
        (rng.normal(size=(6, SPACE.width)) / [10, 1, 1, 20, 4, 1, 1, 1], rng.normal(size=6)),
        (rng.normal(size=(1, 6)), np.zeros(1)),
    ]
    network = Network.from_layers(layers)
    people = SPACE.encode(records(200, seed=99, sensitive=True))
    rule = Threshold(float(np.median(network(people))))
    model = Model(SPACE, network, rule, outcomes=("refused", "approved"))
    return FairPredictor(model, weights=VoteWeights.from_people(SPACE, people))


def records(n_people: int, *, seed: int = 0, sensitive: bool = False) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    people: list[dict[str, Any]] = []
    for _ in range(n_people):
        record: dict[str, Any] = {
            "income": int(rng.integers(0, 61)),
            "debt": float(rng.uniform(0, 10)),
            "town": (None, "a", "b")[rng.integers(3)],
        }
        if sensitive:
            record |= {"age": int(rng.integers(18, 28)), "sex": str(rng.choice(["female", "male"]))}
        people.append(record)
    return people


def decisions(decider: FairPredictor, people: list[dict[str, Any]]) -> list[str]:
    """Return what a service must answer."""
    rows = SPACE.encode(people, sensitive="ignore", limits="open")
    return [str(decider.model.describe(one)) for one in decider.decide(rows).tolist()]


def write(path: Path, seed: int) -> FairPredictor:
    """Write a model file, and return its predictor."""
    decider = predictor(seed)
    save_model(decider, path)
    return decider


class HelperHere(Helper):
    """Does the work of the helper process in this process."""

    async def ask(
        self, kind: Kind, served: Served, parts: list[bytes], client: str, **_: object
    ) -> Answer:
        return answer(served, Question(kind, b"".join(parts), client, self.log_key), lambda: False)


def built(model: Path, *, log: str | None = None) -> Guard:
    """Return an application without a helper process."""
    service = build(ServeOptions(str(model), "m", log=log)).service
    helper = HelperHere(service.helper.current, service.helper.log_key)
    return application(replace(service, helper=helper))


@dataclass(frozen=True)
class Server:
    url: str
    process: "subprocess.Popen[str]"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def serving(model: Path, *arguments: str) -> Iterator[Server]:
    """Start a server on a free port, and end it gracefully."""
    process = subprocess.Popen(
        [sys.executable, "-m", "feta", "serve", str(model), "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        match = re.search(r" on (http://\S+) with", line)
        assert match, line + process.stderr.read()
        yield Server(match[1], process)
    finally:
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert "Traceback" not in errors


def helper_of(parent: int) -> int:
    """Return the helper process of a process of the service."""
    children = [
        int(pid)
        for task in Path(f"/proc/{parent}/task").glob("*/children")
        for pid in task.read_text().split()
    ]
    (helper,) = filter(is_helper, children)
    return helper


def is_helper(pid: int) -> bool:
    try:
        return "helper_program" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
