"""Figures are dates only where the words around them say so, in every language whose dates are read.

`said` is Wednesday, 6 May 2026.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aforesaid.text.times.find import find_times

SAID = datetime(2026, 5, 6, 15, 0, tzinfo=UTC)

DATES = """
Der Termin ist am 8.6. um 9 Uhr. | 2026-06-08
Bis 15.7. muss die Steuererklärung weg. | 2026-07-15
Ich bin vom 3.8. bis 17.8. im Urlaub. | 2026-08-03 2026-08-17
Am Montag, den 8.6., kommt der Klempner. | 2026-06-08
Die Prüfung ist am 12.6 | 2026-06-12
Unsere Hochzeit: 04.07., Standesamt Köln | 2026-07-04
Ab 1.9. arbeite ich in Bonn. | 2026-09-01
Ich fliege 19.6. nach Rom. | 2026-06-19
Oma hat am 24.5. Geburtstag. | 2026-05-24
Mein Zug fährt am 08.06.2026 um 7:12. | 2026-06-08
Der Vertrag läuft bis zum 31.12.2027. | 2027-12-31
Geboren am 3.11.1985 in Ulm. | 1985-11-03
Zahnarzt 9.6. 14:30 | 2026-06-09
Das Konzert am 20.6. ist ausverkauft. | 2026-06-20
Sehen wir uns Freitag 12.6.? | 2026-06-12
Am 1. 6. ziehe ich um. | 2026-06-01
My passport expires on 14.09.2027. | 2027-09-14
The lease ends 31.12.2026. | 2026-12-31
My flight is on 25/12. | 2026-12-25
The wedding is on 13/6/2026. | 2026-06-13
Born on 1985-11-03. | 1985-11-03
The course starts on 2026/07/01. | 2026-07-01
The deadline is 6/30. | 2026-06-30
Dentist appointment 5/28 at 9am. | 2026-05-28
We fly on Friday 19/6. | 2026-06-19
Mi cita es el 25/6. | 2026-06-25
Tengo examen el 8/6 a las 10:00. | 2026-06-08
La boda será el 13/06/2026. | 2026-06-13
Estoy de vacaciones del 3/8 al 17/8. | 2026-08-03 2026-08-17
El contrato termina el 31.12.2026. | 2026-12-31
Reunión: 9/6 a las 14:30 | 2026-06-09
El vuelo sale el viernes 19/6. | 2026-06-19
Nací el 3/11/1985. | 1985-11-03
Desde el 1/9 vivo en Bilbao. | 2025-09-01
J'ai rendez-vous le 8/6 à 9h. | 2026-06-08
Le mariage est le 13/06/2026. | 2026-06-13
Je suis en vacances du 3/8 au 17/8. | 2026-08-03 2026-08-17
Je suis née le 03.11.1985 à Lyon. | 1985-11-03
Examen vendredi 19/6 | 2026-06-19
Le contrat finit le 31/12. | 2026-12-31
Concert le 20/6, j'ai les billets. | 2026-06-20
Mon vol est le 25.6. | 2026-06-25
Ho un appuntamento l'8/6. | 2026-06-08
L'esame è il 12/6. | 2026-06-12
Il matrimonio è il 13/06/2026. | 2026-06-13
Sono in ferie dal 3/8 al 17/8. | 2026-08-03 2026-08-17
Sono nata il 3.11.1985. | 1985-11-03
Il volo parte venerdì 19/6. | 2026-06-19
La scadenza è il 31/12. | 2026-12-31
Riunione 9/6 alle 14:30 | 2026-06-09
Minha consulta é no dia 8/6. | 2026-06-08
A prova é em 12/6. | 2026-06-12
O casamento é dia 13/06/2026. | 2026-06-13
Estou de férias de 3/8 a 17/8. | 2026-08-03 2026-08-17
Nasci em 03/11/1985. | 1985-11-03
O voo sai na sexta, 19/6. | 2026-06-19
Reunião 9/6 às 14:30 | 2026-06-09
O prazo é até 31/12. | 2026-12-31
Ik heb een afspraak op 8/6. | 2026-06-08
Het examen is op 12-6-2026. | 2026-06-12
Ik ben geboren op 3-11-1985. | 1985-11-03
De bruiloft is op 13-6. | 2026-06-13
We vertrekken vrijdag 19-6. | 2026-06-19
Ik ben met vakantie van 3/8 tot 17/8. | 2026-08-03 2026-08-17
Vergadering 9/6 om 14:30 | 2026-06-09
Мой приём у врача 8.06 в 9 утра. | 2026-06-08
Экзамен будет 12.06. | 2026-06-12
Свадьба 13.06.2026. | 2026-06-13
Я в отпуске с 3.08 по 17.08. | 2026-08-03 2026-08-17
Я родилась 03.11.1985. | 1985-11-03
Сдать отчёт до 15.07. | 2026-07-15
В пятницу, 19.06, улетаю в Рим. | 2026-06-19
موعدي مع الطبيب يوم 8/6. | 2026-06-08
ولدت في 3/11/1985. | 1985-11-03
الامتحان بتاريخ 12/6/2026. | 2026-06-12
6/8に歯医者の予約があります。 | 2026-06-08
試験は6/12です。 | 2026-06-12
1985/11/03生まれです。 | 1985-11-03
我6/8去看牙医。 | 2026-06-08
婚礼在2026.6.13。 | 2026-06-13
考试6/12，别忘了。 | 2026-06-12
"""

NUMBERS = """
My blood test: HbA1c 8.6. All fine.
My HbA1c was 8.6. The doctor is happy.
I upgraded to Python 3.11. It works.
We still run Postgres 9.6. No plans to change.
The server has version 2.4.1 and needs 2.5.
The ticket costs 4.50. Cheap!
Coffee is up to 3.10. Outrageous.
The film got 8.7/10 on IMDb.
I'd rate it 9/10.
It scored 7.2. Not bad.
Add 1/2 cup of sugar and 3/4 cup of milk.
The pharmacy is open 24/7.
I passed with 11/12 points.
See section 4.2. It explains everything.
Our router is at 192.168.1.10.
DNS is 10.0.0.1. Mine is 8.8.8.8.
My sugar was 5.6 mmol/l this time.
The ratio is 2.5 to 1.
My vision is 20/20.
My blood pressure was 12/8.
We won 3-1. What a match.
The score was 6-4, 6-3.
Only 1 in 2.5. That's odd.
GPA 3.8. I'm proud.
Half marathon in 1.52. New record!
My weight is 7.4. The baby's, I mean.
Call me at 555-10-12.
Take 1/4 tablet twice a day.
We live at 5/7 Mill Lane.
iOS 17.4. is out
The earthquake had magnitude 6.1. We felt it.
Mein HbA1c ist 8.6. Alles gut.
Das Update auf 3.11. ist da, sagt Python.
Der Kaffee kostet 4.50. Frechheit.
Der Film hat 7.8. Ganz ok.
Note 2.3 in Mathe, 1.7 in Kunst.
Wir treffen uns um 14.30 im Café.
Bis 9.10 Uhr bin ich da.
Ab 2.5 Liter wird es teuer.
Kapitel 4.2. lesen wir noch.
Mein Zucker war 5.6 mmol/l.
Die Wohnung hat 3.5 Zimmer.
Ich brauche 1/2 Liter Milch.
Das Lokal hat 24/7 offen.
Version 10.12. läuft bei mir.
Wir haben 3.1 gewonnen, fast 3:1.
Die Miete steigt um 4.5. Das ist viel.
Ich wohne in der Gartenstraße 5/7.
Mi hemoglobina es 8.6. Todo bien.
El café cuesta 4.50. Caro.
La película tiene un 8.7. Muy buena.
Ganamos 3-1.
Añade 1/2 taza de azúcar.
Está abierto 24/7.
Python 3.11. ya salió.
Saqué un 9/10 en mates.
Mon taux est de 8.6. Tout va bien.
Le café coûte 4.50. C'est cher.
J'ai eu 12/20 en maths.
Ajoute 1/2 tasse de lait.
C'est ouvert 24/7.
Le film a 7.8. Pas mal.
Il mio valore è 8.6. Tutto bene.
Il caffè costa 1.20. Bene.
Ho preso 8/10 in storia.
Aggiungi 1/2 bicchiere di latte.
Abbiamo vinto 3-1.
Ci vediamo alle 14.30 al bar.
Minha glicose deu 5.6. Tudo bem.
O café custa 4.50. Caro.
Tirei 9/10 na prova.
Meia xícara é 1/2 xícara.
Funciona 24/7.
Mijn waarde is 8.6. Alles goed.
De koffie kost 3.10. Duur.
Ik gaf het een 8/10.
Voeg 1/2 kopje melk toe.
We hebben met 3-1 gewonnen.
Мой сахар 5.6. Всё хорошо.
Кофе стоит 4.50. Дорого.
Фильм получил 8.7 из 10.
Обновился до Python 3.11. Работает.
Рост 1.80, вес 7.4 пуда.
سكري 5.6. كل شيء بخير.
حصلت على 9/10 في الامتحان.
血糖是5.6。一切正常。
我给这部电影打8.7分。
考试得了9/10分。
牛乳を1/2カップ入れます。
点数は8.6です。
24/7営業です。
"""

FRESH = """
Steuerbescheid kommt bis spätestens 22.7. per Post. | 2026-07-22
Wir heiraten am 05.09.! | 2026-09-05
Nächster TÜV: 30.11. | 2026-11-30
Die Ferien gehen vom 13.7. bis 24.8. | 2026-07-13 2026-08-24
Meine Elternzeit endet zum 14.10. | 2026-10-14
Our landlord wants the keys back by 31/7. | 2026-07-31
Graduation is on 6/18. | 2026-06-18
Her due date is 17/11/2026. | 2026-11-17
The concert moved to 22.08.2026. | 2026-08-22
El estreno es el 14/11. | 2026-11-14
Nos vemos el jueves 18/6 en la estación. | 2026-06-18
La reunión pasa al 22/7. | 2026-07-22
On se voit le 18/6 ? | 2026-06-18
Fermeture du 20/7 au 16/8. | 2026-07-20 2026-08-16
Date limite : le 30/11 | 2026-11-30
Partiamo il 18/7 per la Grecia. | 2026-07-18
Consegna entro il 30/11. | 2026-11-30
A entrega do trabalho é dia 30/11. | 2026-11-30
Viajamos na quinta, 18/6. | 2026-06-18
De keuring is op 30/11. | 2026-11-30
Ik begin op 1-9-2026 met mijn studie. | 2026-09-01
Отпуск с 13.07 по 24.08. | 2026-07-13 2026-08-24
Сдаю проект до 30.11. | 2026-11-30
День рождения мамы 22.07. | 2026-07-22
السفر يوم 18/7 صباحا | 2026-07-18
会議は6/18の午後です。 | 2026-06-18
7/22面试，有点紧张。 | 2026-07-22
2026/9/5に結婚します。 | 2026-09-05
Die Kündigungsfrist läuft am 30.9. ab. | 2026-09-30
I was born 22.07.1990. | 1990-07-22
Mein Blutdruck lag bei 12.8. Geht so.
Der Akku hält 9.5 Stunden.
Wir wohnen jetzt im Gebäude 3.4 im zweiten Stock.
Ich habe 5.2 km geschafft.
Ubuntu 24.04. läuft stabil.
Unser Schnitt ist 2.1, besser als 2.4.
Mit 7.12 Promille? Quatsch, 0.7.
My new glasses are minus 2.5. Finally I can see.
We beat them 4-2 on penalties.
Node 18.12. No more updates.
The recipe needs 3/4 of the dough.
Chapter 11.4. is the hard one.
It's a 7/11 store near the office.
Our conversion went from 1.8 to 2.3. Great!
She gave the hotel 4/5 stars.
Dial extension 10-12 for support.
The odds are 9/2.
Mi nota fue un 6.7. Aprobé.
Perdimos 4-2 otra vez.
Necesito 3/4 de kilo de harina.
La fièvre est à 38.5. Je reste au lit.
J'ai mangé 3/4 du gâteau.
On a gagné 3-2.
La febbre è salita a 38.2. Uffa.
Ho bevuto 1/2 litro d'acqua.
O dólar foi a 5.12. Absurdo.
Usei 3/4 da farinha.
Mijn cijfer was een 7.4. Blij mee.
Мой средний балл 4.8. Неплохо.
Осталось 3/4 бака.
أكلت 3/4 الكعكة
考了9/10，开心。
体温が37.5でした。
"""
"""Written after the rules, which were not tuned on it."""
FRESH_RIGHT = 60


def rows(table: str) -> list[tuple[str, str]]:
    split = (line.partition(" | ") for line in table.strip().splitlines())
    return [(text, expected) for text, _, expected in split]


def days(text: str) -> str:
    """Return the days that a text names. A time of day without a day, which is today's, is not one."""
    found = find_times(text, SAID, "future", by_words=True)
    return " ".join(when.start.date().isoformat() for when in found if when.start.date() != SAID.date())


@pytest.mark.req("G21")
@pytest.mark.defect("M2")
@pytest.mark.parametrize(("text", "expected"), rows(DATES))
def test_figures_with_a_sign_of_a_date_are_one(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.req("G21")
@pytest.mark.defect("M2")
@pytest.mark.parametrize(("text", "expected"), rows(NUMBERS))
def test_other_figures_are_none(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.req("G21")
def test_the_reading_of_texts_that_it_was_not_tuned_on_does_not_get_worse() -> None:
    assert sum(days(text) == expected for text, expected in rows(FRESH)) >= FRESH_RIGHT
