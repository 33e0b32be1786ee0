"""What people say to the bot, in fifteen languages: reminders, what to forget, and small questions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aforesaid.assistant import wishes
from aforesaid.models.offline.request_rules import means_everything
from aforesaid.text.times.find import read_requested_time

SAID = datetime(2026, 5, 6, 15, 0, tzinfo=UTC)


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Remind me tomorrow at 9 to call mum.", "tomorrow at 9 to call mum"),
        ("Could you remind me to water the plants on Friday?", "water the plants on Friday"),
        ("Erinnere mich bitte daran, morgen um 9 Mama anzurufen.", "morgen um 9 Mama anzurufen"),
        ("Weck mich morgen um sieben", "morgen um sieben"),
        ("Recuérdame que mañana a las 9 llame a mamá", "mañana a las 9 llame a mamá"),
        ("Avísame el viernes a las 18 por favor", "el viernes a las 18"),
        ("Rappelle-moi de payer le loyer demain à 9h", "payer le loyer demain à 9h"),
        ("Préviens-moi samedi à midi, s'il te plaît", "samedi à midi"),
        ("Ricordami di chiamare mamma domani alle 9", "chiamare mamma domani alle 9"),
        ("Avvisami venerdì alle 18 per favore", "venerdì alle 18"),
        ("Me lembra de ligar pra mãe amanhã às 9", "ligar pra mãe amanhã às 9"),
        ("Lembra-me de ligar à mãe amanhã às 9", "ligar à mãe amanhã às 9"),
        ("Herinner me eraan dat ik morgen om 9 uur mama bel", "ik morgen om 9 uur mama bel"),
        ("Geef me een seintje vrijdag om 18 uur", "vrijdag om 18 uur"),
        ("Przypomnij mi jutro o 9 o telefonie do mamy", "jutro o 9 o telefonie do mamy"),
        ("Daj mi znać w piątek o 18", "w piątek o 18"),
        ("Напомни мне завтра в 9 позвонить маме", "завтра в 9 позвонить маме"),
        ("Разбуди меня завтра в семь", "завтра в семь"),
        ("Yarın 9'da annemi aramamı hatırlat", "Yarın 9'da annemi aramamı"),
        ("Cuma akşamı çöpü çıkarmamı hatırlatır mısın?", "Cuma akşamı çöpü çıkarmamı"),
        ("ذكرني غدا الساعة 9 بالاتصال بأمي", "غدا الساعة 9 بالاتصال بأمي"),
        ("لو سمحت نبهني الجمعة الساعة 6", "الجمعة الساعة 6"),
        ("提醒我明天九点给妈妈打电话", "明天九点给妈妈打电话"),
        ("明天早上七点叫醒我", "明天早上七点"),
        ("明日の9時に母に電話するのを思い出させて", "明日の9時に母に電話する"),
        ("金曜の18時に歯医者ってリマインドして", "金曜の18時に歯医者"),
        ("내일 9시에 엄마한테 전화하라고 알려줘", "내일 9시에 엄마한테 전화하라고"),
        ("금요일 저녁 6시에 치과라고 말해 줘", "금요일 저녁 6시에 치과라고"),
        ("मुझे कल 9 बजे माँ को फ़ोन करने की याद दिला देना", "कल 9 बजे माँ को फ़ोन करने"),
        ("शुक्रवार शाम 6 बजे दवा लेना याद दिलाना", "शुक्रवार शाम 6 बजे दवा लेना"),
    ],
)
def test_a_reminder_for_oneself_keeps_the_matter_and_its_time(text: str, what: str) -> None:
    assert wishes.read_reminder(text) == (what, None)


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Remind us on Friday at 6 that we play", "on Friday at 6 that we play"),
        ("Erinnere uns am Freitag um 18 Uhr ans Training", "am Freitag um 18 Uhr ans Training"),
        ("Recuérdanos el viernes a las 18 lo del entreno", "el viernes a las 18 lo del entreno"),
        ("Rappelle-nous vendredi à 18h l'entraînement", "vendredi à 18h l'entraînement"),
        ("Ricordaci venerdì alle 18 l'allenamento", "venerdì alle 18 l'allenamento"),
        ("Lembra a gente na sexta às 18 do treino", "na sexta às 18 do treino"),
        ("Herinner ons vrijdag om 18 uur aan de training", "vrijdag om 18 uur aan de training"),
        ("Przypomnij nam w piątek o 18 o treningu", "w piątek o 18 o treningu"),
        ("Напомни нам в пятницу в 18 про тренировку", "в пятницу в 18 про тренировку"),
        ("Cuma 18'de antrenmanı herkese hatırlat", "Cuma 18'de antrenmanı"),
        ("ذكرنا الجمعة الساعة 6 بالتدريب", "الجمعة الساعة 6 بالتدريب"),
        ("提醒我们周五六点训练", "周五六点训练"),
        ("金曜の18時に練習があるとみんなに知らせて", "金曜の18時に練習があると"),
        ("금요일 6시에 연습 있다고 우리한테 알려줘", "금요일 6시에 연습 있다고"),
        ("सबको शुक्रवार 6 बजे अभ्यास की याद दिला देना", "शुक्रवार 6 बजे अभ्यास"),
    ],
)
def test_a_reminder_for_all_in_the_chat(text: str, what: str) -> None:
    assert wishes.read_reminder(text) == (what, "")


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("text", "what", "who"),
    [
        ("Remind Ben to bring the drill on Friday at 6", "bring the drill on Friday at 6", "Ben"),
        ("Erinnere Ben daran, am Freitag um 18 Uhr zu kommen", "am Freitag um 18 Uhr zu kommen", "Ben"),
        ("Recuérdale a Ana que venga el viernes a las 18", "venga el viernes a las 18", "Ana"),
        ("Rappelle à Léa de rendre la perceuse vendredi à 18h", "rendre la perceuse vendredi à 18h", "Léa"),
        ("Ricorda a Pietro di portare il trapano venerdì alle 18", "portare il trapano venerdì alle 18", "Pietro"),
        ("Lembra o Caio de trazer a bola na sexta às 18", "trazer a bola na sexta às 18", "Caio"),
        ("Herinner Ruben eraan dat hij vrijdag om 18 uur komt", "hij vrijdag om 18 uur komt", "Ruben"),
        ("Powiedz Ani, żeby w piątek o 18 przyszła", "w piątek o 18 przyszła", "Ani"),
        ("Скажи Лене, чтобы в пятницу в 18 пришла", "в пятницу в 18 пришла", "Лене"),
        ("Cuma 18'de antrenmanı Ali'ye hatırlat", "Cuma 18'de antrenmanı", "Ali"),
        ("ذكر سارة أن تحضر الجمعة الساعة 6", "تحضر الجمعة الساعة 6", "سارة"),
        ("提醒@小王 周五六点训练", "周五六点训练", "小王"),
        ("@花子さんに金曜の18時に練習だって伝えて", "金曜の18時に練習だ", "花子"),
        ("금요일 6시에 연습 있다고 민수한테 알려줘", "금요일 6시에 연습 있다고", "민수"),
        ("@राहुल को शुक्रवार 6 बजे अभ्यास की याद दिला देना", "शुक्रवार 6 बजे अभ्यास", "राहुल"),
    ],
)
def test_a_reminder_for_a_member(text: str, what: str, who: str) -> None:
    assert wishes.read_reminder(text) == (what, who)


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("cancel", "move", "show"),
    [
        ("cancel the dentist one", "push the dentist one to ten", "what are my reminders"),
        ("lösch die Erinnerung an den Zahnarzt", "verschieb den Zahnarzt auf zehn", "zeig mir meine Erinnerungen"),
        ("quita el del dentista", "atrasa el del dentista una hora", "qué recordatorios tengo"),
        ("annule le rappel du dentiste", "décale le dentiste à dix heures", "montre mes rappels"),
        ("togli il promemoria del dentista", "sposta il dentista alle dieci", "che promemoria ho"),
        ("cancela o do dentista", "adia o do dentista meia hora", "quais lembretes eu tenho"),
        ("schrap die van de tandarts", "verzet de tandarts naar tien uur", "welke herinneringen heb ik"),
        ("usuń to o dentyście", "przesuń dentystę na dziesiątą", "pokaż moje przypomnienia"),
        ("отмени напоминание про зубного", "перенеси зубного на десять", "покажи мои напоминания"),
        ("dişçi hatırlatmasını iptal et", "dişçiyi ona ertele", "hatırlatmalarımı göster"),
        ("احذف تذكير الطبيب", "انقل تذكير الطبيب للعاشرة", "ما هي التذكيرات عندي"),
        ("牙医的取消", "牙医的改到十点", "我有哪些提醒"),
        ("歯医者のリマインダー取り消して", "歯医者を十時に変更して", "リマインダーの一覧を見せて"),
        ("치과 알림 취소해 줘", "치과 알림 열 시로 바꿔 줘", "내 알림 보여 줘"),
        ("डेंटिस्ट वाला हटा दो", "डेंटिस्ट वाला दस बजे कर दो", "मेरे रिमाइंडर दिखाओ"),
    ],
)
def test_reminders_are_cancelled_moved_and_shown(cancel: str, move: str, show: str) -> None:
    told = [(wishes.mentions("cancel", each), wishes.mentions("move", each)) for each in (cancel, move, show)]
    assert told == [(True, False), (False, True), (False, False)]


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("everything", "one"),
    [
        ("cancel all of them", "cancel the everyday one"),
        ("lösch alle Erinnerungen", "lösch die um alle vier Stunden"),
        ("borra todos los recordatorios", "borra el de todos los días"),
        ("supprime tous les rappels", "supprime celui de tous les jours"),
        ("annulla tutti i promemoria", "annulla quello delle alle cinque"),
        ("удали все напоминания", "всё, удали про зубного"),
    ],
)
def test_all_reminders_are_not_one_of_every_day(everything: str, one: str) -> None:
    assert wishes.mentions("all", everything)
    assert not wishes.mentions("all", one)


@pytest.mark.defect("Q8")
@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Forget what I said about my sister", "my sister"),
        ("Vergiss, was ich über meine Schwester gesagt habe", "meine Schwester"),
        ("Olvida lo que dije sobre mi hermana", "mi hermana"),
        ("Oublie ce que j'ai dit sur ma sœur", "ma sœur"),
        ("Dimentica quello che ho detto su mia sorella", "mia sorella"),
        ("Esquece o que eu disse sobre minha irmã", "minha irmã"),
        ("Vergeet wat ik over mijn zus gezegd heb", "mijn zus"),
        ("Zapomnij, co mówiłam o mojej siostrze", "mojej siostrze"),
        ("Забудь, что я говорила про мою сестру", "мою сестру"),
        ("Kız kardeşim hakkında söylediklerimi unut", "Kız kardeşim"),
        ("انسى ما قلته عن أختي", "أختي"),
        ("忘掉我说的关于妹妹的事", "妹妹"),
        ("妹について話したことを忘れて", "妹"),
        ("여동생에 대해 말한 거 잊어 줘", "여동생"),
        ("बहन के बारे में जो कहा था भूल जाओ", "बहन"),
    ],
)
def test_a_topic_to_forget_is_left_of_a_request(text: str, topic: str) -> None:
    assert wishes.read_forgetting(text) == topic


@pytest.mark.defect("Q8")
@pytest.mark.parametrize(
    "text",
    [
        "Forget everything you know about me",
        "Vergiss alles über mich",
        "Borra todo lo que sabes de mí",
        "Oublie tout ce que tu sais de moi",
        "Dimentica tutto su di me",
        "Apaga tudo sobre mim",
        "Vergeet alles over mij",
        "Zapomnij wszystko o mnie",
        "Забудь всё обо мне",
        "Benim hakkımda bildiğin her şeyi unut",
        "انسى كل شيء عني",
        "忘掉关于我的一切",
        "私のことを全部忘れて",
        "나에 대한 모든 것을 잊어 줘",
        "मेरे बारे में सब कुछ भूल जाओ",
    ],
)
def test_everything_about_oneself_is_to_be_forgotten(text: str) -> None:
    left = wishes.read_forgetting(text)
    assert not left or means_everything(left)


@pytest.mark.defect("Q8")
@pytest.mark.parametrize(
    "text",
    [
        "Forget what I said yesterday",
        "Vergiss, was ich gestern gesagt habe",
        "Olvida lo que dije ayer",
        "Oublie ce que j'ai dit hier soir",
        "Dimentica quello che ho detto ieri",
        "Esquece o que eu disse ontem",
        "Vergeet wat ik gisteren gezegd heb",
        "Забудь, что я говорила вчера",
        "انسى ما قلته أمس",
        "忘掉我昨天说的",
        "昨日言ったことを忘れて",
        "어제 내가 한 말 잊어 줘",
    ],
)
def test_a_period_to_forget(text: str) -> None:
    found = wishes.period_in(wishes.read_forgetting(text), SAID, text)
    assert found is not None
    assert [each.date().isoformat() for each in found] == ["2026-05-05", "2026-05-06"]


QUESTIONS = {
    "en": "What's the date today?|What time is it?|How are you?|Who are you?|What can you do?|What's coming up?",
    "de": "Welcher Tag ist heute?|Wie spät ist es?|Wie geht es dir?|Wer bist du?|Was kannst du?|Was steht an?",
    "es": "¿Qué día es hoy?|¿Qué hora es?|¿Cómo estás?|¿Quién eres?|¿Qué puedes hacer?|¿Qué tengo pendiente?",
    "fr": "On est quel jour ?|Quelle heure est-il ?|Comment ça va ?|Qui es-tu ?|Que sais-tu faire ?|Mes rendez-vous ?",
    "it": "Che giorno è oggi?|Che ore sono?|Come stai?|Chi sei?|Cosa sai fare?|Che impegni ho?",
    "pt": "Que dia é hoje?|Que horas são?|Tudo bem?|Quem é você?|O que você faz?|O que tenho marcado?",
    "nl": "Welke dag is het vandaag?|Hoe laat is het?|Hoe gaat het?|Wie ben jij?|Wat kun je?|Wat staat er gepland?",
    "pl": "Jaki dziś dzień?|Która godzina?|Co słychać?|Kim jesteś?|Co potrafisz?|Co mnie czeka?",
    "ru": "Какой сегодня день?|Который час?|Как дела?|Кто ты?|Что ты умеешь?|Что у меня запланировано?",
    "tr": "Bugün günlerden ne?|Saat kaç?|Nasılsın?|Sen kimsin?|Neler yapabilirsin?|Önümde ne var?",
    "ar": "ما تاريخ اليوم؟|كم الساعة؟|كيف حالك؟|من أنت؟|ماذا يمكنك أن تفعل؟|ما هي مواعيدي؟",
    "zh": "今天星期几？|现在几点？|你好吗？|你是谁？|你会做什么？|我有什么安排？",
    "ja": "今日は何曜日？|今何時？|元気ですか？|あなたは誰？|何ができるの？|今後の予定は？",
    "ko": "오늘 무슨 요일이야?|지금 몇 시야?|잘 지내?|너는 누구야?|뭘 할 수 있어?|다가오는 일정 뭐야?",
    "hi": "आज कौन सा दिन है?|कितने बजे हैं?|कैसे हो?|तुम कौन हो?|तुम क्या कर सकते हो?|आगे क्या है?",
}
SMALL = ("today", "time", "how_are_you", "who_are_you", "can_do", "coming_up")


@pytest.mark.defect("Q1")
@pytest.mark.parametrize(
    ("text", "key"),
    [(text, key) for asked in QUESTIONS.values() for text, key in zip(asked.split("|"), SMALL, strict=True)],
)
def test_small_questions_are_told_apart(text: str, key: str) -> None:
    assert [each for each in SMALL if wishes.asks_only(each, text)] == [key]


@pytest.mark.defect("Q1")
@pytest.mark.parametrize(
    "text",
    [
        "When is the wedding of my sister?",
        "Wie geht der Film mit dem Hund aus?",
        "¿A qué hora es la boda?",
        "¿Qué día es la boda de Ana?",
        "C'est quel jour la fête de Léa ?",
        "A che ora è la visita?",
        "Que dia é o casamento?",
        "Hoe laat is het feest?",
        "Na jaką godzinę jest wizyta?",
        "На какое число назначена свадьба?",
        "Düğün saat kaçta?",
        "متى موعد الطبيب؟",
        "妈妈的生日是几月几号？",
        "うちの犬の名前は何？",
        "우리 개 이름이 뭐야?",
        "मीटिंग कितने बजे है?",
    ],
)
def test_questions_about_what_somebody_told_are_no_small_questions(text: str) -> None:
    assert not any(wishes.asks_only(each, text) for each in SMALL)


@pytest.mark.defect("Q1")
@pytest.mark.parametrize(
    ("begins", "ends", "rest"),
    [
        ("Hey Rex, where do I live?", "where do I live, Rex?", "where do I live?"),
        ("Hallo Rex, wo wohne ich?", "wo wohne ich, Rex?", "wo wohne ich?"),
        ("Hola Rex, ¿dónde vivo?", "¿dónde vivo, Rex?", "¿dónde vivo?"),
        ("Salut Rex, où j'habite ?", "où j'habite, Rex ?", "où j'habite ?"),
        ("Ciao Rex, dove abito?", "dove abito, Rex?", "dove abito?"),
        ("Oi Rex, onde eu moro?", "onde eu moro, Rex?", "onde eu moro?"),
        ("Hoi Rex, waar woon ik?", "waar woon ik, Rex?", "waar woon ik?"),
        ("Hej Rex, gdzie mieszkam?", "gdzie mieszkam, Rex?", "gdzie mieszkam?"),
        ("Привет, Rex, где я живу?", "где я живу, Rex?", "где я живу?"),
        ("Selam Rex, nerede yaşıyorum?", "nerede yaşıyorum, Rex?", "nerede yaşıyorum?"),
        ("مرحبا Rex، أين أسكن؟", "أين أسكن، Rex؟", "أين أسكن؟"),
        ("你好 Rex，我住在哪里？", "我住在哪里，Rex？", "我住在哪里？"),
        ("ねえ、Rex、私はどこに住んでる？", "私はどこに住んでる、Rex？", "私はどこに住んでる？"),
        ("안녕 Rex, 나 어디 살아?", "나 어디 살아, Rex?", "나 어디 살아?"),
        ("नमस्ते Rex, मैं कहाँ रहता हूँ?", "मैं कहाँ रहता हूँ, Rex?", "मैं कहाँ रहता हूँ?"),
    ],
)
def test_the_name_of_the_bot_is_taken_off_both_ends(begins: str, ends: str, rest: str) -> None:
    assert wishes.without_address(begins, ["Rex"]) == rest
    assert wishes.without_address(ends, ["Rex"]).replace(" ?", "?") == rest.replace(" ?", "?")


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("jutro o 9", "05-07 09:00"),
        ("za pół godziny", "05-06 15:30"),
        ("w sobotę o 14", "05-09 14:00"),
        ("dziś wieczorem o 8", "05-06 20:00"),
        ("jutro o wpół do ósmej", "05-07 07:30"),
        ("3 grudnia o 10", "12-03 10:00"),
        ("yarın saat 9'da", "05-07 09:00"),
        ("yarım saat sonra", "05-06 15:30"),
        ("bu akşam 8'de", "05-06 20:00"),
        ("yarın yedi buçukta", "05-07 07:30"),
        ("cuma günü saat 10'da", "05-08 10:00"),
        ("내일 9시에", "05-07 09:00"),
        ("30분 뒤에", "05-06 15:30"),
        ("오늘 밤 8시에", "05-06 20:00"),
        ("내일 아침 일곱 시 반에", "05-07 07:30"),
        ("12월 3일 오후 5시에", "12-03 17:00"),
        ("कल 9 बजे", "05-07 09:00"),
        ("आधे घंटे में", "05-06 15:30"),
        ("शनिवार को 14 बजे", "05-09 14:00"),
        ("कल सुबह साढ़े सात बजे", "05-07 07:30"),
        ("आज रात 8 बजे", "05-06 20:00"),
        ("بعد نصف ساعة", "05-06 15:30"),
        ("بعد ساعتين", "05-06 17:00"),
        ("بكرة الساعة سبعة ونص", "05-07 07:30"),
        ("半小时后", "05-06 15:30"),
        ("mañana a las siete y media", "05-07 07:30"),
        ("domani alle sette e mezza", "05-07 07:30"),
        ("amanhã às sete e meia", "05-07 07:30"),
        ("dans une demi-heure", "05-06 15:30"),
        ("через полчаса", "05-06 15:30"),
        ("heute Abend um 8 Uhr", "05-06 20:00"),
        ("vanavond om 8 uur", "05-06 20:00"),
        ("周六14:00", "05-09 14:00"),
        ("土曜の14:00", "05-09 14:00"),
    ],
)
def test_times_of_reminders_as_people_say_them(text: str, when: str) -> None:
    found = read_requested_time(text, SAID)
    assert found is not None
    assert found.when.start.strftime("%m-%d %H:%M") == when


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Cumartesi saat 14:00'te sandalyeleri getir", "sandalyeleri getir"),
        ("토요일 14:00에 의자 가져오라고", "의자 가져오라고"),
        ("يوم السبت الساعة 14:00 بإحضار الكراسي", "بإحضار الكراسي"),
        ("शनिवार 14:00 बजे कुर्सियाँ लाना", "कुर्सियाँ लाना"),
    ],
)
def test_the_words_around_an_hour_are_no_part_of_a_reminder(text: str, rest: str) -> None:
    found = read_requested_time(text, SAID)
    assert found is not None
    assert found.rest == rest


def test_a_text_that_does_not_tell_its_language_has_the_days_of_the_usual_one() -> None:
    found = read_requested_time("Sandalyeleri pazar saat 15:00'e ertele", SAID, "turkish")
    assert found is not None
    assert found.when.start.strftime("%m-%d %H:%M") == "05-10 15:00"
