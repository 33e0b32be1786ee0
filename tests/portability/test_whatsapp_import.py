"""A WhatsApp chat as people read it: their words, without the app's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from portability.imported import BERLIN, history, load, load_into, packed, said, users, written

pytestmark = pytest.mark.defect("N4")

ANDROID = """\
3/1/26, 9:00 AM - Messages and calls are end-to-end encrypted. No one outside of this chat can read them.
3/1/26, 9:01 AM - Ann created group "Trip: 2026"
3/1/26, 9:02 AM - Ann: tea?
3/1/26, 9:03 AM - Bob: <Media omitted>
3/1/26, 9:04 AM - Bob: This message was deleted
3/1/26, 9:05 AM - Ann: You deleted this message
3/1/26, 9:06 AM - Bob: Missed voice call
3/1/26, 9:07 AM - Bob: Missed group video call
3/1/26, 9:08 AM - Bob: null
3/1/26, 9:09 AM - Ann: green tea \u200e<This message was edited>
3/1/26, 9:10 AM - Bob: \u200eIMG-20260301-WA0001.jpg (file attached)
the new kettle
3/1/26, 9:11 AM - Bob: PTT-20260301-WA0002.opus (file attached)
3/1/26, 9:12 AM - Bob: <Media omitted>
recipe.pdf
3/1/26, 9:13 AM - Ann changed the subject from "Trip" to "Tea: only green"
3/14/26, 9:14 AM - Ann: location: https://maps.google.com/?q=52.5,13.4
3/14/26, 9:15 AM - Ann: list:
  - milk
  - sugar
