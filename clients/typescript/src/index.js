export { Aforesaid, UserMemory } from "./client.js";
export {
  AforesaidError,
  ApiError,
  Conflict,
  ConnectionError,
  Forbidden,
  InvalidInput,
  InvalidResponse,
  NotFound,
  PreconditionFailed,
  RequestTimeout,
  StorageFull,
  TooLarge,
  TooManyRequests,
  Unauthorized,
  Unavailable,
} from "./errors.js";
