// Serves requests with a component that jco transpiled, and prints how many
// handles of the host's resources the component holds after the first half of
// them, and after all:
//
//   node handles.mjs transpiled.js requests
//
// jco keeps the handles of each kind of resource in a table of pairs. The first
// pair is no handle. A pair is free if its first half has the flag set.
import { readFile, writeFile } from "node:fs/promises";
import { HTTPServer } from "@bytecodealliance/preview2-shim/http";

const [transpiled, requests] = process.argv.slice(2);
const source = await readFile(transpiled, "utf8");
const opened = transpiled.replace(/\.js$/, ".opened.js");
await writeFile(opened, source + "\nexport { HANDLE_TABLES as tables, T_FLAG as free };\n");
const { incomingHandler, tables, free } = await import(opened);

function held() {
  let n = 0;
  for (const table of tables.filter(Boolean))
    for (let i = 2; i < table.length; i += 2) if (!(table[i] & free)) n++;
  return n;
}

const server = new HTTPServer(incomingHandler);
server.listen(0, "127.0.0.1");
const { port } = server.address();
const statuses = {};
for (let i = 1; i <= requests; i++) {
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    method: "POST",
    headers: i % 7 ? { "Event-Id": `event-${i}` } : {},
  });
  await answer.text();
  statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
  if (i === requests / 2 || i === Number(requests)) console.log(held(), JSON.stringify(statuses));
}
process.exit(0);
