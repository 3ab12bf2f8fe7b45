import "./secret.css";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Copy } from "./copy.tsx";
import { Icon } from "./icon.tsx";

/** A secret, masked until it is revealed; a copy is whole either way. @param what names it for those who only hear it */
export function Secret({ value, mask, what }: { value: string; mask: string; what: string }) {
  const [isShown, setShown] = useState(false);
  return (
    <span class="secret">
      <code>{isShown ? value : mask}</code>
      <Reveal what={what} isShown={isShown} onToggle={() => setShown(!isShown)} />
      <Copy text={value} what={what} />
    </span>
  );
}

export function Reveal({ what, isShown, onToggle }: { what: string; isShown: boolean; onToggle(): void }) {
  const does = isShown ? "Hide" : "Reveal";
  return (
    <Button kind="quiet" onClick={onToggle} aria-label={`${does} ${what}`}>
      <Icon name="eye" /> {does}
    </Button>
  );
}

/** Its prefix says what it is, its end says which one. */
export const maskKey = (key: string): string => `svc_sk_••••${key.slice(-4)}`;
