"""Word lists per language that show the kind of a sentence: small talk, first person, time, change."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from aforesaid.text.times.time_words import full_calendar_words
from aforesaid.text.words import fold


class Vocabulary(NamedTuple):
    """The word lists of a language."""

    small_talk: frozenset[str]
    """Greetings, thanks, agreement, applause. A sentence with nothing else contains no information."""
    reactions: frozenset[str]
    """The one or two words that begin a reaction."""
    joints: frozenset[str]
    """Introductory words that can be removed without changing the meaning."""
    first_person: frozenset[str]
    second_person: frozenset[str]
    times: frozenset[str]
    dull: frozenset[str]
    """Frequent words that say little about the topic of a conversation."""


_SMALL_TALK: Final = {
    "english": """
        hi hey hello hiya bye goodbye goodnight cheers thanks thank thx ty welcome congrats congratulations wow whoa
        woah yeah yes yep yup ya no nope nah ok okay k sure great awesome amazing cool nice good glad lovely sounds
        totally absolutely definitely exactly right well oh ooh ah aw aww haha hahaha hehe lol hmm hm um uh mm mhm
        wonderful fantastic excellent perfect incredible gosh sorry please pls anyway actually btw
    """,
    "german": """
        hallo hi hey moin servus tschuss tschau ciao danke dankeschon bitte willkommen gluckwunsch ja jo nein ne nee
        ok okay klar super toll prima cool schon gut wow oh ah ach haha hm hmm genau stimmt naturlich gern gerne
        krass wunderbar perfekt grussdich morgen entschuldigung sorry
    """,
    "spanish": """
        hola buenas buenos adios chao gracias favor felicidades enhorabuena bienvenido si no vale ok okay claro
        genial guay bueno bien perfecto vaya oh ah ay jaja jajaja hm increible maravilloso estupendo exacto verdad
        perdon igualmente
    """,
    "french": """
        salut bonjour bonsoir coucou revoir merci felicitations bravo bienvenue oui ouais non ok okay accord super
        genial cool bien parfait oh ah haha mdr lol hm hein voila exactement bof bah ben tiens dommage pardon desole
        plait
    """,
    "italian": """
        ciao salve buongiorno buonasera arrivederci grazie prego congratulazioni complimenti auguri benvenuto si no
        ok okay certo bello bene benissimo perfetto fantastico ottimo wow oh ah eh haha ahah hm esatto dai scusa
        magari
    """,
    "portuguese": """
        ola oi bom boa tchau adeus obrigado obrigada parabens bemvindo sim nao ok okay claro legal otimo bem perfeito
        nossa uau oh ah haha kkk rs hm exato verdade desculpa valeu beleza maravilha
    """,
    "dutch": """
        hallo hoi hey dag doei bedankt dank dankje graag gefeliciteerd welkom ja nee ok oke okay prima leuk gaaf mooi
        goed super wow oh ah haha hm precies klopt natuurlijk sorry alsjeblieft
    """,
    "russian": """
        привет здравствуй здравствуйте пока спасибо пожалуйста поздравляю да ага угу нет ок окей ладно хорошо отлично
        круто супер класс здорово прекрасно ого ух ой ах хаха лол хм ну конечно точно понятно ясно извини прости
        доброе утро добрый день вечер
    """,
    "arabic": """
        مرحبا أهلا السلام عليكم وعليكم شكرا عفوا مبروك نعم أجل لا حسنا طيب تمام رائع جميل ممتاز واو أوه آه هههه
        بالطبع أكيد صحيح آسف وداعا
    """,
    "hindi": "नमस्ते हैलो अलविदा धन्यवाद शुक्रिया बधाई हाँ हां जी नहीं ठीक अच्छा बढ़िया वाह अरे ओह हाहा बिल्कुल सही माफ़",
    "chinese": """
        你好 您好 再见 拜拜 谢谢 多谢 不客气 恭喜 哈哈 好的 好吧 好啊 嗯 哦 哇 太好了 太棒了 真棒 没错 是的 对啊 当然
        不好意思
    """,
    "japanese": """
        こんにちは こんばんは おはよう さようなら ありがとう どういたしまして おめでとう はい うん いいね すごい
        すてき なるほど そうだね そうですね えっと わあ ごめん お疲れ
    """,
    "korean": "안녕 감사합니다 고마워 축하 네 응 아니요 좋아요 좋네 대박 멋지다 그래 맞아 와 하하 ㅋㅋ ㅎㅎ 미안",
}
_REACTIONS: Final = {
    "english": """
        that's|that is|that sounds|that was|it's great|it's awesome|it's amazing|it sounds|sounds|wow|oh|haha|yeah|
        thanks|thank you|hey|hi|hello|bye|congrats|congratulations|glad|nice|great|cool|awesome|good|sure|ok|okay|
        no problem|you're welcome|take care|see you|can't wait|keep|you got|so glad|so happy|so cool|so proud|
        good luck|have fun|well done|your kind|i'm glad|i'm happy|i'm so|love it
    """,
    "german": """
        das ist|das klingt|klingt|wow|oh|haha|ja|danke|hallo|hey|tschuss|gluckwunsch|schon|super|toll|cool|klar|ok|
        gern|bitte|viel spass|viel gluck|bis bald|bis dann|freut mich|gute besserung
    """,
    "spanish": """
        que bien|que bueno|que guay|suena|me alegro|me alegra|gracias|hola|adios|felicidades|genial|claro|vale|si|
        vaya|de nada|cuidate|hasta luego|buena suerte|eso es|jaja
    """,
    "french": """
        c'est|ca a|merci|salut|bonjour|bravo|felicitations|super|genial|cool|oui|ouais|d'accord|de rien|bonne chance|
        a bientot|je suis content|quelle chance|haha|mdr
    """,
    "italian": """
        che bello|che bella|grazie|ciao|bravo|brava|complimenti|fantastico|certo|si|prego|a presto|sembra|
        sono contento|haha
    """,
    "portuguese": """
        que bom|que legal|obrigado|obrigada|oi|ola|parabens|otimo|claro|sim|de nada|boa sorte|ate logo|parece|
        fico feliz
    """,
    "dutch": """
        dat is|dat klinkt|klinkt|bedankt|dank|hoi|hallo|gefeliciteerd|leuk|super|prima|ja|graag gedaan|veel plezier|
        tot ziens
    """,
    "russian": """
        это круто|это здорово|это прекрасно|звучит|спасибо|привет|пока|поздравляю|рад|рада|круто|супер|класс|здорово|
        отлично|ага|да|ничего себе|удачи|береги себя|до встречи|не за
    """,
    "arabic": "هذا رائع|هذا جميل|شكرا|مرحبا|أهلا|مبروك|رائع|جميل|نعم|بالتوفيق|إلى اللقاء",
    "hindi": "यह बहुत|धन्यवाद|शुक्रिया|नमस्ते|बधाई|वाह|बढ़िया|हाँ|अच्छा|फिर मिलेंगे",
    "chinese": "太好了|太棒了|听起来|真好|真棒|谢谢|你好|再见|恭喜|哈哈|加油|没事|好的",
    "japanese": "すごい|いいね|それは|ありがとう|こんにちは|おめでとう|よかった|楽しそう|頑張って|また",
    "korean": "좋겠다|멋지다|대박|고마워|감사|안녕|축하|그렇구나|힘내",
}
_JOINTS: Final = {
    "english": "and but so oh um uh hmm",
    "german": "und aber also oh ahm naja",
    "spanish": "y pero pues entonces oh",
    "french": "et mais alors donc oh euh",
    "italian": "e ma allora quindi oh beh",
    "portuguese": "e mas entao oh",
    "dutch": "en maar dus oh nou",
    "russian": "и а но ну вот ой",
    "arabic": "و لكن إذن",
    "hindi": "और लेकिन तो अरे",
}
_FIRST_PERSON: Final = {
    "english": "i my me mine myself we our us ours",
    "german": "ich mein meine meinen meinem meiner mir mich wir uns unser unsere unseren",
    "spanish": "yo mi mis me mio mia nosotros nuestro nuestra nos soy estoy tengo voy he fui tenemos vamos",
    "french": "je j mon ma mes moi nous notre nos",
    "italian": "io mio mia miei mie mi noi nostro nostra ci sono ho vado abbiamo andiamo",
    "portuguese": "eu meu minha meus minhas me nos nosso nossa sou estou tenho vou fui temos vamos",
    "dutch": "ik mijn mij me wij we ons onze",
    "russian": "я мой моя мое мои меня мне мной мы наш наша наши нас нам",
    "arabic": "أنا نحن لدي عندي إنني كنت سوف",
    "hindi": "मैं मैंने मेरा मेरी मेरे मुझे हम हमने हमारा हमारी हमें",
    "chinese": "我 我们 咱们 俺",
    "japanese": "私 僕 俺 うちの 自分 わたし ぼく",
    "korean": "나는 저는 내가 제가 우리 저희 내 제",
}
_SECOND_PERSON: Final = {
    "english": "you your yours yourself u ur",
    "german": "du dein deine deinen dir dich ihr euch euer eure",
    "spanish": "tu tus te ti usted ustedes vosotros os",
    "french": "tu ton ta tes te toi vous votre vos t",
    "italian": "tu tuo tua tuoi ti te voi vostro lei",
    "portuguese": "tu teu tua te voce voces seu sua",
    "dutch": "jij je jou jouw jullie u uw",
    "russian": "ты твой твоя твое твои тебя тебе вы ваш ваша вас вам",
    "arabic": "أنت أنتم لديك عندك",
    "hindi": "तुम तुम्हारा तुम्हारी आप आपका आपकी आपको तू",
    "chinese": "你 您 你们",
    "japanese": "あなた 君",
    "korean": "너 네가 당신",
}
_TIMES: Final = {
    "english": """
        last next ago week weeks weekend month months year years o'clock am pm morning afternoon evening recently
        birthday
    """,
    "german": """
        morgen letzte letzten letztes nachste nachsten nachstes vor woche wochen wochenende monat monate jahr jahre uhr
        abend vormittag nachmittag geburtstag
    """,
    "spanish": """
        manana pasado pasada proximo proxima hace semana semanas mes meses ano anos hora horas tarde noche cumpleanos
    """,
    "french": """
        aujourd dernier derniere prochain prochaine semaine semaines mois an ans annee heure heures matin soir
        anniversaire
    """,
    "italian": "scorso scorsa prossimo prossima settimana settimane mese mesi anno anni ore mattina sera compleanno fa",
    "portuguese": """
        passado passada proximo proxima semana semanas mes meses ano anos horas manha tarde noite aniversario
    """,
    "dutch": "vorige volgende geleden week weken weekend maand maanden jaar uur ochtend middag avond verjaardag",
    "russian": """
        прошлый прошлой прошлом следующий следующей следующем назад неделя неделе неделю месяц месяца месяце год года
        году лет утром вечером часов рождения
    """,
    "arabic": "الماضي الماضية القادم القادمة قبل أسبوع الأسبوع شهر الشهر سنة عام صباحا مساء الساعة",
    "hindi": """
        कल आज परसों पिछले अगले हफ्ते हफ़्ते महीने साल सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार सुबह शाम बजे
    """,
    "chinese": "上周 下周 上个月 下个月 去年 明年 星期 周末 礼拜 月 年 早上 晚上 下午 上午 生日",
    "japanese": "先週 来週 先月 来月 去年 来年 曜日 週末 月 年 朝 夜 午後 午前 時 誕生日",
    "korean": "어제 오늘 내일 모레 지난주 다음주 지난달 다음달 작년 내년 요일 주말 월 년 아침 저녁 오후 오전 생일",
}
"""Words of times besides the names of days and months, which `times.time_words` lists."""
_DULL: Final = {
    "english": """
        get got getting gets go goes going went gone make makes made making know knows knew think thinks thought want
        wants wanted feel feels feeling felt like likes liked really need needs say says said tell told see saw seen
        look looks looking take takes took come comes came give gave put let lets thing things stuff something
        anything everything someone lot lots much many bit way kind sort time times day days people maybe actually
        probably even still always never ever now back one use used try tried keep mean guess gonna wanna gotta
        happen happened
    """,
    "german": """
        mache machen macht gemacht gehe gehen geht gegangen komme kommen kommt weiss wissen denke glaube finde sagen
        sagt gesagt sehen gesehen will wollen muss mussen kann konnen geben gibt ding sache leute zeit tag mal etwas
        alles immer heute jetzt wohne wohnt arbeite arbeitet lebe heisse eigentlich vielleicht wirklich halt eben
        doch viel ganz
    """,
    "spanish": """
        a dias dia vivo vive trabajo trabaja llamo gusta hacer hago hace hecho ir voy va vamos decir dice dicho ver
        veo visto saber se creo pienso quiero quiere poder puedo puede dar cosa cosas gente tiempo vez siempre ahora
        quizas tal todo todos poco tan asi aqui alli
    """,
    "french": """
        a jours jour habite travaille vis aime appelle faire fais fait aller vais va dire dit voir vu savoir sais
        crois pense veux veut peux peut donner chose choses gens temps fois toujours maintenant etre vraiment tout
        tous peu bien tres ici la
    """,
    "italian": """
        a giorni giorno vivo abito abita lavoro lavora chiamo piace fare faccio fa fatto andare vado va dire dice
        detto vedere visto sapere so credo penso voglio vuole posso puo dare cosa cose gente tempo volta sempre
        adesso forse davvero tutto tutti poco cosi qui
    """,
    "portuguese": """
        a dias dia dois duas moro mora trabalho trabalha chamo gosto fazer faco faz feito ir vai dizer disse ver vi
        saber sei acho penso quero quer posso pode dar coisa coisas gente tempo vez sempre agora talvez mesmo tudo
        todos pouco assim aqui
    """,
    "dutch": """
        woon werk heet hou doe doet gedaan ga gaat gaan gegaan kom komt weet denk vind zeg zegt gezegd zie gezien wil
        moet kunnen geven ding dingen mensen tijd dag keer altijd misschien echt alles iets heel
    """,
    "russian": """
        делать делаю сделал иду идти пошел знаю знать думаю думать хочу хочет могу может сказать сказал видел вижу
        дела вещь вещи люди время день раз всегда сейчас быть просто очень вообще как-то что-то
    """,
    "arabic": "شيء أشياء الناس وقت يوم مرة دائما الآن ربما جدا كثيرا قال يقول أعرف أريد أظن",
    "hindi": """
        करना करता करती किया जाना गया गई है हैं था थी थे हूँ हो कि का की के को से में पर और यह वह बात लोग समय दिन बहुत
    """,
    "chinese": """
        的 了 是 在 有 和 就 不 都 也 很 到 说 要 去 会 着 没 这 那 吗 呢 吧 啊 一 个 们 得 地 把 被 还 想 做 什么
        怎么
    """,
    "japanese": "",
    "korean": "은 는 이 가 을 를 에 도 의 로 고 다 요 서 네",
}


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the word lists of a language; empty ones for an unknown language."""
    return Vocabulary(
        small_talk=_words(_SMALL_TALK, language),
        reactions=frozenset(
            " ".join(fold(phrase).replace("'", " ").split()) for phrase in _REACTIONS.get(language, "").split("|")
        )
        - {""},
        joints=_words(_JOINTS, language),
        first_person=_words(_FIRST_PERSON, language),
        second_person=_words(_SECOND_PERSON, language),
        times=_words(_TIMES, language) | full_calendar_words(language) - {"may"},  # far more often a verb
        dull=_words(_DULL, language),
    )


