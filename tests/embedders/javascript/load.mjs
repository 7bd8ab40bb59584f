/** The transpiled component of the folder `component/`, loaded under Node. */

import { readFile } from "node:fs/promises";

import { instantiate } from "./component/membership.js";

const path = new URL("component/membership.core.wasm", import.meta.url);
const core = await WebAssembly.compile(await readFile(path));

export { core, instantiate };
