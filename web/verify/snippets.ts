import goReceiver from "./receiver.go.txt" with { type: "text" };
import javaScriptReceiver from "./receiver.mjs.txt" with { type: "text" };
import pythonReceiver from "./receiver.py.txt" with { type: "text" };
import type { PublishedKey } from "./verify-delivery.ts";

export interface Snippet {
  readonly language: "JavaScript" | "Python" | "Go";
  /** A suggested file name. */
  readonly file: string;
  readonly code: string;
}

export interface SnippetValues {
  /** Address of the tenant's key set. */
  jwksUrl: string;
  publicKeys: readonly PublishedKey[];
  /** The key that currently signs. */
  keyId: string;
  /** Filled in only when given: users who have not asked to see the secret do not see it. */
  signingSecret?: string | undefined;
  /** Where the receiver listens. @default 9000 */
  port?: number;
}

/**
 * The receivers of `docs/receivers.md` (their text is in the files next to this one) with a tenant's values in place of
 * environment variables, so that they run as pasted. Without the secret, the receiver that needs it reads it from the
 * environment.
 */
export function snippets({ jwksUrl, publicKeys, keyId, signingSecret, port = 9000 }: SnippetValues): Snippet[] {
  const comment = `${describeKey(keyId, publicKeys)} Keys rotate, so the set is fetched.`;
  const hasSecret = signingSecret !== undefined;
  return [
    {
      language: "JavaScript",
      file: "receiver.mjs",
      code: `// ${comment}\n${fill(javaScriptReceiver, [
        ["process.env.JWKS_URL", JSON.stringify(jwksUrl)],
        ["Number(process.env.PORT)", String(port)],
      ])}`,
    },
    {
      language: "Python",
      file: "receiver.py",
      code: fill(pythonReceiver, [
        ...(hasSecret
          ? ([
              ['os.environ["SIGNING_SECRET"]', JSON.stringify(signingSecret)],
              [" os,", ""],
            ] as const)
          : []),
        ['int(os.environ["PORT"])', String(port)],
      ]),
    },
    {
      language: "Go",
      file: "receiver.go",
      code: `// ${comment}\n${fill(goReceiver, [
        ['os.Getenv("JWKS_URL")', JSON.stringify(jwksUrl)],
        ['"127.0.0.1:"+os.Getenv("PORT")', JSON.stringify(`127.0.0.1:${port}`)],
        // An unused import is an error in Go.
        ['\t"os"\n', ""],
      ])}`,
    },
  ];
}

function describeKey(keyId: string, publicKeys: readonly PublishedKey[]): string {
  const key = publicKeys.find(({ kid }) => kid === keyId);
  const said = key ? ` (Ed25519, x: ${plain(key.x)})` : "";
  return `Deliveries are currently signed by ${plain(keyId)}${said}.`;
}

/** What may appear in a comment: nothing that could end it. */
const plain = (text: string) => text.replace(/[^\w.-]/g, "");

function fill(template: string, values: readonly (readonly [from: string, to: string])[]): string {
  return values.reduce((code, [from, to]) => {
    if (!code.includes(from)) throw new Error(`The receiver does not have ${from} in it`);
    return code.replace(from, () => to);
  }, template);
}
