"""The subject of a statement as a key, and standing requests."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import re
from aforesaid.text.languages import ENGLISH, LATIN_LANGUAGES, guess_language, stems, stop_words, vocabulary
from aforesaid.text.relations import mentioned_people, relation_called
from aforesaid.text.sentences import is_question, is_role_play, reports_somebody, split_sentences, without_quotes
from aforesaid.text.times.time_words import plain_calendar_words
from aforesaid.text.words import alternatives, fold, fold_for_patterns, word_set, words_of

_MOST_CLAIMS: Final = 10_000
"""Sentences whose claims stay cached: those of a text of facts are compared with every new one."""
_GREETING: Final = (
    r"(?:(?i:hi|hello|hey|good (?:morning|evening|day)|hallo|moin|servus|guten (?:morgen|tag|abend)|hola|buenas|"
    r"buenos d[ií]as|salut|bonjour|bonsoir|ciao|salve|buongiorno|ol[aá]|oi|hoi|dag)(?: there)?\s*[,.!–-]*\s+)?"
)
_I_AM: Final = {
    "english": r"[Ii] (?P<english>am)|[Ii]['’](?P<english_short>m)",
    "german": r"[Ii]ch (?P<german>bin)",
    "spanish": r"(?:[Yy]o )?(?P<spanish>[Ss]oy)",
    "french": r"[Jj]e (?P<french>suis)|[Mm]oi,? (?P<french_short>c['’]est)",
    "italian": r"(?:[Ii]o )?(?P<italian>[Ss]ono)",
    "portuguese": r"(?:[Ee]u )?(?P<portuguese>[Ss]ou)(?: [oa])?",
    "dutch": r"[Ii]k (?P<dutch>ben)",
}
_NAME: Final = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_INTRODUCTION: Final = re.compile(
    rf"\s*{_GREETING}(?:{'|'.join(_I_AM.values())}) (?P<name>{_NAME}(?: {_NAME})?)\s*[.!]*\s*"
)
_CALLED: Final = {
    "english": "{speaker}'s name is {name}.",
    "german": "{speaker} heißt {name}.",
    "spanish": "{speaker} se llama {name}.",
    "french": "{speaker} s'appelle {name}.",
    "italian": "{speaker} si chiama {name}.",
    "portuguese": "{speaker} se chama {name}.",
    "dutch": "{speaker} heet {name}.",
}
_ASKS_NAME: Final = re.compile(
    r"\b(?:what(?: is|'s|s) my name|who am i|wie heisse ich|wie ist mein name|wer bin ich|como me llamo|"
    r"cual es mi nombre|quien soy|comment je m'appelle|comment m'appelle|quel est mon (?:pre)?nom|qui suis|"
    r"come mi chiamo|qual e il mio nome|chi sono io|como (?:eu )?me chamo|qual e o meu nome|quem sou|hoe heet ik|"
    r"wat is mijn naam|wie ben ik|как меня зовут|кто я)\b"
)
_LIKE_NO_NAME: Final = re.compile(
    r"\w{3,}(?:(?<![fm])(?<!alfr)(?<!jar)(?<!moham)ed|ing|ese|ish|less|ful|ous|ology|ist)"
)
"""Forms of English words for states and origins. Ahmed, Alfred and Jared are names."""


class Introduction(NamedTuple):
    """The name by which somebody introduces themselves."""

    name: str
    language: str
    start: int
    """Where the verb begins."""

    def told_of(self, speaker: str) -> str:
        """Return it in the third person."""
        return _CALLED[self.language].format(speaker=speaker, name=self.name)


def introduction(sentence: str) -> Introduction | None:
    """Return the name by which a sentence introduces its speaker. None if it says anything else, or may do so."""
    found = _INTRODUCTION.fullmatch(sentence)
    if found is None:
        return None
    verb = next(group for group, text in found.groupdict().items() if text and group != "name")
    language = verb.partition("_")[0]
    parts = found["name"].split()
    if not all(_may_be_name(part, language) for part in parts):
        return None
    if language == "german" and fold(parts[0]) not in _lists()["german"]:
        return None
    return Introduction(found["name"], language, found.start(verb))


def asks_own_name(question: str) -> bool:
    return _ASKS_NAME.search(fold(question).replace("’", "'")) is not None


def _may_be_name(word: str, language: str) -> bool:
    """Return whether a word has the capital of a name, and is no known word."""
    folded = fold(word)
    lists = vocabulary(language)
    common = stop_words(language) | lists.small_talk | lists.dull | lists.times | _lists()["no_names"]
    if not word[0].isupper() or word.isupper() or folded in common or folded in plain_calendar_words():
        return False
    return relation_called(folded) is None and _LIKE_NO_NAME.fullmatch(folded) is None


@cache
def _lists() -> dict[str, frozenset[str]]:
    path = files("aforesaid.models.offline.memories") / "introductions.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        "no_names": word_set(" ".join(table["no_names"].values())),
        "german": word_set(table["names"]["german"]),
    }


class Claim(NamedTuple):
    """What a statement claims: the key, and where the verb begins that says it."""

    key: str
    start: int
    liked: bool | None = None
    """For tastes: liked or not."""


class _Rule(NamedTuple):
    key: str
    """With a star, the first words that follow become part of it."""
    pattern: re.Pattern[str]
    liked: bool | None = None


_ADVERBS: Final = r"(?:(?:really|absolutely|also|still|now|currently|just|always|totally|strongly|definitely) )*"
JOBS: Final = alternatives("""
    engineer developer programmer designer teacher nurse doctor lawyer student chef cook driver writer artist musician
    manager accountant architect scientist researcher professor dentist electrician plumber mechanic carpenter farmer
    journalist photographer pilot officer firefighter soldier therapist psychologist pharmacist consultant analyst
    waiter waitress barista cashier salesman saleswoman translator librarian veterinarian vet surgeon paramedic
    freelancer entrepreneur founder retiree tutor coach trainer singer actor actress editor administrator secretary
