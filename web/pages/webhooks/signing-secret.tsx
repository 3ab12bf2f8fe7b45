import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { SigningSecret as Secret } from "../../api/types.ts";
import { exactTimeWithZone } from "../../format/time.ts";
import { Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { say } from "../../parts/said.tsx";
import { Reveal } from "../../parts/secret.tsx";

/** The secret behind the `v1` signature: masked until it is revealed, copied whole either way. */
export function SigningSecret({
  secret: { secret, earlier_secret_expires_at },
  isShown,
  onToggle,
  onRotated,
}: {
  secret: Secret;
  isShown: boolean;
  onToggle(): void;
  onRotated(secret: Secret): void;
}) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <div class="secret">
        <code>{isShown ? secret : `whsec_••••${secret.slice(-4)}`}</code>
        <Reveal what="the signing secret" isShown={isShown} onToggle={onToggle} />
        <Copy text={secret} what="the signing secret" />
        <Button changes onClick={() => setAsking(true)}>
          Rotate the secret …
        </Button>
      </div>
      {earlier_secret_expires_at !== null && (
        <p class="small soft">
          The previous secret also signs until {exactTimeWithZone(Date.parse(earlier_secret_expires_at))}.
        </p>
      )}
      {isAsking && <RotateDialog onClose={() => setAsking(false)} onRotated={onRotated} />}
    </>
  );
}

function RotateDialog({ onClose, onRotated }: { onClose(): void; onRotated(secret: Secret): void }) {
  const attempt = useAttempt(async () => {
    const secret = await call<Secret>("/v1/tenants/signing-secret/rotate", { method: "POST" });
    onRotated(secret);
    onClose();
    say("The signing secret is rotated. Switch your receivers to the new one.");
  });
  return (
    <Dialog title="Rotate the signing secret" onClose={onClose}>
      <p>
        A new secret signs at once. The previous one also signs for 7 days, so receivers that have it keep accepting
        deliveries. Switch them to the new one in that time.
      </p>
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Keep the secret</Button>
        <Button kind="primary" onClick={attempt.run} busy={attempt.isBusy}>
          Rotate the secret
        </Button>
      </div>
    </Dialog>
  );
}
