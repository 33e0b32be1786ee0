"""Decides which candidates are stored, which wait for the approval of a person, and which are dropped."""

from __future__ import annotations

import asyncio
import tomllib
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, NamedTuple
from unicodedata import normalize

from cachetools import LRUCache

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.memory import Tombstone
from aforesaid.domain.message import Message
from aforesaid.errors import ModelError
from aforesaid.extras import re
from aforesaid.facts.candidate import Candidate, statement_in
from aforesaid.facts.people import Person, whom
from aforesaid.facts.salience_extraction import PlainPart, parts_of
from aforesaid.facts.statement import name_stems, statement, stems_in, support
from aforesaid.models.calibration import SameMeaning, nearness
from aforesaid.models.embed import Embedder
from aforesaid.models.embed.caching import MessageVectors, reads
from aforesaid.models.offline import forget_fact, without_requests
from aforesaid.models.prompts import strip_invisible
from aforesaid.models.salience import RECENT, Judgement, load_salience
from aforesaid.store import Store
from aforesaid.text.languages import guess_language, vocabulary
from aforesaid.text.relations import relation_called
from aforesaid.text.sentences import is_question, own_text, split_sentences
from aforesaid.text.words import UNSPACED_LANGUAGES, any_of, fold, words_of

# Tags and marks of direction are never typed by accident; a few zero-width characters may come from copying.
_HIDING: Final = re.compile("[\U000e0001-\U000e007f\u202a-\u202e\u2066-\u2069]")
_ZERO_WIDTH: Final = re.compile("[\u200b\u200c\u200d\u2060\u180e\u3164\uffa0]")
_MANY: Final = 4
_FLAG: Final = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{2,6}\U000e007f")
"""Flags of regions, such as that of Scotland, are spelled in tags."""


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of suspicion.toml, compiled."""
    table = tomllib.loads((files("aforesaid.facts") / "suspicion.toml").read_text(encoding="utf-8"))
    start, does = table["start"], table["does"].replace("\n", "")
    # Line ends are for the reader alone.
    parts = [part.replace("\n", "").replace("START", start).replace("DOES", does) for part in table[name]]
    return re.compile(any_of(parts), re.MULTILINE if name == "breakout" else 0)


def reads_like_an_order(text: str) -> bool:
    """Return whether a text reads like an instruction to a model, in any of several languages."""
    return _pattern("orders").search(_plain(text)) is not None


def tampered(text: str) -> str | None:
    """Return why a raw text looks made to deceive a model; None if it does not."""
    text = _FLAG.sub("", text)
    if (
        _HIDING.search(text)
        or len(_ZERO_WIDTH.findall(text)) - len(_ZERO_WIDTH.findall(strip_invisible(text))) >= _MANY
    ):
        return "it has hidden characters"
    if _pattern("breakout").search(normalize("NFKC", text).casefold()):
        return "it has tags of a prompt in it"
    return None


def suspicion(text: str) -> str | None:
    """Return why a person should check a text; None if nobody has to."""
    reason = tampered(text)
    if reason is None and reads_like_an_order(text):
        reason = "it reads like an instruction to the model"
    return reason


def sensitive(text: str) -> bool:
    """Return whether a text is about health, crime, faith, love, money or secrets of a person."""
    return _pattern("sensitive").search(_plain(text)) is not None


@holds_texts
@lru_cache(maxsize=512)
def _plain(text: str) -> str:
    return fold(strip_invisible(text)).replace("’", "'")


SUPPORTED: Final = 0.2
"""Share of words in common with its sources from which a candidate is not compared by meaning."""
CLEARLY_SHARED: Final = 0.5
"""Share of words from which a standing request is the person's own, and from which single characters count as words."""
_MOSTLY_SHARED: Final = 0.65
"""Share of words from which a message is the source of a candidate although a model names another one."""
_PARTLY_SHARED: Final = 0.4
"""The same where the named message shares a few words too: the model put two messages together."""
NEAR: Final = 3.5
"""Similarity from which a candidate is supported, in standard deviations. Chosen on tests/facts/test_grounding.py.

On the separate pairs of tests/facts/held_out.py it accepts no invention.
"""
FAR: Final = 1.0
"""Similarity below which a candidate is unrelated to its sources, in standard deviations.

Between `FAR` and `NEAR` a person decides. The same holds for a candidate that is at least `FAR` similar to its sources
but more similar to an unrelated sentence.
"""
_MY: Final = re.compile(
    r"\W*(?:my|mein|meine|mon|ma|mi|mio|mia|il mio|la mia|meu|minha|o meu|a minha|мой|моя)\s+(\w+)", re.IGNORECASE
)


