"""One user leaves, and the example prints what a platform would store and obey."""

import sys

from membership import Membership, Rules

rules = Rules(sys.argv[1])
left = rules.leave(Membership(2**64 - 1, "active"), now=2**53 + 1)
record = rules.serialize(left).hex()
fan_out = ", ".join(sorted(rules.signal(left))) or "none"
print(f"user {left.user_id} {left.status} at {left.left_at_ns}; record {record}; fan-out {fan_out}")
