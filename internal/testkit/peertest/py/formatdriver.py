"""Runs the Python reader of bloom/FORMAT.md, which the test writes to
format_reader.py, as js/formatdriver.mjs does the JavaScript."""

import json
import sys
import urllib.request

import format_reader

work = json.load(sys.stdin.buffer)


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
