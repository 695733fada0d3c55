#!/usr/bin/env python3
"""Make v1-kinds.json: the arithmetic of the kinds beside a plain filter, and
streams of all kinds.

It is written from the description of the format alone and shares no code with
the package. It needs the module xxhash (Debian: python3-xxhash):

    python3 kinds.py > v1-kinds.json

Integers are Python's, of any size. Floats are float64 and only + - * / touch
them, so that a size comes out the same everywhere.
"""

import json
from math import ceil, isqrt, log, log2

import xxhash

MASK64 = 2**64 - 1
START = 192  # bits of the header, the birth number and the kind's word
MOST = 2**32  # bits of a string
SEEDS = (0, 1311768467463790320)
ITEMS = (
    "", "\0", "a", "abc", "user-123@example.com", "naïve-ключ-🔑",
    "https://example.com/a/b?c=d#e", "x" * 16, "x" * 17, "x" * 129, "y" * 300,
)


# What every kind shares: digests, words, sizes, the header.

def digest(item, seed):
    h = xxhash.xxh3_128_intdigest(item.encode(), seed)
    return h >> 64, h & MASK64


def tag(seed):
    return 1 + xxhash.xxh3_64_intdigest(seed.to_bytes(8, "little")) % 127 if seed else 0


def header(kind, scheme, k, seed, m):
    fields = ((1, 1), (kind, 2), (1, 2), (scheme, 3), (k, 6), (tag(seed), 7), (m, 32))
    return packed(*fields)


def packed(*fields):
    """Put (value, width) after each other, the first one on top: 53 bits."""
    word, bits = 0, 0
    for value, width in fields:
        assert 0 <= value < 2**width
        word, bits = word << width | value, bits + width
    assert bits == 53
    return word


