/** @import { MemoryOptions } from "../types/ai.d.ts" */
/** @import { ChatMessage, UserMemory } from "../types/index.d.ts" */
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
      await turn.end(result.content.map((/** @type {Piece} */ piece) => (piece.type === "text" ? piece.text : "")).join(""));
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

  /** @param {MemoryOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /**
   * @param {Params} params
   * @returns {Promise<{ params: Params, end: (text: string) => Promise<void> }>}
   */
  async begin(params) {
    const asked = question(params.prompt);
    if (asked === null) return { params, end: async () => {} };
    const memory = this.#memory(params);
    const prepared = await this.#attempt(async () => {
      const { budget, model } = this.#options;
      const without = hasHistory(params.prompt) ? [...OWN, /** @type {const} */ ("recent")] : [...OWN];
      const context = await memory.context(asked.text, { budget, model, without, signal: params.abortSignal });
      // In later steps of a turn, after calls of tools, the message is stored already.
      if (asked.place === params.prompt.length - 1) await memory.add("user", asked.text);
      return { ...params, prompt: withContext(params.prompt, asked, context.messages) };
    });
    return {
      params: prepared ?? params,
      end: async (text) => {
        if (text.trim() !== "") await this.#attempt(() => memory.add("assistant", text));
      },
    };
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
 * Return the text of the last message of the user and its place; null if there is none.
 *
 * @param {PromptMessage[]} prompt
 */
function question(prompt) {
  const place = prompt.findLastIndex((message) => message.role === "user");
  if (place < 0) return null;
  const text = prompt[place].content.flatMap((/** @type {Piece} */ part) => (part.type === "text" ? [part.text] : [])).join("\n");
  return text.trim() === "" ? null : { place, text };
}

/** @param {PromptMessage[]} prompt */
function hasHistory(prompt) {
  return prompt.filter((message) => message.role === "user").length > 1;
}

/**
 * Return a prompt with the messages of a context: the last one, which ends with the question, replaces its text; those
 * before it follow the app's own system messages.
 *
 * @param {PromptMessage[]} prompt
 * @param {{ place: number, text: string }} asked
 * @param {ChatMessage[]} messages
 */
function withContext(prompt, asked, messages) {
  const before = messages.slice(0, -1).map(promptMessage);
  const message = prompt[asked.place];
  const others = message.content.filter((/** @type {Piece} */ part) => part.type !== "text");
  const text = { type: "text", text: messages[messages.length - 1].content };
  const begins = prompt.findIndex((each) => each.role !== "system");
  return [
    ...prompt.slice(0, begins),
    ...before,
    ...prompt.slice(begins, asked.place),
    { ...message, content: [text, ...others] },
    ...prompt.slice(asked.place + 1),
  ];
}

/** @param {ChatMessage} message */
function promptMessage({ role, content }) {
  return { role, content: role === "system" ? content : [{ type: "text", text: content }] };
}

/**
 * Return the same stream, and call `end` with its text: before it ends, or when nobody reads it any more.
 *
 * @param {ReadableStream<Piece>} stream
 * @param {(text: string) => Promise<void>} end
 */
function listening(stream, end) {
  const reader = stream.getReader();
  let text = "";
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) {
        if (value.type === "text-delta") text += value.delta;
        return controller.enqueue(value);
      }
      await end(text);
      controller.close();
    },
    async cancel(reason) {
      await Promise.all([reader.cancel(reason), end(text)]);
    },
  });
}
