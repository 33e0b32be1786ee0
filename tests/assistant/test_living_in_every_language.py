"""What people say to a bot without a language model in the fifteen languages, and what it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from aforesaid.assistant.phrases import Phrases
from assistant.test_living import live

FORGETTING = """
en|I'm a nurse and I'm allergic to peanuts.|forget that I'm allergic to peanuts|What am I allergic to?|forget everything about me
de|Ich bin Krankenpflegerin und allergisch gegen Erdnüsse.|Vergiss, dass ich gegen Erdnüsse allergisch bin|Wogegen bin ich allergisch?|Vergiss alles über mich
es|Soy enfermera y soy alérgica a los cacahuetes.|olvida que soy alérgica a los cacahuetes|¿A qué soy alérgica?|olvida todo sobre mí
fr|Je suis infirmière et allergique aux arachides.|oublie que je suis allergique aux arachides|À quoi je suis allergique ?|oublie tout sur moi
it|Sono infermiera e sono allergica alle arachidi.|dimentica che sono allergica alle arachidi|A cosa sono allergica?|dimentica tutto di me
pt|Sou enfermeira e sou alérgica a amendoim.|esquece que sou alérgica a amendoim|A que sou alérgica?|esquece tudo sobre mim
nl|Ik werk als kapster en ik ben allergisch voor noten.|vergeet dat ik allergisch ben voor noten|Waar ben ik allergisch voor?|vergeet alles over mij
pl|Jestem pielęgniarką i jestem uczulona na orzechy.|zapomnij że jestem uczulona na orzechy|Na co jestem uczulona?|zapomnij wszystko o mnie
ru|Я медсестра, и у меня аллергия на арахис.|забудь, что у меня аллергия на арахис|На что у меня аллергия?|забудь всё обо мне
tr|Eczacıyım, fındığa alerjim var.|fındığa alerjim olduğunu unut|Neye alerjim var?|Her şeyi unut
ar|أعمل معلمة وعندي حساسية من الفول السوداني.|انسَ أن عندي حساسية من الفول السوداني|من ماذا عندي حساسية؟|انسَ كل شيء عني
zh|我是护士，我对花生过敏。|忘掉我对花生过敏|我对什么过敏？|忘掉关于我的一切
ja|エンジニアをしています。えびアレルギーがあります。|えびアレルギーのことは忘れて|何のアレルギー？|私のこと全部忘れて
ko|간호사로 일하고 있고 땅콩 알레르기가 있어요.|땅콩 알레르기 있다는 거 잊어줘|무슨 알레르기가 있지?|나에 대한 거 다 잊어줘
hi|मैं डॉक्टर हूँ और मुझे मूंगफली से एलर्जी है।|भूल जाओ कि मुझे मूंगफली से एलर्जी है|मुझे किस चीज़ से एलर्जी है?|मेरे बारे में सब कुछ भूल जाओ
"""  # noqa: E501


def rows(table: str) -> list[list[str]]:
    return [line.split("|") for line in table.strip().splitlines()]


@pytest.mark.defect("Q3")
@pytest.mark.parametrize("row", rows(FORGETTING), ids=lambda row: row[0])
async def test_one_thing_is_forgotten_and_the_rest_of_the_sentence_stays(tmp_path: Path, row: list[str]) -> None:
    say, said = Phrases.of(row[0]), row[1:]
    _, forgotten, asked, everything = await live(tmp_path, said, row[0])
    assert forgotten.startswith(say("forget.done", what=""))
    assert said[0] not in forgotten
    assert asked == say("recall.nothing")
    assert everything == say("erase.question", word=say("erase.word"))


PARTED = """
en|My boyfriend is called Tom.|Tom and I split up.|Who is Tom?|Tom
de|Mein Mann heißt Jörg.|Jörg und ich haben uns getrennt.|Wer ist Jörg?|Jörg
es|Mi novio se llama Rubén.|Rubén y yo lo hemos dejado.|¿Quién es Rubén?|Rubén
fr|Mon copain s'appelle Luc.|Luc et moi on s'est séparés.|Qui est Luc ?|Luc
it|Il mio ragazzo si chiama Matteo.|Matteo e io ci siamo lasciati.|Chi è Matteo?|Matteo
pt|Meu marido se chama Paulo.|Eu e o Paulo nos separamos.|Quem é Paulo?|Paulo
pl|Mój mąż nazywa się Piotr.|Rozstałam się z Piotrem.|Kto to jest Piotr?|Piotr
ru|Мой муж Артём, у нас кот Барсик.|Мы с Артёмом развелись.|Кто такой Артём?|Артём
tr|Kocamın adı Murat.|Murat'la boşandık.|Murat kim?|Murat
ar|زوجي اسمه خالد وعندنا قطة اسمها لولو.|تطلقت من خالد.|من هو خالد؟|خالد
ja|妻の名前は美咲で、息子の翔は5歳です。|美咲とは離婚しました。|美咲って誰？|美咲
ko|남편 이름은 준호이고 고양이 나비를 키워요.|준호랑 이혼했어요.|준호가 누구야?|준호
hi|मेरे पति का नाम राहुल है और हमारा एक कुत्ता है, शेरू।|राहुल और मैं अलग हो गए।|राहुल कौन है?|राहुल
"""


@pytest.mark.defect("M7")
@pytest.mark.parametrize("row", rows(PARTED), ids=lambda row: row[0])
async def test_who_somebody_was_is_told_as_over(tmp_path: Path, row: list[str]) -> None:
    say = Phrases.of(row[0])
    *_, answer = await live(tmp_path, row[1:4], row[0])
    assert answer.startswith(say("recall.past", text=""))
    assert answer.endswith(row[4])


@pytest.mark.parametrize(
    ("said", "last"),
    [
        (["Mia sorella Clara abita a Torino.", "Dove abita Clara?"], "So questo: Sorella: Clara (Residenza: Torino)"),
        (["Ho un gatto, Pepe.", "Ho lasciato l'ospedale, ora lavoro al Policlinico."], "Annotato: Ho lasciato"),
        (["Ben Elif.", "Yardım"], "Bana anlattıklarını aklımda tutarım"),
        (["海が好きです。", "なんで空は青いの？"], "それについては何も覚えていません。"),
        (["Jestem uczulona na orzechy.", "na co jestem uczulona"], "Wiem: Alergia: orzechy"),
        (["Jestem Ola.", "Reksio zdechł wczoraj"], "Jasne."),
        (["我叫李娜。", "我最近有什么安排？"], "我不知道接下来有什么安排。"),
    ],
)
async def test_what_new_users_say_is_answered_fittingly(tmp_path: Path, said: list[str], last: str) -> None:
    assert (await live(tmp_path, said))[-1].startswith(last)


@pytest.mark.parametrize(
    "asked",
    [
        "do I have anything on tomorrow",
        "steht für mich morgen irgendwas an",
        "tengo algo apuntado para mañana",
        "est-ce que j'ai quelque chose demain",
        "ho qualcosa in programma per domani",
        "tenho alguma coisa marcada pra amanhã",
        "heb ik morgen een afspraak",
        "czy mam coś w planach na jutro",
        "есть у меня что-нибудь на завтра",
        "yarın için bir planım var mı",
        "هل عندي شيء غدا",
        "明天我有没有安排",
        "明日って何か予定入ってる",
        "내일 뭐 있어?",
        "क्या कल मेरा कुछ तय है",
    ],
)
async def test_a_question_for_what_is_planned_at_a_time_is_answered_with_what_is_coming_up(
    tmp_path: Path, asked: str
) -> None:
    assert "Dr. Lee" in (await live(tmp_path, ["remind me tomorrow at 9:00 to call Dr. Lee", asked]))[-1]


async def test_an_order_to_the_bot_is_not_described_as_a_plan(tmp_path: Path) -> None:
    said = ["herinner me er morgen om 9 uur aan dat ik de huisarts bel", "verzet de huisarts naar vrijdag 10 uur"]
    set_, moved, known = await live(tmp_path, [*said, "Wat weet je over mij?"])
    assert "er aan" not in set_
    assert "10:00" in moved
    assert "verzet" not in known


async def test_what_is_left_of_a_message_is_told_only_if_it_answers_the_question(tmp_path: Path) -> None:
    said = ["저는 민지예요. 서른두 살이고 수원에 살아요.", "언니 지영이는 부산에 살고 초등학교 선생님이에요."]
    answer = (await live(tmp_path, [*said, "지영이는 어디 살아?"]))[-1]
    assert "부산" in answer
    assert "민지" not in answer


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("said", "moved"),
    [
        (["Herinner me morgen om 9 uur aan de tandarts", "verzet de tandarts naar overmorgen 10 uur"], "10:00"),
        (["내일 9시에 치과에 전화하라고 알려줘", "치과를 모레 10시로 바꿔줘"], "10:00"),
        (["przypomnij mi jutro o dziewiątej o dentyście", "przełóż dentystę na pojutrze na dziesiątą"], "10:00"),
        (["Erinner mich morgen um 8 an den Zahnarzt", "Verschieb den Zahnarzt auf übermorgen"], "08:00"),
        (["yarın saat 9'da dişçiyi hatırlat", "dişçiyi yarın saat on sekizde yap, ertele"], "18:00"),
    ],
)
async def test_a_reminder_moves_to_the_day_and_the_hour_that_are_said(
    tmp_path: Path, said: list[str], moved: str
) -> None:
    *_, listed = await live(tmp_path, [*said, "/reminders"])
    assert moved in listed.splitlines()[0]
