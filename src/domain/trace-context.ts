/**
 * The trace that an event belongs to, as its ingestion named it (W3C Trace Context): `traceparent`, and on its own line
 * `tracestate` if there is one. It is kept with the event and sent unchanged with its deliveries. It is a courtesy, not a
 * rule: anything invalid is left out, and is not an error.
 */
export type TraceContext = string;

/** Section 3.2: version, trace, parent and flags. A later version may append more. */
const parentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[\x21-\x7e]*)?$/;
const invalidVersion = "ff";
const zeros = /^0+$/;

/** Section 3.3.1.5 requires everyone to pass on at least this much; the parent's bound is ours. */
const maxStateLength = 512;
const maxParentLength = 256;
const maxMembers = 32;

const memberPattern =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The trace that these headers name; null: none, or none that is valid. */
export function readTrace(traceparent: string | null, tracestate: string | null): TraceContext | null {
  if (traceparent === null || !isParent(traceparent)) return null;
  return tracestate !== null && isState(tracestate) ? `${traceparent}\n${tracestate}` : traceparent;
}

/** The trace itself, without the parent's part of it; null: none. */
export const traceIdOf = (trace: TraceContext | null): string | null => trace?.slice(3, 35) ?? null;

/** The headers of a delivery. */
export function traceHeaders(trace: TraceContext | null): Record<string, string> {
  if (trace === null) return {};
  const [traceparent = "", tracestate] = trace.split("\n");
  return { traceparent, ...(tracestate !== undefined && { tracestate }) };
}

function isParent(text: string): boolean {
  if (text.length > maxParentLength) return false;
  const [, version, traceId = "", parentId = "", more] = parentPattern.exec(text) ?? [];
  if (version === undefined || version === invalidVersion) return false;
  const isOfItsVersion = version !== "00" || more === undefined;
  return isOfItsVersion && !zeros.test(traceId) && !zeros.test(parentId);
}

/** A list that is invalid says nothing about any of its members. */
function isState(text: string): boolean {
  if (text.length > maxStateLength) return false;
  const members = text
    .split(",")
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf("="))));
  const isList = members.length > 0 && members.length <= maxMembers && keys.size === members.length;
  return isList && members.every((member) => memberPattern.test(member));
}
