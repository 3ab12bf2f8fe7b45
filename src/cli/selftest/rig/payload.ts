import type { Random } from "../../../lib/random.ts";

/** Members of a JSON object that a relay alters if it parses and re-serialises them. */
const delicate = [
  '"big":123456789012345678901234567890',
  '"one":1.0',
  '"exponent":-1E+2',
  '"escaped":"\\u00e9\\/\\ud83d\\ude00\\n"',
  '"raw":"é 漢字 🚀 \u2028"',
  '"twice":1,"twice":2',
  '"__proto__":{"polluted":null}',
  '"spaced" : [ 1 ,\n\t2 ]',
  '"":""',
  '"nested":{"payload":{"eventId":"evt_"},"deep":[[[[]]]]}',
] as const;

/** Some payloads are larger than a database page, so that writing one has parts that a crash can tear. */
const largeShare = 0.03;

/** The text of a JSON object that nobody else has sent, because it contains `n`. */
export function createPayload(random: Random, n: number): Buffer {
  const members = [`"n":${n}`];
  for (let left = random.between(1, 4); left > 0; left--) members.push(random.pick(delicate));
  const filler = random.chance(largeShare) ? random.between(5_000, 20_000) : random.between(0, 800);
  if (filler > 0) members.push(`"filler":"${"x".repeat(filler)}"`);
  return Buffer.from(`{${members.join(random.chance(0.5) ? "," : " , ")}}`);
}
