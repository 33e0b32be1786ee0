"""What Prometheus is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import aforesaid
from aforesaid.errors import InvalidInput
from aforesaid.memory import Memory
from aforesaid.server.prometheus import registry_of


async def numbers(memory: Memory) -> dict[tuple[str, frozenset[str]], float]:
    text = generate_latest(await registry_of(memory)).decode()
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.req("B16", "C17")
async def test_prometheus_reads_counts_latencies_parts_and_alerts(tmp_path: Path) -> None:
    settings = {"alerts.storage_bytes": 1}
    async with aforesaid.connect(tmp_path / "memory.db", settings=settings) as memory:
        ann = memory.user("ann")
        for number in range(3):
            await ann.add("user", f"hello {number}")
        with pytest.raises(InvalidInput):
            await ann.add("nobody", "hello")  # type: ignore[arg-type]
        await memory.upkeep()
        found = await numbers(memory)
        counted = memory.metrics.snapshot()["add", ""]  # type: ignore[index]
    added = frozenset({"add", ""})
    assert found["aforesaid_operation_seconds_count", added] == 4
    assert found["aforesaid_operation_seconds_sum", added] == pytest.approx(counted.seconds)
    assert found["aforesaid_operation_seconds_bucket", added | {"+Inf"}] == 4
    assert found["aforesaid_operation_failures_total", added | {"invalid"}] == 1
    assert found["aforesaid_store_messages", frozenset()] == 3
    assert found["aforesaid_component_healthy", frozenset({"store"})] == 1
    assert found["aforesaid_component_status", frozenset({"store", "active"})] == 1
    assert found["aforesaid_component_status", frozenset({"store", "failing"})] == 0
    assert found["aforesaid_component_waiting", frozenset({"embedder"})] == 0
    assert found["aforesaid_alert", frozenset({"capacity", "store"})] == 1
    assert found["aforesaid_disk_free_bytes", frozenset()] > 0
    assert ("aforesaid_operation_seconds_count", frozenset({"embed", "deterministic-256"})) in found


async def test_buckets_add_up(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db") as memory:
        for seconds in (0.0005, 0.2, 0.2, 100.0):
            memory.metrics.called("chat", "one", seconds, prompt_tokens=7)
        memory.metrics.cache_hit("chat", "one")
        found = await numbers(memory)
    chat = frozenset({"chat", "one"})
    assert found["aforesaid_operation_seconds_bucket", chat | {"0.001"}] == 1
    assert found["aforesaid_operation_seconds_bucket", chat | {"0.25"}] == 3
    assert found["aforesaid_operation_seconds_bucket", chat | {"60.0"}] == 3
    assert found["aforesaid_operation_seconds_bucket", chat | {"+Inf"}] == 4
    assert found["aforesaid_cache_hits_total", chat] == 1
    assert found["aforesaid_model_tokens_total", chat | {"read"}] == 28
