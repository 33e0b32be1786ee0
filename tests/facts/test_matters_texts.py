"""The texts of what people tell about themselves are whole in every language, and endings are told from near misses."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any, Final

import pytest

from aforesaid.facts.values import ended_in

LANGUAGES: Final = (
    "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "polish", "russian", "turkish",
    "arabic", "hindi", "japanese", "korean", "chinese",
)  # fmt: skip
ENDED: Final = {
    "german": {
        "partner": ("Wir haben uns letzte Woche getrennt.", "Ich habe mit meinem Freund Schluss gemacht."),
        "job": ("Ich habe gestern gekündigt!", "Ich wurde leider entlassen.", "Ich bin seit Mai arbeitslos."),
        "employer": ("Ich habe mein Studium abgebrochen.", "Man hat mich gefeuert."),
        "diet": ("Ich esse jetzt wieder Fleisch.", "Ich bin keine Vegetarierin mehr."),
        "medicine": ("Ich habe die Tabletten abgesetzt.", "Ich nehme sie nicht mehr."),
        "event": ("Das Treffen wurde abgesagt.", "Es fällt leider aus."),
        "pet": ("Wir mussten ihn gestern einschläfern lassen.",),
        "condition": ("Ich bin wieder gesund!", "Ich habe den Krebs besiegt."),
    },
    "french": {
        "partner": ("On s'est séparés hier.", "J’ai rompu avec lui.", "Il m'a quittée."),
        "job": ("J'ai démissionné.", "Je me suis fait virer.", "Je suis au chômage."),
        "employer": ("J'ai arrêté la fac.", "J'ai perdu mon travail."),
        "diet": ("Je mange de nouveau de la viande.", "Je ne suis plus végétarienne."),
        "medicine": ("J'ai arrêté mes médicaments.", "Je ne les prends plus."),
        "event": ("Le concert a été annulé.", "C'est annulé."),
        "pet": ("On a dû le faire piquer.",),
        "condition": ("Je suis enfin guérie.", "J'ai vaincu le cancer."),
    },
    "spanish": {
        "partner": ("Nos separamos el mes pasado.", "Rompí con mi novio.", "Me dejó."),
        "job": ("Me despidieron ayer.", "Dejé mi trabajo.", "Estoy en paro."),
        "employer": ("He dejado la universidad.", "Me han echado del trabajo."),
        "diet": ("He vuelto a comer carne.", "Ya no soy vegetariana."),
        "medicine": ("Dejé de tomar las pastillas.", "Ya no la tomo."),
        "event": ("Se canceló la boda.", "Lo han cancelado."),
        "pet": ("Tuvimos que sacrificarlo.",),
        "condition": ("Ya estoy curada.", "He superado el cáncer."),
    },
    "italian": {
        "partner": ("Ci siamo lasciati.", "Ho rotto con il mio ragazzo.", "Mi ha lasciata."),
        "job": ("Mi sono licenziata.", "Mi hanno licenziato ieri.", "Sono disoccupato."),
        "employer": ("Ho lasciato l'università.", "Ho perso il lavoro."),
        "diet": ("Ho ricominciato a mangiare carne.", "Non sono più vegana."),
        "medicine": ("Ho smesso di prenderle.", "Ho sospeso gli antibiotici."),
        "event": ("Il concerto è stato annullato.", "È saltata la festa."),
        "pet": ("Abbiamo dovuto farlo sopprimere.",),
        "condition": ("Sono finalmente guarito.", "Ho sconfitto il cancro."),
    },
    "portuguese": {
        "partner": ("Nos separamos.", "Terminei com meu namorado.", "Estou solteira de novo."),
        "job": ("Fui demitido ontem.", "Pedi demissão.", "Despedi-me do emprego."),
        "employer": ("Larguei a faculdade.", "Estou desempregada."),
        "diet": ("Voltei a comer carne.", "Não sou mais vegano."),
        "medicine": ("Parei de tomar os remédios.", "Já não tomo o remédio."),
        "event": ("A festa foi cancelada.", "Cancelaram tudo."),
        "pet": ("Tivemos que sacrificá-lo.",),
        "condition": ("Estou curada.", "Venci o câncer."),
    },
    "dutch": {
        "partner": ("We zijn uit elkaar.", "Ik heb het uitgemaakt.", "Hij heeft me verlaten."),
        "job": ("Ik heb ontslag genomen.", "Ik ben gisteren ontslagen.", "Ik ben met pensioen."),
        "employer": ("Ik ben gestopt met mijn studie.", "Ik zit zonder werk."),
        "diet": ("Ik eet weer vlees.", "Ik ben geen vegetariër meer."),
        "medicine": ("Ik ben gestopt met de pillen.", "Ik slik ze niet meer."),
        "event": ("Het feest is afgelast.", "Het gaat helaas niet door."),
        "pet": ("We moesten hem laten inslapen.",),
        "condition": ("Ik ben weer gezond.", "Ik heb de kanker overwonnen."),
    },
    "polish": {
        "partner": ("Rozstaliśmy się.", "Zerwałam z chłopakiem.", "Zostawił mnie."),
        "job": ("Zwolnili mnie.", "Rzuciłem pracę.", "Jestem na emeryturze."),
        "employer": ("Rzuciłam studia.", "Zostałam zwolniona."),
        "diet": ("Znowu jem mięso.", "Nie jestem już wegetarianką."),
        "medicine": ("Przestałam brać leki.", "Odstawiłem tabletki."),
        "event": ("Spotkanie zostało odwołane.", "Odwołali koncert."),
        "pet": ("Musieliśmy go uśpić.",),
        "condition": ("Wyzdrowiałam.", "Pokonałem raka."),
    },
    "russian": {
        "partner": ("Мы расстались.", "Я недавно развелась.", "Он меня бросил."),
        "job": ("Я уволилась!", "Меня вчера сократили.", "Я на пенсии."),
        "employer": ("Я бросил универ.", "Я потерял работу."),
        "diet": ("Я снова ем мясо.", "Я больше не вегетарианка."),
        "medicine": ("Я перестала пить таблетки.", "Врач отменил мне лекарство."),
        "event": ("Встреча отменилась.", "Концерт отменили."),
        "pet": ("Нам пришлось её усыпить.",),
        "condition": ("Я наконец выздоровела.", "Я победил рак."),
    },
    "turkish": {
        "partner": ("Geçen ay ayrıldık.", "Eşimden boşandım.", "Sevgilimle ayrıldık."),
        "job": ("İstifa ettim.", "İşten çıkarıldım.", "Emekli oldum."),
        "employer": ("Üniversiteyi bıraktım.", "İşimi kaybettim."),
        "diet": ("Artık et yiyorum.", "Artık vejetaryen değilim."),
        "medicine": ("İlaçlarımı bıraktım.", "Hapları almayı bıraktım."),
        "event": ("Toplantı iptal oldu.", "İptal edildi."),
        "pet": ("Köpeğimizi uyutmak zorunda kaldık.",),
        "condition": ("Tamamen iyileştim.", "Kanseri yendim."),
    },
    "arabic": {
        "partner": ("انفصلنا الشهر الماضي.", "تركتني زوجتي.", "أنا تطلقت."),
        "job": ("استقلت من عملي.", "طردوني من الشغل.", "فقدت وظيفتي."),
        "employer": ("تركت الجامعة.", "أنا الآن متقاعد."),
        "diet": ("رجعت آكل اللحم.", "لم أعد نباتية."),
        "medicine": ("توقفت عن تناول الدواء.", "لم أعد آخذه."),
        "event": ("تم إلغاء الحفلة.", "الموعد ألغي."),
        "pet": ("ماتت قطتي.",),
        "condition": ("الحمد لله شفيت.", "تغلبت على السرطان."),
    },
    "hindi": {
        "partner": ("हमारा ब्रेकअप हो गया।", "मेरा तलाक हो चुका है।", "उसने मुझे छोड़ दिया।"),
        "job": ("मैंने नौकरी छोड़ दी।", "मुझे नौकरी से निकाल दिया गया।", "मैं रिटायर हो गया हूँ।"),
        "employer": ("मैंने कॉलेज छोड़ दिया।", "मेरी नौकरी चली गई।"),
        "diet": ("मैं फिर से मांस खाने लगा हूँ।", "मैं अब शाकाहारी नहीं हूँ।"),
        "medicine": ("मैंने दवा लेना बंद कर दिया।", "डॉक्टर ने मेरी दवा बंद कर दी।"),
        "event": ("मीटिंग रद्द हो गई।", "शादी कैंसिल कर दी गई।"),
        "pet": ("हमारा कुत्ता नहीं रहा।",),
        "condition": ("मैं पूरी तरह ठीक हो गया हूँ।", "मैं अब ठीक हो गई।"),
    },
    "japanese": {
        "partner": ("先月彼女と別れました。", "離婚した。", "彼氏に振られた。"),
        "job": ("仕事を辞めました。", "先週クビになった。", "失業しました。"),
        "employer": ("大学を中退しました。", "会社をやめた。"),
        "diet": ("また肉を食べるようになった。", "もうベジタリアンではありません。"),
        "medicine": ("薬を飲むのをやめた。", "薬はもう飲んでいません。"),
        "event": ("会議は中止になりました。", "キャンセルになった。"),
        "pet": ("愛犬が虹の橋を渡りました。",),
        "condition": ("すっかり治りました。", "癌を克服しました。"),
    },
    "korean": {
        "partner": ("우리 헤어졌어.", "남자친구랑 헤어졌어요.", "작년에 이혼했습니다."),
        "job": ("회사 그만뒀어.", "저 지난주에 해고됐어요.", "은퇴했습니다."),
        "employer": ("대학교 자퇴했어.", "일자리를 잃었어요."),
        "diet": ("다시 고기 먹어요.", "다이어트 그만뒀어."),
        "medicine": ("약 끊었어.", "이제 약 안 먹어요."),
        "event": ("회의가 취소됐어.", "약속 취소했어요."),
        "pet": ("강아지를 안락사시켰어요.",),
        "condition": ("이제 다 나았어.", "암을 이겨냈어요."),
    },
    "chinese": {
        "partner": ("我们分手了。", "我去年离婚了。", "她把我甩了。"),
        "job": ("我辞职了。", "我被裁员了。", "最近很忙，我被炒鱿鱼了。"),
        "employer": ("我退学了。", "我失业了。"),
        "diet": ("我又开始吃肉了。", "我不再吃素了。"),
        "medicine": ("我不吃药了。", "药停了。"),
        "event": ("会议取消了。", "取消了。"),
        "pet": ("我们不得不给它做安乐死。",),
        "condition": ("我康复了。", "我战胜了癌症。"),
    },
}  # fmt: skip
NEAR_MISSES: Final = {
    "german": (
        "Wir haben uns nicht getrennt.", "Ich will bald kündigen.", "Wenn sie mich feuern, ziehe ich weg.",
        "Meine Schwester hat sich scheiden lassen.", "Er wurde gefeuert.", "Ich hätte fast gekündigt.",
        "Wenn ich wieder gesund bin, gehe ich laufen.", "Ich habe meinen Handyvertrag gekündigt.",
    ),
    "french": (
        "On ne s'est pas séparés.", "Je veux démissionner.", "S'ils me virent, je déménage.", "Il a été licencié.",
        "Ma sœur a divorcé.", "J'aimerais être guéri.", "J'ai failli démissionner.",
    ),
    "spanish": (
        "No nos separamos.", "Quiero renunciar.", "Si me despiden, me mudo.", "Despidieron a mi hermano.",
        "Mi hermana se divorció.", "Si nos separamos, vendo la casa.", "Me echaron de menos.", "No lo cancelaron.",
    ),
    "italian": (
        "Non ci siamo lasciati.", "Voglio licenziarmi.", "Se mi licenziano, mi trasferisco.", "Lo hanno licenziato.",
        "Mia sorella ha divorziato.", "Non ho perso il lavoro.", "Spero di guarire.",
    ),
    "portuguese": (
        "Não nos separamos.", "Quero pedir demissão.", "Se me demitirem, eu me mudo.", "Ele foi demitido.",
        "Minha irmã se divorciou.", "Não fui despedida.", "Quase pedi demissão.",
    ),
    "dutch": (
        "We zijn niet uit elkaar.", "Ik wil ontslag nemen.", "Als ze me ontslaan, verhuis ik.", "Hij is ontslagen.",
        "Mijn zus is gescheiden.", "Het gaat gewoon door.", "Ik ben nog niet genezen.",
    ),
    "polish": (
        "Nie rozstaliśmy się.", "Chcę rzucić pracę.", "Jeśli mnie zwolnią, wyjadę.", "Zwolnili go.",
        "Moja siostra się rozwiodła.", "Nie zwolnili mnie.", "Gdyby mnie zwolnili, wyjadę.",
    ),
    "russian": (
        "Мы не расстались.", "Я хочу уволиться.", "Если меня уволят, я уеду.", "Его уволили.", "Моя сестра развелась.",
        "Уволился мой брат.", "Я бы уволилась.", "Если бы мы расстались, я бы уехала.", "Концерт не отменили.",
    ),
    "turkish": (
        "Ayrılmadık.", "İstifa etmek istiyorum.", "Beni işten çıkarırlarsa taşınırım.", "Kız kardeşim boşandı.",
        "Ağabeyim işten çıkarıldı.", "Toplantı iptal olmadı.", "Saat altıda işten çıktım.", "Şehirden ayrıldık.",
    ),
    "arabic": (
        "لم ننفصل.", "أريد أن أستقيل.", "إذا طردوني سأسافر.", "أختي تطلقت.", "طردوه من العمل.", "ما انفصلنا.",
        "أمي تقاعدت.", "لو انفصلنا سأبيع البيت.",
    ),
    "hindi": (
        "हमारा ब्रेकअप नहीं हुआ।", "मैं नौकरी छोड़ना चाहता हूँ।", "अगर मुझे निकाल दिया गया तो मैं चला जाऊँगा।",
        "मेरी बहन का तलाक हो गया।", "उसे नौकरी से निकाल दिया गया।", "मैं ठीक हूँ।", "मीटिंग रद्द नहीं हुई।",
    ),
    "japanese": (
        "別れていません。", "仕事を辞めたい。", "クビになったら引っ越す。", "姉が離婚した。", "友達は仕事を辞めた。",
        "会議は中止になっていない。", "会社を辞めようと思う。", "早く治りたい。",
    ),
    "korean": (
        "우리 안 헤어졌어.", "회사 그만두고 싶어.", "해고되면 이사할 거야.", "언니가 이혼했어.", "그 사람은 해고됐어.",
        "회의는 취소되지 않았어.", "헤어졌다면 힘들었을 거야.",
    ),
    "chinese": (
        "我们没分手。", "我想辞职。", "如果我被裁了，我就搬家。", "我姐姐离婚了。", "他被开除了。",
        "我要是失业了怎么办。", "会议没有取消。", "我差点辞职了。",
    ),
}  # fmt: skip


def table_of(language: str) -> dict[str, Any]:
    path = files("aforesaid.facts") / "matters" / f"{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_tables_and_keys_of_english(language: str) -> None:
    english, table = table_of("english"), table_of(language)
    # What is said in plain words differs from language to language.
    assert set(table["plain"]) <= set(table["lines"])
    table["plain"] = english["plain"]
    assert {name: list(keys) for name, keys in table.items()} == {name: list(keys) for name, keys in english.items()}
    assert len(table["lines"]) == 32


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_has_its_value_once(language: str) -> None:
    lines = table_of(language)["lines"]
    assert {matter: line.count("{value}") for matter, line in lines.items()} == dict.fromkeys(lines, 1)
    assert len(set(lines.values())) == len(lines)


@pytest.mark.parametrize("language", LANGUAGES)
def test_headings_of_a_language_are_all_different(language: str) -> None:
    headings = [heading.strip() for heading in table_of(language)["headings"].values()]
    assert all(headings)
    assert len(set(headings)) == len(headings)


@pytest.mark.parametrize("language", LANGUAGES)
def test_endings_are_regular_expressions_that_do_not_match_nothing(language: str) -> None:
    for patterns in table_of(language)["endings"].values():
        assert patterns
        assert not any(re.compile(pattern).search("") for pattern in patterns)


@pytest.mark.parametrize("language", LANGUAGES)
def test_titles_are_lower_case_and_listed_once(language: str) -> None:
    for words in table_of(language)["titles"].values():
        assert words == list(dict.fromkeys(word.strip().lower() for word in words))


@pytest.mark.parametrize(
    ("language", "matter", "sentence"),
    [
        (language, matter, sentence)
        for language, matters in ENDED.items()
        for matter, sentences in matters.items()
        for sentence in sentences
    ],
)
def test_what_is_over_is_found_without_being_named(language: str, matter: str, sentence: str) -> None:
    assert matter in ended_in(sentence, language)


@pytest.mark.parametrize(
    ("language", "sentence"), [(language, each) for language, sentences in NEAR_MISSES.items() for each in sentences]
)
def test_near_misses_end_nothing(language: str, sentence: str) -> None:
    assert ended_in(sentence, language) == []


@pytest.mark.parametrize("language", sorted({*LANGUAGES} - {"english"}))
def test_every_ending_has_an_example(language: str) -> None:
    assert list(ENDED[language]) == list(table_of(language)["endings"])
    assert len(NEAR_MISSES[language]) >= 4
