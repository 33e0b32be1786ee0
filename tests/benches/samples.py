"""Tiny data sets in every format, with sentences of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def locomo() -> list[dict[str, Any]]:
    """Two people, two sessions, a question of every kind that the loader must tell apart."""
    first = [
        {"dia_id": "D1:1", "speaker": "Mira", "text": "The greenhouse roof leaks again."},
        {"dia_id": "D1:2", "speaker": "Tom", "text": "I can bring my ladder on Friday."},
        {"dia_id": "D1:3", "speaker": "Mira", "text": "Look!", "blip_caption": "a photo of a broken pane"},
    ]
    second = [
        {"dia_id": "D2:1", "speaker": "Tom", "text": "My sister adopted a grey parrot."},
        {"dia_id": "D2:2", "speaker": "Mira", "text": "   "},
        {"dia_id": "D2:3", "speaker": "Mira", "text": "Does the parrot talk already?"},
    ]
    return [
        {
            "sample_id": "garden",
            "conversation": {
                "speaker_a": "Mira",
                "speaker_b": "Tom",
                "session_10_date_time": "12:05 am on 2 July, 2023",
                "session_10": second,
                "session_2_date_time": "1:56 pm on 8 May, 2023",
                "session_2": first,
                "session_11_date_time": "9:00 am on 9 July, 2023",
            },
            "qa": [
                {"question": "What leaks?", "evidence": ["D1:1"], "category": 4, "answer": "the roof"},
                {"question": "Who owns a ladder?", "evidence": ["D1:02; D:2:1"], "category": 1, "answer": "Tom"},
                {"question": "What was broken?", "evidence": ["D1:3", "D7:7"], "category": 3, "answer": "a pane"},
                {"question": "When did it rain?", "evidence": [], "category": 2, "answer": "never"},
                {"question": "Where is the well?", "evidence": ["D"], "category": 2, "answer": "nowhere"},
                {"question": "Which cat did Tom adopt?", "evidence": ["D2:1"], "category": 5, "answer": ""},
            ],
        }
    ]


def longmemeval() -> list[dict[str, Any]]:
    """A question with labelled turns, one with labelled sessions only, and one that has no answer."""
    violin = [
        {"role": "user", "content": "I bought a violin from the old town shop.", "has_answer": True},
        {"role": "assistant", "content": "How does it sound?", "has_answer": False},
    ]
    soup = [{"role": "user", "content": "Pumpkin soup again."}, {"role": "assistant", "content": "Add ginger."}]
    haystack = {
        "haystack_session_ids": ["answer_1", "filler_7", "filler_7"],
        "haystack_dates": ["2023/05/22 (Mon) 10:00", "2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 08:00"],
        "haystack_sessions": [violin, soup, soup],
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "a violin",
    }
    unlabelled = {
        **haystack,
        "haystack_sessions": [[{"role": t["role"], "content": t["content"]} for t in violin], soup, soup],
    }
    return [
        {
            **haystack,
            "question_id": "q1",
            "question_type": "single-session-user",
            "question": "What instrument did I buy?",
            "answer_session_ids": ["answer_1"],
        },
        {
            **unlabelled,
            "question_id": "q2",
            "question_type": "multi-session",
            "question": "Which violin shop?",
            "answer_session_ids": ["answer_1", "filler_7"],
        },
        {
            **haystack,
            "question_id": "q3_abs",
            "question_type": "multi-session",
            "question": "What cello did I buy?",
            "answer_session_ids": ["answer_1"],
        },
    ]


def beam(folder: Path, number: int = 1) -> Path:
    """A chat with an assistant, and its questions beside it."""
    chat = [
        {
            "batch_number": 1,
            "turns": [
                [
                    {
                        "id": 0,
                        "role": "user",
                        "content": "Plan a trip to Oslo. ->-> 1,1",
                        "time_anchor": "March-15-2024",
                    },
                    {"id": 1, "role": "assistant", "content": "Take the night train."},
                ]
            ],
        },
        {
            "batch_number": 2,
            "turns": [
                [
                    {"id": 2, "role": "user", "content": "My budget is 900 euros.", "time_anchor": "April-2-2024"},
                    {"id": 3, "role": "assistant", "content": "That is enough for a week."},
                ]
            ],
        },
    ]
    questions = {
        "abstention": [{"question": "What is my shoe size?"}],
        "knowledge_update": [
            {"question": "What is my budget?", "source_chat_ids": {"original": [2], "updated": [[3, 99]]}}
        ],
        "information_extraction": [{"question": "Which city?", "source_chat_ids": [0]}],
    }
    write(folder / str(number) / "chat.json", chat)
    write(folder / str(number) / "probing_questions.json", questions)
    return folder


def friendsqa() -> dict[str, Any]:
    """Three scenes of two episodes, not in their order."""

    def scene(title: str, *lines: tuple[list[str], str], question: str, answers: list[int]) -> dict[str, Any]:
        return {
            "title": title,
            "paragraphs": [
                {
                    "utterances:": [
                        {"uid": uid, "speakers": speakers, "utterance": text}
                        for uid, (speakers, text) in enumerate(lines)
                    ],
                    "qas": [
                        {
                            "id": f"{title}_{question.split(maxsplit=1)[0]}_Paraphrased",
                            "question": question,
                            "answers": [
                                {"utterance_id": uid, "answer_text": "", "is_speaker": False} for uid in answers
                            ],
                        }
                    ],
                }
            ],
        }

    return {
        "version": "1",
        "data": [
            scene(
                "x01_e02_c02",
                (["Ada", "Ben"], "Our boat sank!"),
                (["Cleo"], "Then we take the ferry."),
                question="What sank ?",
                answers=[0, 0],
            ),
            scene("x01_e01_c01", (["Ben"], "I lost my hat."), question="Who lost a hat ?", answers=[0]),
            scene("x01_e02_c01", (["Cleo"], "Pack the lanterns."), question="Why lanterns ?", answers=[8]),
        ],
    }


def memdaily() -> list[dict[str, Any]]:
    """Two trajectories of one person."""
    return [
        {
            "tid": 0,
            "message_list": [
                {"mid": 0, "message": "我的猫叫小雪。", "time": "2024年04月01日 周一 08:30", "place": "北京"},
                {"mid": 1, "message": "今天下雨了。", "time": "2024年04月02日 周二 09:00", "place": "北京"},
            ],
            "question_list": [
                {
                    "qid": 0,
                    "question": "我的猫叫什么名字？",
                    "answer": "小雪",
                    "target_step_id": [0],
                    "time": "2024年04月03日 周三 18:40",
                }
            ],
        },
        {
            "tid": 1,
            "message_list": [
                {"mid": 0, "message": "哥哥住在海边。", "time": "2024年04月01日 周一 10:00", "place": "青岛"}
            ],
            "question_list": [{"qid": 0, "question": "哥哥住在哪里？", "answer": "海边", "target_step_id": [0]}],
        },
    ]


TRANSCRIPT = """# id: en-assistant-01
# lang: en
# kind: assistant
== 2025-01-12 19:40
Mara: the roof leaks
assistant: Since when: the storm?

