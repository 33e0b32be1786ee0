"""Finds expressions of time in a text, and reads them relative to when it was said."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple
from unicodedata import normalize

from aforesaid.text.languages import ROMANCE, guess_language
from aforesaid.text.times.days import DAY, EAST_ASIAN, REQUESTED, Days, Direction, Rules, western
from aforesaid.text.times.figures import figures
from aforesaid.text.times.hours import (
    NamedPart,
    PartOfDay,
    clock_of,
    likely,
    next_one,
    on,
    open_hours,
    parts_of_day,
    within,
)
from aforesaid.text.times.time_words import (
    AFTERNOON,
    AMBIGUOUS_MONTHS,
    CALENDARS,
    CHINESE_NUMBER,
    EAST_ASIAN_CLOCK,
    EAST_ASIAN_LANGUAGES,
    NUMBERS,
    calendar_words,
    east_asian_number,
    plain_calendar_words,
)
from aforesaid.text.words import UNSPACED_LANGUAGES, alternatives, fold_aligned, words_of


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


_WORDS: Final = {word: number for numbers in NUMBERS.values() for word, number in numbers.items()} | {
    **dict.fromkeys(("half an", "half a", "einer halben", "media", "une demi", "mezz'", "полчаса"), 0.5),
    **dict.fromkeys(("a", "an", ""), 1),
}
"""Numbers in all languages: a few words do not show their language."""
_MINUTES: Final = r"minutes?|mins?|minuten?|minutos?|minuti|минут[уы]?"
_HOURS: Final = r"hours?|hrs?|stunden?|horas?|heures?|or[ae]|uur|час(?:а|ов)?"
_WRITTEN: Final = "|".join(sorted(map(re.escape, filter(None, _WORDS)), key=len, reverse=True))
_NUMBER: Final = rf"(?P<number>\d{{1,3}}|{_WRITTEN})"
_UNITS: Final = rf"(?:(?P<minutes>{_MINUTES})|(?P<hours>{_HOURS}))"
_SPACED: Final = re.compile(rf"(?<!\w)(?:in|en|dans|tra|fra|em|daqui a|over|через) {_NUMBER} {_UNITS}(?!\w)")
_ONE: Final = re.compile(r"(?<!\w)через (?P<number>)(?:(?P<minutes>минуту)|(?P<hours>час))(?!\w)")
_UNSPACED: Final = re.compile(
    rf"(?P<number>\d{{1,3}}|{CHINESE_NUMBER})(?:个)?(?:(?P<minutes>分钟|分)|(?P<hours>小时|時間))(?:后|後|以后)"
)


class Distance(NamedTuple):
    """A moment named by its distance from now, and its position in the text."""

    start: int
    end: int
    at: datetime


def moment_from_now(folded: str, said: datetime) -> Distance | None:
    """Return the moment that a folded text names by minutes or hours from `said`; None if there is none."""
    match = _SPACED.search(folded) or _ONE.search(folded) or _UNSPACED.search(folded)
    if match is None:
        return None
    written = match["number"] or ""
    count = _WORDS[written] if written in _WORDS else east_asian_number(written)
    try:
        # Counted in UTC: on the days when the clocks change, two hours later is not two hours further on the clock.
        at = said.astimezone(UTC) + count * (_HOUR / 60 if match["minutes"] else _HOUR)
        return Distance(match.start(), match.end(), at.astimezone(said.tzinfo))
    except OverflowError:
        return None


_HOUR: Final = timedelta(hours=1)
_NOON: Final = 12
_LAST_HOUR: Final = 23
_LAST_MINUTE: Final = 59
_HALF_AN_HOUR: Final = 30
_UNREAD: Final = "\0"
_HALVES: Final = frozenset({"am", "a.m", "pm", "p.m"})

_BETWEEN: Final = re.compile(r",? ?(?:the|den|dem|der|el|le|il|dia|de|op)?,? ?\(?")
"""Between a weekday and its date: "am Montag, den 8. Juni"."""

Ways = Callable[[int], Direction]
"""The direction in which a day that is named at a position of a text is looked for."""
Span = tuple[int, int]
"""Start and end position in a text."""


class When(NamedTuple):
    """A period without its end: a day, a week, a month, a year, or the hour that begins at a moment."""

    start: datetime
    end: datetime
    timed: bool = False
    """Whether the text names the time of day."""


class Named(NamedTuple):
    """A time that a text names."""

    when: When
    spans: tuple[Span, ...]
    """Positions of the words that name it."""
    assumed: bool = False
    """Whether morning or evening is assumed, as in "tomorrow at 7"."""


class PlacedDays(NamedTuple):
    """Days, and where in the text they are named."""

    start: int
    end: int
    days: Days


class _Clock(NamedTuple):
    start: int
    end: int
    clock: time
    open: bool
    """Whether morning or evening is not stated."""


def find_times(
    text: str, said: datetime, towards: Direction = "nearest", language: str | None = None, *, by_words: bool = False
) -> list[When]:
    """Return the times that a text names, in order.

    `said` is when it was said, in the user's time zone. `towards` is the direction in which a weekday or a day without
    a year is looked for; with `by_words`, only where the words around it do not tell. A time of day belongs to the last
    day named before it, otherwise to the first day. Ambiguous dates such as 05/08/2026 are left out; a bare hour
    ("at 7") is read only with a day in the future.
    """
    language = language or guess_language(text)
    plain = normalize("NFC", text)
    ways = directions(plain, language, towards) if by_words else None
    return [named.when for named in read_times(fold_aligned(plain), said, towards, language, ways)]


def read_times(
    folded: str, said: datetime, towards: Direction, language: str, ways: Ways | None = None, *, requested: bool = False
) -> list[Named]:
    """Return the times that a folded text names, with their positions.

    `ways` tells the direction at a position of the text. `requested`: the text asks for something at that time. Then
    parts of a day and bare hours without a day are read too, and "in two weeks" means a day.
    """
    soon = moment_from_now(folded, said)
    if soon is not None:
        return [Named(_hour_from(soon.at), ((soon.start, soon.end),))]
    named, rest = find_days(folded, said.date(), ways or towards, language, REQUESTED if requested else ())
    if requested and not named and _UNREAD in rest:
        # There is an unreadable date, such as 05/08 or 30 February. Its hour alone would give the wrong day.
        return []
    clocks = _clocks(rest, language, bare=towards == "future")
    parts = parts_of_day(folded, language) if requested else []
    if not named:
        return _without_a_day(said, clocks, parts, requested=requested)
    found = []
    for number, placed in enumerate(named):
        following = named[number + 1].start if number + 1 < len(named) else len(folded) + 1
        here = range(0 if number == 0 else placed.start, following)
        mine = next((clock for clock in clocks if clock.start in here), None)
        part = next((part for part in parts if part.start in here), None)
        days = placed.days
        if requested and days.exact is not None:
            days = Days(days.exact)
        spans: list[Span] = [(placed.start, placed.end), *([part[:2]] if part else [])]
        if days.length != DAY or (mine is None and part is None):
            found.append(Named(_whole(said, days), tuple(spans)))
        elif mine is None and part is not None:
            found.append(Named(_hour_from(within(part.part, days.first, said)), tuple(spans)))
        elif mine is not None:
            when, assumed = _at(said, days.first, mine, None if part is None else part.part)
            found.append(Named(when, (*spans, (mine.start, mine.end)), assumed))
    return found


def find_days(
    text: str, today: date, towards: Direction | Ways, language: str, more: Rules = ()
) -> tuple[list[PlacedDays], str]:
    """Return the days that a folded text names, in order, and the text with those words blanked out.

    The most certain patterns come first, then `more`; no part of the text is used twice. A weekday right before its
    date, as in "Monday, 8 June", is part of it.
    """
    ways: Ways = towards if callable(towards) else lambda _position: towards
    found: list[PlacedDays] = []
    whole = text
    for start, end, days in [*figures(text, today, ways, language, requested=bool(more))]:
        found += [] if days is None else [PlacedDays(start, end, days)]
        text = text[:start] + _UNREAD * (end - start) + text[end:]
    for pattern, resolve in (*(EAST_ASIAN if language in EAST_ASIAN_LANGUAGES else western(language)), *more):
        for match in pattern.finditer(text):
            days = resolve(match, today, ways(match.start()))
            if days is not None:
                found.append(PlacedDays(match.start(), match.end(), days))
            elif more and not any(character.isdecimal() for character in match[0]):
                continue  # a word that is no date here, as "may"
            # A day that does not exist, such as 30 February, is not read as something else either.
            text = text[: match.start()] + _UNREAD * len(match[0]) + text[match.end() :]
    found.sort()
    named_twice = {
        number
        for number, (day, dated) in enumerate(pairwise(found))
        if day.days.length == dated.days.length == DAY
        and day.days.first.weekday() == dated.days.first.weekday()
        and _BETWEEN.fullmatch(whole, day.end, dated.start)
    }
    return [placed for number, placed in enumerate(found) if number not in named_twice], text


def _clocks(text: str, language: str, *, bare: bool) -> list[_Clock]:
    """Return the times of day that a text names, in order; with `bare`, hours such as "at 7" too."""
    patterns: Iterable[re.Pattern[str]] = [EAST_ASIAN_CLOCK]
    if language not in EAST_ASIAN_LANGUAGES:
        patterns = map(re.compile, CALENDARS.get(language, CALENDARS["english"]).clock)
    found = [
        _Clock(match.start(), match.end(), clock, open=False)
        for pattern in patterns
        for match in pattern.finditer(text)
        if (clock := _clock(match.groupdict())) is not None
    ]
    for hour in open_hours(text, language) if bare else ():
        if any(hour.start < clock.end and hour.end > clock.start for clock in found):
            continue
        clock = clock_of(hour, language, east_asian_number(hour.groups.get("h") or "0"))
        if clock is not None:
            found.append(_Clock(hour.start, hour.end, clock, open=True))
    return sorted(found)


def _clock(groups: dict[str, str | None]) -> time | None:
    """Return a time of day; None if it does not exist."""
    half = groups.get("half") or ""
    if groups.get("h") is None:
        return time(_NOON) if half == "noon" else time()
    hour = east_asian_number(groups["h"] or "")
    minute = _HALF_AN_HOUR if groups.get("m") == "半" else int(groups.get("m") or 0)
    if hour > _NOON and half in _HALVES:
        return None
    if half in AFTERNOON and hour < _NOON:
        hour += _NOON
    elif half in {"am", "a.m"} and hour == _NOON:
        hour = 0
    return time(hour, minute) if hour <= _LAST_HOUR and minute <= _LAST_MINUTE else None


def _without_a_day(said: datetime, clocks: list[_Clock], parts: list[NamedPart], *, requested: bool) -> list[Named]:
    """Return a time of day without a day: today, or if requested, its next occurrence."""
    part = parts[0] if parts else None
    if not requested:
        return [Named(_at(said, said.date(), clock, None)[0], ()) for clock in clocks if not clock.open][:1]
    if not clocks:
        if part is None:
            return []
        at = within(part.part, said.date(), said)
        if at.timestamp() <= said.timestamp():
            at = within(part.part, said.date() + DAY, said)
        return [Named(_hour_from(at), (part[:2],))]
    clock = clocks[0]
    spans: tuple[Span, ...] = ((clock.start, clock.end), *((part[:2],) if part else ()))
    if clock.open and part is None:
        next_time = next_one(clock.clock, said)
        return [] if next_time is None else [Named(_hour_from(next_time), spans, clock.clock.hour <= _NOON)]
    when, assumed = _at(said, said.date(), clock, None if part is None else part.part)
    if when.start.timestamp() <= said.timestamp():
        when, assumed = _at(said, said.date() + DAY, clock, None if part is None else part.part)
    return [Named(when, spans, assumed)]


def _at(said: datetime, day: date, clock: _Clock, part: PartOfDay | None) -> tuple[When, bool]:
    """Return a time on a day, and whether morning or evening is assumed."""
    if not clock.open:
        return _hour_from(on(day, clock.clock, said.tzinfo)), False
    if day == said.date() and part is None and clock.clock.hour <= _NOON:
        # "Today at 7" is the next one of both; when both are over, it stays in the past, where the caller sees it.
        ahead = next_one(clock.clock, said)
        if ahead is not None and ahead.date() == day:
            return _hour_from(ahead), True
    meant, later, assumed = likely(clock.clock, part)
    if later and day < date.max:
        day += DAY
    return _hour_from(on(day, meant, said.tzinfo)), assumed


def _hour_from(start: datetime) -> When:
    try:
        return When(start, start + _HOUR, timed=True)
    except OverflowError:  # the last hour of the calendar
        return When(start, start, timed=True)


def _whole(said: datetime, days: Days) -> When:
    try:
        end = days.first + days.length
    except OverflowError:  # the last day of the calendar
        end = days.first
    return When(datetime.combine(days.first, time(), said.tzinfo), datetime.combine(end, time(), said.tzinfo))


_TIME_WORDS: Final = plain_calendar_words().union(
    ["ago", "last", "next", "week", "weeks", "month", "months", "year", "years", "weekend", "recently"]
    + ["letzte", "letzten", "letzter", "letztes", "pasado", "pasada", "неделю", "недели", "неделе"]
    + ["上周", "下周", *calendar_words("chinese"), *calendar_words("japanese")]
)
_BEFORE_MONTH: Final = frozenset(
    {"in", "im", "en", "em", "a", "since", "until", "by", "seit", "bis", "desde", "в", "с"}
)
_YEAR: Final = 4
_MONTH: Final = re.compile(r"\d月")


def mentions_time(text: str) -> bool:
    """Return whether a text mentions a day, a week, a month or a year."""
    words = words_of(text)
    if not _TIME_WORDS.isdisjoint(words) or any(len(word) == _YEAR and word.isdecimal() for word in words):
        return True
    if not AMBIGUOUS_MONTHS.isdisjoint(words):
        return any(month in AMBIGUOUS_MONTHS and _shows_month(words, place) for place, month in enumerate(words))
    return not text.isascii() and _MONTH.search(text) is not None


def _shows_month(words: list[str], place: int) -> bool:
    """Return whether a number or a preposition beside a word shows that it is a month: "in May", "8 May"."""
    before, after = words[max(place - 1, 0) : place], words[place + 1 : place + 2]
    return any(word[0].isdecimal() for word in before + after) or not _BEFORE_MONTH.isdisjoint(before)


LONGEST_REQUEST: Final = 2_000
"""Maximum characters of a text that are read. A later time is not part of the request."""
_LANGUAGES: Final = (*CALENDARS, *sorted(EAST_ASIAN_LANGUAGES))
_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")
_CUT: Final = "\0"
_BEFORE_A_TIME: Final = alternatives("""
    on at in by for around the this um am im gegen ab a las la el en por de le du dans alle al il as da na no om op het
    в во на и
