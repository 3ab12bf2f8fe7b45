import { createHmac } from "node:crypto";
import { encodeBase32 } from "../lib/id.ts";

/** Where inboxes are, below the public URL. They take no requests from outside (`sealedPaths` in `api.ts`). */
export const inboxPath = "/inbox/";

/** 128 bits: nobody can guess the inbox of another account. */
const tokenBytes = 16;

/** Which inbox is whose (rules, section 9). */
export interface InboxAddresses {
  /** The inbox of an account: stable for as long as the data directory and the public URL stay the same. */
  urlOf(tenantId: string): string;
  /** Whether a URL is the inbox of this very account, as that exact string. */
  isInboxOf(tenantId: string, url: string): boolean;
}

export interface InboxAddressDeps {
  /** Tokens are derived from it and the tenant's id, so that nothing has to be stored for them. */
  secret: Uint8Array;
  baseUrl(): string;
}

export function createInboxAddresses({ secret, baseUrl }: InboxAddressDeps): InboxAddresses {
  function urlOf(tenantId: string): string {
    const digest = createHmac("sha256", secret).update(tenantId).digest();
    return `${baseUrl()}${inboxPath}${encodeBase32(digest.subarray(0, tokenBytes))}`;
  }

  return {
    urlOf,
    // Every delivery passes through here, and nearly all go elsewhere: for those, this costs no more than comparing the
    // prefix.
    isInboxOf: (tenantId, url) => url.startsWith(baseUrl()) && url === urlOf(tenantId),
  };
}
