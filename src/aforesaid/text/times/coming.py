"""Decides whether the days of a text lie ahead or behind, by the words around them.

Tense, "since" and "until", and verbs of planning tell it: "I started on Monday" speaks of the last Monday, "I have
registered for the race on 19 October" of the next October. Everything that reads dates in statements asks this module.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, NamedTuple
from unicodedata import normalize

from aforesaid.text.languages import ROMANCE, guess_language
from aforesaid.text.scripts import UNSPACED_LANGUAGES
from aforesaid.text.times.days import Direction


class _Verbs(NamedTuple):
    """Patterns of a language, for text in lower case with its accents; people leave out accents, so both are listed."""

    since: str
    """Before a day that is over: "since Monday"."""
    ahead: str
    """Forms that are not used of the past: "will", "am going to", and what starts or departs in the present tense."""
    arranged: str
    """Arranging is done before what is arranged: "booked", "registered", "planned"."""
    over: str
    """Forms of the past."""
    limit: str
    """Before a day that lies ahead, unless the verb tells otherwise: "until Friday", "from Monday on"."""
    done_on: str = "(?!)"
    """Arranging on a day, not for one: "I signed up on Monday"."""


_EVENTS_EN: Final = (
    "appointment|exam|test|meeting|interview|flight|wedding|surgery|operation|deadline|concert|party|race"
)
_BE: Final = "(?:am|are|is|i'm|we're|you're|they're|he's|she's|it's)"
_VERBS: Final = {
    "english": _Verbs(
        since=r"since (?:(?:about|around|early|late|last|the|\d\S*|"
        r"of) )*[a-z0-9]+(?<!since i)(?<!since we)(?<!since he)"
        r"(?<!since it)(?<!since she)(?<!since you)(?<!since they)(?<!since my)(?<!since the)|ever since",
        ahead=rf"will|won't|(?<!was )(?<!were )going to|gonna|about to|\w+'ll|"
        rf"{_BE} (?:still |finally |also |both |all |not )?(?:getting|having|moving|starting|expecting|flying|"
        r"travell?ing|leaving|coming|visiting|opening|turning|retiring|graduating|playing|due|off)|"
        r"(?<!did )(?<!n't )(?<!not )(?<!to )gets? (?:\w+ )?(?:(?:re)?married|engaged|divorced|promoted|released|"
        r"discharged|baptised|christened|ordained|confirmed|evicted|deployed|operated)|"
        rf"{_BE} being \w+[^\We]ed|(?:starts?|begins?|leaves|departs|takes place|arrives|opens|closes|expires|launches|"
        r"retires|graduates|moves|ends|flies|lands)(?! with)|(?:need|have|has) to|must|should",
        arranged=r"plan(?:ned)?|scheduled|booked|reserved|invited|arranged|postponed|agreed|decided to|"
        r"promised|offered|asked (?:\w+ )?to|wanted|supposed|expected|hoped|signed (?:\w+ )?up|registered|enrolled|"
        r"entered|"
        r"confirmed|cancel+ed|delayed|pushed|shifted|ordered|needed|tickets? (?:for|to)|reminded|"
        r"rescheduled|(?:was|were|been|got|is) (?:moved|changed|switched) (?:back )?to|"
        r"(?:moved|changed|switched) (?:it|the|my|our|that|this) (?:\S+ ){0,3}to",
        over=r"was|were|had|went|came|saw|met|died|fell|lost|won|ran|quit|broke|hurt|sold|ate|drank|drove|flew|slept|"
        r"fought|stole|spent|became|began|took|gave|left|made|did|said|told|heard|felt|kept|paid|sent|built|caught|"
        r"taught|"
        r"thought|wrote|rode|grew|knew|threw|drew|chose|woke|wore|swam|sang|shook|stood|understood|forgot|bit|hid|"
        r"(?<!have )(?<!'ve )(?<!has )(?<!'s )(?:got|bought|found)|have been|has been|'ve been|"
        r"(?<!is )(?<!are )(?<!am )(?<!'s )(?<!'re )(?<!'m )(?<!be )(?<!get )(?<!gets )(?<!getting )(?<!being )"
        r"(?<!become )(?<!becomes )(?!excited|interested|worried|scared|tired|hundred|needed|wanted|asked|supposed)"
        r"\w+[^\We]ed",
        limit=rf"(?:i|we|they|you) (?:have|'ve got) (?:an?|my|our|the) (?:\w+ ){{0,3}}(?:{_EVENTS_EN})|"
        rf"(?:{_EVENTS_EN}|birthday) is (?:on|in|next)|"
        r"until|till|by (?:the )?(?:\d|\w+day)|from \w+day|as of|starting|next|tomorrow|for (?:\w+ )?\w+day",
        done_on=r"(?:registered|booked|reserved|enrolled|ordered|confirmed|cancel+ed|signed (?:it |them )?up|"
        r"invited \w+|asked \w+)"
        r" (?:it |them |that |this |everything )?(?:on|in|back in|last)",
    ),
    "german": _Verbs(
        since=r"seit(?:dem)?",
        ahead=r"werden?|wirst|wird|werdet|heirat(?:e|et|en) (?:\w+ )?(?:am|im|an|zu|in)|"
        r"(?:beginn|start|flieg|fahr|fähr|reis|öffn|oeffn|schließ|zieh|ende|läuf|fang|fäng)(?:e|t|en|et|st)?|"
        r"muss|müssen|soll(?:en)?|will|wollen|möchte",
        arranged=r"verschoben|verlegt|geplant|gebucht|reserviert|eingeladen|verabredet|ausgemacht|vereinbart|"
        r"angemeldet|"
        r"bestellt|abgesagt|eingeschrieben|eingetragen|angesetzt|vorgemerkt|karten für|tickets? für|geschlossen|"
        r"geöffnet|"
        r"gesperrt|angekündigt",
        over=r"(?:hat|hab|habe|haben|hast|habt|ist|bin|sind|bist|"
        r"seid) (?:[\w.'’]{1,30} ){0,9}?(?:\w{0,20}ge\w{2,20}(?:t|en)|"
        r"\w+iert|verstorben|begonnen|bekommen|verkauft|verloren|vergessen|bestanden|besucht|bezahlt|erhalten|erfahren|"
        r"erzählt|entlassen|entdeckt|verletzt|verpasst|verlassen|übernommen|unterschrieben|besichtigt|erkältet|"
        r"verliebt|"
        r"beendet|erlebt|verbracht|verbrannt|zerbrochen|überlebt|übernachtet|bewor?ben|verpasst|eingestürzt|"
        r"abgestürzt)|"
        r"war|waren|warst|wurde|wurden|hatte|hatten|begann|ging|gingen|kam|kamen|fuhr|fuhren|flog|starb|fing|bekam|zog|"
        r"zogen|traf|trafen|sah|sahen|fiel|fielen|verlor|verloren|kündigte|startete|gab|blieb|schrieb|sagte|machte|"
        r"musste|"
        r"konnte|wollte|rief|(?:gekündigt|angefangen|eingezogen|umgezogen|gestorben|kennengelernt)",
        limit=r"(?:hab|habe|haben|hat) (?:[\w.]+ ){0,6}(?:termin|prüfung|pruefung|klausur|vorstellungsgespräch|meeting|"
        r"besprechung|urlaub|flug|arzttermin|zahnarzttermin|hochzeit)|"
        r"(?:termin|prüfung|klausur|hochzeit|op|flug|konzert) ist|"
        r"bis|ab|von \w+ an|morgen|nächste[nrs]?|für (?:\w+ )?\w+(?:tag|woch)",
        done_on=r"(?!)",
    ),
    "spanish": _Verbs(
        since=r"desde(?! el \w+ que viene)",
        ahead=r"(?:voy|vas|va|vamos|vais|van) a \w+r(?:me|se|nos|lo|la)?|me caso|se casan?|nos casamos|"
        r"(?!(?:mi|tir|reti|gi|admi|pa|prepa|repa|sepa|compa|decla|espe|supe|recupe|ope)r[eé]\b)"
        r"\w+(?:ar|er|ir|dr|br)(?:é|á|ás|án|emos)|"
        r"(?:empiez[oa]n?|empezamos a partir|comienz[oa]n?|sale|salgo|salimos el|llega|vuelo|viajo|termina|abre|"
        r"inaugura)|"
        r"(?:tengo|tenemos|tiene|tienen|hay) que|debo",
        arranged=r"reserv(?:é|e|amos|ado|ada)|apunt(?:é|ado|ada)|inscrib\w+|inscrito|inscrita|previst[oa]s?|"
        r"planead[oa]|"
        r"planeamos|programad[oa]s?|quedamos|quedado|invitad[oa]s?|aplaz\w+|pospuest[oa]|"
        r"cambi\w+ (?:\w+ ){0,3}(?:al?|para)|entradas para|billetes para|anul\w+|cancel\w+|convocad[oa]|citad[oa]s?|"
        r"anotad[oa]",
        over=r"(?:he|has|ha|hemos|habéis|habeis|han|había|habia) (?:\w+ )?\w+(?:ado|ido|to|cho|so)|\w{2,}(?:ó|aron|"
        r"ieron|eron)|"
        r"(?!(?:así|ahí|allí|aquí)\b)\w{2,}í|\w{2,}é(?<!qué)(?<!porqué)(?<!café)(?<!bebé)(?<!até)|"
        r"empece|compre|perdi|murio|nacio|cayo|fue|fui|fuimos|fueron|hice|hizo|hicimos|hicieron|tuve|tuvo|tuvimos|"
        r"tuvieron|"
        r"vine|vino|vinimos|llegó|llego|estuve|estuvo|estuvimos|estuvieron|pude|pudo|puse|puso|dije|dijo|traje|trajo|"
        r"supe|"
        r"quise|vi|vio|vimos|di|dio|conocí|conoci|era|eran|estaba|estaban|había|tenía|encant[oó]",
        limit=r"(?:tengo|tenemos|tiene) (?:\w+ ){0,3}(?:cita|examen|reunión|reunion|boda|vuelo|entrevista|médico|"
        r"medico|dentista|"
        r"concierto|operación|fiesta|viaje)|(?:cita|examen|boda|vuelo|reunión|operación) es|hasta|a partir de|"
        r"antes de|para el|que viene|próxim[oa]|mañana",
        done_on=r"(?:reservé|me apunté|me inscribí|reservamos|cancelé) (?:el|en) ",
    ),
    "french": _Verbs(
        since=r"depuis",
        ahead=r"(?:vais|vas|va|allons|allez|vont) (?:[sm]e |[smt]'|nous |vous )?\w+(?:er|ir|re)|[ms]e marie(?:nt)?|"
        r"nous marions|"
        r"(?!(?:vrai|frai|pondra)\b)\w{2,}(?:erai|irai|drai|trai|rrai|vrai)s?|\w{2,}(?:era|ira|dra|tra|rra|"
        r"vra)s?(?<!contra)|"
        r"\w+(?:erons|irons|drons|rrons|vrons|eront|iront|dront|rront|vront)|(?:serai|sera|aurai|aura|ferai|fera|"
        r"irai|ira)s?|"
        r"(?:commence|commencent|débute|part|partent|pars|partons|arrive|arrivent|déménage|déménageons|ouvre|finit|"
        r"termine)|"
        r"dois|doit|devons|devez|faut",
        arranged=r"réservé\w*|reserve|inscrite?s?|prévue?s?|prevue?s?|planifiée?s?|programmée?s?|invitée?s?|"
        r"reportée?s?|"
        r"repoussée?s?|décalée?s?|annulée?s?|billets? pour|fixée?s?|convoquée?s?",
        over=r"(?:ai|as|a|avons|avez|ont|m'a|t'a|l'a|n'a|j'ai) (?:(?:pas|déjà|enfin|bien|tous|tout|aussi|encore|été) )?"
        r"(?:\w+(?:é|ée|és|ées)|\w*(?:pris|mis|dit|fait|vu|lu|bu|eu|perdu|vendu|reçu|couru|connu|voulu|pu|dû|su|fini|"
        r"choisi|"
        r"réussi|dormi|senti|ouvert|offert|écrit|conduit|appris|rendu|attendu|entendu|répondu|cassé))|"
        r"(?:suis|es|est|sommes|êtes|sont)(?: \w+)? (?:mort|parti|allé|alle|né|venu|tombé|tombe|arrivé|sorti|entré|"
        r"resté|devenu|"
        r"rentré|monté|descendu|retourné|passé|revenu)e?s?|(?:s'est|me suis|se sont|nous sommes|"
        r"t'es) (?:\w+ )?\w+(?:é|i|u|is|it)e?s?|"
        r"étai(?:s|t|ent)|étions|avai(?:s|t|ent)|avions|faisai(?:s|t|ent)|allai(?:s|t|ent)|fut|\w{2,}(?:èrent)",
        limit=r"(?:j'ai|a|avons|on a) (?:un|une|mon|notre|l') ?(?:\w+ )?(?:examen|rendez-vous|rdv|réunion|entretien|"
        r"vol|"
        r"mariage|opération|concert)|jusqu\w+|à partir de|dès|avant|pour le|prochaine?|demain",
    ),
    "italian": _Verbs(
        since=r"(?!)",
        ahead=r"(?:mi|si|ci) spos(?:o|a|ano|iamo)|\w+(?:erò|irò|drò|vrò|rrò|arò|erà|irà|drà|vrà|rrà|arà|eremo|iremo|"
        r"dremo|vremo|"
        r"rremo|aremo|eranno|iranno|dranno|vranno|rranno|aranno)|"
        r"(?:inizi[oa]|iniziamo|iniziano|cominci[oa]|parto|parte|partiamo|partono|arriva|arrivo|apre|finisce|scade|"
        r"decolla|vado|"
        r"andiamo)|devo|deve|dobbiamo|devono",
        arranged=r"prenotat[oaie]|iscritt[oaie]|previst[oaie]|pianificat[oaie]|programmat[oaie]|invitat[oaie]|"
        r"rimandat[oaie]|"
        r"rinviat[oaie]|spostat[oaie]|annullat[oaie]|biglietti per|fissat[oaie]|convocat[oaie]|ordinat[oaie]",
        over=r"(?:ho|hai|ha|abbiamo|avete|hanno) (?:(?:già|gia|appena|finalmente|anche|sempre|tutti|mai) )?(?!molto|"
        r"tanto|tutto|"
        r"quanto|freddo|quattro|questo)\w+(?:ato|uto|ito|eso|rso|iso|uso|sso|tto|sto|rto|lto|nto)|"
        r"(?:sono|sei|è|e'|siamo|siete) (?:\w+ )?(?!sposat|allergic|malat|content|stat[oa] promess)\w+(?:at|ut|it|tt|"
        r"rs|st|rt|nt|es)"
        r"[oaie](?<!molto)(?<!tutto)(?<!questa)(?<!questo)(?<!contento)(?<!contenta)|era|ero|erano|eravamo|aveva|"
        r"avevo|avevano|"
        r"andava|faceva|stava|\w{2,}(?:arono|irono|erono)|morì|nacque|fu|cadde|perse|vinse",
        limit=r"(?:ho|abbiamo|ha) (?:un|una|un'|il|la|l')? ?(?:\w+ )?(?:esame|appuntamento|riunione|colloquio|volo|"
        r"matrimonio|"
        r"visita|concerto|operazione)|fino a\w*|entro|a partire da\w*|prima di|prossim[oa]|domani",
    ),
    "portuguese": _Verbs(
        since=r"desde",
        ahead=r"(?:vou|vai|vamos|vão|vao) (?:[mst]e )?\w+r(?:-se)?|me caso|se casam?|"
        r"(?!(?:ti|vi|reti|pa|prepa|repa|sepa|compa|espe|supe)rei\b)\w+(?:arei|erei|irei|ará|erá|irá|aremos|eremos|"
        r"iremos|arão|erão|"
        r"irão)|(?:começ[oa]m?|comec[oa]|começam|parto|parte|sai|saio|chega|viajo|viajamos|abre|termina|volto)|"
        r"(?:tenho|temos|tem|têm) (?:que|de)|preciso|devo",
        arranged=r"reserv\w+|inscrev\w+|inscrit[oa]s?|marcad[oa]s?|marquei|marcamos|previst[oa]s?|planejad[oa]s?|"
        r"agendad[oa]s?|agendei|"
        r"convidad[oa]s?|adiad[oa]s?|adiaram|remarcad[oa]|cancelad[oa]|ingressos? para|passagens? para|combinamos|"
        r"programad[oa]s?",
        over=r"(?!(?:sei|lei|rei|hei)\b)\w{2,}ei|(?!(?:sou|vou|estou|dou)\b)\w{2,}ou|(?!(?:meu|seu|teu|museu|ateu|"
        r"europeu)\b)\w{2,}eu|"
        r"\w{2,}iu|\w{2,}(?:aram|eram|iram)|perdi|vi|vendi|nasci|conheci|saí|caí|dormi|recebi|escrevi|decidi|abri|"
        r"fui|foi|fomos|foram|fiz|fez|fizemos|tive|teve|tivemos|estive|esteve|estivemos|vim|veio|viemos|pus|pôs|"
        r"disse|trouxe|"
        r"quis|pude|soube|era|eram|estava|estavam|tinha|tinham|havia|ficamos doentes",
        limit=r"(?:tenho|temos|tem) (?:\w+ ){0,3}(?:consulta|prova|exame|reunião|reuniao|casamento|voo|entrevista|"
        r"dentista|médico|"
        r"cirurgia|show)|até|ate|a partir de|antes de|que vem|próxim[oa]|amanhã",
    ),
    "dutch": _Verbs(
        since=r"sinds",
        ahead=r"ga|gaat|gaan|zal|zult|zullen|trouw(?:t|en)? (?:\w+ )?(?:op|in)|word|wordt|worden|"
        r"(?:begin|begint|beginnen|start|vertrek|vertrekt|vertrekken|vlieg|vliegt|vliegen|verhuis|verhuist|verhuizen|"
        r"komt|komen|"
        r"opent|eindigt)|moet|moeten",
        arranged=r"geboekt|gereserveerd|ingeschreven|gepland|aangemeld|afgesproken|uitgenodigd|verzet|verplaatst|"
        r"uitgesteld|"
        r"afgezegd|geannuleerd|kaartjes voor|tickets voor|besteld|opgegeven voor",
        over=r"(?:heb|hebt|heeft|hebben|ben|bent|is|zijn) (?:\S{1,30} ){0,8}?(?:\w{0,20}ge\w{2,20}(?:d|t|en)|"
        r"begonnen|verloren|"
        r"verhuisd|vertrokken|overleden|verkocht|vergeten|betaald|ontmoet|ontslagen|bezocht|verteld|herstart|gestort)|"
        r"was|waren|werd|werden|had|hadden|ging|gingen|kwam|kwamen|begon|begonnen|overleed|stierf|viel|vielen|kreeg|"
        r"kocht|"
        r"zag|zagen|reed|won|verloor|overleden",
        limit=r"(?:heb|hebben|heeft) (?:\S+ ){0,5}(?:afspraak|examen|vergadering|gesprek|bruiloft|vlucht|tandarts)|"
        r"tot|vanaf|voor (?:\w+dag)|volgende|morgen|komende",
    ),
    "russian": _Verbs(
        since=r"с (?:понедельника|вторника|среды|четверга|пятницы|субботы|воскресенья|января|февраля|марта|апреля|"
        r"мая|июня|июля|"
        r"августа|сентября|октября|ноября|декабря|\d\S*)(?=.*\b(?:уже|работаю|живу|болею|учусь|не)\b)",
        ahead=r"буду|будешь|будет|будем|будете|будут|выход(?:ит|ят|ишь) замуж|выхожу замуж|женюсь|женится|"
        r"(?:начина(?:ю|ет|ем|ют)|начн(?:у|ет|ёт|ем)|(?:по|при|у|вы|пере)(?:еду|едет|едем|едут|лечу|летит|летим|"
        r"летят|йду|йдет|йдёт)|"
        r"улета(?:ю|ет|ем)|прилета(?:ю|ет|ем)|уезжа(?:ю|ет|ем)|приезжа(?:ю|ет|ем|ют)|переезжа(?:ю|ет|ем)|лечу|летим|"
        r"еду|едем|"
        r"открыва(?:ется|ют)|начинается)|надо|нужно|должен|должна|должны|собира(?:юсь|ется|емся)",
        arranged=r"записал(?:ся|ась|ись)|забронировал[аи]?|заказал[аи]?|назначен[аоы]?|запланирован[аоы]?|"
        r"запланировал[аи]?|"
        r"перенес(?:ли|ла|ен|ена|ено|ены)|перенёс|пригласил[аи]?|приглашен[аы]?|купил[аи]? билеты?|договорил(?:ся|"
        r"ась|ись)|отменил[аи]?|"
        r"зарегистрировал(?:ся|ась|ись)|билеты? на",
        over=r"(?!(?:отдел|журнал|канал|вокзал|материал|филиал|персонал|сериал|финал|начала|дела|мотоцикл)\w*\b)"
        r"\w{2,}[аиеуыяё]л(?:а|о|и)?(?:ся|сь)?|умер(?:ла|ли)?|был[аои]?|ш(?:ёл|ла|ли)|\w+ш(?:ёл|ел|ла|ли)|смог(?:ла|"
        r"ли)?|"
        r"привык(?:ла|ли)?|погиб(?:ла|ли)?|\w+н[её]с(?:ла|ли)?",
        limit=r"до|к (?:понедельнику|вторнику|среде|четвергу|пятнице|субботе|воскресенью)|завтра|следующ\w+|"
        r"на (?:понедельник|"
        r"вторник|среду|четверг|пятницу|субботу|воскресенье)",
    ),
    "arabic": _Verbs(
        since=r"منذ",
        ahead=r"سوف|س[أانيت]\w{2,}|موعدي|لدي (?:موعد|امتحان|اجتماع)|عندي (?:موعد|امتحان|اجتماع)",
        arranged=r"حجزت|حجزنا|سجلت|سجلنا|خططت|خططنا|دعيت|تأجل\w*|تاجل\w*",
        over=r"كان|كانت|كنت|كنا|بدأت|بدات|بدأ|بدأنا|توفي|توفيت|مات|ماتت|ولد|ولدت|سافرت|سافرنا|ذهبت|ذهبنا|اشتريت|"
        r"اشترينا|زرت|زرنا|"
        r"انتقلت|انتقلنا|فقدت|خسرت|تزوجت|تركت|انهار|انهارت|وقع|وقعت|رأيت|قابلت",
        limit=r"حتى|قبل|ابتداء من|اعتبارا من",
    ),
    "chinese": _Verbs(
        since=r"从?(?:周|星期|礼拜)[一二三四五六日天]以来|自从",
        ahead=r"要(?!求)|别忘|记得|将|会(?!议)|打算|准备|计划|预定|截止|之前|必须|得在|出发",
        arranged=r"报名|报了名|预约|预订|订了|订好|安排|约了|约好|改到|推迟|定在",
        over=r"了|过(?!年|节)|去世|刚刚|已经|曾",
        limit=r"之前|以前",
    ),
    "japanese": _Verbs(
        since=r"曜日?から(?:ずっと|働いて|住んで)|以来",
        ahead=r"予定|つもり|しなければ|までに|これから|ます(?!か)(?<!ています)|締め?切り",
        arranged=r"予約|申し込|約束|招待|延期|変更|決まり|取りました",
        over=r"ました|でした|だった|[っいんしきりけせえべめれ]た(?:[。、!！]|$|よ|の|ん|けど|から)|なった|った(?![らり])|亡くな",
        limit=r"までに|まで",
    ),
}
_ANYWHERE: Final = re.compile(
    r"\b(?:ska|skal|skall|kommer att|kommer til å|kommer til at|będę|będzie(?:sz|my|cie)?|będą|"
    r"\w+(?:[ae]ca[ğk]|ece[ğk]|acağ|eceğ)\w*)\b"
)
"""What is to come, in languages whose words for days are not read."""
_NAME: Final = re.compile(r"\bWill\b")
_SENTENCE_ENDS: Final = re.compile(r"(?<![\d\W])[.!?;…]+(?=\s|$)|(?<=[\"'”)])[.!?]+|[!?;\n。！？]+")
_CLAUSE_ENDS: Final = re.compile(
    r"[,，、–—:]|\b(?:and|but|und|aber|y|pero|et|mais|ma|e|mas|en|maar|и|но|а|so|because|weil|porque|parce que)\b"
)


def directions(text: str, language: str, usual: Direction = "nearest") -> Callable[[int], Direction]:
    """Return the function that tells in which direction the day at a position of a text lies.

    The clause that names the day decides, then its sentence; `usual` if neither tells. `text` is in NFC.
    """
    lowered = _lowered(text)
    verbs = _related(language)
    sentences = [0, *(match.end() for match in _SENTENCE_ENDS.finditer(lowered)), len(lowered)]

    @cache
    def of_part(start: int, end: int) -> Direction | None:
        return _told(lowered[start:end], verbs)

    def at(position: int) -> Direction:
        start, end = _around(position, sentences)
        clauses = [start, *(match.end() for match in _CLAUSE_ENDS.finditer(lowered, start, end)), end]
        return of_part(*_around(position, clauses)) or of_part(start, end) or usual

    return at


def direction_of(text: str, usual: Direction = "nearest") -> Direction:
    """Return the direction in which a text's words say that its days lie: `usual` if they do not tell.

    "Rex died on Sunday" speaks of the last Sunday, and "we fly on Sunday" may mean the next one.
    """
    plain = normalize("NFC", text)
    return _told(_lowered(plain), _related(guess_language(plain))) or usual


def _lowered(text: str) -> str:
    """Return a text in lower case, of the same length. "Will" with a capital letter is somebody's name."""
    named = _NAME.sub("    ", text).replace("’", "'")
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in named)