""")
_JOINT: Final = re.compile(
    rf"(?:(?<!\w){_BEFORE_A_TIME}\s+)*{_CUT}+(?:[\s,]*(?:\w{{1,3}}\s+){{0,2}}{_CUT}+)*",
    re.IGNORECASE,
)
_EDGES: Final = " \t\n,;:.-–—、。の"


class RequestedTime(NamedTuple):
    """The time of a request."""

    when: When
    assumed: bool
    """Whether morning or evening is assumed, as in "tomorrow at 7"."""
    rest: str
    """The text without the words that name the time."""


def read_requested_time(text: str, said: datetime) -> RequestedTime | None:
    """Return the first time that a request names, relative to `said`; None if there is none.

    The language of the text is tried first, then the others, since requests are short and mix languages. A complete
    date may be in the past; other times are taken to be in the future where the words allow it.
    """
    plain = normalize("NFC", text)[:LONGEST_REQUEST]
    written = _ISO.search(plain)
    if written is not None and (exact := _exact(written[0], said)) is not None:
        return RequestedTime(exact, assumed=False, rest=_without(plain, [written.span()]))
    folded = fold_aligned(plain)
    guessed = guess_language(plain)
    for language in dict.fromkeys((guessed, "english", *_LANGUAGES)):
        found = read_times(folded, said, "future", language, requested=True)
        if found:
            named = found[0]
            return RequestedTime(named.when, named.assumed, _without(plain, named.spans))
    return None


def _exact(written: str, said: datetime) -> When | None:
    """Parse a moment in ISO 8601; without an offset it is in the time zone of `said`."""
    try:
        moment = datetime.fromisoformat(written.rstrip(".,;:!?)"))
        local = moment.replace(tzinfo=said.tzinfo) if moment.tzinfo is None else moment.astimezone(said.tzinfo)
        return When(local, local + (datetime(1, 1, 1, 1) - datetime(1, 1, 1)), timed=True)  # noqa: DTZ001 - one hour
    except (ValueError, OverflowError):
        return None


def _without(text: str, spans: list[Span] | tuple[Span, ...]) -> str:
    """Remove spans from a text, with the prepositions before them."""
    for start, end in spans:
        text = text[:start] + _CUT * (end - start) + text[end:]
    return " ".join(_JOINT.sub(" ", text).split()).strip(_EDGES)
