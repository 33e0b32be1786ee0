"""What Japanese statements are worth remembering. The patterns are for text as it stands, in normal form."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

JAPANESE: Final = (
    rule("reminder", 8, r"(?:思い出させて|リマインドして|教えてください|忘れないように)", questions=True),
    rule(
        "schedule",
        7,
        r"(?:会議|打ち合わせ|予約|試験|面接|結婚式|葬式|フライト|コンサート|歯医者|病院|手術|出張)(?:が(?:ある|あり)|に行|の予定|です|だ)",
        timed="future",
    ),
    rule("fact", 10, r"アレルギー(?:が(?:ある|あり)|です|だ)"),
    rule("fact", 9, r"(?:私|僕|俺)の名前は|と申します|(?:私|僕)の誕生日は|誕生日は.{1,10}(?:です|だ)"),
    rule(
        "fact",
        8,
        r"に住んで(?:いる|います|いて|る)(?!.{0,4}ない)|に引っ越し(?:た|まし)|で働いて(?:いる|います|る)|に勤めて(?:いる|います|る)",
        towards="past",
    ),
    rule("fact", 7, r"\d{1,3}歳(?:です|だ)|の出身(?:です|だ)|結婚して(?:いる|います)"),
    rule("preference", 6, r"が(?:大)?好き(?:です|だ|。|$)|が(?:大)?嫌い(?:です|だ|。|$)|の方が(?:好き|いい)"),
    rule("task", 7, r"(?:しなければ|しないと|なきゃ|必要がある|必要があります)"),
)
