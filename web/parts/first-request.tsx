import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { asCurl } from "../curl.ts";
import { server } from "../session/server.ts";
import { Code } from "./code.tsx";
import { maskKey, Reveal } from "./secret.tsx";

/** The body of the first request. Its number shows that a payload arrives exactly as it was sent. */
export const sampleRequest = '{"payload": {"event_type": "order.created", "total": 12.50}}';

/** The first request, ready for a shell. The key is masked until it is revealed; a copy contains it whole. */
export function FirstRequest({ apiKey, children }: { apiKey: string; children?: ComponentChildren }) {
  const [isShown, setShown] = useState(false);
  return (
    <div class="stack">
      <Code
        text={toCurl(isShown ? apiKey : maskKey(apiKey))}
        copied={toCurl(apiKey)}
        what="the request, with the whole key"
        label="The first request"
        isWrapped
      />
      <div class="buttons">
        {children}
        <Reveal what="the key in the request" isShown={isShown} onToggle={() => setShown(!isShown)} />
      </div>
    </div>
  );
}

function toCurl(key: string): string {
  return asCurl({
    url: `${server.value?.baseUrl ?? location.origin}/v1/ingest`,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: sampleRequest,
  });
}
