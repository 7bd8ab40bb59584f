// A session with a community layer: a user signals, leaves, and comes back.

import * as layer from "tidegate:community/community-layer@0.1.0";

/** Throwing a string is how `run` returns an error. */
export function run(args) {
  if (args.length !== 1) {
    throw `1 user id expected, ${args.length} found`;
  }
  const user = userId(args[0]);
  try {
    return session(user);
  } catch (error) {
    // What the layer throws holds one of its cases, such as
    // { tag: "access-denied", val: "…" }.
    if (error?.payload?.tag) {
      throw `${error.payload.tag}: ${error.payload.val}`;
    }
    throw error;
  }
}

function session(user) {
  const lines = [signal(user), status(layer.status(user))];

  const left = layer.leave(user);
  if (left.leftAtNs === undefined) {
    throw "the leave has no instant";
  }
  lines.push(`leave: ${left.status}`, signal(user));

  const membership = layer.status(user);
  if (membership.leftAtNs !== left.leftAtNs) {
    throw "status has another instant than the leave";
  }
  lines.push(status(membership));

  const back = layer.rejoin(user);
  if (back.leftAtNs !== left.leftAtNs) {
    throw "rejoin has another instant than the leave";
  }
  lines.push(`rejoin: ${back.status}`, signal(user));

  const history = layer.history(user);
  const leaves = history.filter((entry) => entry.to === "left");
  if (leaves.at(-1)?.atNs !== left.leftAtNs) {
    throw "history has another instant than the leave";
  }
  lines.push(`history: ${history.map((entry) => entry.to).join(", ")}`);

  return lines.join("\n");
}

function signal(user) {
  const like = { itemId: 7n, kind: "like", weight: 1.5 };
  const { cohorts, communities, gated } = layer.signal(user, like);
  return `signal: cohorts ${cohorts}, communities ${communities}, gated ${gated ? "yes" : "no"}`;
}

function status({ status, leftAtNs }) {
  if (status === "left") {
    return "status: left";
  }
  return leftAtNs === undefined
    ? "status: active, never left"
    : "status: active, has left before";
}

/** Decimal digits and nothing else. The bindings would take 2n ** 64n for 0n. */
function userId(text) {
  if (!/^[0-9]+$/.test(text) || BigInt(text) >= 2n ** 64n) {
    throw `not a user id: "${text}"`;
  }
  return BigInt(text);
}
