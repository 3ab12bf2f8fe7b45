import { type Config, loadConfig } from "../config.ts";
import {
  type AddressPolicy,
  type AddressVerdict,
  createAddressPolicy,
  literalIn,
  literalInUrl,
} from "../delivery/network/address.ts";
import { ownListenersOf } from "../delivery/network/own-listeners.ts";
import { createResolver } from "../delivery/network/resolver.ts";
import { createSurroundings } from "../delivery/network/surroundings.ts";
import { isLoopbackHost } from "../lib/cidr.ts";
import { systemClock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { type Command, jsonFlag, settingFlags } from "./command.ts";
import { exitCode, type Io } from "./io.ts";
import { createStyle } from "./style.ts";
import { formatTable, plainText } from "./table.ts";

/** What the server would say about a webhook URL, and why. */
interface Report {
  url: string;
  allowed: boolean;
  mode: "local" | "public";
  /** The rule that refuses the URL, its name's resolution or one of its addresses. */
  rule: string | null;
  /** One sentence. */
  reason: string;
  /** What would be dialled; empty when the URL is refused as text, or a proxy dials. */
  addresses: AddressReport[];
}

interface AddressReport {
  address: string;
  allowed: boolean;
  rule: string | null;
}

export const checkUrlCommand: Command = {
  words: ["check-url"],
  operands: ["URL"],
  flags: [jsonFlag, ...settingFlags],
  summary: "Explain whether deliveries to a URL are allowed",
  details: `Checks the URL, resolves its host and checks every address, with the settings the server would
use. Exit code 0: deliveries are allowed. 1: they are not.`,
  async run({ operands: [url = ""], flags }, io) {
    const report = await examine(url, loadConfig(io.env, flags));
    io.out(flags.has("--json") ? JSON.stringify(report) : forPeople(report, io));
    return report.allowed ? exitCode.ok : exitCode.failed;
  },
};

async function examine(input: string, config: Config): Promise<Report> {
  const surroundings = createSurroundings({ clock: systemClock, dnsServers: config.dnsServers });
  try {
    const ownListeners = ownListenersOf(config, config.port);
    return await judge(input, config, createAddressPolicy({ ...config, ownListeners }, surroundings));
  } finally {
    surroundings.close();
  }
}

async function judge(input: string, config: Config, policy: AddressPolicy): Promise<Report> {
  const mode = config.localMode ? "local" : "public";
  await policy.learn([literalInUrl(input) ?? ""]);
  const asText = policy.checkUrl(input);
  if (!asText.ok) {
    const reason = `webhook_url ${asText.message}.`;
    return { url: input, allowed: false, mode, rule: asText.rule, reason, addresses: [] };
  }
  const { hostname } = asText.url;
  if (config.deliveryProxy !== null && literalIn(hostname) === undefined && !isLoopbackHost(hostname)) {
    const reason =
      "The name is allowed; the proxy of POSTRIDER_DELIVERY_PROXY resolves it and decides about its addresses.";
    return { url: input, allowed: true, mode, rule: null, reason, addresses: [] };
  }
  const found = await addressesOf(asText.url, config);
  if (typeof found === "string") {
    const reason = `The host cannot be resolved: ${found}.`;
    return { url: input, allowed: false, mode, rule: "host_unresolved", reason, addresses: [] };
  }
  await policy.learn(found);
  return { url: input, mode, ...judgeAddresses(found, asText.url, policy) };
}

/** A single refused address refuses the URL: a name must not lead to the internal network some of the time. */
function judgeAddresses(addresses: readonly string[], url: URL, policy: AddressPolicy) {
  const verdicts = addresses.map((address) => ({ address, verdict: policy.checkAddress(address, url) }));
  const refused = verdicts.find(({ verdict }) => !verdict.ok)?.verdict;
  const isRefused = refused !== undefined && !refused.ok;
  return {
    allowed: !isRefused,
    rule: isRefused ? refused.rule : null,
    reason: isRefused ? `webhook_url ${refused.message}.` : "Deliveries to this URL are allowed.",
    addresses: verdicts.map(({ address, verdict }) => ({ address, allowed: verdict.ok, rule: ruleOf(verdict) })),
  };
}

const ruleOf = (verdict: AddressVerdict) => (verdict.ok ? null : verdict.rule);

/** The addresses that a delivery would find; a string with the reason when it would find none. */
async function addressesOf(url: URL, { dnsServers }: Config): Promise<readonly string[] | string> {
  const literal = literalIn(url.hostname);
  if (literal !== undefined) return [literal];
  const resolver = createResolver({ clock: systemClock, dnsServers });
  try {
    return await resolver.resolve(url.hostname);
  } catch (error) {
    return messageOf(error);
  } finally {
    resolver.close();
  }
}

function forPeople({ url, allowed, mode, reason, rule, addresses }: Report, io: Io): string {
  const style = createStyle(io);
  const word = (yes: boolean) => (yes ? "allowed" : "refused");
  const verdict = allowed ? style.good(word(true)) : style.bad(word(false));
  const lines = [`${verdict}  ${plainText(url)}`, `  ${reason}`];
  if (rule !== null) lines.push(style.faint(`  Rule ${rule}, in ${mode} mode.`));
  if (addresses.length > 0) {
    const rows = addresses.map((each) => [each.address, word(each.allowed), each.rule ?? ""]);
    lines.push("", formatTable(["address", "verdict", "rule"], rows, style).replace(/^/gm, "  "));
  }
  return lines.join("\n");
}
