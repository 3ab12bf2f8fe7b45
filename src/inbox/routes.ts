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
  hub: AccountHub;
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
          "Newest first; the latest 100 are kept, none longer than the payload of its event. For the next page, set `before` to the " +
          "id of the last delivery on this one; to poll, set `after` to the id of the latest delivery you have.",
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
        summary: "Set how the inbox responds",
        description:
          "Use it to see how a delivery that is refused, answered late or never answered is handled. Omitted fields get their " +
          "defaults.",
        access: "session",
        body: m.answerBody,
        bodyExample: m.answerExample,
        responses: {
          200: { description: "How it responds from now on.", schema: m.savedAnswer, example: m.answerExample },
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
        description: "The outcome of the deliveries stays in the event records.",
        access: "session",
        responses: { 204: { description: "The inbox is empty." } },
      },
      async ({ tenant }) => {
        await store.emptyInbox(tenant.key);
        announceChange(hub, tenant, "inbox");
        return noContent();
      },
    ),
  ];
}
