/** Runs the golden vectors, under Node and in browsers. */

import { MalformedRecord } from "./membership.mjs";

const GROUPS = ["leave", "malformed", "rejoin", "serde", "signal", "without_record"];
const BOTH_WAYS = { cohortAttribution: true, communityForwarding: true };
const NO_WAY = { cohortAttribution: false, communityForwarding: false };

/** How many vectors agree; throws an error that names the first that does not. */
export function checkVectors(rules, vectors) {
  agree("vectors", "groups", GROUPS, () => Object.keys(vectors).sort());
  for (const vector of vectors.without_record) {
    const expected = membership(vector);
    agree("without_record", vector, expected, () => rules.status(expected.userId, undefined));
  }
  for (const vector of vectors.serde) {
    const [expected, record] = [membership(vector.membership), bytes(vector.bytes)];
    agree("serialize", vector, record, () => rules.serialize(expected));
    agree("deserialize", vector, expected, () => rules.deserialize(expected.userId, record));
    agree("status", vector, expected, () => rules.status(expected.userId, record));
  }
  for (const vector of vectors.leave) {
    const [current, now] = [membership(vector.current), BigInt(vector.now)];
    agree("leave", vector, membership(vector.result), () => rules.leave(current, now));
  }
  for (const vector of vectors.rejoin) {
    const current = membership(vector.current);
    agree("rejoin", vector, membership(vector.result), () => rules.rejoin(current));
  }
  for (const vector of vectors.signal) {
    const expected = {
      cohortAttribution: vector.fan_out.includes("cohort-attribution"),
      communityForwarding: vector.fan_out.includes("community-forwarding"),
    };
    agree("signal", vector, expected, () => rules.signal(membership(vector.current)));
  }
  for (const vector of vectors.malformed) {
    const record = bytes(vector);
    agree("malformed, deserialize", vector, undefined, () => rules.deserialize(42n, record));
    agree("malformed, status", vector, true, () => isMalformed(rules, record));
  }
  checkRestore(rules, vectors);
  return Object.values(vectors).reduce((count, group) => count + group.length, 0);
}

/** All records in one call, the malformed ones between the others. */
function checkRestore(rules, vectors) {
  const pairs = vectors.serde.slice(0, vectors.malformed.length);
  const entries = pairs.flatMap((vector, index) => {
    const good = membership(vector.membership);
    const fanOut = good.status === "active" ? BOTH_WAYS : NO_WAY;
    return [
      { user: 42n, record: bytes(vectors.malformed[index]), expected: undefined },
      { user: good.userId, record: bytes(vector.bytes), expected: { membership: good, fanOut } },
    ];
  });
  const users = entries.map(({ user }) => user);
  const lengths = entries.map(({ record }) => record.length);
  const records = Uint8Array.from(entries.flatMap(({ record }) => [...record]));
  const expected = entries.map((entry) => entry.expected);
  agree("restore", "all records", expected, () => rules.restore(users, lengths, records));

  // One byte short: the last record, which is a good one, is cut off.
  expected[expected.length - 1] = undefined;
  const short = records.subarray(0, -1);
  agree("restore", "one byte short", expected, () => rules.restore(users, lengths, short));
}

function membership({ user_id, status, left_at_ns }) {
  const leftAtNs = left_at_ns === null ? undefined : BigInt(left_at_ns);
  return { userId: BigInt(user_id), status, leftAtNs };
}

function bytes(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (octet) => parseInt(octet, 16));
}

function isMalformed(rules, record) {
  try {
    rules.status(42n, record);
  } catch (error) {
    if (error instanceof MalformedRecord) return true;
    throw error;
  }
  return false;
}

function agree(group, vector, expected, call) {
  let found;
  try {
    found = text(call());
  } catch (error) {
    found = `a failed call: ${error.message}`;
  }
  if (found !== text(expected)) {
    throw new Error(`${group} ${text(vector)}\nexpected ${text(expected)}\nfound    ${found}`);
  }
}

/** Every value as text that only an equal value has, whatever the order of fields. */
function text(value) {
  if (typeof value === "bigint") return `${value}n`;
  if (value instanceof Uint8Array) return `bytes ${value.join(" ")}`;
  if (Array.isArray(value)) return `[${value.map(text).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.keys(value).sort();
    return `{${fields.map((field) => `${field}: ${text(value[field])}`).join(", ")}}`;
  }
  return typeof value === "string" ? JSON.stringify(value) : `${value}`;
}
