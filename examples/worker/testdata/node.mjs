// Serves the Worker's requests in Node, one after another, and prints the
// answers. A timer that an instance leaves behind keeps the process alive until
// it is due. Then it calls an instance that has ended, which is an uncaught error
// and ends Node with a failure.
import { register } from "node:module";
const [worker, requests] = process.argv.slice(2);

// In a Worker, an import of a .wasm file is a compiled module.
const loader = `
  import { readFile } from "node:fs/promises";
  export async function load(url, context, next) {
    if (!url.endsWith(".wasm")) return next(url, context);
    const bytes = (await readFile(new URL(url))).toString("base64");
    return { format: "module", shortCircuit: true, source:
      "export default new WebAssembly.Module(Buffer.from('" + bytes + "', 'base64'))" };
  }`;
register("data:text/javascript," + encodeURIComponent(loader));

const { default: handler } = await import(worker);
for (let i = 0; i < Number(requests); i++) {
  const request = new Request("http://worker/", {
    method: "POST", headers: { "Idempotency-Key": `event-${i}` },
  });
  const answer = await handler.fetch(request, process.env);
  console.log(answer.status, await answer.text());
}
