/** One user leaves, and the example prints what a platform would store and obey. */

import { core, instantiate } from "./load.mjs";
import { Rules } from "./membership.mjs";

const rules = new Rules(instantiate, core);
const active = { userId: 2n ** 64n - 1n, status: "active" };
const left = rules.leave(active, 2n ** 53n + 1n);
const record = Buffer.from(rules.serialize(left)).toString("hex");
const open = Object.entries(rules.signal(left)).filter(([, isOpen]) => isOpen);
const fanOut = open.map(([way]) => way).join(", ") || "none";
console.log(
  `user ${left.userId} ${left.status} at ${left.leftAtNs}; record ${record}; fan-out ${fanOut}`,
);