def cells(item, seed, m, k):
    """The cells of an item in a blocked part of m cells."""
    x, y = digest(item, seed)
    out = []
    for i in range(k // 2):
        q, w = divmod(x, m // 53)
        a, b = q % 53, q // 53 % 52
        b += b >= a
        out += [53 * w + a, 53 * w + b]
        x, y = (x + y) & MASK64, (y + i + 1) & MASK64
    return out


def e_to_minus(x):
    y, t = x / 16, 1.0
    for i in range(40, 0, -1):
        t = 1 + (y * t) / i
    r = 1 / t
    for _ in range(4):
        r = r * r
    return r


def blocked_size(n, p):
    z, t = 1, 0.1
    while p < t * (1 - 1e-9):
        z, t = z + 1, t / 10
    return 53 * max(32, (n * units(z, p) + 2**20 - 1) // 2**20), 2 * z


def units(z, p):
    """Units of 2^-20 words an item, of which z words are one item's."""
    def rate(c):
        u = (2 * z * 2**20) / (53 * c)
        w = (1 - 2 * e_to_minus(u)) + e_to_minus((5459 * u) / 2756)
        r = w
        for _ in range(z - 1):
            r = r * w
        return r

    low, high = 1, 2**26
    while low < high:
        c = (low + high) // 2
        if rate(c) <= p:
            high = c
        else:
            low = c + 1
    return low


# The rate that a string was made for, in its birth number.

def rate_code(p):
    if not 2**-31 <= p <= 0.25:
        return 0
    steps = -32 * log2(p)
    assert abs(steps % 1 - 0.5) > 1e-9  # else it may differ elsewhere
    return 1 + round(steps)


def coded_rate(code):
    return 2 ** (-(code - 1) / 32)


def birth(p):
    return 2**52 + 123456789 * 2**10 + rate_code(p)


def blocked_holds(m, k, p, parts=1):
    """How many items fit, if the parts of a filter share the coded rate of p."""
    if rate_code(p) == 0:
        return 0
    return max(1, m // 53 * 2**20 // units(k // 2, coded_rate(rate_code(p)) / parts))


def classic_holds(m, k, p):
    if rate_code(p) == 0:
        return 0
    return max(1, int(-m / k * log(1 - coded_rate(rate_code(p)) ** (1 / k))))


def rates():
    for p in (0.9, 0.2501, 0.25, 0.2499, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001, 1e-4, 1e-5,
              1e-6, 1e-7, 1e-8, 5e-9, 1e-9, 2**-30, 2**-31, 4.6e-10, 1e-12, 1 / 3, 1 / 5,
              1 / 300, 0.0123, 0.00456, 7.89e-8):
        yield {"p": p, "rate": rate_code(p)}


def filters():
    for n, p in ((1, 0.01), (50, 0.01), (1000, 0.01), (1000, 0.3), (5000, 0.01), (10_000, 0.1),
                 (100_000, 0.001), (1_000_000, 1e-6), (12_345_678, 0.0123), (74_000_000, 0.01),
                 (1000, 1e-9), (1000, 4.6e-10)):
        if p >= 1e-9:
            m, k = blocked_size(n, p)
            yield {"capacity": n, "p": p, "scheme": "blocked", "m": m, "k": k,
                   "rate": rate_code(p), "holds": blocked_holds(m, k, p)}
        m = ceil(-n * log(p) / log(2)**2)
        k = max(1, round(m / n * log(2)))
        yield {"capacity": n, "p": p, "scheme": "xxh3", "m": m, "k": k,
               "rate": rate_code(p), "holds": classic_holds(m, k, p)}


def up_to_bytes(m):
    return 8 * ((m + 7) // 8)


# Windows.

class Panes:
    """The clockwork of a window: P panes a Span, R = P + 2 in a ring."""

    def __init__(self, panes, seconds):
        self.panes, self.seconds = panes, seconds
        self.ring = panes + 2
        self.epochs = self.ring * (2**24 // self.ring)  # W

    def epoch(self, unix):
        return unix // self.seconds % self.epochs

    def pane(self, epoch):
        return epoch % self.ring

    def later(self, e, c):
        """The later one of two epochs."""
        return c if self.behind(e, c) else e

    def behind(self, e, c):
        """e is c, or before c by less than a sixteenth of all epochs, rounded
        down."""
        return (c - e) % self.epochs < self.epochs // 16

    def counting(self, e, c):
        """The epochs that count: from max(c, e) - P to c + 1."""
        first, steps = self.later(e, c) - self.panes, []
        length = (c + 1 - first) % self.epochs
        # Longer than the ring: the range is empty, for e is far ahead of c.
        if length <= self.panes + 1:
            steps = [(first + i) % self.epochs for i in range(length + 1)]
        return steps

    def meaning(self, e, c):
        if e == c:
            return "now"
        if e == (c + 1) % self.epochs:
            return "next"
        return "behind" if self.behind(e, c) else "idle"

    def turn(self, c, to):
        steps = (to - c) % self.epochs
        cleared = [(to + 1 - i) % self.epochs for i in range(min(steps, self.ring))]
        return steps, [self.pane(e) for e in cleared]


def pane_seconds(span, panes):
    return (span + 5 + panes - 1) // panes


def window_word(idle, ring, seconds, epoch):
    return packed((1, 1), (idle, 1), (ring, 4), (seconds, 23), (epoch, 24))


def window_configs():
    for capacity, p, span, panes, idle, seed in (
        (1, 0.5, 10, 1, 0, 0),
        (1000, 0.01, 24 * 3600, 1, 0, 0),
        (100_000, 0.01, 24 * 3600, 1, 1, SEEDS[1]),
        (100_000, 0.001, 24 * 3600, 2, 0, 0),
        (1_000_000, 0.001, 3600, 3, 0, 0),
        (1_000_000, 1e-6, 7 * 24 * 3600, 4, 1, SEEDS[1]),
        (12_345_678, 0.01, 60, 4, 0, 1),
        (1000, 0.3, 40, 4, 0, 0),
        (7, 0.1, 21, 2, 0, 0),
        (1000, 0.01, 8_388_602, 1, 0, 0),
        (1000, 0.01, 4 * 8_388_607 - 5, 4, 0, 0),
    ):
        m, k = blocked_size(capacity, p / (panes + 1))
        seconds = pane_seconds(span, panes)
        w = Panes(panes, seconds)
        offsets = [START + j * up_to_bytes(m) for j in range(w.ring)]
        assert 10 <= seconds < 2**23 and offsets[-1] + m <= MOST
        yield {
            "capacity": capacity, "p": p, "span_seconds": span, "panes": panes,
            "idle": bool(idle), "seed": str(seed), "m": m, "k": k,
            "rate": rate_code(p), "holds": blocked_holds(m, k, p, panes + 1),
            "ring": w.ring, "pane_seconds": seconds, "epochs": w.epochs,
            "header_u53": str(header(3, 0, k, seed, m)), "pane_offsets": offsets,
            "bytes": 24 + w.ring * up_to_bytes(m) // 8,
            "times": [
                {"unix": t, "epoch": w.epoch(t), "pane": w.pane(w.epoch(t)),
                 "word_u53": str(window_word(idle, w.ring, seconds, w.epoch(t)))}
                for t in (0, 1, seconds - 1, seconds, seconds * w.epochs - 1,
                          seconds * w.epochs, 1_700_000_000, 1_799_999_999,
                          4_102_444_800)
            ],
        }


def window_refused():
    """Configs out of range: Span below Panes times 10 s, a pane of 2^23 s, a
    rate below 1e-9, a string of more than 2^32 bits."""
    for capacity, p, span, panes in (
        (1000, 0.01, 9, 1), (1000, 0.01, 19, 2), (1000, 0.01, 39, 4),
        (1000, 0.01, 2**23 - 5, 1), (1000, 0.01, 4 * (2**23 - 1) - 4, 4),
        (1000, 1.9e-9, 3600, 1), (1000, 4.9e-9, 3600, 4), (2**27, 0.01, 3600, 1),
    ):
        yield {"capacity": capacity, "p": p, "span_seconds": span, "panes": panes}


def window_pairs():
    for panes in (1, 2, 3, 4):
        w = Panes(panes, 60)
        last = w.epochs - 1
        sixteenth = w.epochs // 16  # the first that is not behind
        for c in (0, 1, 2, 5, 1000, last - 1, last, w.epochs // 2):
            apart = [*range(-8, 9), -sixteenth + 1, -sixteenth, w.epochs // 2]
            for d in apart:
                e = (c + d) % w.epochs
                yield {
                    "panes": panes, "e": e, "c": c, "meaning": w.meaning(e, c),
                    "counting": w.counting(e, c),
                    "counting_panes": [w.pane(x) for x in w.counting(e, c)],
                }


def window_turns():
    for panes in (1, 2, 3, 4):
        w = Panes(panes, 60)
        for c in (0, 7, w.epochs - 1, w.epochs // 2):
            for d in (1, 2, 3, 4, 5, 6, 7, 100, w.epochs - 1):
                to = (c + d) % w.epochs
                steps, cleared = w.turn(c, to)
                yield {"panes": panes, "c": c, "to": to, "steps": steps,
                       "cleared_panes": cleared}


# Layers.

def layers(m):
    """(first bit, cells) of each layer that can be: all that end in time."""
    out, at = [], START
    for i in range(5):
        if at + m * 4**i > MOST:
            break
        out.append((at, m * 4**i))
        at += up_to_bytes(m * 4**i)
    return out


def capacity_code(n):
    """n as (1 + mantissa / 2**11) * 2**exponent, rounded down."""
    exponent = n.bit_length() - 1
    return exponent << 11 | (n << 11 >> exponent) - 2**11


def capacity_of(code):
    return (2**11 + code % 2**11) << (code >> 11) >> 11


def layers_word(capacity, count, taken):
    return packed((1, 1), (capacity_code(capacity), 16), (count, 4), (taken, 32))


def layer_words():
    for capacity in (1000, 1001, 4095, 4096, 4097, 10_000, 999_999, 1_000_000, 2**31 - 1,
                     2**31, 2**32 - 1):
        for count, taken in ((1, 0), (5, 2**32 - 1), (3, 16_000)):
            yield {"capacity": capacity, "layers": count, "taken": taken,
                   "held": capacity_of(capacity_code(capacity)),
                   "word_u53": str(layers_word(capacity, count, taken))}


def scalable_configs():
    for capacity, p, seed in (
        (1, 0.5, 0), (999, 0.01, 0), (1000, 0.01, 0), (1001, 0.01, SEEDS[1]),
        (100_000, 0.01, 0), (100_000, 0.001, 1), (1_000_000, 0.01, 0),
        (1_000_000, 1e-6, SEEDS[1]), (5_000_000, 0.01, 0), (300_000_000, 0.01, 0),
        (12_345_678, 0.003, 0), (10_000, 5e-9, 0),
    ):
        m, k = blocked_size(max(1000, capacity), p / 5)
        parts = layers(m)
        yield {
            "capacity": capacity, "p": p, "seed": str(seed), "m": m, "k": k,
            "header_u53": str(header(2, 0, k, seed, m)),
            "layers": [{"offset": at, "m": cells} for at, cells in parts],
            "words_u53": [str(layers_word(max(1000, capacity), i + 1, 0))
                          for i in range(len(parts))],
        }


def layer_counts():
    """How many layers fit, on both sides of each size at which one more does."""
    for count in range(1, 6):
        low, high = 1, 81_037_115  # words of the first layer
        while low < high:  # the largest with at least that many
            words = (low + high + 1) // 2
            if len(layers(53 * words)) >= count:
                low = words
            else:
                high = words - 1
        for words in {low, min(low + 1, 81_037_115)}:
            yield {"m": 53 * words, "layers": len(layers(53 * words))}


# Shards.

def shard_items(capacity, shards):
    mu = (capacity + shards - 1) // shards
    root = isqrt(mu)
    return mu + 3 * (root + (root * root < mu))


def shards_hold(m, k, p, shards):
    """The capacity of the whole: that of a shard without its margin."""
    room, mean = blocked_holds(m, k, p), 0
    for bit in reversed(range(40)):
        if shard_items(mean + 2**bit, 1) <= room:
            mean += 2**bit
    return mean * shards


def shard_of(item, seed, count):
    return ((digest(item, seed)[1] >> 32) * count) >> 32


def shard_word(count, index):
    return packed((1, 1), (count, 12), (index, 12), (0, 28))


def sharded_configs():
    for capacity, p, shards, seed in (
        (1, 0.01, 1, 0), (1, 0.01, 256, 0), (1000, 0.01, 2, 0), (1_000_000, 0.01, 3, 0),
        (1_000_000, 0.001, 16, SEEDS[1]), (256_000, 0.01, 256, 1), (255, 0.5, 16, 0),
        (2**32, 0.01, 64, 0), (10**10, 0.001, 256, 0), (10**9 + 7, 0.02, 7, 0),
    ):
        n = shard_items(capacity, shards)
        m, k = blocked_size(n, p)
        yield {
            "capacity": capacity, "p": p, "shards": shards, "seed": str(seed),
            "shard_capacity": n, "m": m, "k": k, "rate": rate_code(p),
            "shard_holds": blocked_holds(m, k, p), "holds": shards_hold(m, k, p, shards),
            "header_u53": str(header(1, 0, k, seed, m)),
            "words": [{"index": i, "word_u53": str(shard_word(shards, i))}
                      for i in sorted({0, 1, shards // 2, shards - 1} & set(range(shards)))],
        }


def shard_sizes():
    for mu in (1, 2, 3, 4, 5, 8, 9, 10, 15, 16, 17, 99, 100, 101, 2**26 - 1, 2**26,
               (2**26 - 1)**2 - 1, (2**26 - 1)**2, (2**26 - 1)**2 + 1):
        yield {"mu": str(mu), "items": str(shard_items(mu, 1))}


def shards_of_items():
    for item in ITEMS:
        for seed in SEEDS:
            yield {
                "item": item, "seed": str(seed),
                "shards": {str(n): shard_of(item, seed, n)
                           for n in (1, 2, 3, 7, 16, 100, 255, 256)},
            }


# Cuckoo.

AT_LEAST = ((5, 10 / 1024), (4, 8 / 8192), (3, 6 / 131072), (2, 4 / 2**26))
ROOM = {5: 95, 4: 94, 3: 91, 2: 84}


def cuckoo_size(n, p):
    k = next((k for k, least in AT_LEAST if p >= least), None)
    if k is None:
        return None
    return 53 * (-(-100 * n // (k * ROOM[k])) + 16), k


def width(k):
    return 53 // k


def fingerprint(y, k):
    return 1 + y % (2**width(k) - 1)


def other_bucket(fp, b, buckets):
    return (fp * 96280213 - b) % buckets


def cuckoo_places(item, seed, m, k):
    x, y = digest(item, seed)
    buckets = m // 53
    fp, first = fingerprint(y, k), x % buckets
    return fp, first, other_bucket(fp, first, buckets)


def slots(word, k):
    return [word // 2**(width(k) * i) % 2**width(k) for i in range(k)]


def cuckoo_word(items, ones):
    return packed((1, 1), (items, 32), (ones % 2**20, 20))


def cuckoo_configs():
    for n, p, seed in (
        (1, 0.5, 0), (1, 0.01, 0), (1000, 10 / 1024, 0), (1000, 0.0097, 0),
        (1000, 0.001, SEEDS[1]), (1000, 8 / 8192, 0), (1000, 0.0009, 1),
        (100_000, 6 / 131072, 0), (100_000, 0.00004, 0), (100_000, 1e-6, 0),
        (100_000, 4 / 2**26, 0), (1_000_000, 0.01, 0), (300_000_000, 0.01, 0),
    ):
        m, k = cuckoo_size(n, p)
        yield {
            "capacity": n, "p": p, "seed": str(seed), "m": m, "k": k,
            "width": width(k), "header_u53": str(header(0, 5, k, seed, m)),
            "places": [
                dict(zip(("item", "fingerprint", "bucket", "other"),
                         (item, *cuckoo_places(item, seed, m, k))))
                for item in ITEMS
            ],
        }


def cuckoo_words():
    for items, ones in ((0, 0), (1, 5), (1000, 2**20 - 1), (1000, 2**20),
                        (2**32 - 1, 2**20 + 17)):
        yield {"items": items, "ones": ones, "word_u53": str(cuckoo_word(items, ones))}


# Whole strings: what a database holds after the items were added.

def string(first, word, bits, born):
    """The bytes of three words and a body, bits being numbers of bits."""
    value = bytearray((max(bits, default=START) // 8) + 1)
    value[0:8] = (first << 11).to_bytes(8, "big")
    value[8:16] = (born << 11).to_bytes(8, "big")
    value[16:24] = (word << 11).to_bytes(8, "big")
    for b in bits:
        value[b // 8] |= 128 >> b % 8
    return bytes(value)


OTHERS = [f"other {i}" for i in range(2000)]  # never added: what is found of them is false


def window_string(capacity, p, span, panes, idle, spare):
    """A window with items in every epoch that counts, in that of the spare
    pane only if asked for."""
    seed = SEEDS[1]
    m, k = blocked_size(capacity, p / (panes + 1))
    w = Panes(panes, pane_seconds(span, panes))
    c = w.epoch(1_800_000_000)
    added = {e: [f"epoch {e - c}, item {i}" for i in range(capacity)]
             for e in range(c - panes, c + 1 + spare)}
    bits = [START + w.pane(e) * up_to_bytes(m) + cell
            for e, items in added.items() for item in items
            for cell in cells(item, seed, m, k)]
    value = string(header(3, 0, k, seed, m), window_word(idle, w.ring, w.seconds, c),
                   bits, birth(p))
    found = {}
    for e in range(c - 1, c + panes + 4):
        counting = [START + w.pane(x) * up_to_bytes(m) for x in w.counting(e, c)]
        found[str(e - c)] = [item for items in added.values() for item in items
                             if held(value, item, seed, m, k, counting)]
    return {"kind": 3, "capacity": capacity, "p": p, "span_seconds": span, "panes": panes,
            "idle": bool(idle), "seed": str(seed), "m": m, "k": k,
            "pane_seconds": w.seconds, "epoch": c,
            "items": [i for items in added.values() for i in items],
            "found_at": found, "hex": value.hex()}


def layers_string():
    seed, p = 0, 0.5  # a large rate makes a short string
    m, k = blocked_size(1000, p / 5)
    parts, items, bits = layers(m), [], []
    for number, (at, cells_of) in enumerate(parts[:3]):
        for i in range(30):
            items.append(f"layer {number}, item {i}")
            bits += [at + cell for cell in cells(items[-1], seed, cells_of, k)]
    value = string(header(2, 0, k, seed, m), layers_word(1000, 3, 30), bits, birth(p))
    found = [i for i in OTHERS if any(held(value, i, seed, n, k, [at]) for at, n in parts)]
    return {"kind": 2, "capacity": 1000, "p": p, "seed": str(seed), "m": m, "k": k, "layers": 3,
            "items": items, "others_found": found, "hex": value.hex()}


def held(value, item, seed, m, k, offsets):
    def bit(b):
        return b // 8 < len(value) and value[b // 8] >> (7 - b % 8) & 1
    return any(all(bit(at + c) for c in cells(item, seed, m, k)) for at in offsets)


def shard_string():
    seed, shards, index = SEEDS[1], 3, 1
    capacity, p = 60, 0.01
    m, k = blocked_size(shard_items(capacity, shards), p)
    items = [i for i in (f"item {i}" for i in range(capacity))
             if shard_of(i, seed, shards) == index]
    bits = [START + c for item in items for c in cells(item, seed, m, k)]
    value = string(header(1, 0, k, seed, m), shard_word(shards, index), bits, birth(p))
    return {"kind": 1, "capacity": capacity, "p": p, "seed": str(seed), "m": m, "k": k,
            "shards": shards, "index": index, "items": items,
            "others_found": [i for i in OTHERS if shard_of(i, seed, shards) == index
                             and held(value, i, seed, m, k, [START])],
            "hex": value.hex()}


def cuckoo_string(n, p):
    """A table in which no item has to move: the first of its two buckets that
    has room takes it."""
    seed = SEEDS[1]
    m, k = cuckoo_size(n, p)
    table = [[0] * k for _ in range(m // 53)]
    items = [f"item {i}" for i in range(n // 2)] + ["item 0", "item 0"]
    for item in items:
        fp, first, other = cuckoo_places(item, seed, m, k)
        bucket = next(b for b in (first, other) if 0 in table[b])
        table[bucket][table[bucket].index(0)] = fp
    bits = []
    for b, slots_ in enumerate(table):
        word = sum(fp << width(k) * slot for slot, fp in enumerate(slots_))
        assert slots(word, k) == slots_
        bits += [START + 53 * b + i for i in range(53) if word >> 52 - i & 1]
    value = string(header(0, 5, k, seed, m), cuckoo_word(len(items), len(bits)), bits, birth(p))
    found = []
    for item in OTHERS:
        fp, first, other = cuckoo_places(item, seed, m, k)
        if fp in table[first] or fp in table[other]:
            found.append(item)
    return {"kind": 0, "capacity": n, "p": p, "seed": str(seed), "m": m, "k": k,
            "items": items, "others_found": found, "hex": value.hex()}


# Streams: what a file holds.

def plain_cells(scheme, item, seed, m, k):
    if scheme == "blocked":
        return cells(item, seed, m, k)
    if scheme == "fnv1a":
        first, step = (fnv1a(item, offset) for offset in (0xCBF29CE484222325, 0x84222325CBF29CE4))
        return [(first + i * step) % m for i in range(k)]
    (x, y), out = digest(item, seed), []
    for i in range(k):
        out.append(x % m)
        x, y = (x + y) & MASK64, (y + i + 1) & MASK64
    return out


def fnv1a(item, h):
    for byte in item.encode():
        h = (h ^ byte) * 1099511628211 & MASK64
    return h


def stream(value, length):
    """The frame around a string of that length, which a database has cut at its
    end."""
    value = value.ljust(length, b"\0")
    frame = b"\x89upbloom" + value[:8] + length.to_bytes(8, "big") + value
    return frame + xxhash.xxh3_64_digest(frame)


def trailer(frame, note):
    """What a program may write behind a frame: a note in JSON."""
    note = note.encode()
    out = b"\x89upbnote" + len(note).to_bytes(8, "big") + note
    return out + xxhash.xxh3_64_digest(frame[-8:] + out)


def plain_streams():
    """Plain filters of which p, and so the rate, is known or not. A code that is
    that of no p counts as unknown."""
    for scheme, number, n, p, seed, code in (
        ("blocked", 0, 30, 0.01, 0, rate_code(0.01)),
        ("blocked", 0, 30, 0.001, SEEDS[1], rate_code(0.001)),
        ("blocked", 0, 30, 1e-9, 0, rate_code(1e-9)),
        ("blocked", 0, 30, 0.01, 0, 0),
        ("blocked", 0, 30, 0.3, 0, rate_code(0.3)),
        ("blocked", 0, 30, 0.01, 0, 64),
        ("blocked", 0, 30, 0.01, 0, 1023),
        ("xxh3", 4, 30, 0.25, SEEDS[1], rate_code(0.25)),
        ("xxh3", 4, 30, 2**-31, 0, rate_code(2**-31)),
        ("fnv1a", 1, 30, 0.01, 0, rate_code(0.01)),
        ("fnv1a", 1, 0, 0.01, 0, 0),
    ):
        if scheme == "blocked":
            m, k = blocked_size(max(n, 1), p)
            holds = blocked_holds(m, k, p)
        else:
            m = ceil(-max(n, 1) * log(p) / log(2)**2)
            k = max(1, round(m / max(n, 1) * log(2)))
            holds = classic_holds(m, k, p)
        items = [f"item {i}" for i in range(n)]
        of = {item: plain_cells(scheme, item, seed, m, k) for item in [*items, *OTHERS[:100]]}
        set_cells = {cell for item in items for cell in of[item]}
        value = string(header(0, number, k, seed, m), 0, [START + c for c in set_cells], code)
        yield {"scheme": scheme, "seed": str(seed), "m": m, "k": k, "p": p, "rate": code,
               "holds": holds if code == rate_code(p) else 0, "items": items,
               "others_found": [i for i in OTHERS[:100] if set_cells >= set(of[i])],
               "hex": stream(value, 24 + (m + 7) // 8).hex(),
               "trailer": trailer(stream(value, 24 + (m + 7) // 8), f'{{"key":"filter-{m}"}}').hex()}


def lengths(made):
    """How long each of these strings is in a stream."""
    for v in made:
        m = v["m"]
        if v["kind"] == 3:
            yield 24 + (v["panes"] + 2) * up_to_bytes(m) // 8
        elif v["kind"] == 2:  # as far as the layers in use
            at, last = layers(m)[v["layers"] - 1]
            yield (at + up_to_bytes(last)) // 8
        else:
            yield 24 + (m + 7) // 8


def with_streams(made):
    """Each string with what its stream has before it and after it."""
    for v, n in zip(made, lengths(made)):
        whole = stream(bytes.fromhex(v["hex"]), n)
        yield {**v, "stream_bytes": n, "stream_head": whole[:24].hex(), "stream_sum": whole[-8:].hex()}


def main():
    out = {
        "note": "Made by kinds.py, an independent implementation (Python, xxhash).",
        "rates": list(rates()),
        "filters": list(filters()),
        "window": list(window_configs()),
        "window_refused": list(window_refused()),
        "window_pairs": list(window_pairs()),
        "window_turns": list(window_turns()),
        "scalable": list(scalable_configs()),
        "layer_words": list(layer_words()),
        "layer_counts": list(layer_counts()),
        "sharded": list(sharded_configs()),
        "shard_sizes": list(shard_sizes()),
        "shards_of_items": list(shards_of_items()),
        "cuckoo": list(cuckoo_configs()),
        "cuckoo_words": list(cuckoo_words()),
        "streams": list(plain_streams()),
        "strings": list(with_streams([window_string(20, 0.01, 600, 2, 0, 1), window_string(20, 0.01, 600, 1, 1, 0),
                    layers_string(), shard_string(),
                    cuckoo_string(50, 0.01), cuckoo_string(50, 0.001),
                    cuckoo_string(50, 1e-4), cuckoo_string(50, 1e-6)])),
    }
    # One vector a line: short enough to read, and to compare.
    print("{")
    for i, (name, value) in enumerate(out.items()):
        comma = "," if i < len(out) - 1 else ""
        if isinstance(value, str):
            print(f" {json.dumps(name)}: {json.dumps(value)}{comma}")
            continue
        lines = ",\n  ".join(json.dumps(v, ensure_ascii=False) for v in value)
        print(f" {json.dumps(name)}: [\n  {lines}\n ]{comma}")
    print("}")


if __name__ == "__main__":
    main()
