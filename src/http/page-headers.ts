/**
 * Headers of a page for people. Nothing comes from another host, no page may be framed, and no other page learns which
 * address a visitor comes from: payment addresses contain a secret.
 * @param sources what the page needs beyond that, by directive of the Content Security Policy (level 3)
 */
export function pageHeaders(sources: Readonly<Record<string, string>>): Record<string, string> {
  const policy = {
    "default-src": "'none'",
    "img-src": "data:",
    "form-action": "'none'",
    ...sources,
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
  };
  return {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": Object.entries(policy)
      .map(([directive, source]) => `${directive} ${source}`)
      .join("; "),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  };
}
