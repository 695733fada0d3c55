"""Read and write upbloom's plain filters, and read its windows and scalable
filters.

One file, to be copied; it needs xxhash. The format is bloom/FORMAT.md.

    call = rest(url, token)
    seen = open_filter(call, "seen:webhooks")
    seen.exists(["id-1", "id-2"])  # [True, False]
    add(call, "seen:urls", ["https://example.com/"], size(100_000, 0.01))

It sends a command once and never again: if an add fails on its way, send it
again yourself, and do not trust a "seen" that follows.
"""

import json
import secrets
import time
import urllib.error
import urllib.request
from math import log2
from typing import Any, Callable, NamedTuple, Optional

import xxhash

Call = Callable[..., Any]

BLOCKED, FNV1A, XXH3 = 0, 1, 4  # the numbers of the schemes that this file knows

_KINDS = ("filter", "shard", "scalable", "window")
_START = 192  # bits of the header, the birth number and the kind's word
_BATCH = 500  # items in a command
_64 = 2**64 - 1


class NotFound(LookupError):
    """No filter is at the key. This is not a "no"."""


class Mismatch(LookupError):
    """Another filter is at the key, or another string. A key of another type is
    the server's WRONGTYPE."""


class Geometry(NamedTuple):
    """m cells, k of them an item's. The seed has 64 bits."""

    m: int
    k: int
    scheme: int = BLOCKED
    seed: int = 0
    rate: int = 0  # what a filter that add makes says of the rate it is for


def rest(url: str, token: str, timeout: float = 10) -> Call:
    """Return a call that sends one command over the REST API and returns its
    result. An error of the server is raised. The call passes the sync token on:
    on a global database the nearest region then knows what it wrote before."""

    sync_token = "Upstash-Sync-Token"
    seen = ""

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):  # the token goes to this host alone
            return None

    opener = urllib.request.build_opener(NoRedirect)

    def call(*command: str) -> Any:
        nonlocal seen
        request = urllib.request.Request(
            url, json.dumps(command).encode(),
            {"Authorization": f"Bearer {token}", sync_token: seen})
        try:
            with opener.open(request, timeout=timeout) as response:
                seen = response.headers.get(sync_token, seen)
                answer = json.load(response)
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{command[0]}: status {e.code}: {e.read(500).decode(errors='replace')!r}") from None
        except ValueError:  # a proxy answers with a page
            raise RuntimeError(f"{command[0]}: no JSON: is the URL right?") from None
        if "result" not in answer:
            raise RuntimeError(f"{command[0]}: {answer.get('error', 'no result')}")
        return answer["result"]

    return call


def tag_of(seed: int) -> int:
    """The seed's tag in the header. Without it a wrong seed would find nothing."""
    return 1 + xxhash.xxh3_64_intdigest(seed.to_bytes(8, "little")) % 127 if seed else 0


def header_of(g: Geometry) -> int:
    return 1 << 52 | 1 << 48 | g.scheme << 45 | g.k << 39 | tag_of(g.seed) << 32 | g.m


