import type { ComponentChildren } from "preact";
import { AttemptButton, Refusal, useAttempt } from "./attempt.tsx";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";

/** What is replayed: names and values. */
export type Facts = readonly (readonly [name: string, value: string])[];

/** Asks before many events, or some that were acknowledged, are delivered again, and says which ones. */
export function ReplayQuestion({
  title,
  facts,
  press,
  onStart,
  onClose,
  children,
}: {
  title: string;
  facts: Facts;
  /** The text of the start button; null: it cannot be started yet. */
  press: string | null;
  onStart(): Promise<void>;
  onClose(): void;
  children: ComponentChildren;
}) {
  const attempt = useAttempt(onStart);
  return (
    <Dialog title={title} onClose={onClose}>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </>
        ))}
      </dl>
      <p role="status">{children}</p>
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Not now</Button>
        <AttemptButton of={attempt} disabled={press === null}>
          {press ?? "Replay"}
        </AttemptButton>
      </div>
    </Dialog>
  );
}
