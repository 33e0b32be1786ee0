/** @import { MemoryOptions } from "../types/ai.d.ts" */
/** @import { AddOptions, ChatMessage, Role, UserMemory } from "../types/index.d.ts" */
/**
 * The parts of the AI SDK's interface that are used here. Its versions 6 and 7 agree on them.
 *
 * @typedef {{ role: string, content: any }} PromptMessage
 * @typedef {{ prompt: PromptMessage[], providerOptions?: Record<string, unknown>, abortSignal?: AbortSignal }} Params
 * @typedef {{ type: string, text?: string, delta?: string }} Piece
 */

/** Sections of a context that the app's own prompt is for. */
const OWN = /** @type {const} */ (["system", "rules", "persona"]);

/** @param {MemoryOptions} options @returns {any} */
export function memoryMiddleware(options) {
  const turns = new Turns(options);
  return {
    specificationVersion: "v3",

    /** @param {{ params: Params, model: any }} call */
    async wrapGenerate({ params, model }) {
      const turn = await turns.begin(params);
      const result = await model.doGenerate(turn.params);
      await turn.end(result.content);
      return result;
    },

    /** @param {{ params: Params, model: any }} call */
    async wrapStream({ params, model }) {
      const turn = await turns.begin(params);
      const result = await model.doStream(turn.params);
      return { ...result, stream: listening(result.stream, turn.end) };
    },
  };
}

/** Begins turns: adds what is remembered to a prompt and stores the user's message. */
class Turns {
  #options;
  /**
   * The id of each message of a prompt that was stored. The SDK repeats a failed call with the same messages.
   *
   * @type {WeakMap<object, string>}
   */
  #ids = new WeakMap();

  /** @param {MemoryOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /**
   * @param {Params} params
   * @returns {Promise<{ params: Params, end: (content: Piece[]) => Promise<void> }>}
   */
  async begin(params) {
    const place = params.prompt.findLastIndex((message) => message.role === "user");
    if (place < 0) return { params, end: async () => {} };
    const memory = this.#memory(params);
    const prompt = await this.#attempt(async () => {
      const added = await this.#withContext(memory, params, place);
      for (const stored of newMessages(params.prompt)) {
        await memory.add(stored.role, stored.text, { ...stored.details, id: this.#idOf(stored.key) });
      }
      return added;
    });
    return {
      params: { ...params, prompt: prompt ?? params.prompt },
      end: async (content) => {
        const { text, tool_calls } = answerOf(content);
        if (text.trim() !== "" || tool_calls.length) {
          await this.#attempt(() => memory.add("assistant", text, { tool_calls }));
        }
      },
    };
  }

  /** @param {UserMemory} memory @param {Params} params @param {number} place where the question is */
  async #withContext(memory, { prompt, abortSignal }, place) {
    const question = textOf(prompt[place].content);
    if (question.trim() === "") return prompt;
    const { budget, model } = this.#options;
    const hasHistory = prompt.some((message, at) => message.role === "user" && at !== place);
    const without = hasHistory ? [...OWN, /** @type {const} */ ("recent")] : [...OWN];
    const context = await memory.context(question, { budget, model, without, signal: abortSignal });
    return withContext(prompt, place, context.messages);
  }

  /** @param {object} key */
  #idOf(key) {
    const id = this.#ids.get(key) ?? crypto.randomUUID();
    this.#ids.set(key, id);
    return id;
  }

  /** @param {Params} params @returns {UserMemory} */
  #memory(params) {
    const { memory } = this.#options;
    return typeof memory === "function" ? memory(params.providerOptions ?? {}) : memory;
  }

  /** @template T @param {() => Promise<T>} work @returns {Promise<T | undefined>} */
  async #attempt(work) {
    try {
      return await work();
    } catch (error) {
      if (this.#options.onError === undefined) throw error;
      this.#options.onError(error);
      return undefined;
    }
  }
}

/**
 * Return the messages of a prompt that are not stored yet: the results of tools since the last answer, and the last
 * message if it is the user's.
 *
 * @param {PromptMessage[]} prompt
 * @returns {{ key: object, role: Role, text: string, details: AddOptions }[]}
 */
function newMessages(prompt) {
  const answered = prompt.findLastIndex((message) => message.role === "assistant");
  const results = prompt.slice(answered + 1).flatMap((message) => (message.role === "tool" ? message.content : []));
  const last = prompt[prompt.length - 1];
  return [
    ...results
      .filter((/** @type {any} */ part) => part.type === "tool-result")
      .map((/** @type {any} */ part) => {
        const { output, toolCallId: tool_call_id, toolName: name } = part;
        const text = typeof output.value === "string" ? output.value : JSON.stringify(output.value ?? output);
        return { key: part, role: /** @type {const} */ ("tool"), text, details: { tool_call_id, name } };
      }),
    ...(last.role === "user"
      ? [{ key: last, role: /** @type {const} */ ("user"), text: textOf(last.content), details: { parts: partsOf(last.content) } }]
      : []),
  ];
}

/** @param {Piece[]} content */
function textOf(content) {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/**
 * Return files of a message by their address, or by their type where the message holds their bytes.
 *
 * @param {any[]} content
 * @returns {NonNullable<AddOptions["parts"]>}
 */
function partsOf(content) {
  return content
    .filter((part) => part.type === "file")
    .map(({ data, mediaType, filename }) => {
      const kind = mediaType.split("/")[0];
      const url = data instanceof URL ? data : data?.type === "url" ? data.url : undefined;
      return {
        type: kind === "image" || kind === "audio" ? kind : "file",
        url: url === undefined ? undefined : String(url),
        media_type: mediaType,
        name: filename,
      };
    });
}

/** @param {Piece[]} content */
function answerOf(content) {
  const tool_calls = content
    .filter((piece) => piece.type === "tool-call")
    .map((/** @type {any} */ call) => ({ id: call.toolCallId, name: call.toolName, arguments: call.input }));
  return { text: content.map((piece) => (piece.type === "text" ? piece.text : "")).join(""), tool_calls };
}

/**
 * Return a prompt with the messages of a context: the last one, which ends with the question, replaces its text; those
 * before it follow the app's own system messages.
 *
 * @param {PromptMessage[]} prompt
 * @param {number} place where the question is
 * @param {ChatMessage[]} messages
 */
function withContext(prompt, place, messages) {
  const before = messages.slice(0, -1).map(promptMessage);
  const message = prompt[place];
  const others = message.content.filter((/** @type {Piece} */ part) => part.type !== "text");
  const text = { type: "text", text: messages[messages.length - 1].content };
  const begins = prompt.findIndex((each) => each.role !== "system");
  return [
    ...prompt.slice(0, begins),
    ...before,
    ...prompt.slice(begins, place),
    { ...message, content: [text, ...others] },
    ...prompt.slice(place + 1),
  ];
}

/** @param {ChatMessage} message */
function promptMessage({ role, content }) {
  return { role, content: role === "system" ? content : [{ type: "text", text: content }] };
}

/**
 * Return the same stream, and call `end` with its content: before it ends, or when nobody reads it any more.
 *
 * @param {ReadableStream<Piece>} stream
 * @param {(content: Piece[]) => Promise<void>} end
 */
function listening(stream, end) {
  const reader = stream.getReader();
  /** @type {Piece[]} */
  const content = [];
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) {
        if (value.type === "text-delta") content.push({ type: "text", text: value.delta });
        if (value.type === "tool-call") content.push(value);
        return controller.enqueue(value);
      }
      await end(content);
      controller.close();
    },
    async cancel(reason) {
      await Promise.all([reader.cancel(reason), end(content)]);
    },
  });
}