== 2025-02-01 08:00
Mara: the roofer came at last
Q single | What drips? | 1 | the roof
Q multi | Who mended it, and what? | 1, 3 | the roofer, the roof
Q none | Who painted the door? | | never said
F Mara | Mara's roof leaked. | home | 5 | 1
X 1 -> 1
"""


def realtalk() -> dict[str, Any]:
    def turn(identity: str, speaker: str, at: str, text: str, **more: object) -> dict[str, Any]:
        return {"dia_id": identity, "speaker": speaker, "date_time": at, "clean_text": text, "img_file": [], **more}

    return {
        "name": {"speaker_1": "Mira", "speaker_2": "tom"},
        "session_1": [
            turn("D1:1", "Mira", "29.12.2023, 22:42:04", "The boiler is broken"),
            turn("D1:2", "tom", "30.12.2023, 00:32:20", "", blip_caption="a photo of a boiler"),
        ],
        "session_2": [turn("D2:1", "tom", "02.01.2024, 08:00:00", "My cat is called Ada")],
        "session_1_date_time": "29.12.2023, 22:42:04",
        "session_2_date_time": "02.01.2024, 08:00:00",
        "qa": [
            {"question": "What is broken?", "answer": "the boiler", "evidence": ["D1:1", "D1:2"], "category": 1},
            {"question": "When was Ada named?", "answer": "January", "evidence": ["D:2:1"], "category": 2},
        ],
    }


def halumem() -> str:
    def session(number: int, said: str, *questions: dict[str, Any], update: bool = False) -> dict[str, Any]:
        at = f"Dec {number:02}, 2025, 06:11:23"
        return {
            "start_time": at,
            "end_time": f"Dec {number:02}, 2025, 07:00:00",
            "dialogue": [
                {"role": "user", "content": said, "timestamp": at, "dialogue_turn": 0},
                {"role": "assistant", "content": "I see.", "timestamp": at, "dialogue_turn": 0},
            ],
            "memory_points": [{"index": 1, "memory_content": f"Martin: {said}", "is_update": str(update)}],
            "questions": list(questions),
        }

    def question(text: str, answer: str, kind: str, *evidence: str) -> dict[str, Any]:
        named = [{"memory_content": f"Martin: {each}", "memory_type": "Event Memory"} for each in evidence]
        return {"question": text, "answer": answer, "evidence": named, "difficulty": "easy", "question_type": kind}

    first, last = "I work as a baker", "I am a gardener now"
    user = {
        "uuid": "martin",
        "persona_info": "Name: Martin Mark",
        "sessions": [
            session(1, first, question("What is Martin's job?", "a baker", "Basic Fact Recall", first)),
            session(
                9,
                last,
                question("What is Martin's job now?", "a gardener", "Dynamic Update", first, last),
                question("What is the name of Martin's dog?", "It is not known.", "Memory Boundary"),
                update=True,
            ),
            {"start_time": "Dec 10, 2025, 06:00:00", "dialogue": [{"role": "user", "content": "2 + 2?"}]},
        ],
    }
    return json.dumps(user) + "\n"


def memory_agent_bench() -> str:
    lines = "".join(f"{number}. The capital of land {number} is city {number}.\n" for number in range(100))
    entry = {
        "context": lines,
        "questions": ["What is the capital of land 7?", ""],
        "answers": [["city 7", "City Seven", "city 7"], ["nothing"]],
        "metadata": {"source": "factconsolidation_sh_6k", "qa_pair_ids": ["1", "2"]},
    }
    return json.dumps(entry) + "\n\n" + json.dumps(entry) + "\n"