def _words(table: dict[str, str], language: str) -> frozenset[str]:
    return frozenset(fold(table.get(language, "")).split())


MOST_COUNTED: Final = 4
"""More such words in one text say no more."""
_WORD_PATTERNS: Final = {
    "english": (
        r"now|new|instead|no longer|any ?more|chang(?:e|ed|ing)|mov(?:e|ed|ing)|switch\w*|cancel\w*|"
        r"postponed|off|sold|quit|g[ai]ven? up|stopp\w*|left|back|better|finally|already|got|passed|died|"
        r"broke up|split|divorced|retired|fired|signed|became|turned|from now on|started|correction|"
        r"actually|after all|finished|replac\w*|renamed|extended|rescheduled"
    ),
    "german": (
        r"jetzt|neu(?:e[mnrs]?)?|statt\w*|nicht mehr|keine?[nrs]? \w+ mehr|geandert|umgezogen|gewechselt|"
        r"abgesagt|verschoben|verkauft|gekundigt|aufgehort|inzwischen|mittlerweile|endlich|gestorben|"
        r"getrennt|ab sofort|umgestellt|vorbei|wieder|korrektur"
    ),
    "spanish": (
        r"ahora|nuev[oa]s?|ya no|en vez|en lugar|cambi\w*|mud[eo]\w*|aplaz\w*|vendi\w*|dej[eo]\w*|"
        r"al final|por fin|murio"
    ),
    "french": (
        r"maintenant|nouve(?:au|lle|aux|l)\w*|(?:ne|n'\w+) .{1,20} plus|au lieu|chang\w*|demenag\w*|"
        r"annul\w*|repouss\w*|vendu\w*|quitt\w*|arret\w*|finalement|enfin|desormais"
    ),
    "italian": (
        r"adesso|nuov[oaie]|non .{1,20} piu|invece|al posto|trasferi\w*|annulla\w*|rimanda\w*|spostat\w*|"
        r"vendut\w*|lasciat\w*|smesso|alla fine|finalmente"
    ),
    "portuguese": (
        r"agora|nov[oa]s?|ja nao|nao .{1,20} mais|em vez|mud(?:ei|ou|amos|ar)|adi(?:ado|ada|aram)|"
        r"vend(?:i|eu|emos)|parei|afinal|morreu"
    ),
    "dutch": (
        r"nieuwe?|niet meer|geen \w+ meer|in plaats|verander\w*|verhui\w*|afgezegd|verzet|uitgesteld|"
        r"verkocht|gestopt|toch|eindelijk|overleden|uit elkaar|voortaan"
    ),
    "polish": (
        r"teraz|now[aey]|juz nie|zamiast|zmien\w*|przeprowadz\w*|odwola\w*|przeloz\w*|przesun\w*|"
        r"sprzeda\w*|rzuci\w*|jednak|w koncu|zmarl\w*|rozsta\w*"
    ),
    "turkish": (
        r"art[iı]k|simdi|yeni|yerine|degis\w*|tas[iı]n\w*|iptal|ertele\w*|satt[iı]\w*|b[iı]rak\w*|sonunda|nihayet|"
        r"vazgec\w*"
    ),
    "russian": (
        r"теперь|сейчас|нов(?:ая|ое|ые|ый|ую)|больше не|уже не|вместо|измен\w*|переех\w*|отмен\w*|"
        r"перенес\w*|продал\w*|бросил\w*|уволи\w*|наконец|умер\w*|расста\w*|передумал\w*"
    ),
}
_WORDS: Final = re.compile(rf"\b(?:{'|'.join(_WORD_PATTERNS.values())})\b")
_PIECES: Final = re.compile(
    "अब|नय[ाेी]|नहीं रह|बदल|छोड़|बेच|रद्द|الان|جديد|لم يعد|بدل|انتقل|تاجل|بعت|اخيرا|صار|"
    "现在|新|不再|改|换|搬|取消|推迟|延期|卖|辞|终于|以后|从今|"
    "今は|新し|もう|やめ|変更|変え|変わ|引っ越|中止|売|ようやく|これから|代わり|"
    "이제|새로|더 ?이상|바꾸|바뀌|바꿨|이사|취소|연기|미뤄|팔았|그만|드디어|대신|변경"
)
"""In scripts without spaces or with joined words, parts of words are looked for."""


def count_change_words(text: str) -> int:
    """Return how many words of a text announce a change, at most `MOST_COUNTED`."""
    found = len(_WORDS.findall(fold(text)))
    if not text.isascii():
        found += len(_PIECES.findall(text))
    return min(found, MOST_COUNTED)
