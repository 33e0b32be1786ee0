"""The JSON objects of requests that are passed on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import HTTPException


def read_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a request. Raises 400 for anything else."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is no JSON.") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "The request is no JSON object.")
    return body


def dumped(body: Mapping[str, Any]) -> bytes:
    """Return a JSON object as bytes. Half of a surrogate pair, which has none, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")
