const before = '"payload":';

/**
 * The payload in the body of a delivery: exactly the text that was submitted. Parsing and rewriting it would lose big
 * integers, `1.0`, repeated keys and white space. The fields before it hold no text from the tenant, and nothing comes
 * after it (rules, section 8).
 */
export function payloadOf(body: string): string {
  const begin = body.indexOf(before);
  if (begin < 0) throw new Error("The delivery has no payload");
  return body.slice(begin + before.length, body.lastIndexOf("}"));
}
