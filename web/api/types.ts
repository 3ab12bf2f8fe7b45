import type * as v from "valibot";
import type { about, aboutWithPlans } from "../../src/accounts/about-routes.ts";
import type { apiKeyRecord, jwkSet, signingSecret } from "../../src/accounts/credential-model.ts";
import type { accountInfo, authenticated, createdTenant, upgraded } from "../../src/accounts/model.ts";
import type { auditPage } from "../../src/audit/model.ts";
import type { billing, paymentMethod } from "../../src/billing/model.ts";
import type { attemptBody } from "../../src/events/attempt-model.ts";
import type { failuresBody } from "../../src/events/failure-model.ts";
import type { deliveryBody, pageBody, recordBody, statsBody } from "../../src/events/model.ts";
import type { inboxBody, savedAnswer } from "../../src/inbox/model.ts";
import type { previewedBody, replayBody, replayListBody } from "../../src/replays/model.ts";
import type {
  savedWebhooks,
  testedBody,
  webhookEntries,
  webhookHealthList,
  webhookList,
} from "../../src/webhooks/model.ts";

/** What the server responds with, in the same types by which it checks and documents its responses. */

export type About = v.InferOutput<typeof about> & Partial<v.InferOutput<typeof aboutWithPlans>>;
export type Account = v.InferOutput<typeof accountInfo>;
export type CreatedTenant = v.InferOutput<typeof createdTenant>;
export type Authenticated = v.InferOutput<typeof authenticated>;
export type Upgraded = v.InferOutput<typeof upgraded>;
export type PaymentMethod = v.InferOutput<typeof paymentMethod>;
export type Billing = v.InferOutput<typeof billing>;
export type AuditPage = v.InferOutput<typeof auditPage>;
export type ApiKey = v.InferOutput<typeof apiKeyRecord>;
export type JwkSet = v.InferOutput<typeof jwkSet>;
export type SigningSecret = v.InferOutput<typeof signingSecret>;
export type EventRecord = v.InferOutput<typeof recordBody>;
export type EventPage = v.InferOutput<typeof pageBody>;
export type Failures = v.InferOutput<typeof failuresBody>;
export type Delivery = v.InferOutput<typeof deliveryBody>;
export type Stats = v.InferOutput<typeof statsBody>;
export type Attempt = v.InferOutput<typeof attemptBody>;
export type Tested = v.InferOutput<typeof testedBody>;
export type Webhook = v.InferOutput<typeof webhookList>[number];
export type WebhookHealth = v.InferOutput<typeof webhookHealthList>[number];
export type SavedWebhook = v.InferOutput<typeof savedWebhooks>[number];
export type SavedSettings = v.InferInput<typeof webhookEntries>[number];
export type Replay = v.InferOutput<typeof replayBody>;
export type ReplayPage = v.InferOutput<typeof replayListBody>;
export type Inbox = v.InferOutput<typeof inboxBody>;
export type InboxDelivery = Inbox["deliveries"][number];
export type InboxAnswer = v.InferOutput<typeof savedAnswer>;
export type Previewed = v.InferOutput<typeof previewedBody>;
