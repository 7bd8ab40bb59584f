"""The component of rules through the wasmtime CLI: a process for each call.

Arguments and results are text in WAVE, the notation of `wasmtime run --invoke`.
This module writes that text; the functions return what the CLI printed. Every call
has an instance of its own, so one that fails spoils no other.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Membership:
    user_id: int
    status: str  # "active" or "left"
    left_at_ns: int | None = None


class CallFailed(RuntimeError):
    """The CLI's complaint about a call that it did not make or that trapped."""


def unsigned(what: str, value: object, bits: int = 64) -> str:
    """The number as WAVE, if it is whole and fits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is no whole number: {value!r}")
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what} does not fit {bits} bits without a sign: {value}")
    return str(value)


def option(text: str | None) -> str:
    return "none" if text is None else f"some({text})"


def octets(record: bytes) -> str:
    return f"[{', '.join(map(str, record))}]"


def flags(names: Iterable[str]) -> str:
    return f"{{{', '.join(sorted(names))}}}"


def membership(value: Membership) -> str:
    """A record as the CLI prints it, which leaves an absent option out."""
    if not value.status.isidentifier():
        raise ValueError(f"the status is no name: {value.status!r}")
    fields = [f"user-id: {unsigned('the user id', value.user_id)}", f"status: {value.status}"]
    if value.left_at_ns is not None:
        fields.append(f"left-at-ns: some({unsigned('the instant', value.left_at_ns)})")
    return f"{{{', '.join(fields)}}}"


class Rules:
    def __init__(self, component: str) -> None:
        self._component = component

    def leave(self, current: Membership, now: int) -> str:
        return self._invoke("leave", membership(current), unsigned("the instant", now))

    def rejoin(self, current: Membership) -> str:
        return self._invoke("rejoin", membership(current))

    def status(self, user_id: int, stored: bytes | None) -> str:
        stored = None if stored is None else octets(stored)
        return self._invoke("status", unsigned("the user id", user_id), option(stored))

    def signal(self, current: Membership) -> str:
        return self._invoke("signal", membership(current))

    def serialize(self, value: Membership) -> str:
        return self._invoke("serialize-membership", membership(value))

    def deserialize(self, user_id: int, record: bytes) -> str:
        user_id = unsigned("the user id", user_id)
        return self._invoke("deserialize-membership", user_id, octets(record))

    def restore(self, users: list[int], lengths: list[int], records: bytes) -> str:
        users = [unsigned("the user id", user) for user in users]
        lengths = [unsigned("the length", length, bits=32) for length in lengths]
        return self._invoke(
            "restore", f"[{', '.join(users)}]", f"[{', '.join(lengths)}]", octets(records)
        )

    def _invoke(self, function: str, *arguments: str) -> str:
        call = f"{function}({', '.join(arguments)})"
        done = subprocess.run(
            ["wasmtime", "run", "--invoke", call, self._component],
            capture_output=True,
            encoding="utf-8",
        )
        if done.returncode != 0:
            raise CallFailed(done.stderr.partition("Stack backtrace")[0].strip())
        return done.stdout.strip()
