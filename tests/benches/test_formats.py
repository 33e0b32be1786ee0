"""Every format is recognised by its shape, and read as its authors mean it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from evaluation.conversation import Conversation, Count, Dataset
from evaluation.datasets import load_datasets
from evaluation.filling import rounds_of
from evaluation.question_sample import sample

from aforesaid.errors import InvalidInput
from benches import samples


def only(path: Path) -> Dataset:
    datasets = load_datasets(path)
    assert len(datasets) == 1
    return datasets[0]


def said(conversation: Conversation) -> list[tuple[str, str, str]]:
    return [(turn.session, turn.id, turn.text) for turn in conversation.turns]


def asked(dataset: Dataset) -> dict[str, tuple[str, ...]]:
    return {q.text: q.turns for conversation in dataset.conversations for q in conversation.questions}


def test_locomo(tmp_path: Path) -> None:
    dataset = only(samples.write(tmp_path / "any name.json", samples.locomo()))
    assert (dataset.format, [c.id for c in dataset.conversations]) == ("LoCoMo", ["garden"])
    turns = dataset.conversations[0].turns
    assert said(dataset.conversations[0]) == [
        ("session_2", "D1:1", "The greenhouse roof leaks again."),
        ("session_2", "D1:2", "I can bring my ladder on Friday."),
        ("session_2", "D1:3", "Look! [a photo of a broken pane]"),
        ("session_10", "D2:1", "My sister adopted a grey parrot."),
        ("session_10", "D2:3", "Does the parrot talk already?"),
    ]
    assert {(turn.role, turn.speaker) for turn in turns} == {("user", "Mira"), ("user", "Tom")}
    assert turns[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert turns[3].at == datetime(2023, 7, 2, 0, 5, tzinfo=UTC)
    assert dataset.conversations[0].questions[0].asked_at == turns[-1].at + timedelta(days=1)


def test_locomo_evidence_is_repaired_or_the_question_is_left_out(tmp_path: Path) -> None:
    dataset = only(samples.write(tmp_path / "locomo.json", samples.locomo()))
    assert asked(dataset) == {
        "What leaks?": ("D1:1",),
        "Who owns a ladder?": ("D1:2", "D2:1"),
        "What was broken?": ("D1:3",),
        "Which cat did Tom adopt?": ("D2:1",),
    }
    questions = dataset.conversations[0].questions
    assert [(q.category, q.apart) for q in questions] == [
        ("4 single-hop", False),
        ("1 multi-hop", False),
        ("3 open-domain", False),
        ("5 adversarial", True),
    ]
    assert questions[1].sessions == ("session_2", "session_10")
    assert dataset.left_out == (
        Count("questions whose evidence does not exist", 1),
        Count("questions without evidence", 1),
        Count("turns without text", 1),
    )
    assert dataset.mended == (
        Count("evidence ids that name no turn, dropped", 2),
        Count("malformed evidence ids, repaired", 1),
    )


def test_longmemeval(tmp_path: Path) -> None:
    dataset = only(samples.write(tmp_path / "longmemeval_s.json", samples.longmemeval()))
    assert (dataset.format, [c.id for c in dataset.conversations]) == ("LongMemEval", ["q1", "q2", "q3_abs"])
    first, second, third = dataset.conversations
    assert [(turn.session, turn.id) for turn in first.turns] == [
        ("filler_7", "filler_7:0"),
        ("filler_7", "filler_7:1"),
        ("filler_7", "filler_7:2"),
        ("filler_7", "filler_7:3"),
        ("answer_1", "answer_1:0"),
        ("answer_1", "answer_1:1"),
    ]
    assert [turn.role for turn in first.turns] == ["user", "assistant"] * 3
    assert {turn.speaker for turn in first.turns} == {None}
    assert first.turns[0].at == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    question = first.questions[0]
    assert (question.turns, question.sessions) == (("answer_1:0",), ("answer_1",))
    assert question.category == "single-session-user"
    assert question.asked_at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert (second.questions[0].turns, second.questions[0].sessions) == ((), ("filler_7", "answer_1"))
    assert dataset.left_out == (Count("questions that must be left unanswered (abstention)", 1),)
    assert third.questions == ()
    assert [(q.text, q.never_said) for q in third.unanswerable] == [("What cello did I buy?", True)]


def test_beam(tmp_path: Path) -> None:
    samples.beam(tmp_path, 10)
    dataset = only(samples.beam(tmp_path, 9))
    assert (dataset.format, [c.id for c in dataset.conversations]) == ("BEAM", ["9", "10"])
    turns = dataset.conversations[0].turns
    assert said(dataset.conversations[0]) == [
        ("batch 1", "0", "Plan a trip to Oslo."),
        ("batch 1", "1", "Take the night train."),
        ("batch 2", "2", "My budget is 900 euros."),
        ("batch 2", "3", "That is enough for a week."),
    ]
    assert [turn.role for turn in turns] == ["user", "assistant", "user", "assistant"]
    assert [turn.at.date().isoformat() for turn in turns] == ["2024-03-15"] * 2 + ["2024-04-02"] * 2
    assert asked(dataset) == {"What is my budget?": ("2", "3"), "Which city?": ("0",)}
    assert dataset.left_out == (Count("questions without evidence", 2),)


@pytest.mark.parametrize("part", ["3", "3/chat.json"])
def test_one_chat_of_beam(tmp_path: Path, part: str) -> None:
    samples.beam(tmp_path, 2)
    samples.beam(tmp_path, 3)
    assert [c.id for c in only(tmp_path / part).conversations] == ["3"]


def test_beam_as_it_lies_upstream(tmp_path: Path) -> None:
    chat = samples.beam(tmp_path) / "1"
    (chat / "probing_questions").mkdir()
    shutil.move(chat / "probing_questions.json", chat / "probing_questions")
    shutil.copy(chat / "chat.json", chat / "chat_short.json")
    assert len(asked(only(tmp_path))) == 2


def test_friendsqa(tmp_path: Path) -> None:
    dataset = only(samples.write(tmp_path / "friendsqa.json", samples.friendsqa()))
    assert (dataset.format, [c.id for c in dataset.conversations]) == ("FriendsQA", ["x01_e01", "x01_e02"])
    second = dataset.conversations[1]
    assert said(second) == [
        ("x01_e02_c01", "x01_e02_c01:0", "Pack the lanterns."),
        ("x01_e02_c02", "x01_e02_c02:0", "Our boat sank!"),
        ("x01_e02_c02", "x01_e02_c02:1", "Then we take the ferry."),
    ]
    assert [turn.speaker for turn in second.turns] == ["Cleo", "Ada, Ben", "Cleo"]
    assert second.turns[1].at - second.turns[0].at == timedelta(hours=1)
    assert [(q.category, q.turns) for q in second.questions] == [("what", ("x01_e02_c02:0",))]
    assert dataset.left_out == (Count("questions whose evidence does not exist", 1),)


@pytest.mark.defect("R3")
@pytest.mark.req("G23")
def test_all_trajectories_of_a_file_of_memdaily_are_one_memory(tmp_path: Path) -> None:
    samples.write(tmp_path / "02_conditional_roles.json", samples.memdaily())
    samples.write(tmp_path / "01_simple_roles.json", samples.memdaily())
    dataset = only(tmp_path)
    assert dataset.format == "MemDaily"
    assert [c.id for c in dataset.conversations] == ["01_simple_roles", "02_conditional_roles"]
    first = dataset.conversations[0]
    assert [(turn.session, turn.id) for turn in first.turns] == [
        ("trajectory 0", "0:0"),
        ("trajectory 0", "0:1"),
        ("trajectory 1", "1:0"),
    ]
    assert first.turns[0].at == datetime(2024, 4, 1, 8, 30, tzinfo=UTC)
    assert [(q.category, q.turns) for q in first.questions] == [("01_simple", ("0:0",)), ("01_simple", ("1:0",))]
    assert first.questions[0].asked_at == datetime(2024, 4, 3, 18, 40, tzinfo=UTC)


def test_realtalk(tmp_path: Path) -> None:
    samples.write(tmp_path / "Chat_2_Tom_Mira.json", samples.realtalk())
    dataset = only(samples.write(tmp_path / "Chat_1_Mira_Tom.json", samples.realtalk()).parent)
    assert (dataset.format, [c.id for c in dataset.conversations]) == (
        "REALTALK",
        ["Chat_1_Mira_Tom", "Chat_2_Tom_Mira"],
    )
    chat = dataset.conversations[0]
    assert said(chat) == [
        ("session_1", "D1:1", "The boiler is broken"),
        ("session_1", "D1:2", "[a photo of a boiler]"),
        ("session_2", "D2:1", "My cat is called Ada"),
    ]
    assert [turn.at for turn in chat.turns][1:] == [
        datetime(2023, 12, 30, 0, 32, 20, tzinfo=UTC),
        datetime(2024, 1, 2, 8, tzinfo=UTC),
    ]
    assert {turn.speaker for turn in chat.turns} == {"Mira", "tom"}
    assert [(q.text, q.category, q.turns, q.answer) for q in chat.questions] == [
        ("What is broken?", "1 multi-hop", ("D1:1", "D1:2"), "the boiler"),
        ("When was Ada named?", "2 temporal", ("D2:1",), "January"),
    ]
    assert dataset.mended == (Count("malformed evidence ids, repaired", 2),)


def test_halumem(tmp_path: Path) -> None:
    file = tmp_path / "HaluMem-Medium.jsonl"
    file.write_text(samples.halumem(), encoding="utf-8")
    dataset = only(file)
    (user,) = dataset.conversations
    assert (dataset.format, user.id, user.kind) == ("HaluMem", "martin", "assistant")
    assert said(user) == [
        ("session 1", "1:0", "I work as a baker"),
        ("session 1", "1:1", "I see."),
        ("session 2", "2:0", "I am a gardener now"),
        ("session 2", "2:1", "I see."),
        ("session 3", "3:0", "2 + 2?"),
    ]
    assert [turn.role for turn in user.turns[:2]] == ["user", "assistant"]
    assert user.turns[1].at > user.turns[0].at
    # Memories are the evidence: the sessions that they are from are labelled.
    assert [(q.text, q.turns, q.sessions) for q in user.questions] == [
        ("What is Martin's job?", (), ("session 1",)),
        ("What is Martin's job now?", (), ("session 1", "session 2")),
    ]
    assert [(q.text, q.never_said) for q in user.unanswerable] == [("What is the name of Martin's dog?", True)]


def test_questions_are_asked_before_what_was_said_later(tmp_path: Path) -> None:
    file = tmp_path / "HaluMem-Medium.jsonl"
    file.write_text(samples.halumem(), encoding="utf-8")
    (user,) = only(file).conversations
    asked_in_turn = [*user.questions, *user.unanswerable]
    first, second = rounds_of((user, question) for question in asked_in_turn)
    assert (first.known, [q.answer for _, q in first.asked]) == ({"martin": 2}, ["a baker"])
    assert (second.known, [q.answer for _, q in second.asked]) == ({"martin": 4}, ["a gardener", "It is not known."])
    # Where a date is wrong, the evidence is known all the same.
    early = replace(user.questions[1], asked_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert [each.known for each in rounds_of([(user, early)])] == [{"martin": 4}]
    assert rounds_of([]) == []


def test_memory_agent_bench(tmp_path: Path) -> None:
    file = tmp_path / "Conflict_Resolution.jsonl"
    file.write_text(samples.memory_agent_bench(), encoding="utf-8")
    dataset = only(file)
    assert (dataset.format, [c.id for c in dataset.conversations]) == (
        "MemoryAgentBench",
        ["factconsolidation_sh_6k 1", "factconsolidation_sh_6k 2"],
    )
    chat = dataset.conversations[0]
    assert len(chat.turns) == 2
    assert all(len(turn.text) <= 2_000 for turn in chat.turns)
    assert all(turn.text.endswith(".\n") for turn in chat.turns)
    assert "".join(turn.text for turn in chat.turns).count("The capital of") == 100
    # Nothing says where the answers are: recall has nothing to count, and answers can be judged.
    assert chat.questions == ()
    assert [(q.text, q.answer) for q in chat.unlabelled] == [("What is the capital of land 7?", "city 7 or City Seven")]
    assert dataset.left_out == (Count("questions without evidence", 2), Count("questions without text or answer", 2))


def test_a_damaged_line_of_a_json_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "HaluMem-Medium.jsonl"
    file.write_text(samples.halumem() + "{broken\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 2, column 2"):
        load_datasets(file)
    file.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 1 is nested too deeply"):
        load_datasets(tmp_path)


def test_a_folder_gives_every_data_set_in_it_and_passes_over_the_rest(tmp_path: Path) -> None:
    samples.write(tmp_path / "b" / "one.json", samples.locomo())
    samples.write(tmp_path / "b" / "two.json", samples.longmemeval())
    samples.write(tmp_path / "c" / "x" / "scenes.json", samples.friendsqa())
    samples.write(tmp_path / "c" / "daily.json", samples.memdaily())
    samples.beam(tmp_path / "a")
    samples.write(tmp_path / "other.json", {"settings": [1, 2]})
    samples.write(tmp_path / "empty.json", [])
    (tmp_path / "lines.json").write_text('{"text": "one"}\n{"text": "two"}\n', encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not JSON", encoding="utf-8")
    found = [(dataset.format, dataset.path.relative_to(tmp_path).as_posix()) for dataset in load_datasets(tmp_path)]
    assert found == [
        ("BEAM", "a"),
        ("LoCoMo", "b/one.json"),
        ("LongMemEval", "b/two.json"),
        ("MemDaily", "c"),
        ("FriendsQA", "c/x/scenes.json"),
    ]


def test_labelled_transcripts(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"Not a transcript, and not UTF-8: \xe4\n")
    (tmp_path / "one.txt").write_text(samples.TRANSCRIPT, encoding="utf-8")
    dataset = only(tmp_path)
    assert (dataset.format, [c.id for c in dataset.conversations]) == ("transcripts", ["en-assistant-01"])
    conversation = dataset.conversations[0]
    assert said(conversation) == [
        ("session 1", "1", "the roof leaks"),
        ("session 1", "2", "Since when: the storm?"),
        ("session 2", "3", "the roofer came at last"),
    ]
    assert [(turn.role, turn.speaker) for turn in conversation.turns] == [
        ("user", "Mara"),
        ("assistant", None),
        ("user", "Mara"),
    ]
    assert conversation.turns[2].at == datetime(2025, 2, 1, 8, 0, tzinfo=UTC)
    assert asked(dataset) == {"What drips?": ("1",), "Who mended it, and what?": ("1", "3")}
    assert dataset.left_out == (Count("questions without evidence", 1),)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("== yesterday", "line 3 does not begin a session"),
        ("no name before this", "line 3 is neither the beginning of a session nor a message"),
        ("Q single | What? | 1", "line 3 is not a question in the form"),
    ],
)
def test_a_damaged_transcript_is_named_with_its_line(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "one.txt"
    path.write_text(f"# id: x\n== 2025-01-12 19:40\n{line}\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=rf"one\.txt is damaged: {complaint}"):
        load_datasets(path)


def test_a_transcript_names_its_language_and_kind_and_asks_about_what_was_never_said(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(samples.TRANSCRIPT, encoding="utf-8")
    (conversation,) = only(tmp_path).conversations
    assert (conversation.language, conversation.kind) == ("en", "assistant")
    (question,) = conversation.unanswerable
    assert (question.text, question.answer, question.turns, question.never_said) == (
        "Who painted the door?",
        "never said",
        (),
        True,
    )
    assert question.asked_at == conversation.turns[-1].at + timedelta(days=1)


def test_a_transcript_without_messages_asks_nothing(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("# id: x\nQ none | Who? | | never said\n", encoding="utf-8")
    (conversation,) = only(tmp_path).conversations
    assert (conversation.questions, conversation.unanswerable) == ((), ())


def test_the_expected_answers_of_every_format(tmp_path: Path) -> None:
    locomo = samples.locomo()
    locomo[0]["qa"][1]["answer"] = 2
    samples.write(tmp_path / "a.json", locomo)
    samples.write(tmp_path / "b.json", samples.longmemeval())
    samples.write(tmp_path / "c" / "01_simple_x.json", samples.memdaily()[:1])
    samples.beam(tmp_path / "d")
    questions = json.loads((tmp_path / "d/1/probing_questions.json").read_text(encoding="utf-8"))
    questions["abstention"][0]["ideal_response"] = "It was not said."
    questions["information_extraction"][0]["rubric"] = ["names Oslo", "nothing else"]
    samples.write(tmp_path / "d/1/probing_questions.json", questions)
    (tmp_path / "e.txt").write_text(samples.TRANSCRIPT, encoding="utf-8")
    found = {
        dataset.format: [
            (q.answer, q.never_said) for c in dataset.conversations for q in (*c.questions, *c.unanswerable)
        ]
        for dataset in load_datasets(tmp_path)
    }
    assert found == {
        "LoCoMo": [("the roof", False), ("2", False), ("a pane", False), ("", True)],
        "LongMemEval": [("a violin", False), ("a violin", False), ("a violin", True)],
        "MemDaily": [("小雪", False)],
        "BEAM": [("", False), ("names Oslo, nothing else", False), ("It was not said.", True)],
        "transcripts": [("the roof", False), ("the roofer, the roof", False), ("never said", True)],
    }


def test_nothing_recognised(tmp_path: Path) -> None:
    samples.write(tmp_path / "other.json", {"data": [{"paragraphs": [{"context": "a text", "qas": []}]}]})
    with pytest.raises(InvalidInput, match="of its 1 JSON files each is none of LoCoMo, LongMemEval"):
        load_datasets(tmp_path)
    with pytest.raises(InvalidInput, match=r"no labelled conversations in .*other\.json: it is none of"):
        load_datasets(tmp_path / "other.json")
    with pytest.raises(InvalidInput, match="does not exist"):
        load_datasets(tmp_path / "missing")


def test_damaged_json_is_named_with_its_place(tmp_path: Path) -> None:
    whole = json.dumps(samples.locomo(), indent=1)
    path = tmp_path / "locomo.json"
    path.write_text(whole[:200], encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"locomo\.json is damaged: line \d+, column \d+"):
        load_datasets(tmp_path)
    path.write_text(whole + "\n]", encoding="utf-8")
    with pytest.raises(
        InvalidInput, match=rf"locomo\.json is damaged: line {whole.count(chr(10)) + 2}, column 1: more"
    ):
        load_datasets(tmp_path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=r"locomo\.json is damaged: it is not UTF-8 \(byte 0\)"):
        load_datasets(tmp_path)
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"locomo\.json is damaged"):
        load_datasets(tmp_path)


def test_damaged_content_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    samples_and_complaints = []
    locomo = samples.locomo()
    del locomo[0]["conversation"]["session_2"][1]["speaker"]
    samples_and_complaints.append((locomo, r"\[0\]\.conversation\.session_2\[1\] has no 'speaker'"))
    locomo = samples.locomo()
    locomo[0]["conversation"]["session_2_date_time"] = "yesterday"
    samples_and_complaints.append((locomo, r"session_2_date_time is not a time like '1:56 pm.*': 'yesterday'"))
    locomo = samples.locomo()
    locomo[0]["conversation"]["session_2"][1]["dia_id"] = "D1:1"
    samples_and_complaints.append((locomo, r"session_2\[1\] has the id of an earlier turn of 'garden': 'D1:1'"))
    locomo = samples.locomo()
    locomo[0]["qa"][0]["category"] = 9
    samples_and_complaints.append((locomo, r"qa\[0\]\.category is none of the categories 1 to 5"))
    samples_and_complaints.append((samples.locomo() * 2, "has a second conversation with the id 'garden'"))
    haystack = samples.longmemeval()
    haystack[1]["haystack_dates"].pop()
    samples_and_complaints.append((haystack, r"\[0\] has 3 sessions, 3 ids and 2 dates of them"))
    haystack = samples.longmemeval()
    haystack[0]["haystack_sessions"][0][0]["role"] = "narrator"
    samples_and_complaints.append(
        (haystack, r"haystack_sessions\[0\]\[0\]\.role is not a role: unknown role 'narrator'")
    )
    daily = samples.memdaily()
    daily[0]["message_list"] = [{"mid": None, "message": 5}]
    samples_and_complaints.append((daily, r"message_list\[0\] has no 'mid'"))
    daily = samples.memdaily()
    daily[0]["message_list"][0]["message"] = ["not", "a text"]
    samples_and_complaints.append((daily, r"message is not a text: it must be a string, not list"))
    daily = samples.memdaily()
    daily[1]["message_list"] = "gone"
    samples_and_complaints.append((daily, r"\[1\]\.message_list is not a list but a text"))
    for value, complaint in samples_and_complaints:
        samples.write(path, value)
        with pytest.raises(InvalidInput, match=rf"data\.json is damaged: .*{complaint}"):
            load_datasets(path)


def test_a_chat_of_beam_without_questions(tmp_path: Path) -> None:
    (samples.beam(tmp_path) / "1" / "probing_questions.json").unlink()
    with pytest.raises(InvalidInput, match=r"chat\.json has no questions"):
        load_datasets(tmp_path)


def test_a_sample_is_spread_over_all_conversations(tmp_path: Path) -> None:
    for number in range(1, 6):
        samples.beam(tmp_path, number)
    whole = only(tmp_path)
    few = sample(whole, 5)
    assert [len(conversation.questions) for conversation in few.conversations] == [1] * 5
    assert few == sample(whole, 5)
    assert few.left_out[-1] == Count("questions outside the sample", 5)
    assert [c.id for c in sample(whole, 1).conversations] == ["1"]
    assert sample(whole, 1_000) == whole


def test_a_sample_has_no_questions_that_count_apart(tmp_path: Path) -> None:
    few = sample(only(samples.write(tmp_path / "locomo.json", samples.locomo())), 100)
    assert [q.apart for c in few.conversations for q in c.questions] == [False] * 3
    assert few.left_out[-1] == Count("questions outside the sample", 1)
