"""Whether a day lies ahead or behind follows from the words around it: tense, since and until, planning.

The days of the tables are those of something said on Wednesday, 15 April 2026.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aforesaid.text.times.find import direction_of, find_times

SAID = datetime(2026, 4, 15, 12, 0, tzinfo=UTC)

PAST = """
Since Monday I work at the harbour. | 2026-04-13
I started at the bakery on Monday. | 2026-04-13
Our roof collapsed on Sunday night. | 2026-04-12
I began my new job on 19 October. | 2025-10-19
We took the kids to the zoo on Saturday. | 2026-04-11
I have been ill since Sunday. | 2026-04-12
She left him in June. | 2025-06-01
I gave up smoking on 1 September. | 2025-09-01
I signed up on Monday. | 2026-04-13
The shop was open until Friday. | 2026-04-10
He told me on Friday that he is ill. | 2026-04-10
We've had a new boss since October. | 2025-10-01
hab am montag in der klinik angefangen | 2026-04-13
Seit Montag arbeite ich bei der Post. | 2026-04-13
Das Dach ist Sonntag Nacht eingestürzt. | 2026-04-12
Ich habe im Oktober gekündigt. | 2025-10-01
Opa starb am 19. Oktober. | 2025-10-19
Am Samstag waren wir im Zoo. | 2026-04-11
Wir haben uns am Freitag kennengelernt. | 2026-04-10
Ich habe am Dienstag die Prüfung bestanden. | 2026-04-14
Seit dem 1. September wohne ich in Bonn. | 2025-09-01
Am Sonntag fiel bei uns der Strom aus. | 2026-04-12
Mein Auto wurde am Freitag gestohlen. | 2026-04-10
Desde el lunes trabajo en el puerto. | 2026-04-13
empecé el lunes en la flota | 2026-04-13
El techo se cayó el domingo. | 2026-04-12
Mi abuela murió el 19 de octubre. | 2025-10-19
Nos mudamos a Cádiz en junio y nos encantó. | 2025-06-01
He perdido el móvil el viernes. | 2026-04-10
Estuvimos en el zoo el sábado. | 2026-04-11
Compré la casa en septiembre. | 2025-09-01
Vivo en Bilbao desde octubre. | 2025-10-01
Ayer no, el lunes me llamaron. | 2026-04-14 2026-04-13
Depuis lundi je travaille au port. | 2026-04-13
J'ai commencé lundi à la boulangerie. | 2026-04-13
Le toit s'est effondré dimanche. | 2026-04-12
Mamie est morte le 19 octobre. | 2025-10-19
On a visité le zoo samedi. | 2026-04-11
J'ai perdu mon portable vendredi. | 2026-04-10
Nous avons déménagé en juin. | 2025-06-01
J'habite à Lyon depuis octobre. | 2025-10-01
Vendredi il faisait froid, j'étais malade. | 2026-04-10
il tetto ha ceduto domenica notte | 2026-04-12
Ho iniziato lunedì al porto. | 2026-04-13
La nonna è morta il 19 ottobre. | 2025-10-19
Sabato siamo andati allo zoo. | 2026-04-11
Ho perso il telefono venerdì. | 2026-04-10
Ci siamo trasferiti a Pisa a giugno. | 2025-06-01
Abbiamo comprato casa a settembre. | 2025-09-01
Mi sono rotta il braccio domenica. | 2026-04-12
Desde segunda trabalho no porto. | 2026-04-13
Comecei na segunda na padaria. | 2026-04-13
O telhado caiu no domingo. | 2026-04-12
A avó morreu em 19 de outubro. | 2025-10-19
No sábado fomos ao zoológico. | 2026-04-11
Perdi o celular na sexta-feira. | 2026-04-10
Mudamos para o Porto em junho, foi difícil. | 2025-06-01
Sinds maandag werk ik in de haven. | 2026-04-13
Ik ben maandag begonnen bij de bakker. | 2026-04-13
Het dak is zondag ingestort. | 2026-04-12
Oma overleed op 19 oktober. | 2025-10-19
Zaterdag zijn we naar de dierentuin geweest. | 2026-04-11
Ik heb vrijdag mijn telefoon verloren. | 2026-04-10
С понедельника я работаю в порту, уже привык. | 2026-04-13
В понедельник я начал работать в порту. | 2026-04-13
В воскресенье обрушилась крыша. | 2026-04-12
Бабушка умерла 19 октября. | 2025-10-19
В субботу мы ходили в зоопарк. | 2026-04-11
В пятницу я потеряла телефон. | 2026-04-10
Мы переехали в июне. | 2025-06-01
منذ يوم الاثنين اعمل في الميناء | 2026-04-13
بدأت العمل يوم الاثنين | 2026-04-13
توفيت جدتي يوم الاحد | 2026-04-12
周一我开始在港口上班了。 | 2026-04-13
奶奶周日去世了。 | 2026-04-12
我星期六去了动物园。 | 2026-04-11
月曜日に新しい仕事を始めました。 | 2026-04-13
祖母は日曜日に亡くなりました。 | 2026-04-12
土曜日に動物園に行った。 | 2026-04-11
"""

FUTURE = """
I registered for the half marathon on 19 October. | 2026-10-19
We booked a cabin for March. | 2027-03-01
I've signed up for the race on 3 March. | 2027-03-03
The operation is planned for 1 February. | 2027-02-01
He starts a new job at Siemens in March. | 2027-03-01
We're moving on Saturday. | 2026-04-18
I have to hand it in by Friday. | 2026-04-17
The exam is on 1 February. | 2027-02-01
I'm off until Monday. | 2026-04-20
The flight leaves on 19 October. | 2026-10-19
She is due on 1 October. | 2026-10-01
I quit my job. The new one starts on Monday. | 2026-04-20
From Monday I work at the harbour. | 2026-04-20
hab mich für den halbmarathon am 19. oktober angemeldet | 2026-10-19
Wir haben für März eine Hütte gebucht. | 2027-03-01
Die OP ist für den 1. Februar geplant. | 2027-02-01
Ab Montag arbeite ich bei der Post. | 2026-04-20
Ich muss es bis Freitag abgeben. | 2026-04-17
Sie fängt im März bei Siemens an. | 2027-03-01
Wir fliegen am 19. Oktober. | 2026-10-19
Die Prüfung wurde auf den 1. Februar verschoben. | 2027-02-01
Ich habe am 19. Oktober einen Termin. | 2026-10-19
Der Kurs beginnt am 1. Oktober. | 2026-10-01
Gestern gekündigt, am Montag fange ich neu an. | 2026-04-14 2026-04-20
Me he apuntado a la media maratón del 19 de octubre. | 2026-10-19
Hemos reservado una cabaña para marzo. | 2027-03-01
La operación está prevista para el 1 de febrero. | 2027-02-01
A partir del lunes trabajo en el puerto. | 2026-04-20
Empiezo en Siemens en marzo. | 2027-03-01
Tengo que entregarlo antes del viernes. | 2026-04-17
Volaremos el 19 de octubre. | 2026-10-19
Mi hermana se casa el 1 de febrero. | 2027-02-01
Tengo examen el 1 de octubre. | 2026-10-01
Je me suis inscrit au semi-marathon du 19 octobre. | 2026-10-19
On a réservé un chalet pour mars. | 2027-03-01
L'opération est prévue pour le 1er février. | 2027-02-01
À partir de lundi je travaille au port. | 2026-04-20
Il commence chez Siemens en mars. | 2027-03-01
Je dois le rendre avant vendredi. | 2026-04-17
Nous partirons le 19 octobre. | 2026-10-19
J'ai un examen le 1er octobre. | 2026-10-01
Mi sono iscritta alla mezza maratona del 19 ottobre. | 2026-10-19
Abbiamo prenotato una baita per marzo. | 2027-03-01
L'operazione è prevista per il 1 febbraio. | 2027-02-01
Inizio alla Siemens a marzo. | 2027-03-01
Devo consegnarlo entro venerdì. | 2026-04-17
Partiremo il 19 ottobre. | 2026-10-19
Ho un esame il 1 ottobre. | 2026-10-01
Inscrevi-me na meia maratona de 19 de outubro. | 2026-10-19
Reservamos uma cabana para março. | 2027-03-01
A cirurgia está marcada para 1 de fevereiro. | 2027-02-01
A partir de segunda trabalho no porto. | 2026-04-20
Começo na Siemens em março. | 2027-03-01
Tenho que entregar até sexta-feira. | 2026-04-17
Vamos viajar em 19 de outubro. | 2026-10-19
Ik heb me ingeschreven voor de halve marathon op 19 oktober. | 2026-10-19
We hebben voor maart een huisje geboekt. | 2027-03-01
De operatie is gepland op 1 februari. | 2027-02-01
Vanaf maandag werk ik in de haven. | 2026-04-20
Ik begin in maart bij Siemens. | 2027-03-01
Ik moet het voor vrijdag inleveren. | 2026-04-17
Я записалась на полумарафон 19 октября. | 2026-10-19
Мы забронировали домик на март. | 2027-03-01
Операция назначена на 1 февраля. | 2027-02-01
Начинаю работать в Сименсе в марте. | 2027-03-01
Надо сдать до пятницы. | 2026-04-17
Мы полетим 19 октября. | 2026-10-19
سأبدأ العمل يوم الاثنين | 2026-04-20
حجزت موعدا يوم الجمعة | 2026-04-17
我报名了10月19日的半程马拉松。 | 2026-10-19
周五要交报告。 | 2026-04-17
我们订了3月1日的酒店。 | 2027-03-01
10月19日のハーフマラソンに申し込みました。 | 2026-10-19
金曜日までに提出しなければなりません。 | 2026-04-17
2月1日に手術の予定です。 | 2027-02-01
"""

FRESH = """
My dad had a stroke on Sunday. | 2026-04-12
I've been vegetarian since September. | 2025-09-01
We painted the kitchen on Saturday. | 2026-04-11
The boiler broke on Friday and it's freezing. | 2026-04-10
I met Paul in June. | 2025-06-01
My gran turned ninety on 5 November. | 2025-11-05
I enrolled in a pottery class that starts on 5 November. | 2026-11-05
We have tickets for the opera on 12 March. | 2027-03-12
My parents are visiting on Saturday. | 2026-04-18
My contract ends in February. | 2027-02-01
Lena is due in October. | 2026-10-01
He passed the test on Monday, his licence arrives on Friday. | 2026-04-13 2026-04-17
Am Sonntag hatten wir einen Wasserrohrbruch. | 2026-04-12
Im November haben wir uns getrennt. | 2025-11-01
Seit Oktober bin ich in Rente. | 2025-10-01
Letztens, am Freitag, hat mein Chef gekündigt. | 2026-04-10
Ich bin am 5. November 40 geworden. | 2025-11-05
Am Samstag hab ich Paul getroffen. | 2026-04-11
Wir haben für den 5. November Karten. | 2026-11-05
Im Februar zieht meine Tochter aus. | 2027-02-01
Meine Reha startet am 5. November. | 2026-11-05
Bis Freitag brauche ich die Unterlagen. | 2026-04-17
Am 12. März werde ich operiert. | 2027-03-12
El viernes se rompió la caldera. | 2026-04-10
Mi hijo nació el 5 de noviembre. | 2025-11-05
Soy vegetariana desde septiembre. | 2025-09-01
El sábado pintamos la cocina y acabamos muertos. | 2026-04-11
Me operan el 12 de marzo. | 2027-03-12
Tenemos entradas para el 5 de noviembre. | 2026-11-05
Mi contrato termina en febrero. | 2027-02-01
Vendredi la chaudière est tombée en panne. | 2026-04-10
Mon fils est né le 5 novembre. | 2025-11-05
Je suis végétarienne depuis septembre. | 2025-09-01
J'ai rencontré Paul en juin. | 2025-06-01
On m'opère le 12 mars. | 2027-03-12
Mon contrat finit en février. | 2027-02-01
On a des billets pour le 5 novembre. | 2026-11-05
Venerdì si è rotta la caldaia. | 2026-04-10
Mio figlio è nato il 5 novembre. | 2025-11-05
Ho conosciuto Paolo a giugno. | 2025-06-01
Mi operano il 12 marzo. | 2027-03-12
Il contratto scade a febbraio. | 2027-02-01
Abbiamo i biglietti per il 5 novembre. | 2026-11-05
Na sexta-feira a caldeira quebrou. | 2026-04-10
Meu filho nasceu em 5 de novembro. | 2025-11-05
Conheci o Paulo em junho. | 2025-06-01
Vou ser operada em 12 de março. | 2027-03-12
O contrato acaba em fevereiro. | 2027-02-01
Vrijdag ging de ketel kapot. | 2026-04-10
Mijn zoon is op 5 november geboren. | 2025-11-05
Ik word op 12 maart geopereerd. | 2027-03-12
Mijn contract loopt af in februari. | 2027-02-01
В пятницу сломался котёл. | 2026-04-10
Сын родился 5 ноября. | 2025-11-05
Мы познакомились в июне. | 2025-06-01
12 марта мне делают операцию. | 2027-03-12
У нас билеты на 5 ноября. | 2026-11-05
سافرت الى مصر يوم الجمعة | 2026-04-10
سوف نسافر يوم السبت | 2026-04-18
周五锅炉坏了。 | 2026-04-10
我3月12日要做手术。 | 2027-03-12
金曜日にボイラーが壊れました。 | 2026-04-10
3月12日に手術を受けます。 | 2027-03-12
"""
"""Written after the rules, which were not tuned on it."""
FRESH_RIGHT = 54


@pytest.mark.parametrize(
    "text",
    [
        "My sister is getting married in September.",
        "My brother Tom gets married on 5 December.",
        "Tom and Anna get married on 12 June.",
        "My boss gets promoted on 1 March.",
        "The old station is being reopened on 1 March.",
        "Meine Schwester heiratet am 12. Juni.",
        "Ma sœur se marie le 12 juin.",
        "Mi hermana se casa el 12 de junio.",
        "Mia sorella si sposa il 12 giugno.",
        "Mijn zus trouwt op 12 juni.",
        "Моя сестра выходит замуж 12 июня.",
        "We’re moving to York in March.",
        "I’ll start my new job in January.",
        "They are going to sell the boat in May.",
        "Wir werden im Mai umziehen.",
        "Ma sœur va se marier en septembre.",
        "Mi hermana va a casarse en septiembre.",
        "Minha irmã vai se casar em setembro.",
        "Wij gaan in mei verhuizen.",
        "Vi ska flytta i maj.",
        "W maju będziemy się przeprowadzać.",
        "В мае мы будем переезжать.",
        "Mayısta taşınacağız.",
        "I need to see you on Friday.",
        "I booked a table for Friday.",
        "The meeting was moved to Friday.",
        "We bought tickets for Sunday.",
        "Am Sonntag ist das Café geschlossen.",
        "Ich habe für Sonntag einen Tisch reserviert.",
        "J'ai une réunion lundi.",
        "El lunes tengo médico.",
    ],
)
def test_what_is_to_come_is_noticed(text: str) -> None:
    assert direction_of(text) == "future"


@pytest.mark.parametrize(
    "text",
    [
        "My sister got married in September.",
        "We did not get married in September.",
        "We had to get married in September.",
        "Meine Schwester hat am 12. Juni geheiratet.",
        "We moved to York in March.",
        "She was getting worse in May.",
        "We were going to move in May.",
        "Will visited us in March.",
        "My knee is getting worse since May.",
        "Wir sind im Mai umgezogen, es wurde spät.",
        "Ma sœur s’est mariée en septembre.",
        "Mi hermana se casó en septiembre.",
        "Minha irmã se casou em setembro.",
        "Wij zijn in mei verhuisd.",
        "Vi flyttade i maj.",
        "Przeprowadziliśmy się w maju.",
        "Мы переехали в мае.",
        "Mayısta taşındık.",
        "",
    ],
)
def test_what_is_over_is_not(text: str) -> None:
    assert direction_of(text) != "future"


@pytest.mark.parametrize(
    "text",
    [
        "Rex died on Sunday.",
        "My sister got married on Saturday.",
        "We visited Gran on Friday.",
        "The concert on Friday was great.",
        "Unser Hund ist am Sonntag gestorben.",
        "Am Samstag habe ich den ganzen Tag gearbeitet.",
        "Mi abuelo murió el lunes.",
        "Дедушка умер в понедельник.",
    ],
)
def test_what_happened_lies_in_the_past(text: str) -> None:
    assert direction_of(text) == "past"


@pytest.mark.parametrize(
    "text",
    [
        "We fly on Sunday.",
        "I've got a meeting on Friday.",
        "I'm excited about Saturday.",
        "The gym gets crowded in January.",
        "The shop becomes flooded in January.",
        "",
    ],
)
def test_what_may_be_meant_either_way_has_no_direction(text: str) -> None:
    assert direction_of(text) == "nearest"


def test_what_is_to_come_lies_in_the_future() -> None:
    assert direction_of("We are moving on Saturday.") == "future"


def rows(table: str) -> list[tuple[str, str]]:
    split = (line.partition(" | ") for line in table.strip().splitlines())
    return [(text, expected) for text, _, expected in split]


def days(text: str) -> str:
    return " ".join(when.start.date().isoformat() for when in find_times(text, SAID, by_words=True))


@pytest.mark.req("G21")
@pytest.mark.defect("M3")
@pytest.mark.parametrize(("text", "expected"), rows(PAST))
def test_what_happened_lies_behind(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.req("G21")
@pytest.mark.defect("M3")
@pytest.mark.parametrize(("text", "expected"), rows(FUTURE))
def test_what_is_arranged_lies_ahead(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.req("G21")
def test_the_direction_of_texts_that_it_was_not_tuned_on_does_not_get_worse() -> None:
    assert sum(days(text) == expected for text, expected in rows(FRESH)) >= FRESH_RIGHT
