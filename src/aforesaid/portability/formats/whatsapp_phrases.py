"""What WhatsApp itself writes into an exported chat, in 26 languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple


class _Phrases(NamedTuple):
    """The phrases of one language, as regular expressions for lower-case text."""

    omitted: str
    """Instead of a picture or file that is not in the export."""
    deleted: str
    edited: str
    attached: str
    """After the name of a file that is in the export."""
    call: str


_LANGUAGES: Final = {
    "English": _Phrases(
        r"(?:media|image|video|audio|gif|sticker|document|contact card|video note|(?:view once )?voice message)"
        r" omitted",
        r"this message was deleted(?: by admin .+)?|you deleted this message(?: as admin)?",
        r"this message was edited",
        r"file attached",
        r"missed (?:group )?(?:voice|video) call|(?:silenced )?(?:voice|video) call|call ended",
    ),
    "German": _Phrases(
        r"medien (?:ausgeschlossen|weggelassen)|(?:bild|video|audio|gif|sticker|dokument|kontaktkarte) weggelassen",
        r"diese nachricht wurde gelöscht|du hast diese nachricht gelöscht",
        r"diese nachricht wurde bearbeitet",
        r"datei angehängt",
        r"verpasster (?:gruppen-?)?(?:sprach|video)anruf|(?:sprach|video)anruf",
    ),
    "Spanish": _Phrases(
        r"(?:multimedia|archivo|vídeo|video|audio|gif|sticker|documento) omitido"
        r"|(?:imagen|tarjeta de contacto) omitida",
        r"se eliminó este mensaje|este mensaje fue eliminado|eliminaste este mensaje",
        r"se editó este mensaje|este mensaje fue editado",
        r"archivo adjunto",
        r"(?:video)?llamada (?:de voz )?(?:grupal )?perdida|llamada de voz|videollamada",
    ),
    "French": _Phrases(
        r"médias? omis|fichier omis|(?:image|vidéo) (?:absente|omise)"
        r"|(?:audio|sticker|document|gif) (?:omis|absent|manquant|retiré)"
        r"|fiche contact (?:absente|omise)",
        r"ce message a été supprimé|vous avez supprimé ce message",
        r"ce message a été modifié",
        r"fichier joint",
        r"appel (?:vocal|vidéo) (?:de groupe )?manqué|appel (?:vocal|vidéo)",
    ),
    "Italian": _Phrases(
        r"media omess[oi]|immagine omessa|(?:video|audio|documento) omesso|gif (?:esclusa|omessa)"
        r"|sticker (?:non incluso|omesso)|scheda contatto omessa",
        r"questo messaggio è stato eliminato|hai eliminato questo messaggio",
        r"questo messaggio è stato modificato",
        r"file allegato",
        r"(?:video)?chiamata (?:vocale )?(?:di gruppo )?persa|chiamata vocale|videochiamata",
    ),
    "Portuguese": _Phrases(
        r"mídia (?:oculta|omitida)|arquivo de mídia oculto|ficheiro não revelado|imagem (?:ocultada|oculta|omitida)"
        r"|(?:vídeo|áudio|documento|cartão do contato) (?:omitido|ocultado|oculto)|gif omitido|figurinha omitida",
        r"(?:esta )?mensagem (?:foi )?(?:apagada|eliminada)|(?:você )?(?:apagou|eliminou) esta mensagem",
        r"(?:esta )?mensagem (?:foi )?editada",
        r"(?:arquivo|ficheiro) anexado",
        r"(?:chamada|ligação) de (?:voz|vídeo) (?:em grupo )?perdida|(?:chamada|ligação) de (?:voz|vídeo)",
    ),
    "Dutch": _Phrases(
        r"(?:media|afbeelding|video|audio|gif|sticker|document|contactkaart) weggelaten",
        r"dit bericht is verwijderd|(?:je|u) hebt dit bericht verwijderd",
        r"dit bericht is bewerkt",
        r"bestand bijgevoegd",
        r"gemiste (?:groeps)?(?:spraak|video)oproep|(?:spraak|video)oproep",
    ),
    "Russian": _Phrases(
        r"без медиафайлов|файл пропущен|(?:изображение|видео|аудиофайл|аудио|gif|стикер|документ|карточка контакта)"
        r" (?:отсутствует|пропущен[оа]?)",
        r"(?:данное |это )?сообщение удалено|вы удалили (?:данное|это) сообщение",
        r"(?:данное |это )?сообщение изменено",
        r"файл (?:добавлен|прикреплён|прикреплен)",
        r"пропущенный (?:групповой )?(?:аудио|видео)звонок|(?:аудио|видео)звонок",
    ),
    "Turkish": _Phrases(
        r"medya (?:dahil edilmedi|atlanmış)|(?:görüntü|video|ses|gif|çıkartma|belge|kişi kartı) dahil edilmedi",
        r"bu mesaj silindi|bu mesajı sildiniz",
        r"bu mesaj düzenlendi",
        r"dosya ekli",
        r"cevapsız (?:grup )?(?:sesli|görüntülü) arama|(?:sesli|görüntülü) arama",
    ),
    "Polish": _Phrases(
        r"pominięto multimedia|pliki pominięto"
        r"|(?:obraz|film|dźwięk|gif|naklejka|dokument|karta kontaktu) (?:został[aoy]? )?pominięt[aoey]",
        r"(?:ta )?wiadomość została usunięta|usunięto tę wiadomość|usun(?:ąłeś|ęłaś)(?:\(aś\))? tę wiadomość",
        r"(?:ta )?wiadomość została (?:zmieniona|edytowana|zedytowana)|wiadomość edytowana",
        r"załączony plik|plik załączony",
        r"nieodebrane (?:grupowe )?połączenie (?:głosowe|wideo)|połączenie (?:głosowe|wideo)",
    ),
    "Arabic": _Phrases(
        r"تم استبعاد (?:الوسائط|الصورة|الفيديو|الصوت|الملصق|المستند|جهة الاتصال)|(?:الصورة|الفيديو|الصوت) غير مدرجة?",
        r"تم حذف هذه الرسالة|(?:لقد )?حذفت (?:أنت )?هذه الرسالة",
        r"تم تعديل هذه الرسالة",
        r"الملف مرفق",
        r"مكالمة (?:صوتية|فيديو) (?:فائتة|لم يرد عليها)|مكالمة (?:صوتية|فيديو)",
    ),
    "Hindi": _Phrases(
        r"मीडिया (?:के बिना|छोड़ा गया|शामिल नहीं है)|(?:तस्वीर|वीडियो|ऑडियो|स्टिकर|दस्तावेज़) (?:के बिना|छोड़ा गया|छोड़ी गई)",
        r"यह (?:संदेश|मैसेज) (?:हटा दिया गया|मिटाया गया)(?: था| है)?|आपने यह (?:संदेश|मैसेज) (?:हटा दिया|हटाया|मिटाया)(?: है)?",
        r"यह (?:संदेश|मैसेज) (?:संपादित|एडिट) किया गया(?: था| है)?",
        r"फ़ाइल (?:संलग्न|अटैच की गई)(?: है)?",
        r"(?:मिस्ड|छूटी हुई) (?:वॉइस|वीडियो) कॉल|(?:वॉइस|वीडियो) कॉल",
    ),
    "Indonesian": _Phrases(
        r"(?:media|gambar|video|audio|gif|stiker|dokumen|kartu kontak) tidak disertakan",
        r"pesan ini (?:telah )?dihapus|anda (?:telah )?menghapus pesan ini",
        r"pesan ini (?:telah )?diedit",
        r"file terlampir",
        r"panggilan (?:grup )?(?:suara|video) (?:grup )?(?:tak|tidak) terjawab|panggilan (?:suara|video)",
    ),
    "Chinese": _Phrases(
        r"(?:省略|忽略)(?:多媒体文件|多媒體檔案?|图片|圖片|视频|影片|音频|音訊|文档|文件|贴图|貼圖)|媒体省略",
        r"(?:此|这条)消息已删除|您?已删除(?:此|这条)消息|此訊息已刪除|[您你]已刪除此訊息|[您你]刪除了此訊息",
        r"此消息已编辑|(?:已編輯此訊息|此訊息已編輯)",
        r"文件附件|附件|檔案附件|已附加檔案",
        r"未接(?:听)?(?:语音|视频)(?:通话|来电)|未接(?:語音|視訊)(?:通話|來電)",
    ),
    "Japanese": _Phrases(
        r"(?:メディア|画像|動画|ビデオ|音声|オーディオ|gif|ステッカー|スタンプ|ドキュメント|連絡先カード)は含まれていません|メディアなし",
        r"このメッセージは削除されました|(?:あなたは)?このメッセージを削除しました",
        r"このメッセージは編集(?:されました|済みです)",
        r"添付ファイル|ファイルが添付されています",
        r"(?:音声|ビデオ)通話に応答がありません(?:でした)?|(?:音声|ビデオ)通話の?不在着信|不在着信",
    ),
    "Korean": _Phrases(
        r"미디어 파일 제외됨|미디어 파일을 생략한 대화내용|(?:이미지|사진|동영상|오디오|스티커|문서) (?:생략됨|제외됨)",
        r"삭제된 메시지입니다|이 메시지는 삭제되었습니다|(?:회원님이 )?이 메시지를 삭제했습니다",
        r"이 메시지는 (?:수정|편집)되었습니다",
        r"파일 첨부됨",
        r"부재중 (?:음성|영상) 통화|(?:음성|영상) 통화",
    ),
    "Swedish": _Phrases(
        r"(?:medi(?:a|er|efiler)|bild(?:en)?|video(?:n|klipp)?|ljud(?:et)?|gif|klistermärke|dekal|sticker|dokument(?:et)?"
        r"|kontaktkort(?:et)?) (?:har )?(?:uteläm(?:nats|nades|nad|nat)|uteslut(?:its|en|et|na)|uteslöts)",
        r"(?:det här meddelandet|detta meddelande|meddelandet) (?:har )?(?:rader(?:ats|ades)|tagits bort|togs bort)"
        r"|du (?:raderade|tog bort|har raderat|har tagit bort) (?:det här meddelandet|detta meddelande)",
        r"(?:det här meddelandet|detta meddelande|meddelandet) (?:har )?(?:redigerats|redigerades)",
        r"(?:fil bifogad|bifogad fil)",
        r"missat (?:grupp)?(?:röst|video)samtal|(?:röst|video)samtal",
    ),
    "Danish": _Phrases(
        r"(?:medier?|mediefil(?:er)?|billede|video|lyd|gif|sticker|mærkat|dokument|kontaktkort) (?:er )?udelad(?:t|et)",
        r"denne (?:besked|meddelelse) (?:blev|er(?: blevet)?) slettet"
        r"|du (?:har )?slette(?:de|t) denne (?:besked|meddelelse)",
        r"denne (?:besked|meddelelse) (?:blev|er(?: blevet)?) redigeret",
        r"(?:fil vedhæftet|vedhæftet fil)",
        r"ubesvaret (?:gruppe)?(?:tale|video)opkald|(?:tale|video)opkald",
    ),
    "Norwegian": _Phrases(
        r"(?:medie(?:r|fil|filer|innhold)?|bilde|video|lyd|gif|klistremerke|dokument|kontaktkort)"
        r" (?:er |ble )?utelat(?:t|e)",
        r"denne meldingen (?:ble|er|har blitt) slettet|du (?:har )?slettet denne meldingen",
        r"denne meldingen (?:ble|er|har blitt) redigert",
        r"(?:fil vedlagt|vedlagt fil)",
        r"(?:tapt|ubesvart) (?:gruppe)?(?:tale|video)anrop|(?:tale|video)anrop",
    ),
    "Finnish": _Phrases(
        r"(?:media|kuva|video|ääni|gif|tarra|asiakirja|yhteystieto(?:kortti)?) jätettiin pois",
        r"tämä viesti (?:on )?poistett(?:u|iin)|poistit tämän viestin",
        r"tätä viestiä (?:on muokattu|muokattiin)|tämä viesti on muokattu",
        r"(?:tiedosto liitetty|liitetiedosto)",
        r"vastaamaton (?:ryhmä)?(?:ääni|video)puhelu|(?:ääni|video)puhelu",
    ),
    "Czech": _Phrases(
        r"(?:média|multimédia|obrázek|video|zvuk|gif|nálepka|dokument|vizitka)"
        r" (?:byl[aoy]? )?(?:vynechán[aoy]?|vypuštěn[aoy]?|nezahrnut[aoy]?)",
        r"tato zpráva byla (?:smazána|odstraněna)|(?:smazali|odstranili) jste tuto zprávu"
        r"|tuto zprávu jste (?:smazali|odstranili)",
        r"tato zpráva byla upravena",
        r"(?:soubor byl přiložen|přiložený soubor|soubor přiložen)",
        r"zmeškaný (?:skupinový )?(?:hlasový hovor|videohovor)|hlasový hovor|videohovor",
    ),
    "Ukrainian": _Phrases(
        r"без медіафайлів|(?:медіа(?:файл)?|зображення|відео|аудіо|gif|наліпку|стікер|документ|картку контакту)"
        r" (?:не додано|пропущено|вилучено)",
        r"(?:це )?повідомлення (?:було )?видалено|ви видалили це повідомлення",
        r"(?:це )?повідомлення (?:було )?(?:змінено|відредаговано)",
        r"файл (?:додано|прикріплено)",
        r"пропущений (?:груповий )?(?:аудіо|відео|голосовий )дзвінок|(?:аудіо|відео)дзвінок|голосовий дзвінок",
    ),
    "Romanian": _Phrases(
        r"(?:fișier(?:ul)? media|media|imagine|video(?:clip)?|audio|gif|autocolant|sticker|document|fișă de contact)"
        r" (?:omis[ăe]?|exclus[ăe]?)",
        r"acest mesaj a fost șters|(?:ați|ai) șters acest mesaj",
        r"acest mesaj a fost (?:editat|modificat)",
        r"fișier atașat",
        r"apel (?:vocal|video) (?:de grup )?(?:pierdut|nepreluat)|apel (?:vocal|video)",
    ),
    "Greek": _Phrases(
        r"(?:μη συμπεριλαμβανομένων των (?:πολυμέσων|αρχείων)|εξαίρεση πολυμέσων)"
        r"|(?:πολυμέσα|εικόνα|βίντεο|ήχος|gif|αυτοκόλλητο|έγγραφο|κάρτα επαφής) (?:παραλείφθηκ(?:ε|αν)|παραλείπεται)",
        r"αυτό το μήνυμα διαγράφ(?:η|ηκε|τηκε)|διαγράψατε αυτό το μήνυμα",
        r"αυτό το μήνυμα (?:έχει υποστεί επεξεργασία|επεξεργάστηκε|τροποποιήθηκε)",
        r"(?:συνημμένο αρχείο|το αρχείο επισυνάπτεται)",
        r"αναπάντητη (?:ομαδική )?(?:φωνητική κλήση|βιντεοκλήση|κλήση βίντεο)|φωνητική κλήση|βιντεοκλήση",
    ),
    "Hebrew": _Phrases(
        r"(?:המדיה לא נכללה|המדיה הושמטה|(?:התמונה|הסרטון|האודיו|קובץ השמע|הסטיקר|המסמך|כרטיס איש הקשר)"
        r" (?:לא נכללה?|הושמטה?|הושמט))",
        r"הודעה זו נמחקה|ההודעה נמחקה|מחקת הודעה זו|(?:את|אתה) מחקת הודעה זו",
        r"הודעה זו נערכה|ההודעה נערכה",
        r"(?:קובץ מצורף|הקובץ צורף)",
        r"שיחת (?:קול|וידאו)(?: קבוצתית)? שלא נענתה|שיחה קולית שלא נענתה|שיחת (?:קול|וידאו)",
    ),
    "Vietnamese": _Phrases(
        r"(?:tệp |file )?(?:phương tiện|hình ảnh|ảnh|video|âm thanh|gif|nhãn dán|tài liệu|danh thiếp liên hệ)"
        r" (?:đã )?bị (?:bỏ qua|loại bỏ|ẩn)",
        r"tin nhắn này đã bị xóa|bạn đã xóa tin nhắn này",
        r"tin nhắn này đã được chỉnh sửa",
        r"(?:tệp đính kèm|tệp đã đính kèm|file đính kèm)",
        r"cuộc gọi (?:thoại|video) (?:nhóm )?(?:nhỡ|bị nhỡ)|cuộc gọi (?:thoại|video)",
    ),
}

LANGUAGES: Final = tuple(_LANGUAGES)


def _any(phrases: Iterable[str]) -> str:
    return "|".join(phrases)


_OMITTED: Final = _any(each.omitted for each in _LANGUAGES.values())
_CALL: Final = _any(each.call for each in _LANGUAGES.values())

OMITTED: Final = re.compile(rf"<(?:{_OMITTED})>|(?:{_OMITTED})|null")
"""A whole line that names media without having it. `null` is a message that can be viewed once."""
OMITTED_FILE: Final = re.compile(rf"(?P<file>[^\n]+?\.\w{{1,5}}) • .{{0,60}}?(?:{_OMITTED})", re.DOTALL | re.IGNORECASE)
"""Such as `report.pdf • 3 pages document omitted`."""
DELETED: Final = re.compile(rf"(?:{_any(each.deleted for each in _LANGUAGES.values())})[.。]?")
EDITED: Final = re.compile(
    rf"\s*[\u200e\u200f]?<(?:{_any(each.edited for each in _LANGUAGES.values())})[.。]?>\s*$", re.IGNORECASE
)
ATTACHED: Final = re.compile(
    rf"^[\u200e\u200f]*(?P<file>[^\n]+?\.\w{{1,5}}) \((?:{_any(each.attached for each in _LANGUAGES.values())})\)",
    re.IGNORECASE,
)
"""Android's form: `IMG-20260301-WA0001.jpg (file attached)`; a caption follows on the next line."""
CALL: Final = re.compile(rf"(?:{_CALL})(?:[.,،].{{0,60}})?", re.DOTALL)
ENCRYPTED: Final = re.compile(
    r"end-to-end|ende-zu-ende|extremo a extremo|bout en bout|ponta a ponta|ponto a ponto|сквозн|uçtan uca|"
    r"مشفرة|مشفّرة|एंड-टू-एंड|端到端|端對端|エンドツーエンド|종단간|מקצה לקצה|"
    r"totalsträck|ände till ände|ende-til-ende|täysin salat|w pełni szyfrowane|koncov\w+ šifrov|"
    r"наскрізн|criptate integral|διατερματικ|mã hóa (?:hai )?đầu cuối",
    re.IGNORECASE,
)
"""What only the notice about encryption says."""
CHAT_FILE: Final = re.compile(
    r"^(?:.*whatsapp.*?\s(?:with|mit|con|avec|com|met|z|dengan|с контактом|с|مع)\s|.*whatsapp chat\s*-\s*)(?P<name>.+)$"
    r"|^(?P<first>.+?) ile whatsapp sohbeti$",
    re.IGNORECASE,
)
"""The name of an exported file, which has the name of the chat."""
