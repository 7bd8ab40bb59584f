/**
 * Drives the page in Chromium, as a person would, and runs the golden vectors in it:
 * check_page.mjs FOLDER. The browser is $CHROMIUM, or else Debian's.
 */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";

import { chromium } from "playwright-core";

const TYPES = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

async function serve(folder) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const path = join(folder, normalize(pathname === "/" ? "/index.html" : pathname));
    try {
      const content = await readFile(path);
      response.writeHead(200, { "content-type": TYPES[extname(path)] }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** The page in the words of a person who uses it. */
class Person {
  constructor(page) {
    this.page = page;
  }

  /** Fills the fields that are named and leaves the others as they are. */
  async set({ userId, status, leftAt, now }) {
    const fill = async (label, text) => {
      if (text !== undefined) await this.page.getByLabel(label).fill(text);
    };
    await fill("User id", userId);
    await fill("Left at, in nanoseconds", leftAt);
    await fill("The time of the leave", now);
    if (status !== undefined) await this.page.getByRole("radio", { name: status }).check();
  }

  async press(name) {
    await this.page.getByRole("button", { name, exact: true }).click();
  }

  async sees(id, text) {
    const found = (await this.page.locator(`#${id}`).innerText()).replace(/\s+/g, " ").trim();
    assert.equal(found, text, id);
  }
}

async function leavesAndRejoins(person) {
  await person.set({ userId: "42", status: "active", leftAt: "", now: "1700000000000000000" });
  await person.press("Leave");
  await person.sees("shown-user", "42");
  await person.sees("shown-status", "left");
  await person.sees("shown-left-at", "1700000000000000000");
  await person.sees("shown-date", "2023-11-14 22:13:20 UTC");
  await person.sees("record", "01 00 00 2a 36 fe 9c 97 17");

  await person.press("Signal");
  await person.sees("cohort-attribution", "Cohorts held back");
  await person.sees("community-forwarding", "Communities held back");

  await person.press("Rejoin");
  await person.sees("shown-status", "active");
  await person.sees("shown-left-at", "1700000000000000000");
  await person.sees("record", "00 00 00 2a 36 fe 9c 97 17");
  await person.sees("fan-out-waiting", "Press Signal to ask.");

  await person.press("Signal");
  await person.sees("cohort-attribution", "Cohorts open");
  await person.sees("community-forwarding", "Communities open");
}

async function keepsEveryDigit(person) {
  for (const [userId, record] of [
    ["9007199254740993", "01 01 00 00 00 00 00 20 00"],
    ["18446744073709551615", "01 ff ff ff ff ff ff ff ff"],
  ]) {
    await person.set({ userId, status: "active", leftAt: "", now: userId });
    await person.press("Leave");
    await person.sees("shown-user", userId);
    await person.sees("shown-left-at", userId);
    await person.sees("record", record);
  }
}

async function refusesWhatDoesNotFit(person) {
  const range = "Enter a whole number from 0 to 18446744073709551615.";
  const fits = { userId: "42", status: "left", leftAt: "1", now: "1" };
  await person.set(fits);
  await person.press("Leave");
  let said = "left";
  for (const [bad, problem] of [
    ["18446744073709551616", (name) => `The ${name} does not fit in 64 bits.`],
    ["-1", (name) => `The ${name} cannot be below 0.`],
    ["1e3", () => "“1e3” is not written in digits alone."],
    ["1.0", () => "“1.0” is not written in digits alone."],
    ["", (name) => `The ${name} is missing.`],
  ]) {
    for (const [field, id, name] of [
      ["userId", "user-id", "user id"],
      ["leftAt", "left-at", "instant"],
      ["now", "now", "time"],
    ]) {
      if (field === "leftAt" && bad === "") continue; // A user who never left.
      await person.set({ [field]: bad });
      await person.press("Leave");
      await person.sees(`${id}-error`, `${problem(name)} ${range}`);
      const input = person.page.locator(`#${id}`);
      assert.equal(await input.getAttribute("aria-invalid"), "true", `${id} ${bad}`);
      assert.equal(await input.evaluate((node) => node === document.activeElement), true);
      // What the component said last is still there: it was not asked again.
      await person.sees("shown-status", said);

      // A rejoin does not need the time, so a bad one does not stop it.
      if (field !== "now") await person.set({ [field]: fits[field] });
      await person.press("Rejoin");
      await person.sees("shown-status", "active");
      await person.sees(`${id}-error`, "");
      said = "active";
      await person.set({ now: fits.now });
    }
  }
}

async function runsTheVectors(person) {
  await person.press("Run the golden vectors");
  const checked = person.page.locator("#checked");
  await checked.filter({ hasText: /./ }).waitFor();
  const outcome = await checked.innerText();
  assert(/^\d+ vectors agree$/.test(outcome), outcome);
  return outcome;
}

const server = await serve(process.argv[2]);
const browser = await launch();
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(10_000);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const person = new Person(page);
  await leavesAndRejoins(person);
  await keepsEveryDigit(person);
  await refusesWhatDoesNotFit(person);
  const outcome = await runsTheVectors(person);
  assert.deepEqual(complaints, []);
  console.log(`browser: ${outcome}`);
} catch (error) {
  console.error(`browser: ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  server.close();
}
