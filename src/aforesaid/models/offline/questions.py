"""Recognises questions by their form, with or without a question mark, in several languages."""

from __future__ import annotations

import re
from typing import Final

from aforesaid.text.sentences import is_question, split_sentences
from aforesaid.text.words import alternatives, fold

_LONGEST: Final = 300
"""Maximum characters of a question without a question mark."""
_OPENING: Final = r"(?:(?:hey|hi|ok|okay|so|and|but|please|bot|und|y|et|e|en|а|и)[,\s]+)*"
_ASKING: Final = alternatives("""
    what whats what's when whens when's where wheres where's who whos who's whom whose which why how
    was wann wo wohin woher wer wen wem wessen welche[rsnm]? warum wieso wie worin
    que cuando donde adonde quien quienes cual cuales por_que como cuanto cuantos cuanta cuantas
    quand qui quoi quel quels quelle quelles pourquoi comment combien est-ce_que qu'est-ce
    cosa quando dove dov'e chi quale quali perche quanto quanti quante
    onde quem qual quais quantos quantas wat wanneer waar welke waarom hoe hoeveel
    что когда где куда откуда кто кого кому чеи чья какои какая какие какое почему зачем как сколько
    ما متى اين كيف لماذا كم هل
""").replace("_", " ")
_QUESTION_WORDS: Final = re.compile(
    rf"{_OPENING}(?:{_ASKING}\b|ou (?:est|sont|suis|ai|as|vais|vas|habit\w+|etait|se)\b|"
    r"come (?:si|mi|ti|ci|sta|stai|va|e)\b)"
)
_NO_QUESTION: Final = re.compile(
    rf"{_OPENING}(?:what a|how (?:nice|lovely|cool|great|sweet|sad|awful|funny)|when (?:i|we|he|she|they|you)\b|"
    r"was (?:fur|ein)\b|was (?:a|the|it|that|not|so|just|very|really)\b|que (?:bien|bueno|lindo)|"
    r"como (?:siempre|te dije)|wie schon)"
)
"""Statements that begin like a question."""
_TELL: Final = (
    rf"{_OPENING}(?:(?:can|could|would|will) you )?(?:please )?(?:tell me|show me|remind me|any idea|"
    r"do you (?:know|remember|recall)|i (?:forgot|forget|wonder|don'?t remember|can'?t remember)|"
    r"sag mir|weisst du|dime|dis-moi|dimmi|diga-me|me diga|vertel me|weet je|скажи|подскажи|напомни|помнишь)"
    r"(?: again| noch ?mal)?,? "
)
_ASKED_TO_TELL: Final = re.compile(rf"{_TELL}(?:{_ASKING}|if|whether|about|the|my|ob|ou)\b")
_INVERTED: Final = re.compile(
    rf"{_OPENING}(?:(?:does|did|am|are|is|was|were|has|had|can|could|should|will|would) "
    r"(?:i|you|we|they|he|she|it|my|our|the|his|her|there|anyone|somebody)\b|(?:do|have) (?:i|you|we|they|my)\b|"
    r"(?:habe|hab|bin|ist|sind|hat|kann|soll|war|weisst|kennst) (?:ich|du|wir|er|sie|es|mein\w*|der|die|das)\b|"
    r"(?:ai-je|suis-je|as-tu|es-tu|sais-tu|connais-tu|ho|hai|sai)\b)"
)
_EAST_ASIAN: Final = re.compile(
    r"什么|什麼|哪里|哪裡|哪儿|哪个|谁|誰|几点|几号|什么时候|多少|为什么|怎么|吗[。.]?$|呢[。.]?$|"
    r"いつ|どこ|なに|何時|何です|どう|なぜ|ですか|ますか|でしたか|ましたか|か[。.]?$|언제|어디|누구|무엇|뭐|왜|까[.]?$|나요[.]?$"
)


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
    if _EAST_ASIAN.search(folded):
        return True
    if _NO_QUESTION.match(folded):
        return False
    return any(pattern.match(folded) for pattern in (_QUESTION_WORDS, _ASKED_TO_TELL, _INVERTED))
