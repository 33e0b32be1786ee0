"""Stop words of each language: words without content of their own.

They show the language of a text, and are dropped from a query where other words remain. The stems of stored messages
depend on these lists, through `languages.index_language`: changing one of them needs a rebuild of the keyword index.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from aforesaid.text.folding import fold

_STOP_WORDS: Final = {
    "english": """
        a about after all also am an and any are aren as at be because been before being both but by can could couldn
        d did didn do does doesn doing don down each few for from had hadn has hasn have having he her here hers him his
        how i if in into is isn it its just ll m me might more most must my no nor not of off on once only or other our
        ours out over own re s same shall she should shouldn so some such t than that the their theirs them then there
        these they this those through to too under until up ve very was wasn we were weren what when where which while
        who whom whose why will with won would wouldn you your yours
    """,
    "german": """
        aber als am an auch auf aus bei bin bis bist da dann das dass dein deine dem den der des die dir du ein eine
        einem einen einer er es euch fur hab habe haben hast hat hatte hier ich ihm ihn ihr ihre im in ist ja kann kein
        keine man mein meine mich mir mit nach nicht noch nur ob oder ohne schon sehr sein seine sich sie sind so uber
        um und uns unser vom von vor wann war waren warum was wegen weil welche wem wen wenn wer werden wie wieder wir
        wird wo wurde zu zum zur
    """,
    "spanish": """
        al algo como con cual cuando cuanto de del desde donde el ella ellos en entre era eres es esa ese eso esta estaba
        estan estas este esto estoy fue ha han has hay he la las le les lo los mas me mi mis mucho muy nada no nos o os
        para pero por porque que quien se ser si sin sobre son soy su sus tambien te tengo tiene tu tus un una uno unos y
        ya yo
    """,
    "french": """
        ai alors au aussi aux avec avons avez c ce ces cette ceux comme d dans de des du elle elles en est et ete etait
        eu fait il ils j je l la le les leur lui ma mais me meme mes moi mon n ne nos notre nous on ont ou par pas plus
        pour pourquoi qu quand que quel quelle qui s sa sans se ses si son sont suis sur ta te tes toi ton tu un une vos
        votre vous y
    """,
    "italian": """
        ad ai al alla anche avevo avuto c che chi ci come con cosa cui da dal dalla dei del della delle di dove e ed era
        essere fatto gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi mia mio molto ne nei nel nella noi
        non o per perche piu quale quando quando questo qui se sei si sono su sua suo ti tu tuo un una uno voi
    """,
    "portuguese": """
        ao aos as com como da das de dela dele do dos e ela ele eles em entre era essa esse esta estou eu foi ha isso ja
        lhe mais mas me meu meus minha muito na nao nas nem no nos o os ou para pela pelo por porque qual quando que quem
        se sem ser seu sua sao tambem te tem tenho ter tu um uma voce voces
    """,
    "dutch": """
        aan al als bij dan dat de deze die dit doen door dus een en er geen had heb hebben heeft het hier hij hoe hun ik
        in is ja je jij kan maar me meer met mij mijn na naar niet nog nu of om omdat ons ook op over te toen tot u uit
        van veel voor waar waarom wanneer want waren was wat we wel werd wie wij wil wordt ze zij zijn zo zou
    """,
    "russian": """
        а без был была были было быть в вам вас весь во вот все всё вы где да для до его ее её если есть еще ещё же за и
        из или им их к как когда кто ли мне мой моя мы на над нас не него нет ни но ну о об он она они оно от очень по
        под при про с со так там то тоже только ты у уже что чтобы эта эти это этот я
    """,
    "arabic": """
        أن أنا أنت أو أي إلى إن الذي التي ثم حتى ذلك على عن عند في قد كان كانت كل كما كيف لا لم لن ليس ما ماذا متى مع من
        منذ نحن هذا هذه هل هم هنا هو هي و يا
    """,
}


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, folded as in the keyword index; empty for a language without a list."""
    return frozenset(fold(_STOP_WORDS.get(language, "")).split())
