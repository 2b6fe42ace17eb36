// The real clients, driven over standard input: a line of JSON in, one out.
//
// While a client waits for its server the line out is {"asks": ...}, and the next line in is the answer.

import { createInterface } from "node:readline";
import * as agui from "./agui.mjs";
import * as tanstack from "./tanstack.mjs";

const known = { ...agui, ...tanstack };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const warnings = [];
for (const level of ["log", "info", "warn", "error", "debug"]) {
  console[level] = (...words) => warnings.push(words.map(String).join(" "));
}

async function heard() {
  const { value, done } = await lines.next();
  return done ? undefined : JSON.parse(value);
}

function say(what) {
  process.stdout.write(JSON.stringify(what) + "\n");
}

async function ask(question) {
  say({ asks: question });
  return heard();
}

for (let asked = await heard(); asked !== undefined; asked = await heard()) {
  warnings.length = 0;
  try {
    const answer = await known[asked.do](asked, ask);
    say({ answer, warnings });
  } catch (error) {
    say({ failed: String(error?.stack ?? error), warnings });
  }
}
