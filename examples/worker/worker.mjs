import "./wasm_exec.js"; // comes with Go and defines globalThis.Go
import wasm from "./worker.wasm";

const maxBody = 64 * 1024; // bytes; an instance of the runtime has 128 MB for all requests

export default {
  async fetch(request, env) {
    if (request.method !== "POST") return answer(405, { error: "send a POST" }, { Allow: "POST" });
    let id = request.headers.get("Idempotency-Key") || request.headers.get("X-Event-Id");
    if (!id && request.body) {
      // Without a Content-Length nobody knows how much would be read.
      if (!(Number(request.headers.get("Content-Length") ?? NaN) <= maxBody))
        return answer(413, { error: "send at most 64 KiB, and a Content-Length" });
      id = idOf(await request.text());
    }
    if (!id)
      return answer(400, {
        error: 'send an Idempotency-Key, an X-Event-Id, or a JSON body with an "id"',
      });
    const call = await run(id, env);
    return answer(call.status, { id, new: call.new, error: call.error });
  },
};

// idOf gives the "id" of a JSON body, or nothing.
function idOf(text) {
  try {
    const id = JSON.parse(text)?.id;
    return typeof id === "string" ? id : "";
  } catch {
    return "";
  }
}

// run has main.go set status, and new or error. Each request has its own
// instance: a runtime ties timers and connections to the request that began
// them, and Go would share them out.
async function run(id, env) {
  const go = new Go();
  go.env = {
    UPSTASH_REDIS_REST_URL: env.UPSTASH_REDIS_REST_URL ?? "",
    UPSTASH_REDIS_REST_TOKEN: env.UPSTASH_REDIS_REST_TOKEN ?? "",
  };
  const instance = await WebAssembly.instantiate(wasm, go.importObject);
  const call = { id };
  globalThis.call = call; // run calls main, which takes it, before it returns
  await go.run(instance);
  return call.status ? call : { status: 500, error: "the program failed" };
}

// answer leaves out what is undefined: no answer but a 200 has a "new".
function answer(status, fields, headers) {
  return Response.json(fields, { status, headers });
}
