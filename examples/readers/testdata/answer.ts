// Answers questions of the test, a line of JSON each, with upbloom.ts.
import { createInterface } from "node:readline";
import * as upbloom from "../upbloom.js";

interface Question {
  op: string; key: string; seed: string; items: string[]; now?: number;
  m: number; k: number; scheme: number; n: number; p: number;
  kind: string; panes: number; seconds: number; e?: number; c: number;
  readOnly?: boolean;
}

const [url, token] = process.argv.slice(2);
const send = upbloom.rest(url, token);

async function answer(q: Question): Promise<unknown> {
  const geometry = { m: q.m, k: q.k, scheme: q.scheme, seed: BigInt(q.seed ?? "0") };
  const call: upbloom.Call = async (command) =>
    command[0] === "TIME" && q.now !== undefined ? [String(q.now), "0"] : send(command);
  switch (q.op) {
    case "cells": return upbloom.cellsOf(q.items[0], geometry);
    case "header": return String(await upbloom.headerOf(geometry));
    case "size": return upbloom.size(q.n, q.p);
    case "parts": return upbloom.partsOf(q.kind, q.m, q.panes);
    case "epoch": return new upbloom.Panes(q.panes, q.seconds).epochAt(q.now!);
    case "counting": return new upbloom.Panes(q.panes, 60).counting(q.e, q.c);
    case "add": return upbloom.add(call, q.key, q.items, geometry);
    case "exists": return (await upbloom.open(call, q.key, geometry.seed, q.readOnly)).exists(q.items);
  }
  throw new Error(`no op ${q.op}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify({ ok: await answer(JSON.parse(line)) }));
  } catch (e) {
    const [error] = (e as Error).stack!.split("\n"); // what a log shows: name and message
    console.log(JSON.stringify({ error }));
  }
}
