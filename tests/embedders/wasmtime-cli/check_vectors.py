"""Runs the golden vectors: check_vectors.py COMPONENT VECTORS.

What is expected is written as WAVE and compared with what the CLI printed.
"""

from __future__ import annotations

import json
import sys
from itertools import chain

from check_module import check as check_module
from membership import Membership, Rules, flags, membership, octets, option

GROUPS = ["leave", "malformed", "rejoin", "serde", "signal", "without_record"]


def standing(vector: dict) -> Membership:
    left_at_ns = vector["left_at_ns"]
    return Membership(
        int(vector["user_id"]),
        vector["status"],
        None if left_at_ns is None else int(left_at_ns),
    )


def agree(vector: object, expected: str, call, *arguments) -> None:
    try:
        found = call(*arguments)
    except Exception as error:
        found = f"a failed call: {error}"
    # Another release of the CLI may print an absent instant.
    if found.replace(", left-at-ns: none", "") != expected:
        sys.exit(f"wasmtime-cli: {vector}\nexpected {expected}\nfound    {found}")


def status_without_reason(rules: Rules, record: bytes) -> str:
    """The reason is for a person; the vectors do not say it."""
    return rules.status(42, record).partition('reason: "')[0]


def check_vectors(rules: Rules, vectors: dict) -> int:
    agree("the groups of vectors", " ".join(GROUPS), " ".join, sorted(vectors))
    for vector in vectors["without_record"]:
        expected = standing(vector)
        text = f"ok({membership(expected)})"
        agree(("without_record", vector), text, rules.status, expected.user_id, None)
    for vector in vectors["serde"]:
        expected, record = standing(vector["membership"]), bytes.fromhex(vector["bytes"])
        user_id, text = expected.user_id, membership(expected)
        agree(("serialize", vector), octets(record), rules.serialize, expected)
        agree(("deserialize", vector), option(text), rules.deserialize, user_id, record)
        agree(("status", vector), f"ok({text})", rules.status, user_id, record)
    for vector in vectors["leave"]:
        current, now = standing(vector["current"]), int(vector["now"])
        text = membership(standing(vector["result"]))
        agree(("leave", vector), text, rules.leave, current, now)
    for vector in vectors["rejoin"]:
        text = membership(standing(vector["result"]))
        agree(("rejoin", vector), text, rules.rejoin, standing(vector["current"]))
    for vector in vectors["signal"]:
        text = flags(vector["fan_out"])
        agree(("signal", vector), text, rules.signal, standing(vector["current"]))
    for vector in vectors["malformed"]:
        record = bytes.fromhex(vector)
        agree(("malformed, deserialize", vector), "none", rules.deserialize, 42, record)
        agree(("malformed, status", vector), "err({", status_without_reason, rules, record)
    check_restore(rules, vectors)
    return sum(map(len, vectors.values()))


def check_restore(rules: Rules, vectors: dict) -> None:
    """All records in one call, the malformed ones between the others."""
    good = []
    for vector in vectors["serde"]:
        expected = standing(vector["membership"])
        open_ways = flags(
            ["cohort-attribution", "community-forwarding"] if expected.status == "active" else []
        )
        entry = f"some({{membership: {membership(expected)}, fan-out: {open_ways}}})"
        good.append((expected.user_id, bytes.fromhex(vector["bytes"]), entry))
    malformed = [(42, bytes.fromhex(vector), "none") for vector in vectors["malformed"]]
    entries = list(chain.from_iterable(zip(malformed, good)))
    users = [user_id for user_id, _, _ in entries]
    lengths = [len(record) for _, record, _ in entries]
    records = b"".join(record for _, record, _ in entries)
    expected = [entry for _, _, entry in entries]
    agree("restore", f"[{', '.join(expected)}]", rules.restore, users, lengths, records)

    # One byte short: the last record, which is a good one, is cut off.
    expected[-1] = "none"
    text = f"[{', '.join(expected)}]"
    agree("restore, one byte short", text, rules.restore, users, lengths, records[:-1])


if __name__ == "__main__":
    rules = Rules(sys.argv[1])
    check_module(rules)
    with open(sys.argv[2], encoding="utf-8") as file:
        print(f"wasmtime-cli: {check_vectors(rules, json.load(file))} vectors agree")
