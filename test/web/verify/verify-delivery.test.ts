import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { buildRequest } from "../../../src/delivery/request.ts";
import {
  generateSecret,
  generateSigningKey,
  importPrivateKey,
  jwk,
  secretBytes,
} from "../../../src/delivery/signature.ts";
import { encodeEventId } from "../../../src/lib/id.ts";
import { type Finding, type PastedDelivery, verifyDelivery } from "../../../web/verify/verify-delivery.ts";

/** Deliveries as the server signs them, and each kind of tampering with them. */

const nowMs = Date.UTC(2026, 10, 21, 13, 2, 11, 482);
const payload = '{ "it\'s" : "é 🚀", "n":12345678901234567890, "one":1.0 }';

function tenant(keyId: string) {
  const { publicKey, privateSeed } = generateSigningKey();
  const secret = generateSecret();
  const material = { keyId, privateKey: importPrivateKey(privateSeed), secrets: [secretBytes(secret)] };
  return { secret, material, key: jwk(publicKey, keyId) };
}

const ada = tenant("sk_ada");
const eve = tenant("sk_eve");

function deliver({ material } = ada, text = payload): { headers: Record<string, string>; body: string } {
  const eventSeq = nowMs * 2048;
  const delivery = {
    ...{ deliveryKey: 1, tenantKey: 1, tenantId: "t1", webhookKey: 1, url: "https://shop.example/hook", eventSeq },
    ...{ eventId: encodeEventId(eventSeq, new Uint8Array([0x80, 1, 2, 3, 4, 5, 6, 7])), payload: Buffer.from(text) },
    ...{ trace: null, run: 1, attemptsInRun: 0, attempts: 0, replayKey: null, replayGroupId: null },
  };
  const { headers, body } = buildRequest(delivery, material, nowMs);
  return { headers, body: body.toString() };
}