async def meanings(
    candidates: Sequence[Candidate], people: Mapping[str, Person], embedder: Embedder | None
) -> dict[str, float]:
    """Return the similarity of candidates with their sources, by text, for those that share few words with them.

    Without an embedder, or while it fails, nothing is returned, and a person decides about such candidates.
    """
    names = [name for person in people.values() for name in person.names]
    found: dict[str, float] = {}
    for candidate in candidates:
        said = own_words(candidate)
        if embedder is None or candidate.has_original_words or shared_words(candidate.text, said, names) >= SUPPORTED:
            continue
        # Names say nothing about the event, but weigh much in a short sentence.
        nameless = _without(candidate.text, names)
        try:
            near = [await nearness([text], said, embedder, most_elsewhere=FAR) for text in (candidate.text, nameless)]
        except ModelError:
            return found
        found[candidate.text] = max((number for each in near for number in each), default=0.0)
    return found


def shared_words(text: str, said: Sequence[str], names: Collection[str]) -> float:
    """Return the share of a text's words that were said, 0 to 1.

    In languages without spaces a small share counts as 0: words are single characters there, and any two texts share
    some.
    """
    share = support(text, said, names)
    return share if share >= CLEARLY_SHARED or guess_language(text) not in UNSPACED_LANGUAGES else 0.0


def own_words(candidate: Candidate) -> list[str]:
    """Return what people said, and did not quote, in the sources of a candidate, and the memory that it completes."""
    said = [own_text(message.text) for message in candidate.sources if message.role == "user"]
    return [*said, candidate.completes] if candidate.completes else said


def supporting(
    text: str, named: Sequence[Message], spoken: Sequence[Message], names: Collection[str]
) -> tuple[Message, ...]:
    """Return the messages of people that a text rests on, of those that a model names; none if it names none.

    Small models name every message, or the wrong one. So messages that share far fewer words with the text than another
    one are left out; and where one of `spoken` that was not named shares far more, it is the source instead.
    """
    if not named:
        return ()
    shares = {message.seq: shared_words(text, [message.text], names) for message in spoken}
    best, nearest = max(shares.values()), max(shares[message.seq] for message in named)
    enough = _PARTLY_SHARED if nearest > 0 else _MOSTLY_SHARED
    if best >= enough and nearest <= best / 2:
        return (next(message for message in spoken if shares[message.seq] == best),)
    if nearest < SUPPORTED:
        return tuple(named)
    return tuple(message for message in named if shares[message.seq] >= nearest / 2)


def is_the_opposite(candidate: Candidate, names: Collection[str]) -> bool:
    """Return whether a candidate denies what the sentences say that share most words with it, or the other way round.

    One that shares no word with any sentence is compared by meaning instead.
    """
    nearest = _nearest_sentences(candidate, names)
    denies = statement(candidate.text).denies
    return bool(nearest) and all(statement(sentence).denies != denies for sentence in nearest)


def is_too_certain(candidate: Candidate, names: Collection[str]) -> bool:
    """Return whether a candidate states as a fact what the sentences nearest to it call possible or only wish for."""
    nearest = _nearest_sentences(candidate, names)
    return bool(nearest) and not statement(candidate.text).hedges and all(map(_hedges, nearest))


def _hedges(sentence: str) -> bool:
    return statement(sentence).hedges


