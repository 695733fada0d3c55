"""Runs the Python reader of bloom/FORMAT.md, which the test writes to
format_reader.py, as js/formatdriver.mjs does the JavaScript."""

import json
import sys
import urllib.request

work = json.load(sys.stdin.buffer)

# The reader needs only these two functions of xxhash. If the library is not installed,
# the test has passed the digests: 128 bits of an item and a seed, and 64 bits of a
# seed's bytes.
try:
    import xxhash  # noqa: F401
except ImportError:
    from types import SimpleNamespace

    sys.modules["xxhash"] = SimpleNamespace(
        xxh3_128_intdigest=lambda data, seed=0: int(work["digests"][f"{seed}:{data.hex()}"], 16),
        xxh3_64_intdigest=lambda data: int(work["digests"][data.hex()], 16),
    )

import format_reader  # noqa: E402


def call(*command):
    request = urllib.request.Request(
        work["url"], json.dumps(command).encode(), {"Authorization": "Bearer " + work["token"]}
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["result"]


answers = []
for piece in work["work"]:
    try:
        seed = int(piece["seed"])
        answers.append([format_reader.exists(call, piece["key"], item, seed) for item in piece["items"]])
    except LookupError as e:
        answers.append(str(e))
print(json.dumps(answers))
