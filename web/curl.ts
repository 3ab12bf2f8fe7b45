export interface CurlRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Text, or the exact bytes. */
  body: string | Uint8Array;
}

/** Linux accepts no argument of 128 KiB or more; `printf` is built into the shell, which accepts any. */
const longestArgumentBytes = 100_000;

/** A terminal treats these as keys when they are pasted, and no argument can hold a NUL. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const notForTyping = /[\0-\x09\x0b-\x1f\x7f]/;

/**
 * A request as a command for any POSIX shell: its contents reach curl, and through it the receiver, byte for byte, and no
 * part of them is executed.
 */
export function asCurl({ url, headers, body }: CurlRequest): string {
  const text = decode(body);
  const isTypable = text !== null && !notForTyping.test(text) && utf8.encode(text).length <= longestArgumentBytes;
  const named = Object.entries(headers);
  const hasType = named.some(([name]) => name.toLowerCase() === "content-type");
  const lines = [
    // Otherwise curl treats brackets and braces as a list of addresses.
    `curl ${/[[\]{}]/.test(url) ? "--globoff " : ""}${quote(url)}`,
    ...named.map(([name, value]) => `-H ${quote(value === "" ? `${name};` : `${name}: ${value}`)}`),
    // Otherwise curl declares the body to be a form.
    ...(hasType ? [] : ["-H 'Content-Type:'"]),
    isTypable ? `${dataOption(text)} ${quote(text)}` : "--data-binary @-",
  ];
  const command = lines.join(" \\\n  ");
  return isTypable ? command : `printf ${quote(printfFormat(text ?? body))} | ${command}`;
}

const utf8 = new TextEncoder();

/** Null when the bytes are not text. */
function decode(body: string | Uint8Array): string | null {
  if (typeof body === "string") return body;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}

/** With `--data-binary`, a value that begins with an at sign names a file. */
const dataOption = (text: string) => (text.startsWith("@") ? "--data-raw" : "--data-binary");

/** Between single quotes only another single quote is special; a NUL cannot be expressed at all. */
const quote = (text: string) => `'${text.replaceAll("\0", "").replaceAll("'", "'\\''")}'`;

/** The format with which `printf` writes these bytes; a leading minus would be an option. */
function printfFormat(content: string | Uint8Array): string {
  if (typeof content !== "string") return Array.from(content, octal).join("");
  return content
    .replace(/[\\%]/g, (mark) => mark + mark)
    .replace(new RegExp(`^-|${notForTyping.source}`, "g"), (character) => octal(character.charCodeAt(0)));
}

const octal = (byte: number) => `\\${byte.toString(8).padStart(3, "0")}`;
