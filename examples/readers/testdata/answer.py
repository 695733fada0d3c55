"""Answers questions of the test, a line of JSON each, with upbloom.py."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True
import upbloom  # noqa: E402

send = upbloom.rest(sys.argv[1], sys.argv[2])


def answer(q):
    g = upbloom.Geometry(q.get("m"), q.get("k"), q.get("scheme", 0), int(q.get("seed", "0")))

    def call(*command):
        if command[0] == "TIME" and "now" in q:
            return [str(q["now"]), "0"]
        return send(*command)

    match q["op"]:
        case "cells":
            return upbloom.cells_of(q["items"][0], g)
        case "header":
            return str(upbloom.header_of(g))
        case "size":
            got = upbloom.size(q["n"], q["p"])
            return {"m": got.m, "k": got.k, "rate": got.rate}
        case "parts":
            return [{"at": at, "m": m} for at, m in upbloom.parts_of(q["kind"], q["m"], q["panes"])]
        case "epoch":
            return upbloom.Panes(q["panes"], q["seconds"]).epoch_at(q["now"])
        case "counting":
            return upbloom.Panes(q["panes"], 60).counting(q.get("e"), q["c"])
        case "add":
            return upbloom.add(call, q["key"], q["items"], g)
        case "exists":
            return upbloom.open_filter(call, q["key"], g.seed, q.get("readOnly", False)).exists(q["items"])


for line in sys.stdin:
    try:
        print(json.dumps({"ok": answer(json.loads(line))}), flush=True)
    except Exception as e:
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}), flush=True)