def _pairs(x: int, y: int, m: int, k: int):
    """The item's words of a blocked part, each with its two bits."""
    for i in range(k // 2):
        q, w = divmod(x, m // 53)
        a, b = q % 53, q // 53 % 52
        yield w, a, b + (b >= a)
        x, y = x + y & _64, y + i + 1 & _64


def _digest(item: str, seed: int):
    digest = xxhash.xxh3_128_intdigest(item.encode(), seed)
    return digest >> 64, digest & _64


def cells_of(item: str, g: Geometry) -> list[int]:
    """The numbers of an item's cells."""
    if g.scheme == FNV1A:
        halves = []
        for h in (0xCBF29CE484222325, 0x84222325CBF29CE4):
            for c in item.encode():
                h = (h ^ c) * 1099511628211 & _64
            halves.append(h)
        return [(halves[0] + i * halves[1]) % g.m for i in range(g.k)]
    x, y = _digest(item, g.seed)
    if g.scheme == BLOCKED:
        return [53 * w + bit for w, a, b in _pairs(x, y, g.m, g.k) for bit in (a, b)]
    cells = []
    for i in range(g.k):
        cells.append(x % g.m)
        x, y = x + y & _64, y + i + 1 & _64
    return cells


def _batches(items: list[str]):
    """The items in lists for a command each."""
    if isinstance(items, str):  # each letter would be an item
        raise TypeError("items is a list of strings, not one string")
    for i in range(0, len(items), _BATCH):
        yield items[i:i + _BATCH]


def size(n: int, p: float) -> Geometry:
    """The size of a blocked filter for n items at rate p, 1e-9 to below 1."""
    if not 1e-9 <= p < 1 or not 1 <= n < 2**36:
        raise ValueError("n is from 1 to below 2**36, p from 1e-9 to below 1")
    z, t = 1, 0.1
    while p < t * (1 - 1e-9):
        z, t = z + 1, t / 10

    def e(x):  # e^-x by + - * / alone, the same everywhere
        t = 1.0
        for i in range(40, 0, -1):
            t = 1 + ((x / 16) * t) / i
        r = 1 / t
        for _ in range(4):
            r = r * r
        return r

    def rate(c):
        u = (2 * z * 2**20) / (53 * c)
        w = (1 - 2 * e(u)) + e((5459 * u) / 2756)
        r = w
        for _ in range(z - 1):
            r = r * w
        return r

    low, high = 1, 2**26
    while low < high:
        c = (low + high) // 2
        low, high = (low, c) if rate(c) <= p else (c + 1, high)
    code = 0 if p > 0.25 else 1 + round(-32 * log2(p))
    return Geometry(53 * max(32, (n * low + 2**20 - 1) // 2**20), 2 * z, rate=code)


def add(call: Call, key: str, items: list[str], g: Geometry) -> list[bool]:
    """Add items to a plain filter, and make it if there is none. True: it was
    new. One command for 500 items; if one fails, those before it have run.
    Mismatch, for another size or kind at the key, comes after the bits were
    set. A call that sends a command again draws its birth number again."""
    header, added = header_of(g), []
    for batch in _batches(items):
        birth = 1 << 52 | secrets.randbits(42) << 10 | g.rate  # another in each command
        sets = []
        for item in batch:
            for cell in cells_of(item, g):
                sets += ["SET", "u1", str(_START + cell), "1"]
        _, stands, _, *old = call(
            "BITFIELD", key, "OVERFLOW", "FAIL", "INCRBY", "u53", "0", str(header),
            "GET", "u53", "0", "INCRBY", "u53", "64", str(birth), "OVERFLOW", "WRAP", *sets)
        if stands != header:
            raise Mismatch("another filter, or other data, is at this key")
        added += [0 in old[at:at + g.k] for at in range(0, len(old), g.k)]
    return added


def parts_of(kind: str, m: int, panes: int) -> list[tuple[int, int]]:
    """The parts that an item may be in, each with the bit of its first cell and
    its cells: one, the panes, or all layers that can be."""
    parts, at = [], _START
    for i in range({"filter": 1, "scalable": 5, "window": panes}[kind]):
        cells = m * 4**i if kind == "scalable" else m
        if at + cells > 2**32:
            break
        parts.append((at, cells))
        at += (cells + 7) // 8 * 8
    return parts


class Panes:
    """The clockwork of a window."""

    def __init__(self, panes: int, seconds: int):
        self.panes, self.seconds = panes, seconds
        self.epochs = panes * (2**24 // panes)

    def epoch_at(self, unix: float) -> int:
        return int(unix // self.seconds) % self.epochs

    def counting(self, e: Optional[int], c: int) -> list[int]:
        """The panes that count at epoch e if the window stands at c. If e is
        None, the server's clock is not known."""
        behind = e is None or (c - e) % self.epochs < self.epochs // 16
        passed = 0 if behind else (e - c) % self.epochs
        first = c - (self.panes - 2)
        return [(first + i) % self.epochs % self.panes for i in range(passed, self.panes)]


class Reader:
    """A filter of one of these kinds at a key, as open_filter found it."""

    def __init__(self, call: Call, key: str, kind: str, geometry: Geometry, header: int,
                 read: str, panes: Optional[Panes] = None):
        self.call, self.key, self.kind, self.geometry = call, key, kind, geometry
        self.parts = parts_of(kind, geometry.m, panes.panes if panes else 0)
        self._header, self._read, self._panes = header, read, panes
        self._known: Optional[tuple[int, float]] = None

    def exists(self, items: list[str]) -> list[bool]:
        """Report for each item whether it is in. Of a window: whether it was
        added lately. A filter that is missing, or another one, is an error."""
        found = []
        for batch in _batches(items):
            gets, masks = [], []
            for item in batch:
                self._ask(item, gets, masks)
            unix = self._time() if self._panes else None
            again, word, *got = self.call(
                self._read, self.key, "GET", "u53", "0", "GET", "u53", "128", *gets)
            if again == 0:
                raise NotFound("no filter is at this key any more")
            if again != self._header:
                raise Mismatch("another filter took its place")
            reads = self._reads()
            counting = self._counting(word, unix)
            held = [value & mask == mask for value, mask in zip(got, masks, strict=True)]
            for at in range(0, len(held), len(self.parts) * reads):
                found.append(any(
                    all(held[at + part * reads:at + (part + 1) * reads]) for part in counting))
        return found

    def _reads(self) -> int:
        """How many numbers of a part an item asks for."""
        return self.geometry.k // 2 if self.geometry.scheme == BLOCKED else self.geometry.k

    def _ask(self, item: str, gets: list[str], masks: list[int]) -> None:
        g = self.geometry
        if g.scheme != BLOCKED:
            for cell in cells_of(item, g):
                gets += ["GET", "u1", str(_START + cell)]
                masks.append(1)
            return
        x, y = _digest(item, g.seed)
        for at, m in self.parts:
            for w, a, b in _pairs(x, y, m, g.k):
                gets += ["GET", "u53", str(at + 53 * w)]
                masks.append(1 << 52 - a | 1 << 52 - b)

    def _counting(self, word: int, unix: Optional[float]) -> list[int]:
        """The parts that count."""
        p = self._panes
        if p is None:
            return list(range(len(self.parts)))
        if word >> 47 & 15 != p.panes or word >> 24 & 2**23 - 1 != p.seconds:
            raise Mismatch("another window took its place")
        return p.counting(None if unix is None else p.epoch_at(unix), word & 2**24 - 1)

    def _time(self) -> Optional[float]:
        """The server's time, asked for every ten minutes. A token that may only
        read may be refused it: then all panes count."""
        for _ in range(6):
            now = time.monotonic()
            if self._known is not None and now - self._known[1] <= 600:
                return self._known[0] + now - self._known[1]
            try:
                seconds, _ = self.call("TIME")
            except RuntimeError as e:
                if "NOPERM" in str(e):
                    return None
                raise
            # A slow answer is not exact. Late rather than early: what is forgotten
            # too late is no wrong "no".
            if time.monotonic() - now <= 2:
                self._known = int(seconds), time.monotonic()
        raise RuntimeError("TIME: no answer came within 2 seconds")


def open_filter(call: Call, key: str, seed: int = 0, read_only: bool = False) -> Reader:
    """Open the filter at a key, to look items up. A token that
    may only read needs read_only. On a global database the nearest region then
    answers, and a "no" may be as old as its lag. NotFound: the string is missing
    or empty. One that begins with 53 zero bits is a Mismatch; an add would make a
    filter of it."""
    read = "BITFIELD_RO" if read_only else "BITFIELD"  # which counts as a write
    ask = (read, key, "GET", "u53", "0", "GET", "u11", "53", "GET", "u10", "117",
           "GET", "u53", "128")
    header, low, gap, word = call(*ask)
    if header == 0:
        if call("STRLEN", key) == 0:
            raise NotFound("no filter is at this key; a sharded one is at KEY:0, KEY:1 and"
                           " so on, and this file does not read it")
        header, low, gap, word = call(*ask)  # a filter may have been made meanwhile
    kind, version, scheme = _KINDS[header >> 50 & 3], header >> 48 & 3, header >> 45 & 7
    g = Geometry(header & 0xFFFFFFFF, header >> 39 & 63, scheme, seed)
    valid = (header >> 52 == 1 and version == 1 and low == gap == 0 and g.k and g.m
             and _START + g.m <= 2**32 and (scheme != BLOCKED or g.k % 2 == g.m % 53 == 0))
    known = scheme == BLOCKED or kind == "filter" and scheme in (FNV1A, XXH3)
    if not valid or not known or kind == "shard":
        raise Mismatch("other data, or a filter that this file does not read")
    if header >> 32 & 127 != tag_of(seed):
        raise Mismatch("the filter has another seed")
    if kind != "filter" and word >> 52 != 1:
        raise Mismatch("the kind's own word is damaged")
    panes = None
    if kind == "window":
        panes = Panes(word >> 47 & 15, word >> 24 & 2**23 - 1)
        if not 3 <= panes.panes <= 6 or panes.seconds < 10 \
                or len(parts_of(kind, g.m, panes.panes)) != panes.panes:
            raise Mismatch("the kind's own word is damaged")
    return Reader(call, key, kind, g, header, read, panes)