def _nearest_sentences(candidate: Candidate, names: Collection[str]) -> list[str]:
    sentences = [each for source in own_words(candidate) for each in split_sentences(source)]
    shares = [shared_words(candidate.text, [sentence], names) for sentence in sentences]
    most = max(shares, default=0.0)
    return [sentence for sentence, share in zip(sentences, shares, strict=True) if share == most > 0]


def is_about_somebody_else(candidate: Candidate, people: Mapping[str, Person]) -> bool:
    """Return whether a candidate attributes to one person what its sources say about another.

    Either it names somebody who is neither author nor mentioned in its sources, or it says about the speaker what they
    said about a relative or friend ("Ann moved to Rome" from "my sister moved to Rome").
    """
    named = _words([candidate.text])
    said = _words(own_words(candidate))
    authors = {message.author for message in candidate.sources if message.role == "user"}
    mentioned = {person.id for person in people.values() if not named.isdisjoint(_words(person.names))}
    strangers = {each for each in mentioned - authors if said.isdisjoint(_words(people[each].names))}
    if strangers and not mentioned & authors:
        return True
    return candidate.speaker.id in mentioned and _said_of_a_relative(candidate, named)


def _said_of_a_relative(candidate: Candidate, named: Collection[str]) -> bool:
    text = candidate.text
    subject = next((name for name in candidate.speaker.names if text.casefold().startswith(name.casefold())), None)
    if subject is None or text[len(subject) :].startswith(("'", "’")):
        return False
    for sentence in (each for source in own_words(candidate) for each in split_sentences(source)):
        begins = _MY.match(sentence)
        relative = words_of(begins[1]) if begins else []
        if begins is None or not any(map(relation_called, relative)) or not set(relative).isdisjoint(named):
            continue
        rest = words_of(sentence[begins.end() :])
        spoken = vocabulary(guess_language(sentence)).first_person
        if spoken.isdisjoint(rest) and support(text, [sentence], candidate.speaker.names) >= SUPPORTED:
            return True
    return False


def _words(texts: Collection[str]) -> set[str]:
    return {word for text in texts for word in words_of(text)}


def _without(text: str, names: Collection[str]) -> str:
    longest = sorted((re.escape(name) for name in names if name), key=len, reverse=True)
    return " ".join(re.sub(rf"(?:{'|'.join(longest)})(?:['’]s)?", " ", text, flags=re.IGNORECASE).split()) or text


_LEAST_WORDS: Final = 2
_ECHO: Final = 0.6
"""Minimum share of words that others said, from which an unsupported candidate counts as an echo of them."""
_BORROWED: Final = 1 / 3
"""Maximum share of words that others said and the speaker did not. A sentence may need a few of them."""
_DATE: Final = re.compile(r"\(?\b\d{4}(?:-\d\d){1,2}\b(?: \d\d:\d\d)?\)?")
_YES: Final = re.compile(
    r"\s*(?:yes|yeah|yep|yup|sure|right|exactly|correct|true|indeed|ok|okay|of course|absolutely|ja|genau|stimmt|"
    r"richtig|si|claro|exacto|oui|exactement|d'accord|esatto|certo|sim|isso|klopt|да|верно|точно|конечно|نعم|是|对|对的|没错|好的|はい|うん|そう|네|응|हाँ)\b"
)


class Admission(NamedTuple):
    """Whether a candidate is dropped or quarantined. Neither: it becomes an active memory."""

    dropped: str | None = None
    """Why it is dropped: `junk`, `echo`, `unsupported`, `forgotten`, or `hearsay` (others say it about the user)."""
    quarantine: str | None = None
    """Why a person must approve it."""


