"""Recognises what a message asks for, without a model."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.checks import Role
from aforesaid.extras import re
from aforesaid.models.reader import Intent, Intents
from aforesaid.text.languages import guess_language, stop_words, vocabulary
from aforesaid.text.sentences import is_question, split_sentences
from aforesaid.text.times.find import read_requested_time
from aforesaid.text.words import alternatives, fold, fold_aligned, word_set, words_of

_STATES: Final = (
    r"[\w.-]+(?:'s)? (?:is|are|was|has|have|likes?|loves?|hates?|lives?|works?|prefers?|can|does|wants|plays|speaks)\b"
)


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


POLITE: Final = re.compile(
    r"(?:(?:please|pls|kindly|(?:can|could|would|will) you(?: please)?|bitte|kannst du(?: bitte)?|por favor|puedes|"
    r"s'il te plait|s'il vous plait|peux-tu|tu peux|per favore|puoi|voce pode|pode|alsjeblieft|kun je|пожалуиста|"
    r"من فضلك|请|お願い)[\s,、，]*)+"
)
REMEMBER: Final = _compiled(
    r"(?:remember|memori[sz]e|note|make a note|keep in mind|bear in mind|don'?t forget|do not forget)"
    rf"(?=[:,]| (?:that|this about|about|my|i|i'm|i've|i'll|we|he|she|they|@|<@)\b| (?:@|<@)| {_STATES})",
    r"(?:merke? dir|denk daran|vergiss nicht|behalte)(?=[:,]| (?:dass|mein|ich))",
    r"(?:recuerda|acuerdate|no olvides|apunta|anota)(?=[:,]| (?:que|de que|mi|esto|lo)\b)",
    r"(?:souviens-toi|rappelle-toi|retiens|n'oublie pas|note)(?=[:,]| (?:que|qu'|de|bien|ceci|mon|ma)\b)",
    r"(?:ricorda|ricordati|non dimenticare|annota|tieni a mente)(?=[:,]| (?:che|di|il|la|questo)\b)",
    r"(?:lembra|lembre|lembre-se|lembra-te|nao esqueca|nao te esquecas|anota|anote)"
    r"(?=[:,]| (?:que|de que|disso|isto|isso|meu|minha)\b)",
    r"(?:onthoud|vergeet niet)(?=[:,]| (?:dat|mijn|dit|ik)\b)",
    r"(?:запомни|запомните|не забудь|не забываи|имеи в виду)(?=[:,]| )",
    r"(?:تذكر|لا تنس)(?= )",
    r"(?:记住|记得|别忘了|不要忘记|记一下)",
)
FORGET: Final = _compiled(
    rf"(?:forget|unremember|delete|erase|remove)(?= (?:that|about|my|everything|all|what)\b| (?:@|<@)| {_STATES})",
    r"vergiss,? (?=dass|alles|mein|was)",
    r"olvida(?:te)?(?: de)? (?=que|todo|mi|lo)",
    r"oublie (?=que|qu'|tout|ce|mon|ma)",
    r"dimentica(?:ti)? (?=che|tutto|il|la|quello)",
    r"(?:esquece|esqueca)(?:-te)? (?=que|de que|tudo|meu|minha|o que)",
    r"vergeet (?=dat|alles|mijn|wat)",
    r"забудь(?:те)?,? (?=что|все|о|про|мо)",
    r"انس[ىي]? (?=ان|كل|ما|عن)",
    r"भूल (?:जाओ|जाइए|जाना|जा) (?=कि|मेर|मैं|मुझ)",
    r"(?:忘记|忘掉|忘了)(?=.)",
)
REMIND: Final = re.compile(
    r"(?<!\w)(?:remind me(?! (?:what|who|where|when|how|why|which|of what)\b)|set (?:me )?a reminder(?: for me)?|"
    r"don'?t let me forget|erinnere? mich|recuerdame|acuerdame|rappelle[- ]moi|rappelez[- ]moi|ricordami|me lembr[ea]|"
    r"lembr[ea]-me|herinner (?:me|mij)|напомни(?:те)?(?: мне)?)(?!\w)|"
    r"提醒我|リマインドして|思い出させて|ذكرني"
)
"""A request to be reminded, at the beginning or after the time."""
REMINDED_OF: Final = re.compile(
    r"(?:[\s,:，：]|(?:to|that|about|of|for|er(?= aan\b)|daran|ans?|dass|zu|"
    r"que|de|a|di|che|om|te|aan|dat|ze|zeby|aby|o|что|о|об|про|чтобы|please|bitte)\b|d')+|[要去]"
)
"""The words between the request and the subject of the reminder."""
AGAIN_AND_AGAIN: Final = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|jeden|jede|taglich|cada|todos los|chaque|tous les|ogni|todo dia|todos os|"
    r"elke|iedere|кажд\w+)\b|每[天周月年]|毎[日週月年]"
)
SUFFIXED: Final[tuple[tuple[Literal["remember", "forget"], re.Pattern[str]], ...]] = (
    ("remember", re.compile(r"(?P<content>.+?)(?:という)?(?:こと)?(?:を|って|と)覚えて(?:おいて)?(?:ください|ね)?")),
    ("forget", re.compile(r"(?P<content>.+?)(?:という)?(?:こと)?(?:を|は)?忘れて(?:ください|ね)?")),
    ("remember", re.compile(r"(?P<content>.+?)(?:는 것을|을|를|고)? 기억해(?: ?줘| ?주세요)?")),
    ("forget", re.compile(r"(?P<content>.+?)(?:는 것을|을|를|고)? 잊어(?: ?줘| ?주세요)?")),
)
"""Requests in languages in which the verb comes last, matched without folding."""
RECALL: Final = _compiled(
    r"(?:so )?what (?:do|did|can) you (?:know|remember|recall|have)(?: (?:stored|saved))? (?:about|of|on) (?P<who>.+)",
    r"(?:tell me )?what you (?:know|remember) about (?P<who>.+)",
    r"what do you (?:know|remember)|who am i",
    r"(?:tell me|show me)(?: everything| all| what)?(?: you (?:know|remember))? about (?P<who>me|<@!?\d+>|@\S+)",
    r"was wei[s]{1,2}t du (?:uber|von) (?P<who>.+)",
    r"que sabes (?:de|sobre) (?P<who>.+)",
    r"(?:que sais-tu|qu'est-ce que tu sais|tu sais quoi) (?:de|sur|a propos de) (?P<who>.+)",
    r"(?:che )?cosa sai (?:di|su) (?P<who>.+)",
    r"o que (?:voce |tu )?sabes? (?:de|sobre) (?P<who>.+)",
    r"wat weet je (?:over|van) (?P<who>.+)",
    r"что ты (?:знаешь|помнишь) (?:обо|об|о|про) (?P<who>.+)",
    r"co (?:o (?P<who>.+?) wiesz|wiesz o (?P<who2>.+))",
    r"(?P<who>.+?) hakkında ne(?:ler)? biliyorsun(?:uz)?",
    r"(?P<who>.+?)에 대해(?:서)? (?:뭐|뭘|무엇을|아는 거).*",
    r"(?P<who>.+?) के बारे में (?:तुम |आप )?क्या (?:जानते|जानती|पता).*",
    r"ماذا تعرف عني",
    r"ماذا تعرف عن (?P<who>.+)",
    r"[你您]?(?:知道|了解|记得)(?:关于)?(?P<who>.+?)的?(?:什么|哪些|多少).*",
    r"[你您]对(?P<who>.+?)(?:了解|知道)(?:多少|什么|些什么).*",
    r"(?P<who>.+?)について(?:何|なに)を(?:知って|覚えて).*",
)
IDLE: Final = re.compile(
    r"remember when|remember (?:the|that) (?:time|day|night)|forget (?:it|about it|that|this)\W*$|don'?t forget to\b"
)
"""Texts that look like a request but are none."""
ME_WORDS: Final = word_set("me myself i mich mir mi mim moi io ik mij mnie мне меня я عني 我 我的 私 僕 俺 ぼく 나 저")
MINE: Final = re.compile(
    r"(?:i|i'm|i've|i'll|i'd|my|mine|me|we|our|ich|mein\w*|mir|mich|wir|yo|mi|mis|soy|tengo|vivo|je|j'\w*|mon|ma|mes)\b|"
    r"(?:io|il mio|la mia|sono|ho|eu|meu|minha|sou|tenho|ik|mijn|я|мои|моя|мое|у меня|мне|меня)\b|"
    r"(?:انني|اني|انا|لدي|عندي)\b|[我私僕俺]"
)
ABOUT: Final = re.compile(
    r"(?:this |that |it |something )?(?:about|uber|sobre|sur|a propos de|su|over|о|об|про) "
    r"(?P<who><@!?\d+>|@\S+|[\w-]+)\s*[:,]?\s*"
)
LEADING: Final = re.compile(r"(?:[\s,:，：]|(?:that|dass|que|de que|che|dat|ze|что|ان|कि)(?!\w)|qu')+")
EVERYTHING: Final = re.compile(
    r"(?:everything|all|it all|alles|todo|tout|tutto|tudo|все)\b(?!\w)"
    r"(?:.*\b(?:about|uber|sobre|sur|su|over|обо?|про)\s+(?P<who><@!?\d+>|@\S+|\w+))?"
)
ALL_ABOUT_ME: Final = re.compile(
    fold(
        r"(?:absolutely |really )?(?:everything|all|it all|alles|todo|tout|tutto|tudo|все)"
        r"(?:,? (?:that |what |was |lo |ce |quello |o |wat |что )?(?:(?:you|i|we|du|ich|que|qu'|tu|che|je|ты|"
        r"sai|sabes|sais|weisst|weet|знаешь|know|knew|have|ever|learned|remember|said|told|say|stored)\b ?)+)?"
        r"(?: ?(?:about|of|on|uber|sobre|sur|su|di|over|van|обо|о|про) (?:me|myself|mich|mir|mi|moi|mim|mij|мне|меня))?"
        r"|(?:关于)?我的(?:一切|全部|所有)|关于我的一切|一切|全部|私のすべて|私のこと(?:を)?(?:全部|すべて)|全部|すべて"
        r"|(?:absolutnie )?wszystko(?:,? co)?(?: wiesz)?(?: o mnie)?(?: wiesz)?"
        r"|(?:(?:benim )?hakkımda(?:ki)? |benimle ilgili )?(?:bildigin )?her sey[ia]?"
        r"|(?:benim )?hakkımda ne (?:varsa|biliyorsan)"
        r"|كل ?(?:شيء?|حاجة|ما)(?: (?:تعرفه|تعرفها|قلته))?(?: عني)?"
        r"|(?:나|저)에 대(?:한|해서?) ?(?:아는 |알고 있는 )?(?:거|건|것|모든 [거것])[을은]?(?: (?:전부|모두|다|싹))*"
        r"|(?:내|제) (?:정보|기억) (?:전부|모두|다)|(?:전부|모두|다|싹|모든 [거것])[을를]?(?: 다)?"
        r"|(?:मेरे बारे में |मुझसे जुड़ा )?(?:सब ?कुछ|सब|हर बात)(?: जो (?:भी )?(?:जानते हो|पता है))?"
        r"|मेरे बारे में जो (?:कुछ )?(?:भी )?(?:जानते हो|पता है)"
        r"|(?:私|僕|俺)の(?:こと|情報|記憶|データ)(?:を|は)?(?:全部|ぜんぶ|すべて)|(?:私|僕|俺)について(?:知っている|覚えている)こと(?:を)?(?:全部|すべて)?|ぜんぶ"
        r"|(?:你(?:所)?(?:知道|记得)的)?(?:关于|有关)我的?(?:一切|全部|所有(?:的?(?:事情?|信息|内容))?|事情?|信息)"
    )
)
"""All that is known about the author."""
NOT_PEOPLE: Final = word_set("""
    he she it they we you this that there who what when where how the a an to us yourself er sie es das el ella il
    elle on он она оно это 你 他 她
