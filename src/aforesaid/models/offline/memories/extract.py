"""Extracts memories from messages with rules, without a model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from aforesaid.domain.checks import Category
from aforesaid.domain.memory import MOST_IMPORTANCE
from aforesaid.extras import re
from aforesaid.models.offline.memories.keys import claim_of, introduction, standing_request, topic_of
from aforesaid.models.offline.memories.rules import RULES, Rule
from aforesaid.models.offline.request_rules import Spoken
from aforesaid.text.languages import guess_language, vocabulary
from aforesaid.text.sentences import is_question, length_in_words, split_sentences, without_opener
from aforesaid.text.times.find import When, direction_of, find_times, read_requested_time
from aforesaid.text.times.hours import recurs
from aforesaid.text.words import fold, fold_for_patterns, word_set, words_of

# Verbs that people begin such statements with, in the form of the first person present.
_PRESENT: Final = word_set("""
    live work study love like enjoy hate dislike prefer need want have own drive play speak take collect teach run plan
    hope adore sing cook bake write paint volunteer travel go eat drink wear use keep know practice train swim ride hike
    attend belong believe miss support follow watch commute intend
""")
_UNCHANGED: Final = word_set("was will can can't cannot must should couldn't could won't had did didn't")
_FORMS: Final = {
    "am": "is",
    "'m": "is",
    "have": "has",
    "'ve": "has",
    "'ll": "will",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
}
_IRREGULAR_PAST: Final = word_set("""
    got went came took bought sold made had met lost won broke left found began ran swam wrote taught thought told saw
    gave became built caught chose drank drove ate fell felt flew forgot grew heard held kept led lent knew paid rode
    rose said sang sat sent shot slept spent spoke stole stood swore threw woke wore
""")
_ADVERBS: Final = word_set("""
    really actually just also still currently now always absolutely totally recently finally usually often never
    sometimes already even honestly definitely strongly originally officially only
