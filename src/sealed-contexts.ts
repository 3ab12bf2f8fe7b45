import { cardContext } from "./billing/card-vault.ts";
import { headersContext } from "./delivery/own-headers.ts";
import { signingSecretContext } from "./delivery/signers.ts";
import { keyContext } from "./domain/credentials.ts";
import type { SealedContexts } from "./store/sealed.ts";

/** The context for which each feature seals its values. */
export const sealedContexts: SealedContexts = {
  key: keyContext,
  signingSecret: signingSecretContext,
  headers: headersContext,
  card: cardContext,
};
