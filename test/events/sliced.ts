import { DomainError } from "../../src/domain/errors.ts";
import { sliceBatch, sliceEvent } from "../../src/events/payload.ts";

export const encode = (text: string) => new TextEncoder().encode(text);
export const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

export const slicePayload = (body: Uint8Array) => sliceEvent(body).payload;

/** The payload as text, or the error's code. */
export function slice(body: string | Uint8Array): string {
  return outcome(() => decode(slicePayload(typeof body === "string" ? encode(body) : body)));
}

/** The payloads as texts, or the error's code. */
export function batch(body: string | Uint8Array, maxEvents?: number): string | string[] {
  return outcome(() =>
    sliceBatch(typeof body === "string" ? encode(body) : body, maxEvents).map(({ payload }) => decode(payload)),
  );
}

export function outcome<T>(run: () => T): T | string {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof DomainError) || error.kind !== "invalid") throw error;
    return error.code;
  }
}

export const parseOrNull = (text: string) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
};