"""

IPHONE = """\
\u200e[01.03.26, 09:00:00] Family: \u200eNachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.
[01.03.26, 09:00:01] Family: \u200eAnn hat diese Gruppe erstellt.
[01.03.26, 09:01:00] Ann: Tee?
\u200e[01.03.26, 09:02:00] Bob: \u200eBild weggelassen
\u200e[01.03.26, 09:03:00] Bob: \u200eDiese Nachricht wurde gelöscht.
\u200e[01.03.26, 09:04:00] Bob: \u200eVerpasster Sprachanruf. \u200eZum Zurückrufen tippen
[01.03.26, 09:05:00] ~\u202fCleo: grüner Tee \u200e<Diese Nachricht wurde bearbeitet.>
\u200e[01.03.26, 09:06:00] Ann: der Kessel \u200e<Anhang: 00000012-PHOTO-2026-03-01-09-06-00.jpg>
\u200e[01.03.26, 09:07:00] Ann: \u200e<Anhang: 00000013-AUDIO-2026-03-01-09-07-00.opus>
\u200e[14.03.26, 09:08:00] Ann: Steuer.pdf • \u200e3 Seiten \u200eDokument weggelassen
[14.03.26, 09:09:00] Bob: danke @\u2068Ann\u2069
\u200e[14.03.26, 09:10:00] Bob: \u200eUMFRAGE:
Wann?
\u200eOPTION: Montag (2 Stimmen)
\u200eOPTION: Dienstag (0 Stimmen)
"""


async def test_an_android_chat_keeps_words_and_counts_the_rest(tmp_path: Path) -> None:
    report, store = await load(written(tmp_path / "WhatsApp Chat with Trip.txt", ANDROID), user="me")
    messages = await history(store, "me", "whatsapp:Trip")
    assert [(message.author, message.text) for message in messages if message.text] == [
        ("Ann", "tea?"),
        ("Ann", "green tea"),
        ("Bob", "the new kettle"),
        ("Ann", "location: https://maps.google.com/?q=52.5,13.4"),
        ("Ann", "list:\n  - milk\n  - sugar"),
    ]
    assert [(message.kind, [part.name for part in message.parts]) for message in messages if message.parts] == [
        ("photo", ["IMG-20260301-WA0001.jpg"]),
        ("voice", ["PTT-20260301-WA0002.opus"]),
        ("file", ["recipe.pdf"]),
    ]
    assert (sum(report.skipped.values()), report.problems) == (9, 0)


async def test_an_iphone_chat_keeps_words_and_its_group_is_nobody(tmp_path: Path) -> None:
    report, store = await load(packed(tmp_path / "WhatsApp Chat - Family.zip", {"_chat.txt": IPHONE}))
    assert await users(store) == {"Ann", "Bob", "Cleo"}
    messages = await history(store, "Ann", "whatsapp:Family")
    assert [message.text for message in messages if message.text] == [
        "Tee?",
        "grüner Tee",
        "der Kessel",
        "danke @Ann",
        "UMFRAGE:\nWann?\nOPTION: Montag (2 Stimmen)\nOPTION: Dienstag (0 Stimmen)",
    ]
    assert [(message.kind, message.parts[0].name) for message in messages if message.parts] == [
        ("photo", "00000012-PHOTO-2026-03-01-09-06-00.jpg"),
        ("voice", "00000013-AUDIO-2026-03-01-09-07-00.opus"),
        ("file", "Steuer.pdf"),
    ]
    assert (sum(report.skipped.values()), report.problems) == (5, 0)


SYSTEM_LINES = {
    "English": ("<Media omitted>", "This message was deleted", "Missed voice call", "This message was edited"),
    "German": (
        "<Medien ausgeschlossen>",
        "Diese Nachricht wurde gelöscht.",
        "Verpasster Videoanruf",
        "Diese Nachricht wurde bearbeitet.",
    ),
    "Spanish": ("<Multimedia omitido>", "Se eliminó este mensaje.", "Videollamada perdida", "Se editó este mensaje."),
    "French": ("<Médias omis>", "Ce message a été supprimé", "Appel vocal manqué", "Ce message a été modifié"),
    "Italian": (
        "<Media omessi>",
        "Questo messaggio è stato eliminato",
        "Chiamata vocale persa",
        "Questo messaggio è stato modificato",
    ),
    "Portuguese": (
        "<Mídia oculta>",
        "Esta mensagem foi apagada",
        "Chamada de voz perdida",
        "Esta mensagem foi editada",
    ),
    "Dutch": ("<Media weggelaten>", "Dit bericht is verwijderd", "Gemiste spraakoproep", "Dit bericht is bewerkt"),
    "Russian": (
        "<Без медиафайлов>",
        "Данное сообщение удалено",
        "Пропущенный аудиозвонок",
        "Сообщение изменено",
    ),
    "Turkish": ("<Medya dahil edilmedi>", "Bu mesaj silindi", "Cevapsız sesli arama", "Bu mesaj düzenlendi"),
    "Polish": (
        "<Pominięto multimedia>",
        "Ta wiadomość została usunięta",
        "Nieodebrane połączenie głosowe",
        "Wiadomość edytowana",
    ),
    "Arabic": ("<تم استبعاد الوسائط>", "تم حذف هذه الرسالة", "مكالمة صوتية فائتة", "تم تعديل هذه الرسالة"),
    "Hindi": ("<मीडिया के बिना>", "यह मैसेज हटा दिया गया था", "मिस्ड वॉइस कॉल", "यह मैसेज एडिट किया गया"),
    "Indonesian": (
        "<Media tidak disertakan>",
        "Pesan ini telah dihapus",
        "Panggilan suara tak terjawab",
        "Pesan ini diedit",
    ),
    "Chinese": ("<省略多媒体文件>", "此消息已删除", "未接语音通话", "此消息已编辑"),
    "Japanese": (
        "<メディアは含まれていません>",
        "このメッセージは削除されました",
        "不在着信",
        "このメッセージは編集されました",
    ),
    "Korean": ("<미디어 파일 제외됨>", "삭제된 메시지입니다", "부재중 음성 통화", "이 메시지는 수정되었습니다"),
    "Swedish": (
        "<Media har utelämnats>",
        "Det här meddelandet togs bort",
        "Missat röstsamtal",
        "Det här meddelandet har redigerats",
    ),
    "Danish": (
        "<Medier udeladt>",
        "Denne besked blev slettet",
        "Ubesvaret taleopkald",
        "Denne besked blev redigeret",
    ),
    "Norwegian": (
        "<Medier utelatt>",
        "Denne meldingen ble slettet",
        "Tapt taleanrop",
        "Denne meldingen ble redigert",
    ),
    "Finnish": (
        "<Media jätettiin pois>",
        "Tämä viesti poistettiin",
        "Vastaamaton äänipuhelu",
        "Tätä viestiä on muokattu",
    ),
    "Czech": (
        "<Média vynechána>",
        "Tato zpráva byla smazána",
        "Zmeškaný hlasový hovor",
        "Tato zpráva byla upravena",
    ),
    "Ukrainian": (
        "<Медіа пропущено>",
        "Це повідомлення видалено",
        "Пропущений аудіодзвінок",
        "Це повідомлення змінено",
    ),
    "Romanian": (
        "<Fișier media omis>",
        "Acest mesaj a fost șters",
        "Apel vocal nepreluat",
        "Acest mesaj a fost editat",
    ),
    "Greek": (
        "<Μη συμπεριλαμβανομένων των πολυμέσων>",
        "Αυτό το μήνυμα διαγράφηκε",
        "Αναπάντητη φωνητική κλήση",
        "Αυτό το μήνυμα τροποποιήθηκε",
    ),
    "Hebrew": ("<המדיה לא נכללה>", "הודעה זו נמחקה", "שיחת קול שלא נענתה", "הודעה זו נערכה"),
    "Vietnamese": (
        "<Tệp phương tiện bị bỏ qua>",
        "Tin nhắn này đã bị xóa",
        "Cuộc gọi thoại nhỡ",
        "Tin nhắn này đã được chỉnh sửa",
    ),
}


def test_every_language_is_tested() -> None:
    from aforesaid.portability.formats.whatsapp import LANGUAGES  # noqa: PLC0415 - the others need it not

    assert tuple(SYSTEM_LINES) == LANGUAGES


@pytest.mark.defect("I5")
@pytest.mark.parametrize("language", SYSTEM_LINES)
async def test_the_apps_words_are_left_out_in_every_language(tmp_path: Path, language: str) -> None:
    omitted, deleted, call, edited = SYSTEM_LINES[language]
    rows = [omitted, deleted, call, f"tea <{edited}>"]
    text = "".join(f"14.03.26, 21:0{number} - Ann: {row}\n" for number, row in enumerate(rows))
    report, store = await load(written(tmp_path / "_chat.txt", text))
    assert await said(store, "Ann") == ["tea"]
    assert sum(report.skipped.values()) == 3


async def test_the_order_of_day_and_month_is_decided_by_the_whole_file(tmp_path: Path) -> None:
    long_ago = [f"02/03/26, 21:05 - Ann: {number} {'x' * 200}\n" for number in range(2_000)]
    text = "".join([*long_ago, "03/25/26, 21:06 - Bob: the first day above twelve\n"])
    _, store = await load(written(tmp_path / "_chat.txt", text))
    (first, *_) = await history(store, "Ann")
    assert first.at == datetime(2026, 2, 3, 21, 5, tzinfo=BERLIN)


async def test_short_years_can_come_first(tmp_path: Path) -> None:
    text = "[24-12-30 21:05:00] Ann: old year\n[25-01-02 21:06:00] Ann: new year\n[25-01-31 21:06:00] Ann: later\n"
    _, store = await load(written(tmp_path / "_chat.txt", text))
    messages = await history(store, "Ann")
    assert [message.at.astimezone(BERLIN).date().isoformat() for message in messages] == [
        "2024-12-30",
        "2025-01-02",
        "2025-01-31",
    ]


async def test_the_notice_of_older_iphones_makes_nobody_of_a_group(tmp_path: Path) -> None:
    text = "15.04.16, 15:04 - Family: Messages and calls are end-to-end encrypted.\n15.04.16, 15:05 - Ann: tea?\n"
    _, store = await load(written(tmp_path / "_chat.txt", text))
    assert await users(store) == {"Ann"}


async def test_messages_come_out_in_the_order_of_their_times(tmp_path: Path) -> None:
    text = "14.03.26, 21:05 - Ann: second\n14.03.26, 21:04 - Ann: first\n14.03.26, 21:06 - Ann: third\n"
    _, store = await load(written(tmp_path / "_chat.txt", text))
    messages = await history(store, "Ann")
    assert [message.text for message in messages] == ["first", "second", "third"]
    assert [message.seq for message in messages] == sorted(message.seq for message in messages)


async def test_a_name_with_a_colon_is_one_name(tmp_path: Path) -> None:
    rows = ["hello", "how are you: well?", "fine", "yes", "bye"]
    theirs = "".join(f"14.03.26, 21:0{number} - Dr: House: {row}\n" for number, row in enumerate(rows))
    mine = "".join(f"14.03.26, 21:1{number} - Ann: note: {number}\n" for number in range(3))
    _, store = await load(written(tmp_path / "_chat.txt", theirs + mine))
    assert await said(store, "Dr: House") == rows
    assert await said(store, "Ann") == ["note: 0", "note: 1", "note: 2"]


async def test_the_name_of_the_file_says_that_a_name_has_a_colon(tmp_path: Path) -> None:
    text = "14.03.26, 21:05 - Dr: House: hello\n14.03.26, 21:06 - Ann: hi\n"
    _, store = await load(written(tmp_path / "WhatsApp Chat with Dr_ House.txt", text))
    assert await said(store, "Dr: House") == ["hello"]


async def test_names_and_texts_from_right_to_left_are_kept(tmp_path: Path) -> None:
    text = (
        "\u200f14\u200f/3\u200f/2026، 9:05 م - \u202aدانة\u202c: لازم نروح، بكرا\n"
        "\u200f15\u200f/3\u200f/2026، 9:06 ص - دانة: طيب\n"
    )
    _, store = await load(written(tmp_path / "_chat.txt", text))
    messages = await history(store, "دانة")
    assert [message.text for message in messages] == ["لازم نروح، بكرا", "طيب"]
    assert [message.at.astimezone(BERLIN).hour for message in messages] == [21, 9]


async def test_two_exports_of_one_chat_are_stored_once(tmp_path: Path) -> None:
    """The second one has a number in its name, pictures, and a message more."""
    _, store = await load(
        written(
            tmp_path / "WhatsApp Chat with Bob.txt",
            "14.03.26, 21:05 - Ann: tea?\n14.03.26, 21:06 - Bob: <Media omitted>\n",
        )
    )
    later = (
        "14.03.26, 21:05 - Ann: tea?\n14.03.26, 21:06 - Bob: IMG-1.jpg (file attached)\n14.03.26, 21:07 - Bob: yes\n"
    )
    report = await load_into(store, written(tmp_path / "WhatsApp Chat with Bob (1).txt", later))
    assert report.new == {"message": 2}
    assert await said(store, "Ann", "whatsapp:Bob") == ["tea?", "", "yes"]


async def test_utf_16_and_a_mark_at_the_start_are_read(tmp_path: Path) -> None:
    text = "14.03.26, 21:05 - Ann: grüner Tee\n"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"):
        path = tmp_path / f"{encoding}.txt"
        path.write_bytes(text.encode(encoding))
        report, store = await load(path)
        assert (report.format, await said(store, "Ann")) == ("whatsapp", ["grüner Tee"])


async def test_thai_years_are_543_ahead(tmp_path: Path) -> None:
    _, store = await load(written(tmp_path / "_chat.txt", "14/3/2569 21:05 - Ann: ชา\n"))
    (message,) = await history(store, "Ann")
    assert message.at.astimezone(UTC).year == 2026