""")
HINTS: Final = re.compile(
    r"remember|remind|forget|memor|\bnote\b|in mind|recall|know|erase|delete|remove|who am i|about me|"
    r"erinner|herinner|напомн|提醒|リマインド|思い出|ذكرني|merk|denk dran|denk daran|verg[ie]ss|behalt|weisst du|"
    r"recuerd|acuerda|olvid|apunta|anota|sabes|souvien|rappel|retiens|oubli|sais|ricord|dimentic|annota|\bsai\b|"
    r"lembr|esquec|anote|sabe|onthou|vergeet|weet|pamiet|zapomn|zapisz|wiesz|pamatuj|zapamatuj|vis o|"
    r"hatirla|unut|biliyor|kom ihag|glom|husk|glem|vet du|ved du|muista|unohda|tiedat|ingat|lupakan|kamu tahu|"
    r"nho|quen|biet|запомн|помн|забуд|забыв|знае|памят|пам'ят|تذكر|انس|تعرف|याद|भूल|जान|θυμησ|ξεχασ|ξερεις|"
    r"זכור|תזכר|שכח|יודע|จำ|ลืม|รู้|记|記|忘|知道|了解|覚|知って|기억|잊|알고"
)
"""Every request contains one of these, in any of the languages. For folded text."""


Action = Literal["remember", "forget", "recall", "remind", "none"]

ME: Final = "me"

_ADDRESS: Final = re.compile(
    r"\s*(?:(?:hey|hi|ok|okay|hallo|hola|salut|ciao|oi|привет)[\s,]+)?@?(?P<who>[\w-]+)\s*[,:!]?\s+"
)
_MENTION: Final = re.compile(r"(?P<who><@!?\d+>|@[\w.-]+)")
_SUBJECT: Final = re.compile(r"(?P<who>[\w.-]+)(?:'s)?\s+\w+")
_STATED: Final[tuple[tuple[Literal["remember", "forget"], tuple[re.Pattern[str], ...]], ...]] = (
    ("remember", REMEMBER),
    ("forget", FORGET),
)
_ASKED: Final = 512
"""Messages for which the answer of `may_ask` is cached: several parts of the program ask about the same one."""
_ENDING: Final = " ?？!.。؟"
_ARTICLE: Final = re.compile(r"^(?:o|a|el|la|il|der|die|den|dem|het|de)\s+(?=[\w-]+$)", re.IGNORECASE)
_VOWELS: Final = re.compile("[\u064b-\u0652]")
"""The marks for vowels over and under Arabic letters."""


class RecognisedRequest(NamedTuple):
    """What a message asks for."""

    action: Action
    about: str | None = None
    """The person it is about: `me` for the author, otherwise a mention or a name as written."""
    content: str = ""
    """What to remember, to forget or to be reminded of, with its time. Empty: the messages before, or everything."""


NOTHING: Final = RecognisedRequest("none")


def recognise_request(text: str, *, names: Collection[str] = (), bots: Collection[str] = ("bot",)) -> RecognisedRequest:
    """Return the request of a message: to remember, to forget or to report what is known, about whom, and what.

    A request is at the beginning of the message, possibly after the name of the bot. `names` are names of people: a
    statement that begins with one is about that person. An uncertain request is `none`.
    """
    plain = _VOWELS.sub("", " ".join(text.replace("’", "'").split()).lstrip("¿¡"))
    body = plain[_begin(fold_aligned(plain), bots) :]
    looked = fold_aligned(body)
    for pattern in RECALL:
        match = pattern.fullmatch(looked.rstrip(_ENDING))
        if match is not None:
            named = next((each for each, words in match.groupdict().items() if words), None)
            if named is None:
                return RecognisedRequest("recall", ME)
            who = _ARTICLE.sub("", body[slice(*match.span(named))].strip())
            if fold(who) in ME_WORDS:
                return RecognisedRequest("recall", ME)
            # A question about the world ("the war in …") is not about a person.
            return NOTHING if len(who.split()) > 1 or fold(who) in NOT_PEOPLE else RecognisedRequest("recall", who)
    if (reminder := _reminder(body, looked)) is not None:
        return reminder
    if IDLE.match(looked) is not None or looked.endswith(("?", "？", "؟")):
        return NOTHING
    for action, patterns in _STATED:
        for pattern in patterns:
            if (match := pattern.match(looked)) is not None:
                return _request(action, body[match.end() :], names)
    for action, pattern in SUFFIXED:
        if (match := pattern.fullmatch(body.rstrip(_ENDING))) is not None:
            return RecognisedRequest(action, _subject(match["content"], names), match["content"])
    return NOTHING


@holds_texts
@lru_cache(_ASKED)
def may_ask(text: str) -> bool:
    """Return whether a message may be a request. Messages without any of the words are skipped."""
    return HINTS.search(fold(text)) is not None


def means_everything(what: str) -> bool:
    """Return whether what to forget is all that is known about the author: "everything about me", "me"."""
    looked = _VOWELS.sub("", fold(what)).strip(_ENDING)
    return looked in ME_WORDS or ALL_ABOUT_ME.fullmatch(looked) is not None


def _reminder(body: str, looked: str) -> RecognisedRequest | None:
    match = REMIND.search(looked)
    if match is None or not _is_time(body[: match.start()]):
        return None
    return RecognisedRequest("remind", ME, f"{body[: match.start()]} {body[match.end() :]}".strip(_ENDING))


def _is_time(text: str) -> bool:
    """Return whether a text is empty or only a time, as before "remind me"."""
    if not text.strip(" ,"):
        return True
    found = read_requested_time(text, datetime.now(UTC))
    return found is not None and len(found.rest.split()) <= 1


def _begin(looked: str, bots: Collection[str]) -> int:
    """Return the position after the name of the bot and polite words, where a request begins."""
    known = {fold_aligned(bot).lstrip("@") for bot in bots}
    address = _ADDRESS.match(looked)
    start = address.end() if address is not None and address["who"] in known else 0
    polite = POLITE.match(looked, start)
    return start if polite is None else polite.end()


def _request(action: Literal["remember", "forget"], rest: str, names: Collection[str]) -> RecognisedRequest:
    rest = rest.lstrip(" ,:，：")
    looked = fold_aligned(rest)
    about = ABOUT.match(looked)
    if about is not None:
        who = rest[about.start("who") : about.end("who")]
        return RecognisedRequest(action, ME if fold(who) in ME_WORDS else who, rest[about.end() :].strip(" :,"))
    everything = EVERYTHING.match(looked) if action == "forget" else None
    if everything is not None:
        who = rest[slice(*everything.span("who"))] if everything["who"] else ME
        return RecognisedRequest(action, ME if fold(who) in ME_WORDS else who)
    leading = LEADING.match(looked)
    content = rest[leading.end() if leading else 0 :].strip()
    return RecognisedRequest(action, _subject(content, names), content) if content else NOTHING


def _subject(content: str, names: Collection[str]) -> str | None:
    """Return the person that a statement is about; None if it does not begin with one."""
    mention = _MENTION.match(content)
    if mention is not None:
        return mention["who"]
    looked = fold_aligned(content)
    for name in sorted(names, key=len, reverse=True):
        if re.match(rf"{re.escape(fold_aligned(name))}(?!\w)", looked):
            return name
    if MINE.match(looked):
        return ME
    subject = _SUBJECT.match(content)
    return None if subject is None or fold(subject["who"]) in NOT_PEOPLE else subject["who"]


class Spoken(NamedTuple):
    speaker: str
    """The name to show."""
    text: str
    at: datetime | None = None
    """When it was said, in the time zone whose days count. Without it nothing is dated."""
    role: Role = "user"
    worth: float = 1.0
    """How much it changes in what is known, beside what its words tell."""
    alone: bool = True
    """Whether it is understood without what was said before, as far as its meaning tells."""
    values: tuple[str, ...] = ()
    """Its words that became known: the sentences that have them are worth more."""
    thread: str = ""
    """Where it was said: nobody answers what was said elsewhere."""


class Summarised(NamedTuple):
    """A summary that is to become part of another one, and the time that it covers."""

    text: str
    first: datetime | None = None
    last: datetime | None = None


_LONGEST: Final = 300
"""Maximum characters of a question without a question mark."""
_OPENING: Final = (
    r"(?:(?:hey|hi|ok|okay|so|and|but|please|bot|und|y|et|e|en|а|и|also|"
    r"ahm|ehm|uhm?|umm?|euh|eh|hm+|mm+|э+м*|e{2,}|sag mal|"
    r"oye|dis|senti|olha|zeg|слушаи|sluchaj|sey|peki)[,\s]+)*"
)
_ASKING: Final = alternatives("""
    what whats what's when whens when's where wheres where's who whos who's whom whose which why how
    wogegen wofur womit wozu wodurch worauf woruber wovon woran
    was wann wo wohin woher wer wen wem wessen welche[rsnm]? warum wieso wie worin
    que cuando donde adonde quien quienes cual cuales por_que como cuanto cuantos cuanta cuantas
    quand qui quoi quel quels quelle quelles pourquoi comment combien est-ce_que qu'est-ce
    cosa quando dove dov'e chi quale quali perche quanto quanti quante
    onde quem qual quais quantos quantas wat wanneer waar welke waarom hoe hoeveel
    что когда где куда откуда кто кого кому чеи чья какои какая какие какое почему зачем как сколько
    co kto kogo kiedy gdzie dokad skad jak ile dlaczego czemu czy ktory ktora ktore jaki jaka jakie
    jakiego jakiej ktorego ktorej czyj czyja
    ne_zaman nerede neresi nereye nereden kim kimin hangi nasil nicin kac
    ما متى اين وين كيف لماذا ليش كم هل ماذا شو