def admit(
    candidate: Candidate,
    batch: Sequence[Message],
    owner: Person,
    people: Mapping[str, Person],
    tombstones: Sequence[Tombstone],
    near: Mapping[str, float],
) -> Admission:
    """Return whether a candidate is stored, quarantined or dropped.

    What is known about a person rests on what they said themself: words of the assistant, of a page or of somebody else
    are evidence of what those said.

    `near` maps texts of candidates to their similarity of meaning with their sources, where that was compared.
    """
    names = tuple(name for person in people.values() for name in person.names)
    if _junk(candidate):
        return Admission(dropped="junk")
    if candidate.speaker.id != owner.id and (
        candidate.about or whom(candidate.text, candidate.subject, candidate.speaker, owner, people)
    ) in (None, owner.id):
        return Admission(dropped="hearsay")
    admission = Admission()
    if not candidate.has_original_words:
        admission = _check_sources(candidate, batch, names, near.get(candidate.text))
        if admission.dropped is not None:
            return admission
        if is_about_somebody_else(candidate, people):
            admission = Admission(quarantine="its sources may say it about somebody else")
    if is_forgotten(candidate, owner, tombstones):
        return Admission(dropped="forgotten")
    return Admission(quarantine=_suspicion_of(candidate) or admission.quarantine)


def is_forgotten(candidate: Candidate, owner: Person, tombstones: Sequence[Tombstone]) -> bool:
    """Return whether the user asked to forget this after it was said."""
    texts = [candidate.text, *([candidate.quote] if candidate.quote else [])]
    return any(
        candidate.last <= tombstone.up_to and states(text, tombstone.words, owner.names)
        for tombstone in tombstones
        for text in texts
    )


def states(text: str, words: str, names: Collection[str]) -> bool:
    return forget_fact(text, words, names).found


def _junk(candidate: Candidate) -> bool:
    text = candidate.text
    said = words_of(text)
    if not any(character.isalpha() for character in text) or len(said) < _LEAST_WORDS:
        return True
    telling = statement(text, candidate.speaker.names).words - {
        word for name in candidate.speaker.names for word in words_of(name)
    }
    return not telling or (is_question(text) and candidate.category not in {"task", "reminder"})


def _check_sources(
    candidate: Candidate, batch: Sequence[Message], names: Collection[str], near: float | None
) -> Admission:
    """Check that the speaker said what a model wrote, and not somebody else, a text that they quote, or the model."""
    own = own_words(candidate)
    # Dates are computed: the number of a day may be in any message.
    words = statement(_DATE.sub("", candidate.text), tuple(names)).words - name_stems(names)
    theirs = [message for message in batch if message.role == "user" and message.author == candidate.speaker.id]
    others = [message.text for message in batch if message not in theirs]
    quoted = [message.text for message in candidate.sources if own_text(message.text) != message.text]
    said = stems_in([*own, *(own_text(message.text) for message in theirs)])
    sources = {message.seq for message in candidate.sources}
    stored = sorted(batch, key=lambda message: message.seq)
    before = [each for each, message in pairwise(stored) if message.seq in sources and each.seq not in sources]
    asked = stems_in(
        [sentence for message in before for sentence in split_sentences(message.text) if is_question(sentence)]
    )
    borrowed = words & stems_in([*others, *quoted]) - said
    # The words of a question may be needed to understand the answer, but no number comes from anybody else.
    if len(borrowed - asked) > _BORROWED * len(words) or any(map(_has_digit, borrowed)):
        return Admission(dropped="echo")
    supported = shared_words(candidate.text, own, names)
    if supported >= SUPPORTED:
        return Admission()
    if words & asked and any(_YES.match(fold(text)) for text in own):
        # The person said yes to a question about it.
        return Admission()
    if support(candidate.text, [*others, *quoted], names) >= _ECHO:
        return Admission(dropped="echo")
    likely = supported > 0 if near is None else near >= NEAR or (near > FAR and supported > 0)
    if likely:
        return Admission()
    if near is not None and near < FAR and not supported:
        return Admission(dropped="unsupported")
    return Admission(quarantine="its sources do not say it in these words")


def _has_digit(word: str) -> bool:
    return any(map(str.isdecimal, word))


