"""The component of rules as a Python class.

This module knows how the component is called: how its values look in Python,
which numbers it may be given, and what happens to an instance whose call failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record

INTERFACE = "tidegate:community/membership@0.1.0"
FUNCTIONS = (
    "leave",
    "rejoin",
    "status",
    "signal",
    "serialize-membership",
    "deserialize-membership",
    "restore",
)


@dataclass(frozen=True)
class Membership:
    user_id: int
    status: str  # "active" or "left"
    left_at_ns: int | None = None


@dataclass(frozen=True)
class Restored:
    membership: Membership
    fan_out: frozenset[str]


class MalformedRecord(ValueError):
    """The stored bytes are no record; nothing of this user may be let through."""


def unsigned(what: str, value: object, bits: int = 64) -> int:
    """The value, if it is a whole number that fits; the binding would wrap it."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is no whole number: {value!r}")
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what} does not fit {bits} bits without a sign: {value}")
    return value


class Rules:
    """The functions of the component, with the arguments of the contract.

    An instance lives until a call fails. What a failed call left behind in it is
    not known, so the next call gets a new one.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._engine = Engine()
        self._component = Component.from_file(self._engine, path)
        self._linker = Linker(self._engine)  # empty: the component imports nothing
        self._interface = self._component.get_export_index(INTERFACE)
        if self._interface is None:
            raise ValueError(f"{path} does not export {INTERFACE}")
        self._instance: tuple[Store, dict] | None = None

    def leave(self, current: Membership, now: int) -> Membership:
        now = unsigned("the instant", now)
        return _membership(self._call("leave", _record(current), now))

    def rejoin(self, current: Membership) -> Membership:
        return _membership(self._call("rejoin", _record(current)))

    def status(self, user_id: int, stored: bytes | None) -> Membership:
        result = self._call("status", unsigned("the user id", user_id), stored)
        if result.tag == "err":
            raise MalformedRecord(result.payload.reason)
        return _membership(result.payload)

    def signal(self, current: Membership) -> frozenset[str]:
        return frozenset(self._call("signal", _record(current)))

    def serialize(self, membership: Membership) -> bytes:
        return self._call("serialize-membership", _record(membership))

    def deserialize(self, user_id: int, record: bytes) -> Membership | None:
        user_id = unsigned("the user id", user_id)
        membership = self._call("deserialize-membership", user_id, record)
        return None if membership is None else _membership(membership)

    def restore(
        self, users: list[int], lengths: list[int], records: bytes
    ) -> list[Restored | None]:
        users = [unsigned("the user id", user) for user in users]
        lengths = [unsigned("the length", length, bits=32) for length in lengths]
        return [
            entry
            and Restored(_membership(entry.membership), frozenset(getattr(entry, "fan-out")))
            for entry in self._call("restore", users, lengths, records)
        ]

    def _call(self, name: str, *arguments):
        if self._instance is None:
            self._instance = self._instantiate()
        store, functions = self._instance
        try:
            return functions[name](store, *arguments)
        except Exception:
            self._instance = None
            raise

    def _instantiate(self) -> tuple[Store, dict]:
        store = Store(self._engine)
        instance = self._linker.instantiate(store, self._component)
        functions = {}
        for name in FUNCTIONS:
            index = instance.get_export_index(store, name, self._interface)
            functions[name] = index and instance.get_func(store, index)
            if functions[name] is None:
                raise ValueError(f"{INTERFACE} has no function {name}")
        return store, functions


def _record(membership: Membership) -> Record:
    """The binding's own form: an object with the contract's names as attributes."""
    record = Record()
    left_at_ns = membership.left_at_ns
    if left_at_ns is not None:
        left_at_ns = unsigned("the instant", left_at_ns)
    setattr(record, "user-id", unsigned("the user id", membership.user_id))
    setattr(record, "status", membership.status)
    setattr(record, "left-at-ns", left_at_ns)
    return record


def _membership(record: Record) -> Membership:
    return Membership(
        getattr(record, "user-id"), record.status, getattr(record, "left-at-ns")
    )