""")
_NOT_PAST: Final = word_set("need feed breed")
_START: Final = re.compile(r"I(?P<short>['’](?:m|ve|ll))?(?= |$)")
_WORD: Final = re.compile(r" (?P<word>[\w'’]+)")
_OTHERS: Final = re.compile(
    r"\b(?:I|I['’]\w+|me|we|us|our|ours|you|your|yours|u|ur|here|this|that['’]s|let['’]s)\b", re.IGNORECASE
)
_POSSESSIVES: Final = {"my": "their", "mine": "theirs", "myself": "themselves"}
_POSSESSIVE: Final = re.compile(r"\b(?:my|mine|myself)\b", re.IGNORECASE)


def third_person(sentence: str, name: str) -> str | None:
    """Return an English sentence of the first person in the third. None where that could change what it says."""
    if not name:
        return None
    if re.match(r"(?i:my) ", sentence):
        rest = sentence[3:]
        return None if _OTHERS.search(rest) else f"{name}'s {_possessives(rest)}"
    match = _START.match(sentence)
    if match is None:
        return None
    verb = _verb(match["short"] or "", sentence[match.end() :])
    if verb is None or _OTHERS.search(verb):
        return None
    return f"{name} {_possessives(verb)}"


def _verb(short: str, rest: str) -> str | None:
    """Return the rest of a sentence, from the verb on, with the verb in the third person."""
    if short:
        return _FORMS["'" + short[1:]] + rest
    end = 0
    while (match := _WORD.match(rest, end)) is not None and match["word"].lower() in _ADVERBS:
        end = match.end()
    if match is None:
        return None
    before, verb, after = rest[:end].strip(), match["word"].replace("’", "'"), rest[match.end() :]
    changed = _conjugated(verb)
    return None if changed is None else f"{before} {changed}{after}".strip()


def _conjugated(verb: str) -> str | None:
    if verb in _FORMS:
        return _FORMS[verb]
    if verb in _UNCHANGED or verb in _IRREGULAR_PAST or (verb.endswith("ed") and verb not in _NOT_PAST):
        return verb
    if verb not in _PRESENT:
        return None
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def _possessives(text: str) -> str:
    return _POSSESSIVE.sub(lambda match: _POSSESSIVES[match[0].lower()], text)


_LONGEST: Final = 400
_LONGER: Final = frozenset({"task", "other"})
_LEAST_WORDS: Final = 4
"""Of a task or an event, in fewer words there is nothing to remember."""
_REQUESTED: Final = 9
"""Importance of a standing request."""
_NAMED: Final = 9
"""Importance of a name."""
_DAY: Final = timedelta(days=1)
_MONTH: Final = timedelta(days=28)
_YEAR: Final = timedelta(days=365)

_QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|「[^」]*」|『[^』]*』|^\s*>.*")
_JOKING: Final = re.compile(
    r"\b(?:just kidding|jk|kidding|joking|/s|not really|scherz|es broma|je plaisante|шучу|шутка)\b|开玩笑|冗談"
)
_UNSURE: Final = {
    "english": r"\b(?:if|wish|imagine|suppose|pretend|would|could|might|maybe|perhaps|probably|unless|as though)\b",
    "german": r"\b(?:wenn|falls|wurde|konnte|vielleicht|hatte gern|wunschte|angenommen|ob)\b",
    "spanish": r"\b(?:si|quisiera|gustaria|ojala|quizas|tal vez|podria|imagina)\b(?<!\bsi,)",
    "french": r"\b(?:si|s'il|aimerais|voudrais|peut-etre|pourrais|imagine)\b",
    "italian": r"\b(?:se|vorrei|magari|forse|potrei|immagina)\b",
    "portuguese": r"\b(?:se eu|gostaria|talvez|poderia|imagina|tomara)\b",
    "dutch": r"\b(?:als|zou|misschien|stel)\b",
    "russian": r"\b(?:если|бы|может быть|возможно|наверное|представь)\b",
    "arabic": r"\b(?:لو|اذا|ربما|اتمنى)\b",
    "chinese": r"如果|要是|假如|也许|可能|或许|希望能",
    "japanese": r"もし|たら|かもしれ|だろう|たい(?:です|な|$)",
}
_REPORTED: Final = re.compile(
    r"\b(?:said|says|saying|told|tells|asked|asks|claims|claimed|wrote|quoted|thinks|believes|sings?|dreamed|dreamt)\b"
)
_AND: Final = re.compile(
    r"(?:,|;| -| –| —)? (?:and|but|so|because|since|though) (?=(?:I|my|we)\b)|; | (?:–|—|-) (?=I\b)"
)
_SHARED: Final = re.compile(
    r",? and (?=(?:live (?:in|at|with)|work (?:at|for|as|in)|study [a-z]|have (?:an?|one|two|three)|own an?|"
    r"speak [A-Z]|am (?:an?|from|\d)|prefer|(?:love|like|enjoy|hate) \w+ing) ?\b)"
)
_JOINED: Final = {
    # A comma counts where the last "and" of an enumeration follows.
    **{
        language: re.compile(rf",?\s+{word}\s+|,\s+(?=.*\s{word}\s)")
        for language, word in (
            ("german", "und"),
            ("spanish", "[ye]"),
            ("french", "et"),
            ("italian", "ed?"),
            ("portuguese", "e"),
            ("dutch", "en"),
            ("russian", "и"),
        )
    },
    "chinese": re.compile(r"\s*[，,]\s*"),
}
"""Between two statements of one sentence. English has clearer rules of its own."""
_SUBJECTS: Final = {"german": "Ich ", "french": "Je ", "dutch": "Ik ", "russian": "Я ", "chinese": "我"}
"""What the second statement leaves out, where the form of the verb does not tell it."""
_SPEAKS_OF_SELF: Final = re.compile(r"(?:ich|je|ik|я|меня)\b|j['’]|我(?=叫|姓|是|住|搬|在|的名字)", re.IGNORECASE)
"""Begins a statement with the speaker as its subject. "我妹妹" and "ma sœur" are somebody else."""
_ELIDED: Final = re.compile(r"^Je (?=[aeiouhéèê])", re.IGNORECASE)
_DANGLING: Final = re.compile(
    r"\b(?:on|of|to|for|with|at|in|by|from|about|the|an?|my|is|are|as|like|please|that|and|or|but|so)$", re.IGNORECASE
)
"""A clause that ends so was cut at the wrong place."""
_SMALL_I: Final = re.compile(r"(?<![\w'])i(?=[ ']|$)")
_SHORTENED: Final = (
    # "Im Bett" is German.
    (re.compile(r"(?<![\w'])[Ii]m(?= (?![A-ZÄÖÜ]\w*\W*$))"), "I'm"),
    (re.compile(r"(?<![\w'])[Ii]ve(?= )"), "I've"),
    (re.compile(r"(?<![\w'])(d|D)ont(?= )"), r"\1on't"),
)


class ExtractedMemory(NamedTuple):
    """An extracted memory and its source turn."""

    turn: int
    """The position of the source turn."""
    speaker: str
    category: Category
    text: str
    """In the third person where that is safe, otherwise the speaker's own words in quotes."""
    importance: int
    key: str | None
    """Its subject. Of two memories with the same key, the later one is valid."""
    when: When | None
    """When it happens or happened, if that was said."""
    quote: str
    """The original sentence."""
    request: bool = False
    """Whether it is a standing request to the assistant."""


