// Runs a program ten times over in one process, as a server would. A callback
// into one that has ended is an uncaught error, of which Node dies; a timer that
// one leaves behind keeps the process until it is due.
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
