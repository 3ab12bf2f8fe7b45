import { formatIso } from "./iso-time.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

const ranks: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Ids, numbers and words. Never a secret, a payload, a request body or a whole URL (its path may hold a token). */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  /** One occurrence, named `what.happened`. */
  write(level: LogLevel, event: string, fields?: LogFields): void;
  /** False when the level is not written, so that its fields need not be gathered. */
  enabled(level: LogLevel): boolean;
}

export interface LogOptions {
  level: LogLevel;
  /** `json`: one object a line, for machines. `text`: for a terminal. */
  format: "json" | "text";
  now(): number;
  out(line: string): void;
}

export function createLog({ level, format, now, out }: LogOptions): Log {
  const enabled = (asked: LogLevel) => ranks[asked] >= ranks[level];
  return {
    enabled,
    write(asked, event, fields = {}) {
      if (!enabled(asked)) return;
      const at = formatIso(now());
      out(
        format === "json" ? JSON.stringify({ at, level: asked, event, ...fields }) : asText(at, asked, event, fields),
      );
    },
  };
}

/** Characters that end a word or a line, move a terminal's cursor, or change the direction of its text. */
const needsQuotes = /[\s"=\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** JSON leaves the latter half of them as they are. */
const quote = (text: string) =>
  JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );

function asText(at: string, level: LogLevel, event: string, fields: LogFields): string {
  const words = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${typeof value === "string" && needsQuotes.test(value) ? quote(value) : value}`);
  const mark = level === "info" ? "" : `${level.toUpperCase()} `;
  return [at.slice(11, 19), `${mark}${event}`, ...words].join("  ");
}

/** Says nothing. */
export const silentLog: Log = { write() {}, enabled: () => false };