""")
RELATIONS: Final = alternatives("""
    wife husband spouse partner girlfriend boyfriend fiance fiancee mother mom mum father dad parents sister brother
    son daughter child children kids baby grandmother grandma grandfather grandpa aunt uncle cousin niece nephew friend
    roommate flatmate neighbour neighbor boss colleague coworker teacher ex dog cat pet
""")
_ANIMALS: Final = alternatives("dog cat puppy kitten hamster rabbit parrot bird horse fish turtle snake")
_STARRED: Final = {"taste": 2, "allergy": 2}
"""How many content words become part of a key; otherwise one."""
_PUNCTUATION: Final = ".,;:!?\"'()…"
_CHOICES: Final = (
    re.compile(r"\bprefers? (?P<one>.+?) (?:over|than|rather than|instead of) (?P<other>.+)"),
    re.compile(r"\bprefers? (?P<one>\w+(?: \w+)?) to (?P<other>\w+(?: \w+)?)\W*$"),
)


def _rules(*rules: tuple[str, str]) -> tuple[_Rule, ...]:
    return tuple(_Rule(key, re.compile(pattern)) for key, pattern in rules)


# Patterns of folded text. Present and finished moves only: "lived in" does not say where somebody lives.
_ENGLISH: Final = (
    *_rules(
        ("name", r"\b(?:name is|is called|am called|called me|call me|goes by)\b"),
        ("birthday", r"\bbirthday(?: is|:| falls)|\bborn on\b"),
        ("age", r"\b(?:am|m|is|s|turned|turning) \d{1,3}(?: years? old\b|\s*$|\.)"),
        ("home", rf"\b{_ADVERBS}(?:lives?|living|moved|moving|relocated|based|resides?) (?:in|to|at|near|back to)\b"),
        ("home", r"(?<!mail )(?<!\bip )(?<!\bweb )\baddress is\b"),
        ("origin", r"\b(?:am|m|is|s|comes?) (?:originally )?from\b|\bborn in\b|\bgrew up in\b"),
        ("work at", r"\b(?:works?|working|employed|job|started|interns?) (?:at|for|with)\b"),
        (
            "work as",
            rf"\b(?:works?|working|promoted|job) (?:as|to)\b|\b(?:am|m|is|s|became) an? (?:\w+ ){{0,3}}{JOBS}\b",
        ),
        ("study", r"\b(?:stud(?:y|ies|ying)|majoring) (?!for\b|hard\b)"),
        ("marital", r"\b(?:am|m|is|s|got|are) (?:\w+ )?(?:married|engaged|divorced|single|separated|widowed)\b"),
        ("diet", r"\b(?:am|m|is|s|became) (?:an? )?(?:\w+ )?(?:vegetarian|vegan|pescatarian|kosher|halal)\b"),
        ("allergy *", r"\ballergic to\b"),
        ("pet *", rf"\b(?:have|has|ve got|got|adopted|own|owns) (?:an? |\w+ )(?:\w+ )?(?={_ANIMALS}s?\b)"),
        ("contact *", r"\bmy (?=(?:e-?mail|phone|number|address))|\b(?=(?:e-?mail|phone number|address) is)"),
        ("favourite *", r"\bfavou?rite\b"),
    ),
)
_LIKED: Final = r"(?:likes?|loves?|enjoys?|adores?|prefers?|fond of|fan of|into|obsessed with)"
_NOT_LIKED: Final = (
    r"(?:hates?|dislikes?|can t stand|cannot stand|(?:don t|doesn t|do not|does not) (?:like|enjoy|eat|drink|love))"
)
_TASTES: Final = ((False, _NOT_LIKED), (True, _LIKED))
_OTHERS: Final = {
    "german": _rules(
        ("name", r"\b(?:heisse|heisst|name ist)\b"),
        ("birthday", r"\bgeburtstag (?:ist|habe)|\bgeburtstag am\b"),
        ("home", r"\b(?:wohne|wohnt|lebe|lebt|umgezogen|gezogen)\b"),
        ("work at", r"\b(?:arbeite|arbeitet) (?:bei|fur|in)\b"),
        ("work as", r"\b(?:arbeite|arbeitet) als\b|\bvon beruf\b"),
        ("allergy *", r"\ballergisch gegen\b"),
        ("favourite *", r"\blieblings(?=\w+)"),
        ("taste *", r"\b(?:mag|liebe|liebt|hasse|hasst|bevorzuge|bevorzugt)\b"),
    ),
    "spanish": _rules(
        ("name", r"\b(?:me llamo|se llama|nombre es)\b"),
        ("birthday", r"\bcumpleanos es\b"),
        ("home", r"\b(?:vivo|vive|me mude|se mudo) (?:en|a)\b"),
        ("work at", r"\btrabaj(?:o|a) (?:en|para)\b"),
        ("work as", r"\btrabaj(?:o|a) (?:como|de)\b"),
        ("allergy *", r"\balergic[oa] (?:a|al)\b"),
        ("favourite *", r"\bfavorit[oa]\b"),
        ("taste *", r"\b(?:gusta[n]?|encanta[n]?|odio|odia|prefiero|prefiere)\b"),
    ),
    "french": _rules(
        ("name", r"\b(?:m appelle|s appelle|nom est|prenom est)\b"),
        ("birthday", r"\banniversaire est\b"),
        ("home", r"\b(?:habite|vis|vit|demenage)\b"),
        ("work at", r"\btravaille (?:chez|a|pour)\b"),
        ("work as", r"\btravaille comme\b"),
        ("allergy *", r"\ballergique (?:a|aux|au)\b"),
        ("favourite *", r"\bprefere[es]? est\b"),
        ("taste *", r"\b(?:aime|adore|deteste|prefere)\b"),
    ),
    "italian": _rules(
        ("name", r"\b(?:mi chiamo|si chiama|nome e)\b"),
        ("birthday", r"\bcompleanno e\b"),
        ("home", r"\b(?:vivo|vive|abito|abita|trasferit[oa]) (?:a|in)\b"),
        ("work at", r"\blavor[oa] (?:a|per|in|presso)\b"),
        ("work as", r"\blavor[oa] come\b"),
        ("allergy *", r"\ballergic[oa] (?:a|al|ai|alle)\b"),
        ("taste *", r"\b(?:piace|piacciono|amo|ama|odio|odia|preferisco|preferisce)\b"),
    ),
    "portuguese": _rules(
        ("name", r"\b(?:me chamo|se chama|nome e)\b"),
        ("birthday", r"\baniversario e\b"),
        ("home", r"\b(?:moro|mora|vivo|vive|mudei|mudou) (?:em|no|na|para)\b"),
        ("work at", r"\btrabalh[oa] (?:em|no|na|para)\b"),
        ("work as", r"\btrabalh[oa] como\b"),
        ("allergy *", r"\balergic[oa] (?:a|ao)\b"),
        ("favourite *", r"\b(?:favorit[oa]|preferid[oa])\b"),
        ("taste *", r"\b(?:gosto|gosta|adoro|adora|odeio|odeia|prefiro|prefere)\b"),
    ),
    "dutch": _rules(
        ("name", r"\b(?:ik heet|heet|naam is)\b"),
        ("home", r"\b(?:woon|woont|verhuisd)\b"),
        ("work at", r"\bwerk[t]? (?:bij|voor)\b"),
        ("work as", r"\bwerk[t]? als\b"),
        ("taste *", r"\b(?:hou|houdt) van\b|\bhaat\b"),
    ),
    "arabic": _rules(
        ("name", r"\bاسمي\b|\bاسمه\b|\bاسمها\b"),
        ("home", r"\b(?:اعيش|يعيش|تعيش|اسكن|انتقلت) (?:في|الى)\b"),
        ("work at", r"\b(?:اعمل|يعمل|تعمل) في\b"),
        ("taste *", r"\b(?:احب|يحب|تحب|اكره|افضل)\b"),
    ),
    "russian": _rules(
        ("name", r"\b(?:меня зовут|его зовут|ее зовут|имя)\b"),
        ("birthday", r"\bдень рождения\b"),
        ("home", r"\b(?:живу|живет|переехал[а]?) (?:в|на)\b"),
        ("work at", r"\b(?:работаю|работает) (?:в|на)\b"),
        ("work as", r"\b(?:работаю|работает) (?!в |на )"),
        ("allergy *", r"\bаллергия на\b"),
        ("favourite *", r"\bлюбим(?:ый|ая|ое)\b"),
        ("taste *", r"\b(?:люблю|любит|нравится|нравятся|ненавижу|ненавидит|предпочита(?:ю|ет))\b"),
    ),
}
# Matched as they stand: folding would take the marks off the kana.
_PIECES: Final = (
    ("name", re.compile("我叫|我的名字是|名前は|と申します")),
    ("birthday", re.compile("生日是|誕生日は")),
    ("home", re.compile("我住在|住在|搬到了?|に住んで|に引っ越")),
    ("work at", re.compile("在(?=.{1,12}工作)|で働いて|に勤めて")),
    ("allergy *", re.compile("(?<=对).{1,8}(?=过敏)|アレルギー")),
)
_RELATION: Final = re.compile(rf"\b(?:my|his|her|their|'?s) (?:\w+ )?(?P<relation>{RELATIONS})\b")
_UNSPACED_MY: Final = frozenset({"我", "我的", "私の", "僕の", "俺の", "うちの"})
_NOT_SO: Final = re.compile(r"\b(?:used to|wants? to|would|might|hopes? to|plans? to|thinking of|never)(?: \w+)? $")
"""What stands before a verb that does not hold."""
_IDENTITY: Final = re.compile(r"^(?:the )?\w+ is (?P<name>[^\W\d_a-z]\w+)$")


def claim_of(text: str, names: Collection[str] = ()) -> Claim | None:
    """Return what a sentence claims, in the first or in the third person. None where no rule knows it.

    `names` of the person do not decide in which language it is.
    """
    return _claim_of(text, tuple(names))


@holds_texts
@lru_cache(_MOST_CLAIMS)
def _claim_of(text: str, names: tuple[str, ...]) -> Claim | None:
    language = guess_language(text, names=names)
    folded = fold_for_patterns(text.lower(), language).replace("'", " ")
    found = _find(text, folded, language)
    if found is None and _IDENTITY.match(text.strip(" .!")):
        found = Claim("name", 0)
    if found is None and (introduced := introduction(text)) is not None:
        return Claim("name", introduced.start)
    if found is None or _NOT_SO.search(folded, 0, found.start) is not None:
        return None
    relation = _english_relation(folded, found) if language == "english" else _relation(text, found)
    return found._replace(key=f"{relation}: {found.key}") if relation else found


def _english_relation(folded: str, claim: Claim) -> str | None:
    relation = _RELATION.search(folded, 0, max(claim.start, 1))
    return None if relation is None else relation["relation"]


def _relation(text: str, claim: Claim) -> str | None:
    """Return the relative whom a statement of another language begins with: "meine Frau wohnt in Köln"."""
    first = next(iter(mentioned_people(text, until=claim.start)), None)
    if first is None or first.start >= claim.start:
        return None
    # "Mit meiner Frau wohne ich in Köln" is about the speaker.
    before = text[: first.start].rpartition('"')[2].strip()
    return first.relation if before in _UNSPACED_MY or not words_of(before) else None


def says_less(new: str, old: str, names: Collection[str] = ()) -> bool:
    """Return whether a home is named that an older statement names too: "lives in Hull" after a whole address."""
    claim = claim_of(new, names)
    named = _named(new) if claim is not None and claim.key.rpartition(": ")[2] == "home" else set()
    return bool(named) and named <= _named(old)


def _named(text: str) -> set[str]:
    """Return the names and numbers in a text. Its first word may be a name or not, and does not count."""
    words = (word.strip(_PUNCTUATION) for word in text.split()[1:])
    return {word.casefold() for word in words if word[:1].isupper() or word[:1].isdecimal()}


def _find(text: str, folded: str, language: str) -> Claim | None:
    if language in {"chinese", "japanese"}:
        matches = ((key, pattern.search(text)) for key, pattern in _PIECES)
        return next((Claim(_starred(key, match[0]), match.start()) for key, match in matches if match), None)
    for rule in _OTHERS.get(language, _ENGLISH):
        match = rule.pattern.search(folded)
        if match is not None:
            return Claim(_starred(rule.key, folded[match.end() :], language), match.start())
    if language == "english":
        choice = next((match for pattern in _CHOICES if (match := pattern.search(folded))), None)
        if choice is not None:
            # Whichever of the two is preferred, the other way round contradicts it.
            both = sorted(_starred("*", choice[side], "english").strip() for side in ("one", "other"))
            return Claim(f"choice {' or '.join(both)}", choice.start(), liked=True)
        for liked, verbs in _TASTES:
            match = re.search(rf"\b{_ADVERBS}{verbs}\b", folded)
            if match is not None:
                key = _starred("taste *", folded[match.end() :], "english")
                return None if key == "taste" else Claim(key, match.start(), liked)
        return None
    return None


def _starred(key: str, rest: str, language: str = "") -> str:
    """Put the first content words of what follows in the place of the star."""
    if not key.endswith("*"):
        return key
    words = words_of(rest.split(" than ", maxsplit=1)[0].split(" over ", maxsplit=1)[0])
    content = [word for word in words if word not in stop_words(language)]
    name = key[:-1].strip()
    return " ".join([name, *stems(content[: _STARRED.get(name, 1)], language)])


_LONGEST: Final = 240
"""Characters of a request. Longer sentences are stories or pasted texts."""
_LONGEST_MESSAGE: Final = 1_000
"""Characters of a message that may hold a request. Longer ones are mostly pasted."""
_FEW_WORDS: Final = 8
"""Words of a message up to which its language is often guessed wrong."""
_LONGEST_QUOTE: Final = 2
"""Words in quotation marks that may belong to a request: call me "Max"."""
_BEYOND_LATIN: Final = re.compile(r"[^\W\d_a-z\u00df-\u024f]")
"""A letter of another script, in a folded text."""
_NOT_GUESSED: Final = ("polish", "turkish")
"""Languages in Latin letters that `guess_language` does not know. Their patterns are tried with each of the others."""
_MOST_CACHED: Final = 2_048
_NAMES: Final = ("OPEN", "VERBS", "GERUNDS", "FROM_NOW", "WANT")


def standing_request(sentence: str, message: str = "") -> bool:
    """Return whether a sentence asks the assistant for something for good, and is not an attack.

    `message` is the whole message, which shows the language of a short sentence.
    """
    whole = message or sentence
    if len(sentence) > _LONGEST or not may_ask_for_good(whole) or is_question(sentence):
        return False
    plain = without_quotes(sentence, _LONGEST_QUOTE)
    if not any(_asks(plain, language) for language in _languages(plain, whole)) or _promises(plain):
        return False
    return may_hold_requests(whole) and not reads_like_an_attack(sentence)


@holds_texts
@lru_cache(_MOST_CACHED)
def may_ask_for_good(message: str) -> bool:
    """Return whether a message has a word of a standing request, or is written in other letters than Latin ones."""
    folded = fold(message)
    return _BEYOND_LATIN.search(folded) is not None or _patterns()["hints"].search(folded) is not None


def _languages(sentence: str, message: str) -> Iterable[str]:
    """Return the languages whose patterns are tried. The patterns of two languages have little in common."""
    guessed = guess_language(sentence)
    if guessed not in LATIN_LANGUAGES:
        return (guessed,)
    if len(message.split()) <= _FEW_WORDS:
        return (*LATIN_LANGUAGES, *_NOT_GUESSED)
    return dict.fromkeys((guessed, guess_language(message), ENGLISH, *_NOT_GUESSED))


def reads_like_an_attack(sentence: str) -> bool:
    """Return whether a sentence asks to ignore rules, to recommend or reveal something, or contains a link."""
    attack = _patterns()["attack"]
    return attack.search(fold(sentence)) is not None or attack.search(sentence) is not None


def may_hold_requests(message: str) -> bool:
    """Return whether a message may hold a request: it reports nobody, sets up no scene, and does not only promise."""
    if not message.strip() or len(message) > _LONGEST_MESSAGE or reports_somebody(message) or is_role_play(message):
        return False
    return not all(map(_promises, split_sentences(message)))


def without_requests(message: str) -> str:
    return "\n".join(sentence for sentence in split_sentences(message) if not standing_request(sentence, message))


def topic_of(request: str) -> str | None:
    """Return what a standing request is about, where it is one of a few topics."""
    folded = fold(request)
    topics = ((name[6:], each) for name, each in _patterns().items() if name.startswith("topic "))
    return next((topic for topic, each in topics if each.search(folded) or each.search(request)), None)


def _promises(sentence: str) -> bool:
    """Return whether the speaker says what they do or will do themself: "Thanks, I'll do that every time"."""
    promise, plain = _patterns()["promise"], sentence.replace("’", "'")
    return promise.search(fold(plain)) is not None or promise.search(plain) is not None


def _asks(sentence: str, language: str) -> bool:
    pattern = _patterns().get(language)
    matched = fold_for_patterns(sentence, language)
    return pattern is not None and pattern.search(matched.lower() if language == "english" else matched) is not None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns of the file: of each language, each topic (`topic units`), of attacks, and the hints."""
    text = (files("aforesaid.models.offline.memories") / "requests.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)
    parts = {name: table[name].replace("\n", "") for name in _NAMES}
    languages = {name: _compiled(patterns, parts) for name, patterns in table["languages"].items()}
    topics = {f"topic {name}": _compiled([pattern], {}) for name, pattern in table["topics"].items()}
    found = {**languages, **topics, "attack": _compiled(table["attack"]["any"], {})}
    return {**found, "hints": _compiled([table["HINTS"]], {}), "promise": _compiled(table["promise"], parts)}


def _compiled(patterns: Iterable[str], parts: dict[str, str]) -> re.Pattern[str]:
    whole = "|".join(f"(?:{pattern})" for pattern in patterns).replace("\n", "")
    for name in reversed(_NAMES):
        whole = whole.replace(name, parts.get(name, name))
    return re.compile(whole)
