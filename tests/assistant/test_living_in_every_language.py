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
