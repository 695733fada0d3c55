import "./wasm_exec.js"; // comes with Go and defines globalThis.Go
import wasm from "./worker.wasm";

export default {
  async fetch(request, env) {
    const id = request.headers.get("Idempotency-Key") ?? request.headers.get("X-Event-Id");
    const call = { id: id ?? "", body: id ? "" : await request.text() };
    // Each request has its own instance: a runtime ties timers and connections
    // to the request that began them, and Go would share them out.
    const go = new Go();
    go.env = {
      UPSTASH_REDIS_REST_URL: env.UPSTASH_REDIS_REST_URL ?? "",
      UPSTASH_REDIS_REST_TOKEN: env.UPSTASH_REDIS_REST_TOKEN ?? "",
    };
    const instance = await WebAssembly.instantiate(wasm, go.importObject);
    globalThis.call = call; // run calls main, which takes it, before it returns
    await go.run(instance);
    return new Response(call.answer ?? '{"error":"the program failed"}', {
      status: call.status ?? 500,
      headers: { "Content-Type": "application/json" },
    });
  },
};
