// Runs a program ten times in one process, one after another, as a server would.
// Node ends with an error if a callback reaches a program that has ended, and
// lives on until the last timer that a program left behind.
import fs from "node:fs";
const [wasmExec, program] = process.argv.slice(2);
await import(wasmExec);
const wasm = await WebAssembly.compile(fs.readFileSync(program));
for (let i = 0; i < 10; i++) {
  const go = new Go();
  go.env = { ...process.env };
  go.exit = (code) => code && process.exit(code);
  await go.run(await WebAssembly.instantiate(wasm, go.importObject));
}
