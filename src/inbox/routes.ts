import { type ErasedEndpoint, endpoint, noContent, ok } from "../http/endpoint.ts";
import { invalidRequest } from "../http/error-models.ts";
import { listReply } from "../http/list-reply.ts";
import type { Store } from "../store/store.ts";
import { type AccountHub, announceChange } from "../stream/account-change.ts";
import type { InboxAddresses } from "./addresses.ts";
import { defaultAnswer } from "./inbox.ts";
import * as m from "./model.ts";

export interface InboxRouteDeps {
  store: Pick<Store, "inboxAnswer" | "setInboxAnswer" | "inboxDeliveries" | "emptyInbox">;
  addresses: Pick<InboxAddresses, "urlOf">;
  hub: Pick<AccountHub, "publish">;
}

const tag = "Inbox";

export function inboxRoutes({ store, addresses, hub }: InboxRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/inbox",
        tag,
        summary: "Read what the inbox received",
        description:
          "The newest first. The last 100 are kept. `before`, with the id of the last one of a page, leads to the next " +
          "page; `after`, with the id of the newest one that is known, leads to those that have come since.",
        access: "session",
        query: m.inboxQuery,
        responses: {
          200: { description: "The inbox.", schema: m.inboxBody, example: m.inboxExample },
          400: invalidRequest("size must be at most 100."),
        },
      },
      async ({ tenant, query: { size, after, before } }) => {
        const answer = (await store.inboxAnswer(tenant.key)) ?? defaultAnswer;
        const { deliveries, total } = await store.inboxDeliveries(tenant.key, {
          limit: size,
          ...(after !== undefined && { after }),
          ...(before !== undefined && { before }),
        });
        const url = JSON.stringify(addresses.urlOf(tenant.id));
        return listReply({
          before: `{"url":${url},"answer":${JSON.stringify(m.toAnswerBody(answer))},"deliveries":[`,
          entries: deliveries,
          write: m.deliveryPieces,
          after: `],"total":${total}}`,
        });
      },
    ),

    endpoint(
      {
        method: "PUT",
        path: "/v1/inbox/answer",
        tag,
        summary: "Say how the inbox answers",
        description:
          "For seeing what becomes of a delivery that is refused, answered late or not at all. A field that is left out " +
          "gets its default.",
        access: "session",
        body: m.answerBody,
        bodyExample: m.answerExample,
        responses: {
          200: { description: "How it answers from now on.", schema: m.savedAnswer, example: m.answerExample },
          400: invalidRequest("status must be at least 200."),
        },
      },
      async ({ tenant, body: { status, delay_ms: delayMs, silent } }) => {
        const answer = { status, delayMs, silent };
        await store.setInboxAnswer(tenant.key, answer);
        announceChange(hub, tenant, "inbox");
        return ok(m.toAnswerBody(answer));
      },
    ),

    endpoint(
      {
        method: "DELETE",
        path: "/v1/inbox/deliveries",
        tag,
        summary: "Empty the inbox",
        description: "What became of the deliveries stays in the events' records.",
        access: "session",
        responses: { 204: { description: "It is empty." } },
      },
      async ({ tenant }) => {
        await store.emptyInbox(tenant.key);
        announceChange(hub, tenant, "inbox");
        return noContent();
      },
    ),
  ];
}
