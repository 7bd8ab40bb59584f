"""Runs the golden vectors: check_vectors.py COMPONENT VECTORS."""

from __future__ import annotations

import json
import sys
from itertools import chain

from check_module import check as check_module
from membership import MalformedRecord, Membership, Restored, Rules

GROUPS = ["leave", "malformed", "rejoin", "serde", "signal", "without_record"]
BOTH_WAYS = frozenset({"cohort-attribution", "community-forwarding"})


def membership(vector: dict) -> Membership:
    left_at_ns = vector["left_at_ns"]
    return Membership(
        int(vector["user_id"]),
        vector["status"],
        None if left_at_ns is None else int(left_at_ns),
    )


def agree(vector: object, expected: object, call, *arguments) -> None:
    try:
        found = call(*arguments)
    except Exception as error:
        found = f"a failed call: {error}"
    if found != expected:
        sys.exit(f"python: {vector}\nexpected {expected!r}\nfound    {found!r}")


def is_malformed(rules: Rules, record: bytes) -> bool:
    try:
        rules.status(42, record)
    except MalformedRecord:
        return True
    return False


def check_vectors(rules: Rules, vectors: dict) -> int:
    agree("the groups of vectors", GROUPS, sorted, vectors)
    for vector in vectors["without_record"]:
        expected = membership(vector)
        agree(("without_record", vector), expected, rules.status, expected.user_id, None)
    for vector in vectors["serde"]:
        expected, record = membership(vector["membership"]), bytes.fromhex(vector["bytes"])
        user_id = expected.user_id
        agree(("serialize", vector), record, rules.serialize, expected)
        agree(("deserialize", vector), expected, rules.deserialize, user_id, record)
        agree(("status", vector), expected, rules.status, user_id, record)
    for vector in vectors["leave"]:
        current, now = membership(vector["current"]), int(vector["now"])
        agree(("leave", vector), membership(vector["result"]), rules.leave, current, now)
    for vector in vectors["rejoin"]:
        current = membership(vector["current"])
        agree(("rejoin", vector), membership(vector["result"]), rules.rejoin, current)
    for vector in vectors["signal"]:
        current = membership(vector["current"])
        agree(("signal", vector), frozenset(vector["fan_out"]), rules.signal, current)
    for vector in vectors["malformed"]:
        record = bytes.fromhex(vector)
        agree(("malformed, deserialize", vector), None, rules.deserialize, 42, record)
        agree(("malformed, status", vector), True, is_malformed, rules, record)
    check_restore(rules, vectors)
    return sum(map(len, vectors.values()))


def check_restore(rules: Rules, vectors: dict) -> None:
    """All records in one call, the malformed ones between the others."""
    good = []
    for vector in vectors["serde"]:
        expected = membership(vector["membership"])
        fan_out = BOTH_WAYS if expected.status == "active" else frozenset()
        good.append((bytes.fromhex(vector["bytes"]), Restored(expected, fan_out)))
    malformed = [(bytes.fromhex(vector), None) for vector in vectors["malformed"]]
    entries = list(chain.from_iterable(zip(malformed, good)))
    users = [entry.membership.user_id if entry else 42 for _, entry in entries]
    lengths = [len(record) for record, _ in entries]
    records = b"".join(record for record, _ in entries)
    expected = [entry for _, entry in entries]
    agree("restore", expected, rules.restore, users, lengths, records)

    # One byte short: the last record, which is a good one, is cut off.
    expected[-1] = None
    agree("restore, one byte short", expected, rules.restore, users, lengths, records[:-1])


if __name__ == "__main__":
    rules = Rules(sys.argv[1])
    check_module(rules)
    with open(sys.argv[2], encoding="utf-8") as file:
        print(f"python: {check_vectors(rules, json.load(file))} vectors agree")
