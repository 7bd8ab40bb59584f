/**
 * What membership.mjs promises beyond the contract: it passes on no number that does
 * not fit, and a call that failed spoils no later one.
 */

import { MalformedRecord, Rules, u64, u64FromText } from "./membership.mjs";

function assert(condition, message) {
  if (!condition) throw new Error(message);
}

function refusal(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

function refused(call) {
  const error = refusal(call);
  return error instanceof TypeError || error instanceof RangeError;
}

export function checkModule(instantiate, core) {
  let instances = 0;
  const counted = (...args) => {
    instances += 1;
    return instantiate(...args);
  };
  const rules = new Rules(counted, core);
  checkNumbers(rules);
  checkFailure(rules, () => instances);
}

function checkNumbers(rules) {
  for (const fits of [1n, 2n ** 53n + 1n, 2n ** 64n - 1n]) {
    assert(u64("a number", fits) === fits, `${fits} is changed`);
    assert(u64FromText("a number", `${fits}`) === fits, `"${fits}" is changed`);
    const left = rules.leave({ userId: fits, status: "active" }, fits);
    assert(left.userId === fits && left.leftAtNs === fits, `leave changes ${fits}`);
  }
  assert(u64FromText("a number", "0") === 0n, "0 is changed");

  for (const bad of ["18446744073709551616", "-1", "-0", "1e3", "1.0", "0x10", " 1", "", "true"]) {
    assert(refused(() => u64FromText("a number", bad)), `"${bad}" is let through`);
  }
  const active = { userId: 42n, status: "active" };
  for (const bad of [2n ** 64n, -1n, 1, 2 ** 53, 1.5, "1", true, null, undefined]) {
    const calls = {
      leaveUser: () => rules.leave({ userId: bad, status: "active" }, 1n),
      leaveNow: () => rules.leave(active, bad),
      status: () => rules.status(bad, undefined),
      deserialize: () => rules.deserialize(bad, new Uint8Array()),
      restore: () => rules.restore([bad], [0], new Uint8Array()),
    };
    if (bad !== undefined) {
      // No boundary is a boundary that fits.
      calls.rejoin = () => rules.rejoin({ userId: 42n, status: "left", leftAtNs: bad });
    }
    for (const [name, call] of Object.entries(calls)) {
      assert(refused(call), `${name} lets ${bad} through`);
    }
  }
  assert(refused(() => rules.restore([42n], [2 ** 32], new Uint8Array())), "2^32 is a length");
}

function checkFailure(rules, instances) {
  const active = { userId: 42n, status: "active" };
  const before = instances();
  const malformed = refusal(() => rules.status(42n, new Uint8Array(3)));
  assert(malformed instanceof MalformedRecord, `a malformed record gives ${malformed}`);
  rules.rejoin(active);
  assert(instances() === before, "an answer of the contract costs an instance");

  const failure = refusal(() => rules.rejoin({ userId: 42n, status: "gone" }));
  assert(failure && !(failure instanceof MalformedRecord), "rejoin takes a status that is none");
  assert(rules.rejoin(active).status === "active", "a failed call spoils the next");
  assert(instances() === before + 1, "the instance of a failed call is used again");
}
