// The official Anthropic client for JavaScript, unmodified, through the proxy. Prints what it saw as JSON.
import Anthropic from "@anthropic-ai/sdk";

const [, , baseURL, apiKey, wrongKey] = process.argv;
const client = new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const ask = (content) => ({
  model: "m",
  max_tokens: 100,
  metadata: { user_id: "ann" },
  messages: [{ role: "user", content }],
});
const seen = {};

seen.first = (await client.messages.create(ask("My parrot is called Rio."))).content[0].text;
seen.second = (await client.messages.create(ask("What is my parrot called?"))).content[0].text;

seen.streamed = "";
await client.messages
  .stream(ask("Stream this."))
  .on("text", (text) => (seen.streamed += text))
  .finalMessage();

const tools = [{ name: "weather", input_schema: { type: "object" } }];
const called = (await client.messages.create({ ...ask("use the tool"), tools })).content[0];
seen.tool = { name: called.name, arguments: `{"city": "${called.input.city}"}` };

try {
  await client.messages.create(ask("be overloaded"));
} catch (error) {
  seen.error = [error.constructor.name, error.status];
}
try {
  await new Anthropic({ baseURL, apiKey: wrongKey, maxRetries: 0 }).messages.create(ask("hi"));
} catch (error) {
  seen.refused = [error.constructor.name, error.status];
}

const broken = await client.messages.create({ ...ask("tell me a long story"), stream: true });
for await (const event of broken) {
  if (event.type === "content_block_delta") break; // hangs up
}
seen.models = (await client.models.list()).data.map((model) => model.id);
process.stdout.write(JSON.stringify(seen));
