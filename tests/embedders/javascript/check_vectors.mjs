/** Runs the golden vectors under Node: check_vectors.mjs VECTORS. */

import { readFile } from "node:fs/promises";

import { checkModule } from "./check_module.mjs";
import { core, instantiate } from "./load.mjs";
import { Rules } from "./membership.mjs";
import { checkVectors } from "./vectors.mjs";

const vectors = JSON.parse(await readFile(process.argv[2], "utf-8"));
try {
  checkModule(instantiate, core);
  const count = checkVectors(new Rules(instantiate, core), vectors);
  console.log(`javascript: ${count} vectors agree`);
} catch (error) {
  console.error(`javascript: ${error.message}`);
  process.exitCode = 1;
}
