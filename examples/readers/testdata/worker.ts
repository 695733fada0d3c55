// Looks up the items of the request's body, in a Worker.
import { open, rest } from "../upbloom.js";
import { xxh3 } from "../xxh3.js";

interface Env { UPSTASH_REDIS_REST_URL: string; UPSTASH_REDIS_REST_TOKEN: string }

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { key, items, digests } = await request.json() as {
      key: string; items: string[]; digests?: number;
    };
    const bytes = new TextEncoder().encode(items[0]);
    for (let i = 0; i < (digests ?? 0); i++) xxh3(bytes, BigInt(i)); // for its speed
    try {
      const call = rest(env.UPSTASH_REDIS_REST_URL, env.UPSTASH_REDIS_REST_TOKEN);
      return Response.json({ found: await (await open(call, key)).exists(items) });
    } catch (e) {
      return Response.json({ error: String(e) });
    }
  },
};