""").replace("_", " ")
_QUESTION_WORDS: Final = re.compile(
    rf"{_OPENING}(?:{_ASKING}\b|ou (?:est|sont|suis|ai|as|vais|vas|habit\w+|etait|se)\b|"
    r"come (?:si|mi|ti|ci|sta|stai|va|e)\b|(?:in|a|di|da|con|per|su) (?:che|quale|quali|chi)\b|"
    r"(?:since|until|by|for|with) (?:when|whom|how (?:long|many|much|often))\b|"
    r"(?:seit|bis|ab|von|mit|fur|bei|in|an|auf|zu|um|nach) (?:wann|wem|wen|welche[rsmn]?|wie ?viel\w*)\b|"
    r"(?:depuis|jusqu'a|a|de|avec|chez|pour|dans|en|sur|vers) (?:quand|qui|quoi|quel(?:le)?s?|combien)\b|"
    r"(?:voor(?! wie het)|met|van|sinds|tot|op|in|bij|aan|naar|uit|om) (?:wie|welke?|wanneer|hoe(?:veel)?)\b|"
    r"(?:na|we?|z|ze|o|do|od|u|dla|przez) (?:co|czym|kim|kogo|czego|kiedy|ktor\w+|jak(?:i|ie|im|iej|iego|ich))\b|"
    r"(?:на|во?|со?|об?|от|из|у|к|ко|для|по|за) "
    r"(?:что|чем|чего|чему|кого|кем|кому|ком|сколько|как(?:ого|ои|их|им|ую|ие)|котор\w+)\b|"
    r"من (?:هو|هي|الذي|التي|اللي|كان|كانت|كتب|قال|اخترع|فاز|سي(?!ار|د|نا)\w+)\b)"
)
_ASKED_WITHIN: Final = re.compile(rf"(?<!\w)(?:{_ASKING}|اي)(?!\w)")
_CLAUSE: Final = 10
"""Maximum words of a clause that may ask by a word within it."""
_PAUSE: Final = re.compile("[,;:.،、。，]")
_CHOICE: Final = re.compile(r"\s(or|oder|ou|o|of|czy|или|veya|yoksa|ام|या|还是)\s\S+(?:\s\S+){0,2}$")
_NO_QUESTION: Final = re.compile(
    rf"{_OPENING}(?:what an?\b|how (?:nice|lovely|cool|great|sweet|sad|awful|funny)|when (?:i|we|he|she|they|you)\b|"
    r"was (?:fur|ein)\b|was (?:a|the|it|that|not|so|just|very|really)\b|que (?:bien|bueno|lindo)|"
    r"como (?:siempre|te dije)|wie schon)"
)
"""Statements that begin like a question."""
_TELL: Final = (
    rf"{_OPENING}(?:(?:can|could|would|will) you )?(?:please )?(?:tell me|show me|remind me|any idea|"
    r"do you (?:know|remember|recall)|i (?:forgot|forget|wonder|don'?t remember|can'?t remember|"
    r"want to know|would like to know)|"
    r"ich (?:mochte|will|wurde gern\w*) wissen|ik wil (?:graag )?weten|"
    r"je voudrais savoir|quiero saber|quisiera saber|vorrei sapere|queria saber|quero saber|хочу узнать|chce wiedziec|"
    r"sag mir|weisst du|dime|dis-moi|dimmi|diga-me|me diga|vertel me|weet je|скажи|подскажи|напомни|помнишь)"
    r"(?: again| noch ?mal)?,? "
)
_ASKED_TO_TELL: Final = re.compile(rf"{_TELL}(?:{_ASKING}|if|whether|about|the|my|ob|ou)\b")
_INVERTED: Final = re.compile(
    rf"{_OPENING}(?:(?:does|did|am|are|is|was|were|has|had|can|could|should|will|would) "
    r"(?:i|you|we|they|he|she|it|my|our|the|his|her|there|anyone|somebody)\b|(?:do|have) (?:i|you|we|they|my)\b|"
    r"(?:habe|hab|bin|ist|sind|hat|kann|soll|muss|darf|war|weisst|kennst) "
    r"(?:ich|du|wir|er|sie|es|mein\w*|der|die|das)\b|"
    r"(?:steht|liegt|gibt|kommt|geht|fahrt|lauft) .*\b(?:irgend\w+|uberhaupt)\b|"
    r"(?:heb|heeft|ben|bent|zijn|kan|kun|moet|mag|zal|zullen|wil|werk|woon|slik|neem|ga) "
    r"(?:ik|je|jij|u|hij|ze|we|wij|jullie|er|mijn|m'n|onze)\b|"
    r"(?:heeft|moet|zijn|kun|gaat|komt|staat|rijdt|werkt|woont) (?:de|het|een|er|mijn|onze|hij|ze)\b|"
    r"(?:hebben|kunnen|mogen) \w+ (?:een|ook|geen|de|het|niet)\b|"
    r"\w+(?:-t)?-(?:je|tu|il|elle|on|ils|elles|ce)\b|(?:"
    r"ho(?! \w*(?:at|ut|it|tt|st|rs|s)[oaie]\b)|hai|sai(?! d[aoe]s?\b))\b)"
)
_ANYWHERE: Final = re.compile(
    r"什么|什麼|哪里|哪裡|哪儿|哪[个些年天位]|谁|誰|几[点号岁年个]|什么时候|多少|为什么|怎么|吗[。.]?$|呢[。.]?$|还是|"
    r"いつ|どこ|なに|何時|何です|どう|なぜ|ですか|ますか|でしたか|ましたか|か[。.]?$|何(?:歳|年|か月|ヶ月|日|回)|それとも|(?:っけ|かな)[。.]?$|"
    r"언제|어디|누구|무엇|뭐|왜|까[.]?$|나요[.]?$|몇 ?(?:살|시|월|년|번|개)|"
    r"(?:이야|이에요|예요) (?:\S+ ){0,2}\S+(?:이야|이에요|예요)[.]?$|며칠|[이었]었나|알려 ?줘|아니면|더라[.]?$|"
    r"(?:^|\s)(?:कब|कहाँ|कहां|कौन|किसने|किसका|कितन[ाेी]|क्यों|कैसे)(?:\s|$)|^क्या\s|"
    r"\bm[iıu](?:y[iıu]m|yd[iıu]|y[iıu]z|s[iıu]n)?(?:[.]?$| yoksa\b)|\byoksa\b|\bney(?:di|mis|e|i)\b|"
    r"\bne zaman\b|\bkac\b|\bczy\b|(?:^|\s)هل\s|\sام\s"
)
"""Words that ask wherever they stand in a sentence."""


def is_clause(text: str) -> bool:
    """Return whether a text has no pause: "when I have a headache, I take ..." begins like a question."""
    return not _PAUSE.search(text)


def may_be_asked(text: str) -> bool:
    """Return whether a text has a word that asks, or ends with an alternative: most that do are no questions."""
    folded = fold(text).replace("’", "'")
    choice = _CHOICE.search(folded)
    # The Portuguese "o" is an article.
    is_choice = choice is not None and (choice[1] != "o" or guess_language(text) != "portuguese")
    is_short = len(folded.split()) <= _CLAUSE and is_clause(folded)
    return is_choice or (is_short and _ASKED_WITHIN.search(folded) is not None)


@holds_texts
@lru_cache(_ASKED)
def asks(text: str) -> bool:
    """Return whether a text is a question: "when is the wedding", "tell me where I live", "wo wohne ich?"."""
    said = split_sentences(text)
    if not said:
        return False
    if is_question(said[-1]):
        return True
    folded = " ".join(fold(text).replace("’", "'").split()).lstrip("¿¡ @")
    if len(folded) > _LONGEST or folded.endswith("!"):
        return False
    if _ANYWHERE.search(folded):
        return True
    if _NO_QUESTION.match(folded):
        return False
    return any(pattern.match(folded) for pattern in (_QUESTION_WORDS, _ASKED_TO_TELL, _INVERTED))


_GREETING: Final = re.compile(
    r"(?:hi|hello|hey|good (?:morning|evening|day|afternoon)|hallo|guten (?:morgen|tag|abend)|hola|buenos dias|salut|"
    r"bonjour|ciao|ola|oi|hoi|привет|здравствуи\w*|你好|こんにちは|مرحبا|" + fold("안녕(?:하세요)?") + r")\b"
)
_THANKS: Final = re.compile(
    r"(?:(?:many |vielen |herzlichen |besten |muchas |mille |muito |большое )?"
    r"(?:thanks|thank you|thx|danke|dank|gracias|merci|grazie|obrigad[oa]|dank je|bedankt|спасибо)\b|谢谢|شكرا|"
    + fold("ありがとう(?:ございます)?|감사합니다|고마워요?")
    + ")"
)
_NAMES_ADDRESSED: Final = 1
"""Number of unknown words that may follow a greeting: the name of somebody."""


def only_polite(sentence: str) -> Intent | None:
    """Return whether a sentence greets or thanks somebody, and says nothing else."""
    folded = fold(sentence).strip()
    greets, thanks = _GREETING.match(folded), _THANKS.match(folded)
    found = greets or thanks
    if found is None:
        return None
    language = guess_language(sentence)
    lists = vocabulary(language)
    light = stop_words(language) | lists.small_talk | lists.second_person | lists.dull
    rest = words_of(folded[found.end() :])
    unknown = [word for word in rest if word not in light]
    if unknown and not len(rest) == len(unknown) <= _NAMES_ADDRESSED:
        return None
    return "greet" if greets else "thank"


def intents_by_rules(text: str) -> Intents:
    """Return what a text wants, where there is no encoder."""
    action = recognise_request(text).action
    if action in {"remind", "forget"}:
        return Intents.surely("remind" if action == "remind" else "forget")
    if action == "recall" or asks(text):
        return Intents.surely("ask")
    if not any(map(str.isalnum, text)):
        return Intents.surely("chat")
    return Intents.surely(only_polite(text) or "tell")
