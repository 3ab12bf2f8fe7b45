/**
 * The variable that names the proxy which `fetch` takes to a server on another machine; null: it connects directly. For
 * messages: whoever reads that a connection was refused has to know whose.
 */
export function proxyVariableFor(url: string, env: Readonly<Record<string, string | undefined>>): string | null {
  const { protocol, hostname, host } = new URL(url);
  const scheme = protocol.slice(0, -1);
  const name = [`${scheme}_proxy`, `${scheme}_proxy`.toUpperCase()].find((each) => env[each]);
  if (name === undefined) return null;
  const exempt = (env.no_proxy || env.NO_PROXY || "").split(",").map((entry) => entry.trim().replace(/^\./, ""));
  const isExempt = (entry: string) =>
    entry !== "" && (entry === "*" || entry === host || entry === hostname || hostname.endsWith(`.${entry}`));
  return exempt.some(isExempt) ? null : name;
}
