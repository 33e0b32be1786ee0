"""Patterns of requests to remember, to forget and to report what is known, in several languages.

A request is at the beginning of a text. The patterns match text that was folded character by character ("ß" is "s").
"""

from __future__ import annotations

import re
from typing import Final, Literal

from aforesaid.text.words import word_set

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
    r"انس[ىي]? (?=ان|كل)",
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
    r"(?:[\s,:，：]|(?:to|that|about|of|for|daran|an|dass|zu|que|de|a|di|che|om|te|aan|dat|что|о|об|про|чтобы|please|bitte)\b|d')+|[要去]"
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
ME_WORDS: Final = word_set("me myself i mich mir mi mim moi io ik mij мне меня я عني 我 我的 私 僕 俺 ぼく")
MINE: Final = re.compile(
    r"(?:i|i'm|i've|i'll|i'd|my|mine|me|we|our|ich|mein\w*|mir|mich|wir|yo|mi|mis|soy|tengo|vivo|je|j'\w*|mon|ma|mes)\b|"
    r"(?:io|il mio|la mia|sono|ho|eu|meu|minha|sou|tenho|ik|mijn|я|мои|моя|мое|у меня|мне|меня)\b|"
    r"(?:انني|اني|انا|لدي|عندي)\b|[我私僕俺]"
)
ABOUT: Final = re.compile(
    r"(?:this |that |it |something )?(?:about|uber|sobre|sur|a propos de|su|over|о|об|про) "
    r"(?P<who><@!?\d+>|@\S+|[\w-]+)\s*[:,]?\s*"
)
LEADING: Final = re.compile(r"(?:[\s,:，：]|(?:that|dass|que|de que|che|dat|что|ان)\b|qu')+")
EVERYTHING: Final = re.compile(
    r"(?:everything|all|it all|alles|todo|tout|tutto|tudo|все)\b(?!\w)"
    r"(?:.*\b(?:about|uber|sobre|sur|su|over|обо?|про)\s+(?P<who><@!?\d+>|@\S+|\w+))?"
)
ALL_ABOUT_ME: Final = re.compile(
    r"(?:absolutely |really )?(?:everything|all|it all|alles|todo|tout|tutto|tudo|все)"
    r"(?:,? (?:that |what |was |lo |ce |quello |o |wat |что )?(?:(?:you|i|we|du|ich|que|qu'|tu|che|je|ты|"
    r"sai|sabes|sais|weisst|weet|знаешь|know|knew|have|ever|learned|remember|said|told|say|stored)\b ?)+)?"
    r"(?: ?(?:about|of|on|uber|sobre|sur|su|di|over|van|обо|о|про) (?:me|myself|mich|mir|mi|moi|mim|mij|мне|меня))?"
    r"|(?:关于)?我的(?:一切|全部|所有)|关于我的一切|一切|全部|私のすべて|私のこと(?:を)?(?:全部|すべて)|全部|すべて"
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
