import type { LanguageModelMiddleware } from "ai";
import type { ContextOptions, UserMemory } from "./index.d.ts";

export interface MemoryOptions {
  /** The user's memory; or a function that chooses it by the `providerOptions` of a call. */
  memory: UserMemory | ((providerOptions: Record<string, unknown>) => UserMemory);
  /** Maximum tokens of the context. Default: the profile's. */
  budget?: number;
  /** The model whose tokens to count. */
  model?: ContextOptions["model"];
  /**
   * Called if the memory fails. The call to the model then goes on without it. Default: the error is thrown, and the
   * call fails.
   */
  onError?: (error: unknown) => void;
}

/**
 * Return a middleware for `wrapLanguageModel` of the AI SDK. It adds to a prompt what is remembered, and stores what
 * the user said before the model is called, and what the model answered afterwards.
 *
 * If the prompt is only the user's message, the last messages of the conversation are added too.
 */
export declare function memoryMiddleware(options: MemoryOptions): LanguageModelMiddleware;
