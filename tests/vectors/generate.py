"""Prints membership.json: what the rules of the contract give for chosen inputs.

Written from the text of the contract alone, in another language than the rules, so
that agreement means something. Numbers of 64 bits are decimal strings, bytes are
hexadecimal, so that no reader of JSON rounds them.
"""

import json
import struct

USERS = [0, 1, 42, 2**53 + 1, 2**63, 2**64 - 1]
INSTANTS = [None, 1, 255, 256, 1_700_000_000_000_000_000, 2**53 + 1, 2**63, 2**64 - 1]
STATUSES = ["active", "left"]


def membership(user, status, left_at):
    # 0 is no instant.
    left_at = left_at or None
    return {
        "user_id": str(user),
        "status": status,
        "left_at_ns": None if left_at is None else str(left_at),
    }


def record(status, left_at):
    return struct.pack("<BQ", STATUSES.index(status), left_at or 0).hex()


def serde():
    # Every user with every instant would say the same many times over.
    for number, left_at in enumerate(INSTANTS):
        for status in STATUSES:
            user = USERS[number % len(USERS)]
            yield {"membership": membership(user, status, left_at), "bytes": record(status, left_at)}


def leave():
    for user in (42, 2**64 - 1):
        for status in STATUSES:
            for before in INSTANTS:
                for now in (0, 1, 1_700_000_000_000_000_001, 2**53 + 1, 2**64 - 1):
                    boundary = max(now, before or 0)
                    yield {
                        "current": membership(user, status, before),
                        "now": str(now),
                        "result": membership(user, "left", boundary),
                    }


def rejoin():
    for user in (0, 2**64 - 1):
        for status in STATUSES:
            for before in INSTANTS:
                yield {
                    "current": membership(user, status, before),
                    "result": membership(user, "active", before),
                }


def signal():
    for status in STATUSES:
        for before in INSTANTS:
            open_ways = ["cohort-attribution", "community-forwarding"] if status == "active" else []
            yield {"current": membership(7, status, before), "fan_out": open_ways}


def malformed():
    yield ""
    for length in (1, 8, 10, 18, 64, 1024):
        yield "00" * length
        yield "01" + "ff" * (length - 1)
    for status in (2, 3, 127, 128, 255):
        yield struct.pack("<BQ", status, 0).hex()
        yield struct.pack("<BQ", status, 1_700_000_000_000_000_000).hex()


print(
    json.dumps(
        {
            "without_record": [membership(user, "active", None) for user in USERS],
            "serde": list(serde()),
            "leave": list(leave()),
            "rejoin": list(rejoin()),
            "signal": list(signal()),
            "malformed": list(malformed()),
        },
        indent=1,
    )
)
