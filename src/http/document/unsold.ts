/** A value of a JSON document. */
type Json = unknown;

const isSoldField = (name: string) => name.startsWith("payment_");
const paymentRequired = "402";

/**
 * The document of a server that sells nothing, without what exists only for payments: the `payment_…` fields of schemas and
 * examples, and the 402 response. Endpoints that are about payments as a whole declare it themselves (`sells`).
 */
export function withoutSales(value: Json, key = ""): Json {
  if (Array.isArray(value)) {
    const kept = key === "required" ? value.filter((name) => !isSoldField(String(name))) : value;
    return kept.map((one) => withoutSales(one));
  }
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(
    ([name]) => !isSoldField(name) && !(key === "responses" && name === paymentRequired),
  );
  return Object.fromEntries(fields.map(([name, one]) => [name, withoutSales(one, name)]));
}
