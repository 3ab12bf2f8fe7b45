import { call } from "../../api/client.ts";
import type { Delivery } from "../../api/types.ts";
import { asCurl } from "../../curl.ts";
import { hostOf } from "../../format/shorten.ts";
import { copyText } from "../../parts/copy.tsx";
import { say } from "../../parts/said.tsx";
import { server } from "../../session/server.ts";
import type { Pair } from "./record.ts";

/** Used where only the user knows the address. */
const exampleTarget = "http://localhost:3000/hook";

/**
 * The delivery as a command: what the webhook would get now, freshly signed. A message says why it names another address.
 */
export async function curlOfEvent({ eventId, targetWebhook }: Pair): Promise<string> {
  const { headers, body } = await call<Delivery>(`/v1/events/${eventId}/delivery`);
  const { url, hint } = addressOf(targetWebhook);
  if (hint !== null) say(hint);
  return asCurl({ url, headers, body });
}

/** @param webhook as people call it */
export async function copyCurl(target: Pair, webhook: string): Promise<void> {
  await copyText(await curlOfEvent(target));
  if (addressOf(target.targetWebhook).hint === null) say(`Copied as curl for ${webhook}.`);
}

function addressOf(url: string): { url: string; hint: string | null } {
  const put = `so the command uses ${exampleTarget}. Replace it with your address.`;
  if (url === "") return { url: exampleTarget, hint: `The event has no webhook, ${put}` };
  // Rules, section 9: for a request from outside, the inbox does not exist.
  const isInbox = server.value !== null && url.startsWith(`${server.value.baseUrl}/inbox/`);
  if (isInbox) return { url: exampleTarget, hint: `The inbox accepts nothing from outside, ${put}` };
  const [address = "", query] = url.split("?", 2);
  if (query === undefined) return { url, hint: null };
  return {
    url: `${address}?QUERY`,
    hint: `Copied for ${hostOf(url)} without the URL's query, which may hold a secret. Put it in the place of QUERY.`,
  };
}
