// Checked by the compiler, never run: what users write has types, and mistakes do not pass.
import { generateText, wrapLanguageModel } from "ai";
import { Aforesaid, ApiError, type Context, type Hit, type Memory, NotFound } from "aforesaid";
import { memoryMiddleware } from "aforesaid/ai";
import type * as declared from "aforesaid";
import type * as written from "../src/index.js";

const client = new Aforesaid({ baseUrl: "http://127.0.0.1:5002", key: "key", timeoutMs: 1000 });
const ann = client.user("ann", { thread: "general" });

export async function typed(model: Parameters<typeof wrapLanguageModel>[0]["model"]): Promise<void> {
  const hits: Hit[] = await ann.search("Berlin", { limit: 3, kinds: ["message", "memory"], at: new Date() });
  const context: Context = await ann.context("Where do I live?", { budget: 2000, without: ["recent"] });
  const memory: Memory = await client.request("GET /api/memories/{number}", { path: { number: 1 } });
  for await (const page of client.pages("GET /api/messages", { query: { user: "ann" } })) page.messages[0]?.text.trim();
  for await (const event of ann.events()) {
    const text: string = event.type === "message" ? event.data.text : event.data.action;
    void text;
  }
  try {
    await client.request("GET /readyz");
  } catch (error) {
    if (error instanceof NotFound || error instanceof ApiError) void error.errors[0]?.where;
  }
  await generateText({ model: wrapLanguageModel({ model, middleware: memoryMiddleware({ memory: ann }) }), prompt: "Hi" });
  void [hits, context, memory];

  // @ts-expect-error there is no such role
  await ann.add("nobody", "Hi");
  // @ts-expect-error there is no such route
  await client.request("GET /api/nothing");
  // @ts-expect-error the path needs a number
  await client.request("GET /api/memories/{number}");
  // @ts-expect-error this route has no pages
  client.pages("GET /api/health");
  // @ts-expect-error there is no such section
  await ann.context("Hi", { without: ["everything"] });
}

// The declarations say what the code has.
type Public<T> = { [K in keyof T]: T[K] };
type Members<T> = { [K in keyof T]: T[K] extends { prototype: infer I } ? Public<I> : T[K] };
declare const code: Members<typeof written>;
export const promised: Members<typeof declared> = code;
