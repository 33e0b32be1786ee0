"""tantivy, the search engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from peers.contract import About, Said, SearchOnly
from peers.vectors import Vectors

WORD = re.compile(r"\w+")


class Tantivy(SearchOnly):
    """An index of texts in a folder."""

    about = About(
        "tantivy",
        "tantivy",
        "tantivy",
        "import tantivy",
        "an index, no memory: `en_stem`, bm25, the words of the question joined by OR, one thread, a commit per call; "
        "no meaning, and no words in languages without spaces",
        no_context="none",
        memory=False,
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:  # noqa: ARG002 - nothing is embedded
        """Open the index."""
        import tantivy  # noqa: PLC0415 - not installed everywhere

        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("role", stored=True, tokenizer_name="raw")
        schema.add_text_field("text", stored=True, tokenizer_name="en_stem")
        self._index = tantivy.Index(schema.build(), path=str(folder))
        self._writer = self._index.writer(num_threads=1)
        self._document = tantivy.Document

    async def add(self, said: Said) -> None:
        """Store one message, and commit."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many with one commit."""
        for each in said:
            self._writer.add_document(self._document(id=each.id, role=each.role, text=each.text))
        self._writer.commit()
        self._index.reload()

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by words."""
        # In lower case, for AND, OR and NOT are operators.
        words = " ".join(WORD.findall(question.lower()))
        # The strict parser refuses a question whose words are all too long to be indexed.
        query, _ = self._index.parse_query_lenient(words, ["text"])
        searcher = self._index.searcher()
        hits = searcher.search(query, limit).hits
        return [searcher.doc(place)["id"][0] for _, place in hits]

    async def close(self) -> None:
        """Wait for merges, and close the files."""
        self._writer.wait_merging_threads()