const linesOf = (headers: Record<string, string>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");

const genuine = deliver();

function verify(changes: Partial<PastedDelivery> = {}): Finding[] {
  return verifyDelivery({
    headers: linesOf(genuine.headers),
    body: genuine.body,
    jwks: { keys: [ada.key] },
    signingSecret: ada.secret,
    nowMs,
    ...changes,
  });
}

const withHeaders = (changes: Record<string, string | undefined>) => {
  const changed = Object.entries({ ...genuine.headers, ...changes });
  return {
    headers: linesOf(Object.fromEntries(changed.filter((entry): entry is [string, string] => entry[1] !== undefined))),
  };
};

/** The four verdicts in a line: Service-Signature, v1, v1a, timestamp. */
const verdicts = (findings: readonly Finding[]) => findings.map(({ verdict }) => verdict).join(" ");
const messages = (findings: readonly Finding[]) => findings.map(({ message }) => message);

const allValid = "valid valid valid valid";

test("a delivery as the server signs it is valid in each of its four points", () => {
  const findings = verify();
  expect(verdicts(findings)).toBe(allValid);
  expect(findings.map(({ check }) => check)).toEqual([
    "service-signature",
    "webhook-signature-v1",
    "webhook-signature-v1a",
    "webhook-timestamp",
  ]);
  expect(messages(findings)).toEqual([
    "Service-Signature matches the body and the key sk_ada.",
    "The v1 signature matches the body and this secret.",
    "The v1a signature matches the body and the key sk_ada.",
    "The delivery was sent just now.",
  ]);
});

test("it takes no WebCrypto, nor anything else that pages on plain http do without", async () => {
  const entrypoint = join(import.meta.dir, "../../../web/verify/verify-delivery.ts");
  const { outputs } = await Bun.build({ entrypoints: [entrypoint], target: "browser", format: "cjs" });
  const exported: { verifyDelivery?: typeof verifyDelivery } = {};
  const page = { module: { exports: exported }, exports: exported, TextEncoder, Uint8Array, atob, btoa };
  runInNewContext(await (outputs[0]?.text() ?? ""), page);
  const verifyInPage = page.module.exports.verifyDelivery;
  if (!verifyInPage) throw new Error("the bundle exports it");
  const { headers, body } = genuine;
  const pasted = { headers: linesOf(headers), body, jwks: { keys: [ada.key] }, signingSecret: ada.secret, nowMs };
  expect(verdicts(verifyInPage(pasted))).toBe(allValid);
});

test.each(["{}", `{"a":"${"é".repeat(120_000)}"}`, '{"a":"\\u0000\\ud83d"}'])(
  "so is one of another payload",
  (text) => {
    const { headers, body } = deliver(ada, text);
    expect(verdicts(verify({ headers: linesOf(headers), body }))).toBe(allValid);
  },
);

describe("headers are taken however they were copied", () => {
  const { headers } = genuine;
  const lines = linesOf(headers);
  const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
  const verbose = [
    "*   Trying 192.0.2.1:443...",
    "* webhook-signature: v1,AAAA",
    "> POST /hook HTTP/1.1",
    "> Host: shop.example",
    ...lines.split("\n").map((line) => `> ${line}`),
    "> ",
    "} [5 bytes data]",
    "< HTTP/1.1 204 No Content",
    "< webhook-signature: v1,AAAA",
    "< Service-Key-Id: sk_other",
  ].join("\n");
  const forms: Record<string, string> = {
    lines,
    "lines with carriage returns": lines.replaceAll("\n", "\r\n"),
    "lines with spaces around them": lines.replace(/^|$/gm, "  "),
    "lines without a space after the colon": lines.replaceAll(": ", ":"),
    "a request as it was written": `POST /hook?a=b:c HTTP/1.1\r\nHost: shop.example\r\n${lines}\r\n\r\n`,
    "names in capitals": linesOf(upper),
    "names in small letters": lines.replace(/^[^:]+/gm, (name) => name.toLowerCase()),
    "what curl -v printed": verbose,
    "a JSON object": JSON.stringify(headers),
    "a JSON object with lists": JSON.stringify(
      Object.fromEntries(Object.entries(upper).map(([name, value]) => [name, [value]])),
    ),
    "the answer of the delivery endpoint": JSON.stringify(genuine),
    "pairs in JSON": JSON.stringify(Object.entries(headers)),
    "names and values in turn, in JSON": JSON.stringify(["X-Name", "webhook-id", ...Object.entries(headers).flat()]),
    "a JSON object with a number": JSON.stringify({
      ...headers,
      "webhook-timestamp": Number(headers["webhook-timestamp"]),
    }),
  };
  test.each(Object.entries(forms))("%s", (_, text) => {
    expect(verdicts(verify({ headers: text }))).toBe(allValid);
  });

  test.each(["", "\n", "nothing: here", "null", "[]", "{}", '{"headers": null}', "{", '[["a"], 1]', "[1, 2]"])(
    "in %p there are none",
    (text) => {
      expect(verdicts(verify({ headers: text }))).toBe("missing missing missing missing");
    },
  );
});

describe("what was tampered with is told", () => {
  const other = (text = "") => (text.startsWith("A") ? "B" : "A") + text.slice(1);
  const { headers } = genuine;
  const [v1 = "", v1a = ""] = (headers["webhook-signature"] ?? "").split(" ");
  const flipped = (signature: string, version: string) => `${version},${other(signature.slice(version.length + 1))}`;
  const forged = deliver(eve);

  const rows: Record<string, [Partial<PastedDelivery>, string]> = {
    "a byte of the body": [{ body: genuine.body.replace('"one":1.0', '"one":1.1') }, "invalid invalid invalid valid"],
    "a body that was parsed and written again": [
      { body: JSON.stringify(JSON.parse(genuine.body)) },
      "invalid invalid invalid valid",
    ],
    "no body": [{ body: "" }, "invalid invalid invalid valid"],
    "the event's id": [withHeaders({ "webhook-id": "evt_other" }), "valid invalid invalid valid"],
    "the time": [
      withHeaders({ "webhook-timestamp": String(Math.floor(nowMs / 1000) - 1) }),
      "valid invalid invalid valid",
    ],
    "our signature": [
      withHeaders({ "Service-Signature": other(headers["Service-Signature"]) }),
      "invalid valid valid valid",
    ],
    "a signature that is too short": [
      withHeaders({ "Service-Signature": Buffer.alloc(63).toString("base64") }),
      "invalid valid valid valid",
    ],
    "a signature that is not base64": [withHeaders({ "Service-Signature": "nonsense!" }), "invalid valid valid valid"],
    "the signature of v1a as ours": [
      withHeaders({ "Service-Signature": v1a.slice("v1a,".length) }),
      "invalid valid valid valid",
    ],
    "the signature v1": [
      withHeaders({ "webhook-signature": `${flipped(v1, "v1")} ${v1a}` }),
      "valid invalid valid valid",
    ],
    "the signature v1a": [
      withHeaders({ "webhook-signature": `${v1} ${flipped(v1a, "v1a")}` }),
      "valid valid invalid valid",
    ],
    "a v1a that is not base64": [withHeaders({ "webhook-signature": `${v1} v1a,x` }), "valid valid invalid valid"],
    "another account's key in the set": [{ jwks: { keys: [eve.key] } }, "unknown_key valid unknown_key valid"],
    "another account's key under this one's id": [
      { jwks: { keys: [{ ...eve.key, kid: "sk_ada" }] } },
      "invalid valid invalid valid",
    ],
    "another account's secret": [{ signingSecret: eve.secret }, "valid invalid valid valid"],
    "a forgery with another key under this one's id": [
      { headers: linesOf({ ...forged.headers, "Service-Key-Id": "sk_ada" }), body: forged.body },
      "invalid invalid invalid valid",
    ],
    "a set without keys": [{ jwks: { keys: [] } }, "unknown_key valid unknown_key valid"],
    "a key that is none": [{ jwks: { keys: [{ kid: "sk_ada", x: "AAAA" }] } }, "unknown_key valid unknown_key valid"],
  };
  test.each(Object.entries(rows))("%s", (_, [changes, expected]) => {
    expect(verdicts(verify(changes))).toBe(expected);
  });

  test("a key that is not known is named", () => {
    expect(messages(verify({ jwks: { keys: [eve.key] } }))[0]).toContain("sk_ada");
  });
});

describe("what is missing is told", () => {
  const [v1, v1a] = (genuine.headers["webhook-signature"] ?? "").split(" ");
  const rows: Record<string, [Partial<PastedDelivery>, string]> = {
    "our signature": [withHeaders({ "Service-Signature": undefined }), "missing valid valid valid"],
    "Standard Webhooks' signature": [withHeaders({ "webhook-signature": undefined }), "valid missing missing valid"],
    v1: [withHeaders({ "webhook-signature": v1a }), "valid missing valid valid"],
    v1a: [withHeaders({ "webhook-signature": v1 }), "valid valid missing valid"],
    "the id": [withHeaders({ "webhook-id": undefined }), "valid missing missing valid"],
    "the time": [withHeaders({ "webhook-timestamp": undefined }), "valid missing missing missing"],
    "the secret": [{ signingSecret: undefined }, "valid not_checked valid valid"],
    "the secret, left empty": [{ signingSecret: " " }, "valid not_checked valid valid"],
    "a secret that is one": [{ signingSecret: "whsec_!" }, "valid not_checked valid valid"],
    "the head of the secret": [{ signingSecret: ada.secret.slice(6) }, "valid not_checked valid valid"],
  };
  test.each(Object.entries(rows))("%s", (_, [changes, expected]) => {
    expect(verdicts(verify(changes))).toBe(expected);
  });

  test("without the key's id every key of the set is tried", () => {
    const keys = [eve.key, ada.key];
    const findings = verify({ ...withHeaders({ "Service-Key-Id": undefined }), jwks: { keys } });
    expect(verdicts(findings)).toBe(allValid);
    expect(messages(findings)[0]).toContain("sk_ada");
    expect(verdicts(verify({ ...withHeaders({ "Service-Key-Id": undefined }), jwks: { keys: [eve.key] } }))).toBe(
      "invalid valid invalid valid",
    );
  });
});

describe("during a rotation", () => {
  const earlier = generateSecret();
  const both = deliver({
    ...ada,
    material: { ...ada.material, secrets: [...ada.material.secrets, secretBytes(earlier)] },
  });

  test.each([ada.secret, earlier, ` ${ada.secret}\n`])("one of the two secrets is enough", (signingSecret) => {
    expect(verdicts(verify({ headers: linesOf(both.headers), signingSecret }))).toBe(allValid);
  });

  test("so it is when each signature has a line of its own", () => {
    const { "webhook-signature": signatures = "", ...headers } = both.headers;
    const lines = signatures.split(" ").map((signature) => `webhook-signature: ${signature}`);
    expect(verdicts(verify({ headers: [linesOf(headers), ...lines].join("\n"), signingSecret: earlier }))).toBe(
      allValid,
    );
  });
});

describe("what pasting does to a body is found out", () => {
  test.each(["\n", "\r\n"])("a line break at its end: %j", (end) => {
    const findings = verify({ body: genuine.body + end });
    expect(verdicts(findings)).toBe("invalid invalid invalid valid");
    for (const message of messages(findings).slice(0, 3)) expect(message).toContain("without its trailing line break");
  });

  test("line breaks that became two characters", () => {
    const { headers, body } = deliver(ada, '{\n"a": 1,\n"b": 2\n}');
    const findings = verify({ headers: linesOf(headers), body: body.replaceAll("\n", "\r\n") });
    expect(messages(findings)[0]).toBe(
      "Service-Signature matches the body with LF line endings, but not as it stands here.",
    );
    expect(verdicts(verify({ headers: linesOf(headers), body }))).toBe(allValid);
  });
});

describe("the time of sending", () => {
  const minute = 60_000;
  test.each([
    [-6 * minute, "warning", "from now; one of the two clocks is wrong"],
    [-4 * minute, "valid", "just now"],
    [12_000, "valid", "12 s ago"],
    [4 * minute, "valid", "4 min ago"],
    [6 * minute, "warning", "6 min ago. Receivers refuse deliveries older than 5 min"],
    [50 * 60 * minute, "warning", "2 d 2 h ago"],
  ])("checked %p ms later is %s", (ms, verdict, words) => {
    const findings = verify({ nowMs: Math.floor(nowMs / 1000) * 1000 + ms });
    expect(verdicts(findings)).toBe(`valid valid valid ${verdict}`);
    expect(messages(findings)[3]).toContain(words);
  });

  test.each(["soon", "2026-11-21T13:02:11Z", "-1", "1.5", "9".repeat(20)])("%p is none", (time) => {
    expect(verdicts(verify(withHeaders({ "webhook-timestamp": time })))).toBe("valid invalid invalid invalid");
  });
});
