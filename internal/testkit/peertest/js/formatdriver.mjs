// Runs the programs of bloom/FORMAT.md, which the test writes to format.mjs. It
// reads one JSON object from standard input. For each piece of work it prints, as
// JSON, an array of answers or the message of the error.

import { text } from "node:stream/consumers";
import { add, exists, size } from "./format.mjs";

const { url, token, work } = JSON.parse(await text(process.stdin));

async function call(command) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(command) });
  const { result, error } = await response.json();
  if (error) throw new Error(error);
  return result;
}

const programs = {
  exists: ({ key, seed }, item) => exists(call, key, item, BigInt(seed)),
  add: ({ key, n, p, seed }, item) => add(call, key, item, size(n, p), BigInt(seed)),
  size: ({ n, p }) => size(n, p),
};

const answers = [];
for (const piece of work) {
  try {
    const done = [];
    for (const item of piece.items) done.push(await programs[piece.program](piece, item));
    answers.push(done);
  } catch (e) {
    answers.push(e.message);
  }
}
console.log(JSON.stringify(answers));
