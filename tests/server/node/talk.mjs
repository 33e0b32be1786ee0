// The official OpenAI client for JavaScript, unmodified, through the proxy. Prints what it saw as JSON.
import OpenAI from "openai";

const [, , address, apiKey, wrongKey] = process.argv;
const baseURL = `${address}/v1`;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const ask = (content) => ({ model: "m", user: "ann", messages: [{ role: "user", content }] });
const seen = {};

seen.first = (await client.chat.completions.create(ask("My parrot is called Rio."))).choices[0].message.content;
seen.second = (await client.chat.completions.create(ask("What is my parrot called?"))).choices[0].message.content;

seen.streamed = "";
for await (const chunk of await client.chat.completions.create({ ...ask("Stream this."), stream: true })) {
  seen.streamed += chunk.choices[0]?.delta?.content ?? "";
}

const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
const called = await client.chat.completions.create({ ...ask("use the tool"), tools });
seen.tool = called.choices[0].message.tool_calls[0].function;

try {
  await client.chat.completions.create(ask("be overloaded"));
} catch (error) {
  seen.error = [error.constructor.name, error.status];
}
try {
  await new OpenAI({ baseURL, apiKey: wrongKey, maxRetries: 0 }).chat.completions.create(ask("hi"));
} catch (error) {
  seen.refused = [error.constructor.name, error.status];
}

const broken = await client.chat.completions.create({ ...ask("tell me a long story"), stream: true });
for await (const chunk of broken) {
  if (chunk.choices[0]?.delta?.content) break; // hangs up
}
seen.models = (await client.models.list()).data.map((model) => model.id);
process.stdout.write(JSON.stringify(seen));
