"""A session with a community layer: a user signals, leaves, and comes back."""

import re

import wit_world
from componentize_py_types import Err
from wit_world.imports import community_layer as layer
from wit_world.imports.types import CommunityMembership, MembershipStatus

CASES = {
    layer.Error_NotDurable: "not-durable",
    layer.Error_MalformedRecord: "malformed-record",
    layer.Error_InvalidSignal: "invalid-signal",
    layer.Error_AccessDenied: "access-denied",
    layer.Error_Storage: "storage",
    layer.Error_Component: "component",
}

WORDS = {MembershipStatus.ACTIVE: "active", MembershipStatus.LEFT: "left"}


class WitWorld(wit_world.WitWorld):
    def run(self, args: list[str]) -> str:
        if len(args) != 1:
            raise Err(f"1 user id expected, {len(args)} found")
        user = user_id(args[0])
        try:
            return session(user)
        except Err as error:
            # What the layer raises holds one of its cases, what this module
            # raises a text.
            if type(error.value) in CASES:
                raise Err(f"{CASES[type(error.value)]}: {error.value.value}") from error
            raise


def session(user: int) -> str:
    lines = [signal(user), status(layer.status(user))]

    left = layer.leave(user)
    if left.left_at_ns is None:
        raise Err("the leave has no instant")
    lines += [f"leave: {WORDS[left.status]}", signal(user)]

    membership = layer.status(user)
    if membership.left_at_ns != left.left_at_ns:
        raise Err("status has another instant than the leave")
    lines.append(status(membership))

    back = layer.rejoin(user)
    if back.left_at_ns != left.left_at_ns:
        raise Err("rejoin has another instant than the leave")
    lines += [f"rejoin: {WORDS[back.status]}", signal(user)]

    history = layer.history(user)
    leaves = [entry.at_ns for entry in history if entry.to == MembershipStatus.LEFT]
    if leaves[-1:] != [left.left_at_ns]:
        raise Err("history has another instant than the leave")
    lines.append("history: " + ", ".join(WORDS[entry.to] for entry in history))

    return "\n".join(lines)


def signal(user: int) -> str:
    like = layer.EngagementSignal(item_id=7, kind="like", weight=1.5)
    receipt = layer.signal(user, like)
    gated = "yes" if receipt.gated else "no"
    return (
        f"signal: cohorts {receipt.cohorts}, "
        f"communities {receipt.communities}, gated {gated}"
    )


def status(membership: CommunityMembership) -> str:
    if membership.status == MembershipStatus.LEFT:
        return "status: left"
    if membership.left_at_ns is None:
        return "status: active, never left"
    return "status: active, has left before"


def user_id(text: str) -> int:
    """Decimal digits and nothing else. The bindings would take 2^64 for 0."""
    # Without leading zeros, because `int` refuses texts of thousands of digits.
    digits = re.fullmatch("0*([0-9]{1,20})", text)
    if not digits or int(digits[1]) >= 2**64:
        raise Err(f'not a user id: "{text}"')
    return int(digits[1])
