"""A server on loopback with Anthropic's Messages API that answers from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class ScriptedClaude:
    """Answers each request with the next item of the script: a text, or the input of a call of the memory tool."""

    def __init__(self, script: Sequence[str | Mapping[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        rest = iter(script)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:  # noqa: N805 - the names of the base class
                body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
                self.requests.append(body)
                answer = json.dumps(_message(next(rest), len(self.requests))).encode()
                handler.send_response(200)
                handler.send_header("content-type", "application/json")
                handler.send_header("content-length", str(len(answer)))
                handler.end_headers()
                handler.wfile.write(answer)

            def log_message(handler, *_: object) -> None:  # noqa: N805
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _message(said: str | Mapping[str, Any], number: int) -> dict[str, Any]:
    text = isinstance(said, str)
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": said}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [{"type": "text", "text": said} if text else call],
        "stop_reason": "end_turn" if text else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
