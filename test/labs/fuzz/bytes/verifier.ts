import { createHmac, createPublicKey, verify } from "node:crypto";
import type { ReceivedRequest } from "../../../support/receiver.ts";
import type { TestAccount, TestApp } from "../../../support/test-app.ts";

/** A receiver that knows its sender: the published key, and the secret that the account shows. */
export interface Verifier {
  /** Throws when one of the three signatures is not over the very bytes that came (rules, section 8, "Signature"). */
  check(request: ReceivedRequest): void;
}

export async function createVerifier(server: TestApp, account: TestAccount): Promise<Verifier> {
  const { keys } = (await server.request("GET", `/v1/tenants/${account.id}/jwks.json`)).body;
  const { secret } = (await account.get("/v1/tenants/signing-secret")).body;
  const publicKey = createPublicKey({ key: keys[0], format: "jwk" });
  const secretBytes = Buffer.from(secret.slice("whsec_".length), "base64");
  const isSigned = (content: Buffer, signature: string) =>
    verify(null, content, publicKey, Buffer.from(signature, "base64"));

  return {
    check({ headers, body }) {
      const head = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.`;
      const content = Buffer.concat([Buffer.from(head), body]);
      const hmac = createHmac("sha256", secretBytes).update(content).digest("base64");
      const [shared = "", own = "", ...more] = headers.get("webhook-signature")?.split(" ") ?? [];
      const isValid =
        headers.get("service-key-id") === keys[0].kid &&
        isSigned(body, headers.get("service-signature") ?? "") &&
        shared === `v1,${hmac}` &&
        own.startsWith("v1a,") &&
        isSigned(content, own.slice("v1a,".length)) &&
        more.length === 0;
      if (!isValid) throw new Error(`Not signed as it came: ${JSON.stringify([...headers])}\n${body}`);
    },
  };
}
