/**
 * The component of rules as a JavaScript class, for Node and for browsers.
 *
 * This module knows how the transpiled component is called: which numbers it may be
 * given, how its values look, and what happens to an instance whose call failed. It
 * loads nothing itself: `instantiate` comes from `jco transpile --instantiation sync`,
 * and `core` is the compiled `membership.core.wasm` beside it.
 *
 * A membership is `{ userId, status, leftAtNs }` with BigInts, `status` either
 * "active" or "left", and `leftAtNs` undefined for a user who never left.
 */

export const U64_MAX = 2n ** 64n - 1n;

/** The stored bytes are no record; nothing of this user may be let through. */
export class MalformedRecord extends Error {}

/** The value, if it is a BigInt that fits; the binding would wrap it. */
export function u64(what, value) {
  if (typeof value !== "bigint") {
    throw new TypeError(`${what} is no BigInt: ${value}`);
  }
  if (value < 0n || value > U64_MAX) {
    throw new RangeError(`${what} is not from 0 to ${U64_MAX}: ${value}`);
  }
  return value;
}

/** The number that a text in decimal digits stands for, if it fits. */
export function u64FromText(what, text) {
  if (!/^[0-9]+$/.test(text)) {
    throw new TypeError(`${what} is no whole number in digits: ${JSON.stringify(text)}`);
  }
  return u64(what, BigInt(text));
}

export class Rules {
  #instantiate;
  #functions;

  constructor(instantiate, core) {
    this.#instantiate = () => instantiate(() => core, {}).membership;
  }

  leave(current, now) {
    return this.#call("leave", checked(current), u64("the instant", now));
  }

  rejoin(current) {
    return this.#call("rejoin", checked(current));
  }

  /** `stored` is a Uint8Array, or undefined for a user without a record. */
  status(userId, stored) {
    return this.#call("status", u64("the user id", userId), stored);
  }

  /** `{ cohortAttribution, communityForwarding }`, each true or false. */
  signal(current) {
    return this.#call("signal", checked(current));
  }

  serialize(membership) {
    return this.#call("serializeMembership", checked(membership));
  }

  /** The membership, or undefined if the bytes are malformed. */
  deserialize(userId, record) {
    return this.#call("deserializeMembership", u64("the user id", userId), record);
  }

  /** One `{ membership, fanOut }` for each user, or undefined where malformed. */
  restore(users, lengths, records) {
    const checkedUsers = users.map((user) => u64("the user id", user));
    const checkedLengths = lengths.map((length) => {
      if (!Number.isInteger(length) || length < 0 || length >= 2 ** 32) {
        throw new RangeError(`the length is no whole number below 2^32: ${length}`);
      }
      return length;
    });
    return this.#call(
      "restore",
      BigUint64Array.from(checkedUsers),
      Uint32Array.from(checkedLengths),
      records,
    );
  }

  #call(name, ...args) {
    this.#functions ??= this.#instantiate();
    try {
      return this.#functions[name](...args);
    } catch (error) {
      // An `err` of the contract carries a payload and is an answer like any other.
      // After anything else the instance is in no known state: the next call gets a
      // new one.
      if (error.payload !== undefined) throw new MalformedRecord(error.payload.reason);
      this.#functions = undefined;
      throw error;
    }
  }
}

function checked({ userId, status, leftAtNs }) {
  return {
    userId: u64("the user id", userId),
    status,
    leftAtNs: leftAtNs === undefined ? undefined : u64("the instant", leftAtNs),
  };
}
