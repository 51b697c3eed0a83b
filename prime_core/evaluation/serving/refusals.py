"""What the endpoint says no to, in the shape that OpenAI's clients read.

Raised while a request is read and planned, turned into an answer by `app`. Invariant: nothing that
a client sent is accepted and then ignored.
"""

from __future__ import annotations

from typing import Any

from prime_core.api import PrimeError

# HTTP status to the `type` of OpenAI's error objects.
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


class Refused(PrimeError):
    """A request that is answered with an error.

    Args:
        what: the message.
        status: HTTP status, 4xx or 5xx.
        param: the field that it's about.
        code: OpenAI's word for it where there is one.
    """

    def __init__(
        self, what: str, *, status: int = 400, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(what, where=param)
        self.status = status
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        kind = _TYPES.get(self.status, "invalid_request_error")
        return {
            "error": {"message": self.what, "type": kind, "param": self.param, "code": self.code}
        }