def _suspicion_of(candidate: Candidate) -> str | None:
    """Return why a person should check a candidate; None if nobody has to.

    A standing request of the user is meant to be an instruction; the rest of its message is not.
    """
    own = tampered(candidate.text) if candidate.request else suspicion(candidate.text)
    if own is not None:
        return own
    for message in candidate.sources:
        if candidate.matter is not None:
            # A value is a few words: what else the message says is no part of it.
            if message.role == "user" and (reason := tampered(message.text)) is not None:
                return f"the message that it comes from is suspicious: {reason}"
            continue
        said = without_requests(message.text) if candidate.request else message.text
        if message.role == "user" and (reason := tampered(message.text) or suspicion(said)) is not None:
            return f"the message that it comes from is suspicious: {reason}"
    return None


_MARGINS_CACHED: Final = 10_000
_FEW: Final = 4
"""Messages up to which judging them takes less time than a change of thread."""


class SalienceJudge:
    """Judges the messages of users with the vectors that the store has, or that the encoder makes."""

    def __init__(self, store: Store, encoder: Embedder) -> None:
        """Make missing vectors with `encoder`, the built-in one."""
        self.vectors = MessageVectors(store, encoder)
        self.same_meaning = SameMeaning(encoder)
        self._margins: LRUCache[tuple[str, str, int], float] = LRUCache(_MARGINS_CACHED)
        """Margins of messages, by space, user and sequence number."""

    async def judge(self, messages: Sequence[Message], before: Sequence[Message] = ()) -> dict[int, Judgement]:
        """Return the judgement of each message of a person, by sequence number.

        A message is judged beside the author's last messages, which are among `before`. Raises ModelError if the
        encoder does not answer.
        """
        said = [message for message in messages if message.role == "user" and message.text.strip()]
        if not said:
            return {}
        earlier = [message for message in before if message.role == "user" and message.text.strip()]
        cached = {key: self._margins[key] for key in map(_key, earlier) if key in self._margins}
        unknown = [message for message in earlier if _key(message) not in cached]
        vectors = await self.vectors.of([*unknown, *said])
        texts = [each.text for each in (*unknown, *said)]
        # In a thread, since reading many texts would block the event loop.
        judge = load_salience().judge
        judgements = judge(texts, vectors) if len(texts) <= _FEW else await asyncio.to_thread(judge, texts, vectors)
        judged = dict(zip(map(_key, (*unknown, *said)), judgements, strict=True))
        margins = cached | {key: each.margin for key, each in judged.items()}
        self._margins.update(margins)
        recent: dict[str, deque[float]] = {}
        found = {}
        for message in earlier:
            recent.setdefault(message.author, deque(maxlen=RECENT)).append(margins[_key(message)])
        for message in said:
            each = judged[_key(message)]
            own = recent.setdefault(message.author, deque(maxlen=RECENT))
            own.append(each.margin)
            found[message.seq] = each._replace(margin=load_salience().relative_to(each.margin, own))
        return found

    async def plain_parts(
        self, messages: Sequence[Message], judgements: Mapping[int, Judgement]
    ) -> dict[int, list[PlainPart]]:
        """Return the plain statements in messages that are not worth remembering as a whole, by sequence number.

        Raises ModelError if the encoder does not answer.
        """
        parts = [
            (message.seq, part)
            for message in messages
            if message.seq in judgements and not judgements[message.seq].worth_remembering
            for part in parts_of(statement_in(message))
        ]
        if not parts:
            return {}
        texts = [part for _, part in parts]
        if reads(self.vectors.embedder):
            # What becomes a memory is read next: in the pass that embeds it.
            await self.vectors.embedder.read(texts)
        judged = await asyncio.to_thread(load_salience().judge, texts, await self.vectors.of_texts(texts))
        found: dict[int, list[PlainPart]] = {}
        for (seq, part), judgement in zip(parts, judged, strict=True):
            if judgement.worth_remembering and judgement.stands_alone:
                found.setdefault(seq, []).append(PlainPart(part, judgement))
        return found


def _key(message: Message) -> tuple[str, str, int]:
    return message.space, message.user, message.seq
