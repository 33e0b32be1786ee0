// The official OpenAI client for JavaScript, unmodified, with Responses through the proxy. Prints what it saw as JSON.
import OpenAI from "openai";

const [, , address, apiKey, wrongKey] = process.argv;
const baseURL = `${address}/v1`;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const ask = (input) => ({ model: "m", user: "ann", input });
const seen = {};

seen.first = (await client.responses.create(ask("My parrot is called Rio."))).output_text;
const second = await client.responses.create(ask("What is my parrot called?"));
seen.second = second.output_text;

seen.streamed = "";
const stream = await client.responses.create({ ...ask("Stream this."), previous_response_id: second.id, stream: true });
for await (const event of stream) {
  if (event.type === "response.output_text.delta") seen.streamed += event.delta;
}

const tools = [{ type: "function", name: "weather", parameters: { type: "object" }, strict: false }];
const called = (await client.responses.create({ ...ask("use the tool"), tools })).output[0];
seen.tool = { name: called.name, arguments: called.arguments };

try {
  await client.responses.create(ask("be overloaded"));
} catch (error) {
  seen.error = [error.constructor.name, error.status];
}
try {
  await new OpenAI({ baseURL, apiKey: wrongKey, maxRetries: 0 }).responses.create(ask("hi"));
} catch (error) {
  seen.refused = [error.constructor.name, error.status];
}

const broken = await client.responses.create({ ...ask("tell me a long story"), stream: true });
for await (const event of broken) {
  if (event.type === "response.output_text.delta") break; // hangs up
}
seen.models = (await client.models.list()).data.map((model) => model.id);
process.stdout.write(JSON.stringify(seen));
