import "./wasm_exec.js"; // comes with Go and defines globalThis.Go
import wasm from "./worker.wasm";

// Cloudflare gives an isolate 128 MB for all the requests that it has under way.
const maxBody = 64 * 1024; // bytes of a request
const maxInstances = 16; // of the program, 3.7 MB each
const bodyTime = 2_000; // ms, for a body to arrive
const lifetime = 8_000; // ms, of a slot: bodyTime, the program's own 5 s, and a second

export default {
  async fetch(request, env) {
    if (request.method !== "POST") return answer(405, { error: "send a POST" }, { Allow: "POST" });
    const id = request.headers.get("Idempotency-Key") || request.headers.get("X-Event-Id");
    // The runtime replaces what is not UTF-8, so two such ids would look the same.
    if (id?.includes("\ufffd")) return illFormed();
    if (!id && !request.body) return noID();
    // Without a Content-Length the body may be of any length.
    if (!id && !(Number(request.headers.get("Content-Length") ?? NaN) <= maxBody))
      return answer(413, { error: "send at most 64 KiB, and a Content-Length" });
    const slot = takeSlot();
    if (!slot)
      return answer(
        503,
        { id: id || undefined, error: "too many events at once: send it again" },
        { "Retry-After": "1" },
      );
    try {
      return id ? await event(id, env) : await eventInBody(request.body, env);
    } finally {
      slots.delete(slot);
    }
  },
};

async function event(id, env) {
  const call = await run(id, env);
  return answer(call.status, { id, new: call.new, error: call.error });
}

async function eventInBody(body, env) {
  const bytes = await read(body);
  if (!bytes) return answer(408, { error: "the body did not arrive in time" });
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return illFormed();
  }
  const id = idOf(text);
  if (!id) return noID();
  return id.isWellFormed() ? event(id, env) : illFormed();
}

// read returns the bytes of a body, or null if they do not come in time.
async function read(body) {
  const reader = body.getReader();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    reader.cancel().catch(() => {}); // ends the read below
  }, bodyTime);
  const parts = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
    }
  } catch (err) {
    if (!late) throw err;
  } finally {
    clearTimeout(timer);
  }
  return late ? null : new Blob(parts).arrayBuffer();
}

function noID() {
  return answer(400, {
    error: 'send an Idempotency-Key, an X-Event-Id, or a JSON body whose "id" is a string',
  });
}

function illFormed() {
  return answer(400, { error: "the id is not well-formed Unicode in UTF-8" });
}

// idOf returns the "id" of a JSON body, or nothing.
function idOf(text) {
  try {
    const id = JSON.parse(text)?.id;
    return typeof id === "string" ? id : "";
  } catch {
    return "";
  }
}

// slots are the events under way. When a sender hangs up, the runtime may drop
// its request without telling us. So a slot that is older than an event can
// get is free again.
const slots = new Set();

function takeSlot() {
  const now = Date.now();
  for (const slot of slots) if (now - slot.taken > lifetime) slots.delete(slot);
  if (slots.size >= maxInstances) return null;
  const slot = { taken: now };
  slots.add(slot);
  return slot;
}

// run starts main.go, which sets status, and new or error. Each request has its
// own instance. The runtime ties timers and connections to the request that
// began them, but Go would use them for any request.
async function run(id, env) {
  const go = new Go();
  go.env = {
    UPSTASH_REDIS_REST_URL: env.UPSTASH_REDIS_REST_URL ?? "",
    UPSTASH_REDIS_REST_TOKEN: env.UPSTASH_REDIS_REST_TOKEN ?? "",
    UPBLOOM_SEED: env.UPBLOOM_SEED ?? "",
  };
  const instance = await WebAssembly.instantiate(wasm, go.importObject);
  const call = { id };
  globalThis.call = call; // main takes it before go.run returns its promise
  try {
    await go.run(instance);
  } finally {
    // A timer that Go has stopped stays set in the runtime, and would call a
    // program that has ended.
    for (const timer of go._scheduledTimeouts.values()) clearTimeout(timer);
  }
  return call.status ? call : { status: 500, error: "the program failed" };
}

// answer leaves out what is undefined: no answer but a 200 has a "new".
function answer(status, fields, headers) {
  return Response.json(fields, { status, headers });
}
