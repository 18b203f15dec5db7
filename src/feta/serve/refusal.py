"""Refused requests: a status and a sentence, never a traceback."""

from http import HTTPStatus
from typing import Any


class Refusal(Exception):
    """A request that is not answered, with the reason in words."""

    def __init__(self, status: HTTPStatus, message: str, **details: Any) -> None:  # noqa: ANN401 - JSON
        super().__init__(message)
        self.status = status
        self.content: dict[str, Any] = {"error": message, **details}