def extract(turns: Sequence[Spoken], only: Collection[Category] | None = None) -> list[ExtractedMemory]:
    """Return what is worth remembering of what people said, in order; with `only`, of these categories.

    Looked at are statements of the first person, appointments, tasks, and what is said about relatives and named
    people. Standing requests to the assistant are always found. Left out are questions, conditions, wishes, denials,
    quotations, jokes, and all that the assistant said.
    """
    found: dict[tuple[str, str], ExtractedMemory] = {}
    for number, turn in enumerate(turns):
        if turn.role != "user" or is_joke(turn.text):
            continue
        for sentence in split_sentences(turn.text):
            for memory in _of_sentence(sentence, turn, number, only):
                found.setdefault((memory.speaker, memory.text), memory)
    return list(found.values())


def is_joke(text: str) -> bool:
    return _JOKING.search(fold(text)) is not None


def _of_sentence(
    sentence: str, turn: Spoken, number: int, only: Collection[Category] | None
) -> Iterator[ExtractedMemory]:
    if len(sentence) >= _LONGEST:
        return
    if standing_request(sentence, turn.text):
        yield _request(sentence, turn, number)
        return
    if (named := _introduced(sentence, turn, number, only)) is not None:
        yield named
        return
    language = guess_language(sentence)
    rules = [rule for rule in RULES.get(language, ()) if only is None or rule.category in only]
    if not rules:
        return
    core = without_opener(sentence, vocabulary(language), words_of(turn.speaker))
    if language != "english":
        found = [
            _introduced(clause, turn, number, only) or _of_clause(clause, language, rules, turn, number)
            for clause in _joined(core, language)
        ]
        apart = [memory for memory in found if memory is not None]
        keys = {memory.key for memory in apart} - {None}
        if 1 < len(found) == len(keys):
            # Each of them can become outdated without the others: "Ich heiße Jonas und wohne in Köln".
            yield from apart
            return
    for clause in _clauses(core) if language == "english" else [core]:
        memory = _introduced(clause, turn, number, only) or _of_clause(clause, language, rules, turn, number)
        if memory is not None:
            yield memory


def _introduced(clause: str, turn: Spoken, number: int, only: Collection[Category] | None) -> ExtractedMemory | None:
    """Return the name by which somebody introduces themselves: "Hi, I am Max"."""
    introduced = introduction(clause) if only is None or "fact" in only else None
    if introduced is None:
        return None
    text = introduced.told_of(turn.speaker) if turn.speaker else f'"{clause}"'
    return ExtractedMemory(number, turn.speaker, "fact", text, _NAMED, "name", None, clause)


def _request(sentence: str, turn: Spoken, number: int) -> ExtractedMemory:
    claim, topic = claim_of(sentence), topic_of(sentence)
    named = claim is not None and claim.key == "name"
    key = "name" if named else f"request {topic}" if topic else None
    text = f'{turn.speaker} asks: "{sentence}"' if turn.speaker else f'"{sentence}"'
    category: Category = "fact" if named else "preference"
    return ExtractedMemory(number, turn.speaker, category, text, _REQUESTED, key, None, sentence, request=True)


def _clauses(sentence: str) -> list[str]:
    """Take a sentence apart where it begins anew with its subject, said or meant."""
    plain = sentence.replace("’", "'")
    plain = _SMALL_I.sub("I", plain)
    for pattern, written in _SHORTENED:
        plain = pattern.sub(written, plain)
    found = []
    for clause in _AND.split(plain):
        if clause.startswith(("I ", "I'")):
            first, *others = _SHARED.split(clause)
            found += [first, *(f"I {other}" for other in others)]
        else:
            found.append(clause)
    clauses = [clause.strip(" ,;") for clause in found if clause.strip(" ,;")]
    return [plain] if any(_DANGLING.search(clause) for clause in clauses) else clauses


