"""What membership.py promises beyond the contract: it passes on no number that
does not fit, and a call that failed spoils no later one."""

import sys

from membership import Membership, Rules, unsigned


def refused(call) -> bool:
    try:
        call()
    except (TypeError, ValueError):
        return True
    return False


def check(rules: Rules) -> None:
    for fits in (0, 1, 2**53 + 1, 2**64 - 1):
        assert unsigned("a number", fits) == fits
        left = rules.leave(Membership(fits, "active"), now=fits)
        assert left == Membership(fits, "left", fits or None), left

    active = Membership(42, "active")
    for bad in (2**64, -1, 1.0, 1e3, "1", True, None):
        for name, call in {
            "leave, user": lambda: rules.leave(Membership(bad, "active"), now=1),
            "leave, now": lambda: rules.leave(active, now=bad),
            "status": lambda: rules.status(bad, None),
            "deserialize": lambda: rules.deserialize(bad, b""),
            "restore": lambda: rules.restore([bad], [0], b""),
        }.items():
            assert refused(call), f"{name} let {bad!r} through"
        if bad is not None:  # no boundary is a boundary that fits
            with_boundary = Membership(42, "left", bad)
            assert refused(lambda: rules.rejoin(with_boundary)), f"rejoin let {bad!r} through"
    assert refused(lambda: rules.restore([42], [2**32], b""))

    instance = rules._instance
    try:
        rules.rejoin(Membership(42, "gone"))
    except Exception:
        pass
    else:
        raise AssertionError("rejoin took a status that does not exist")
    assert rules.rejoin(active) == active
    assert rules._instance is not instance


if __name__ == "__main__":
    check(Rules(sys.argv[1]))
