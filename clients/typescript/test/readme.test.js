// The examples of the README and of the docs run, against a real server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { startServer } from "./server.js";

const PAGES = ["../README.md", "../../../docs/how-to/use-the-typescript-client.md"];
const OPENAI = 'import { openai } from "@ai-sdk/openai";';
const MOCK = `import * as mocks from "ai/test";
const Mock = mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3;
const openai = () => new Mock({
  doGenerate: async ({ prompt }) => ({
    content: [{ type: "text", text: JSON.stringify(prompt) }], finishReason: { unified: "stop" }, usage: { inputTokens: {}, outputTokens: {} }, warnings: [],
  }),
});`;

const hasSdk = await import("ai").then(() => true, () => false);
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;

before(async () => (server = await startServer()));
after(() => server?.stop());

for (const page of PAGES) {
  const text = await readFile(new URL(page, import.meta.url), "utf8");
  const blocks = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1]);
  test(`${page} has examples`, () => assert(blocks.length > 0));
  for (const [place, code] of blocks.entries()) {
    const skip = code.includes(OPENAI) && !hasSdk && "the package `ai` is not installed";
    test(`example ${place + 1} of ${page} runs`, { skip }, async () => {
      const file = fileURLToPath(new URL(`./example-${process.pid}-${place}.mjs`, import.meta.url));
      await writeFile(file, code.replace(OPENAI, MOCK).replaceAll("http://127.0.0.1:5002", server.baseUrl));
      try {
        const ran = await promisify(execFile)(process.execPath, [file], {
          env: { ...process.env, AFORESAID_KEY: server.key },
          timeout: 60_000,
        });
        assert.notEqual(ran.stdout, "");
        if (code.includes(OPENAI)) assert.match(ran.stdout, /Rio/);
      } finally {
        await rm(file);
      }
    });
  }
}
