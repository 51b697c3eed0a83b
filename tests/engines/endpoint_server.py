"""A small OpenAI-compatible server in a thread: answers by a function, or as a script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], Any]


def said(text: str, finish_reason: str = "stop", prompt: int = 7, completion: int = 3) -> Reply:
    """A usual answer."""
    message = {"role": "assistant", "content": text}
    return (
        200,
        {},
        {
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion},
        },
    )


class EndpointServer:
    """Answers POST /v1/chat/completions with what `answer` says of the request's body."""

    def __init__(self, answer: Callable[[dict[str, Any]], Reply], model: str = "toy") -> None:
        self.answer = answer
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most = 0  # requests that were under way at once
        self._now = 0
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner._send(self, (200, {}, {"data": [{"id": model}]}))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with owner._lock:
                    owner.bodies.append(body)
                    owner.headers.append(dict(self.headers))
                    owner._now += 1
                    owner.most = max(owner.most, owner._now)
                try:
                    reply = owner.answer(body)
                finally:
                    with owner._lock:
                        owner._now -= 1
                owner._send(self, reply)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        status, headers, body = reply
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in {**headers, "content-length": str(len(data))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def __enter__(self) -> EndpointServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def scripted(*replies: Reply) -> Callable[[dict[str, Any]], Reply]:
    """These replies one after another; the last one again and again."""
    left = list(replies)
    return lambda body: left.pop(0) if len(left) > 1 else left[0]
