// node search.js SITE QUESTIONS: asks the search of the built site, with its own worker, and prints the rank of each question's page.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [site, questions] = process.argv.slice(2);
const folder = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(folder).find((name) => name.endsWith(".js"));
let listen;
let answered;
const context = {
  console: { warn() {} },
  addEventListener: (_, listener) => (listen = listener),
  postMessage: (message) => answered(message),
  importScripts() {},
};
context.self = context;
vm.createContext(context);
vm.runInContext(fs.readFileSync(path.join(folder, worker), "utf8"), context);

function ask(message) {
  return new Promise((resolve) => {
    answered = resolve;
    listen({ data: message });
  });
}

async function main() {
  const { config, docs } = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
  await ask({ type: 0, data: { config, docs, options: { suggest: true } } });
  for (const line of fs.readFileSync(questions, "utf8").trim().split("\n")) {
    const [, question, wanted] = line.split("\t");
    const found = await ask({ type: 2, data: question });
    const pages = [...new Set(found.data.items.map((group) => group[0].location.split("#")[0].replace(".html", "")))];
    const rank = pages.findIndex((page) => wanted.split(" ").includes(page)) + 1;
    console.log(`${rank || "none"}\t${question}`);
  }
}

main();
