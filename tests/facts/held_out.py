"""Pairs of what somebody said and what a model wrote, in five languages, for measuring the guard against inventions.

Supported ones follow from what was said and share few words or none with it; unsupported ones are about a different
thing. None was tried before the figures were taken: `PAIRS` after the threshold of what is believed was chosen
(`NEAR`), and `LATER` after the threshold of what is dropped was chosen on `PAIRS` (`FAR`).
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Pair(NamedTuple):
    language: str
    said: str
    written: str
    supported: bool


_SUPPORTED: Final = {
    "english": (
        ("We got the keys to the flat on Friday and slept there on the floor.", "Ann moved house."),
        ("The doctor put me on insulin last spring.", "Ann has diabetes."),
        ("I can't be in the same room as a cat without sneezing.", "Ann is allergic to cats."),
        ("Tom and I signed the papers, it's over after nine years.", "Ann got divorced."),
    ),
    "german": (
        ("Seit Montag stehe ich wieder vor meiner Klasse.", "Ann arbeitet als Lehrerin."),
        ("Von Milch bekomme ich sofort Bauchweh.", "Ann verträgt keine Laktose."),
        ("Unsere Kleine kommt im August in die Schule.", "Ann hat eine Tochter."),
        ("Ohne meinen Espresso werde ich nicht wach.", "Ann trinkt morgens Kaffee."),
    ),
    "french": (
        ("J'ai rendu mon tablier au restaurant hier soir.", "Ann a démissionné."),
        ("Le petit dernier a soufflé ses trois bougies.", "Ann a un fils de trois ans."),
        ("Je cours dix kilomètres tous les dimanches.", "Ann fait de la course à pied."),
        ("Impossible de monter dans un avion, je panique.", "Ann a peur de voler."),
    ),
    "spanish": (
        ("Mañana me quitan la escayola de la pierna.", "Ann se rompió la pierna."),
        ("Llevo cinco años sin probar una gota de alcohol.", "Ann no bebe."),
        ("Mi abuela nos dejó el domingo.", "La abuela de Ann murió."),
        ("Por fin aprobé y ya puedo conducir.", "Ann tiene carné de conducir."),
    ),
    "russian": (
        ("Мы ждём малыша в июне!", "Аня беременна."),
        ("Вчера получили ключи и перевезли все коробки.", "Аня переехала."),
        ("Я не ем ни мяса, ни рыбы.", "Аня вегетарианка."),
        ("Меня сократили на прошлой неделе.", "Аня потеряла работу."),
    ),
}
_UNSUPPORTED: Final = {
    "english": (
        ("We got the keys to the flat on Friday and slept there on the floor.", "Ann speaks fluent Japanese."),
        ("The doctor put me on insulin last spring.", "Ann runs a bakery."),
        ("I can't be in the same room as a cat without sneezing.", "Ann studied physics."),
        ("The bus was late again this morning.", "Ann has twins."),
    ),
    "german": (
        ("Seit Montag stehe ich wieder vor meiner Klasse.", "Ann hat einen Hund."),
        ("Von Milch bekomme ich sofort Bauchweh.", "Ann wohnt in Hamburg."),
        ("Unsere Kleine kommt im August in die Schule.", "Ann spielt Gitarre."),
        ("Der Film gestern war viel zu lang.", "Ann ist Ärztin."),
    ),
    "french": (
        ("J'ai rendu mon tablier au restaurant hier soir.", "Ann collectionne les timbres."),
        ("Le petit dernier a soufflé ses trois bougies.", "Ann est avocate."),
        ("Je cours dix kilomètres tous les dimanches.", "Ann a une maison en Bretagne."),
        ("Il a plu toute la semaine.", "Ann est allergique aux noix."),
    ),
    "spanish": (
        ("Mañana me quitan la escayola de la pierna.", "Ann toca el piano."),
        ("Llevo cinco años sin probar una gota de alcohol.", "Ann vive en Lima."),
        ("Mi abuela nos dejó el domingo.", "Ann trabaja en un banco."),
        ("El tren salió con retraso.", "Ann tiene dos gatos."),
    ),
    "russian": (
        ("Мы ждём малыша в июне!", "Аня играет на скрипке."),
        ("Вчера получили ключи и перевезли все коробки.", "Аня работает врачом."),
        ("Я не ем ни мяса, ни рыбы.", "Аня живёт в Казани."),
        ("Сегодня опять шёл дождь.", "Аня вышла замуж."),
    ),
}
PAIRS: Final = tuple(
    Pair(language, said, written, supported)
    for pairs, supported in ((_SUPPORTED, True), (_UNSUPPORTED, False))
    for language, each in pairs.items()
    for said, written in each
)
LATER: Final = (
    Pair("english", "My landlord wants us out by the end of the month.", "Ann has to find a new flat.", True),
    Pair("english", "I finally handed in my thesis on Tuesday.", "Ann is about to graduate.", True),
    Pair("english", "My landlord wants us out by the end of the month.", "Ann breeds horses.", False),
    Pair("english", "I finally handed in my thesis on Tuesday.", "Ann broke her arm.", False),
    Pair("german", "Nächste Woche bekomme ich neue Gläser, ich sehe nichts mehr.", "Ann trägt eine Brille.", True),
    Pair("german", "Mein Mann und ich feiern heute zehn Jahre Ring am Finger.", "Ann ist verheiratet.", True),
    Pair("german", "Nächste Woche bekomme ich neue Gläser, ich sehe nichts mehr.", "Ann hat einen Garten.", False),
    Pair("german", "Mein Mann und ich feiern heute zehn Jahre Ring am Finger.", "Ann lernt Chinesisch.", False),
    Pair("french", "Je dors à peine, le bébé pleure toutes les nuits.", "Ann vient d'avoir un enfant.", True),
    Pair("french", "On m'a volé ma bicyclette devant la gare.", "Ann n'a plus de vélo.", True),
    Pair("french", "Je dors à peine, le bébé pleure toutes les nuits.", "Ann travaille dans une banque.", False),
    Pair("french", "On m'a volé ma bicyclette devant la gare.", "Ann aime l'opéra.", False),
    Pair("spanish", "Canto cada jueves con las voces de la parroquia.", "Ann está en un coro.", True),
    Pair("spanish", "El médico me ha prohibido la sal por la tensión.", "Ann es hipertensa.", True),
    Pair("spanish", "Canto cada jueves con las voces de la parroquia.", "Ann tiene un barco.", False),
    Pair("spanish", "El médico me ha prohibido la sal por la tensión.", "Ann viaja a Canadá.", False),
    Pair("russian", "Сын в сентябре пошёл в первый класс.", "У Ани ребёнок-школьник.", True),
    Pair("russian", "Не сплю без таблеток уже месяц.", "У Ани бессонница.", True),
    Pair("russian", "Сын в сентябре пошёл в первый класс.", "Аня купила машину.", False),
    Pair("russian", "Не сплю без таблеток уже месяц.", "Аня любит оперу.", False),
)