def _around(position: int, edges: Sequence[int]) -> tuple[int, int]:
    """Return the two edges that a position lies between."""
    place = min(bisect_right(edges, position), len(edges) - 1)
    return edges[place - 1], edges[place]


def _told(text: str, languages: Sequence[_Patterns]) -> Direction | None:
    """Return the direction by the first of several languages that tells one."""
    for verbs in languages:
        if verbs.since.search(text):
            return "past"
        if verbs.ahead.search(text) or _ANYWHERE.search(text):
            return "future"
        if verbs.arranged.search(text) and not verbs.done_on.search(text):
            return "future"
        if verbs.over.search(text):
            return "past"
        if verbs.limit.search(text):
            return "future"
    return None


class _Patterns(NamedTuple):
    since: re.Pattern[str]
    ahead: re.Pattern[str]
    arranged: re.Pattern[str]
    over: re.Pattern[str]
    limit: re.Pattern[str]
    done_on: re.Pattern[str]


@cache
def _patterns(language: str) -> _Patterns:
    verbs = _VERBS.get(language, _VERBS["english"])
    form = "{}" if language in UNSPACED_LANGUAGES else r"(?<!\w)(?:{})(?!\w)"
    return _Patterns(*(re.compile(form.format(pattern)) for pattern in verbs))


@cache
def _related(language: str) -> tuple[_Patterns, ...]:
    """Return the patterns of a language, and of those that a short text of it may be taken for."""
    alike = [other for other in ROMANCE if other != language] if language in ROMANCE else []
    return tuple(map(_patterns, (language, *alike)))
