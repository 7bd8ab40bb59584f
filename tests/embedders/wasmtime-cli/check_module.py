"""What membership.py promises beyond the contract: it passes on no number that
does not fit, and a call that failed spoils no later one."""

from membership import CallFailed, Membership, Rules, unsigned


def refused(call, error=(TypeError, ValueError)) -> bool:
    try:
        call()
    except error:
        return True
    return False


def check(rules: Rules) -> None:
    for fits in (2**53 + 1, 2**64 - 1):
        left = rules.leave(Membership(fits, "active"), now=fits)
        assert left == f"{{user-id: {fits}, status: left, left-at-ns: some({fits})}}", left
    assert unsigned("a number", 0) == "0"

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

    assert refused(lambda: rules.rejoin(Membership(42, "gone")), CallFailed)
    assert rules.rejoin(active) == "{user-id: 42, status: active}"
