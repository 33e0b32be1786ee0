"""What Chinese statements are worth remembering. The patterns are for text as it stands, in normal form."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.rules.form import rule

CHINESE: Final = (
    rule("reminder", 8, r"提醒我", questions=True),
    rule(
        "schedule",
        7,
        r"(?:我|我们)?.{0,12}(?:开会|会议|考试|面试|婚礼|航班|葬礼|约了|预约|看医生|看牙|手术|聚会|出差)",
        timed="future",
    ),
    rule("fact", 10, r"我对.{1,10}过敏"),
    rule("fact", 9, r"我叫|我的名字是|我的名字叫|我(?:的)?生日是|我出生于|我出生在"),
    rule(
        "fact",
        8,
        r"我(?:现在|目前)?住在|我.{0,4}搬到|我在.{1,12}(?:工作|上班|上学|读书)|我是(?:一名|一个|个).{1,10}",
        towards="past",
    ),
    rule(
        "fact",
        7,
        r"我(?:今年)?\d{1,3}岁|我来自|我是.{1,6}人(?:[，。！]|$)|我(?:已经)?(?:结婚|离婚|怀孕)了|我有(?:一|两|三|四|\d)(?:个|只|条)(?:孩子|儿子|女儿|姐姐|妹妹|哥哥|弟弟|狗|猫)",
    ),
    rule(
        "fact",
        6,
        r"^我(?:的)?(?:妻子|老婆|丈夫|老公|妈妈|爸爸|姐姐|妹妹|哥哥|弟弟|儿子|女儿|女朋友|男朋友|朋友|狗|猫).{0,4}(?:叫|是|住|在)",
    ),
    rule("preference", 6, r"我(?:非常|很|最|特别)?(?:喜欢|爱吃|爱喝|讨厌|不喜欢|更喜欢|偏好)(?!你|他|她|这|那)"),
    rule("preference", 6, r"^[A-Za-z ]{2,30}(?:强烈|更|非常|很)?(?:喜欢|偏好|讨厌)"),
    rule("task", 7, r"我(?:必须|得|需要|应该去)(?!说|承认)"),
    rule("other", 6, r"(?:我|我们)(?:已经)?决定|^决定"),
    rule("task", 6, r"我(?:会|将)(?!.{0,2}(?:是|觉得|想念))"),
    rule("task", 6, r"(?:我|已)?(?:答应|承诺)(?:了|在|会)?"),
    rule("other", 6, r"我们(?:选择|选定)了?"),
)
