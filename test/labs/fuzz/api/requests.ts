import fc from "fast-check";
import type { OpenApiDocument, Operation } from "../../../support/openapi-check.ts";
import { broken, type KnownValues, strangeBodies, strangeTexts, valuesOf } from "./values.ts";

/** A request that may be right, or wrong in any way that a client can be. */
export interface FuzzRequest {
  readonly path: string;
  /** Which token goes with it; `right` is one of the kind that the operation takes. */
  readonly token: TokenKind;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

const tokenKinds = ["right", "none", "of another account", "of another kind", "expired", "garbage"] as const;
export type TokenKind = (typeof tokenKinds)[number];

/** Texts that can stand in a path; a client would encode them, and some do not. */
const strangeSegment = fc.oneof(
  fc.constantFrom(...strangeTexts.filter((text) => text.isWellFormed() && text !== "").map(encodeURIComponent)),
  fc.constantFrom("%", "%zz", "%ff", "%E0%A4%A", "%2e%2e", "%2F", "a%2Fb", "+", ";a=b", "replays", "state", "me"),
  fc
    .string({ minLength: 1, maxLength: 12 })
    .filter((text) => !/^\.{1,2}$/.test(text))
    .map(encodeURIComponent),
);

const strangeParameter = fc.oneof(
  fc.constantFrom(...strangeTexts.filter((text) => text.isWellFormed()).map(encodeURIComponent)),
  fc.constantFrom("%", "%ff", "-1", "-0", "1e3", "1.0", "0x10", "99999999999999999999", "1001", "+5", "1&size=2"),
  fc.string({ maxLength: 12 }).map(encodeURIComponent),
);

/** What `fetch` lets through. */
const headerText = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });

const strangeHeaders: fc.Arbitrary<Record<string, string>> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc
    .constantFrom(
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/json; charset=utf-16",
      "a/b+json",
      ";",
    )
    .map((type) => ({ "Content-Type": type })),
  fc.constantFrom("gzip", "br", "identity").map((encoding) => ({ "Content-Encoding": encoding })),
  fc.oneof(headerText, fc.constantFrom("", "é", "k".repeat(256))).map((key) => ({ "Idempotency-Key": key })),
  fc.oneof(headerText, fc.constantFrom("1-1", "999999999999999-1", "-")).map((id) => ({ "Last-Event-ID": id })),
  headerText.map((value) => ({ Accept: value, "Accept-Language": value, Cookie: value, Range: value })),
);

export function requestsOf(
  document: OpenApiDocument,
  path: string,
  operation: Operation,
  known: KnownValues,
): fc.Arbitrary<FuzzRequest> {
  const { parameters = [], requestBody } = operation;

  const segments = path.split("/").map((word) => {
    const name = /^\{(\w+)\}$/.exec(word)?.[1];
    if (name === undefined) return fc.constant(word);
    const parameter = parameters.find((candidate) => candidate.name === name);
    const values = valuesOf(document, parameter?.schema ?? {}, known, `${path} ${name}`);
    const encoded = values
      .map((value) => encodeURIComponent(String(value).toWellFormed()))
      .filter((text) => !/^\.{0,2}$/.test(text));
    return fc.oneof({ weight: 2, arbitrary: encoded }, strangeSegment);
  });

  const queries = parameters
    .filter((parameter) => parameter.in === "query")
    .map(({ name, schema }) => {
      const value = valuesOf(document, schema, known, name).map((given) =>
        encodeURIComponent(String(given).toWellFormed()),
      );
      const text = fc.oneof({ weight: 3, arbitrary: value }, strangeParameter).map((given) => [`${name}=${given}`]);
      return fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, text);
    });
  const unknownQuery = fc.oneof(
    { weight: 6, arbitrary: fc.constant([]) },
    fc.constantFrom("__proto__=1", "a", "&&", "page", "=1", "constructor[prototype]=1").map((text) => [text]),
  );
  const query = fc
    .tuple(...queries, unknownQuery)
    .map((parts) => parts.flat().join("&"))
    .map((text) => (text === "" ? "" : `?${text}`));

  const schema = requestBody?.content["application/json"]?.schema;
  const good = schema === undefined ? fc.jsonValue({ maxDepth: 2 }) : valuesOf(document, schema, known);
  const asText = (value: unknown) => JSON.stringify(value);
  const body = fc.oneof(
    ...(schema === undefined ? [{ weight: 4, arbitrary: fc.constant(undefined) }] : []),
    { weight: 4, arbitrary: good.map(asText) },
    { weight: 4, arbitrary: broken(good).map(asText) },
    strangeBodies,
    fc.constant(undefined),
  );

  const token = fc.oneof({ weight: 8, arbitrary: fc.constant("right" as const) }, fc.constantFrom(...tokenKinds));
  return fc.record({
    path: fc.tuple(fc.tuple(...segments), query).map(([words, rest]) => words.join("/") + rest),
    token,
    headers: strangeHeaders,
    body,
  });
}
