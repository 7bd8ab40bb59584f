/**
 * The page: reads the fields, calls the component, and shows what it said.
 *
 * The fields hold the membership. A leave or a rejoin puts its result back into them,
 * so that the next press goes on from there.
 */

import { checkModule } from "./check_module.mjs";
import { instantiate } from "./component/membership.js";
import { Rules, U64_MAX, u64FromText } from "./membership.mjs";
import { checkVectors } from "./vectors.mjs";

const element = (id) => document.getElementById(id);

/** Shows the sentence beside the field, or takes it away if there is none. */
function complain(id, sentence) {
  element(`${id}-error`).textContent = sentence;
  element(id).setAttribute("aria-invalid", sentence === "" ? "false" : "true");
}

/** Why the text is no number that fits, as a sentence for the person who typed it. */
function problemWith(name, text) {
  const range = `Enter a whole number from 0 to ${U64_MAX}.`;
  if (text === "") return `The ${name} is missing. ${range}`;
  if (!/^-?[0-9]+$/.test(text)) return `“${text}” is not written in digits alone. ${range}`;
  if (text.startsWith("-")) return `The ${name} cannot be below 0. ${range}`;
  return `The ${name} does not fit in 64 bits. ${range}`;
}

/** The number in a field, or undefined after the field has been given its complaint. */
function numberIn(id, name) {
  const text = element(id).value.trim();
  try {
    const number = u64FromText(`the ${name}`, text);
    complain(id, "");
    return number;
  } catch {
    complain(id, problemWith(name, text));
    return undefined;
  }
}

/** What the fields say, as far as `verb` needs it; undefined if a field is refused. */
function read(verb) {
  const userId = numberIn("user-id", "user id");
  const neverLeft = element("left-at").value.trim() === "";
  if (neverLeft) complain("left-at", "");
  if (verb !== "leave") complain("now", "");
  const leftAtNs = neverLeft ? undefined : numberIn("left-at", "instant");
  const now = verb === "leave" ? numberIn("now", "time") : undefined;

  const refused = document.querySelector("input[aria-invalid=true]");
  if (refused !== null) {
    refused.focus();
    return undefined;
  }
  const status = document.querySelector("input[name=status]:checked").value;
  return { current: { userId, status, leftAtNs }, now };
}

function fill({ userId, status, leftAtNs }) {
  element("user-id").value = `${userId}`;
  document.querySelector(`input[name=status][value=${status}]`).checked = true;
  element("left-at").value = leftAtNs === undefined ? "" : `${leftAtNs}`;
}

/** The instant to the second; a Date is exact to the millisecond at best. */
function dateOf(ns) {
  return `${new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function show({ userId, status, leftAtNs }, record, fanOut) {
  element("shown-user").textContent = `${userId}`;
  element("shown-status").textContent = status;
  element("shown-left-at").textContent = leftAtNs === undefined ? "never" : `${leftAtNs}`;
  element("shown-date").textContent = leftAtNs === undefined ? "" : dateOf(leftAtNs);

  const cells = Array.from(record, (octet) => {
    const cell = document.createElement("span");
    cell.textContent = octet.toString(16).padStart(2, "0");
    return cell;
  });
  element("record").replaceChildren(...cells.flatMap((cell) => [cell, " "]));

  element("fan-out-waiting").hidden = fanOut !== undefined;
  element("fan-out").hidden = fanOut === undefined;
  if (fanOut !== undefined) {
    showWay("cohort-attribution", fanOut.cohortAttribution);
    showWay("community-forwarding", fanOut.communityForwarding);
  }
  element("waiting").hidden = true;
  element("answer").hidden = false;
}

function showWay(id, isOpen) {
  element(id).classList.toggle("open", isOpen);
  element(id).querySelector("strong").textContent = isOpen ? "open" : "held back";
}

function press(rules, verb) {
  const fields = read(verb);
  if (fields === undefined) return;
  const { current, now } = fields;
  let membership = current;
  let fanOut;
  if (verb === "leave") membership = rules.leave(current, now);
  if (verb === "rejoin") membership = rules.rejoin(current);
  if (verb === "signal") fanOut = rules.signal(current);
  fill(membership);
  show(membership, rules.serialize(membership), fanOut);
}

async function runVectors(core) {
  element("checked").textContent = "";
  try {
    const vectors = await (await fetch("membership.json")).json();
    checkModule(instantiate, core);
    const count = checkVectors(new Rules(instantiate, core), vectors);
    element("checked").textContent = `${count} vectors agree`;
  } catch (error) {
    element("checked").textContent = error.message;
  }
}

/** Says what went wrong in place of failing silently. */
function report(error) {
  element("problem").textContent = `The component could not be used: ${error.message}`;
  element("problem").hidden = false;
}

async function start() {
  const core = await WebAssembly.compileStreaming(fetch("component/membership.core.wasm"));
  const rules = new Rules(instantiate, core);
  element("form").addEventListener("submit", (event) => {
    event.preventDefault();
    element("problem").hidden = true;
    try {
      press(rules, event.submitter.value);
    } catch (error) {
      report(error);
    }
  });
  element("present").addEventListener("click", () => {
    element("now").value = `${BigInt(Date.now()) * 1_000_000n}`;
    complain("now", "");
  });
  element("check").addEventListener("click", () => runVectors(core));
  document.querySelectorAll("button:disabled").forEach((button) => {
    button.disabled = false;
  });
}

start().catch(report);