def _joined(sentence: str, language: str) -> list[str]:
    """Take a sentence of another language apart at each "and" and comma, with the speaker as the subject of each part.

    Parts that do not all state something are none: "I like tea and coffee" has one statement.
    """
    pattern = _JOINED.get(language)
    if pattern is None or _QUOTED.search(sentence) is not None:
        return [sentence]
    first, *others = pattern.split(sentence)
    subject = _SUBJECTS.get(language, "") if _SPEAKS_OF_SELF.match(first) else ""
    return [first, *(_with_subject(other, subject, language) for other in others if other)]


def _with_subject(clause: str, subject: str, language: str) -> str:
    words = words_of(clause)
    own = bool(words) and words[0] in vocabulary(language).first_person
    whole = clause if own else _ELIDED.sub("J'", f"{subject}{clause}")
    return whole[:1].upper() + whole[1:]


def _of_clause(clause: str, language: str, rules: Sequence[Rule], turn: Spoken, number: int) -> ExtractedMemory | None:
    text = _QUOTED.sub(" ", clause)
    looked = fold_for_patterns(text, language)
    question = is_question(clause)
    unsure = re.search(_UNSURE.get(language, r"(?!)"), looked, re.IGNORECASE) is not None
    short = length_in_words(clause) < _LEAST_WORDS
    for rule in rules:
        match = rule.pattern.search(looked)
        if match is None or ((question or unsure) and not rule.questions):
            continue
        if _REPORTED.search(looked[: match.start()]) or (rule.category in _LONGER and short):
            continue
        when = _when(rule, clause, turn, language)
        if rule.timed and when is None and not _names_a_time(rule, turn, looked, language):
            continue
        return _found(rule, clause, language, when, turn, number)
    return None


def _when(rule: Rule, clause: str, turn: Spoken, language: str) -> When | None:
    """Return the first time that a clause names, if it lies where the rule expects it."""
    if turn.at is None:
        return None
    if rule.category == "reminder":
        requested = read_requested_time(clause, turn.at)
        return None if requested is None else requested.when
    for when in find_times(clause, turn.at, rule.towards, language, by_words=True):
        if rule.timed == "future" and when.end <= turn.at:
            continue
        if rule.timed == "past" and when.start > turn.at:
            continue
        return when
    return None


def _names_a_time(rule: Rule, turn: Spoken, looked: str, language: str) -> bool:
    """Return whether a time is named in a turn of which nobody knows when it was said."""
    if turn.at is not None or rule.timed != "future" or direction_of(looked) == "past":
        return False
    return not vocabulary(language).times.isdisjoint(words_of(looked))


def _found(rule: Rule, clause: str, language: str, when: When | None, turn: Spoken, number: int) -> ExtractedMemory:
    claim = claim_of(clause) if rule.category in {"fact", "preference"} else None
    key = claim.key if claim else None
    if rule.category == "preference" or (key is not None and key.endswith("birthday")):
        when = None  # it holds always, or comes back every year
    category = rule.category
    if category == "schedule" and recurs(clause):
        # One date for what comes back would be wrong, and an appointment without a date expires.
        category, when = "fact", None
    turned = third_person(clause, turn.speaker) if language == "english" else None
    text = turned or (f'{turn.speaker}: "{clause}"' if turn.speaker else f'"{clause}"')
    if turned and turned[-1].isalnum():
        text += "."
    if when is not None and str(when.start.year) not in clause:
        text = f"{text.rstrip('.')} ({written_time(when)})."
    importance = min(rule.importance + (when is not None and when.timed), MOST_IMPORTANCE)
    return ExtractedMemory(number, turn.speaker, category, text, importance, key, when, clause)


def written_time(when: When) -> str:
    """Return a time in figures, as exact as it was named."""
    if when.timed:
        return when.start.strftime("%Y-%m-%d %H:%M")
    length = when.end - when.start
    if length >= _YEAR:
        return when.start.strftime("%Y")
    if length >= _MONTH:
        return when.start.strftime("%Y-%m")
    day = when.start.date().isoformat()
    return day if length <= _DAY else f"{day} to {(when.end - _DAY).date().isoformat()}"
