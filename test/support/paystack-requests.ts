/** What a request to Paystack must look like, field by field; Paystack's documentation is the source of every rule. */

export type Operation = "initialize" | "verify" | "charge" | "refund" | "deactivate";

export type Fields = Readonly<Record<string, unknown>>;

export interface ArrivedRequest {
  readonly method: string;
  /** With the query, exactly as in the request line. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface CheckedRequest {
  /** Null for a method and a path that Paystack does not have, or that we have no business using. */
  readonly operation: Operation | null;
  /** For verify only, decoded. */
  readonly reference: string;
  /** From the body. */
  readonly fields: Fields;
  /** What is wrong with it, one sentence each; empty for a valid request. */
  readonly problems: readonly string[];
}

/** A rule for a field: what is wrong with the value, or null. */
type Rule = (value: unknown) => string | null;

interface Shape {
  readonly required: Readonly<Record<string, Rule>>;
  readonly optional?: Readonly<Record<string, Rule>>;
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const matches =
  (pattern: RegExp, what: string): Rule =>
  (value) =>
    typeof value === "string" && pattern.test(value) ? null : `is not ${what}`;

const oneOf =
  (...allowed: readonly unknown[]): Rule =>
  (value) =>
    allowed.includes(value) ? null : `is not one of ${JSON.stringify(allowed)}`;

/** The documented set has no underscore. Nothing says how long a reference may be; 64 is known to work. */
const reference = matches(/^[A-Za-z0-9.=-]{1,64}$/, "a reference of 1 to 64 letters, digits, `-`, `.` and `=`");
const email = matches(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, "an e-mail address");
const token = matches(/^AUTH_[a-z0-9]+$/, "an authorization code");

/** Kobo. Less than 50 NGN is not charged. */
const amount: Rule = (value) => {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return "is not a whole number";
  return value < 5_000 ? "is less than 50 NGN" : null;
};

const refundAmount: Rule = (value) =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? null : "is not a whole number above 0";

const webAddress: Rule = (value) =>
  typeof value === "string" && URL.canParse(value) && /^https?:\/\//.test(value) ? null : "is not an absolute URL";

/** Paystack appends a query of its own, and a mix of both has been seen to arrive broken. */
const returnAddress: Rule = (value) =>
  webAddress(value) ?? (new URL(String(value)).search === "" ? null : "has a query of its own");

/** The part of the metadata that is ours. Nothing in it may reveal who the tenant is. */
const metadata: Rule = (value) =>
  isFields(value)
    ? problemsOf(value, {
        required: { purpose: matches(/^[a-z_]+$/, "a word") },
        optional: {
          cancel_action: webAddress,
          custom_filters: (filters) =>
            isFields(filters)
              ? (problemsOf(filters, { required: { recurring: oneOf(true) } })[0] ?? null)
              : "is no object",
        },
      }).join("; ") || null
    : "is not a JSON object";

const metadataAsText: Rule = (value) => {
  if (typeof value !== "string") return "is not a string";
  const parsed = parseJson(Buffer.from(value));
  return parsed === undefined ? "is not JSON in a string" : metadata(parsed);
};

const routes: readonly { operation: Operation; method: string; path: RegExp; shape: Shape | null }[] = [
  {
    operation: "initialize",
    method: "POST",
    path: /^\/transaction\/initialize$/,
    shape: {
      required: {
        email,
        amount,
        currency: oneOf("NGN"),
        reference,
        callback_url: returnAddress,
        channels: (value) => (JSON.stringify(value) === '["card"]' ? null : 'is not ["card"]'),
        metadata,
      },
    },
  },
  { operation: "verify", method: "GET", path: /^\/transaction\/verify\/([^/]+)$/, shape: null },
  {
    operation: "charge",
    method: "POST",
    path: /^\/transaction\/charge_authorization$/,
    shape: {
      required: {
        email,
        amount,
        currency: oneOf("NGN"),
        authorization_code: token,
        reference,
        callback_url: returnAddress,
      },
      optional: { metadata: metadataAsText },
    },
  },
  {
    operation: "refund",
    method: "POST",
    path: /^\/refund$/,
    shape: {
      required: { transaction: reference, amount: refundAmount },
      optional: {
        currency: oneOf("NGN"),
        merchant_note: matches(/./, "a text"),
        customer_note: matches(/./, "a text"),
      },
    },
  },
  {
    operation: "deactivate",
    method: "POST",
    path: /^\/customer\/authorization\/deactivate$/,
    shape: { required: { authorization_code: token } },
  },
];

/** Checks everything about a request except the key itself, which a test may get wrong on purpose. */
export function checkRequest({ method, target, headers, body }: ArrivedRequest): CheckedRequest {
  const route = routes.find(({ method: wanted, path }) => wanted === method && path.test(target));
  const problems = problemsOfHead(headers);
  if (!route) {
    return { operation: null, reference: "", fields: {}, problems: [...problems, "There is no such method and path"] };
  }
  if (route.shape === null) {
    const written = route.path.exec(target)?.[1] ?? "";
    const asked = decodeReference(written);
    const problem = reference(asked);
    if (problem) problems.push(`The reference in the path ${problem}`);
    if (encodeURIComponent(asked) !== written) problems.push("The reference in the path is not URL-encoded");
    if (body.length > 0) problems.push("A GET has a body");
    return { operation: route.operation, reference: asked, fields: {}, problems };
  }
  if (!/^application\/json(; ?charset=utf-8)?$/i.test(String(headers["content-type"]))) {
    problems.push("The content type is not application/json");
  }
  const fields = parseJson(body);
  if (!isFields(fields)) problems.push("The body is not a JSON object");
  else problems.push(...problemsOf(fields, route.shape));
  return { operation: route.operation, reference: "", fields: isFields(fields) ? fields : {}, problems };
}

function problemsOfHead(headers: ArrivedRequest["headers"]): string[] {
  const problems: string[] = [];
  if (!/^Bearer sk_(live|test)_\w+$/.test(String(headers.authorization))) {
    problems.push("The Authorization header is not `Bearer` and a secret key");
  }
  if (headers["idempotency-key"] !== undefined) problems.push("Paystack does not know an Idempotency-Key");
  return problems;
}

function problemsOf(fields: Fields, { required, optional = {} }: Shape): string[] {
  const rules = { ...required, ...optional };
  const missing = Object.keys(required).filter((name) => !(name in fields));
  const wrong = Object.entries(fields).map(([name, value]) => {
    const rule = rules[name];
    const problem = rule ? rule(value) : "is not a field that may be sent";
    return problem && `${name} ${problem}`;
  });
  return [...missing.map((name) => `${name} is missing`), ...wrong.filter((problem) => problem !== null)];
}

function decodeReference(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}

/** @returns undefined for what is not JSON */
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}
