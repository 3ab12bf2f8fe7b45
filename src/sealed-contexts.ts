import { cardContext } from "./billing/card-vault.ts";
import { headersContext } from "./delivery/own-headers.ts";
import { signingSecretContext } from "./delivery/signers.ts";
import { keyContext } from "./domain/credentials.ts";
import type { SealedContexts } from "./store/sealed.ts";

/** What each room seals its values for. */
export const sealedContexts: SealedContexts = {
  key: keyContext,
  signingSecret: signingSecretContext,
  headers: headersContext,
  card: cardContext,
};
