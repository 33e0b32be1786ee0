"""What people tell about themselves is known as values, each of which lives and ends alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import get_args

import pytest

from aforesaid.assistant import Assistant
from aforesaid.context.sections import Offers, RenderCache
from aforesaid.domain.memory import ENDED, LAPSED, Matter, MemoryDraft
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.facts.describing import answer_from, asked_for
from aforesaid.facts.people import person_called
from aforesaid.facts.settling import over_by
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.embed import LocalEmbedder
from aforesaid.models.prompts import written_day
from aforesaid.models.tokens import counter_for
from aforesaid.text.relations import mentioned_people
from facts.talking import connect

MARCH = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
ENCODER = LocalEmbedder(ranker=False)


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with connect(embedder=ENCODER) as opened:
        yield opened


async def tell(memory: Memory, *texts: str, user: str = "ann") -> UserMemory:
    """Say one thing a week, and learn each of them."""
    person = memory.user(user)
    for week, text in enumerate(texts):
        await person.add("user", text, at=MARCH + timedelta(weeks=week), name="Ann")
        await memory.upkeep()
    return person


async def values(user: UserMemory, *, active: bool | None = True) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for memory in await user.memories(active=active):
        if memory.matter is not None and memory.value is not None and memory.about is None:
            found.setdefault(memory.matter, set()).add(memory.value)
    return found


@pytest.mark.defect("M1")
@pytest.mark.req("G18")
async def test_an_allergy_is_known_and_what_is_fine_is_not_one(memory: Memory) -> None:
    ann = memory.user("ann")
    for text in (
        "The train was late again this morning.",
        "I am allergic to hazelnuts. Walnuts are fine.",
        "What shall we cook on Sunday?",
        "haha that cat video was great",
    ):
        await ann.add("user", text, name="Ann")
    await memory.upkeep()
    assert (await values(ann))["allergy"] == {"hazelnuts"}
    assert "Allergic to hazelnuts" in (await ann.portrait() or "")


@pytest.mark.req("G18")
@pytest.mark.parametrize(
    ("text", "matter", "value"),
    [
        ("I live in Lisbon with my cat Nina.", "home", "Lisbon"),
        ("Ich heiße Jonas und wohne in Köln.", "home", "Köln"),
        ("Je m'appelle Luc et j'habite à Lyon.", "name", "Luc"),
        ("Soy enfermera y trabajo de noche.", "job", "enfermera"),
        ("Merhaba ben Elif, İzmir'de yaşıyorum", "home", "İzmir"),
        ("大阪に住んでいます", "home", "大阪"),
        ("मुझे मूंगफली से एलर्जी है", "allergy", "मूंगफली"),
        ("Sono Orsola e sono allergica alle noci.", "name", "Orsola"),
        ("Sono Orsola e sono allergica alle noci.", "allergy", "noci"),
        ("أنا سارة وأعمل معلمة", "name", "سارة"),
        ("أنا مصرية وأسكن في دبي", "from", "مصرية"),
        ("저는 민지예요. 서른두 살이고 수원에 살아요.", "name", "민지"),
        ("We zijn verhuisd naar Zutphen.", "home", "Zutphen"),
        ("Me he mudado a Alicante.", "home", "Alicante"),
        ("Mijn man heet Jeroen en we hebben een hond, Boef.", "partner", "man Jeroen"),
        ("남편 이름은 준호고, 다섯 살 딸 서아가 있어요.", "partner", "남편 준호"),
        ("고양이 나비를 키워요.", "pet", "고양이 나비"),
        ("사과 알레르기가 있어요.", "allergy", "사과"),
        ("등산은 좋아하는데 오이는 싫어해요.", "dislike", "오이"),
        ("혈압약으로 암로디핀을 먹고 있어요.", "medicine", "암로디핀"),
        ("У меня аллергия на кошек", "allergy", "кошек"),
    ],
)
async def test_plain_facts_are_known_after_one_message(memory: Memory, text: str, matter: str, value: str) -> None:
    assert value in (await values(await tell(memory, text)))[matter]


@pytest.mark.defect("M6")
@pytest.mark.req("G19")
async def test_a_move_ends_the_old_home_and_leaves_the_cat(memory: Memory) -> None:
    ann = await tell(memory, "I live in Lisbon with my cat Nina.", "I moved to Porto last week.")
    known = await values(ann)
    assert known["home"] == {"Porto"}
    assert known["pet"] == {"cat Nina"}
    before = next(each for each in await ann.memories(active=None) if each.value == "Lisbon")
    after = next(each for each in await ann.memories() if each.value == "Porto")
    assert (before.state, before.superseded_by) == ("superseded", after.id)


@pytest.mark.defect("M6")
async def test_one_medicine_does_not_take_the_place_of_another(memory: Memory) -> None:
    ann = await tell(memory, "I take ramipril and metformin.", "I take vitamin D since winter.")
    assert (await values(ann))["medicine"] >= {"ramipril", "metformin"}


@pytest.mark.defect("M6", "M8")
@pytest.mark.req("G19")
@pytest.mark.parametrize(
    ("first", "second", "matter", "value"),
    [
        ("Ik slik metoprolol.", "De dokter heeft metoprolol vervangen door bisoprolol.", "medicine", "metoprolol"),
        ("암로디핀을 먹고 있어요.", "의사가 암로디핀을 로사르탄으로 바꿨어요.", "medicine", "암로디핀"),
        ("고양이 나비를 키워요.", "나비가 어제 무지개다리를 건넜어요.", "pet", "고양이 나비"),
        ("My boyfriend is called Tom.", "Tom and I broke up.", "partner", "boyfriend Tom"),
        ("I'm vegetarian.", "I eat meat again.", "diet", "vegetarian"),
        ("I work as a baker.", "I quit my job.", "job", "baker"),
        ("My cat is called Nina.", "My cat Nina died on Monday.", "pet", "cat Nina"),
        ("Unser Kater heißt Mohrle.", "Mohrle mussten wir einschläfern lassen.", "pet", "Kater Mohrle"),
    ],
)
async def test_what_is_over_ends(memory: Memory, first: str, second: str, matter: str, value: str) -> None:
    ann = await tell(memory, first)
    assert value in (await values(ann))[matter]
    ann = await tell(memory, second)
    assert value not in (await values(ann)).get(matter, set())
    ended = next(each for each in await ann.memories(active=None) if each.value == value)
    assert (ended.state, ended.reason) == ("expired", ENDED)


@pytest.mark.defect("M6", "M8")
@pytest.mark.req("G19")
@pytest.mark.parametrize(
    ("first", "second", "matter", "known"),
    [
        ("My daughter is called Lea.", "Her name is not Lea but Mia.", "child", "daughter Mia"),
        ("Der neue Kollege heißt Steffen.", "Der Kollege heißt nicht Steffen, sondern Stefan.", "colleague", "Stefan"),
        ("우리 강아지 이름은 콩이야.", "우리 강아지 이름은 콩이 아니라 떡이야.", "pet", "떡"),
        ("I take amlodipine.", "I take losartan instead of amlodipine now.", "medicine", "losartan"),
        ("Ich nehme Ramipril.", "Statt Ramipril nehme ich jetzt Candesartan.", "medicine", "Candesartan"),
        ("رقمي 0791234508", "هذا رقمي الجديد 0778890012", "phone", "0778890012"),
        ("Mi jefa se llama Begoña.", "Begoña se ha jubilado, ahora mi jefe es Quique.", "boss", "Quique"),
        ("我叫小明，住在北京。", "我搬到了上海。", "home", "上海"),
    ],
)
async def test_the_new_value_takes_the_place_of_the_one_that_is_named_or_meant(
    memory: Memory, first: str, second: str, matter: str, known: str
) -> None:
    ann = await tell(memory, first, second)
    held = (await values(ann))[matter]
    assert len(held) == 1
    assert known in next(iter(held))


@pytest.mark.defect("M6")
async def test_a_message_with_always_is_no_standing_instruction(memory: Memory) -> None:
    ann = await tell(memory, "lavoro come magazziniere all'Esselunga, questo mese sempre di notte")
    assert await values(ann) == {"job": {"magazziniere"}, "employer": {"Esselunga"}}


@pytest.mark.defect("M6")
@pytest.mark.parametrize(
    "second",
    [
        "We might move to Leeds next year, who knows.",
        "My sister moved to Oslo.",
        "Would you move to Rome if you were me?",
    ],
)
async def test_plans_other_people_and_questions_change_nothing(memory: Memory, second: str) -> None:
    ann = await tell(memory, "I live in Lisbon.", second)
    assert (await values(ann))["home"] == {"Lisbon"}


@pytest.mark.defect("M8")
@pytest.mark.parametrize(
    ("said", "matter"),
    [
        ("I start on the 1st of September then", "birthday"),
        ("Twee weken, geen drie. 26 juli en 2 augustus vallen uit", "birthday"),
        ("essay came back. 48. pass is 40", "age"),
    ],
)
async def test_what_sounds_like_a_value_in_a_chat_is_none(memory: Memory, said: str, matter: str) -> None:
    ann = await tell(memory, said)
    assert matter not in await values(ann)


@pytest.mark.defect("M8")
async def test_a_birthday_is_known_where_it_is_called_one(memory: Memory) -> None:
    ann = await tell(memory, "My birthday is on 3 May.")
    assert (await values(ann))["birthday"] == {"3 May"}


async def test_a_name_before_an_age_is_known(memory: Memory) -> None:
    ann = await tell(memory, "I'm Martha, I'm 58 and I live in Leeds.")
    known = await values(ann)
    assert (known["name"], known["home"]) == ({"Martha"}, {"Leeds"})


@pytest.mark.defect("M7")
@pytest.mark.req("G19")
async def test_a_bot_answers_with_what_is_so_now(memory: Memory) -> None:
    ann = await tell(memory, "I live in Lisbon.", "I moved to Porto last week.")
    answer = "".join([piece async for piece in Assistant(memory).reply(ann, "Where do I live?", name="Ann")])
    assert "Porto" in answer
    assert "Lisbon" not in answer


@pytest.mark.defect("M9")
@pytest.mark.req("G18")
async def test_a_portrait_has_headings_in_the_language_of_the_person(memory: Memory) -> None:
    ann = await tell(
        memory,
        "Ich wohne in Köln.",
        "Ich bin Erzieherin von Beruf.",
        "Ich habe eine Allergie gegen Nüsse.",
        "Meine Schwester heißt Lea.",
        "Ich mag Tango.",
    )
    lines = (await ann.portrait() or "").splitlines()
    assert "Gesundheit und Ernährung:" in lines
    assert "Wohnort: Köln" in lines
    assert lines.index("Zuhause und Arbeit:") < lines.index("Wohnort: Köln") < lines.index("Gesundheit und Ernährung:")


@pytest.mark.defect("M9")
@pytest.mark.req("G18")
@pytest.mark.parametrize("budget", [500, 1_000, 2_000])
async def test_small_contexts_have_what_always_matters_in_whole_lines(memory: Memory, budget: int) -> None:
    ann = await tell(memory, "I am allergic to hazelnuts.", "I live in Porto.", "My sister is called Inês.")
    for number in range(40):
        text = f"Number {number} of the long list of things that happened at the harbour, one after the other."
        await ann.add("user", text, name="Ann")
    await memory.upkeep()
    shown = [
        item
        for item in (await ann.context("What can I cook tonight?", budget=budget)).items
        if item.section == "portrait"
    ]
    assert "Allergic to hazelnuts" in [item.text for item in shown]
    assert not any(item.cut or "[…]" in item.text for item in shown)


@pytest.mark.defect("M10")
async def test_topics_of_habits_are_words(memory: Memory) -> None:
    ann = memory.user("ann")
    for number in range(12):
        await ann.add("user", f"今日もサッカーの練習に行ったよ、とても楽しかった{number}")
    topics = [word for word, _ in (await ann.preferences()).topics]
    assert "サッカー" in topics
    assert not any(topic in {"った", "とて", "かっ"} for topic in topics)


@pytest.mark.defect("M11")
async def test_pets_and_places_are_no_people(memory: Memory) -> None:
    ann = await tell(memory, "I live in Lisbon with my cat Nina.", "My sister Inês lives in Oslo.")
    names = {person.name.casefold() for person in await ann.people()}
    assert any("inês" in name for name in names)
    assert names.isdisjoint({"nina", "lisbon", "oslo", "cat nina"})


@pytest.mark.defect("M13")
@pytest.mark.req("G19")
async def test_as_of_and_undo_give_the_old_value_back(memory: Memory) -> None:
    ann = await tell(memory, "I live in Lisbon.", "I moved to Porto last week.")
    earlier = await ann.memories(at=MARCH + timedelta(days=1))
    assert [each.value for each in earlier if each.matter == "home"] == ["Lisbon"]
    porto = next(each for each in await ann.memories() if each.value == "Porto")
    lisbon = next(each for each in await ann.memories(active=None) if each.value == "Lisbon")
    restored = await ann.undo(lisbon.id)
    assert (restored.state, porto.state) == ("active", "active")


async def test_a_corrected_name_keeps_the_relation_and_what_is_known_of_the_person(memory: Memory) -> None:
    ann = await tell(
        memory, "My sister Inês lives in Oslo and works as a nurse.", "no, my sister's name is Irene, not Inês"
    )
    assert (await values(ann))["sibling"] == {"sister Irene"}
    assert {each.about for each in await ann.memories() if each.about is not None} == {"sister Irene"}


async def test_only_what_the_person_says_is_a_value_of_theirs(memory: Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "I'm allergic to nuts.", author="bob", name="Bob")
    await ann.add("assistant", "You live in Oslo, right?")
    await memory.upkeep()
    assert await values(ann, active=None) == {}


async def test_a_note_that_two_changes_of_one_message_concern_is_changed_once(memory: Memory) -> None:
    ann = memory.user("ann")
    await ann.remember("lives in Rome")
    await tell(
        memory,
        "I live in Lisbon with my boyfriend Tom, and since spring we grow tomatoes on a tiny balcony by the harbour.",
        "I moved to Porto. Tom and I broke up.",
        "I live in Braga and I live in Faro.",
    )
    assert "Tom" not in " ".join(each.value or "" for each in await ann.memories() if each.matter == "partner")
    assert (await memory.upkeep()).error is None


@pytest.mark.defect("M7")
@pytest.mark.parametrize(
    "question",
    [
        "Where do I live now?",
        "wo wohne ich",
        "¿Dónde vivo?",
        "où est-ce que j'habite",
        "Dove abito?",
        "onde eu moro",
        "Waar woon ik?",
        "gdzie mieszkam",
        "Где я живу?",
        "nerede yaşıyorum",
        "أين أسكن",
        "我住在哪里",
        "どこに住んでる？",
        "나 어디 살아",
        "मैं कहाँ रहता हूँ",
    ],
)
async def test_a_question_for_a_matter_is_answered_with_what_holds_now(memory: Memory, question: str) -> None:
    ann = await tell(memory, "I live in Lisbon and I am allergic to nuts.", "We moved to Porto.")
    known = await ann.memories(active=None)
    assert answer_from(question, known, "english") == ["Lives in Porto"]
    assert answer_from("What a day!", known, "english") is None


def test_what_is_asked_for_are_matters_whose_patterns_are_valid() -> None:
    table = tomllib.loads((files("aforesaid.facts") / "asked.toml").read_text(encoding="utf-8"))
    about = table.pop("about")
    whether = table.pop("whether")
    assert set(table) | set(whether) <= set(get_args(Matter))
    assert set(about) - {"who"} <= set(get_args(Matter))
    for found in (*table.values(), *whether.values(), *about.values()):
        re.compile("|".join(found))


@pytest.mark.defect("Q2")
@pytest.mark.parametrize(
    ("matter", "questions"),
    [
        (
            "pet",
            (
                "do i have a dog | hab ich eigentlich einen Hund | ¿Tengo perro | est-ce que j'ai un chat |"
                " ho un cane | tenho cachorro | heb ik een hond | czy mam psa | jak ma na imię mój pies |"
                " есть ли у меня собака | köpeğim var mı | هل عندي كلب | 我有狗吗 | 犬飼ってたっけ |"
                " 나 강아지 키우나 | मेरे पास कुत्ता है"
            ),
        ),
        (
            "diet",
            (
                "am i vegetarian | bin ich Vegetarier | soy vegetariana | est-ce que je suis végétarienne |"
                " sono vegetariana | sou vegano | ben ik vegetariër | jestem wegetarianką |"
                " я вегетарианка | ben vejetaryen miyim | هل أنا نباتي | 我吃素吗 |"
                " 私ってベジタリアンだっけ | 내가 채식주의자야 | मैं शाकाहारी हूँ"
            ),
        ),
        (
            "allergy",
            (
                "am I allergic to cats | bin ich gegen Nüsse allergisch | ¿soy alérgica a algo |"
                " ai-je des allergies | ho allergie | tenho alergia | ben ik allergisch |"
                " czy jestem uczulona na coś | у меня есть аллергия | alerjim var mı | هل عندي حساسية |"
                " 我对花生过敏吗 | アレルギーあったっけ | 나 알레르기 있어 | मुझे किस चीज़ से एलर्जी है"
            ),
        ),
        (
            "child",
            (
                "do i have kids | hab ich Kinder | tengo hijos | ai-je des enfants | ho figli |"
                " tenho filhos | heb ik kinderen | czy mam dzieci | у меня есть дети | çocuğum var mı |"
                " هل عندي أطفال | 我有孩子吗 | 子供いるっけ | 나 아이 있어 | मेरे कितने बच्चे हैं"
            ),
        ),
        (
            "partner",
            (
                "am i married | bin ich verheiratet | estoy casada | suis-je marié | sono sposata |"
                " sou casado | ben ik getrouwd | czy mam męża | я замужем | evli miyim | هل أنا متزوج |"
                " 我有没有女朋友 | 私って結婚してたっけ | 나 결혼했어 | मेरी शादी हुई है"
            ),
        ),
        (
            "sibling",
            (
                "do i have a sister | habe ich Geschwister | tengo hermanos | ai-je des frères |"
                " ho una sorella | tenho irmã | heb ik een broer | czy mam siostrę | есть ли у меня брат |"
                " kardeşim var mı | هل عندي أخت | 我有哥哥吗 | 兄弟いるっけ | 나 언니 있어 |"
                " मेरे कितने भाई हैं"
            ),
        ),
        (
            "hobby",
            (
                "what are my hobbies | welche Hobbys hab ich | cuáles son mis aficiones |"
                " quels sont mes loisirs | che hobby ho | quais são os meus hobbies |"
                " wat zijn mijn hobby's | jakie mam hobby | чем я увлекаюсь | hobilerim neler |"
                " ما هي هواياتي | 我有什么爱好 | 趣味って何 | 내 취미가 뭐야 | मेरे शौक क्या हैं"
            ),
        ),
        (
            "email",
            (
                "what's my email | wie lautet meine E-Mail | cuál es mi correo |"
                " quelle est mon adresse mail | qual è la mia mail | qual é o meu email |"
                " wat is mijn e-mail | jaki jest mój adres e-mail | какая у меня почта |"
                " e-posta adresim ne | ما هو بريدي | 我的邮箱是什么 | メールアドレスって何 |"
                " 내 이메일 뭐야 | मेरा ईमेल क्या है"
            ),
        ),
        (
            "address",
            (
                "what is my address | wie lautet meine Adresse | cuál es mi dirección |"
                " quelle est mon adresse | qual è il mio indirizzo | qual é o meu endereço |"
                " wat is mijn adres | jaki jest mój adres | какой у меня адрес | adresim ne |"
                " ما هو عنواني | 我的地址是什么 | 住所ってどこ | 내 주소 뭐야 | मेरा पता क्या है"
            ),
        ),
    ],
)
def test_a_question_whether_one_has_something_asks_for_its_matter(matter: str, questions: str) -> None:
    asked = {each.strip(): asked_for(each.strip()) for each in questions.split("|")}
    assert asked == dict.fromkeys(asked, matter)


def test_a_question_about_somebody_else_asks_for_no_matter_of_the_author() -> None:
    others = ("do you have a dog", "is Nora vegetarian", "hat Tom einen Hund", "czy Ola ma psa", "Elif vejetaryen mi")
    assert {asked_for(each) for each in others} == {None}


async def test_whether_somebody_eats_meat_is_not_answered_with_an_allergy(memory: Memory) -> None:
    ann = await tell(memory, "I am allergic to nuts.")
    known = await ann.memories(active=None)
    assert answer_from("am I vegetarian", known, "english") == []
    assert answer_from("what can't I eat", known, "english") == ["Allergic to nuts"]


async def test_where_somebody_is_moving_to_is_described(memory: Memory) -> None:
    ann = await tell(memory, "Morning! I signed the lease yesterday, we are moving to Lisbon on the 28th.")
    assert "Lives in Lisbon" in (await ann.portrait() or "")


@pytest.mark.parametrize(
    ("said", "whose"),
    [
        ("El cumpleaños de Ana es el 3 de mayo.", "Ana"),
        ("Lenas Geburtstag ist am 3. Mai.", "Lena"),
        ("Il compleanno di Marta è il 3 maggio.", "Marta"),
        ("День рождения Маши 3 мая.", "Маши"),
    ],
)
async def test_the_birthday_of_somebody_else_is_theirs(memory: Memory, said: str, whose: str) -> None:
    ann = await tell(memory, said)
    known = [each for each in await ann.memories() if each.matter == "birthday"]
    assert all(each.about == whose for each in known)


@pytest.mark.defect("M8")
@pytest.mark.parametrize(
    ("first", "second", "matter"),
    [
        ("Mój pies ma na imię Reksio.", "reksio zdechł wczoraj", "pet"),
        ("我老公叫王强。", "我和王强离婚了。", "partner"),
    ],
)
async def test_a_death_and_a_divorce_end_what_is_known(memory: Memory, first: str, second: str, matter: str) -> None:
    ann = await tell(memory, first)
    assert matter in await values(ann)
    await ann.add("user", second)
    await memory.upkeep()
    assert matter not in await values(ann)


@pytest.mark.defect("M8")
@pytest.mark.req("G19")
@pytest.mark.parametrize(
    ("said", "value", "days"),
    [
        ("I take amoxicillin for ten days, twice a day.", "amoxicillin", 10),
        ("Ich nehme das Antibiotikum Clindamycin noch 5 Tage.", "Clindamycin", 5),
        ("我吃阿莫西林，一天三次，吃7天", "阿莫西林", 7),
        ("I have taken metformin for 3 years.", "metformin", None),
        ("I start metformin in 10 days.", "metformin", None),
        ("Ich nehme alle 3 Tage Vitamin D.", "Vitamin D", None),
    ],
)
async def test_a_medicine_for_some_days_is_over_after_them(
    memory: Memory, said: str, value: str, days: int | None
) -> None:
    ann = memory.user("ann")
    now = datetime.now(UTC)
    await ann.add("user", said, at=now, name="Ann")
    await memory.upkeep()
    (known,) = [each for each in await ann.memories() if each.matter == "medicine"]
    assert value in (known.value or "")
    assert known.expires_at == (None if days is None else known.valid_from + timedelta(days=days))


@pytest.mark.defect("M6", "M8")
@pytest.mark.req("G19")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ich nehme Ramipril.", "so, beim Doktor gewesen. Ramipril weg, jetzt Candesartan 8 mg einmal früh"),
        ("Me pincho heparina cada noche.", "ya sin muletas y sin la heparina desde hace semanas"),
        ("アムロジピンを飲んでいます。", "先生が薬を変えてくれた。アムロジピンは終わり。"),
    ],
)
async def test_a_medicine_that_is_left_out_is_over(memory: Memory, first: str, second: str) -> None:
    ann = await tell(memory, first)
    (before,) = (await values(ann))["medicine"]
    ann = await tell(memory, first, second)
    assert before not in (await values(ann)).get("medicine", set())


@pytest.mark.defect("M9")
@pytest.mark.parametrize(
    "said", ["Da quando è celiaco giro col pane in borsa come una nonna", "Operiert, ansprechbar. ist 81"]
)
async def test_what_a_verb_tells_of_somebody_else_is_not_the_authors(memory: Memory, said: str) -> None:
    ann = await tell(memory, said)
    assert not {"age", "condition", "diet"} & set(await values(ann))


@pytest.mark.defect("M1")
@pytest.mark.parametrize(
    ("said", "matter", "value"),
    [
        ("tenho enxaqueca e quando ataca só o sumatriptano resolve", "condition", "enxaqueca"),
        ("heb een hernia en mag zes weken niet tillen", "condition", "hernia"),
        ("bende kivi alerjisi var, dudaklarım şişiyor hemen", "allergy", "kivi"),
        ("本人酒精过敏，一杯啤酒就全身红，别劝我了", "allergy", "酒精"),
    ],
)
async def test_an_illness_or_allergy_that_is_told_in_passing_is_known(
    memory: Memory, said: str, matter: str, value: str
) -> None:
    assert (await values(await tell(memory, said)))[matter] == {value}


@pytest.mark.defect("M8", "M9")
@pytest.mark.req("G18")
async def test_a_portrait_has_no_old_remarks_and_no_relation_alone(memory: Memory) -> None:
    remark = "My sister finally told our parents that she is leaving medical school to open a bakery in Bristol."
    ann = memory.user("ann")
    await ann.add("user", f"My husband and I live in Leeds. {remark}", at=datetime.now(UTC), name="Ann")
    await memory.upkeep()
    assert "bakery" in (await ann.portrait() or "")
    assert "usband" not in (await ann.portrait() or "")
    bob = memory.user("bob")
    await bob.add("user", f"I live in Leeds. {remark}", at=datetime.now(UTC) - timedelta(days=40), name="Bob")
    await memory.upkeep()
    assert any("bakery" in each.text for each in await bob.memories())
    assert "bakery" not in (await bob.portrait() or "bakery")


@pytest.mark.parametrize(
    ("said", "home"), [("My husband and I live in Leeds.", "Leeds"), ("Meine Frau und ich wohnen in Jena.", "Jena")]
)
async def test_what_is_so_for_somebody_and_me_is_so_for_me(memory: Memory, said: str, home: str) -> None:
    assert (await values(await tell(memory, said)))["home"] == {home}


@pytest.mark.defect("M6")
async def test_what_somebody_decides_not_to_do_ends_nothing(memory: Memory) -> None:
    ann = await tell(memory, "We have decided not to sell the house after all, the buyers wanted too much off.")
    assert not [each for each in await ann.memories(active=None) if each.state == "expired"]


async def test_the_age_before_a_child_is_not_that_of_the_person_named_before(memory: Memory) -> None:
    ann = await tell(memory, "남편 이름은 준호고, 다섯 살 딸 서아가 있어요.")
    assert "age" not in await values(ann)


@pytest.mark.defect("M1")
async def test_news_after_somebody_elses_words_is_remembered_if_it_is_clear_by_itself(memory: Memory) -> None:
    said = [
        ("miwa", "how's the cat"),
        ("haruka", "Pip went on tuesday. in her sleep. didnt want to bother you with the move on"),
        ("miwa", "haha finally"),
        ("haruka", "lol yes"),
    ]
    for minute, (who, text) in enumerate(said):
        person = memory.user(who, space="friends", thread="chat")
        await person.add("user", text, at=datetime.now(UTC) + timedelta(minutes=minute - 10), name=who.title())
    await memory.upkeep()
    assert any("Pip" in each.text for each in await memory.user("haruka", space="friends").memories())
    assert await memory.user("miwa", space="friends").memories() == []


@pytest.mark.defect("M8")
async def test_a_quote_is_not_torn_where_a_value_in_it_is_known(memory: Memory) -> None:
    said = "novedades!! me cogen de auxiliar en la biblioteca. empiezo el 1 de julio, de mañanas, y estoy muy contenta"
    ann = await tell(memory, said)
    quotes = [each.text for each in await ann.memories(active=None) if each.matter is None]
    assert quotes
    assert all("…" not in each for each in quotes)


@pytest.mark.parametrize(
    ("days", "said"),
    [("99999999999", MARCH), ("9" * 5_000, MARCH), ("900", datetime(9999, 12, 30, tzinfo=UTC))],
    ids=["beyond any calendar", "beyond any number", "said on its last days"],
)
async def test_a_medicine_for_longer_than_the_calendar_has_no_end(memory: Memory, days: str, said: datetime) -> None:
    ann = memory.user("ann")
    await ann.add("user", f"I take amoxicillin for {days} days.", at=said, name="Ann")
    assert (await memory.upkeep()).error is None
    assert all(each.expires_at is None for each in await ann.memories(active=None) if each.matter == "medicine")


@pytest.mark.defect("M9")
async def test_relatives_stand_in_the_language_of_the_portrait_whatever_language_told_of_them(memory: Memory) -> None:
    ann = await tell(
        memory,
        "I live in Lisbon and I work as a translator for a publisher.",
        "I am allergic to hazelnuts and I have a cat called Nina.",
        "Mi hermana Inês vive en Oporto.",
        "My neighbour is called Dona Rosa.",
    )
    portrait = await ann.portrait() or ""
    assert "Sister: Inês" in portrait
    assert "ermana" not in portrait
    people = {person.name: person.relation for person in await ann.people()}
    assert people["Inês"] == "sister"
    assert people["Dona Rosa"] == "neighbour"


@pytest.mark.defect("M11")
async def test_a_cat_that_is_called_something_is_no_person(memory: Memory) -> None:
    ann = await tell(memory, "She gave us the keys and a pot of soup, and said her cat is called Ministro.")
    assert "Ministro" not in {person.name for person in await ann.people()}
    assert not [each.name for each in mentioned_people("Her cat is called Ministro.")]
    assert [each.name for each in mentioned_people("Yesterday I called Carol.")] == ["Carol"]


CLOSED = [
    ("Box 17 of the movers is missing.", "Box 17 arrived and nothing is broken."),
    ("My brother Tom had a stroke and he is in hospital in Leeds.", "Tom is home again since yesterday evening."),
    ("Mein blauer Koffer ist seit dem Flug nach Rom verschwunden.", "Der Koffer ist wieder da!"),
    ("Unsere Waschmaschine ist kaputt.", "Die Waschmaschine ist endlich repariert."),
    ("He perdido las llaves del garaje de mi madre.", "Ya encontré las llaves, estaban en el abrigo."),
    ("J'attends le colis de ma grand-mère.", "Le colis est arrivé ce matin !"),
    ("Annemin bavulu havaalanında kayboldu.", "Bavul bulundu, çok şükür."),
    ("Мой паспорт потерялся где-то в поезде.", "Паспорт нашёлся, был в старой сумке."),
    ("财布じゃなくて定期券が見つからない。", "定期券が見つかった。"),
]


def message(number: int, text: str) -> Message:
    at = MARCH + timedelta(days=number)
    return Message(
        number, f"#{number}", "default", "ann", "home", "s", "user", "ann", "Ann", text, at, at, True, None, b""
    )


@pytest.mark.defect("M8")
@pytest.mark.parametrize(("opened", "closed"), CLOSED)
def test_what_is_found_arrived_or_repaired_ends_what_was_open(opened: str, closed: str) -> None:
    ann, scope = person_called("ann", "Ann"), Scope.of("ann")
    note = MemoryDraft(scope, "fact", f'Ann: "{opened}"', sources=(1,), speaker="ann", valid_from=MARCH, trust="said")
    other = replace(note, text='Ann: "The tap in the kitchen is broken."', sources=(2,))
    said = message(3, closed)
    assert [(each.known, each.reason) for each in over_by([said], [note, other], ann)] == [(note, ENDED)]
    denied = message(3, "They have not found it, nothing arrived.")
    assert list(over_by([denied], [note, other], ann)) == []


@pytest.mark.defect("M8")
async def test_they_found_it_closes_what_was_lost_shortly_before_and_nothing_else(memory: Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "My bicycle is broken, so I take the tram to the office in Belém.", at=MARCH, name="Ann")
    lost = "Box 17 is missing. It has the photo albums and grandma's oven dish in it."
    await ann.add("user", lost, at=MARCH + timedelta(days=1), name="Ann")
    await ann.add("user", "They have not found it.", at=MARCH + timedelta(days=2), name="Ann")
    await memory.upkeep()
    assert len([each for each in await ann.memories() if "Box 17" in each.text]) == 1
    await ann.add("user", "They found it, behind a piano.", at=MARCH + timedelta(days=3), name="Ann")
    await memory.upkeep()
    assert not [each for each in await ann.memories() if "Box 17" in each.text]
    assert [each for each in await ann.memories() if "bicycle" in each.text.casefold()]


@pytest.mark.defect("M8")
async def test_what_passes_lapses_when_it_is_not_mentioned_and_illnesses_that_stay_do_not(memory: Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "I have the flu.", at=MARCH, name="Ann")
    await ann.add("user", "I have diabetes.", at=MARCH, name="Ann")
    lost = "Box 17 is missing. It has the photo albums and grandma's oven dish in it."
    await ann.add("user", lost, at=MARCH, name="Ann")
    await memory.upkeep()
    assert len((await values(ann))["condition"]) == 2
    await ann.add("user", "Today I planted tomatoes.", at=MARCH + timedelta(days=100), name="Ann")
    await memory.upkeep()
    assert [each.casefold() for each in (await values(ann))["condition"]] == ["diabetes"]
    past = [each for each in await ann.memories(active=None) if each.reason == LAPSED]
    assert any("Box 17" in each.text for each in past)


@pytest.mark.defect("M8")
async def test_a_quote_of_long_ago_says_in_a_context_when_it_was_said(memory: Memory) -> None:
    ann, now = memory.user("ann"), datetime.now(UTC)
    said = "The movers want 1,450 euros for the piano and the boxes in the cellar of my aunt."
    await ann.add("user", said, at=now - timedelta(days=70), name="Ann")
    await memory.upkeep()
    (old,) = [each for each in await ann.memories() if each.matter is None]
    offers = Offers(counter_for(), RenderCache(8), now)
    (new,) = offers.memories([(replace(old, seen_at=now - timedelta(days=2)), 1.0)])
    (shown,) = offers.memories([(old, 1.0)])
    assert new.text.startswith("[FACT] ")
    assert shown.text.startswith(f"[FACT, said on {written_day((now - timedelta(days=70)).date())}] ")
