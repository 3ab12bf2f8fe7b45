import { DomainError } from "../../domain/errors.ts";
import { checkPayload } from "../../events/payload.ts";
import type { Line } from "./lines.ts";

/** Why bytes cannot be sent as an event; null when they can. @param longestPayload in bytes */
export function faultOf({ bytes }: Pick<Line, "bytes">, longestPayload: number): string | null {
  if (bytes === null || bytes.length > longestPayload) {
    return `The event exceeds ${longestPayload} bytes, the most that one request can carry.`;
  }
  try {
    checkPayload(bytes);
    return null;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return error.broken?.field === "" ? `The event ${error.broken.rule}.` : error.message;
  }
}
